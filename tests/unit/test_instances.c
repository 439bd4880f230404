/*
 * tests/unit/test_instances.c - what is kept for a project goes only if the project is gone
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state/instance.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"

static char *base;
static const char *root;

static int set_up(void **state)
{
	char made[] = "/tmp/carrel-instances-XXXXXX";

	(void)state;
	if (!mkdtemp(made))
		return -1;
	base = mem_strdup(made);
	root = path_join(base, "project");
	setenv("XDG_STATE_HOME", path_join(base, "state"), 1);
	setenv("XDG_RUNTIME_DIR", base, 1);
	setenv("HOME", base, 1);
	unsetenv("GIT_DIR");
	return mkdir(root, 0700);
}

static int tear_down(void **state)
{
	(void)state;
	return system(mem_printf("rm -rf %s", base));
}

/* A project that had a box once, as gc lists it when its root is gone. */
static struct instance list_gone(void)
{
	instance_vec all = { 0 };
	struct fault f = { 0 };
	struct project p;
	const char *dir;
	int held;

	assert_int_equal(project_find(root, &p, &f), 0);
	held = instance_enter(&p, &dir, &f);
	assert_true(held >= 0);
	fd_close(&held);
	assert_int_equal(rmdir(root), 0);
	assert_int_equal(instance_list(false, &all, &f), 0);
	assert_int_equal(all.n, 1);
	assert_null(all.v[0].problem);
	assert_int_equal(instance_root(all.v[0].root), ROOT_GONE);
	return all.v[0];
}

/* The user gets it back after gc has looked, and before it removes. */
static void test_root_that_is_there_again(void **state)
{
	struct instance i = list_gone();
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(mkdir(root, 0700), 0);
	assert_int_equal(instance_remove(&i, true, &f), -EEXIST);
	assert_int_equal(access(i.dir, F_OK), 0);
	assert_int_equal(rmdir(root), 0);
	assert_int_equal(instance_remove(&i, true, &f), 0);
	assert_int_equal(access(i.dir, F_OK), -1);
}

/* `carrel instances reset` removes it wherever the root is, but not under a running box. */
static void test_reset(void **state)
{
	struct instance i = list_gone();
	struct fault f = { 0 };
	struct project p;
	const char *dir;
	int held;

	(void)state;
	assert_int_equal(mkdir(root, 0700), 0);
	assert_int_equal(project_find(root, &p, &f), 0);
	held = instance_enter(&p, &dir, &f);
	assert_true(held >= 0);
	assert_int_equal(instance_remove(&i, false, &f), -EBUSY);
	assert_int_equal(access(i.dir, F_OK), 0);
	fd_close(&held);
	assert_int_equal(instance_remove(&i, false, &f), 0);
	assert_int_equal(access(i.dir, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_root_that_is_there_again, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_reset, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

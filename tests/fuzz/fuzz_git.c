/*
 * tests/fuzz/fuzz_git.c - the files by which a workspace says where its repository is
 *
 * NUL parts the input into the workspace's .git file and, in the directory that it may name,
 * gitdir, commondir and config. All lie in a new directory below TMPDIR:
 *
 *	w/.git		the file
 *	r/worktrees/a/	what it should name
 *
 * Whatever they say, nothing outside of that directory may be believed to be the repository:
 * nothing there points back.
 */
#include "fuzz.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/path.h"
#include "plan/host.h"
#include "host/survey.h"
#include "state/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *top;

static char *in_top(const char *name)
{
	char *path;

	CHECK(asprintf(&path, "%s/%s", top, name) > 0);
	return path;
}

static void make_dir(const char *name)
{
	char *path = in_top(name);

	CHECK(mkdir(path, 0700) == 0);
	free(path);
}

static void remove_all(void)
{
	char *command;

	if (asprintf(&command, "rm -rf '%s'", top) > 0)
		(void)!system(command);
}

static void set_up(void)
{
	static const char *const dirs[] = { "w", "w/sub", "r", "r/worktrees", "r/worktrees/a",
		"r/modules", "r/hooks" };
	const char *tmp = getenv("TMPDIR");
	char *made;

	CHECK(asprintf(&made, "%s/carrel-fuzz-XXXXXX", tmp ? tmp : "/tmp") > 0 &&
		mkdtemp(made));
	top = realpath(made, NULL);
	CHECK(top);
	free(made);
	atexit(remove_all);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		make_dir(dirs[i]);
}

/* The next part of the input as a file; a part that is only "-" stands for no file. */
static void write_part(const char *name, const uint8_t **data, size_t *size)
{
	size_t n = *size ? strnlen((const char *)*data, *size) : 0;
	char *path = in_top(name);

	unlink(path);
	if (n != 1 || **data != '-') {
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		CHECK(fd >= 0 && write(fd, *data, n) == (ssize_t)n);
		close(fd);
	}
	free(path);
	*data += n;
	*size -= n;
	if (*size) {
		++*data;
		--*size;
	}
}

static void check_host(const struct host *h)
{
	if (h->git_common) {
		CHECK(path_within(h->git_common, top) && strcmp(h->git_common, top));
		CHECK(!path_within(h->workspace.real, h->git_common));
	}
	vec_each(rule, &h->rules)
		vec_each(fact, &rule->trail)
			CHECK(path_within(fact->path, top));
}

/* The survey remembers what it looked at last; let it be what stays. */
static void forget(void)
{
	struct host h = { .workspace.real = "/" };
	struct project p;
	struct fault f = { 0 };

	survey_protect(&h, "/", "carrel-fuzz-absent", "", NULL);
	CHECK(survey_project(top, &p, &f) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = { "w/.git", "r/worktrees/a/gitdir",
		"r/worktrees/a/commondir", "r/worktrees/a/config" };
	struct host h = { .uid = getuid(), .home = "/nonexistent/home" };
	struct fault f = { 0 };
	char *workspace;

	if (!top)
		set_up();
	if (size > 8192)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		write_part(files[i], &data, &size);
	workspace = in_top("w");
	h.cwd = workspace;
	h.workspace = (struct fact){
		.path = workspace, .real = workspace, .kind = KIND_DIR, .real_kind = KIND_DIR
	};
	if (survey_git(&h, &f) == 0)
		check_host(&h);
	else
		CHECK(f.text[0]);
	forget();
	free(workspace);
	memory_reset();
	return 0;
}

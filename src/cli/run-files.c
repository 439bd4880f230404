#include "cli/run-files.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "eval/attempts.h"
#include "eval/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct whole {
	const struct run_dir *run;
	const struct summary *summary;
	void (*make)(const struct run_dir *run, const struct summary *s, struct str *out);
};

int run_files_put(const char *path, int (*write)(const void *arg, int fd, struct fault *f),
	const void *arg, struct fault *f)
{
	const char *temp = mem_printf("%s.%d", path, (int)getpid());
	auto_close int fd = -1;
	int rc;

	if (strcmp(path, "-") == 0)
		return write(arg, STDOUT_FILENO, f);
	fd = openat(AT_FDCWD, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return fault_set(f, errno, "write '%s'", str_visible(path));
	rc = write(arg, fd, f);
	if (rc == 0 && rename(temp, path) < 0)
		rc = fault_set(f, errno, "write '%s'", str_visible(path));
	if (rc < 0)
		unlink(temp);
	return rc;
}

static int write_text(const void *arg, int fd, struct fault *f)
{
	const struct whole *w = arg;
	struct str text = { 0 };
	int rc;

	w->make(w->run, w->summary, &text);
	rc = fd_write_all(fd, text.p, text.len);
	return rc < 0 ? fault_set(f, -rc, "write it") : 0;
}

static int write_inspect(const void *arg, int fd, struct fault *f)
{
	const struct whole *w = arg;

	return inspect_write(w->run, w->summary, fd, f);
}

int run_files_write(const struct run_files *want, const struct run_dir *run,
	const struct summary *s, struct fault *f)
{
	struct whole junit = { run, s, junit_xml }, markdown = { run, s, benchmark_markdown };
	struct whole inspect = { run, s, NULL }, csv = { run, s, attempts_csv };
	int rc = 0;

	if (want->junit)
		rc = run_files_put(want->junit, write_text, &junit, f);
	if (rc == 0 && want->markdown)
		rc = run_files_put(want->markdown, write_text, &markdown, f);
	if (rc == 0 && want->csv)
		rc = run_files_put(want->csv, write_text, &csv, f);
	if (rc == 0 && want->inspect)
		rc = run_files_put(want->inspect, write_inspect, &inspect, f);
	return rc;
}

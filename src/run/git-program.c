/*
 * run/git-program.c - run git on the host, for carrel itself
 */
#include "run/git-program.h"
#include "host/host-program.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SAID = 256 << 20 };

static void exec_git(const char *const *argv, const char *dir, int in, int out)
{
	static const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_ATTR_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1", "HOME=/nonexistent", NULL };

	if (chdir(dir) == 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(out, 2) == 2)
		execve(argv[0], (char *const *)argv, (char *const *)env);
	_exit(127);
}

/* Read to the end, so that git can end; drop what is beyond the limit. */
static const char *read_all(int pipe, size_t *ret_n)
{
	auto_close int fd = pipe;
	struct str said = { 0 };
	char block[65536];
	ssize_t n;

	str_addn(&said, "", 0);
	while ((n = read(fd, block, sizeof(block))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && said.len < MOST_SAID)
			str_addn(&said, block, (size_t)n);
	if (ret_n)
		*ret_n = said.len;
	return said.p ? said.p : "";
}

int git_program_run(const char *git, const char *dir, const char *const *words, int in,
	const char **ret, size_t *ret_n)
{
	static const char *const always[] = { "-c", "core.hooksPath=/dev/null", "-c",
		"core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false" };
	VEC(const char *) argv = { 0 };
	auto_close int nothing = openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);
	int ends[2], status;
	pid_t pid;

	vec_push(&argv, git);
	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		vec_push(&argv, always[i]);
	while (*words)
		vec_push(&argv, *words++);
	vec_push(&argv, NULL);
	if (nothing < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		exec_git(argv.v, dir, in < 0 ? nothing : in, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -EAGAIN;
	}
	*ret = read_all(ends[0], ret_n);
	status = program_wait(pid);
	return status < 0 ? status : WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

#include "host/host-program.h"
#include "host/survey.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_OUTPUT = 1 << 20 };

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/*
 * A directory that holds the user's home or the system's programs is no workspace, even if it
 * is a repository: many people keep their home in one.
 */
static bool could_be_workspace(const char *dir, const char *home)
{
	static const char *const programs[] = { "/usr/bin", "/usr/sbin", "/usr/local/bin",
		"/usr/local/sbin" };

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (path_within(programs[i], dir))
			return false;
	return !home || !path_within(home, dir);
}

bool program_is_agents(const char *path, const char *workspace)
{
	const char *home = getenv("HOME"), *dir = workspace;
	struct fault ignored = { 0 };
	struct project p;

	if (path_within(path, workspace) || survey_project(workspace, &p, &ignored) < 0)
		return true;
	home = home && home[0] == '/' ? fd_real_path(home) : NULL;
	for (dir = path_parent(dir); could_be_workspace(dir, home); dir = path_parent(dir))
		if (path_within(path, dir))
			return true;
	return (path_within(path, p.tree) && could_be_workspace(p.tree, home)) ||
		(path_within(path, p.root) && could_be_workspace(p.root, home));
}

static bool is_workspaces(const char *path, const char *workspace)
{
	return path_within(path, workspace);
}

static const char *find(const char *name, const char *workspace,
	bool (*never)(const char *path, const char *workspace))
{
	const char *at = getenv("PATH");

	for (at = at ? at : "/usr/local/bin:/usr/bin:/bin"; *at; at += *at == ':') {
		size_t n = strcspn(at, ":");
		const char *path = mem_printf("%.*s/%s", (int)n, at, name), *real;

		at += n;
		real = path[0] == '/' && is_program(path) ? fd_real_path(path) : NULL;
		if (real && !never(real, workspace))
			return real;
	}
	return NULL;
}

const char *program_find(const char *name, const char *workspace)
{
	return find(name, workspace, program_is_agents);
}

const char *program_find_client(const char *name, const char *workspace)
{
	return find(name, workspace, is_workspaces);
}

void program_clean_path(const char *workspace)
{
	struct str clean = { 0 };

	for (const char *at = getenv("PATH"); at && *at; at += *at == ':') {
		const char *entry = mem_strndup(at, strcspn(at, ":")), *real;

		at += strlen(entry);
		real = entry[0] == '/' ? fd_real_path(entry) : NULL;
		if (real && !program_is_agents(real, workspace))
			str_addf(&clean, "%s%s", clean.len ? ":" : "", entry);
	}
	setenv("PATH", clean.len ? clean.p : "/usr/local/bin:/usr/bin:/bin", 1);
}

/* Run in the root directory: arguments use absolute paths. */
static int spawn_program(const char *const *argv, int out, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	int err = posix_spawn_file_actions_init(&files);

	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null",
			O_RDONLY, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addchdir_np(&files, "/");
	if (!err)
		err = posix_spawn(ret, argv[0], &files, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

int program_wait(int pid)
{
	int status = 0;
	pid_t got;

	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : status;
}

static int collect_output(const char *const *argv, const char **ret, int *ret_status)
{
	char *out = mem_alloc(MOST_OUTPUT + 1);
	auto_close int from = -1, to = -1;
	size_t len = 0;
	ssize_t n = 1;
	int ends[2], rc;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	from = ends[0];
	to = ends[1];
	rc = spawn_program(argv, to, &pid);
	if (rc < 0)
		return rc;
	fd_close(&to);
	while (n && len < MOST_OUTPUT) {
		n = read(from, out + len, MOST_OUTPUT - len);
		if (n < 0 && errno != EINTR)
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	fd_close(&from); /* a program that prints more gets SIGPIPE */
	rc = program_wait(pid);
	if (rc < 0 || n)
		return rc < 0 ? rc : -EFBIG;
	out[len] = '\0';
	*ret = out;
	*ret_status = rc;
	return 0;
}

int program_output(const char *const *argv, const char **ret, int *ret_status)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, old;
	int rc;

	/*
	 * If our parent ignores SIGCHLD, we inherit that, and the kernel would keep no status.
	 */
	sigaction(SIGCHLD, &plain, &old);
	rc = collect_output(argv, ret, ret_status);
	sigaction(SIGCHLD, &old, NULL);
	return rc;
}

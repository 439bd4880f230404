/*
 * helper/spawn.c - start a helper process
 *
 * A helper reads hostile bytes, so it is a separate program. It sees nothing of our memory,
 * which holds secrets, except what we send to it.
 */
#include "helper/spawn.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/*
 * Runs in our memory until it executes the program, so it must change nothing there.
 *
 * It blocks signals that are sent to the whole job (Ctrl-C without a terminal of the box's
 * own, timeout(1), a service that is stopped). The supervisor forwards those to the box, which
 * may go on and then needs its helpers. Helpers end when they are asked to, or with us.
 */
static _Noreturn void helper_child(const char *program, char *const *argv, const int *fds,
	size_t n)
{
	static char *const envp[] = { NULL };
	const int above = HELPER_FIRST + HELPER_FDS;
	int lifted[HELPER_FDS], null;
	sigset_t all;

	/* First of all: a stopped helper would not notice that we are gone. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* Move all descriptors above the range first, so that none overwrites another. */
	for (size_t i = 0; i < n; i++)
		if ((lifted[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, above)) < 0)
			_exit(127);
	for (size_t i = 0; i < n; i++)
		if (dup2(lifted[i], HELPER_FIRST + (int)i) < 0)
			_exit(127);
	if (fd_close_range(HELPER_FIRST + (unsigned int)n, ~0U) < 0)
		_exit(127);
	null = openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < HELPER_FIRST; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			_exit(127);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	execve(program, argv, envp);
	_exit(127);
}

int helper_spawn(const char *program, const char *argv0, const int *fds, size_t n,
	pid_t *ret_pid)
{
	char *const argv[] = { (char *)argv0, NULL };
	pid_t pid;

	if (n > HELPER_FDS)
		return -E2BIG;
	pid = vfork();
	if (pid == 0)
		helper_child(program, argv, fds, n);
	if (pid < 0)
		return -errno;
	*ret_pid = pid;
	return 0;
}

const char *helper_find(const char *name)
{
	const char *own = fd_real_path("/proc/self/exe"), *beside;

	beside = own ? path_join(path_parent(own), name) : NULL;
	if (beside && access(beside, X_OK) == 0)
		return beside;
	beside = path_join(CARREL_LIBEXEC, name);
	return access(beside, X_OK) == 0 ? beside : NULL;
}

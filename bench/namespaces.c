/*
 * bench/namespaces.c - what the kernel takes for a box's namespaces alone
 *
 *	namespaces PROGRAM ARG...
 *
 * The program in the seven namespaces that a box has, below an init, with nothing done in
 * them: no mounts, no limits, no walls. What is faster than this has fewer namespaces.
 */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int exit_code(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(char **argv)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	return exit_code(pid);
}

int main(int argc, char **argv)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
			CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET,
		.exit_signal = SIGCHLD,
	};
	pid_t pid;

	if (argc < 2)
		return 2;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		_exit(run(argv + 1));
	if (pid < 0)
		perror("namespaces");
	return exit_code(pid);
}

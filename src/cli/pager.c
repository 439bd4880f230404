/*
 * cli/pager.c - output through the user's pager, as git does it
 *
 * The pager is a command of the user's own environment, run by a shell. less quits by itself
 * where the text fits on the screen, and passes colours on but no other escape sequence.
 */
#include "cli/pager.h"
#include "cli/cmd.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *pager_command(void)
{
	static const char *const names[] = { "CARREL_PAGER", "GIT_PAGER", "PAGER" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		if (value)
			return *value && strcmp(value, "cat") != 0 ? value : NULL;
	}
	return "less";
}

static void run_pager(const char *command, int input)
{
	if (dup2(input, STDIN_FILENO) < 0)
		_exit(EXIT_NOT_FOUND);
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(EXIT_NOT_FOUND);
}

int pager_print(const struct str *text, bool wanted)
{
	const char *command = wanted && isatty(STDOUT_FILENO) ? pager_command() : NULL;
	int ends[2], status = 0;
	pid_t pid;

	if (!command || !text->len || pipe2(ends, O_CLOEXEC) < 0)
		return text->len ? cmd_print(text) : 0;
	pid = fork();
	if (pid == 0)
		run_pager(command, ends[0]);
	close(ends[0]);
	/* Who leaves the pager early has seen enough. */
	signal(SIGPIPE, SIG_IGN);
	if (pid > 0)
		(void)fd_write_all(ends[1], text->p, text->len);
	close(ends[1]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			break;
	if (pid > 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_NOT_FOUND))
		return 0;
	return cmd_print(text);
}

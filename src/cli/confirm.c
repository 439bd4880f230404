#include "cli/confirm.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

/* One line without its newline, cut to what fits; false at the end of the input. */
static bool read_line(int fd, char *line, size_t size)
{
	size_t n = 0;
	ssize_t got;
	char c;

	for (;;) {
		do
			got = read(fd, &c, 1);
		while (got < 0 && errno == EINTR);
		if (got <= 0 || c == '\n')
			break;
		if (n + 1 < size)
			line[n++] = c;
	}
	line[n] = '\0';
	return got > 0;
}

static int no_terminal(struct fault *f)
{
	fault_set(f, 0, "not a terminal: cannot ask for confirmation");
	return fault_fix(f, "Pass -y to start without asking, or -n to only see the plan.");
}

/* Write the text and read a line. Input typed before the question appeared is discarded. */
static int put_question(int fd, const char *text, char *answer, size_t size, struct fault *f)
{
	if (fd >= 0)
		(void)tcflush(fd, TCIFLUSH);
	if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
		return no_terminal(f);
	if (read_line(fd, answer, size))
		return 0;
	(void)fd_write_all(fd, "\n", 1);
	return 0;
}

int confirm_showing(const char *question, const char *ask, const char *more, struct fault *f)
{
	auto_close int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	const char *text = mem_printf("%s%s [y/N%s] ", question, ask, more ? "/?" : "");
	char answer[8];
	int rc;

	while ((rc = put_question(fd, text, answer, sizeof(answer), f)) == 0 && more &&
		!strcmp(answer, "?"))
		text = mem_printf("\n%s\n%s [y/N/?] ", more, ask);
	if (rc < 0)
		return rc;
	return !strcasecmp(answer, "y") || !strcasecmp(answer, "yes");
}

int confirm(const char *question, struct fault *f)
{
	return confirm_showing(question, "", NULL, f);
}

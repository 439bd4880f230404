#include "cli/confirm.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

/* One line without its end, cut to what fits; false when nothing more can be read. */
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

int confirm(const char *question, struct fault *f)
{
	auto_close int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	struct str text = { 0 };
	char answer[8];

	/* What was typed, or pasted, before the question was there is no answer to it. */
	if (fd >= 0)
		(void)tcflush(fd, TCIFLUSH);
	str_addf(&text, "%s [y/N] ", question);
	if (fd < 0 || fd_write_all(fd, text.p, text.len) < 0)
		return no_terminal(f);
	if (!read_line(fd, answer, sizeof(answer)))
		(void)fd_write_all(fd, "\n", 1);
	return !strcasecmp(answer, "y") || !strcasecmp(answer, "yes");
}

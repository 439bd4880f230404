/*
 * box/native/terminal.c - the box's own terminal
 *
 * The pty comes from the box's own devpts, so that ttyname(3) works and no name or
 * descriptor of the host's terminal is ever inside (CVE-2017-5226). Its master side goes to
 * the supervisor. init leads the session: the command is then a job like under any shell and
 * can be stopped by Ctrl-Z, which the kernel denies to a session leader's orphaned group.
 */
#include "box/native/native.h"
#include "box/engine.h"
#include "base/fault.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* For missing streams: the box's own /dev/null, not the host's. */
static int open_null(const struct box_io *io, struct fault *f)
{
	const int given[3] = { io->in, io->out, io->err };

	for (int i = io->terminal ? 2 : 0; i <= 2; i++) {
		auto_close int null = -1;

		if (given[i] >= 0)
			continue;
		null = openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
		if (null < 0 || dup2(null, i) < 0)
			return fault_set(f, errno, "open the box's /dev/null");
	}
	return 0;
}

int terminal_open(unsigned short rows, unsigned short cols, int *ret_master)
{
	const struct winsize size = { .ws_row = rows, .ws_col = cols };
	auto_close int master = openat(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC),
		       end = -1;
	int unlock = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -1;
	end = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (end < 0 || ioctl(end, TIOCSWINSZ, &size) < 0)
		return -1;
	*ret_master = take_fd(&master);
	return take_fd(&end);
}

int step_terminal(struct native *n, struct fault *f)
{
	auto_close int master = -1;

	if (setsid() < 0)
		return fault_set(f, errno, "start a session");
	if (!n->io->terminal)
		return open_null(n->io, f);
	n->terminal = terminal_open(n->io->rows, n->io->cols, &master);
	if (n->terminal < 0)
		return fault_set(f, errno, "make a pseudo-terminal");
	if ((n->io->termios && tcsetattr(n->terminal, TCSANOW, n->io->termios) < 0) ||
		ioctl(n->terminal, TIOCSCTTY, 0) < 0)
		return fault_set(f, errno, "set the pseudo-terminal up");
	for (int fd = 0; fd <= (n->io->err_apart ? 1 : 2); fd++)
		if (dup2(n->terminal, fd) < 0)
			return fault_set(f, errno, "arrange the box's standard streams");
	if (wire_send_fd(n->control, &(struct wire){ .type = WIRE_TERMINAL }, master) < 0)
		return fault_set(f, errno, "hand the terminal to the supervisor");
	return n->io->err_apart ? open_null(n->io, f) : 0;
}

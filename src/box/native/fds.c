/*
 * box/native/fds.c - close all descriptors of the host
 *
 * The first step, so that nothing the user's shell or a careless parent left open can leak into
 * a box (CVE-2024-21626). It keeps only the box's ends of its streams at 0-2 and the control
 * socket at 3. The streams are pipes made for this box, or /dev/null, and never a descriptor of
 * the host's: a socket could be reconnected in the host's network, a file reopened for writing
 * through /proc/self/fd.
 */
#include "box/native/native.h"
#include "box/engine.h"
#include "base/fault.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/*
 * Move a descriptor (or /dev/null for none) above 0..FD_FIRST_FREE, because those numbers are
 * about to be overwritten.
 */
static int lift(int fd)
{
	if (fd < 0)
		fd = openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
	return fd < 0 || fd >= FD_FIRST_FREE ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FD_FIRST_FREE);
}

int step_fds(struct native *n, struct fault *f)
{
	const struct box_io *io = n->io;
	const int given[4] = {
		io->terminal ? -1 : io->in,
		io->terminal ? -1 : io->out,
		io->terminal && !io->err_apart ? -1 : io->err,
		n->control,
	};
	int from[4];

	for (int i = 0; i < 4; i++)
		from[i] = lift(given[i]);
	for (int i = 0; i < 4; i++)
		if (from[i] < 0 || dup3(from[i], i, i == FD_CONTROL ? O_CLOEXEC : 0) < 0)
			return fault_set(f, errno, "arrange the box's standard streams");
	n->control = FD_CONTROL;
	if (fd_close_range(FD_FIRST_FREE, ~0U) < 0)
		return fault_set(f, errno, "close inherited files");
	return 0;
}

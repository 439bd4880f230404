#include "box/native/native.h"
#include "base/fault.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int send_parts(int socket, const struct iovec *parts, size_t n, const int *fds,
	size_t fd_count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(WIRE_FDS * sizeof(int))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = (struct iovec *)parts };

	m.msg_iovlen = (__typeof__(m.msg_iovlen))n; /* a size_t or an int, as the libc likes */
	if (fd_count) {
		m.msg_control = &control;
		m.msg_controllen =
			(__typeof__(m.msg_controllen))CMSG_SPACE(fd_count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len =
			(__typeof__(control.header.cmsg_len))CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	}
	return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int wire_send(int socket, const struct wire *w)
{
	return wire_send_fds(socket, w, NULL, 0);
}

int wire_send_fds(int socket, const struct wire *w, const int *fds, size_t n)
{
	const struct iovec part = { (void *)w, sizeof(*w) };

	return send_parts(socket, &part, 1, fds, n);
}

int wire_send_fault(int socket, const struct fault *f)
{
	const struct wire w = { .type = WIRE_FAULT };
	const struct iovec parts[2] = { { (void *)&w, sizeof(w) }, { (void *)f, sizeof(*f) } };

	return send_parts(socket, parts, 2, NULL, 0);
}

ssize_t wire_receive(int socket, struct wire *w, struct fault *f, int fds[WIRE_FDS], int flags)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(WIRE_FDS * sizeof(int))];
	} control;
	struct iovec parts[2] = { { w, sizeof(*w) }, { f, sizeof(*f) } };
	struct msghdr m = { .msg_iov = parts,
		.msg_iovlen = f ? 2 : 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t n;

	for (int i = 0; i < WIRE_FDS; i++)
		fds[i] = -1;
	/*
	 * When init ended with a word of ours unread, that is told first (once, as a
	 * reset), and its last word after it.
	 */
	do
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n > 0 && m.msg_controllen && control.header.cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(&control.header), control.header.cmsg_len - CMSG_LEN(0));
	return n;
}

/* box/native/wire.c - messages between the supervisor and init */
#include "box/native/native.h"
#include "base/fault.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

static int send_parts(int socket, const struct iovec *parts, size_t n, int fd)
{
	union control control = { 0 };
	struct msghdr m = { .msg_iov = (struct iovec *)parts };

	m.msg_iovlen =
		(__typeof__(m.msg_iovlen))n; /* a size_t or an int, depending on the libc */
	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(int));
	}
	return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int wire_send(int socket, const struct wire *w)
{
	return wire_send_fd(socket, w, -1);
}

int wire_send_fd(int socket, const struct wire *w, int fd)
{
	const struct iovec part = { (void *)w, sizeof(*w) };

	return send_parts(socket, &part, 1, fd);
}

int wire_send_fault(int socket, const struct fault *f)
{
	const struct wire w = { .type = WIRE_FAULT };
	const struct iovec parts[2] = { { (void *)&w, sizeof(w) }, { (void *)f, sizeof(*f) } };

	return send_parts(socket, parts, 2, -1);
}

ssize_t wire_receive(int socket, struct wire *w, struct fault *f, int *ret_fd, int flags)
{
	union control control;
	struct iovec parts[2] = { { w, sizeof(*w) }, { f, sizeof(*f) } };
	/* CMSG_LEN: with CMSG_SPACE the padding would have room for a second descriptor. */
	struct msghdr m = { .msg_iov = parts,
		.msg_iovlen = f ? 2 : 1,
		.msg_control = ret_fd ? &control : NULL,
		.msg_controllen = ret_fd ? CMSG_LEN(sizeof(int)) : 0 };
	ssize_t n;

	if (ret_fd)
		*ret_fd = -1;
	/*
	 * If init ended without reading a message of ours, the kernel first reports a reset,
	 * and then delivers init's last message.
	 */
	do
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n > 0 && m.msg_controllen && control.header.cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(&control.header), sizeof(int));
	return n;
}

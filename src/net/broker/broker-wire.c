/* net/broker/broker-wire.c - messages between the supervisor and the broker */
#include "net/broker/broker.h"
#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(NET_ENDS * sizeof(int))];
};

int broker_send(int socket, const struct broker_message *m, const void *body, size_t n,
	const int *fds, size_t fd_count, int flags)
{
	struct iovec parts[2] = { { (void *)m, sizeof(*m) }, { (void *)body, n } };
	struct msghdr h = { .msg_iov = parts, .msg_iovlen = 2 };
	union control control = { 0 };
	ssize_t rc;

	if (fd_count) {
		const size_t bytes = fd_count * sizeof(int);

		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = (__typeof__(control.header.cmsg_len))CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.header), fds, bytes);
		h.msg_control = &control;
		h.msg_controllen = (__typeof__(h.msg_controllen))CMSG_SPACE(bytes);
	}
	do
		rc = sendmsg(socket, &h, MSG_NOSIGNAL | flags);
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

int broker_receive(int socket, struct broker_message *m, void *body, size_t size, size_t *ret_n,
	int fds[NET_ENDS], int flags)
{
	struct iovec parts[2] = { { m, sizeof(*m) }, { body, size } };
	union control control;
	struct msghdr h = { .msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t n;

	for (int i = 0; i < NET_ENDS; i++)
		fds[i] = -1;
	do
		n = recvmsg(socket, &h, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof(*m))
		return -EPIPE; /* the other side is gone, or sends something else */
	if (h.msg_controllen >= CMSG_LEN(sizeof(int)) && control.header.cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(&control.header), control.header.cmsg_len - CMSG_LEN(0));
	if (h.msg_flags & MSG_TRUNC)
		return -EPROTO; /* a message larger than the buffer is invalid */
	*ret_n = (size_t)n - sizeof(*m);
	return 0;
}

void broker_close(int fds[NET_ENDS])
{
	for (int i = 0; i < NET_ENDS; i++)
		fd_close(&fds[i]);
}

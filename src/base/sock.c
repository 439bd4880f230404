#include "base/sock.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union carried {
	struct cmsghdr head;
	char space[CMSG_SPACE(SOCK_FDS * sizeof(int))];
};

ssize_t sock_send(int socket, const void *bytes, size_t size, const int *fds, size_t n,
	int flags)
{
	union carried carried = { 0 };
	struct iovec part = { (void *)bytes, size };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (n) {
		m.msg_control = &carried;
		m.msg_controllen = (__typeof__(m.msg_controllen))CMSG_SPACE(n * sizeof(int));
		carried.head.cmsg_level = SOL_SOCKET;
		carried.head.cmsg_type = SCM_RIGHTS;
		carried.head.cmsg_len =
			(__typeof__(carried.head.cmsg_len))CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&carried.head), fds, n * sizeof(int));
	}
	return sendmsg(socket, &m, flags);
}

ssize_t sock_receive(int socket, void *bytes, size_t size, int fds[SOCK_FDS], size_t *ret_n,
	int flags)
{
	union carried carried = { 0 };
	struct iovec part = { bytes, size };
	struct msghdr m = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &carried,
		.msg_controllen = CMSG_LEN(SOCK_FDS * sizeof(int)) };
	ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | flags);

	*ret_n = 0;
	if (n < 0 || !m.msg_controllen || carried.head.cmsg_type != SCM_RIGHTS)
		return n;
	*ret_n = (carried.head.cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(&carried.head), *ret_n * sizeof(int));
	return n;
}

#include "box/native/native.h"
#include "base/fault.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int send_parts(int socket, const struct iovec *parts, size_t n, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = (struct iovec *)parts };

	m.msg_iovlen = (__typeof__(m.msg_iovlen))n; /* a size_t or an int, as the libc likes */
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

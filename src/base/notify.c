/*
 * base/notify.c - tell a service manager how we are
 *
 * One datagram to a socket of the manager's: a path, or after '@' an abstract name. libsystemd
 * would be a large library for that.
 */
#include "base/notify.h"
#include "base/fd.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void notify(const char *state)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	const size_t n = path ? strlen(path) : 0;
	auto_close int s = -1;

	if (n < 2 || n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s >= 0)
		sendto(s, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}

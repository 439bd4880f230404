/*
 * base/sock.h - packets with descriptors
 */
#ifndef BASE_SOCK_H
#define BASE_SOCK_H

#include <stddef.h>
#include <sys/types.h>

enum { SOCK_FDS = 4 };

/* Send one packet that carries n descriptors, SOCK_FDS at most; as sendmsg(2). */
ssize_t sock_send(int socket, const void *bytes, size_t size, const int *fds, size_t n,
	int flags);

/*
 * Receive one packet with *ret_n descriptors, SOCK_FDS at most. They are close-on-exec and
 * belong to the caller. As recvmsg(2).
 */
ssize_t sock_receive(int socket, void *bytes, size_t size, int fds[SOCK_FDS], size_t *ret_n,
	int flags);

#endif

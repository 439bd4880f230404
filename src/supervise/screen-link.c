#include "supervise/screen-link.h"
#include "helper/spawn.h"
#include "state/boxes.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS = 10000, END_MS = 1000 };

_Static_assert(SCREEN_SOCKET == (int)HELPER_FIRST, "where the helper finds its descriptors");

/* The screen reads its own log to cut it. */
static int open_file(const char *name, const char *file, struct fault *f)
{
	auto_close int fd = boxes_create(name, file, f);
	char path[32];
	int both;

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	both = open(path, O_RDWR | O_CLOEXEC);
	return both < 0 ? fault_set(f, errno, "open %s", boxes_shown(name)) : both;
}

static void lose(struct screen_link *l)
{
	fd_close(&l->socket);
	l->on = false;
	kill(l->pid, SIGKILL);
	while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int await_ready(struct screen_link *l, struct fault *f)
{
	struct pollfd in = { .fd = l->socket, .events = POLLIN };
	char said[600] = "";
	ssize_t n;

	n = poll(&in, 1, START_MS) > 0 ? recv(l->socket, said, sizeof(said) - 1, 0) : 0;
	if (n > 0 && said[0] == SCREEN_READY)
		return 0;
	lose(l);
	if (n > 0 && said[0] == SCREEN_FAULT)
		return fault_set(f, 0, "the box's screen could not start: %s",
			str_visible(said + 1));
	return fault_set(f, 0, "the box's screen ended at its start");
}

static int spawn_screen(struct screen_link *l, const char *program, int log, int text,
	struct fault *f)
{
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fault_set(f, errno, "make a socket for the box's screen");
	rc = helper_spawn(program, SCREEN_PROGRAM, (int[]){ ends[1], log, text }, 3, &l->pid);
	close(ends[1]);
	if (rc < 0) {
		close(ends[0]);
		return fault_set(f, -rc, "start %s", str_visible(program));
	}
	l->socket = ends[0];
	l->on = true;
	return await_ready(l, f);
}

int screen_start(struct screen_link *l, const char *name, struct screen_size size,
	struct fault *f)
{
	const char *program = helper_find(SCREEN_PROGRAM);
	auto_close int log = -1, text = -1;
	int rc;

	if (!program) {
		fault_set(f, 0, "there is no %s, which keeps the screen of a detached box",
			SCREEN_PROGRAM);
		return fault_fix(f,
			"It is built where libvterm-dev is installed, and stands beside carrel "
			"or in %s.",
			CARREL_LIBEXEC);
	}
	log = open_file(name, BOXES_LOG, f);
	if (log < 0)
		return log;
	text = open_file(name, BOXES_SCREEN, f);
	if (text < 0)
		return text;
	rc = spawn_screen(l, program, log, text, f);
	if (rc == 0)
		screen_resize(l, size);
	return rc;
}

/* true: it was sent, or there is no screen. */
static bool send_message(struct screen_link *l, char letter, const void *bytes, size_t n)
{
	char packet[1 + SCREEN_PACKET];

	if (!l->on)
		return true;
	packet[0] = letter;
	if (n)
		memcpy(packet + 1, bytes, n);
	if (send(l->socket, packet, 1 + n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
		return false;
	lose(l);
	return true;
}

bool screen_output(struct screen_link *l, const char *bytes, size_t n)
{
	return send_message(l, SCREEN_OUTPUT, bytes, n);
}

void screen_resize(struct screen_link *l, struct screen_size size)
{
	send_message(l, SCREEN_SIZE, &size, sizeof(size));
}

bool screen_draw(struct screen_link *l)
{
	return l->on && send_message(l, SCREEN_PICTURE, NULL, 0);
}

void screen_hear(struct screen_link *l, struct screen_event *ret)
{
	ssize_t n;

	ret->what = 0;
	ret->n = 0;
	if (!l->on)
		return;
	n = recv(l->socket, ret->bytes, sizeof(ret->bytes), MSG_DONTWAIT);
	if (n > 0) {
		ret->what = (enum screen_letter)ret->bytes[0];
		ret->n = (size_t)n - 1;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		lose(l);
	}
}

void screen_end(struct screen_link *l)
{
	struct pollfd in = { .fd = l->socket, .events = POLLIN },
		      out = { .fd = l->socket, .events = POLLOUT };
	char unread[1 + SCREEN_PACKET];

	if (!l->on)
		return;
	/* Drop its last messages; the end of the socket means that it has ended. */
	if (poll(&out, 1, END_MS) > 0 && send_message(l, SCREEN_END, NULL, 0) && l->on)
		while (poll(&in, 1, END_MS) > 0 &&
			recv(l->socket, unread, sizeof(unread), MSG_DONTWAIT) > 0)
			;
	if (l->on)
		lose(l);
}

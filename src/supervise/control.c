/*
 * supervise/control.c - the supervisor's side of a box's control socket
 *
 * Theory of operation. A caller can change what a box may reach, so a box must never be a
 * caller. No box sees the runtime directory (host/survey.c). The socket and its directory
 * belong to the user alone. A caller's uid must be ours, and it must be in our user namespace,
 * so a process of a box is refused even if it somehow gets the socket.
 *
 * Everything is bounded and nothing blocks. There is room for a few callers. One more caller
 * replaces the oldest, so a caller that stalls blocks nobody and no timeout is needed. A
 * request or reply that would block ends the connection. Memory that a request allocates is
 * freed when it is answered.
 *
 * A killed supervisor leaves its socket behind. The next box of that name removes it: it holds
 * the lock of the name, so nobody else uses the socket.
 */
#include "supervise/control.h"
#include "supervise/streams.h"
#include "box/engine.h"
#include "state/registry.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- beginning and end ---- */

static int listen_at(int dir, const char *file, struct fault *f)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	/*
	 * By descriptor: the path of the runtime directory may be longer than an address
	 * allows.
	 */
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir, file);
	/* Set the mode before bind(2): the socket's file gets it. */
	if (fd < 0 || fchmod(fd, 0600) < 0)
		return fault_set(f, errno, "make a control socket");
	if (unlinkat(dir, file, 0) < 0 && errno != ENOENT)
		return fault_set(f, errno, "remove an old control socket");
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, CONTROL_CLIENTS) < 0)
		return fault_set(f, errno, "make the control socket %s", file);
	return take_fd(&fd);
}

int control_open(struct control *c, const char *name, const struct control_ops *ops, void *ctx,
	struct fault *f)
{
	struct control new = { .ops = ops, .ctx = ctx };
	auto_close int dir = registry_directory(f);

	*c = (struct control){ 0 };
	if (dir < 0)
		return dir;
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		new.client[i] = -1;
	snprintf(new.file, sizeof(new.file), "%s.sock", name);
	new.listener = listen_at(dir, new.file, f);
	if (new.listener < 0)
		return new.listener;
	new.open = true;
	new.dir = take_fd(&dir);
	*c = new;
	return 0;
}

void control_close(struct control *c)
{
	if (!c->open)
		return;
	unlinkat(c->dir, c->file, 0);
	fd_close(&c->dir);
	fd_close(&c->listener);
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		fd_close(&c->client[i]);
	c->open = false;
}

/* ---- requests ---- */

static bool flag(const struct json_value *request, const char *key)
{
	const struct json_value *v = json_member(request, key);

	return v && v->type == JSON_BOOL && v->boolean;
}

static const char *text(const struct json_value *request, const char *key)
{
	const struct json_value *v = json_member(request, key);

	return v && v->type == JSON_STRING ? v->text : NULL;
}

static int not_detached(struct fault *f)
{
	fault_set(f, 0, "it has a terminal of its own, which it was started from");
	return fault_fix(f, "A box that is started with `carrel run -d` can be attached to.");
}

static int ask_status(struct control *c, const struct json_value *request, struct json *j,
	struct fault *f)
{
	(void)request, (void)f;
	json_bool(j, "ok", true);
	json_open(j, "status", '{');
	json_number(j, "version", CONTROL_VERSION);
	if (c->ops->status)
		c->ops->status(c->ctx, j);
	json_close(j, '}');
	return 0;
}

static int ask_decide(struct control *c, const struct json_value *request, struct json *j,
	struct fault *f)
{
	const char *entry = text(request, "entry");
	int rc;

	if (!entry)
		return fault_set(f, 0, "the request has no entry");
	if (!c->ops->decide)
		return fault_set(f, 0,
			"this box has no network for which that could be decided");
	rc = c->ops->decide(c->ctx, entry, flag(request, "deny"), f);
	if (rc == 0)
		json_bool(j, "ok", true);
	return rc;
}

static int ask_port(struct control *c, const struct json_value *request, struct json *j,
	struct fault *f)
{
	const char *spec = text(request, "spec");
	int rc;

	if (!spec)
		return fault_set(f, 0, "the request has no port");
	if (!c->ops->port)
		return fault_set(f, 0, "this box has no network of its own with ports");
	rc = c->ops->port(c->ctx, spec, flag(request, "remove"), f);
	if (rc == 0)
		json_bool(j, "ok", true);
	return rc;
}

static unsigned int number_of(const struct json_value *request, const char *key,
	unsigned int otherwise)
{
	const struct json_value *v = json_member(request, key);

	return v && v->type == JSON_NUMBER ? (unsigned int)strtoul(v->text, NULL, 10)
					   : otherwise;
}

static int ask_stop(struct control *c, const struct json_value *request, struct json *j,
	struct fault *f)
{
	int rc;

	if (!c->ops->stop)
		return fault_set(f, 0, "this box cannot be stopped so");
	rc = c->ops->stop(c->ctx, number_of(request, "seconds", 10), flag(request, "restart"),
		f);
	if (rc == 0)
		json_bool(j, "ok", true);
	return rc;
}

static int ask_type(struct control *c, const struct json_value *request, struct json *j,
	struct fault *f)
{
	const char *typed = text(request, "text");
	int rc;

	if (!typed)
		return fault_set(f, 0, "the request has no text");
	if (!c->ops->type)
		return not_detached(f);
	rc = c->ops->type(c->ctx, typed, f);
	if (rc == 0)
		json_bool(j, "ok", true);
	return rc;
}

/* The command to run; NULL: the request has none. */
static const char *const *words(const struct json_value *request, const char *key)
{
	const struct json_value *v = json_member(request, key);
	VEC(const char *) all = { 0 };

	if (!v || v->type != JSON_LIST)
		return NULL;
	json_each(one, v)
		if (one->type == JSON_STRING)
			vec_push(&all, one->text);
	if (!all.n)
		return NULL;
	vec_push(&all, NULL);
	return all.v;
}

/* Put the received streams in their places; the others stay empty. */
static bool take_streams(const struct control *c, unsigned int bits, struct box_io *io)
{
	int *const ends[3] = { &io->in, &io->out, &io->err };
	size_t n = 0;

	for (int i = 0; i < 3; i++) {
		if (!(bits & 1U << i))
			continue;
		if (n == c->n_given)
			return false;
		*ends[i] = c->given[n++];
	}
	return true;
}

static int ask_exec(struct control *c, const struct json_value *request, struct json *j,
	struct fault *f)
{
	struct box_io io = { .in = -1,
		.out = -1,
		.err = -1,
		.terminal = flag(request, "terminal"),
		.rows = (unsigned short)number_of(request, "rows", 24),
		.cols = (unsigned short)number_of(request, "cols", 80) };
	const char *const *argv = words(request, "argv");
	auto_close int copy = -1;
	int rc;

	if (!argv || !take_streams(c, number_of(request, "streams", 0), &io))
		return fault_set(f, 0, "the request has no command, or lacks its streams");
	if (!c->ops->exec)
		return fault_set(f, 0, "nothing can be added to this box");
	copy = fcntl(c->asking, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return fault_set(f, errno, "keep the connection");
	rc = c->ops->exec(c->ctx, &copy, argv, &io, text(request, "term"), f);
	if (rc < 0)
		return rc;
	c->kept = true;
	json_bool(j, "ok", true);
	return 0;
}

/* Copy the connection: ours is closed when the reply is sent. */
static int ask_attach(struct control *c, const struct json_value *request, struct json *j,
	struct fault *f)
{
	const struct streams_client client = {
		.rows = (unsigned short)number_of(request, "rows", 24),
		.cols = (unsigned short)number_of(request, "cols", 80),
		.read_only = flag(request, "readonly"),
	};
	auto_close int copy = -1;
	int rc;

	if (!c->ops->attach)
		return not_detached(f);
	copy = fcntl(c->asking, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return fault_set(f, errno, "keep the connection");
	rc = c->ops->attach(c->ctx, &copy, &client, f);
	if (rc < 0)
		return rc;
	c->kept = true;
	json_bool(j, "ok", true);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct control *c, const struct json_value *request, struct json *j,
		struct fault *f);
} asks[] = {
	{ "status", ask_status },
	{ "decide", ask_decide },
	{ "port", ask_port },
	{ "stop", ask_stop },
	{ "type", ask_type },
	{ "attach", ask_attach },
	{ "exec", ask_exec },
};

static int obey(struct control *c, const char *bytes, size_t n, struct json *j, struct fault *f)
{
	const struct json_value *request = NULL;
	json_errors errors = { 0 };
	const char *ask;

	if (json_read(bytes, n, NULL, &request, &errors) < 0)
		return fault_set(f, 0, "the request cannot be read: %s", errors.v[0].text);
	ask = text(request, "ask");
	for (size_t i = 0; ask && i < ARRAY_SIZE(asks); i++)
		if (!strcmp(asks[i].name, ask))
			return asks[i].run(c, request, j, f);
	return fault_set(f, 0, "this box does not know what is asked");
}

static void answer(struct control *c, const char *bytes, size_t n, struct str *out)
{
	struct json j = { .out = out };
	struct fault f = { 0 };

	json_open(&j, NULL, '{');
	if (obey(c, bytes, n, &j, &f) < 0) {
		/* A failed operation has written nothing. */
		json_bool(&j, "ok", false);
		json_string(&j, "error", fault_line(&f));
		json_string(&j, "fix", f.fix);
	}
	json_close(&j, '}');
}

static void close_given(struct control *c)
{
	for (size_t i = 0; i < c->n_given; i++)
		fd_close(&c->given[i]);
	c->n_given = 0;
}

/* Serve one message; false: it was the last. */
static bool converse(struct control *c, int fd)
{
	char bytes[CONTROL_REQUEST];
	ssize_t n = sock_receive(fd, bytes, sizeof(bytes), c->given, &c->n_given,
		MSG_DONTWAIT | MSG_TRUNC);
	struct str out = { 0 };
	void *mark;
	bool sent;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0 || (size_t)n > sizeof(bytes)) {
		close_given(c);
		return false;
	}
	mark = mem_mark();
	c->asking = fd;
	c->kept = false;
	answer(c, bytes, (size_t)n, &out);
	sent = out.len <= CONTROL_REPLY &&
		send(fd, out.p, out.len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)out.len;
	mem_reset(mark);
	close_given(c);
	return sent && !c->kept;
}

/* ---- callers ---- */

/* In the kernel's form: "user:[4026531837]". */
static bool is_in_our_namespace(pid_t pid)
{
	char path[64], ours[64], theirs[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	n = readlink("/proc/self/ns/user", ours, sizeof(ours));
	m = readlink(path, theirs, sizeof(theirs));
	return n > 0 && n == m && (size_t)n < sizeof(ours) && !memcmp(ours, theirs, (size_t)n);
}

static bool is_ours(int fd)
{
	socklen_t size = sizeof(struct ucred);
	struct ucred peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
		peer.uid == geteuid() && is_in_our_namespace(peer.pid);
}

/* The rest move up, so that the oldest is always the first. */
static void drop_caller(struct control *c, int i)
{
	fd_close(&c->client[i]);
	memmove(&c->client[i], &c->client[i + 1],
		(size_t)(CONTROL_CLIENTS - 1 - i) * sizeof(c->client[0]));
	c->client[CONTROL_CLIENTS - 1] = -1;
}

static void receive(struct control *c)
{
	auto_close int fd = accept4(c->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0 || !is_ours(fd))
		return;
	if (c->client[CONTROL_CLIENTS - 1] >= 0)
		drop_caller(c, 0);
	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		if (c->client[i] < 0) {
			c->client[i] = take_fd(&fd);
			return;
		}
	}
}

void control_poll(const struct control *c, struct pollfd *pfd)
{
	pfd[0] = (struct pollfd){ .fd = c->open ? c->listener : -1, .events = POLLIN };
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		pfd[1 + i] =
			(struct pollfd){ .fd = c->open ? c->client[i] : -1, .events = POLLIN };
}

void control_serve(struct control *c, const struct pollfd *pfd)
{
	if (!c->open)
		return;
	/* From the last, because dropping one moves those after it. */
	for (int i = CONTROL_CLIENTS - 1; i >= 0; i--)
		if (pfd[1 + i].fd >= 0 && pfd[1 + i].revents && !converse(c, c->client[i]))
			drop_caller(c, i);
	if (pfd[0].fd >= 0 && pfd[0].revents)
		receive(c);
}

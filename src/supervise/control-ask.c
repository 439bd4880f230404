/*
 * supervise/control-ask.c - the client's side of a box's control socket
 *
 * A client sends one request and waits a limited time for the reply. A killed box leaves its
 * socket's file behind, so only the lock of the name shows whether a box runs.
 */
#include "supervise/control.h"
#include "supervise/streams.h"
#include "box/engine.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

const char *control_ask_status(void)
{
	return "{\"ask\":\"status\"}";
}

static const char *request(const char *ask, const char *key, const char *value,
	const char *flag, bool set)
{
	struct str out = { 0 };
	struct json j = { .out = &out };

	json_open(&j, NULL, '{');
	json_string(&j, "ask", ask);
	json_string(&j, key, value);
	json_bool(&j, flag, set);
	json_close(&j, '}');
	return out.p;
}

const char *control_ask_decide(const char *entry, bool deny)
{
	return request("decide", "entry", entry, "deny", deny);
}

const char *control_ask_port(const char *spec, bool remove)
{
	return request("port", "spec", spec, "remove", remove);
}

const char *control_ask_stop(unsigned int seconds, bool restart)
{
	return mem_printf("{\"ask\":\"stop\",\"seconds\":%u,\"restart\":%s}", seconds,
		restart ? "true" : "false");
}

const char *control_ask_type(const char *text)
{
	struct str out = { 0 };
	struct json j = { .out = &out };

	json_open(&j, NULL, '{');
	json_string(&j, "ask", "type");
	json_string(&j, "text", text);
	json_close(&j, '}');
	return out.p;
}

const char *control_ask_exec(const char *const *argv, const struct box_io *io, const char *term)
{
	const int streams =
		(io->in >= 0 ? 1 : 0) | (io->out >= 0 ? 2 : 0) | (io->err >= 0 ? 4 : 0);
	struct str out = { 0 };
	struct json j = { .out = &out };

	json_open(&j, NULL, '{');
	json_string(&j, "ask", "exec");
	json_open(&j, "argv", '[');
	for (; *argv; argv++)
		json_string(&j, NULL, *argv);
	json_close(&j, ']');
	json_bool(&j, "terminal", io->terminal);
	json_number(&j, "streams", streams);
	json_number(&j, "rows", io->rows);
	json_number(&j, "cols", io->cols);
	json_string(&j, "term", io->terminal ? term : NULL);
	json_close(&j, '}');
	return out.p;
}

const char *control_ask_attach(const struct streams_client *c)
{
	return mem_printf("{\"ask\":\"attach\",\"rows\":%u,\"cols\":%u,\"readonly\":%s}",
		c->rows, c->cols, c->read_only ? "true" : "false");
}

/* ---- */

static int nobody(const char *name, struct fault *f)
{
	const char *problem = xdg_runtime_problem();

	if (registry_is_held(name)) {
		fault_set(f, 0, "the box '%s' cannot be asked: it has no control socket", name);
		return fault_fix(f,
			"It has one when it has started, and XDG_RUNTIME_DIR is set there and "
			"here to a directory of yours.");
	}
	if (!problem && boxes_find(name, &(struct fault){ 0 }) > 0) {
		fault_set(f, 0, "the box '%s' does not run", name);
		return fault_fix(f, "It left a record: `carrel ps -a`.");
	}
	fault_set(f, 0, "no box named '%s' can be found", name);
	if (problem)
		return fault_fix(f,
			"%s: set it to a directory of yours, here and where boxes are started.",
			problem);
	return fault_fix(f,
		"`carrel ps` lists those that can: boxes of yours that were started with the "
		"same XDG_RUNTIME_DIR.");
}

/* Another user may have put a socket there, if the directory allowed it. */
static bool is_ours(int fd)
{
	socklen_t size = sizeof(struct ucred);
	struct ucred peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
		peer.uid == geteuid();
}

static int connect_to(const char *name, int timeout_ms, struct fault *f)
{
	const struct timeval wait = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), dir = -1;
	struct fault ignored = { 0 };

	dir = registry_directory(&ignored);
	if (dir < 0)
		return nobody(name, f);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s.sock", dir, name);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0)
		return fault_set(f, errno, "make a socket");
	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return errno == ENOENT || errno == ECONNREFUSED
			? nobody(name, f)
			: fault_set(f, errno, "ask the box '%s'", name);
	if (!is_ours(fd))
		return fault_set(f, 0, "the control socket of '%s' is another user's", name);
	return take_fd(&fd);
}

/* The box's own message, if it refuses. */
static int check_reply(const char *name, const struct json_value *reply, struct fault *f)
{
	const struct json_value *ok = json_member(reply, "ok"),
				*error = json_member(reply, "error"),
				*fix = json_member(reply, "fix");

	if (ok && ok->type == JSON_BOOL && ok->boolean)
		return 0;
	if (!error || error->type != JSON_STRING)
		return fault_set(f, 0, "the box '%s' gave an answer that is none", name);
	fault_set(f, 0, "%s", str_visible(error->text));
	if (fix && fix->type == JSON_STRING && fix->text[0])
		fault_fix(f, "%s", str_visible(fix->text));
	return -EINVAL;
}

/* fds are sent along. */
static int exchange(const char *name, const char *ask, int timeout_ms, const int *fds,
	size_t n_fds, int *ret_fd, const struct json_value **ret, struct fault *f)
{
	const struct json_value *reply;
	json_errors errors = { 0 };
	auto_close int fd = -1;
	char *bytes;
	ssize_t n;
	int rc;

	if (!boxes_is_name(name))
		return fault_set(f, 0, "a box cannot be named '%s'", str_visible(name));
	if (strlen(ask) > CONTROL_REQUEST)
		return fault_set(f, 0, "that is too long to ask a box");
	fd = connect_to(name, timeout_ms, f);
	if (fd < 0)
		return fd;
	bytes = mem_alloc(CONTROL_REPLY);
	if (sock_send(fd, ask, strlen(ask), fds, n_fds, MSG_NOSIGNAL) < 0)
		n = -1;
	else
		n = recv(fd, bytes, CONTROL_REPLY, 0);
	if (n <= 0)
		return fault_set(f,
			n == 0                    ? ECONNRESET
				: errno == EAGAIN ? ETIMEDOUT
						  : errno,
			"ask the box '%s'", name);
	/* A path in it may have any bytes. */
	if (json_read_ours(bytes, (size_t)n, &reply, &errors) < 0)
		return fault_set(f, 0, "the box '%s' gave an answer that is none", name);
	rc = check_reply(name, reply, f);
	if (rc < 0)
		return rc;
	*ret = reply;
	*ret_fd = take_fd(&fd);
	return 0;
}

int control_ask(const char *name, const char *ask, int timeout_ms,
	const struct json_value **ret, struct fault *f)
{
	auto_close int fd = -1;

	return exchange(name, ask, timeout_ms, NULL, 0, &fd, ret, f);
}

int control_keep(const char *name, const char *ask, int timeout_ms, const int *fds,
	size_t n_fds, int *ret_fd, struct fault *f)
{
	const struct timeval forever = { 0 };
	const struct json_value *unused;
	int rc = exchange(name, ask, timeout_ms, fds, n_fds, ret_fd, &unused, f);

	if (rc == 0) {
		setsockopt(*ret_fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
		setsockopt(*ret_fd, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof(forever));
	}
	return rc;
}

/*
 * box/scope.c - have the user's systemd put a box into a scope
 *
 * Theory of operation. systemd alone may make groups in the part of the tree that it manages.
 * Its manager listens on a private socket and speaks D-Bus there without a bus. carrel needs
 * one method call, so this file writes the few bytes itself instead of using a library:
 * authentication, StartTransientUnit, one answer.
 *
 * The answer arrives when the job is queued. The scope exists as soon as /proc shows init in a
 * group of that name. systemd removes it with its last process.
 *
 * The manager belongs to the user and is trusted. Even so, the length of its messages and the
 * time to wait for them are bounded. A box that cannot have its limits does not start.
 */
#include "box/cgroup.h"
#include "plan/plan.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	ANSWER_MS = 5000,
	ANSWER_SIZE = 64 * 1024,
	STEP_MS = 2, /* between two checks of where init is */
	/* Numbers of the D-Bus protocol. */
	METHOD_CALL = 1,
	METHOD_RETURN = 2,
	ERROR = 3,
	FIELD_PATH = 1,
	FIELD_INTERFACE = 2,
	FIELD_MEMBER = 3,
	FIELD_DESTINATION = 6,
	FIELD_SIGNATURE = 8,
	HEAD = 16, /* bytes before the header's fields */
};

/* --- writing: little endian, each value at a multiple of its size ----------------- */

static void pad(struct str *m, size_t to)
{
	while (m->len % to)
		str_addn(m, "", 1);
}

static void put_32(struct str *m, uint32_t v)
{
	const unsigned char bytes[] = { (unsigned char)v, (unsigned char)(v >> 8),
		(unsigned char)(v >> 16), (unsigned char)(v >> 24) };

	pad(m, 4);
	str_addn(m, (const char *)bytes, sizeof(bytes));
}

static void put_64(struct str *m, uint64_t v)
{
	pad(m, 8);
	put_32(m, (uint32_t)v);
	put_32(m, (uint32_t)(v >> 32));
}

static void put_string(struct str *m, const char *s)
{
	put_32(m, (uint32_t)strlen(s));
	str_addn(m, s, strlen(s) + 1);
}

static void put_signature(struct str *m, const char *s)
{
	str_addc(m, (char)strlen(s));
	str_addn(m, s, strlen(s) + 1);
}

/* Write at `at` the length of everything after `from`. */
static void mend_length(struct str *m, size_t at, size_t from)
{
	struct str length = { 0 };

	put_32(&length, (uint32_t)(m->len - from));
	memcpy(m->p + at, length.p, length.len);
}

/* Begin an array of structs. Returns the offset of its length. */
static size_t open_array(struct str *m)
{
	put_32(m, 0);
	pad(m, 8);
	return m->len;
}

static void property(struct str *m, const char *name, const char *type)
{
	pad(m, 8);
	put_string(m, name);
	put_signature(m, type);
}

static void property_text(struct str *m, const char *name, const char *value)
{
	property(m, name, "s");
	put_string(m, value);
}

static void property_64(struct str *m, const char *name, uint64_t value)
{
	if (!value)
		return;
	property(m, name, "t");
	put_64(m, value);
}

static void write_properties(struct str *m, const struct plan *p, pid_t init, bool go_on)
{
	const struct limits *l = &p->limits;
	const size_t at = m->len + (4 - m->len % 4) % 4, from = open_array(m);

	property_text(m, "Description", mem_printf("carrel box %s", p->name));
	property_text(m, "CollectMode", "inactive-or-failed");
	property(m, "PIDs", "au");
	put_32(m, sizeof(uint32_t));
	put_32(m, (uint32_t)init);
	property_64(m, "MemoryMax", l->memory);
	property_64(m, "MemorySwapMax", l->swap);
	property_64(m, "CPUQuotaPerSecUSec", (uint64_t)(l->cpus * 1000000));
	property_64(m, "TasksMax", p->frame.cgroup.holds & CGROUP_PIDS ? l->pids : 0);
	property_64(m, "IOWeight", l->io);
	/* systemd 253 and later would end the whole box with the first process. */
	if (go_on)
		property_text(m, "OOMPolicy", "continue");
	mend_length(m, at, from);
}

static void header_field(struct str *m, char field, const char *type, const char *value)
{
	pad(m, 8);
	str_addc(m, field);
	put_signature(m, type);
	if (*type == 'g')
		put_signature(m, value);
	else
		put_string(m, value);
}

static void write_call(struct str *m, const char *unit, const struct plan *p, pid_t init,
	bool go_on)
{
	struct str body = { 0 };
	size_t from;

	put_string(&body, unit);
	put_string(&body, "fail");
	write_properties(&body, p, init, go_on);
	(void)open_array(&body); /* no further units */
	str_addc(m, 'l');
	str_addc(m, METHOD_CALL);
	str_addn(m, "\0\1", 2); /* no flags, version 1 */
	put_32(m, (uint32_t)body.len);
	put_32(m, 1); /* serial */
	put_32(m, 0); /* length of the fields */
	from = m->len;
	header_field(m, FIELD_PATH, "o", "/org/freedesktop/systemd1");
	header_field(m, FIELD_INTERFACE, "s", "org.freedesktop.systemd1.Manager");
	header_field(m, FIELD_MEMBER, "s", "StartTransientUnit");
	header_field(m, FIELD_DESTINATION, "s", "org.freedesktop.systemd1");
	header_field(m, FIELD_SIGNATURE, "g", "ssa(sv)a(sa(sv))");
	mend_length(m, from - 4, from);
	pad(m, 8);
	str_addn(m, body.p, body.len);
}

/* --- reading --------------------------------------------------------------------- */

/* Read exactly n bytes before the deadline. */
static int read_all(int s, char *to, size_t n, long long until)
{
	while (n > 0) {
		struct pollfd p = { .fd = s, .events = POLLIN };
		long long left = until - clock_ms();
		ssize_t got;

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			return -ETIMEDOUT;
		got = recv(s, to, n, 0);
		if (got == 0)
			return -EPIPE;
		if (got < 0 && errno != EINTR)
			return -errno;
		to += got < 0 ? 0 : got;
		n -= got < 0 ? 0 : (size_t)got;
	}
	return 0;
}

/* "OK 0123...\r\n" */
static int read_welcome(int s, long long until)
{
	char line[256];
	int rc = 0;

	for (size_t n = 0; rc == 0 && n < sizeof(line); n++) {
		rc = read_all(s, line + n, 1, until);
		if (rc == 0 && line[n] == '\n')
			return str_starts(line, "OK ") ? 0 : -EACCES;
	}
	return rc < 0 ? rc : -EPROTO;
}

static uint32_t get_32(const char *at)
{
	const unsigned char *b = (const unsigned char *)at;

	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Read one message. If it is an error, *ret_text is the text at the start of its body. */
static int read_message(int s, long long until, int *ret_type, const char **ret_text)
{
	char head[HEAD], *rest;
	uint32_t body, fields;
	int rc = read_all(s, head, sizeof(head), until);

	if (rc < 0)
		return rc;
	body = get_32(head + 4);
	fields = get_32(head + 12);
	if (head[0] != 'l' || body > ANSWER_SIZE || fields > ANSWER_SIZE)
		return -EPROTO;
	fields = (fields + 7) / 8 * 8;
	rest = mem_alloc((size_t)fields + body + 1);
	rc = read_all(s, rest, (size_t)fields + body, until);
	if (rc < 0)
		return rc;
	*ret_type = head[1];
	*ret_text = head[1] == ERROR && body > 4 && get_32(rest + fields) < body - 4
		? rest + fields + 4
		: "";
	return 0;
}

/* --- the call -------------------------------------------------------------------- */

static int dial_manager(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	auto_close int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (s < 0)
		return -errno;
	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, strlen(path) + 1);
	if (connect(s, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	return take_fd(&s);
}

/* The manager asks for no other proof than the user id as text, in hexadecimal digits. */
static void write_greeting(struct str *m)
{
	const char *id = mem_printf("%u", geteuid());

	str_addn(m, "", 1);
	str_add(m, "AUTH EXTERNAL ");
	for (; *id; id++)
		str_addf(m, "%02x", (unsigned int)(unsigned char)*id);
	str_add(m, "\r\nBEGIN\r\n");
}

/* 0: the job is queued. Otherwise *ret_text is systemd's own error message. */
static int call(const char *socket, const char *unit, const struct plan *p, pid_t init,
	bool go_on, const char **ret_text)
{
	const long long until = clock_ms() + ANSWER_MS;
	auto_close int s = dial_manager(socket);
	struct str greeting = { 0 }, message = { 0 };
	int rc = s < 0 ? s : 0, type = 0;

	write_greeting(&greeting);
	write_call(&message, unit, p, init, go_on);
	if (rc == 0)
		rc = fd_write_all(s, greeting.p, greeting.len);
	if (rc == 0)
		rc = fd_write_all(s, message.p, message.len);
	if (rc == 0)
		rc = read_welcome(s, until);
	while (rc == 0 && type != METHOD_RETURN && type != ERROR)
		rc = read_message(s, until, &type, ret_text);
	return rc == 0 && type == ERROR ? -EREMOTEIO : rc;
}

/* Wait until init is in the scope; the path of its group, or NULL. */
static const char *await_scope(const char *unit, pid_t init)
{
	const long long until = clock_ms() + ANSWER_MS;
	const char *file = mem_printf("/proc/%d/cgroup", (int)init);
	char text[4096];

	for (;;) {
		auto_close int fd = openat(AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		const char *at;
		size_t len;

		if (n < 0)
			return NULL;
		text[n] = '\0';
		at = strstr(text, "0::/");
		len = at ? strcspn(at, "\n") : 0;
		if (len > strlen(unit) && !strncmp(at + len - strlen(unit), unit, strlen(unit)))
			return mem_printf("/sys/fs/cgroup%.*s", (int)len - 3, at + 3);
		if (clock_ms() >= until)
			return NULL;
		poll(NULL, 0, STEP_MS);
	}
}

int scope_start(const char *socket, const struct plan *p, pid_t init, const char **ret_path,
	struct fault *f)
{
	/* The pid makes the name unique: a box of this name may just have ended. */
	const char *unit = mem_printf("carrel-%s-%d.scope", p->name, (int)init), *path = NULL;
	const char *text = "";
	int rc = call(socket, unit, p, init, true, &text);

	if (rc == -EREMOTEIO) /* before systemd 253 a scope has no OOMPolicy */
		rc = call(socket, unit, p, init, false, &text);
	if (rc == 0)
		path = await_scope(unit, init);
	if (path) {
		*ret_path = path;
		return 0;
	}
	snprintf(f->step, sizeof(f->step), "cgroup");
	if (rc == -EREMOTEIO)
		fault_set(f, 0, "systemd refuses a scope for the box: %s", str_visible(text));
	else
		fault_set(f, rc < 0 ? -rc : ETIMEDOUT, "have systemd make a scope for the box");
	return fault_fix(f,
		"Without its manager the box starts with fewer limits: unset XDG_RUNTIME_DIR, "
		"or "
		"see `systemctl --user status`.");
}

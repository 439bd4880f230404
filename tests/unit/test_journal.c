/*
 * The record of a box's network: its lines, its limits, the summary, and which events are
 * taken for such at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "net/broker/broker-event.h"
#include "net/policy/policy.h"
#include "supervise/journal.h"
#include "state/boxes.h"
#include "state/registry.h"

static char *base;

static int set_up(void **state)
{
	char made[] = "/tmp/carrel-journal-XXXXXX";

	(void)state;
	if (!mkdtemp(made))
		return -1;
	base = mem_strdup(made);
	setenv("XDG_STATE_HOME", base, 1);
	setenv("XDG_RUNTIME_DIR", base, 1);
	alarm(60);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return system(mem_printf("rm -rf %s", base));
}

static const char *file_of(const char *box)
{
	return mem_printf("%s/carrel/boxes/%s/events.jsonl", base, box);
}

static const char *text_of(const char *box)
{
	const char *text = fd_read_file(AT_FDCWD, file_of(box), 80 << 20);

	assert_non_null(text);
	return text;
}

/* The n-th line, read as JSON. */
static const struct json_value *line(const char *text, int n)
{
	const struct json_value *v;
	json_errors errors = { 0 };

	for (; n; n--)
		text = strchr(text, '\n') + 1;
	assert_int_equal(json_read(text, strcspn(text, "\n"), NULL, &v, &errors), 0);
	return v;
}

static const char *get(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m ? m->type == JSON_BOOL ? m->boolean ? "true" : "false" : m->text : NULL;
}

static struct net_event event(enum net_event_kind kind, const char *name, uint16_t port)
{
	struct net_event e = { .kind = (uint8_t)kind,
		.allowed = true,
		.port = port,
		.id = 7,
		.time = 1700000000123456789ull };

	if (kind == NET_LOOKUP)
		e.type = 1;
	snprintf(e.name, sizeof(e.name), "%s", name);
	return e;
}

static struct net_event refused(const char *name, uint16_t port, enum policy_reason reason)
{
	struct net_event e = event(port ? NET_CONNECT : NET_LOOKUP, name, port);

	e.allowed = false;
	e.reason = (uint8_t)reason;
	return e;
}

static struct address address(const char *text)
{
	struct address a;

	assert_true(address_parse(text, strlen(text), &a));
	return a;
}

static void add(struct journal *j, struct net_event e)
{
	assert_true(net_event_is_sane(&e));
	journal_event(j, &e);
}

static void open_it(struct journal *j, const char *box)
{
	struct fault f = { 0 };

	if (journal_open(j, &(struct journal_box){ .name = box }, &f) < 0)
		fail_msg("%s", fault_line(&f));
}

static void close_it(struct journal *j, int code)
{
	struct fault f = { 0 };

	assert_int_equal(journal_close(j, code, &f), 0);
}

/* ---- lines ---- */

static void test_lines(void **state)
{
	struct net_event e = event(NET_CONNECT, "example.org", 443);
	const struct json_value *v;
	const char *text;
	struct journal j;
	struct stat st;

	(void)state;
	open_it(&j, "one");
	e.address = address("192.0.2.1");
	e.lasted = 12345678;
	add(&j, e);
	e.kind = NET_CLOSE;
	e.sent = 10;
	e.received = 20;
	add(&j, e);
	e = refused("evil.example", 0, POLICY_UNLISTED);
	e.type = 65;
	add(&j, e);
	e = event(NET_CONNECT, "down.example", 80);
	e.error = ECONNREFUSED;
	add(&j, e);
	add(&j, event(NET_LIMIT, "connections at once", 0));
	add(&j, event(NET_LOST, "", 0));
	e = event(NET_LOOKUP, "none.example", 0);
	e.error = ENOENT;
	add(&j, e);
	close_it(&j, 3);
	text = text_of("one");

	assert_int_equal(stat(file_of("one"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(path_parent(file_of("one")), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);

	v = line(text, 0);
	assert_string_equal(get(v, "event"), "start");
	assert_string_equal(get(v, "carrel"), "1");
	assert_string_equal(get(v, "box"), "one");
	assert_string_equal(get(v, "pid"), mem_printf("%d", getpid()));
	v = line(text, 1);
	assert_string_equal(get(v, "time"), "2023-11-14T22:13:20.123Z");
	assert_string_equal(get(v, "event"), "connect");
	assert_string_equal(get(v, "name"), "example.org");
	assert_string_equal(get(v, "address"), "192.0.2.1");
	assert_string_equal(get(v, "port"), "443");
	assert_string_equal(get(v, "verdict"), "allowed");
	assert_string_equal(get(v, "ms"), "12");
	assert_null(get(v, "error"));
	v = line(text, 2);
	assert_string_equal(get(v, "event"), "close");
	assert_string_equal(get(v, "sent"), "10");
	assert_string_equal(get(v, "received"), "20");
	v = line(text, 3);
	assert_string_equal(get(v, "event"), "lookup");
	assert_string_equal(get(v, "type"), "HTTPS");
	assert_string_equal(get(v, "verdict"), "refused");
	assert_string_equal(get(v, "reason"), "not in the list");
	v = line(text, 4);
	assert_string_equal(get(v, "verdict"), "failed");
	assert_string_equal(get(v, "error"), strerror(ECONNREFUSED));
	assert_string_equal(get(line(text, 5), "limit"), "connections at once");
	assert_string_equal(get(line(text, 6), "event"), "lost");
	assert_string_equal(get(line(text, 7), "error"), "no such name");
	assert_string_equal(get(line(text, 8), "event"), "end");
	assert_string_equal(get(line(text, 8), "code"), "3");
}

static void test_replaces_and_never_follows(void **state)
{
	const char *victim = path_join(base, "victim");
	struct fault f = { 0 };
	struct journal j;
	struct stat st;

	(void)state;
	open_it(&j, "one");
	close_it(&j, 0);
	open_it(&j, "one");
	close_it(&j, 1);
	assert_non_null(strstr(text_of("one"), "\"code\":1"));
	assert_null(strstr(text_of("one"), "\"code\":0"));

	assert_int_equal(close(open(victim, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_int_equal(unlink(file_of("one")), 0);
	assert_int_equal(symlink(victim, file_of("one")), 0);
	open_it(&j, "one");
	close_it(&j, 0);
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);

	/* A directory that is a link, or that others can write. */
	assert_int_equal(symlink(base, path_parent(file_of("two"))), 0);
	assert_true(journal_open(&j, &(struct journal_box){ .name = "two" }, &f) < 0);
	assert_non_null(strstr(f.text, "link"));
	assert_int_equal(chmod(path_parent(file_of("one")), 0777), 0);
	assert_true(journal_open(&j, &(struct journal_box){ .name = "one" }, &f) < 0);
	assert_non_null(strstr(f.text, "by others"));
	/* It failed, and all calls are allowed on it. */
	journal_event(&j, &(struct net_event){ .kind = NET_LOST });
	journal_tick(&j);
	assert_int_equal(journal_timeout(&j), -1);
	close_it(&j, 0);
	for (size_t i = 0; i < 4; i++) {
		static const char *const bad[] = { "../x", "", "a/b", ".x" };

		assert_true(journal_open(&j, &(struct journal_box){ .name = bad[i] }, &f) < 0);
	}
}

/* A file of the user's under the record's name: not one byte of it is changed. */
static void test_record_that_is_another_file_too(void **state)
{
	const char *victim = path_join(base, "victim");
	struct stat st;
	struct journal j;
	int fd;

	(void)state;
	open_it(&j, "one");
	close_it(&j, 0);
	for (int i = 0; i < 2; i++) {
		unlink(victim);
		fd = open(victim, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		assert_int_equal(write(fd, "precious", 8), 8);
		assert_int_equal(fchmod(fd, i ? 0666 : 0600), 0);
		assert_int_equal(close(fd), 0);
		assert_int_equal(unlink(file_of("one")), 0);
		assert_int_equal((i ? rename : link)(victim, file_of("one")), 0);
		open_it(&j, "one");
		close_it(&j, 0);
		assert_int_equal(stat(file_of("one"), &st), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0600);
		assert_int_equal(st.st_nlink, 1);
		assert_null(strstr(text_of("one"), "precious"));
		if (!i)
			assert_string_equal(fd_read_file(AT_FDCWD, victim, 100), "precious");
	}
}

static void test_flush(void **state)
{
	struct journal j;

	(void)state;
	open_it(&j, "one");
	assert_int_equal(journal_timeout(&j), -1);
	add(&j, event(NET_CONNECT, "a.example", 443));
	assert_in_range(journal_timeout(&j), 1, 201);
	journal_tick(&j);
	assert_null(strstr(text_of("one"), "a.example"));
	usleep(210000);
	assert_int_equal(journal_timeout(&j), 0);
	journal_tick(&j);
	assert_non_null(strstr(text_of("one"), "a.example"));
	assert_int_equal(journal_timeout(&j), -1);
	close_it(&j, 0);
}

/* The longest name, and more than the buffer holds. */
static void test_many_and_full(void **state)
{
	struct net_event e = event(NET_CONNECT, "", 65535);
	const char *text, *last;
	struct journal j;
	void *mark;

	(void)state;
	for (int i = 0; i < 253; i++)
		e.name[i] = i % 63 == 62 ? '.' : 'a';
	e.address = address("2001:db8:1111:2222:3333:4444:5555:6666");
	e.inbound = true;
	e.error = 71;
	e.sent = e.received = e.lasted = e.id = UINT64_MAX;
	open_it(&j, "one");
	j.limit = 100 * 1024;
	mark = mem_mark();
	for (int i = 0; i < 1000; i++)
		add(&j, e);
	assert_ptr_equal(mem_mark(), mark); /* nothing was allocated */
	close_it(&j, 0);
	text = text_of("one");
	assert_in_range(strlen(text), 90 * 1024, 100 * 1024);
	last = strstr(text, "\"event\":\"full\"");
	assert_non_null(last);
	assert_null(strstr(last + 1, "\"event\":\"full\""));
	assert_null(strstr(last, "\"event\":\"connect\""));
	assert_non_null(strstr(last, "\"event\":\"end\""));
	assert_int_equal(text[strlen(text) - 1], '\n');
}

/* What costs the box nothing leaves room for what does. */
static void test_full_of_lookups(void **state)
{
	struct journal j;
	const char *text, *full;

	(void)state;
	open_it(&j, "one");
	j.limit = 100 * 1024;
	for (int i = 0; i < 2000; i++)
		add(&j, refused("flood.example", 0, POLICY_UNLISTED));
	add(&j, event(NET_CONNECT, "real.example", 443));
	close_it(&j, 0);
	text = text_of("one");
	full = strstr(text, "\"event\":\"full\"");
	assert_non_null(full);
	assert_null(strstr(full + 1, "\"event\":\"full\""));
	assert_null(strstr(full, "flood.example"));
	assert_non_null(strstr(full, "real.example"));
}

/* A disk that is full ends the record at a whole line, and counting goes on. */
static void test_write_error(void **state)
{
	struct rlimit old, tiny;
	struct fault f = { 0 };
	struct str out = { 0 };
	struct journal j;
	const char *text;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	open_it(&j, "one");
	getrlimit(RLIMIT_FSIZE, &old);
	tiny = old;
	tiny.rlim_cur = 3000;
	setrlimit(RLIMIT_FSIZE, &tiny);
	for (int i = 0; i < 100; i++)
		add(&j, event(NET_CONNECT, mem_printf("h%d.example", i), 443));
	journal_flush(&j);
	setrlimit(RLIMIT_FSIZE, &old);
	add(&j, event(NET_CONNECT, "later.example", 443));
	journal_summary(&j, &out);
	assert_true(str_starts(out.p, "101 hosts reached"));
	assert_int_equal(journal_close(&j, 0, &f), -EFBIG);
	text = text_of("one");
	assert_in_range(strlen(text), 2000, 3000);
	assert_int_equal(text[strlen(text) - 1], '\n');
}

/* ---- summary ---- */

static const char *summary(struct journal *j)
{
	struct str out = { 0 };

	journal_summary(j, &out);
	close_it(j, 0);
	return out.len ? out.p : "";
}

static void test_summary(void **state)
{
	struct net_event e;
	struct journal j;

	(void)state;
	open_it(&j, "one");
	add(&j, event(NET_LOOKUP, "a.example", 0));
	assert_string_equal(summary(&j), "");

	open_it(&j, "one");
	add(&j, event(NET_CONNECT, "a.example", 443));
	add(&j, event(NET_CONNECT, "a.example", 80));
	add(&j, event(NET_CONNECT, "b.example", 443));
	e = event(NET_CLOSE, "b.example", 443);
	e.sent = 12 * 1024;
	e.received = 3565158;
	add(&j, e);
	add(&j, refused("telemetry.example.com", 0, POLICY_UNLISTED));
	add(&j, refused("telemetry.example.com", 0, POLICY_UNLISTED));
	assert_string_equal(summary(&j),
		"2 hosts reached (12K sent, 3.4M received), 1 refused: telemetry.example.com\n"
		"to allow it: carrel run --allow telemetry.example.com ...\n");

	open_it(&j, "one");
	add(&j, event(NET_CONNECT, "a.example", 443));
	for (int i = 0; i < 3; i++) {
		add(&j, event(NET_LIMIT, "traffic", 0));
		add(&j, event(NET_LIMIT, "connections", 0));
	}
	assert_string_equal(summary(&j),
		"1 host reached; limits reached: traffic, connections\n");

	/* What no entry for the name can open, and what one can. */
	open_it(&j, "one");
	add(&j, refused("db.example", 443, POLICY_PRIVATE));
	add(&j, refused("me.example", 443, POLICY_SELF));
	add(&j, refused("bad.example", 443, POLICY_DENIED));
	add(&j, refused("git.example", 22, POLICY_PORT));
	add(&j, refused("other.example", 0, POLICY_UNLISTED));
	add(&j, refused("other.example", 5432, POLICY_UNLISTED));
	add(&j, refused("github", 0, POLICY_UNLISTED));
	e = refused("", 22, POLICY_UNLISTED);
	e.address = address("2001:db8::1");
	add(&j, e);
	assert_string_equal(summary(&j),
		"0 hosts reached, 7 refused: db.example (not a public address), "
		"me.example (an address of this machine), bad.example (denied by an entry), "
		"git.example:22, other.example and 2 more\n"
		"to allow them: carrel run --allow git.example:22 --allow other.example:5432 "
		"--allow github. --allow [2001:db8::1]:22 ...\n");

	open_it(&j, "one");
	add(&j, refused("db.example", 443, POLICY_PRIVATE));
	e = event(NET_CONNECT, "down.example", 443);
	e.error = ETIMEDOUT;
	add(&j, e);
	e = event(NET_CONNECT, "", 3000);
	e.address = address("127.0.0.1");
	e.inbound = true;
	add(&j, e);
	add(&j, event(NET_LOST, "", 0));
	assert_string_equal(summary(&j),
		"0 hosts reached, 1 could not be reached: down.example (Connection timed out), "
		"1 refused: db.example "
		"(not a public address); the network ended before the box did\n");
}

/* A name that leads to an address that needs an entry of its own. */
static void test_summary_of_addresses(void **state)
{
	static const struct {
		const char *name, *address;
		uint16_t port;
		enum policy_reason reason;
		const char *said;
	} rows[] = {
		{ "db.example", "10.0.0.5", 5432, POLICY_PRIVATE,
			"db.example (10.0.0.5: not a public address)\n"
			"to allow it: carrel run --allow 10.0.0.5:5432 ...\n" },
		{ "", "192.168.1.1", 443, POLICY_PRIVATE,
			"192.168.1.1 (not a public address)\n"
			"to allow it: carrel run --allow 192.168.1.1 ...\n" },
		{ "db.example", "fd00::5", 443, POLICY_PRIVATE,
			"db.example (fd00::5: not a public address)\n"
			"to allow it: carrel run --allow fd00::5 ...\n" },
		{ "me.example", "8.8.8.8", 80, POLICY_SELF,
			"me.example (8.8.8.8: an address of this machine)\n"
			"to allow it: carrel run --allow 8.8.8.8 ...\n" },
		{ "near.example", "8.8.8.1", 22, POLICY_NEAR,
			"near.example (8.8.8.1: an address of this machine's network)\n"
			"to allow it: carrel run --allow 8.8.8.1:22 ...\n" },
		/* Never opened, and a cloud's metadata. */
		{ "lo.example", "127.0.0.1", 80, POLICY_PRIVATE,
			"lo.example (127.0.0.1: not a public address)\n" },
		{ "meta.example", "169.254.169.254", 80, POLICY_PRIVATE,
			"meta.example (169.254.169.254: not a public address)\n" },
		{ "azure.example", "168.63.129.16", 80, POLICY_PRIVATE,
			"azure.example (168.63.129.16: not a public address)\n" },
		/* What the address would say is not why. */
		{ "bad.example", "10.0.0.5", 80, POLICY_DENIED,
			"bad.example (denied by an entry)\n" },
	};
	struct net_event e;
	struct journal j;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		open_it(&j, "one");
		e = refused(rows[i].name, rows[i].port, rows[i].reason);
		e.address = address(rows[i].address);
		add(&j, e);
		assert_string_equal(summary(&j),
			mem_printf("0 hosts reached, 1 refused: %s", rows[i].said));
	}
}

/* What is no question for an address is in the record, and no host that was refused. */
static void test_summary_of_lookups(void **state)
{
	static const uint16_t types[] = { 12, 33, 65, 255 };
	struct net_event e;
	struct journal j;

	(void)state;
	open_it(&j, "one");
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		e = refused("_http._tcp.deb.example.org", 0, POLICY_UNLISTED);
		e.type = types[i];
		add(&j, e);
		e = event(NET_LOOKUP, "_http._tcp.none.example", 0);
		e.type = types[i];
		e.error = ENOENT;
		add(&j, e);
	}
	assert_string_equal(summary(&j), "");
	assert_string_equal(get(line(text_of("one"), 3), "type"), "SRV");

	open_it(&j, "one");
	e = refused("a.example", 0, POLICY_UNLISTED);
	e.type = 28;
	add(&j, e);
	e = event(NET_LOOKUP, "b.example", 0);
	e.error = ENOENT;
	add(&j, e);
	assert_string_equal(summary(&j),
		"0 hosts reached, 1 could not be reached: b.example (no such name), 1 refused: "
		"a.example\n"
		"to allow it: carrel run --allow a.example ...\n");
}

/* All that the broker may say, and the supervisor's own. */
static void test_summary_of_limits(void **state)
{
	static const char *const all[] = { "connections", "connections a second",
		"lookups a second", "traffic", "refused datagrams a second",
		"time for the broker to end" };
	struct journal j;

	(void)state;
	open_it(&j, "one");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		add(&j, event(NET_LIMIT, all[i], 0));
	assert_string_equal(summary(&j),
		"0 hosts reached; limits reached: connections, connections a second, lookups a "
		"second, traffic, refused datagrams a second, time for the broker to end\n");
}

/* One host, whatever the ports; and there is no entry to offer. */
static void test_datagrams(void **state)
{
	const struct json_value *v;
	struct net_event e;
	struct journal j;

	(void)state;
	open_it(&j, "one");
	for (uint16_t port = 1; port < 1000; port++) {
		e = refused("a.example", port, POLICY_DATAGRAM);
		e.kind = NET_DATAGRAM;
		e.address = address("198.18.1.0");
		add(&j, e);
	}
	e.name[0] = '\0';
	e.address = address("2001:db8::1");
	add(&j, e);
	add(&j, event(NET_CONNECT, "a.example", 443));
	assert_string_equal(summary(&j),
		"1 host reached, 2 refused: a.example (UDP is not passed on), 2001:db8::1 "
		"(UDP is not passed on)\n");
	v = line(text_of("one"), 1);
	assert_string_equal(get(v, "event"), "datagram");
	assert_string_equal(get(v, "proto"), "udp");
	assert_string_equal(get(v, "name"), "a.example");
	assert_string_equal(get(v, "address"), "198.18.1.0");
	assert_string_equal(get(v, "port"), "1");
	assert_string_equal(get(v, "verdict"), "refused");
	assert_string_equal(get(v, "reason"), "UDP is not passed on");
	assert_null(get(v, "id"));
}

static void test_summary_is_bounded(void **state)
{
	struct journal j;

	(void)state;
	open_it(&j, "one");
	for (int i = 0; i < 1000; i++)
		add(&j, event(NET_CONNECT, mem_printf("h%d.example", i), 443));
	for (int i = 0; i < 1000; i++)
		add(&j, refused(mem_printf("r%d.example", i), 0, POLICY_UNLISTED));
	assert_string_equal(summary(&j),
		"more than 256 hosts reached, more than 256 refused: r0.example, r1.example, "
		"r2.example, r3.example, r4.example and 251 more\n"
		"to allow them: carrel run --allow r0.example --allow r1.example "
		"--allow r2.example --allow r3.example --allow r4.example ...  (and 251 "
		"more)\n");
}

/* ---- sanity ---- */

static void test_sane(void **state)
{
	struct net_event good = event(NET_CONNECT, "a.example", 443), e;
	const unsigned char two = 2;

	(void)state;
	assert_true(net_event_is_sane(&good));
	for (int kind = 0; kind < 256; kind++) {
		e = good;
		e.kind = (uint8_t)kind;
		assert_int_equal(net_event_is_sane(&e),
			kind >= 1 && kind <= 7 && kind != NET_DATAGRAM);
		e.allowed = false;
		assert_int_equal(net_event_is_sane(&e), kind >= 1 && kind <= 7);
	}
	e = good;
	e.name[0] = '\0';
	assert_true(net_event_is_sane(&e));
	static const char *const bad[] = { "A.example", "a..b", "a.example.", "\x1b[31m", "a b",
		"127.1", "-a", "a\n" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e = event(NET_CONNECT, bad[i], 443);
		assert_false(net_event_is_sane(&e));
	}
	e = good;
	memset(e.name, 'a', sizeof(e.name));
	assert_false(net_event_is_sane(&e));
	e.kind = NET_LIMIT;
	assert_false(net_event_is_sane(&e));
	e = event(NET_LIMIT, "connections at once", 0);
	assert_true(net_event_is_sane(&e));
	e = event(NET_LIMIT, "\x1b]0;x", 0);
	assert_false(net_event_is_sane(&e));
	e = event(NET_LIMIT, "", 0);
	assert_false(net_event_is_sane(&e));
	e = good;
	e.reason = POLICY_DATAGRAM + 1;
	assert_false(net_event_is_sane(&e));
	e = good;
	memcpy(&e.allowed, &two, 1);
	assert_false(net_event_is_sane(&e));
	e = good;
	memcpy(&e.inbound, &two, 1);
	assert_false(net_event_is_sane(&e));
	e = good;
	e.error = -1;
	assert_false(net_event_is_sane(&e));
	e.error = 4096;
	assert_false(net_event_is_sane(&e));
	e = good;
	e.kind = NET_CLOSE;
	e.id = 0;
	assert_false(net_event_is_sane(&e));
	e = good;
	e.address.family = 5;
	assert_false(net_event_is_sane(&e));
	e.address.family = ADDRESS_V4;
	assert_true(net_event_is_sane(&e));
	e.address.byte[4] = 1;
	assert_false(net_event_is_sane(&e));
	e.address.family = ADDRESS_V6;
	assert_true(net_event_is_sane(&e));
}

/* ---- what is kept ---- */

static void make_old(const char *box)
{
	const struct utimbuf old = { .actime = 1, .modtime = time(NULL) - 31 * 86400 };

	assert_int_equal(utime(file_of(box), &old), 0);
	assert_int_equal(utime(path_parent(file_of(box)), &old), 0);
}

static void test_old_records(void **state)
{
	struct fault f = { 0 };
	box_records all = { 0 };
	struct journal j;
	struct claim held;

	(void)state;
	open_it(&j, "new");
	close_it(&j, 0);
	open_it(&j, "old");
	close_it(&j, 0);
	open_it(&j, "runs");
	close_it(&j, 0);
	make_old("old");
	make_old("runs");
	assert_int_equal(symlink(base, path_parent(file_of("zlink"))), 0);
	assert_int_equal(registry_claim("runs", CLAIM_STRICT, &held, &f), 0);
	assert_int_equal(boxes_list(&all, &f), 0);
	assert_int_equal(all.n, 4);
	assert_false(boxes_is_old(&all.v[0]));
	assert_true(boxes_is_old(&all.v[1]));
	assert_true(boxes_is_old(&all.v[2]));
	assert_non_null(all.v[3].problem);
	/* It was old when all were listed, and a box has written it since. */
	all.v[0].used = 0;
	assert_true(boxes_is_old(&all.v[0]));
	assert_int_equal(boxes_remove(&all.v[0], false, &f), -EBUSY);
	assert_int_equal(boxes_remove(&all.v[1], false, &f), 0);
	assert_int_equal(boxes_remove(&all.v[2], false, &f), -EBUSY);
	assert_int_equal(boxes_remove(&all.v[3], false, &f), -EBUSY);
	registry_release(&held);
	assert_int_equal(access(file_of("new"), F_OK), 0);
	assert_int_equal(access(path_parent(file_of("old")), F_OK), -1);
	assert_int_equal(access(file_of("runs"), F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
		TEST(test_lines),
		TEST(test_replaces_and_never_follows),
		TEST(test_record_that_is_another_file_too),
		TEST(test_flush),
		TEST(test_many_and_full),
		TEST(test_full_of_lookups),
		TEST(test_write_error),
		TEST(test_summary),
		TEST(test_summary_of_addresses),
		TEST(test_summary_of_lookups),
		TEST(test_summary_of_limits),
		TEST(test_datagrams),
		TEST(test_summary_is_bounded),
		TEST(test_sane),
		TEST(test_old_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

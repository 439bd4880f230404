/*
 * tests/unit/test_trust.c - what a manifest grants, and whether the user agreed to it
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/json-read.h"
#include "base/mem.h"
#include "base/str.h"
#include "manifest/trust.h"

static const char manifest[] = "/home/me/project/carrel.json";
static char top[64];
static const char *store, *file; /* the directory, and where manifest's record is */

static int set_up(void **state)
{
	snprintf(top, sizeof(top), "/tmp/carrel-trust-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	store = mem_printf("%s/carrel/trust", top);
	file = mem_printf("%s/%s", store, hash_hex(manifest, strlen(manifest)));
	setenv("XDG_STATE_HOME", top, 1);
	unsetenv("CARREL_TRUST");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int tear_down(void **state)
{
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int check(const char *json, struct trust_state *ret, struct fault *f)
{
	const struct json_value *tree = NULL;
	json_errors errors = { 0 };

	if (json_read(json, strlen(json), NULL, &tree, &errors) < 0)
		fail_msg("%s: %s", json, errors.v[0].text);
	return trust_check(manifest, json, strlen(json), tree, ret, f);
}

static struct trust_state checked(const char *json)
{
	struct trust_state t = { 0 };
	struct fault f = { 0 };

	if (check(json, &t, &f) < 0)
		fail_msg("%s", f.text);
	return t;
}

static void give(const char *json)
{
	struct trust_state t = checked(json);
	struct fault f = { 0 };

	if (trust_give(manifest, &t, &f) < 0)
		fail_msg("%s", f.text);
	assert_int_equal(checked(json).is, TRUST_GIVEN);
}

static bool take(void)
{
	struct fault f = { 0 };
	bool was;

	assert_int_equal(trust_take(manifest, &was, &f), 0);
	return was;
}

static const char *joined(const char *const *v, size_t n)
{
	struct str s = { 0 };

	str_add(&s, "");
	for (size_t i = 0; i < n; i++)
		str_addf(&s, "%s\n", v[i]);
	return s.p;
}

#define JOINED(vec) joined((vec).v, (vec).n)

static const char *shown(const struct trust_state *t)
{
	struct str s = { 0 };

	trust_show(t, &s);
	return s.p;
}

static void write_file(const char *path, const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}

static char *read_file(const char *path)
{
	static char buf[1 << 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	assert_true(fd >= 0 && n >= 0);
	close(fd);
	return mem_strndup(buf, (size_t)n);
}

static size_t files_in(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

/* ---- the lines ---- */

static void test_lines(void **state)
{
	struct trust_state t = checked(
		"{\"agents\":{\"reviewer\":{\"skills\":[\"review\",\"build\"],"
		"\"env\":{\"TOKEN\":\"?Token for the tracker\"},"
		"\"network\":{\"allow\":[\"@anthropic\"]}},"
		"\"x\":{\"tools\":[],\"limits\":{},\"permissions\":{\"skipPrompts\":true},"
		"\"cpus\":1.50,\"nothing\":null,\"off\":false,"
		"\"mounts\":[{\"target\":\"/data\",\"source\":\"~/data\",\"mode\":\"ro\"}]}}}");

	assert_string_equal(JOINED(t.grants),
		"agents.reviewer.env.TOKEN: ?Token for the tracker\n"
		"agents.reviewer.network.allow: @anthropic\n"
		"agents.reviewer.skills: review\n"
		"agents.reviewer.skills: build\n"
		"agents.x.cpus: 1.50\n"
		"agents.x.limits: (none)\n"
		"agents.x.mounts: mode=ro source=~/data target=/data\n"
		"agents.x.nothing: null\n"
		"agents.x.off: false\n"
		"agents.x.permissions.skipPrompts: true\n"
		"agents.x.tools: (none)\n");
	assert_int_equal(t.is, TRUST_NEW);
	assert_string_equal(JOINED(t.added), JOINED(t.grants));
	assert_int_equal(t.gone.n, 0);
	assert_string_equal(JOINED(checked("{}").grants), "(none)\n");
	assert_string_equal(JOINED(checked("\"a:\"").grants), "a:\n");
}

/* What differs in meaning must not look alike. */
static void test_quoting(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"a b\":{\"c.d\":\"x\"}}", "\"a b\".\"c.d\": x\n" },
		{ "{\"a\\\"b\":1}", "\"a\\\"b\": 1\n" },
		{ "{\"\":\"x\"}", "\"\": x\n" },
		{ "{\"a: b\":\"x\"}", "\"a: b\": x\n" },
		{ "{\"a\":\"\"}", "a: \"\"\n" },
		{ "{\"a\":\"(none)\"}", "a: \"(none)\"\n" },
		{ "{\"a\":\"null\"}", "a: \"null\"\n" },
		{ "{\"a\":\" b \"}", "a: \" b \"\n" },
		{ "{\"a\":\"b=c d\"}", "a: b=c d\n" },
		{ "{\"a\":[\"b=c d\"]}", "a: \"b=c d\"\n" },
		{ "{\"a\":[{\"b\":\"c d=e\"}]}", "a: b=\"c d=e\"\n" },
		{ "{\"a\":[{\"b\":\"c\",\"d\":\"e\"}]}", "a: b=c d=e\n" },
		{ "{\"a\":[\"[b, c]\"]}", "a: \"[b, c]\"\n" },
		{ "{\"a\":[[\"b\",\"c\"],[]]}", "a: [b, c]\na: []\n" },
		{ "{\"a\":[[\"b, c\"]]}", "a: [\"b, c\"]\n" },
		{ "{\"a\":[{},{\"b\":{\"z\":1,\"c\":[true,null]}}]}",
			"a: {}\na: b={c=[true, null] z=1}\n" },
		{ "{\"a\":\"x \xe2\x80\xa6 (812 characters, sha256 00)\"}",
			"a: \"x \xe2\x80\xa6 (812 characters, sha256 00)\"\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(JOINED(checked(rows[i][0]).grants), rows[i][1]);
}

/* Nothing of a hostile manifest drives the terminal or makes a line of its own. */
static void test_hostile(void **state)
{
	struct trust_state t = checked(
		"{\"k\\u001b[2J\":\"v\\u001b[31m\\r\\u0007\\u009b\",\"m\":[{\"a\\n\":"
		"\"\\u202e\"}],"
		"\"env\":{\"X\":\"!x\\n    harmless: true\"},\"n\":\"a\\u007f\\\\x1b\"}");
	const char *text;

	assert_string_equal(JOINED(t.grants),
		"env.X: !x\\n    harmless: true\n"
		"\"k\\x1b[2J\": v\\x1b[31m\\x0d\\x07\\xc2\\x9b\n"
		"m: a \xe2\x80\xa6 (2 characters, sha256 "
		"87428fc522803d31065e7bce3cf03fe4)=\\xe2\\x80\\xae\n"
		"n: a\\x7f\\\\x1b\n");
	text = shown(&t);
	for (; *text; text++)
		assert_true(*text == '\n' || (unsigned char)*text >= 0x20);
}

static const char *with_prompt(const char *key, const char *text)
{
	return mem_printf("{\"agents\":{\"x\":{\"%s\":\"%s\"}}}", key, text);
}

static void test_long(void **state)
{
	char text[813] = { 0 };
	const char *line, *more;

	memset(text, 'a', 100);
	line = checked(with_prompt("prompt", text)).grants.v[0];
	assert_string_equal(line, mem_printf("agents.x.prompt: %s", text));
	memset(text, 'a', 812);
	line = checked(with_prompt("prompt", text)).grants.v[0];
	more = mem_printf("agents.x.prompt: %.60s \xe2\x80\xa6 (812 characters, sha256 %.32s)",
		text, hash_hex(text, 812));
	assert_string_equal(line, more);
	/* Characters, not bytes. */
	line = checked(with_prompt("prompt", "\xc3\xa9\\n\xe2\x82\xac")).grants.v[0];
	assert_true(str_starts(line, "agents.x.prompt: \xc3\xa9 \xe2\x80\xa6 (3 characters, "));
	/* A change deep inside. */
	give(with_prompt("prompt", text));
	text[700] = 'b';
	assert_int_equal(checked(with_prompt("prompt", text)).is, TRUST_CHANGED);
	assert_string_equal(JOINED(checked(with_prompt("prompt", text)).gone),
		mem_printf("%s\n", more));
	assert_int_equal(checked(with_prompt("prompt", text)).added.n, 1);
	/* What touches the machine or the network is seen to its end. */
	memset(text, '/', 10);
	line = checked(with_prompt("role", text)).grants.v[0];
	assert_string_equal(line, mem_printf("agents.x.role: %s", text));
	line = checked(with_prompt("network", text)).grants.v[0];
	assert_string_equal(line, mem_printf("agents.x.network: %s", text));
	text[0] = '!';
	line = checked(mem_printf("{\"env\":{\"A\":\"%s\"}}", text)).grants.v[0];
	assert_string_equal(line, mem_printf("env.A: %s", text));
}

/* ---- the difference ---- */

#define AGENT(body) "{\"agents\":{\"x\":{" body "}}}"

static void test_difference(void **state)
{
	struct trust_state t;

	give(AGENT("\"skills\":[\"a\",\"b\",\"b\"],\"model\":\"m\",\"tools\":[]"));
	t = checked(AGENT("\"tools\":[],\"model\":\"n\",\"skills\":[\"a\",\"c\",\"b\"]"));
	assert_int_equal(t.is, TRUST_CHANGED);
	assert_string_equal(JOINED(t.added), "agents.x.model: n\nagents.x.skills: c\n");
	assert_string_equal(JOINED(t.gone), "agents.x.model: m\nagents.x.skills: b\n");
	assert_string_equal(shown(&t),
		"    - agents.x.model: m\n"
		"    + agents.x.model: n\n"
		"    - agents.x.skills: b\n"
		"    + agents.x.skills: c\n");
	/* One more element is one more line. */
	t = checked(AGENT("\"skills\":[\"0\",\"a\",\"b\",\"b\"],\"model\":\"m\",\"tools\":[]"));
	assert_string_equal(JOINED(t.added), "agents.x.skills: 0\n");
	assert_int_equal(t.gone.n, 0);
	/* Another order of keys and another spacing are another content that grants the same. */
	t = checked(AGENT("\"tools\":[], \"model\":\"m\",\"skills\":[\"a\",\"b\",\"b\"]"));
	assert_int_equal(t.is, TRUST_CHANGED);
	assert_int_equal(t.added.n + t.gone.n, 0);
	assert_non_null(strstr(shown(&t), "no line differs"));
}

/* Arguments in another order are another command. */
static void test_order(void **state)
{
	struct trust_state t;

	give(AGENT("\"args\":[\"a\",\"b\",\"c\"],\"tools\":[\"t\"]"));
	t = checked(AGENT("\"args\":[\"c\",\"b\",\"a\"],\"tools\":[\"t\",\"u\"]"));
	assert_string_equal(JOINED(t.added),
		"agents.x.tools: u\nagents.x.args: (in another order)\n");
	assert_int_equal(t.gone.n, 0);
	t = checked(AGENT("\"args\":[\"b\",\"d\",\"c\"],\"tools\":[\"t\"]"));
	assert_string_equal(JOINED(t.added), "agents.x.args: d\n");
	assert_string_equal(JOINED(t.gone), "agents.x.args: a\n");
}

static void test_show(void **state)
{
	static const char json[] =
		"{\"library\":{\"skills\":{\"network\":{\"source\":\"./s\"},"
		"\"o\":{\"source\":\"/opt/s\"},\"p\":{\"source\":\"./a/../../s\"}},"
		"\"mcpServers\":{\"d\":{\"command\":\"d\",\"env\":{\"T\":\"${DOCS}\"}}}},"
		"\"agents\":{\"ssh\":{\"prompt\":\"!x\",\"role\":\"~/r.md\",\"home\":\"mine\"},"
		"\"x\":{\"role\":\"./"
		"r.md\",\"home\":\"declared\",\"network\":{\"allow\":[\"h\"]},"
		"\"env\":{\"A\":\"!pass show db\",\"B\":\"b\",\"C\":\"! \xe2\x80\xa6\"},"
		"\"ssh\":[{\"Host\":\"h\"}],\"mounts\":[{\"source\":\"/d\"}]}}}";
	struct trust_state t = checked(json);

	assert_string_equal(shown(&t),
		"  runs on this machine:\n"
		"    agents.x.env.A: !pass show db\n"
		"    agents.x.env.C: \"! \xe2\x80\xa6\"\n"
		"  reads from this machine:\n"
		"    agents.ssh.home: mine\n"
		"    agents.ssh.role: ~/r.md\n"
		"    agents.x.mounts: source=/d\n"
		"    agents.x.ssh: Host=h\n"
		"    library.mcpServers.d.env.T: ${DOCS}\n"
		"    library.skills.o.source: /opt/s\n"
		"    library.skills.p.source: ./a/../../s\n"
		"  network:\n"
		"    agents.x.network.allow: h\n"
		"  the rest:\n"
		"    agents.ssh.prompt: !x\n"
		"    agents.x.env.B: b\n"
		"    agents.x.home: declared\n"
		"    agents.x.role: ./r.md\n"
		"    library.mcpServers.d.command: d\n"
		"    library.skills.network.source: ./s\n");
	give(json);
	t = checked(json);
	assert_true(str_starts(shown(&t), "  runs on this machine:\n    agents.x.env.A"));
	t = checked(AGENT("\"env\":{\"A\":\"!rm db\",\"B\":\"b\",\"C\":\"! \xe2\x80\xa6\"}"));
	assert_true(str_starts(shown(&t),
		"  runs on this machine:\n"
		"    - agents.x.env.A: !pass show db\n"
		"    + agents.x.env.A: !rm db\n"
		"  reads from this machine:\n"
		"    - agents.ssh.home: mine\n"));
}

#define NO_HEADING "  " /* the line itself: of all there is, nothing is "the rest" */

/* One line each, and what it is shown under. */
static void test_headings(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"l\":[{\"env\":{\"A\":\"!x\"}}]}", "runs" },
		{ "{\"l\":[{\"env\":{\"A\":\"! x\"}}]}", "runs" },
		{ "{\"l\":[{\"env\":{\"A\":\"${X}\"}}]}", "reads" },
		{ "{\"l\":[{\"env\":{\"A\":\"x\"}}]}", NO_HEADING },
		{ AGENT("\"env\":{\"A\":\"x${X}\"}"), "reads" },
		{ AGENT("\"env\":{\"A\":\"\\\\!x\"}"), NO_HEADING },
		{ AGENT("\"role\":\"../r\""), "reads" },
		{ AGENT("\"role\":\"r\""), NO_HEADING },
		{ AGENT("\"image\":\"/r\""), "reads" },
		{ AGENT("\"image\":\"host\""), NO_HEADING },
		{ AGENT("\"home\":\"direct\""), "writes" },
		{ AGENT("\"home\":\"mine\""), "reads" },
		{ AGENT("\"workspace\":{\"hide\":[\"!.env\"]}"), "reads" },
		{ AGENT("\"workspace\":{\"protect\":[\"!x\"]}"), "writes" },
		{ AGENT("\"workspace\":{\"protect\":[\"x\"]}"), NO_HEADING },
		{ AGENT("\"network\":\"host\""), "network" },
		{ "{\"agents\":{\"network\":{\"model\":\"m\"}}}", NO_HEADING },
		{ "{\"agents\":{\"a.env\":{\"model\":\"!m\"}}}", NO_HEADING },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct trust_state t = checked(rows[i][0]);

		if (!str_starts(shown(&t) + 2, rows[i][1]))
			fail_msg("%s:\n%s", rows[i][0], shown(&t));
	}
}

static const char *many(size_t n, size_t changed)
{
	struct str s = { 0 };

	str_add(&s, "{\"agents\":{\"x\":{\"tools\":[\"first\"");
	for (size_t i = 0; i < n; i++)
		str_addf(&s, ",\"tool %zu%s\"", i * 7919 % n, i == changed ? " changed" : "");
	str_add(&s, "]}}}");
	return s.p;
}

static void test_many(void **state)
{
	enum { MANY = 10000 };
	struct timespec from, to;
	struct trust_state t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	give(many(MANY, MANY));
	t = checked(many(MANY, 5000));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	assert_int_equal(t.grants.n, MANY + 1);
	assert_int_equal(t.added.n, 1);
	assert_int_equal(t.gone.n, 1);
	assert_non_null(strstr(t.added.v[0], "changed"));
	assert_true(to.tv_sec - from.tv_sec <= 1); /* it takes some ms */
}

static void test_too_many(void **state)
{
	char key[61] = { 0 };
	struct trust_state t = { 0 };
	struct fault f = { 0 };
	struct str s = { 0 };

	memset(key, 'k', 60);
	for (int i = 0; i < 20; i++)
		str_addf(&s, "{\"%s\":", key);
	str_add(&s, "[0");
	for (int i = 0; i < 20000; i++)
		str_add(&s, ",1");
	str_addc(&s, ']');
	for (int i = 0; i < 20; i++)
		str_addc(&s, '}');
	assert_true(check(s.p, &t, &f) < 0);
	assert_non_null(strstr(f.text, "more than can be shown"));
	assert_null(t.hash);
}

/* ---- the store ---- */

static void test_store(void **state)
{
	static const char json[] = AGENT("\"model\":\"m\"");
	struct trust_state t = checked(json);
	struct stat st;

	assert_string_equal(t.hash, hash_hex(json, strlen(json)));
	assert_int_equal(strlen(t.hash), 64);
	assert_false(take());
	assert_int_equal(access(store, F_OK), -1); /* looking creates nothing */
	give(json);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_string_equal(read_file(file),
		mem_printf("carrel-trust 1\n%s\n%s\nagents.x.model: m\n", manifest, t.hash));
	assert_int_equal(checked(AGENT("\"model\":\"n\"")).is, TRUST_CHANGED);
	give(AGENT("\"model\":\"n\""));
	assert_int_equal(checked(json).is, TRUST_CHANGED);
	assert_int_equal(files_in(store), 1);
	assert_true(take());
	assert_int_equal(checked(json).is, TRUST_NEW);
	assert_false(take());
}

/* A path that is no text is kept in its visible form, and another's record is not ours. */
static void test_paths(void **state)
{
	static const char odd[] = "/a\n\\\xff\x1b/carrel.json", json[] = "{}";
	const struct json_value tree = { .type = JSON_OBJECT };
	struct trust_state t;
	struct fault f = { 0 };

	assert_int_equal(trust_check(odd, json, 2, &tree, &t, &f), 0);
	assert_int_equal(trust_give(odd, &t, &f), 0);
	assert_int_equal(trust_check(odd, json, 2, &tree, &t, &f), 0);
	assert_int_equal(t.is, TRUST_GIVEN);
	assert_int_equal(checked(json).is, TRUST_NEW);
	/* The same record under our name. */
	assert_int_equal(rename(mem_printf("%s/%s", store, hash_hex(odd, strlen(odd))), file),
		0);
	assert_int_equal(checked(json).is, TRUST_NEW);
	assert_int_equal(checked("{\"a\":1}").is, TRUST_NEW);
	give(json);
}

static void refused(const char *json, const char *why)
{
	struct trust_state t = { 0 };
	struct fault f = { 0 };

	if (check(json, &t, &f) >= 0)
		fail_msg("taken; expected: %s", why);
	assert_non_null(strstr(f.text, file));
	assert_non_null(strstr(f.text, why));
	assert_non_null(strstr(f.fix, "Remove that file"));
	assert_null(t.hash);
}

static void test_broken(void **state)
{
	static const char json[] = "{}";
	static const char why[] = "not a record of trust";
	const char *good, *hash = checked(json).hash;
	const char *const rows[] = {
		"",
		"carrel-trust 2\n",
		"carrel-trust 1",
		"carrel-trust 1\n",
		mem_printf("carrel-trust 10\n%s\n%s\n(none)\n", manifest, hash),
		mem_printf("carrel-trust 1\n%s\n", manifest),
		mem_printf("carrel-trust 1\n%s\n%s", manifest, hash),
		mem_printf("carrel-trust 1\n%s\n%.63s\n(none)\n", manifest, hash),
		mem_printf("carrel-trust 1\n%s\n%s0\n(none)\n", manifest, hash),
		mem_printf("carrel-trust 1\n%s\n%.63sg\n(none)\n", manifest, hash),
		mem_printf("carrel-trust 1\n%s\n%s\n(none)", manifest, hash),
		mem_printf("carrel-trust 1\n%s\n%s\na: \x1b[2J\n", manifest, hash),
		mem_printf("carrel-trust 1\n%s\n%s\na: \xff\n", manifest, hash),
	};

	give(json);
	good = read_file(file);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		write_file(file, rows[i], strlen(rows[i]));
		refused(json, why);
	}
	write_file(file, memcpy(mem_alloc(strlen(good) + 1), good, strlen(good)),
		strlen(good) + 1); /* a NUL at its end */
	refused(json, why);
	write_file(file, good, strlen(good));
	assert_int_equal(checked(json).is, TRUST_GIVEN);
}

static void test_not_a_file(void **state)
{
	const char *aside = mem_printf("%s/aside", top);
	struct trust_state t;
	struct fault f = { 0 };
	bool was = true;

	give("{}");
	/* A link, though it leads to a good record, and one that leads nowhere. */
	assert_int_equal(rename(file, aside), 0);
	assert_int_equal(symlink(aside, file), 0);
	refused("{}", "is a link");
	unlink(file);
	assert_int_equal(symlink("/nowhere", file), 0);
	refused("{}", "is a link");
	unlink(file);
	assert_int_equal(mkfifo(file, 0600), 0);
	refused("{}", "not a regular file");
	unlink(file);
	assert_int_equal(mkdir(file, 0700), 0);
	refused("{}", "not a regular file");
	setenv("CARREL_TRUST", hash_hex("{}", 2), 1);
	t = checked("{}");
	assert_true(trust_give(manifest, &t, &f) < 0);
	unsetenv("CARREL_TRUST");
	assert_int_equal(files_in(store), 1); /* the temporary one is gone */
	assert_true(trust_take(manifest, &was, &f) < 0);
	assert_true(was);
	rmdir(file);
	/* The control: the record itself; and giving replaces a link, not what it leads to. */
	assert_int_equal(rename(aside, file), 0);
	assert_int_equal(checked("{}").is, TRUST_GIVEN);
	write_file(aside, "precious", 8);
	unlink(file);
	assert_int_equal(symlink(aside, file), 0);
	assert_int_equal(trust_give(manifest, &t, &f), 0);
	assert_int_equal(checked("{}").is, TRUST_GIVEN);
	assert_string_equal(read_file(aside), "precious");
}

static void test_unreadable(void **state)
{
	struct trust_state t = { 0 };
	struct fault f = { 0 };

	give("{}");
	assert_int_equal(chmod(file, 0620), 0);
	refused("{}", "another user");
	assert_int_equal(chmod(file, 0600), 0);
	assert_int_equal(truncate(file, (16 << 20) + 1), 0);
	refused("{}", "larger than 16 MB");
	unlink(file);
	give("{}");
	if (geteuid() == 0) {
		assert_int_equal(chown(file, 12345, (gid_t)-1), 0);
		refused("{}", "another user");
		assert_int_equal(chown(file, 0, (gid_t)-1), 0);
	} else {
		assert_int_equal(chmod(file, 0), 0);
		assert_int_equal(check("{}", &t, &f), -EACCES);
		assert_non_null(strstr(f.text, file));
		assert_int_equal(chmod(file, 0600), 0);
	}
	assert_int_equal(checked("{}").is, TRUST_GIVEN);
	/* A directory that is none. */
	assert_int_equal(rename(store, mem_printf("%s/aside", top)), 0);
	write_file(store, "", 0);
	assert_int_equal(check("{}", &t, &f), -ENOTDIR);
}

/* What a carrel left that was killed while it wrote; the next may even have its pid. */
static void test_leftover(void **state)
{
	const char *left[] = {
		mem_printf("%s/.%s.%ld-0", store, hash_hex(manifest, strlen(manifest)),
			(long)getpid()),
		mem_printf("%s/.%s.1-0", store, hash_hex(manifest, strlen(manifest))),
	};

	give("{}");
	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		write_file(left[i], "carrel-tr", 9);
	assert_int_equal(checked("{}").is, TRUST_GIVEN);
	give("{\"a\":1}");
	assert_int_equal(files_in(store), 3);
	assert_string_equal(read_file(left[0]), "carrel-tr");
}

/* A limit on the file's size stands for a full disk: the old record stays. */
static void test_full_disk(void **state)
{
	struct rlimit old, few;
	struct trust_state t;
	struct fault f = { 0 };

	give("{}");
	t = checked("{\"a\":1}");
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	few = old;
	few.rlim_cur = 20;
	setrlimit(RLIMIT_FSIZE, &few);
	assert_int_equal(trust_give(manifest, &t, &f), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_non_null(strstr(f.text, file));
	assert_int_equal(files_in(store), 1);
	assert_int_equal(checked("{}").is, TRUST_GIVEN);
	assert_int_equal(trust_give(manifest, &t, &f), 0);
	assert_int_equal(checked("{\"a\":1}").is, TRUST_GIVEN);
}

/* Two write for ever: a reader always sees one of the two, whole. */
static void test_two_writers(void **state)
{
	static const char *const json[] = { "{\"a\":\"one\"}", "{\"a\":\"two\"}" };
	struct trust_state t[] = { checked(json[0]), checked(json[1]) };
	struct fault f = { 0 };
	int seen[3] = { 0 }, status;
	pid_t pid[2];

	give(json[0]);
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			mem_own();
			for (int k = 0; k < 300; k++)
				if (trust_give(manifest, &t[i], &f) < 0)
					_exit(1);
			_exit(0);
		}
	}
	for (int k = 0; k < 2000; k++)
		seen[checked(json[0]).is]++;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(seen[TRUST_NEW], 0);
	assert_true(seen[TRUST_GIVEN] + seen[TRUST_CHANGED] == 2000);
	assert_int_equal(files_in(store), 1);
}

/* ---- the environment ---- */

static void test_variable(void **state)
{
	static const char *const malformed[] = { "yes", "1", " ", "0x00" };
	char hash[70];
	struct trust_state t = { 0 };
	struct fault f = { 0 };

	snprintf(hash, sizeof(hash), "%s", checked("{}").hash);
	setenv("CARREL_TRUST", hash, 1);
	assert_int_equal(checked("{}").is, TRUST_GIVEN);
	assert_int_equal(checked("{}").added.n, 0);
	assert_int_equal(checked("{ }").is, TRUST_NEW);
	assert_int_equal(access(store, F_OK), -1); /* for this once */
	for (char *p = hash; *p; p++)
		*p = (char)toupper(*p);
	setenv("CARREL_TRUST", hash, 1);
	assert_int_equal(checked("{}").is, TRUST_GIVEN);
	strcat(hash, "0");
	for (size_t i = 0; i < ARRAY_SIZE(malformed) + 2; i++) {
		/* One digit too many, one too few, and then the rest. */
		hash[i == 0 ? 65 : 63] = '\0';
		setenv("CARREL_TRUST", i < 2 ? hash : malformed[i - 2], 1);
		assert_true(check("{}", &t, &f) < 0);
		assert_non_null(strstr(f.text, "CARREL_TRUST"));
		assert_null(t.hash);
	}
	setenv("CARREL_TRUST", "", 1);
	assert_int_equal(checked("{}").is, TRUST_NEW);
	/* Another hash takes nothing away. */
	give("{ }");
	setenv("CARREL_TRUST", checked("{}").hash, 1);
	assert_int_equal(checked("{ }").is, TRUST_GIVEN);
}

static void test_no_home(void **state)
{
	char *home = getenv("HOME") ? mem_strdup(getenv("HOME")) : NULL;
	struct trust_state t;
	struct fault f = { 0 };

	give("{}");
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	t = checked("{}");
	assert_int_equal(t.is, TRUST_NEW);
	assert_false(take());
	assert_true(trust_give(manifest, &t, &f) < 0);
	assert_non_null(strstr(f.text, "HOME"));
	assert_non_null(strstr(f.fix, t.hash));
	setenv("CARREL_TRUST", t.hash, 1);
	assert_int_equal(checked("{}").is, TRUST_GIVEN);
	unsetenv("CARREL_TRUST");
	setenv("XDG_STATE_HOME", top, 1);
	assert_int_equal(checked("{}").is, TRUST_GIVEN);
	if (home)
		setenv("HOME", home, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lines),
		TEST(test_quoting),
		TEST(test_hostile),
		TEST(test_long),
		TEST(test_difference),
		TEST(test_order),
		TEST(test_show),
		TEST(test_headings),
		TEST(test_many),
		TEST(test_too_many),
		TEST(test_store),
		TEST(test_paths),
		TEST(test_broken),
		TEST(test_not_a_file),
		TEST(test_unreadable),
		TEST(test_leftover),
		TEST(test_full_disk),
		TEST(test_two_writers),
		TEST(test_variable),
		TEST(test_no_home),
	};

	alarm(100);
	return cmocka_run_group_tests_name("trust", tests, NULL, NULL);
}

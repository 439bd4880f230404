/*
 * harness/ssh-config.c - hosts that an agent may log in to, with keys that it cannot read
 *
 * Words of a manifest end up in a configuration file and in arguments of ssh-add. So every
 * character is checked: no patterns, no escapes, no line ends, nothing that begins like an
 * option. An alias wins over another entry's real host name, so all aliases come first in the
 * configuration: ssh uses the first value.
 */
#include "harness/ssh-config.h"
#include "harness/harness.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

enum { SSH_PORT = 22, LONGEST_NAME = 253, LONGEST_WORD = 64, LONGEST_TYPE = 64 };

const char *ssh_field(const struct agent *a, size_t entry, const char *key)
{
	return manifest_field(a, mem_printf("ssh[%zu].%s", entry, key));
}

/* ---- public keys ---- */

static int base64_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The number of bytes, or 0 when it is not base64. out has room for 3 bytes per 4 digits. */
static size_t decode(const char *text, size_t n, unsigned char *out)
{
	size_t pad = 0, len = 0;
	uint32_t bits = 0;

	while (pad < 2 && n > pad && text[n - 1 - pad] == '=')
		pad++;
	if (!n || n % 4)
		return 0;
	for (size_t i = 0; i < n; i++) {
		int digit = i < n - pad ? base64_digit(text[i]) : 0;

		if (digit < 0)
			return 0;
		bits = bits << 6 | (uint32_t)digit;
		if (i % 4 != 3)
			continue;
		out[len++] = (unsigned char)(bits >> 16);
		out[len++] = (unsigned char)(bits >> 8);
		out[len++] = (unsigned char)bits;
	}
	return len - pad;
}

const char *ssh_key_text(const char *blob, size_t n, const char *type)
{
	unsigned char *bytes = mem_alloc(n + 4);
	size_t len = decode(blob, n, bytes), type_len;
	const char *says;

	if (len < 4 || bytes[0] || bytes[1] || bytes[2])
		return NULL;
	type_len = bytes[3];
	if (!type_len || type_len > LONGEST_TYPE || type_len + 4 >= len)
		return NULL;
	says = mem_strndup((const char *)bytes + 4, type_len);
	if (strspn(says, LETTERS DIGITS "-@.") != type_len || (type && strcmp(says, type) != 0))
		return NULL;
	return mem_printf("%s %.*s", says, (int)n, blob);
}

const char *ssh_key_line(const char *line)
{
	size_t n = strcspn(line, " \t");
	const char *type = mem_strndup(line, n), *blob = line + n + strspn(line + n, " \t");

	return ssh_key_text(blob, strcspn(blob, " \t\r\n"), type);
}

/* ---- words ---- */

static bool is_word(const char *text, const char *first, const char *letters, size_t longest)
{
	size_t n = strlen(text);

	return n && n <= longest && strchr(first, text[0]) && strspn(text, letters) == n;
}

static bool is_alias(const char *text)
{
	return is_word(text, LETTERS DIGITS, LETTERS DIGITS "._-", LONGEST_NAME);
}

static bool is_host(const char *text)
{
	struct in6_addr unused;

	return is_alias(text) || inet_pton(AF_INET6, text, &unused) == 1;
}

/* ssh-agent treats a user as a pattern, and ssh expands percent signs. */
static bool is_user(const char *text)
{
	return is_word(text, LETTERS DIGITS "_", LETTERS DIGITS "._+-", LONGEST_WORD);
}

static void check_words(const struct agent *a, size_t i, problems *bad)
{
	const struct agent_ssh *e = &a->ssh.v[i];
	const struct {
		const char *key;
		const struct said *said;
		bool (*test)(const char *text);
		const char *what;
	} words[] = {
		{ "Host", &e->host, is_alias,
			"is no name that ssh takes as it is: letters, digits, '.', '_' and "
			"'-'" },
		{ "Hostname", &e->host_name, is_host, "is no host name and no address" },
		{ "User", &e->user, is_user,
			"is no user name: letters, digits, '.', '_', '+' and '-'" },
	};

	for (size_t w = 0; w < ARRAY_SIZE(words); w++)
		if (!words[w].test(words[w].said->text))
			manifest_problem(bad, words[w].said->at, ssh_field(a, i, words[w].key),
				"\"%s\" %s", str_visible(words[w].said->text), words[w].what);
}

void ssh_check(const struct agent *a, problems *bad)
{
	for (size_t i = 0; i < a->ssh.n; i++) {
		const struct agent_ssh *e = &a->ssh.v[i];

		check_words(a, i, bad);
		if (e->known_host_key.text && !ssh_key_line(e->known_host_key.text))
			manifest_problem(bad, e->known_host_key.at,
				ssh_field(a, i, "KnownHostKey"),
				"is no public key: \"ssh-ed25519 AAAA...\", as ssh-keyscan "
				"prints after the host's name");
		for (size_t k = 0; k < i; k++)
			if (!strcmp(a->ssh.v[k].host.text, e->host.text))
				manifest_problem(bad, e->host.at, ssh_field(a, i, "Host"),
					"\"%s\" is there already", str_visible(e->host.text));
	}
}

/* ---- what ssh goes by ---- */

const char *ssh_known_name(const char *host, unsigned long long port)
{
	return port == SSH_PORT ? host : mem_printf("[%s]:%llu", host, port);
}

/* The box knows the key under both names; for ssh-add only the real name is a destination. */
static void add_known(const struct agent_ssh *e, const struct ssh_facts *facts, bool alias,
	struct str *out)
{
	const char *real = ssh_known_name(e->host_name.text, e->port);

	vec_each(key, &facts->host_keys) {
		bool marked = str_starts(*key, "@");
		size_t mark = marked ? strcspn(*key, " ") + 1 : 0;

		str_addn(out, *key, mark);
		if (alias && strcmp(e->host.text, e->host_name.text) != 0)
			str_addf(out, "%s,", ssh_known_name(e->host.text, e->port));
		str_addf(out, "%s %s\n", real, *key + mark);
	}
}

static void add_block(const struct agent_ssh *e, const char *name, const char *public_key,
	struct str *out)
{
	str_addf(out,
		"\nHost %s\n"
		"\tHostName %s\n"
		"\tUser %s\n"
		"\tPort %llu\n"
		"\tIdentityFile %s\n"
		"\tIdentitiesOnly yes\n"
		"\tIdentityAgent " REQUEST_SSH_SOCKET "\n"
		"\tUserKnownHostsFile ~/.ssh/known_hosts\n"
		"\tStrictHostKeyChecking yes\n"
		"\tUpdateHostKeys no\n",
		name, e->host_name.text, e->user.text, e->port, public_key);
}

static bool is_an_alias(const struct agent *a, const char *name)
{
	vec_each(e, &a->ssh)
		if (!strcmp(e->host.text, name))
			return true;
	return false;
}

static void add_files(const struct job *job, struct request *r)
{
	const struct agent *a = job->agent;
	struct str config = { 0 }, real = { 0 }, known = { 0 };

	str_add(&config,
		"# The keys are outside of this box; it can use them and not read them.\n");
	for (size_t i = 0; i < a->ssh.n; i++) {
		const struct agent_ssh *e = &a->ssh.v[i];
		const char *public_key = harness_file(r, mem_printf("ssh/%s.pub", e->host.text),
			mem_printf("%s\n", job->ssh.v[i].public_key), "ssh");

		add_block(e, e->host.text, public_key, &config);
		if (!is_an_alias(a, e->host_name.text))
			add_block(e, e->host_name.text, public_key, &real);
		add_known(e, &job->ssh.v[i], true, &known);
	}
	if (real.len)
		str_add(&config, real.p);
	harness_home_file(r, ".ssh/config", config.p, "ssh");
	harness_home_file(r, ".ssh/known_hosts", known.p, "ssh");
}

/* Allow the host, in a network with a policy. */
static void add_host(const struct agent *a, size_t i, struct request *r)
{
	const struct said *said = &a->ssh.v[i].host_name;
	const bool bracket = strchr(said->text, ':');

	vec_push(&r->hosts,
		((struct request_host){
			.entry = mem_printf("%s%s%s:%llu", bracket ? "[" : "", said->text,
				bracket ? "]" : "", a->ssh.v[i].port),
			.origin = mem_printf("%s:%u:%u: %s",
				str_visible(manifest_origin(said)->name), said->at->at.line,
				said->at->at.column, ssh_field(a, i, "Hostname")) }));
}

void ssh_assemble(const struct job *job, struct request *r)
{
	const struct agent *a = job->agent;

	if (!a->ssh.n)
		return;
	for (size_t i = 0; i < a->ssh.n; i++) {
		const struct agent_ssh *e = &a->ssh.v[i];
		struct str known = { 0 };

		add_known(e, &job->ssh.v[i], false, &known);
		if (network_is_brokered(r->network))
			add_host(a, i, r);
		vec_push(&r->ssh,
			((struct request_ssh){ .host = e->host.text,
				.host_name = e->host_name.text,
				.user = e->user.text,
				.port = (unsigned int)e->port,
				.key = job->ssh.v[i].key,
				.known = known.p,
				.token = str_starts(job->ssh.v[i].public_key, "sk-"),
				.to = mem_printf("%s@%s", e->user.text,
					ssh_known_name(e->host_name.text, e->port)) }));
	}
	add_files(job, r);
	harness_set(r, "SSH_AUTH_SOCK", REQUEST_SSH_SOCKET);
	if (r->network == NETWORK_NONE)
		vec_push(&r->notices,
			"no network: the hosts that \"ssh\" declares cannot be reached");
}

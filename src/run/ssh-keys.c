/*
 * run/ssh-keys.c - find the keys for the hosts that an agent may log in to
 *
 * This runs before the user is asked, so that a missing key, or one that ssh would refuse, is
 * reported early. carrel never reads a private key: ssh-keygen prints its public half, which
 * needs no passphrase. ssh-keygen also searches known_hosts, where names may be hashed.
 *
 * A key is refused if its host has no known key: it could not be bound to the host, and would
 * open every host that accepts it.
 */
#include "run/ssh-keys.h"
#include "host/host-program.h"
#include "harness/harness.h"
#include "harness/ssh-config.h"
#include "base/fault.h"
#include "base/path.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct look {
	const struct job *job;
	const char *keygen;
	problems *bad;
};

/* ---- OpenSSH ---- */

static int find_programs(const char *workspace, const char **ret_keygen, struct fault *f)
{
	static const char *const all[] = { "ssh-agent", "ssh-add", "ssh-keygen" };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		*ret_keygen = program_find(all[i], workspace);
		if (*ret_keygen)
			continue;
		fault_set(f, 0, "ssh: there is no program '%s' on your PATH", all[i]);
		return fault_fix(f,
			"It is OpenSSH's, 8.9 or later: install the package openssh-client "
			"(openssh-clients, openssh).");
	}
	return 0;
}

/* Did it succeed? Its output is kept in either case. */
static bool run_keygen(const struct look *l, const char *const args[static 4], const char **ret)
{
	const char *const argv[] = { l->keygen, args[0], args[1], args[2], args[3], NULL };
	int status, rc = program_output(argv, ret, &status);

	if (rc < 0)
		*ret = strerror(-rc);
	return rc == 0 && status == 0;
}

/* ---- the user's key ---- */

/* ssh's own rule, except that a key owned by root may be readable by a group. */
static const char *wrong_with(const struct look *l, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return "is no file";
	if (st.st_uid != getuid() && st.st_uid != 0)
		return mem_printf("belongs to another user (uid %u)", st.st_uid);
	if (st.st_mode & (st.st_uid == getuid() ? 077 : 07))
		return mem_printf("has mode %04o, and others could use it: chmod 600",
			st.st_mode & 07777);
	if (access(path, R_OK) < 0)
		return "cannot be read";
	if (path_within(path, l->job->workspace))
		return "lies in the workspace, where the agent could read it";
	return NULL;
}

/* Read the form of RFC 4716: headers, then base64 in lines. */
static const char *read_public_key(const char *text)
{
	struct str blob = { 0 };
	bool begun = false, header = false;

	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		if (str_starts(text, "----")) {
			begun = true;
		} else if (begun && (header || memchr(text, ':', n))) {
			header = n && text[n - 1] == '\\';
		} else if (begun) {
			str_addn(&blob, text, n);
		}
	}
	return blob.len ? ssh_key_text(blob.p, blob.len, NULL) : NULL;
}

static void look_at_key(const struct look *l, size_t i, struct ssh_facts *ret)
{
	const struct said *said = &l->job->agent->ssh.v[i].identity_file;
	const char *field = ssh_field(l->job->agent, i, "IdentityFile"), *wrong, *text;
	const char *args[] = { "-e", "-P", "", NULL };

	ret->key = manifest_path(said, field, l->job->home, l->bad);
	if (!ret->key)
		return;
	wrong = wrong_with(l, ret->key);
	if (wrong) {
		manifest_problem(l->bad, said->at, field, "%s %s", str_visible(ret->key),
			wrong);
		return;
	}
	/* Give an empty passphrase, so that it does not ask: the public half needs none. */
	args[3] = mem_printf("-f%s", ret->key);
	ret->public_key = run_keygen(l, args, &text) ? read_public_key(text) : NULL;
	if (!ret->public_key)
		manifest_problem(l->bad, said->at, field,
			"%s does not tell its public half, which could also be in %s.pub "
			"(ssh-keygen: %s)",
			str_visible(ret->key), str_visible(ret->key),
			str_visible(mem_strndup(text, strcspn(text, "\r\n"))));
}

/* ---- the host's keys ---- */

/* One line of known_hosts: [@MARK] NAMES TYPE BLOB COMMENT. */
static void take_line(const char *line, name_vec *keys, name_vec *revoked)
{
	const char *mark = "", *key;

	if (line[0] == '#')
		return;
	if (line[0] == '@') {
		mark = mem_strndup(line, strcspn(line, " \t"));
		line += strlen(mark);
		line += strspn(line, " \t");
	}
	line += strcspn(line, " \t");
	key = ssh_key_line(line + strspn(line, " \t"));
	if (!key)
		return;
	if (!*mark)
		vec_push(keys, key);
	else if (!strcmp(mark, "@cert-authority"))
		vec_push(keys, mem_printf("%s %s", mark, key));
	else
		vec_push(revoked, key);
}

static bool has_key(const name_vec *list, const char *key)
{
	vec_each(one, list)
		if (!strcmp(*one, key))
			return true;
	return false;
}

static void find_host_keys(const struct look *l, const char *name, name_vec *ret)
{
	const char *const files[] = { path_join(l->job->home, ".ssh/known_hosts"),
		path_join(l->job->home, ".ssh/known_hosts2"), "/etc/ssh/ssh_known_hosts" };
	name_vec keys = { 0 }, revoked = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const char *const args[] = { "-F", name, "-f", files[i] };
		const char *text;

		if (access(files[i], R_OK) < 0 || !run_keygen(l, args, &text))
			continue;
		for (size_t n; *text; text += n + (text[n] == '\n')) {
			n = strcspn(text, "\n");
			take_line(mem_strndup(text, n), &keys, &revoked);
		}
	}
	vec_each(key, &keys) {
		const char *plain = **key == '@' ? strchr(*key, ' ') + 1 : *key;

		if (!has_key(&revoked, plain) && !has_key(ret, *key))
			vec_push(ret, *key);
	}
}

static void look_at_host(const struct look *l, size_t i, struct ssh_facts *ret)
{
	const struct agent_ssh *e = &l->job->agent->ssh.v[i];
	const char *name = ssh_known_name(e->host_name.text, e->port);

	if (e->known_host_key.text)
		vec_push(&ret->host_keys, ssh_key_line(e->known_host_key.text));
	else
		find_host_keys(l, name, &ret->host_keys);
	if (!ret->host_keys.n)
		manifest_problem(l->bad, e->host_name.at,
			ssh_field(l->job->agent, i, "Hostname"),
			"no key of %s is known, so the agent's key could not be bound to it: "
			"give \"KnownHostKey\", or connect to it once with ssh",
			str_visible(name));
}

int ssh_keys_look(struct job *job, problems *bad, struct fault *f)
{
	struct look l = { .job = job, .bad = bad };
	int rc = job->agent->ssh.n ? find_programs(job->workspace, &l.keygen, f) : 0;

	for (size_t i = 0; rc == 0 && i < job->agent->ssh.n; i++) {
		struct ssh_facts facts = { 0 };

		look_at_key(&l, i, &facts);
		look_at_host(&l, i, &facts);
		vec_push(&job->ssh, facts);
	}
	return rc;
}

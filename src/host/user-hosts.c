/*
 * host/user-hosts.c - hosts that the user allows or denies to every box
 *
 * The file is no link: in a home full of links to one directory of dotfiles, what it leads to
 * may be in the workspace of a box, which could write it. (The directory may be a link; what
 * that leads to is protected in every box, see host/survey.c.) A file that cannot be read or
 * understood stops the start: a line that is skipped might have been a denial.
 *
 * It is replaced whole, by a rename, under a lock on its directory, so that two commands at
 * the same time lose nothing.
 */
#include "host/user-hosts.h"
#include "host/network-policy.h"
#include "net/policy/policy.h"
#include "plan/request.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 64 * 1024 };

#define FILE_NAME "allow"
#define SPACE     " \t\r"

const char *user_hosts_path(void)
{
	const char *config = xdg_config();

	return config ? path_join(config, FILE_NAME) : NULL;
}

/* The whole text, "" when there is no file. */
static int read_all(const char *path, const char **ret, struct fault *f)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	char *text;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		*ret = "";
		return 0;
	}
	if (fd < 0 && errno == ELOOP) {
		fault_set(f, 0, "%s is a link: a box might write what it leads to",
			str_visible(path));
		return fault_fix(f, "Make it a file of its own.");
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_set(f, errno, "read %s", str_visible(path));
	text = fd_read_open(fd, MOST);
	if (!text)
		return fault_set(f, errno, "read %s", str_visible(path));
	if (strlen(text) != (size_t)st.st_size)
		return fault_set(f, 0, "%s is no text, or is being written", str_visible(path));
	*ret = text;
	return 0;
}

/* One line of it, as it stands there and as it is meant. */
struct line {
	const char *text;
	size_t n;          /* with the line's end, if it has one */
	const char *entry; /* NULL: nothing but a comment */
	bool deny;
};

/* False at the end of the text. */
static bool next_line(const char **text, struct line *ret)
{
	size_t n = strcspn(*text, "\n"), len = strcspn(*text, "#\n");
	const char *at = *text;

	if (!*at)
		return false;
	*ret = (struct line){ .text = at, .n = n + (at[n] == '\n') };
	*text += ret->n;
	for (; len && strchr(SPACE, at[len - 1]); len--)
		;
	for (; len && strchr(SPACE, *at); len--)
		at++;
	if (len && *at == '!') {
		ret->deny = true;
		for (at++, len--; len && strchr(SPACE, *at); len--)
			at++;
	}
	if (len || ret->deny)
		ret->entry = mem_strndup(at, len);
	return true;
}

static void add_lines(const char *path, const char *text, struct request *r)
{
	unsigned int number = 0;
	struct line line;

	while (next_line(&text, &line)) {
		number++;
		if (line.entry)
			vec_push(&r->hosts,
				((struct request_host){ .entry = line.entry,
					.origin = mem_printf("%s:%u", path, number),
					.deny = line.deny }));
	}
}

int user_hosts(struct request *r, struct fault *f)
{
	const char *path = user_hosts_path(), *text;
	int rc;

	if (!path)
		return 0;
	rc = read_all(path, &text, f);
	if (rc == 0)
		add_lines(path, text, r);
	return rc;
}

/* ---- adding ---- */

/* Two spellings of one entry are the same line. A preset of the machine is taken as it is. */
static int canonical(const char *entry, bool deny, const char **ret, struct fault *f)
{
	struct policy *scratch = mem_alloc(sizeof(*scratch));
	struct policy_entry e = { .text = entry, .deny = deny };
	char text[POLICY_TEXT];
	int rc;

	if (!entry[0] || strpbrk(entry, "#! \t\r\n"))
		return fault_set(f, 0, "'%s' is no entry", str_visible(entry));
	policy_init(scratch, false);
	if (!strcmp(entry, "@npm") || !strcmp(entry, "@debian")) {
		*ret = entry;
		return 0;
	}
	rc = policy_parse(scratch, &e, 1, NULL, 0, f);
	if (rc < 0)
		return rc;
	if (scratch->n == 1 && entry[0] != '@')
		policy_rule_text(&scratch->rule[0], text);
	*ret = scratch->n == 1 && entry[0] != '@' ? mem_strdup(text) : entry;
	return 0;
}

/* An entry without a port means other ports when it denies: so it is asked as the line is. */
static bool is_same(const struct line *line, const char *entry)
{
	struct fault ignored = { 0 };
	const char *text = line->entry, *wanted = entry;

	if (!text)
		return false;
	(void)canonical(line->entry, line->deny, &text, &ignored);
	(void)canonical(entry, line->deny, &wanted, &ignored);
	return !strcmp(text, wanted);
}

/* The text with the entry in it; NULL: it has it already, and nothing to the contrary. */
static const char *with_entry(const char *text, const char *entry, const char *wanted,
	bool deny)
{
	struct str out = { 0 };
	struct line line;
	bool has = false, gone = false;

	while (next_line(&text, &line)) {
		bool same = is_same(&line, entry);

		has |= same && line.deny == deny;
		gone |= same && line.deny != deny;
		if (!same || line.deny == deny)
			str_addn(&out, line.text, line.n);
	}
	if (has && !gone)
		return NULL;
	if (out.len && out.p[out.len - 1] != '\n')
		str_addc(&out, '\n');
	if (!has)
		str_addf(&out, "%s%s\n", deny ? "!" : "", wanted);
	return out.p;
}

/* The line that denies all that the rule allows, with those before it; NULL: they do not. */
static const struct request_host *find_denial(const struct request *r, const struct policy *all,
	const struct policy_rule *rule)
{
	struct policy *first = mem_alloc(sizeof(*first));

	*first = *all;
	for (unsigned int n = 1; n <= all->n; n++) {
		first->n = n;
		if (policy_is_vain(first, rule))
			return &r->hosts.v[all->rule[n - 1].entry];
	}
	return NULL;
}

static int check_denials(const char *path, const struct request *r, const struct policy *all,
	const char *entry, struct fault *f)
{
	const struct request_host *denial = NULL;
	struct policy *more = mem_alloc(sizeof(*more));
	int rc = egress_entry(entry, false, more, f);

	if (rc < 0)
		return rc;
	for (unsigned int i = 0; i < more->n; i++) {
		denial = find_denial(r, all, &more->rule[i]);
		if (!denial)
			return 0;
	}
	fault_set(f, 0, "'%s' is denied by !%s in %s, and a denial wins", str_visible(entry),
		str_visible(denial->entry), str_visible(path));
	return fault_fix(f, "Take that line out first; nothing was written.");
}

/* Would a start understand it, and allow it? Else what is said of boxes to come is not true. */
static int check_entry(const char *path, const char *text, const char *entry, bool deny,
	struct fault *f)
{
	struct request r = { .network = NETWORK_ALLOW };
	const struct policy *all;
	int rc;

	add_lines(path, text, &r);
	rc = egress_policy(&r, &all, f);
	return rc < 0 || deny ? rc : check_denials(path, &r, all, entry, f);
}

static int replace_file(int dir, const char *path, const char *text, struct fault *f)
{
	static const char new[] = FILE_NAME ".new";
	auto_close int fd = -1;
	int rc;

	/* One that was killed may have left it. */
	(void)unlinkat(dir, new, 0);
	fd = openat(dir, new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
	if (rc == 0 && (fsync(fd) < 0 || renameat(dir, new, dir, FILE_NAME) < 0))
		rc = -errno;
	if (rc == 0)
		return 0;
	if (fd >= 0)
		(void)unlinkat(dir, new, 0);
	return fault_set(f, -rc, "write %s", str_visible(path));
}

int user_hosts_add(const char *entry, bool deny, bool *ret_was, struct fault *f)
{
	const char *path = user_hosts_path(), *text, *changed, *wanted;
	auto_close int dir = -1;
	int rc = canonical(entry, deny, &wanted, f);

	if (rc < 0)
		return rc;
	if (!path)
		return fault_set(f, 0, "there is no place for it: HOME is not set");
	rc = xdg_make(xdg_config(), f);
	if (rc < 0)
		return rc;
	dir = open(xdg_config(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fault_set(f, errno, "open %s", str_visible(xdg_config()));
	while (flock(dir, LOCK_EX) < 0)
		if (errno != EINTR)
			return fault_set(f, errno, "lock %s", str_visible(xdg_config()));
	rc = read_all(path, &text, f);
	if (rc < 0)
		return rc;
	changed = with_entry(text, entry, wanted, deny);
	rc = check_entry(path, changed ? changed : text, entry, deny, f);
	if (rc == 0 && changed)
		rc = replace_file(dir, path, changed, f);
	if (rc == 0)
		*ret_was = !changed;
	return rc;
}

/*
 * manifest/trust.c - which manifests of projects the user has approved
 *
 * Theory of operation. The hash of the content decides, never the lines of what it grants
 * (grants.c). Those are for the person; the store keeps them so that a later content can be
 * shown as a difference.
 *
 * The store has one file for each manifest. rename(2) replaces it, so a reader sees the old or
 * the new one whole, and the last of two writers wins. A temporary file that a kill left behind
 * has a name that nobody reads.
 *
 * Must not: follow a link in place of the file, or guess at a file that carrel did not write.
 */
#include "manifest/trust.h"
#include "manifest/grants.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "carrel-trust 1\n"

enum { HASH = 64, STORE_MAX = 16 << 20 };

_Static_assert((int)GRANTS_MAX + (64 << 10) < (int)STORE_MAX, "what is written can be read");

/*
 * The difference
 */

struct entry {
	const char *text;
	size_t index, match; /* match: the index of the same line on the other side, from 1 */
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = strcmp(x->text, y->text);

	return c ? c : x->index < y->index ? -1 : x->index > y->index;
}

static int compare_places(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

static struct entry *entries(const char *const *v, size_t n)
{
	struct entry *list = mem_alloc((n + 1) * sizeof(*list));

	for (size_t i = 0; i < n; i++)
		list[i] = (struct entry){ .text = v[i], .index = i };
	qsort(list, n, sizeof(*list), compare_entries);
	return list;
}

static void pair(struct entry *a, size_t n, struct entry *b, size_t m)
{
	for (size_t i = 0, j = 0; i < n && j < m;) {
		int c = strcmp(a[i].text, b[j].text);

		if (c == 0) {
			a[i].match = b[j].index + 1;
			b[j].match = a[i].index + 1;
		}
		i += c <= 0;
		j += c >= 0;
	}
	qsort(a, n, sizeof(*a), compare_places);
	qsort(b, m, sizeof(*b), compare_places);
}

/*
 * The same lines in another order can mean something else (arguments of a command), and no line
 * would show it. Both sides sort their paths alike, so only elements of a list can be out of
 * order.
 */
static void add_moved(const struct entry *now, size_t n, struct trust_state *state)
{
	const char *said = NULL;
	size_t last = 0, said_n = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = grant_path(now[i].text);

		if (!now[i].match || now[i].match > last) {
			last = now[i].match ? now[i].match : last;
			continue;
		}
		if (said && said_n == len && !memcmp(said, now[i].text, len))
			continue;
		said = now[i].text;
		said_n = len;
		vec_push(&state->added, mem_printf("%.*s: (in another order)", (int)len, said));
	}
}

static void compare_grants(const grant_lines *old, struct trust_state *state)
{
	size_t n = old->n, m = state->grants.n;
	struct entry *was = entries(old->v, n), *now = entries(state->grants.v, m);

	pair(was, n, now, m);
	for (size_t i = 0; i < n; i++)
		if (!was[i].match)
			vec_push(&state->gone, was[i].text);
	for (size_t i = 0; i < m; i++)
		if (!now[i].match)
			vec_push(&state->added, now[i].text);
	add_moved(now, m, state);
}

/*
 * The store
 */

struct record {
	const char *path, *hash; /* path: in its visible form */
	grant_lines grants;
};

/* NULL when there is no state directory. */
static const char *store_dir(void)
{
	const char *state = xdg_state();

	return state ? path_join(state, "trust") : NULL;
}

static const char *store_name(const char *path)
{
	return hash_hex(path, strlen(path));
}

static int unusable(struct fault *f, const char *file, const char *why)
{
	fault_set(f, 0, "%s %s", str_visible(file), why);
	return fault_fix(f, "Remove that file; the manifest has to be approved again then.");
}

/* The text of the file; *ret is NULL when there is none. */
static int load_record(const char *file, char **ret, struct fault *f)
{
	auto_close int fd =
		open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	size_t len = 0, size;
	struct stat st;
	char *text;

	if (fd < 0 && errno == ENOENT) {
		*ret = NULL;
		return 0;
	}
	if (fd < 0 && errno == ELOOP)
		return unusable(f, file, "is a link, not what carrel wrote");
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_set(f, errno, "read %s", str_visible(file));
	if (!S_ISREG(st.st_mode))
		return unusable(f, file, "is not a regular file");
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return unusable(f, file, "may be written by another user");
	if (st.st_size > STORE_MAX)
		return unusable(f, file, "is larger than 16 MB");
	size = (size_t)st.st_size;
	text = mem_alloc(size + 1);
	while (len < size) {
		ssize_t n = read(fd, text + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fault_set(f, errno, "read %s", str_visible(file));
		if (n == 0)
			break;
		len += (size_t)n;
	}
	/* A NUL would end the text for other readers: treat it as truncated. */
	*ret = len == size && strlen(text) == size ? text : mem_strdup("");
	return 0;
}

/* Is it output of str_visible(), and so safe to print? */
static bool is_visible(const char *line)
{
	const char *again = str_visible(line);

	for (; *line; line++, again++) {
		if (*again != *line)
			return false;
		if (*line == '\\' && *++again != '\\')
			return false;
	}
	return !*again;
}

static char *next_line(char **text)
{
	char *line = *text, *end = strchr(line, '\n');

	if (!end)
		return NULL;
	*end = '\0';
	*text = end + 1;
	return is_visible(line) ? line : NULL;
}

static bool is_hash(const char *text)
{
	return strlen(text) == HASH && strspn(text, "0123456789abcdefABCDEF") == HASH;
}

/* Parse the first lines, or all of it. */
static bool parse_record(char *text, bool grants, struct record *ret)
{
	struct record r = { 0 };

	if (!str_starts(text, HEAD))
		return false;
	text += strlen(HEAD);
	r.path = next_line(&text);
	r.hash = r.path ? next_line(&text) : NULL;
	if (!r.hash || !is_hash(r.hash))
		return false;
	while (grants && *text) {
		const char *line = next_line(&text);

		if (!line)
			return false;
		vec_push(&r.grants, line);
	}
	*ret = r;
	return true;
}

/* Read what was approved for the path; ret->path is NULL if nothing was. */
static int recall(const char *path, bool grants, struct record *ret, struct fault *f)
{
	const char *dir = store_dir(), *file;
	struct record r = { 0 };
	char *text = NULL;
	int rc;

	file = dir ? path_join(dir, store_name(path)) : NULL;
	rc = file ? load_record(file, &text, f) : 0;
	if (rc < 0)
		return rc;
	if (text && !parse_record(text, grants, &r))
		return unusable(f, file, "is not a record of trust that this carrel can read");
	/* A record copied from elsewhere does not apply to this path. */
	if (r.path && strcmp(r.path, str_visible(path)) != 0)
		r = (struct record){ 0 };
	*ret = r;
	return 0;
}

/* Open a new file beside the one that it will replace. */
static int open_temporary(int dir, const char *name, const char **ret_temp)
{
	int fd = -1;

	for (int i = 0; i < 1000 && fd < 0; i++) {
		*ret_temp = mem_printf(".%s.%ld-%d", name, (long)getpid(), i);
		fd = openat(dir, *ret_temp,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

static int write_text(int fd, const struct str *text)
{
	int rc = fd_write_all(fd, text->p, text->len);

	if (rc < 0)
		return rc;
	/* Set the mode again: the umask may have reduced it. */
	return fchmod(fd, 0600) < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int replace_record(const char *dir, const char *name, const struct str *text,
	struct fault *f)
{
	auto_close int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	const char *temp, *file = path_join(dir, name);
	int rc;

	if (at < 0)
		return fault_set(f, errno, "open %s", str_visible(dir));
	fd = open_temporary(at, name, &temp);
	if (fd < 0)
		return fault_set(f, errno, "write in %s", str_visible(dir));
	rc = write_text(fd, text);
	if (rc == 0 && renameat(at, temp, at, name) < 0)
		rc = -errno;
	if (rc < 0) {
		unlinkat(at, temp, 0);
		return fault_set(f, -rc, "write %s", str_visible(file));
	}
	(void)!fsync(at); /* if a power cut loses it, carrel asks again */
	return 0;
}

/*
 * What others call
 */

/* Is CARREL_TRUST this hash? */
static int check_variable(const char *hash, bool *ret_same, struct fault *f)
{
	const char *given = getenv("CARREL_TRUST");

	if (given && *given && !is_hash(given)) {
		fault_set(f, 0, "CARREL_TRUST is not a SHA-256: it must have 64 hex digits");
		return fault_fix(f,
			"Set it to the hash of the manifest's content, or unset it.");
	}
	*ret_same = given && !strcasecmp(given, hash);
	return 0;
}

/* The verdict and its record, with the granted lines if wanted. */
static int decide_trust(const char *path, const char *hash, bool grants,
	struct record *ret_record, enum trust *ret, struct fault *f)
{
	struct record record = { 0 };
	bool once = false;
	int rc;

	rc = check_variable(hash, &once, f);
	if (rc == 0 && !once)
		rc = recall(path, grants, &record, f);
	if (rc < 0)
		return rc;
	*ret = once || (record.path && !strcasecmp(record.hash, hash)) ? TRUST_GIVEN
		: record.path                                          ? TRUST_CHANGED
								       : TRUST_NEW;
	*ret_record = record;
	return 0;
}

int trust_verdict(const char *path, const char *bytes, size_t n, struct trust_state *ret,
	struct fault *f)
{
	struct trust_state state = { .hash = hash_hex(bytes, n) };
	struct record record;
	int rc = decide_trust(path, state.hash, false, &record, &state.is, f);

	if (rc == 0)
		*ret = state;
	return rc;
}

int trust_check(const char *path, const char *bytes, size_t n, const struct json_value *tree,
	struct trust_state *ret, struct fault *f)
{
	struct trust_state state = { .hash = hash_hex(bytes, n) };
	struct record record;
	grant_lines grants = { 0 };
	int rc = decide_trust(path, state.hash, true, &record, &state.is, f);

	if (rc < 0)
		return rc;
	if (!grants_of(tree, &grants))
		return fault_set(f, 0, "%s grants more than can be shown (over 15 MB of text)",
			str_visible(path));
	vec_each(line, &grants)
		vec_push(&state.grants, *line);
	if (state.is != TRUST_GIVEN)
		compare_grants(&record.grants, &state);
	*ret = state;
	return 0;
}

int trust_give(const char *path, const struct trust_state *state, struct fault *f)
{
	const char *dir = store_dir();
	struct str text = { 0 };
	int rc;

	if (!dir) {
		fault_set(f, 0,
			"there is no place to keep the approval: neither XDG_STATE_HOME "
			"nor HOME says where");
		return fault_fix(f, "Set HOME, or approve it for once: CARREL_TRUST=%s",
			state->hash);
	}
	rc = xdg_make(dir, f);
	if (rc < 0)
		return rc;
	str_add(&text, HEAD);
	str_addf(&text, "%s\n%s\n", str_visible(path), state->hash);
	vec_each(line, &state->grants) {
		str_add(&text, *line);
		str_addc(&text, '\n');
	}
	return replace_record(dir, store_name(path), &text, f);
}

int trust_take(const char *path, bool *ret_was, struct fault *f)
{
	const char *dir = store_dir(), *file = dir ? path_join(dir, store_name(path)) : NULL;
	bool was = file && unlink(file) == 0;

	if (file && !was && errno != ENOENT)
		return fault_set(f, errno, "remove %s", str_visible(file));
	*ret_was = was;
	return 0;
}

enum { MOST_REST = 300 };

static const char *const headings[] = {
	[GRANT_RUNS] = "runs on this machine:",
	[GRANT_WRITES] = "writes to this machine:",
	[GRANT_READS] = "reads from this machine:",
	[GRANT_NETWORK] = "network:",
	[GRANT_REST] = "the rest:",
};

struct shown {
	const char *line;
	size_t index;
	enum grant sort;
	char sign; /* '\0' when this is not a difference */
};

/* In a difference, lines of one path stand together, the old before the new. */
static int compare_shown(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;

	if (x->sort != y->sort)
		return x->sort < y->sort ? -1 : 1;
	if (x->sign) {
		size_t n = grant_path(x->line), m = grant_path(y->line);
		int c = memcmp(x->line, y->line, n < m ? n : m);

		if (c || n != m)
			return c ? c : n < m ? -1 : 1;
		if (x->sign != y->sign)
			return x->sign == '-' ? -1 : 1;
	}
	return x->index < y->index ? -1 : x->index > y->index;
}

typedef VEC(struct shown) shown_lines;

static void add_shown(shown_lines *list, const char *const *v, size_t n, char sign)
{
	for (size_t i = 0; i < n; i++)
		vec_push(list, ((struct shown){ v[i], i, grant_of(v[i]), sign }));
}

void trust_show(const struct trust_state *state, struct str *out)
{
	shown_lines list = { 0 };
	const char *heading = NULL;
	size_t rest = 0;

	if (state->is == TRUST_CHANGED) {
		add_shown(&list, state->gone.v, state->gone.n, '-');
		add_shown(&list, state->added.v, state->added.n, '+');
	} else {
		add_shown(&list, state->grants.v, state->grants.n, '\0');
	}
	if (!list.n) {
		str_add(out, "  no line differs, only how it is written: comments, spacing\n");
		return;
	}
	qsort(list.v, list.n, sizeof(*list.v), compare_shown);
	/* Without other lines before it, this is not the rest of anything. */
	if (list.v[0].sort == GRANT_REST)
		heading = headings[GRANT_REST];
	vec_each(s, &list) {
		/* Otherwise unimportant lines would push the important ones off the screen. */
		if (s->sort == GRANT_REST && ++rest > MOST_REST)
			continue;
		if (heading != headings[s->sort])
			str_addf(out, "  %s\n", headings[s->sort]);
		heading = headings[s->sort];
		str_add(out, s->sign == '+' ? "    + " : s->sign == '-' ? "    - " : "    ");
		str_add(out, s->line);
		str_addc(out, '\n');
	}
	if (rest > MOST_REST)
		str_addf(out, "    and %zu more; `carrel trust --show --json` has them all\n",
			rest - MOST_REST);
}

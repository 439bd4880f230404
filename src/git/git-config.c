#include "git/git-config.h"
#include "git/git-files.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
	MOST_CONFIG = 16 << 20,
	MOST_PASSWD = 16 << 20,
	MOST_DEPTH = 10,   /* depth of includes; git stops at the same depth */
	MOST_FILES = 1000, /* in all */
	NULL_MAJOR = 1,    /* /dev/null, which people use to say that there is no file */
	NULL_MINOR = 3,
};

/* ---- the syntax ---- */

struct reader {
	const char *text, *at, *end;
	bool ended;      /* the end was read; it counts as one more newline */
	int line;        /* in which `at` is */
	struct str name; /* the name of the setting, as far as it was read */
	struct str value;
};

/* The C library's functions depend on the locale and accept more blanks. */
static bool is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_key_char(int c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}

static char lower(int c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static int next_char(struct reader *r)
{
	int c;

	if (r->at == r->end) {
		r->ended = true;
		return '\n';
	}
	c = (unsigned char)*r->at++;
	if (c == '\r' && r->at < r->end && *r->at == '\n')
		c = (unsigned char)*r->at++;
	if (c == '\n')
		r->line++;
	return c;
}

static void cut(struct str *s, size_t len)
{
	str_addn(s, "", 0);
	s->len = len;
	s->p[len] = '\0';
}

/*
 * After the first blank in the brackets: "subsection"]. git cuts a name short at a NUL byte.
 * Nobody means that, so here it is an error.
 */
static bool read_subsection(struct reader *r, int c)
{
	while (is_blank(c)) {
		if (c == '\n')
			return false;
		c = next_char(r);
	}
	if (c != '"')
		return false;
	str_addc(&r->name, '.');
	for (;;) {
		c = next_char(r);
		if (c == '"')
			return next_char(r) == ']';
		if (c == '\\')
			c = next_char(r);
		if (c == '\n' || !c)
			return false;
		str_addc(&r->name, (char)c);
	}
}

/* After a '['. */
static bool read_section(struct reader *r)
{
	cut(&r->name, 0);
	for (;;) {
		int c = next_char(r);

		if (r->ended)
			return false;
		if (c == ']')
			return r->name.len > 0;
		if (is_blank(c))
			return read_subsection(r, c);
		if (!is_key_char(c) && c != '.')
			return false;
		str_addc(&r->name, lower(c));
	}
}

/* '\0': git has no such escape. */
static char unescape(int c)
{
	switch (c) {
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return (char)c;
	default:
		return '\0';
	}
}

/* Read after a '=', up to the end of the line. Blanks around the value are not part of it. */
static bool read_value(struct reader *r)
{
	bool quoted = false, comment = false;
	size_t solid = 0; /* the length without blanks at the end */

	cut(&r->value, 0);
	for (;;) {
		int c = next_char(r);

		if (c == '\n') {
			cut(&r->value, solid);
			return !quoted;
		}
		if (comment)
			continue;
		if (!quoted && is_blank(c)) {
			if (r->value.len)
				str_addc(&r->value, (char)c);
			continue;
		}
		if (!quoted && (c == ';' || c == '#')) {
			comment = true;
			continue;
		}
		if (c == '\\') {
			c = next_char(r);
			if (c != '\n' && !unescape(c))
				return false;
			if (c != '\n')
				str_addc(&r->value, unescape(c));
		} else if (c == '"') {
			quoted = !quoted;
		} else {
			str_addc(&r->value, (char)c);
		}
		solid = r->value.len;
	}
}

static void make_lower(char *c)
{
	for (; *c && *c != '.'; c++)
		*c = lower(*c);
}

void git_config_split(const char *name, struct git_setting *ret)
{
	char *parts = mem_strdup(name);
	char *first = strchr(parts, '.'), *last = strrchr(parts, '.');

	make_lower(parts);
	make_lower(last ? last + 1 : parts);
	ret->name = mem_strdup(name);
	ret->section = first ? parts : "";
	ret->key = last ? last + 1 : parts;
	ret->subsection = last != first ? first + 1 : NULL;
	if (first)
		*first = *last = '\0';
}

/* Read a key, whose first letter was read already, and its value. */
static bool read_setting(struct reader *r, struct git_setting *ret)
{
	int c = next_char(r);

	while (!r->ended && is_key_char(c)) {
		str_addc(&r->name, lower(c));
		c = next_char(r);
	}
	while (c == ' ' || c == '\t')
		c = next_char(r);
	if (c != '\n' && (c != '=' || !read_value(r)))
		return false;
	ret->value = c == '=' ? mem_strdup(r->value.p) : NULL;
	git_config_split(r->name.p, ret);
	return true;
}

/* A partial byte-order mark is an error. */
static void skip_mark(struct reader *r)
{
	static const char mark[] = "\xef\xbb\xbf";

	if (r->end - r->at >= 3 && !memcmp(r->at, mark, 3))
		r->at += 3;
}

static bool parse_setting(struct reader *r, struct git_setting *s, git_setting_fn *visit,
	void *ctx)
{
	size_t base = 0; /* the length of "section.subsection." */
	bool comment = false;

	skip_mark(r);
	for (;;) {
		int c = next_char(r);

		if (c == '\n' && r->ended)
			return true;
		if (c == '\n')
			comment = false;
		if (comment || is_blank(c))
			continue;
		if (c == '#' || c == ';') {
			comment = true;
		} else if (c == '[') {
			s->head = (size_t)(r->at - r->text) - 1;
			if (!read_section(r))
				return false;
			str_addc(&r->name, '.');
			base = r->name.len;
		} else {
			if (!is_letter(c))
				return false;
			cut(&r->name, base);
			str_addc(&r->name, lower(c));
			s->from = (size_t)(r->at - r->text) - 1;
			if (!read_setting(r, s))
				return false;
			s->to = (size_t)(r->at - r->text);
			visit(ctx, s);
		}
	}
}

/* ---- files ---- */

static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && major(st->st_rdev) == NULL_MAJOR &&
		minor(st->st_rdev) == NULL_MINOR;
}

/* The bytes of a file, including those after a NUL. 1, 0 or -errno as git_config_read(). */
static int read_bytes(const char *file, const char **ret, size_t *ret_n, struct fault *f)
{
	struct stat st;
	int rc = look_through(AT_FDCWD, file, &st, f), fd;
	char *text;

	if (rc <= 0)
		return rc;
	if (is_null_device(&st)) {
		*ret_n = 0;
		*ret = "";
		return 1;
	}
	if (!S_ISREG(st.st_mode)) /* opening a device may have effects */
		return fault_set(f, EINVAL, "read '%s', which is no file", str_visible(file));
	rc = look_open(AT_FDCWD, file, 0, &fd, f);
	if (rc <= 0)
		return rc;
	text = fd_read_bytes(fd, MOST_CONFIG, ret_n);
	if (!text)
		return fault_set(f, errno, "read '%s'", str_visible(file));
	*ret = text;
	return 1;
}

static int read_file(struct git_setting *s, git_setting_fn *visit, void *ctx, struct fault *f)
{
	struct reader r = { .line = 1 };
	const char *text = "";
	size_t n = 0;
	int rc = read_bytes(s->file, &text, &n, f);

	if (rc <= 0)
		return rc;
	r.text = r.at = text;
	r.end = text + n;
	if (parse_setting(&r, s, visit, ctx))
		return 1;
	fault_set(f, 0, "git's configuration '%s': git would stop at line %d",
		str_visible(s->file), r.at > text && r.at[-1] == '\n' ? r.line - 1 : r.line);
	fault_fix(f, "Mend that line; `git config --list` says the same of it.");
	return -EBADMSG;
}

bool git_config_parse(const char *text, size_t n, git_setting_fn *visit, void *ctx)
{
	struct reader r = { .line = 1, .text = text, .at = text, .end = text + n };
	struct git_setting s = { .file = "" };

	return parse_setting(&r, &s, visit, ctx);
}

int git_config_read(const char *file, git_setting_fn *visit, void *ctx, struct fault *f)
{
	struct git_setting s = { .file = file };

	return read_file(&s, visit, ctx, f);
}

/* ---- includes ---- */

bool git_config_is_include(const struct git_setting *s)
{
	if (strcmp(s->key, "path") != 0)
		return false;
	return s->subsection ? !strcmp(s->section, "includeif")
			     : !strcmp(s->section, "include");
}

/*
 * A static program cannot query NSS without loading it, so users are looked up only in
 * /etc/passwd.
 */
static const char *home_of(const char *user, size_t n)
{
	enum { HOME = 5 };
	char *text = fd_read_file(AT_FDCWD, "/etc/passwd", MOST_PASSWD);

	for (char *line = text; line && *line; line += *line == '\n') {
		if (!strncmp(line, user, n) && line[n] == ':') {
			for (int i = 0; i < HOME && *line && *line != '\n';
				line += *line == ':') {
				line += strcspn(line, ":\n");
				i++;
			}
			return mem_strndup(line, strcspn(line, ":\n"));
		}
		line += strcspn(line, "\n");
	}
	return NULL;
}

const char *git_config_expand(const char *value)
{
	static const char optional[] = ":(optional)";
	const char *home;
	size_t n;

	if (str_starts(value, optional))
		value += sizeof(optional) - 1;
	if (value[0] != '~')
		return value;
	n = strcspn(value, "/");
	home = n == 1 ? getenv("HOME") : home_of(value + 1, n - 1);
	return home ? mem_printf("%s%s", home, value + n) : NULL;
}

const char *git_config_include_path(const struct git_setting *s)
{
	const char *path = s->value ? git_config_expand(s->value) : NULL;

	return path ? path_join(path_parent(s->file), path) : NULL;
}

struct include_seen {
	const char *file;
	int depth;
	bool conditional;
};

struct includes {
	git_setting_fn *visit;
	void *ctx;
	struct fault *f;
	VEC(struct include_seen) seen;
	int depth, rc;
};

static int read_deeper(struct includes *in, const char *file, bool conditional);

static void visit_included(void *ctx, const struct git_setting *s)
{
	struct includes *in = ctx;
	const char *path;

	in->visit(in->ctx, s);
	path = in->rc >= 0 && git_config_is_include(s) ? git_config_include_path(s) : NULL;
	if (!path)
		return;
	in->depth++;
	in->rc = read_deeper(in, path, s->conditional || s->subsection);
	in->depth--;
}

/*
 * Read each file once, even if others include it again or in a circle. There are two
 * exceptions: nearer to the top, because git's depth limit then allows more of its includes;
 * and without a condition, because git then stops at its errors.
 */
static bool was_read(const struct includes *in, const char *file, bool conditional)
{
	vec_each(known, &in->seen)
		if (!strcmp(known->file, file))
			return known->depth <= in->depth &&
				(conditional || !known->conditional);
	return false;
}

static void note_read(struct includes *in, const char *file, bool conditional)
{
	struct include_seen now = { .file = file, .depth = in->depth, conditional };

	vec_each(known, &in->seen)
		if (!strcmp(known->file, file)) {
			known->depth = now.depth < known->depth ? now.depth : known->depth;
			known->conditional &= conditional;
			return;
		}
	vec_push(&in->seen, now);
}

static int read_deeper(struct includes *in, const char *file, bool conditional)
{
	struct git_setting s = { .file = file, .conditional = conditional };
	int rc;

	if (was_read(in, file, conditional))
		return 1;
	if (in->seen.n == MOST_FILES)
		return fault_set(in->f, E2BIG, "read git's configuration '%s'",
			str_visible(file));
	if (in->depth > MOST_DEPTH && !conditional) {
		fault_set(in->f, 0,
			"git's configuration '%s': git would stop at it, because it is "
			"included by more than %d files in turn",
			str_visible(file), MOST_DEPTH);
		return -EBADMSG;
	}
	if (in->depth > MOST_DEPTH)
		return 1;
	note_read(in, file, conditional);
	rc = read_file(&s, visit_included, in, in->f);
	if (in->rc < 0)
		return in->rc;
	return rc == -EBADMSG && conditional ? 1 : rc;
}

int git_config_read_all(const char *file, git_setting_fn *visit, void *ctx, struct fault *f)
{
	struct includes in = { .visit = visit, .ctx = ctx, .f = f };

	return read_deeper(&in, file, false);
}

/* ---- values ---- */

bool git_config_is_true(const char *value)
{
	char *end;

	if (!value || !strcasecmp(value, "true") || !strcasecmp(value, "yes") ||
		!strcasecmp(value, "on"))
		return true;
	/* A unit may follow the number; it does not change whether that is zero. */
	return strtoll(value, &end, 0) != 0 && end != value;
}

struct lookup {
	const char *section, *key, *value;
};

static void match_setting(void *ctx, const struct git_setting *s)
{
	struct lookup *l = ctx;

	if (!s->subsection && !strcmp(s->section, l->section) && !strcmp(s->key, l->key))
		l->value = s->value;
}

const char *git_config_value(const char *file, const char *section, const char *key)
{
	struct lookup l = { .section = section, .key = key };
	struct fault f;
	int rc = git_config_read(file, match_setting, &l, &f);

	if (rc < 0 && rc != -EBADMSG && rc != -EINVAL)
		git_not_seen(&f);
	return rc == 1 ? l.value : NULL;
}

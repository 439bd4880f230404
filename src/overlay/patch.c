/*
 * overlay/patch.c - changes as text, in git's patch format
 *
 * The tests check the exact form with `git apply --check`. As with git, a change of type is a
 * deletion and an addition.
 */
#include "overlay/patch.h"
#include "overlay/changeset.h"
#include "base/diff.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
	MOST_SHOWN = 1 << 20,
	MOST_EXACT = 256 << 20,
};

#define NO_BLOB "0000000000000000000000000000000000000000"

/* One side of a change, for a patch. */
struct side {
	const struct changed_side *of; /* NULL: absent */
	const char *bytes;
	size_t n;
	bool unread; /* too big to be shown, or unreadable */
};

struct sides {
	struct side old, new;
	const struct changed *c;
};

void patch_add_name(struct str *out, const char *prefix, const char *path)
{
	bool plain = true;

	for (const char *p = path; *p; p++)
		plain &= (unsigned char)*p >= ' ' && (unsigned char)*p < 0x7f && *p != '"' &&
			*p != '\\';
	if (plain) {
		str_addf(out, "%s%s", prefix, path);
		return;
	}
	str_addf(out, "\"%s", prefix);
	for (const char *p = path; *p; p++)
		if (*p == '"' || *p == '\\')
			str_addf(out, "\\%c", *p);
		else if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f)
			str_addf(out, "\\%03o", (unsigned char)*p);
		else
			str_addc(out, *p);
	str_addc(out, '"');
}

/* ---- reading ---- */

static bool in_patch(const struct changed_side *s)
{
	return s->type == TYPE_FILE || s->type == TYPE_LINK;
}

static int read_side(const struct changeset *set, const struct changed *c, bool box,
	size_t most, struct side *ret)
{
	const struct changed_side *of = box ? &c->box : &c->base;
	int fd;

	*ret = (struct side){ .of = in_patch(of) ? of : NULL };
	if (!ret->of)
		return 0;
	if (of->type == TYPE_LINK) {
		ret->bytes = of->link;
		ret->n = strlen(of->link);
		return 0;
	}
	ret->unread = of->size > most;
	if (ret->unread)
		return -EFBIG;
	fd = box ? changeset_open_box(set, c) : changeset_open_base(set, c);
	if (fd >= 0)
		ret->bytes = fd_read_bytes(fd, (size_t)of->size, &ret->n);
	ret->unread = !ret->bytes;
	return fd < 0 ? fd : ret->bytes ? 0 : -errno;
}

static int read_sides(const struct changeset *set, const struct changed *c, size_t most,
	struct sides *ret)
{
	int rc, second;

	ret->c = c;
	rc = read_side(set, c, false, most, &ret->old);
	second = read_side(set, c, true, most, &ret->new);
	return rc < 0 ? rc : second;
}

static bool is_binary(const struct side *s)
{
	return s->bytes && memchr(s->bytes, '\0', s->n);
}

/* ---- heads ---- */

static unsigned int git_mode(const struct changed_side *s, bool exact)
{
	if (s->type == TYPE_LINK)
		return 0120000;
	if (exact)
		return s->mode & 0100 ? 0100755 : 0100644;
	return 0100000 | s->mode;
}

static void add_bold(struct str *out, const struct patch_style *style, const char *line)
{
	str_addf(out, "%s%s%s\n", style->colour ? "\033[1m" : "", line,
		style->colour ? "\033[m" : "");
}

static void add_head(struct str *out, const struct sides *s, const struct patch_style *style)
{
	struct str line = { 0 };
	unsigned int old = s->old.of ? git_mode(s->old.of, style->exact) : 0;
	unsigned int new = s->new.of ? git_mode(s->new.of, style->exact) : 0;

	str_add(&line, "diff --git ");
	patch_add_name(&line, "a/", s->c->path);
	str_addc(&line, ' ');
	patch_add_name(&line, "b/", s->c->path);
	add_bold(out, style, line.p);
	if (!old) {
		add_bold(out, style, mem_printf("new file mode %06o", new));
	} else if (!new) {
		add_bold(out, style, mem_printf("deleted file mode %06o", old));
	} else if (old != new) {
		add_bold(out, style, mem_printf("old mode %06o", old));
		add_bold(out, style, mem_printf("new mode %06o", new));
	}
}

static void add_file_line(struct str *out, const char *mark, const char *prefix,
	const struct side *side, const char *path, const struct patch_style *style)
{
	struct str line = { 0 };

	str_add(&line, mark);
	if (side->of)
		patch_add_name(&line, prefix, path);
	else
		str_add(&line, "/dev/null");
	/* A tab ends a name that has a space in it. */
	if (side->of && strchr(path, ' ') && line.p[strlen(mark)] != '"')
		str_addc(&line, '\t');
	add_bold(out, style, line.p);
}

/* ---- contents ---- */

static void add_text(struct str *out, const struct sides *s, const struct patch_style *style)
{
	const struct diff_how how = { .exact = style->exact, .colour = style->colour };

	add_file_line(out, "--- ", "a/", &s->old, s->c->path, style);
	add_file_line(out, "+++ ", "b/", &s->new, s->c->path, style);
	diff_add_how(out, s->old.bytes, s->old.n, s->new.bytes, s->new.n, &how);
}

static const char *blob_of(const struct side *s)
{
	return s->of ? hash_git_blob(s->bytes, s->n) : NO_BLOB;
}

static void add_binary(struct str *out, const struct sides *s, const struct patch_style *style)
{
	if (!style->exact) {
		str_add(out, "Binary files differ\n");
		return;
	}
	str_addf(out, "index %s..%s", blob_of(&s->old), blob_of(&s->new));
	if (s->old.of && s->new.of &&git_mode(s->old.of, true) == git_mode(s->new.of, true))
		str_addf(out, " %06o", git_mode(s->new.of, true));
	str_addc(out, '\n');
	patch_add_binary(out, s->old.of ? s->old.bytes : NULL, s->old.n,
		s->new.of ? s->new.bytes : NULL, s->new.n);
}

static bool same_contents(const struct sides *s)
{
	return !s->old.n == !s->new.n && s->old.n == s->new.n &&
		(!s->old.n || !memcmp(s->old.bytes, s->new.bytes, s->old.n));
}

static void add_sides(struct str *out, const struct sides *s, const struct patch_style *style)
{
	size_t before = out->len;

	add_head(out, s, style);
	if (s->old.unread || s->new.unread)
		str_add(out, "Files differ; too large to show, or not readable\n");
	else if (!same_contents(s) && (is_binary(&s->old) || is_binary(&s->new)))
		add_binary(out, s, style);
	else if (!same_contents(s))
		add_text(out, s, style);
	else if (style->exact && s->old.of &&
		s->new.of &&git_mode(s->old.of, true) == git_mode(s->new.of, true))
		out->len = before, out->p[before] = '\0'; /* git does not record this */
}

/* Note what a patch cannot express. */
static void add_note(struct str *out, const struct changed *c, const struct patch_style *style)
{
	static const char *const types[] = {
		[TYPE_NONE] = "nothing",
		[TYPE_FILE] = "file",
		[TYPE_DIR] = "directory",
		[TYPE_LINK] = "link",
		[TYPE_OTHER] = "special file",
	};
	struct str line = { 0 };

	if (c->kind == CHANGED_DELETED)
		str_addf(&line, "deleted %s ", types[c->base.type]);
	else if (c->kind == CHANGED_ADDED)
		str_addf(&line, "new %s ", types[c->box.type]);
	else
		str_addf(&line, "%s ", types[c->box.type]);
	patch_add_name(&line, "", c->path);
	if (c->what & WHAT_MODE)
		str_addf(&line, ": mode %04o → %04o", c->base.mode, c->box.mode);
	if (c->what & WHAT_XATTRS)
		str_add(&line, ": extended attributes changed");
	if (c->unlisted)
		str_add(&line, ": what is in it cannot be listed");
	add_bold(out, style, line.p);
}

static int unpatchable(const struct changed *c, int rc, struct fault *f)
{
	fault_set(f, -rc, "a patch of '%s'", str_visible(c->path));
	return fault_fix(f, "Leave it out: name the paths that you want; or use --export.");
}

int patch_add(struct str *out, const struct changeset *set, const struct changed *c,
	const struct patch_style *style, struct fault *f)
{
	struct sides s, half;
	int rc = read_sides(set, c, style->exact ? MOST_EXACT : MOST_SHOWN, &s);

	if (rc < 0 && style->exact)
		return unpatchable(c, rc, f);
	if (!style->exact && (!s.old.of || !s.new.of) &&
		((c->base.type != TYPE_NONE && !s.old.of) ||
			(c->box.type != TYPE_NONE && !s.new.of)))
		add_note(out, c, style);
	else if (!style->exact && c->what & WHAT_XATTRS)
		add_note(out, c, style);
	if (!s.old.of && !s.new.of)
		return 0;
	if (s.old.of && s.new.of &&s.old.of->type != s.new.of->type) {
		half = s;
		half.new = (struct side){ 0 };
		add_sides(out, &half, style);
		s.old = (struct side){ 0 };
	}
	add_sides(out, &s, style);
	return 0;
}

bool patch_count(const struct changeset *set, const struct changed *c, size_t *ret_added,
	size_t *ret_removed)
{
	void *mark = mem_mark(); /* there may be a million of them */
	struct sides s;
	bool text = read_sides(set, c, MOST_SHOWN, &s) == 0 && (s.old.of || s.new.of) &&
		!is_binary(&s.old) && !is_binary(&s.new);

	if (text)
		diff_count(s.old.bytes, s.old.n, s.new.bytes, s.new.n, ret_added, ret_removed);
	mem_reset(mark);
	return text;
}

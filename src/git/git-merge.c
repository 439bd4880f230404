#include "git/git-merge.h"
#include "git/git-allow.h"
#include "git/git-config.h"
#include "base/fault.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SETTINGS = 20000, MOST_EDITS = 1000 };

/* ---- writing ---- */

void git_write_section(struct str *out, const char *section, const char *subsection)
{
	str_addf(out, "[%s", section);
	if (subsection) {
		str_add(out, " \"");
		for (const char *c = subsection; *c; c++) {
			if (*c == '"' || *c == '\\')
				str_addc(out, '\\');
			str_addc(out, *c);
		}
		str_addc(out, '"');
	}
	str_add(out, "]\n");
}

static void write_escaped(struct str *out, const char *value)
{
	for (const char *c = value; *c; c++) {
		if (*c == '\n')
			str_add(out, "\\n");
		else if (*c == '\t')
			str_add(out, "\\t");
		else if (*c == '"' || *c == '\\')
			str_addf(out, "\\%c", *c);
		else
			str_addc(out, *c);
	}
}

void git_write_setting(struct str *out, const char *key, const char *value)
{
	size_t n = strlen(value);
	bool quoted = n && (value[0] == ' ' || value[n - 1] == ' ' || strpbrk(value, ";#"));

	str_addf(out, "\t%s = %s", key, quoted ? "\"" : "");
	write_escaped(out, value);
	str_add(out, quoted ? "\"\n" : "\n");
}

/* ---- lists of settings, sorted by name ---- */

struct list {
	const struct git_text *text;
	VEC(struct git_setting) v;
};

static void collect_setting(void *ctx, const struct git_setting *s)
{
	struct list *l = ctx;

	if (l->v.n <= MOST_SETTINGS)
		vec_push(&l->v, *s);
}

static int compare_settings(const void *a, const void *b)
{
	const struct git_setting *x = a, *y = b;
	int by_name = strcmp(x->name, y->name);

	return by_name ? by_name : (x->from > y->from) - (x->from < y->from);
}

static int read_list(const struct git_text *text, const char *whose, struct list *ret,
	struct fault *f)
{
	*ret = (struct list){ .text = text };
	if (!git_config_parse(text->p, text->n, collect_setting, ret)) {
		fault_set(f, 0, "git could not read %s", whose);
		return -EBADMSG;
	}
	if (ret->v.n > MOST_SETTINGS) {
		fault_set(f, 0, "there are more than %d settings in %s", MOST_SETTINGS, whose);
		return -E2BIG;
	}
	if (ret->v.n) /* an empty list has no array, which qsort(3) must not be given */
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), compare_settings);
	return 0;
}

/* The settings of one name: neighbours in a list. */
struct run {
	const struct git_setting *v;
	size_t n;
};

static struct run find_run(const struct list *l, const char *name)
{
	size_t low = 0, high = l->v.n, n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(l->v.v[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + n < l->v.n && !strcmp(l->v.v[low + n].name, name))
		n++;
	return (struct run){ l->v.n ? l->v.v + low : NULL, n };
}

static bool same_value(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool same(struct run a, struct run b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (!same_value(a.v[i].value, b.v[i].value))
			return false;
	return true;
}

/* ---- what changes ---- */

struct edit {
	struct run is, will; /* in the host's list, in the box's */
};

struct work {
	struct list base, box, now;
	VEC(struct edit) edits;
	struct git_merge *ret;
};

static const struct git_setting *of(struct run a, struct run b)
{
	return a.n ? a.v : b.v;
}

/* Does the host have this remote, or will it get it? */
static bool has_remote(const struct work *w, const char *name)
{
	const char *url = mem_printf("remote.%s.url", name);

	if (!strcmp(name, ".") || find_run(&w->now, url).n)
		return true;
	vec_each(edit, &w->edits)
		if (edit->will.n && !strcmp(edit->will.v->name, url))
			return true;
	return false;
}

static bool good_values(const struct work *w, const struct git_allow *allow, struct run values)
{
	for (size_t i = 0; i < values.n; i++) {
		const char *value = values.v[i].value ? values.v[i].value : "true";

		if (!allow->good(value) || (allow->remote && !has_remote(w, value)))
			return false;
	}
	return true;
}

static void refuse_setting(struct work *w, const char *name, const char *why)
{
	vec_push(&w->ret->refused, ((struct git_refusal){ name, why }));
}

static void note_dropped(struct work *w, const struct git_allow *allow, struct run will)
{
	for (size_t i = 0; allow->told && i < will.n; i++)
		vec_push(&w->ret->told,
			mem_printf("%s = %s", will.v[i].name,
				will.v[i].value ? will.v[i].value : "true"));
}

/*
 * `git branch -m` also moves what other programs have recorded about a branch. So any key of a
 * section "branch" may be removed, or added with a value that some branch had before.
 */
static bool is_moved(const struct work *w, const struct git_setting *s, struct run will)
{
	struct git_setting ordinary = *s;

	ordinary.key = "merge";
	if (strcmp(s->section, "branch") != 0 || !git_allow_out(&ordinary)->good)
		return false;
	for (size_t i = 0; i < will.n; i++) {
		bool known = false;

		vec_each(old, &w->base.v)
			known |= old->subsection && !strcmp(old->section, "branch") &&
				!strcmp(old->key, s->key) &&
				same_value(old->value, will.v[i].value);
		if (!known)
			return false;
	}
	return true;
}

/* One setting that the box has changed. */
static void judge_setting(struct work *w, struct run was, struct run will)
{
	const struct git_setting *s = of(will, was);
	const struct git_allow *allow = git_allow_out(s);
	struct run is = find_run(&w->now, s->name);

	if (same(is, will))
		return;
	if (!allow->good && !is_moved(w, s, will))
		refuse_setting(w, s->name, NULL);
	else if (allow->good && !good_values(w, allow, will))
		refuse_setting(w, s->name, "the value is more than plain data");
	else if (will.n && allow->of_remote && !has_remote(w, s->subsection))
		refuse_setting(w, s->name, "there is no such remote");
	else if (!will.n && allow->good && !allow->goes)
		refuse_setting(w, s->name, "it would be removed");
	else if (!same(is, was))
		refuse_setting(w, s->name, "it changed on the host, too");
	else if (w->edits.n == MOST_EDITS)
		refuse_setting(w, s->name, "too much changed");
	else {
		vec_push(&w->edits, ((struct edit){ is, will }));
		note_dropped(w, allow, will);
	}
}

static bool needs_remote(const struct git_setting *s)
{
	return git_allow_out(s)->remote || git_allow_out(s)->of_remote;
}

/* Settings of a remote come last, because the remote itself may be new. */
static void judge_all(struct work *w, bool remotes)
{
	const struct list *lists[] = { &w->box, &w->base };

	for (int i = 0; i < 2; i++) {
		const char *last = "";

		vec_each(s, &lists[i]->v) {
			struct run was, will;

			if (!strcmp(s->name, last))
				continue;
			last = s->name;
			will = find_run(&w->box, last);
			if ((i == 1 && will.n) || needs_remote(s) != remotes)
				continue;
			was = find_run(&w->base, last);
			if (!same(was, will))
				judge_setting(w, was, will);
		}
	}
}

/* ---- the new text ---- */

/* Bytes of the host's text to remove, and the replacement. */
struct change {
	size_t from, to;
	const char *text;
};

struct changes {
	const struct work *w;
	VEC(struct change) v;
	struct str tail;                /* new sections, at the end */
	const struct git_setting *last; /* of the tail's last section */
};

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static bool same_section(const struct git_setting *a, const struct git_setting *b)
{
	return !strcmp(a->section, b->section) && same_value(a->subsection, b->subsection);
}

/* The host's last setting in the same section, after a section head. */
static const struct git_setting *neighbour(const struct work *w, const struct git_setting *s)
{
	const struct git_setting *last = NULL;

	vec_each(now, &w->now.v)
		if (same_section(now, s) && (!last || now->to > last->to))
			last = now;
	return last;
}

static void write_run(const struct work *w, struct run run, struct str *out)
{
	for (size_t i = 0; i < run.n; i++) {
		const struct git_setting *s = &run.v[i];

		git_write_setting(out, mem_strndup(w->box.text->p + s->from, strlen(s->key)),
			s->value ? s->value : "true");
	}
}

static void add_values(struct changes *c, struct run will)
{
	const struct git_setting *in = will.n ? neighbour(c->w, will.v) : NULL;
	struct str lines = { 0 };

	if (!will.n)
		return;
	if (in) {
		if (c->w->now.text->p[in->to - 1] != '\n')
			str_addc(&lines, '\n');
		write_run(c->w, will, &lines);
		vec_push(&c->v, ((struct change){ in->to, in->to, lines.p }));
		return;
	}
	if (!c->last || !same_section(c->last, will.v))
		git_write_section(&c->tail, will.v->section, will.v->subsection);
	c->last = will.v;
	write_run(c->w, will, &c->tail);
}

/* Cut from the beginning of the line, if nothing else is on it. */
static void cut(struct changes *c, const struct git_setting *s)
{
	const char *text = c->w->now.text->p;
	size_t from = s->from, to = s->to;

	while (from && (text[from - 1] == ' ' || text[from - 1] == '\t'))
		from--;
	if (from && text[from - 1] != '\n') {
		from = s->from;
		to -= to > from && text[to - 1] == '\n';
	}
	vec_push(&c->v, ((struct change){ from, to, "" }));
}

static bool is_edited(const struct work *w, const struct git_setting *s)
{
	vec_each(edit, &w->edits)
		if (edit->is.n && s >= edit->is.v && s < edit->is.v + edit->is.n)
			return true;
	return false;
}

static size_t skip_blanks(const struct git_text *text, size_t at)
{
	while (at < text->n && strchr(" \t\r\n", text->p[at]) && text->p[at])
		at++;
	return at;
}

static bool is_added_to(const struct work *w, const struct git_setting *s)
{
	vec_each(edit, &w->edits)
		if (edit->will.n && same_section(edit->will.v, s))
			return true;
	return false;
}

/* Remove a section whose settings are all removed, if only blanks are left in it. */
static void cut_section(struct changes *c, const struct git_setting *first)
{
	const struct git_text *text = c->w->now.text;
	size_t at, from = first->head, end = first->head;

	if (is_added_to(c->w, first))
		return;
	/*
	 * Search back for the bracket before the first of them; a subsection may contain
	 * brackets.
	 */
	for (at = first->from; at > from && strchr(" \t\r\n", text->p[at - 1]); at--)
		;
	if (at == from || text->p[at - 1] != ']')
		return;
	for (bool more = true; more;) {
		more = false;
		at = skip_blanks(text, at);
		vec_each(s, &c->w->now.v)
			if (s->head == from && s->from == at) {
				if (!is_edited(c->w, s))
					return;
				at = end = s->to;
				more = true;
			}
	}
	if (at < text->n && text->p[at] != '[')
		return;
	vec_push(&c->v, ((struct change){ from, end, "" }));
}

/* Sorted; a cut inside an earlier cut adds nothing. */
static void render(struct changes *c, struct str *out)
{
	const struct git_text *text = c->w->now.text;
	size_t at = 0;

	if (c->v.n)
		qsort(c->v.v, c->v.n, sizeof(*c->v.v), compare_changes);
	vec_each(change, &c->v) {
		if (change->from > at)
			str_addn(out, text->p + at, change->from - at);
		str_add(out, change->text);
		if (change->to > at)
			at = change->to;
		else if (change->from > at)
			at = change->from;
	}
	str_addn(out, text->p + at, text->n - at);
	if (c->tail.len && out->len && out->p[out->len - 1] != '\n')
		str_addc(out, '\n');
	if (c->tail.len)
		str_add(out, c->tail.p);
}

/* Check that the result has exactly the wanted settings. */
static bool is_as_wanted(const struct work *w, const struct list *made)
{
	size_t n = w->now.v.n;

	vec_each(edit, &w->edits) {
		const struct git_setting *s = of(edit->will, edit->is);

		n = n - edit->is.n + edit->will.n;
		for (size_t i = 0; i < edit->will.n; i++)
			if (find_run(made, s->name).n != edit->will.n ||
				strcmp(find_run(made, s->name).v[i].value,
					edit->will.v[i].value ? edit->will.v[i].value : "true"))
				return false;
		if (!edit->will.n && find_run(made, s->name).n)
			return false;
	}
	vec_each(s, &w->now.v)
		if (!is_edited(w, s) &&
			!same(find_run(made, s->name), find_run(&w->now, s->name)))
			return false;
	return n == made->v.n;
}

/* In the order of the box's text, so that related settings stay together. */
static int compare_edits(const void *a, const void *b)
{
	const struct edit *x = a, *y = b;
	size_t at = x->will.n ? x->will.v->from : 0, other = y->will.n ? y->will.v->from : 0;

	return (at > other) - (at < other);
}

static void make_changes(struct changes *c)
{
	vec_each(edit, &c->w->edits) {
		for (size_t i = 0; i < edit->is.n; i++)
			cut(c, &edit->is.v[i]);
		add_values(c, edit->will);
		if (edit->is.n && !edit->will.n)
			cut_section(c, edit->is.v);
	}
}

/* If a program truncated the copy, it did not mean to remove all branches. */
static bool is_whole(const struct work *w)
{
	static const char always[] = "core.repositoryformatversion";

	return find_run(&w->box, always).n || !find_run(&w->base, always).n;
}

int git_merge(const struct git_text *base, const struct git_text *box,
	const struct git_text *now, struct git_merge *ret, struct fault *f)
{
	struct git_merge merge = { 0 };
	struct work w = { .ret = &merge };
	struct changes c = { .w = &w };
	struct str out = { 0 };
	struct list made;
	int rc;

	if ((rc = read_list(base, "what the box began with", &w.base, f)) < 0 ||
		(rc = read_list(box, "what the box left", &w.box, f)) < 0 ||
		(rc = read_list(now, "what the host has", &w.now, f)) < 0)
		return rc;
	if (!is_whole(&w))
		return fault_set(f, 0, "the box's copy is no configuration of a repository");
	judge_all(&w, false);
	judge_all(&w, true);
	merge.taken = w.edits.n;
	if (w.edits.n) {
		qsort(w.edits.v, w.edits.n, sizeof(*w.edits.v), compare_edits);
		make_changes(&c);
		render(&c, &out);
		merge.text = (struct git_text){ out.p, out.len };
		rc = read_list(&merge.text, "the result", &made, f);
		if (rc < 0 || !is_as_wanted(&w, &made))
			return fault_set(f, 0, "the changes do not go together");
	}
	*ret = merge;
	return 0;
}

/*
 * plan/rules.c - protected and hidden paths, as mounts on top of mounts
 *
 * A read-only mount on .git/hooks alone is no protection: `mv .git x` and the name
 * is free again. A mount point cannot be renamed or removed, so every directory
 * (and every symlink) between the writable root and the protected path becomes one:
 * it is mounted over itself, a pin. A protected name that is absent gets a stub to
 * hang the mount on (box/native/stub.h).
 *
 * A rule is about a path of the host, and that path may be reached through more than
 * one bind (`--mount` of the parent, say). So each rule is laid on every bind that
 * shows the path; hidden ones on all, protected ones where the bind is writable.
 */
#include "plan/internal.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of two masks at one target, the stronger stays. */
static int strength(enum place_kind kind)
{
	return kind == PLACE_HIDE ? 3 : kind == PLACE_PROTECT ? 2 : kind == PLACE_STUB ? 1 : 0;
}

static int compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int by_path = path_compare(x->target, y->target);
	int by_strength = strength(y->kind) - strength(x->kind);

	/* The reason last, so that the plan does not depend on how qsort(3) is made. */
	return by_path ? by_path : by_strength ? by_strength : strcmp(x->why, y->why);
}

/* The bind that is on top at target: the last and deepest whose target holds it. */
static const struct place *bind_at(const struct plan *p, size_t n, const char *target)
{
	while (n-- > 0)
		if (path_within(target, p->places.v[n].target))
			return &p->places.v[n];
	return NULL;
}

static enum place_kind mask_kind(const struct rule *rule, const struct fact *fact, bool last)
{
	if (!last || fact->kind == KIND_LINK)
		return PLACE_PIN;
	if (fact->kind == KIND_ABSENT)
		return PLACE_STUB;
	return rule->kind == RULE_HIDE ? PLACE_HIDE : PLACE_PROTECT;
}

typedef VEC(struct place) place_vec;

/* Lay one rule on one bind. */
static void add_masks(const struct plan *p, size_t n, const struct place *bind,
	const struct rule *rule, place_vec *masks)
{
	for (size_t i = 0; i < rule->trail.n; i++) {
		const struct fact *fact = &rule->trail.v[i];
		bool last = i + 1 == rule->trail.n;
		enum place_kind kind = mask_kind(rule, fact, last);
		const char *target;

		if (!path_within(fact->path, bind->source) || !strcmp(fact->path, bind->source))
			continue;
		if (kind == PLACE_STUB && rule->kind == RULE_HIDE)
			continue; /* nothing there to hide */
		if (kind == PLACE_PIN && !bind->rw)
			continue; /* nothing can be renamed there */
		target = path_join(bind->target, path_below(fact->path, bind->source));
		if (bind_at(p, n, target) != bind)
			continue;
		vec_push(masks,
			((struct place){ .kind = kind,
				.target = target,
				.source = fact->path,
				.inode = fact->inode,
				.text = kind == PLACE_STUB ? rule->stub : NULL,
				.why = rule->why,
				.rw = kind == PLACE_PIN,
				.dir = fact->kind == KIND_DIR }));
	}
}

/*
 * Sorted by path: drop what a mask already in the list makes unnecessary. Below a hidden
 * path there is nothing left to lay on; below a read-only one nothing can be renamed, so
 * only hiding still adds something.
 */
static void keep_needed(struct plan *p, const place_vec *masks)
{
	const struct place *hidden = NULL, *fixed = NULL, *before = NULL;

	vec_each(m, masks) {
		if (before && !strcmp(before->target, m->target))
			continue;
		before = m;
		if (hidden && path_within(m->target, hidden->target))
			continue;
		if (fixed && path_within(m->target, fixed->target) && m->kind != PLACE_HIDE)
			continue;
		if (m->kind == PLACE_HIDE)
			hidden = m;
		if (m->kind == PLACE_PROTECT && m->dir)
			fixed = m;
		vec_push(&p->places, *m);
	}
}

/* What a rule is about, if the whole of a bind lies in it. */
static const struct fact *holds(const struct rule *rule, const char *source)
{
	const struct fact *last = rule->trail.n ? &rule->trail.v[rule->trail.n - 1] : NULL;

	return last && last->kind != KIND_ABSENT && last->kind != KIND_LINK &&
			path_within(source, last->path)
		? last
		: NULL;
}

/*
 * A mask is laid on a path below a bind's source. A bind of the very path, or of something
 * in it, shows it bare: what the user asks for by name on the command line, a manifest cannot
 * have.
 */
static int check_bind(const struct host *h, const struct place *bind, struct fault *f)
{
	vec_each(rule, &h->rules) {
		const struct fact *in = holds(rule, bind->source);

		if (!in)
			continue;
		if (rule->kind == RULE_HIDE)
			return fault_set(f, 0, "%s is to be mounted, and hidden (%s)",
				str_visible(bind->source), rule->why);
		if (bind->rw)
			return fault_set(f, 0,
				"%s is to be mounted writable, and protected (%s)",
				str_visible(bind->source), rule->why);
	}
	return 0;
}

int plan_add_rules(const struct host *h, struct plan *p, struct fault *f)
{
	size_t n = p->places.n, most = 0;
	place_vec masks = { 0 };

	vec_each(rule, &h->rules)
		most += rule->trail.n;
	vec_reserve(&masks, most); /* as a rule, each on one bind */
	for (size_t i = 0; i < n; i++) {
		struct place bind = p->places.v[i];

		if (bind.kind != PLACE_BIND || bind.device)
			continue;
		if (bind.declared && check_bind(h, &bind, f) < 0)
			return -EINVAL;
		vec_each(rule, &h->rules) {
			if (rule->kind == RULE_PROTECT && !bind.rw)
				continue;
			add_masks(p, n, &p->places.v[i], rule, &masks);
		}
	}
	if (!masks.n)
		return 0;
	qsort(masks.v, masks.n, sizeof(*masks.v), compare);
	keep_needed(p, &masks);
	/* A pin after a mount that lies in it would cover that up. */
	qsort(p->places.v, p->places.n, sizeof(*p->places.v), compare);
	return 0;
}

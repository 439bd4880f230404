/*
 * plan/rules.c - protected and hidden paths, as mounts on top of mounts
 *
 * A read-only mount on .git/hooks alone is no protection: `mv .git x` and the name
 * is free again. A mount point cannot be renamed or removed, so every directory
 * (and every symlink) between the writable root and the protected path becomes one:
 * it is mounted over itself, a pin. A protected name that is absent gets a stub to
 * hang the mount on (box/stubs.h).
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

/* The stronger of two masks at one target stays. */
static int strength(enum place_kind kind)
{
	return kind == PLACE_HIDE       ? 4
		: kind == PLACE_PROTECT ? 3
		: kind == PLACE_CONFIG  ? 2
		: kind == PLACE_STUB    ? 1
					: 0;
}

static int compare_masks(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int by_path = path_compare(x->target, y->target);
	int by_strength = strength(y->kind) - strength(x->kind);

	/* Compare everything that may differ, so that the plan does not depend on qsort(3). */
	return by_path             ? by_path
		: by_strength      ? by_strength
		: x->dir != y->dir ? y->dir - x->dir
				   : strcmp(x->why, y->why);
}

/* The topmost bind at target: the last and deepest one that contains it. */
static const struct place *bind_at(const struct plan *p, size_t n, const char *target)
{
	while (n-- > 0)
		if (path_within(target, p->places.v[n].target))
			return &p->places.v[n];
	return NULL;
}

static enum place_kind mask_kind(const struct rule *rule, const struct fact *fact, bool last)
{
	if (!last || fact->kind == KIND_LINK || rule->kind == RULE_OPEN ||
		(rule->kind == RULE_PIN && fact->kind != KIND_ABSENT))
		return PLACE_PIN;
	if (fact->kind == KIND_ABSENT)
		return rule->copy ? PLACE_CONFIG : PLACE_STUB;
	if (rule->kind == RULE_HIDE)
		return PLACE_HIDE;
	return rule->copy ? PLACE_CONFIG : PLACE_PROTECT;
}

/* One rule's mask at a part of its path. */
static struct place mask(const struct rule *rule, const struct fact *fact, enum place_kind kind,
	const char *target)
{
	bool stub = kind == PLACE_STUB, open = rule->kind == RULE_OPEN;

	return (struct place){ .kind = kind,
		.target = target,
		.source = fact->path,
		.inode = fact->inode,
		.text = stub                   ? rule->stub
			: kind == PLACE_CONFIG ? rule->copy_at
					       : NULL,
		.neutral = stub ? rule->neutral : NULL,
		.why = rule->why,
		.rw = kind == PLACE_PIN,
		.dir = fact->kind == KIND_DIR || ((stub || open) && rule->dir && !rule->stub),
		.open = open,
		.stub = (open || kind == PLACE_CONFIG) && fact->kind == KIND_ABSENT };
}

/* The path of the host that a place shows: of layers the lowest. */
static const char *shown_path(const struct place *bind)
{
	size_t last = 0;

	while (bind->layer && bind->lowers[last + 1])
		last++;
	return bind->layer ? bind->lowers[last] : bind->source;
}

/*
 * Could the box break the rule at this place? Changes on a layer never reach the host by
 * themselves, and `carrel apply` refuses protected names. So a layer gets only the rules that
 * were asked for by name, and no pins or stubs: a pin would lead around the layer, to the
 * host's own directory.
 */
static bool is_laid(const struct rule *rule, const struct place *bind)
{
	if (rule->kind == RULE_HIDE)
		return true;
	return bind->layer ? rule->kind == RULE_PROTECT && rule->asked : bind->rw;
}

/* Lay one rule on one bind. */
static void add_masks(const struct plan *p, size_t n, const struct place *bind,
	const struct rule *rule, place_vec *masks)
{
	for (size_t i = 0; i < rule->trail.n; i++) {
		const struct fact *fact = &rule->trail.v[i];
		bool last = i + 1 == rule->trail.n && !rule->elsewhere;
		enum place_kind kind = mask_kind(rule, fact, last);
		const char *target;

		if (!path_within(fact->path, shown_path(bind)) ||
			!strcmp(fact->path, shown_path(bind)))
			continue;
		if (bind->layer && (kind == PLACE_STUB || kind == PLACE_PIN))
			continue;
		if (kind == PLACE_STUB && rule->kind != RULE_PROTECT)
			continue; /* nothing there to hide or to pin */
		if (kind == PLACE_PIN && !bind->rw)
			continue; /* nothing can be renamed there */
		target = path_join(bind->target, path_below(fact->path, shown_path(bind)));
		if (bind_at(p, n, target) != bind)
			continue;
		vec_push(masks, mask(rule, fact, kind, target));
	}
}

static bool is_below(const struct place *place, const struct place *of)
{
	return of && path_within(place->target, of->target);
}

/*
 * Sorted by path: drop masks that another mask makes unnecessary. Below a hidden path nothing
 * is needed. Below a read-only one nothing can be renamed, so only hiding adds something, and
 * paths that must be writable there, which need no mask anywhere else.
 */
static void keep_needed(struct plan *p, const place_vec *masks)
{
	const struct place *hidden = NULL, *fixed = NULL, *open = NULL, *before = NULL;

	vec_each(m, masks) {
		if (before && !strcmp(before->target, m->target))
			continue;
		before = m;
		if (hidden && path_within(m->target, hidden->target))
			continue;
		if (is_below(m, fixed) && !is_below(m, open) ? !m->open && m->kind != PLACE_HIDE
							     : m->open)
			continue;
		if (m->kind == PLACE_HIDE)
			hidden = m;
		if ((m->kind == PLACE_PROTECT || m->kind == PLACE_STUB) && m->dir &&
			!is_below(m, open))
			fixed = m;
		if (m->open)
			open = m;
		vec_push(&p->places, *m);
	}
}

/* The fact a rule is about, if a bind lies entirely inside it. */
static const struct fact *holds(const struct rule *rule, const char *source)
{
	const struct fact *last = rule->trail.n ? &rule->trail.v[rule->trail.n - 1] : NULL;

	return last && !rule->elsewhere && last->kind != KIND_ABSENT &&
			last->kind != KIND_LINK && path_within(source, last->path)
		? last
		: NULL;
}

/*
 * A mask goes onto a path below a bind's source. A bind of the path itself, or of something in
 * it, shows it unmasked. The command line may ask for that by name, a manifest may not.
 */
static int check_bind(const struct host *h, const struct place *bind, struct fault *f)
{
	vec_each(rule, &h->rules) {
		const struct fact *in = holds(rule, bind->source);

		if (!in || rule->kind == RULE_PIN || rule->kind == RULE_OPEN)
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

static void add_text(struct plan *p, const char *target, const char *text)
{
	vec_push(&p->places,
		((struct place){ .kind = PLACE_FILE,
			.target = target,
			.text = text,
			.why = "base",
			.mode = 0644,
			.create = true }));
}

/*
 * git ignores an empty directory, but `git stash -u` and `git clean -d` would try to remove
 * stubs, and fail. So git in the box ignores them.
 */
static void ignore_stubs(struct plan *p)
{
	struct str names = { 0 };

	/* There is only one such file, so it also holds what the user's git ignores. */
	if (p->git_ignore)
		str_addf(&names, "%s\n", p->git_ignore);
	vec_each(place, &p->places)
		if (place->kind == PLACE_STUB && place->dir &&
			!strcmp(path_parent(place->target), p->workspace)) {
			str_addc(&names, '/');
			str_add(&names, path_base(place->target));
			str_add(&names, "/\n");
		}
	if (!names.len)
		return;
	add_text(p, "/etc/carrel/gitignore", names.p);
	add_text(p, "/etc/gitconfig", "[core]\n\texcludesFile = /etc/carrel/gitignore\n");
}

int plan_add_rules(const struct host *h, struct plan *p, struct fault *f)
{
	size_t n = p->places.n, most = 0;
	place_vec masks = { 0 };

	vec_each(rule, &h->rules)
		most += rule->trail.n;
	vec_reserve(&masks, most); /* usually each rule is on one bind */
	for (size_t i = 0; i < n; i++) {
		struct place bind = p->places.v[i];

		if ((bind.kind != PLACE_BIND && !bind.layer) || bind.device)
			continue;
		if (bind.declared && check_bind(h, &bind, f) < 0)
			return -EINVAL;
		vec_each(rule, &h->rules)
			if (is_laid(rule, &bind))
				add_masks(p, n, &p->places.v[i], rule, &masks);
	}
	if (masks.n)
		qsort(masks.v, masks.n, sizeof(*masks.v), compare_masks);
	keep_needed(p, &masks);
	ignore_stubs(p);
	/* A pin after a mount inside it would cover that mount. */
	qsort(p->places.v, p->places.n, sizeof(*p->places.v), compare_masks);
	return 0;
}

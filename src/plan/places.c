/*
 * plan/places.c - the file system of the box, without the rules
 *
 * The box's root is a tmpfs. Shared paths of the host are bound into it read-only, small files
 * of /etc are copied. What the box may write without leaving a trace (home, /tmp, ...) is
 * scratch on the same tmpfs, and Landlock keeps the rest of it from being written. The
 * workspace is bound at its own path. Sorting by target puts every place after the one that
 * contains it, so the engine simply goes down the list.
 */
#include "plan/internal.h"
#include "plan/layout.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add_place(struct plan *p, struct place place)
{
	if (!place.why)
		place.why = "base";
	/* Landlock protects what is only on the box's own root from being written. */
	if (place.kind == PLACE_LINK || place.kind == PLACE_FILE || place.kind == PLACE_COPY)
		place.rw |= p->frame.nest;
	vec_push(&p->places, place);
}

static void add_file(struct plan *p, const char *target, const char *text)
{
	add_place(p,
		(struct place){
			.kind = PLACE_FILE, .target = target, .text = text, .mode = 0644 });
}

static void add_named(struct plan *p, const char *target, const char *text)
{
	add_file(p, target, text);
	p->places.v[p->places.n - 1].named = true;
}

static void add_link(struct plan *p, const char *target, const char *text)
{
	add_place(p, (struct place){ .kind = PLACE_LINK, .target = target, .text = text });
}

static void add_scratch(struct plan *p, const char *target, mode_t mode)
{
	add_place(p,
		(struct place){ .kind = PLACE_SCRATCH,
			.target = target,
			.rw = true,
			.dir = true,
			.mode = mode });
}

/* Bind the target of the links at the name that was looked up. */
static void add_bind(struct plan *p, const struct fact *fact, const char *target, bool rw,
	const char *why)
{
	add_place(p,
		(struct place){ .kind = PLACE_BIND,
			.target = target,
			.source = fact->real,
			.rw = rw,
			.dir = fact->real_kind == KIND_DIR,
			.why = why,
			.mode = 0755 });
}

static void add_system(const struct host *h, struct plan *p)
{
	for (size_t i = 0; i < layout_system_n; i++) {
		const struct fact *fact = &h->system[i];

		if (fact->real_kind == KIND_LINK)
			add_link(p, layout_system[i], fact->link);
		else if (fact->real_kind == KIND_DIR)
			add_bind(p, fact, layout_system[i], false, "system");
	}
}

/*
 * The nodes are bound read-only. That does not prevent writing to the device, but it prevents
 * changing the mode of the host's node, which root's box would own.
 */
static void add_dev(struct plan *p)
{
	static const char *const nodes[] = { "full", "null", "random", "tty", "urandom",
		"zero" };

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		const char *path = path_join("/dev", nodes[i]);

		add_place(p,
			(struct place){ .kind = PLACE_BIND,
				.target = path,
				.source = path,
				.device = true,
				.mode = 0666 });
	}
	add_link(p, "/dev/fd", "/proc/self/fd");
	add_link(p, "/dev/stdin", "/proc/self/fd/0");
	add_link(p, "/dev/stdout", "/proc/self/fd/1");
	add_link(p, "/dev/stderr", "/proc/self/fd/2");
	add_link(p, "/dev/ptmx", "pts/ptmx");
	add_place(p,
		(struct place){
			.kind = PLACE_PTS, .target = "/dev/pts", .rw = true, .dir = true });
	add_scratch(p, "/dev/shm", 01777);
}

static void add_proc(struct plan *p)
{
	add_place(p,
		(struct place){
			.kind = PLACE_PROC, .target = "/proc", .rw = true, .dir = true });
	if (!p->frame.nest)
		add_place(p,
			(struct place){ .kind = PLACE_HIDE,
				.target = "/proc/keys",
				.optional = true,
				.why = "names of the user's keys" });
	if (p->frame.host_uid != 0)
		return;
	for (size_t i = 0; i < layout_proc_root_n; i++) {
		const struct layout_proc *l = &layout_proc_root[i];

		add_place(p,
			(struct place){ .kind = l->hide ? PLACE_HIDE : PLACE_SEAL,
				.target = l->path,
				.dir = l->dir,
				.optional = true,
				.why = "started by root" });
	}
}

void plan_add_early(struct frame *frame)
{
	struct plan only = { .frame = *frame };
	struct fault f = { 0 };

	vec_reserve(&only.places, 40);
	add_proc(&only);
	add_dev(&only);
	vec_each(place, &only.places)
		place->early = true;
	if (plan_order_places(&only, &f) < 0)
		BUG("the early places: %s", f.text);
	frame->early = only.places;
}

static void add_accounts(struct plan *p, const struct host *h)
{
	struct str passwd = { 0 }, group = { 0 };

	if (p->frame.uid != 0) {
		str_add(&passwd, "root:x:0:0:root:/root:/usr/sbin/nologin\n");
		str_add(&group, "root:x:0:\n");
	}
	str_addf(&passwd, "%s:x:%u:%u::%s:%s\n", p->user, p->frame.uid, p->frame.gid, p->home,
		h->shell);
	str_addf(&group, "%s:x:%u:\n", h->group, p->frame.gid);
	if (p->frame.uid != 65534)
		str_add(&passwd,
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	if (p->frame.gid != 65534)
		str_add(&group, "nogroup:x:65534:\n");
	add_file(p, "/etc/passwd", passwd.p);
	add_file(p, "/etc/group", group.p);
}

static void add_host_etc(struct plan *p, const struct layout_etc *l, const struct fact *fact)
{
	const char *target = path_join("/etc", l->name);

	if (fact->real_kind == KIND_LINK)
		add_link(p, target, fact->link);
	else if (fact->real_kind == KIND_FILE && l->copy)
		add_place(p,
			(struct place){ .kind = PLACE_COPY,
				.target = target,
				.source = fact->real,
				.mode = 0644,
				.why = "system" });
	else if (fact->real_kind == KIND_FILE || fact->real_kind == KIND_DIR)
		add_bind(p, fact, target, false, "system");
}

/* The broker answers there at once: the user is asked about connections, not lookups. */
#define RESOLVER "nameserver 198.18.0.1\n"

static void add_etc(const struct host *h, struct plan *p)
{
	bool shared_net = p->frame.network == NETWORK_HOST;
	bool broker = network_is_brokered(p->frame.network);

	add_accounts(p, h);
	add_named(p, "/etc/hostname", mem_printf("%s\n", p->name));
	add_file(p, "/etc/nsswitch.conf",
		"passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
		"networks: files\nprotocols: files\nservices: files\n");
	add_link(p, "/etc/mtab", "/proc/self/mounts");
	if (!shared_net) {
		add_named(p, "/etc/hosts",
			mem_printf("127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
				   "127.0.1.1 %s\n",
				p->name));
		add_file(p, "/etc/resolv.conf",
			!broker                  ? "# no network in this box\n"
				: p->frame.proxy ? "# the proxy looks names up\n"
						 : RESOLVER);
		p->places.v[p->places.n - 1].watched = !broker;
	}
	for (size_t i = 0; i < layout_etc_n; i++)
		if (shared_net || !layout_etc[i].only_with_network)
			add_host_etc(p, &layout_etc[i], &h->etc[i]);
}

static void add_toolchains(const struct host *h, struct plan *p)
{
	for (size_t i = 0; i < layout_toolchains_n; i++)
		if (h->toolchains[i].real_kind == KIND_DIR)
			add_bind(p, &h->toolchains[i],
				path_join(h->home, layout_toolchains[i].dir), false,
				"toolchain");
	vec_each(program, &h->programs)
		add_bind(p, program, program->path, false, "toolchain");
}

static const char *box_path(const struct plan *p, const char *target)
{
	return target[0] == '~' && target[1] == '/' ? path_join(p->home, target + 2) : target;
}

static void add_request_files(const struct request *r, struct plan *p)
{
	vec_each(file, &r->files)
		add_place(p,
			(struct place){ .kind = PLACE_FILE,
				.target = box_path(p, file->target),
				.text = file->text,
				.mode = file->mode,
				.rw = file->rw,
				.brief = file->brief,
				.secret = file->secret,
				.fill = file->fill,
				.why = file->why });
}

static const char *const *names_in(const name_vec *names)
{
	const char **list = mem_alloc((names->n + 1) * sizeof(*list));

	for (size_t i = 0; i < names->n; i++)
		list[i] = names->v[i];
	return list;
}

static void add_overlays(const struct request *r, struct plan *p)
{
	vec_each(o, &r->overlays) {
		add_place(p,
			(struct place){ .kind = PLACE_OVERLAY,
				.target = box_path(p, o->target),
				.source = o->upper,
				.work = o->work,
				.lowers = names_in(&o->lowers),
				.files = names_in(&o->files),
				.texts = names_in(&o->texts),
				.rw = true,
				.dir = true,
				.mode = 0700,
				.why = o->why });
	}
}

static void add_request_dirs(const struct request *r, struct plan *p)
{
	vec_each(dir, &r->dirs)
		add_place(p,
			(struct place){ .kind = PLACE_SEAL,
				.target = box_path(p, dir->target),
				.dir = true,
				.rw = dir->rw || p->frame.nest,
				.mode = 0755,
				.why = dir->why });
}

static void add_empty(const struct request *r, struct plan *p)
{
	vec_each(name, &r->empty)
		add_place(p,
			(struct place){ .kind = PLACE_HIDE,
				.target = path_join(p->workspace, *name),
				.dir = true,
				.why = "settings that are not declared" });
}

static int check_target(const struct plan *p, const char *target, const struct request_mount *m,
	struct fault *f)
{
	static const char *const ours[] = { "/proc", "/dev", "/etc/passwd", "/etc/group" };

	if (target[0] != '/' || !target[1])
		return fault_set(f, 0,
			"%s %s: the target '%s' must be an absolute path other than /", m->why,
			str_visible(m->source), str_visible(target));
	if (!strcmp(target, p->home)) {
		fault_set(f, 0, "%s %s: the box has a home of its own there", m->why,
			str_visible(m->source));
		return fault_fix(f,
			"Mount what it needs of yours, %s ~/DIR for one; or all of it "
			"elsewhere, secrets included: %s %s:/mnt/home.",
			m->why, m->why, str_visible(m->source));
	}
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (path_within(target, ours[i]))
			return fault_set(f, 0, "%s %s: %s is the box's own", m->why,
				str_visible(m->source), ours[i]);
	return 0;
}

static int add_mounts(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f)
{
	for (size_t i = 0; i < r->mounts.n; i++) {
		const struct request_mount *m = &r->mounts.v[i];
		const struct fact *fact = &h->mounts[i];
		const char *target =
			path_clean(m->target ? box_path(p, m->target) : fact->path);
		int rc;

		if (fact->real_kind == KIND_ABSENT) {
			fault_set(f, ENOENT, "%s %s", m->why, str_visible(m->source));
			return m->source[0] != '~'
				? -EINVAL
				: fault_fix(f, "Your shell left the ~ as it is: write $HOME.");
		}
		if (path_within(fact->real, "/proc") || path_within("/proc", fact->real))
			return fault_set(f, 0,
				"%s %s: the host's proc would show its "
				"processes to the box",
				m->why, str_visible(m->source));
		rc = check_target(p, target, m, f);
		if (rc < 0)
			return rc;
		add_bind(p, fact, target, m->rw, m->why);
		p->places.v[p->places.n - 1].moved = strcmp(target, fact->path) != 0;
		p->places.v[p->places.n - 1].own = m->sure != SURE_NOT && !m->users;
		p->places.v[p->places.n - 1].declared = m->declared;
	}
	return 0;
}

static bool has_target(const struct plan *p, const char *target)
{
	vec_each(place, &p->places)
		if (!strcmp(place->target, target))
			return true;
	return false;
}

/*
 * git writes its configuration to a copy; run/git-box.c examines it at the end. The plan only
 * says where it is, because its contents may be secret (a token in a URL).
 */
static void add_copies(const struct host *h, struct plan *p)
{
	vec_each(rule, &h->rules)
		if (rule->copy && !has_target(p, rule->copy_at))
			add_place(p,
				(struct place){ .kind = PLACE_FILE,
					.target = rule->copy_at,
					.text = rule->copy,
					.rw = true,
					.secret = true,
					.mode = 0644,
					.why = "the box's own copy of git's config" });
}

/*
 * A directory of the host at its own path: itself, or with an overlay workspace a layer on
 * top of it, the number-th of the box.
 */
static void add_working_dir(const struct host *h, struct plan *p, const char *dir, int number,
	const char *why)
{
	struct place place = { .kind = PLACE_BIND,
		.target = dir,
		.source = dir,
		.rw = true,
		.dir = true,
		.why = why,
		.mode = 0755 };

	if (p->overlay) {
		const char **lowers = mem_alloc(3 * sizeof(*lowers));

		if (h->over)
			lowers[0] = mem_printf("%s/%d/upper", h->over, number);
		lowers[h->over != NULL] = dir;
		place.kind = PLACE_OVERLAY;
		place.layer = true;
		place.lowers = lowers;
		place.source = h->layers ? mem_printf("%s/%d/upper", h->layers, number) : NULL;
		place.work = h->layers ? mem_printf("%s/%d/work", h->layers, number) : NULL;
	}
	add_place(p, place);
}

static void add_workspace(const struct host *h, struct plan *p)
{
	add_working_dir(h, p, p->workspace, 0, "workspace");
	if (h->git_common)
		add_working_dir(h, p, h->git_common, 1, "repository of this worktree");
}

int plan_add_places(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f)
{
	vec_reserve(&p->places, 80);
	add_system(h, p);
	add_etc(h, p);
	vec_each(place, &p->frame.early)
		vec_push(&p->places, *place);
	add_scratch(p, "/tmp", 01777);
	add_scratch(p, "/var/tmp", 01777);
	add_scratch(p, "/run", 0755);
	add_link(p, "/var/run", "/run");
	if (!has_target(p, p->home)) /* HOME=/tmp, as service users have it */
		add_scratch(p, p->home, 0700);
	add_toolchains(h, p);
	add_workspace(h, p);
	add_copies(h, p);
	add_request_files(r, p);
	add_empty(r, p);
	if (r->sandbox || r->overlay)
		add_place(p,
			(struct place){ .kind = PLACE_FILE,
				.target = "/etc/carrel/SANDBOX.md",
				.text = "",
				.sandbox = true,
				.mode = 0444,
				.why = "for the agent" });
	add_request_dirs(r, p);
	add_overlays(r, p);
	return add_mounts(r, h, p, f);
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return path_compare(x->target, y->target);
}

/*
 * Things made for the box are made on its own tmpfs. Inside a mount they would be made on the
 * host, through any links that are there.
 */
static bool is_made(const struct place *place)
{
	return place->kind == PLACE_LINK || place->kind == PLACE_FILE ||
		place->kind == PLACE_COPY || place->kind == PLACE_SCRATCH ||
		(place->kind == PLACE_OVERLAY && !place->layer) ||
		(place->kind == PLACE_SEAL && !place->optional);
}

/*
 * Sorted, the places around one target are on a stack: each lies in the one below it. This is
 * linear, because hundreds of mounts are ordinary.
 */
int plan_order_places(struct plan *p, struct fault *f)
{
	size_t *open = mem_alloc(p->places.n * sizeof(*open)), n = 0;

	qsort(p->places.v, p->places.n, sizeof(*p->places.v), compare_places);
	for (size_t i = 0; i < p->places.n; i++) {
		struct place *place = &p->places.v[i];
		const struct place *in;

		if (i && !strcmp(place[-1].target, place->target))
			return fault_set(f, 0,
				"two things want to be at %s in the box: %s and %s",
				str_visible(place->target), place[-1].why, place->why);
		while (n && !path_within(place->target, p->places.v[open[n - 1]].target))
			n--;
		in = n ? &p->places.v[open[n - 1]] : NULL;
		if (in && !in->dir)
			return fault_set(f, ENOTDIR, "%s: %s in the box is no directory",
				str_visible(place->target), str_visible(in->target));
		place->create = !in ||
			((in->kind == PLACE_SCRATCH || in->kind == PLACE_SEAL) && in->create);
		if (!place->create && is_made(place))
			return fault_set(f, 0,
				"%s must be the box's own, and lies in %s, which is mounted "
				"from "
				"the host",
				str_visible(place->target), str_visible(in->target));
		place->sealed = place->kind == PLACE_FILE && !place->rw && in;
		open[n++] = i;
	}
	return 0;
}

bool plan_shows(const struct plan *p, const char *path)
{
	/* The last match is the deepest. */
	for (size_t i = p->places.n; i-- > 0;) {
		const struct place *in = &p->places.v[i];

		if (path_within(path, in->target))
			return in->kind == PLACE_LINK || in->layer ||
				(in->kind == PLACE_BIND && !in->moved);
	}
	return false;
}

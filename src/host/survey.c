#include "host/survey.h"
#include "host/survey-cgroup.h"
#include "plan/host.h"
#include "plan/layout.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "git/git-files.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum {
	FILE_FLAGS = O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC,
	MOST_PASSWD = 16 << 20,
	LEAST_WATCHES = 4096,
};

static enum kind kind_of(const struct stat *st)
{
	return S_ISREG(st->st_mode)    ? KIND_FILE
		: S_ISDIR(st->st_mode) ? KIND_DIR
		: S_ISLNK(st->st_mode) ? KIND_LINK
				       : KIND_OTHER;
}

/*
 * The canonical path of something that is no link itself: its directory's, which is asked
 * for once when many mounts come from one directory.
 */
static int real_path_below(const char *path, const char **ret, struct fault *f)
{
	static const char *last, *last_real;
	const char *parent = path_parent(path);

	if (!last || strcmp(parent, last)) {
		int rc = look_real(parent, &last_real, f);

		last = rc > 0 ? parent : NULL;
		if (rc <= 0)
			return rc;
	}
	*ret = path_join(last_real, path_base(path));
	return 1;
}

/* Where it leads to, and what that is. */
static int see_end(const char *path, struct fact *fact, struct fault *f)
{
	struct stat st;
	int rc = look_real(path, &fact->real, f);

	fact->real_kind = KIND_ABSENT;
	if (rc > 0)
		rc = look_through(AT_FDCWD, fact->real, &st, f);
	if (rc > 0)
		fact->real_kind = kind_of(&st);
	return rc < 0 ? rc : 0;
}

/* Look at path, and at what it is after all links; 0, there or not. */
static int see(const char *path, struct fact *ret, struct fault *f)
{
	struct fact fact = { .path = path };
	struct stat st;
	int rc = look_at(AT_FDCWD, path, &st, f);

	if (rc > 0)
		fact.kind = fact.real_kind = kind_of(&st);
	if (rc > 0 && fact.kind != KIND_LINK && path[0] == '/' && path[1] &&
		!strstr(path, "/.") && path[strlen(path) - 1] != '/') {
		rc = real_path_below(path, &fact.real, f);
	} else if (rc > 0) {
		if (fact.kind == KIND_LINK)
			rc = look_link(AT_FDCWD, path, &fact.link, f);
		if (rc >= 0)
			rc = see_end(path, &fact, f);
	}
	if (rc < 0)
		return rc;
	*ret = fact;
	return 0;
}

/* Where a failure can only make the box smaller: what cannot be looked at is not in it. */
static struct fact see_or_leave_out(const char *path)
{
	struct fact fact = { .path = path };
	struct fault unseen;

	(void)see(path, &fact, &unseen);
	return fact;
}

/* The user's line of /etc/passwd, split; static programs cannot ask NSS without loading it. */
struct account {
	const char *name, *home, *shell;
};

/* The fields of a line, which it is cut into; how many there are, of those that fit. */
static int cut_fields(char *line, char *field[], int most)
{
	int n = 0;

	for (char *c = line; n < most; c++) {
		field[n++] = c;
		c += strcspn(c, ":");
		if (!*c)
			break;
		*c = '\0';
	}
	return n;
}

/* Of the file only that line is kept: it is moved to where the file was read to. */
static int find_account(uid_t uid, struct account *ret, struct fault *f)
{
	enum { NAME, UID = 2, HOME = 5, SHELL, FIELDS, ALIGN = 16 };
	char *mark = mem_mark(), *field[FIELDS], *next, *line = NULL;
	size_t kept = 0, n;
	int rc = look_text(AT_FDCWD, "/etc/passwd", MOST_PASSWD, &line, f);

	if (rc < 0)
		return rc;
	for (; line && *line && !kept; line = next) {
		n = strcspn(line, "\n");
		next = line + n;
		if (*next)
			*next++ = '\0';
		if (cut_fields(line, field, FIELDS) < FIELDS || !*field[UID] ||
			(uid_t)strtoul(field[UID], NULL, 10) != uid)
			continue;
		kept = (n + ALIGN) & ~(size_t)(ALIGN - 1); /* the NUL is in it */
		memmove(mark, line, n + 1);
		*ret = (struct account){ mark, mark + (field[HOME] - line),
			mark + (field[SHELL] - line) };
	}
	mem_reset(mark + kept);
	return 0;
}

static bool valid_user_name(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return n && n <= 32 && name[0] != '-' && strcmp(name, "root") &&
		strcmp(name, "nobody") &&
		strspn(name,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		n;
}

/* A home that is the box's own: never /, nor below what is shared read-only. */
static int find_home(const char *user, const struct account *account, const char **ret,
	struct fault *f)
{
	static const char *const never[] = { "/proc", "/dev", "/sys", "/etc", "/boot" };
	const char *home = getenv("HOME"), *real;
	bool bad = true;
	int rc;

	if (!home || home[0] != '/')
		home = account->home;
	if (home && home[0] == '/') {
		rc = look_real(home, &real, f);
		if (rc < 0)
			return rc;
		home = rc ? real : path_clean(home);
		bad = !home[1] || layout_in_system(home);
		for (size_t i = 0; i < ARRAY_SIZE(never); i++)
			bad |= path_within(home, never[i]);
	}
	*ret = bad ? mem_printf("/home/%s", user) : home;
	return 0;
}

/* What cannot be looked at is no shell, and another is taken. */
static bool usable_shell(const char *shell)
{
	static const char *const none[] = { "nologin", "false", "true", "sync" };

	if (!shell || shell[0] != '/' || !layout_in_system(shell) || access(shell, X_OK) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (!strcmp(path_base(shell), none[i]))
			return false;
	return true;
}

static int find_user(struct host *h, struct fault *f)
{
	struct account account = { 0 };
	const char *env_user = getenv("USER"), *shell = getenv("SHELL");
	int rc;

	h->uid = getuid();
	h->gid = getgid();
	rc = find_account(h->uid, &account, f);
	h->user = valid_user_name(account.name)       ? account.name
		: h->uid && valid_user_name(env_user) ? env_user
						      : "agent";
	h->group = h->user;
	h->home = mem_printf("/home/%s", h->user);
	if (rc == 0)
		rc = find_home(h->user, &account, &h->home, f);
	h->shell = usable_shell(shell)        ? shell
		: usable_shell(account.shell) ? account.shell
		: usable_shell("/bin/bash")   ? "/bin/bash"
					      : "/bin/sh";
	return rc;
}

/*
 * Asked for often, and it takes reading /etc/passwd. Whoever only asks for the home may go on
 * with a home that nobody has; no box starts then, because survey_host() fails.
 */
static int survey_user(struct host *h, struct fault *f)
{
	static struct host found;
	static struct fault failed;
	static int rc;

	if (!found.home)
		rc = find_user(&found, &failed);
	if (rc < 0)
		*f = failed;
	h->uid = found.uid;
	h->gid = found.gid;
	h->user = found.user;
	h->group = found.group;
	h->home = found.home;
	h->shell = found.shell;
	return rc;
}

const char *survey_home(void)
{
	struct host h = { 0 };
	struct fault later;

	(void)survey_user(&h, &later);
	return h.home;
}

/*
 * Look at dir/name, which is path, but leave a link alone that leads to the system's
 * directories: the box has them too and can follow it by itself.
 */
static int look_system(int dir, const char *name, const char *path, struct fact *ret,
	struct fault *f)
{
	struct fact fact = { .path = path };
	struct stat st;
	int rc = look_at(dir, name, &st, f);

	*ret = fact;
	if (rc <= 0)
		return rc;
	if (!S_ISLNK(st.st_mode)) {
		fact.kind = fact.real_kind = kind_of(&st);
		fact.real = path;
		*ret = fact;
		return 0;
	}
	rc = look_link(dir, name, &fact.link, f);
	if (rc <= 0)
		return rc;
	fact.kind = fact.real_kind = KIND_LINK;
	if (!layout_in_system(path_clean(path_join(path_parent(path), fact.link))))
		return see(path, ret, f);
	*ret = fact;
	return 0;
}

/* What of /etc cannot be looked at is left out of the box. */
static int survey_system(const struct request *r, struct host *h, struct fault *f)
{
	struct fault unseen;
	int rc = 0;
	auto_close int etc = openat(AT_FDCWD, "/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	h->system = mem_alloc(layout_system_n * sizeof(*h->system));
	for (size_t i = 0; rc == 0 && i < layout_system_n; i++)
		rc = look_system(AT_FDCWD, layout_system[i], layout_system[i], &h->system[i],
			f);
	h->etc = mem_alloc(layout_etc_n * sizeof(*h->etc));
	for (size_t i = 0; i < layout_etc_n; i++)
		if (r->network == NETWORK_HOST || !layout_etc[i].only_with_network)
			(void)look_system(etc, layout_etc[i].name,
				path_join("/etc", layout_etc[i].name), &h->etc[i], &unseen);
	return rc;
}

/* The entries of the user's PATH that lie in home, without it. */
static void find_entries(const char *home, name_vec *ret)
{
	size_t n = strlen(home);

	for (const char *at = getenv("PATH"); at && *at; at += *at == ':') {
		size_t len = strcspn(at, ":");

		if (len > n && !strncmp(at, home, n) && at[n] == '/')
			vec_push(ret, mem_strndup(at + n + 1, len - n - 1));
		at += len;
	}
}

/* Is some of them in or below dir? */
static bool on_path(const name_vec *entries, const char *dir)
{
	vec_each(entry, entries)
		if (path_within(*entry, dir))
			return true;
	return false;
}

static void survey_toolchains(struct host *h)
{
	name_vec entries = { 0 };

	find_entries(h->home, &entries);
	h->toolchains = mem_alloc(layout_toolchains_n * sizeof(*h->toolchains));
	for (size_t i = 0; i < layout_toolchains_n; i++) {
		const struct layout_toolchain *t = &layout_toolchains[i];

		if (on_path(&entries, t->when ? t->when : t->dir))
			h->toolchains[i] = see_or_leave_out(path_join(h->home, t->dir));
	}
	if (on_path(&entries, ".local/bin"))
		survey_programs(h);
}

static int see_mount(const struct request_mount *m, const char *cwd, struct fact *ret,
	struct fault *f)
{
	enum kind kind = m->sure == SURE_DIR ? KIND_DIR : KIND_FILE;

	if (!m->sure)
		return see(path_clean(path_join(cwd, m->source)), ret, f);
	*ret = (struct fact){
		.path = m->source, .real = m->source, .kind = kind, .real_kind = kind
	};
	return 0;
}

static int survey_paths(const struct request *r, struct host *h, struct fault *f)
{
	char cwd[PATH_MAX];
	int rc;

	if (!getcwd(cwd, sizeof(cwd)) || cwd[0] != '/')
		return fault_set(f, errno ? errno : ENOENT, "find the working directory");
	h->cwd = mem_strdup(cwd);
	rc = see(r->workspace ? path_join(cwd, r->workspace) : h->cwd, &h->workspace, f);
	if (rc == 0 && h->workspace.real_kind == KIND_DIR &&
		access(h->workspace.real, R_OK | X_OK) < 0 && errno == EACCES) {
		fault_set(f, 0, "workspace %s: you may not read it",
			str_visible(h->workspace.real));
		return fault_fix(f,
			"Give yourself the right to (chmod u+rx, or its owner does), or name "
			"another with --workspace DIR.");
	}
	h->mounts = mem_alloc((r->mounts.n + 1) * sizeof(*h->mounts));
	for (size_t i = 0; rc == 0 && i < r->mounts.n; i++)
		rc = see_mount(&r->mounts.v[i], cwd, &h->mounts[i], f);
	for (size_t i = 0; rc == 0 && i < r->mounts.n; i++) {
		const struct request_mount *m = &r->mounts.v[i];

		if (h->mounts[i].real && m->rw)
			vec_push(&h->writable, h->mounts[i].real);
		if (h->mounts[i].real && (m->rw || !m->declared))
			vec_push(&h->shown, h->mounts[i].real);
	}
	return rc < 0 ? rc : survey_leads(r, h, f);
}

/*
 * The canonical path of a directory of carrel's own; 0: it is not there. Each check that boxes
 * are kept apart from it asks; once it is there, that is where it is.
 */
static int real_own(const char *path, const char **ret, struct fault *f)
{
	int rc = 1;
	static struct {
		const char *path, *real;
	} known[4];
	size_t i = 0;

	while (i < ARRAY_SIZE(known) && known[i].path && strcmp(known[i].path, path) != 0)
		i++;
	if (i == ARRAY_SIZE(known))
		return look_real(path, ret, f);
	if (!known[i].real)
		rc = look_real(path, &known[i].real, f);
	if (rc > 0) {
		known[i].path = path;
		*ret = known[i].real;
	}
	return rc;
}

/*
 * Where the sockets are that steer boxes: as we have it, and where sessions have it. NULL:
 * nowhere, or where the first one is. One that we may not enter (XDG_RUNTIME_DIR is another
 * user's after su(1)) no box of ours may enter either: there its name will do.
 */
static int runtime_of(int i, uid_t uid, const char **ret, struct fault *f)
{
	const char *path = xdg_runtime();
	int rc;

	if (i == 1) {
		const char *usual = mem_printf("/run/user/%u/carrel", uid);

		path = path && !strcmp(path, usual) ? NULL : usual;
	}
	*ret = path;
	rc = path ? real_own(path, ret, f) : 0;
	return rc < 0 && rc != -EACCES ? rc : 0;
}

/* 1: the directory is, or holds, or lies in such a place. */
static int meets_runtime(const char *dir, uid_t uid, struct fault *f)
{
	for (int i = 0; i < 2; i++) {
		const char *runtime;
		int rc = runtime_of(i, uid, &runtime, f);

		if (rc < 0)
			return rc;
		if (runtime && (path_within(dir, runtime) || path_within(runtime, dir)))
			return 1;
	}
	return 0;
}

/*
 * Read-only would not do: a socket can be connected to all the same. What holds the directory
 * shows an empty one in its place, and the directory itself no box can have.
 */
static int hide_in(struct host *h, const char *root, const char *why, const char *runtime,
	struct fault *f)
{
	struct stat st;
	int rc;

	if (path_within(root, runtime))
		return fault_set(f, 0, "%s %s: no box may have the sockets that steer boxes",
			why, str_visible(root));
	if (!path_within(runtime, root))
		return 0;
	rc = look_through(AT_FDCWD, runtime, &st, f);
	if (rc > 0)
		survey_hide(h, root, path_below(runtime, root), "carrel's own");
	if (rc)
		return rc < 0 ? rc : 0;
	rc = look_through(AT_FDCWD, path_parent(runtime), &st, f);
	if (rc <= 0)
		return rc; /* what is mounted there later is not seen in the box */
	fault_set(f, 0,
		"%s %s: the sockets that steer boxes will be in it, and cannot be hidden", why,
		str_visible(root));
	return fault_fix(f, "Mount what you need of it; or first: mkdir -m 700 %s",
		str_visible(runtime));
}

static int hide_runtime(const struct request *r, struct host *h, struct fault *f)
{
	for (int i = 0; r->mounts.n && i < 2; i++) {
		const char *runtime;
		int rc = runtime_of(i, h->uid, &runtime, f);

		for (size_t m = 0; rc == 0 && runtime && m < r->mounts.n; m++) {
			const char *root = h->mounts[m].real;

			rc = root ? hide_in(h, root, r->mounts.v[m].why, runtime, f) : 0;
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* carrel's own directories: canonical, if they are there. */
struct own {
	const char *state, *config;
};

/* Of a mount that is one of them, or lies in one, no rule could take anything away. */
static int check_mounts(const struct request *r, const struct host *h, const struct own *own,
	struct fault *f)
{
	for (size_t i = 0; i < r->mounts.n; i++) {
		const struct request_mount *m = &r->mounts.v[i];
		const char *real = h->mounts[i].real;

		if (m->rw && !m->sure && real &&
			((own->config && path_within(real, own->config)) ||
				(own->state && path_within(real, own->state))))
			return fault_set(f, 0, "%s %s: no box may write what carrel goes by",
				m->why, str_visible(real));
	}
	return 0;
}

static int find_own(struct own *ret, struct fault *f)
{
	struct own own = { .state = xdg_state(), .config = xdg_config() };
	int rc = own.state ? real_own(own.state, &own.state, f) : 0;

	if (rc >= 0)
		rc = own.config ? real_own(own.config, &own.config, f) : 0;
	if (rc < 0)
		return rc;
	*ret = own;
	return 0;
}

static int check_apart(const char *workspace, const struct own *own, uid_t uid, struct fault *f)
{
	const char *state = own->state, *config = own->config;
	int meets = meets_runtime(workspace, uid, f);

	if (meets < 0)
		return meets;
	if ((state && (path_within(workspace, state) || path_within(state, workspace))) ||
		(config && path_within(workspace, config)) || meets) {
		fault_set(f, 0, "the workspace %s is, or holds, what carrel itself goes by",
			str_visible(workspace));
		return fault_fix(f, "Run carrel in a project's own directory.");
	}
	return 0;
}

int survey_apart(const char *workspace, struct fault *f)
{
	struct own own;
	int rc = find_own(&own, f);

	return rc < 0 ? rc : check_apart(workspace, &own, getuid(), f);
}

static int survey_own(const struct request *r, struct host *h, struct fault *f)
{
	struct own own;
	int rc = find_own(&own, f);

	if (rc == 0)
		rc = check_apart(h->workspace.real, &own, h->uid, f);
	if (rc == 0)
		rc = check_mounts(r, h, &own, f);
	return rc < 0 ? rc : hide_runtime(r, h, f);
}

int survey_project(const char *workspace, struct project *ret, struct fault *f)
{
	static struct project found;
	static const char *of;
	int rc = 0;

	if (!of || strcmp(of, workspace) != 0) {
		rc = project_find(workspace, &found, f);
		if (rc == 0)
			rc = git_unseen(f);
		of = rc < 0 ? NULL : workspace;
	}
	if (rc < 0)
		return rc;
	*ret = found;
	return 0;
}

static int add_project(struct host *h, struct fault *f)
{
	struct project p;
	int rc = survey_project(h->workspace.real, &p, f);

	if (rc < 0)
		return rc;
	h->project = p.root;
	h->project_id = p.id;
	if (p.note)
		vec_push(&h->notices, p.note);
	return 0;
}

static void find_memory(struct host *h)
{
	static struct sysinfo info; /* read once: the plan must have the same as the frame */

	if (!info.mem_unit && sysinfo(&info) < 0)
		info = (struct sysinfo){ .totalram = 1 << 30, .mem_unit = 1 };
	h->ram = (unsigned long long)info.totalram * info.mem_unit;
	h->swap = (unsigned long long)info.totalswap * info.mem_unit;
}

/*
 * How many files and directories the programs of a box may watch: half of what the user may,
 * because the user's own and those of boxes count together. Where it cannot be read the box
 * gets few: that takes nothing away from anybody else.
 */
static unsigned long long find_watches(void)
{
	static const char path[] = "/proc/sys/user/max_inotify_watches";
	static unsigned long long watches;
	static bool known; /* read once: the plan must have the same as the frame */
	auto_close int fd = -1;
	char text[24] = "";

	if (known)
		return watches;
	known = true;
	fd = openat(AT_FDCWD, path, FILE_FLAGS);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		watches = LEAST_WATCHES;
	else
		watches = strtoull(text, NULL, 10) / 2;
	return watches;
}

static void survey_kernel(struct host *h)
{
	struct rlimit pids = { RLIM_INFINITY, RLIM_INFINITY }, files = pids;
	long abi =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	h->landlock_abi = abi > 0 ? (int)abi : 0;
	getrlimit(RLIMIT_NPROC, &pids);
	getrlimit(RLIMIT_NOFILE, &files);
	h->max_pids = pids.rlim_max;
	h->pids = pids.rlim_cur;
	h->open_files = files.rlim_cur;
	find_memory(h);
	h->watches = find_watches();
	h->cgroup = *survey_cgroup();
}

void survey_frame(const struct request *r, struct frame *ret)
{
	struct host h = { .uid = getuid(),
		.gid = getgid(),
		.watches = find_watches(),
		.cgroup = *survey_cgroup() };

	find_memory(&h);
	plan_frame(r, &h, ret);
}

int survey_host(const struct request *r, struct host *ret, struct fault *f)
{
	struct host h = { .env = (const char *const *)environ };
	int rc;

	vec_reserve(&h.rules, 24);
	rc = survey_user(&h, f);
	if (rc < 0)
		return rc;
	survey_kernel(&h);
	survey_toolchains(&h);
	rc = survey_system(r, &h, f);
	if (rc == 0)
		rc = survey_paths(r, &h, f);
	if (rc < 0)
		return rc;
	if ((rc = plan_check_workspace(&h, f)) < 0 || (rc = add_project(&h, f)) < 0 ||
		(rc = survey_git(&h, f)) < 0 || (rc = survey_own(r, &h, f)) < 0 ||
		(rc = survey_own_files(&h, f)) < 0 || (rc = survey_rules(r, &h, f)) < 0)
		return rc;
	survey_secrets(&h);
	if (r->overlay && (rc = survey_no_mounts(h.workspace.real, f)) < 0)
		return rc;
	if (r->overlay && h.git_common && (rc = survey_no_mounts(h.git_common, f)) < 0)
		return rc;
	if (h.failed) {
		*f = *h.failed;
		return f->err ? -f->err : -EINVAL;
	}
	rc = git_unseen(f);
	if (rc < 0)
		return rc;
	*ret = h;
	return 0;
}

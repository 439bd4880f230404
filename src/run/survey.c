#include "run/survey.h"
#include "plan/host.h"
#include "plan/layout.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "harness/harness.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/fd.h"
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
};

static enum kind kind_of(const struct stat *st)
{
	return S_ISREG(st->st_mode)    ? KIND_FILE
		: S_ISDIR(st->st_mode) ? KIND_DIR
		: S_ISLNK(st->st_mode) ? KIND_LINK
				       : KIND_OTHER;
}

static const char *link_text(int dir, const char *path)
{
	char buf[PATH_MAX];
	ssize_t n = readlinkat(dir, path, buf, sizeof(buf));

	return n > 0 ? mem_strndup(buf, (size_t)n) : "";
}

/*
 * The canonical path of something that is no link itself: its directory's, which is asked
 * for once when many mounts come from one directory.
 */
static const char *real_path_below(const char *path)
{
	static const char *last, *last_real;
	const char *parent = path_parent(path);

	if (!last || strcmp(parent, last)) {
		last = parent;
		last_real = fd_real_path(parent);
	}
	return last_real ? path_join(last_real, path_base(path)) : NULL;
}

/* Look at path, and at what it is after all links. */
static struct fact look_at(const char *path)
{
	struct fact fact = { .path = path };
	struct stat st;

	if (lstat(path, &st) < 0)
		return fact;
	fact.kind = fact.real_kind = kind_of(&st);
	if (fact.kind != KIND_LINK && path[0] == '/' && path[1] && !strstr(path, "/.") &&
		path[strlen(path) - 1] != '/') {
		fact.real = real_path_below(path);
		return fact;
	}
	if (fact.kind == KIND_LINK)
		fact.link = link_text(AT_FDCWD, path);
	fact.real = fd_real_path(path);
	fact.real_kind = fact.real && stat(fact.real, &st) == 0 ? kind_of(&st) : KIND_ABSENT;
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
static void find_account(uid_t uid, struct account *ret)
{
	enum { NAME, UID = 2, HOME = 5, SHELL, FIELDS, ALIGN = 16 };
	char *mark = mem_mark(), *field[FIELDS], *next;
	char *line = fd_read_open(openat(AT_FDCWD, "/etc/passwd", FILE_FLAGS), MOST_PASSWD);
	size_t kept = 0, n;

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
static const char *find_home(const char *user, const struct account *account)
{
	static const char *const never[] = { "/proc", "/dev", "/sys", "/etc", "/boot" };
	const char *home = getenv("HOME"), *real;
	bool bad;

	if (!home || home[0] != '/')
		home = account->home;
	if (!home || home[0] != '/')
		return mem_printf("/home/%s", user);
	real = fd_real_path(home);
	home = real ? real : path_clean(home);
	bad = !home[1] || layout_in_system(home);
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		bad |= path_within(home, never[i]);
	return bad ? mem_printf("/home/%s", user) : home;
}

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

static void find_user(struct host *h)
{
	struct account account = { 0 };
	const char *env_user = getenv("USER"), *shell = getenv("SHELL");

	h->uid = getuid();
	h->gid = getgid();
	find_account(h->uid, &account);
	h->user = valid_user_name(account.name)       ? account.name
		: h->uid && valid_user_name(env_user) ? env_user
						      : "agent";
	h->group = h->user;
	h->home = find_home(h->user, &account);
	h->shell = usable_shell(shell)        ? shell
		: usable_shell(account.shell) ? account.shell
		: usable_shell("/bin/bash")   ? "/bin/bash"
					      : "/bin/sh";
}

/* Asked for often, and it takes reading /etc/passwd. */
static void survey_user(struct host *h)
{
	static struct host found;

	if (!found.home)
		find_user(&found);
	h->uid = found.uid;
	h->gid = found.gid;
	h->user = found.user;
	h->group = found.group;
	h->home = found.home;
	h->shell = found.shell;
}

const char *survey_home(void)
{
	struct host h = { 0 };

	survey_user(&h);
	return h.home;
}

/*
 * Look at dir/name, which is path, but leave a link alone that leads to the system's
 * directories: the box has them too and can follow it by itself.
 */
static struct fact look_system(int dir, const char *name, const char *path)
{
	struct fact fact = { .path = path };
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fact;
	if (!S_ISLNK(st.st_mode)) {
		fact.kind = fact.real_kind = kind_of(&st);
		fact.real = path;
		return fact;
	}
	fact.kind = fact.real_kind = KIND_LINK;
	fact.link = link_text(dir, name);
	if (layout_in_system(path_clean(path_join(path_parent(path), fact.link))))
		return fact;
	return look_at(path);
}

static void survey_system(const struct request *r, struct host *h)
{
	auto_close int etc = openat(AT_FDCWD, "/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	h->system = mem_alloc(layout_system_n * sizeof(*h->system));
	for (size_t i = 0; i < layout_system_n; i++)
		h->system[i] = look_system(AT_FDCWD, layout_system[i], layout_system[i]);
	h->etc = mem_alloc(layout_etc_n * sizeof(*h->etc));
	for (size_t i = 0; i < layout_etc_n; i++)
		if (r->network == NETWORK_HOST || !layout_etc[i].only_with_network)
			h->etc[i] = look_system(etc, layout_etc[i].name,
				path_join("/etc", layout_etc[i].name));
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
			h->toolchains[i] = look_at(path_join(h->home, t->dir));
	}
}

static struct fact look_at_mount(const struct request_mount *m, const char *cwd)
{
	enum kind kind = m->sure == SURE_DIR ? KIND_DIR : KIND_FILE;

	if (m->sure)
		return (struct fact){
			.path = m->source, .real = m->source, .kind = kind, .real_kind = kind
		};
	return look_at(path_clean(path_join(cwd, m->source)));
}

static int survey_paths(const struct request *r, struct host *h, struct fault *f)
{
	char cwd[PATH_MAX];

	if (!getcwd(cwd, sizeof(cwd)) || cwd[0] != '/')
		return fault_set(f, errno ? errno : ENOENT, "find the working directory");
	h->cwd = mem_strdup(cwd);
	h->workspace = look_at(r->workspace ? path_join(cwd, r->workspace) : h->cwd);
	h->mounts = mem_alloc((r->mounts.n + 1) * sizeof(*h->mounts));
	for (size_t i = 0; i < r->mounts.n; i++)
		h->mounts[i] = look_at_mount(&r->mounts.v[i], cwd);
	return 0;
}

/* Keep path read-only where the box could write it: in the workspace or a mount. */
static void protect_own(const struct request *r, struct host *h, const char *path,
	const char *why)
{
	const char *root = h->workspace.real;

	if (path_within(path, root) && strcmp(path, root) != 0)
		survey_protect(h, root, path_below(path, root), why, NULL);
	for (size_t i = 0; i < r->mounts.n; i++) {
		root = h->mounts[i].real;
		if (r->mounts.v[i].rw && root && path_within(path, root) &&
			strcmp(path, root) != 0)
			survey_protect(h, root, path_below(path, root), why, NULL);
	}
}

/*
 * The canonical path of a directory of carrel's own, NULL if it is not there. Each check that
 * boxes are kept apart from it asks; once it is there, that is where it is.
 */
static const char *real_own(const char *path)
{
	static struct {
		const char *path, *real;
	} known[4];
	size_t i = 0;

	while (i < ARRAY_SIZE(known) && known[i].path && strcmp(known[i].path, path) != 0)
		i++;
	if (i == ARRAY_SIZE(known))
		return fd_real_path(path);
	if (!known[i].real)
		known[i].real = fd_real_path(path);
	if (known[i].real)
		known[i].path = path;
	return known[i].real;
}

/*
 * Where the sockets are that steer boxes: as we have it, and where sessions have it. NULL:
 * nowhere, or where the first one is.
 */
static const char *runtime_of(int i, uid_t uid)
{
	const char *path = xdg_runtime(), *real;

	if (i == 1) {
		const char *usual = mem_printf("/run/user/%u/carrel", uid);

		path = path && !strcmp(path, usual) ? NULL : usual;
	}
	real = path ? real_own(path) : NULL;
	return real ? real : path;
}

static bool meets_runtime(const char *dir, uid_t uid)
{
	for (int i = 0; i < 2; i++) {
		const char *runtime = runtime_of(i, uid);

		if (runtime && (path_within(dir, runtime) || path_within(runtime, dir)))
			return true;
	}
	return false;
}

/*
 * Read-only would not do: a socket can be connected to all the same. What holds the directory
 * shows an empty one in its place, and the directory itself no box can have.
 */
static int hide_in(struct host *h, const char *root, const char *why, const char *runtime,
	struct fault *f)
{
	if (path_within(root, runtime))
		return fault_set(f, 0, "%s %s: no box may have the sockets that steer boxes",
			why, str_visible(root));
	if (!path_within(runtime, root))
		return 0;
	if (access(runtime, F_OK) == 0) {
		survey_hide(h, root, path_below(runtime, root), "carrel's own");
		return 0;
	}
	if (access(path_parent(runtime), F_OK) < 0)
		return 0; /* what is mounted there later is not seen in the box */
	fault_set(f, 0,
		"%s %s: the sockets that steer boxes will be in it, and cannot be hidden", why,
		str_visible(root));
	return fault_fix(f, "Mount what you need of it; or first: mkdir -m 700 %s",
		str_visible(runtime));
}

static int hide_runtime(const struct request *r, struct host *h, struct fault *f)
{
	for (int i = 0; r->mounts.n && i < 2; i++) {
		const char *runtime = runtime_of(i, h->uid);

		for (size_t m = 0; runtime && m < r->mounts.n; m++) {
			const char *root = h->mounts[m].real;
			int rc = root ? hide_in(h, root, r->mounts.v[m].why, runtime, f) : 0;

			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* carrel's own directories: canonical, if they are there. */
struct own {
	const char *state, *config;
	bool has_state, has_config;
};

static struct own find_own(void)
{
	const char *state = xdg_state(), *config = xdg_config();
	const char *real_state = state ? real_own(state) : NULL;
	const char *real_config = config ? real_own(config) : NULL;

	return (struct own){ .state = real_state ? real_state : state,
		.config = real_config ? real_config : config,
		.has_state = real_state != NULL,
		.has_config = real_config != NULL };
}

static int check_apart(const char *workspace, const struct own *own, uid_t uid, struct fault *f)
{
	const char *state = own->state, *config = own->config;

	if ((state && (path_within(workspace, state) || path_within(state, workspace))) ||
		(config && path_within(workspace, config)) || meets_runtime(workspace, uid)) {
		fault_set(f, 0, "the workspace %s is, or holds, what carrel itself goes by",
			str_visible(workspace));
		return fault_fix(f, "Run carrel in a project's own directory.");
	}
	return 0;
}

int survey_apart(const char *workspace, struct fault *f)
{
	const struct own own = find_own();

	return check_apart(workspace, &own, getuid(), f);
}

/*
 * carrel's own files decide what boxes may do, and the clients' what runs outside of any:
 * with a home full of links to one directory of dotfiles, that may be the workspace.
 */
static int survey_own(const struct request *r, struct host *h, struct fault *f)
{
	const struct own own = find_own();
	int rc = check_apart(h->workspace.real, &own, h->uid, f);

	if (rc < 0)
		return rc;
	if (own.has_config)
		protect_own(r, h, own.config, "carrel's own");
	if (own.has_state)
		protect_own(r, h, own.state, "carrel's own");
	rc = hide_runtime(r, h, f);
	if (rc < 0)
		return rc;
	for (const struct harness *const *a = harness_all; *a; a++)
		for (const struct part *p = (*a)->parts; p && p->path; p++) {
			const char *real = fd_real_path(path_join(h->home, p->path));

			if (real)
				protect_own(r, h, real, "your configuration of a client");
		}
	return 0;
}

int survey_project(const char *workspace, struct project *ret, struct fault *f)
{
	static struct project found;
	static const char *of;
	int rc = of && !strcmp(of, workspace) ? 0 : project_find(workspace, &found, f);

	if (rc < 0)
		return rc;
	of = workspace;
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

unsigned long long survey_ram(void)
{
	static unsigned long long ram;
	struct sysinfo info;

	if (!ram)
		ram = sysinfo(&info) == 0 ? (unsigned long long)info.totalram * info.mem_unit
					  : 1 << 30;
	return ram;
}

static void survey_kernel(struct host *h)
{
	struct rlimit pids = { .rlim_max = RLIM_INFINITY };
	long abi =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	h->landlock_abi = abi > 0 ? (int)abi : 0;
	getrlimit(RLIMIT_NPROC, &pids);
	h->max_pids = pids.rlim_max;
	h->ram = survey_ram();
}

int survey_host(const struct request *r, struct host *ret, struct fault *f)
{
	struct host h = { .env = (const char *const *)environ };
	int rc;

	vec_reserve(&h.rules, 24);
	survey_user(&h);
	survey_kernel(&h);
	survey_system(r, &h);
	survey_toolchains(&h);
	rc = survey_paths(r, &h, f);
	if (rc < 0)
		return rc;
	if ((rc = plan_check_workspace(&h, f)) < 0 || (rc = add_project(&h, f)) < 0 ||
		(rc = survey_git(&h, f)) < 0 || (rc = survey_own(r, &h, f)) < 0 ||
		(rc = survey_rules(r, &h, f)) < 0)
		return rc;
	*ret = h;
	return 0;
}

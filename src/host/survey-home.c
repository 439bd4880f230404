/*
 * host/survey-home.c - the user's own files, where a box could write them
 *
 * carrel's own files decide what boxes may do, and the clients', git's and the shell's what
 * runs outside of any. They lie in the home, which no box has. But many keep them in a
 * directory of dotfiles and have links to it, or set XDG_CONFIG_HOME, and that directory may be
 * the workspace or a writable mount. There they are protected, and each part on the way to
 * them; one that is absent cannot be made.
 *
 * Any link counts that stands where configuration is: directly in the home with a dot, and in
 * the directories below; if one of these leads where a box can write, at any depth below
 * ~/.config. Programs of the user's on PATH do not: somebody who works on one runs
 * it from the workspace, too.
 */
#include "host/survey.h"
#include "plan/host.h"
#include "harness/harness.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define OWN     "carrel's own"
#define CLIENTS "your configuration of a client"
#define YOURS   "your own configuration"

enum { ROOM = 4096, DEEP_LEVELS = 6, DEEP_DIRS = 20000 };

/* Below home, or where it says so below XDG_CONFIG_HOME; links directly in them count. */
static const char *const dirs[] = { ".ssh", ".gnupg", ".vim", ".vim/plugin", ".emacs.d",
	".cargo", ".gradle", ".gradle/init.d", ".m2", ".docker", ".aws", ".bashrc.d", ".zsh",
	".zshrc.d", ".local/share/systemd/user" };
static const char *const config_dirs[] = { "git", "fish", "fish/conf.d", "fish/functions",
	"direnv", "environment.d", "autostart", "systemd/user", "nvim", "emacs", "tmux", "mise",
	"gh", "Code/User", "Cursor/User", "zed" };

/* What must not come to be where the home itself can be written, by way of a mount. */
static const char *const files[] = { ".bashrc", ".bash_profile", ".bash_login", ".profile",
	".bash_logout", ".bash_aliases", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
	".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".pam_environment",
	".xprofile", ".xsession", ".xsessionrc", ".xinitrc", ".direnvrc", ".tmux.conf",
	".screenrc", ".vimrc", ".exrc", ".emacs", ".gdbinit", ".lldbinit", ".npmrc", ".yarnrc",
	".yarnrc.yml", ".curlrc", ".wgetrc", ".netrc", ".mailcap", ".claude.json", ".gitconfig",
	".hgrc", ".gemrc", ".irbrc", ".psqlrc", ".pypirc", ".cargo/config",
	".cargo/config.toml" };

/* Files and directories of configuration that a variable names. */
static const char *const variables[] = { "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "ZDOTDIR",
	"BASH_ENV", "ENV", "PYTHONSTARTUP", "INPUTRC", "GNUPGHOME", "CLAUDE_CONFIG_DIR",
	"CODEX_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "DIRENV_CONFIG",
	"DOCKER_CONFIG", "NPM_CONFIG_USERCONFIG" };

/* In a client's directory: where people put links; as in host/dotfiles.c. */
static const char *const kept[] = { "agents", "commands", "hooks", "output-styles", "prompts",
	"rules", "skills" };

int survey_entries(struct host *h, const char *dir, survey_entry_fn *visit, void *ctx)
{
	char entries[ROOM] __attribute__((aligned(8)));
	auto_close int fd = -1;
	struct fault f = { 0 };
	int rc = look_open(AT_FDCWD, dir, O_DIRECTORY, &fd, &f);
	long n = 0;

	/* Not readdir(3), which has its buffer from malloc(3). */
	while (rc > 0 && (n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; at < n;) {
			const struct dirent *e = (const void *)(entries + at);

			if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
				visit(ctx, dir, e);
			at += e->d_reclen;
		}
	if (rc > 0 && n < 0)
		rc = fault_set(&f, errno, "read the directory '%s'", str_visible(dir));
	/* Where no box can write, what we cannot read nobody reads for us. */
	if (rc == -EACCES && !survey_reaches(h, dir))
		rc = 0;
	if (rc < 0)
		survey_failed(h, &f);
	return rc;
}

/* ---- names that may be there ---- */

/*
 * Some directories fold case, by the rules of Unicode. So the case of ASCII letters does not
 * count, and a name with any other letter in it may stand for all names.
 */
static unsigned int hash_of(const char *name, size_t n, bool *plain)
{
	unsigned int hash = 5381;

	for (size_t i = 0; i < n; i++) {
		*plain &= (unsigned char)name[i] < 0x80;
		hash = hash * 33 + ((unsigned char)name[i] | 0x20U);
	}
	return (hash ^ hash >> 15) % (64 * 64);
}

struct listing {
	struct survey_names *names;
	survey_entry_fn *visit;
	void *ctx;
};

static void list_entry(void *ctx, const char *dir, const struct dirent *e)
{
	struct listing *l = ctx;
	bool plain = true;
	unsigned int hash = hash_of(e->d_name, strlen(e->d_name), &plain);

	l->names->any |= !plain;
	l->names->bits[hash / 64] |= 1ULL << hash % 64;
	if (l->visit)
		l->visit(l->ctx, dir, e);
}

void survey_list(struct host *h, const char *dir, survey_entry_fn *visit, void *ctx,
	struct survey_names *ret)
{
	struct listing l = { ret, visit, ctx };
	struct statfs fs;

	*ret = (struct survey_names){ 0 };
	if (survey_entries(h, dir, list_entry, &l) <= 0 || statfs(dir, &fs) < 0 ||
		!look_is_plain_fs((unsigned long)fs.f_type))
		ret->any = true;
}

bool survey_may_have(const struct survey_names *names, const char *rel)
{
	bool plain = true;
	unsigned int hash = hash_of(rel, strcspn(rel, "/"), &plain);

	return names->any || !plain || (names->bits[hash / 64] >> hash % 64 & 1);
}

struct links {
	struct host *h;
	const char *why;
	bool dots; /* only names that begin with one */
};

static void follow_link(void *ctx, const char *dir, const struct dirent *e)
{
	struct links *l = ctx;

	if ((e->d_type == DT_LNK || e->d_type == DT_UNKNOWN) &&
		(!l->dots || e->d_name[0] == '.'))
		survey_lead(l->h, path_join(dir, mem_strdup(e->d_name)), l->why);
}

void survey_links(struct host *h, const char *dir, const char *why)
{
	struct links l = { .h = h, .why = why };

	survey_entries(h, dir, follow_link, &l);
}

struct deep_dir {
	const char *path;
	int level;
};

/* Directories that are left to be searched for links. */
struct deep {
	struct host *h;
	VEC(struct deep_dir) todo;
	int level;
};

static void visit_deep(void *ctx, const char *dir, const struct dirent *e)
{
	struct deep *d = ctx;

	if (e->d_type == DT_DIR && d->level < DEEP_LEVELS)
		vec_push(&d->todo,
			((struct deep_dir){
				path_join(dir, mem_strdup(e->d_name)), d->level + 1 }));
	else if (d->level > 0)
		follow_link(&(struct links){ .h = d->h, .why = YOURS }, dir, e);
}

/*
 * Whoever keeps dotfiles in the workspace may have links at any depth: GNU Stow makes them so
 * where a directory is not all of one package. It takes a walk, so it needs a reason.
 */
static void follow_deep(struct host *h, const char *top)
{
	struct deep d = { .h = h };

	vec_push(&d.todo, ((struct deep_dir){ top, 0 }));
	for (size_t i = 0; i < d.todo.n && i < DEEP_DIRS; i++) {
		d.level = d.todo.v[i].level;
		survey_entries(h, d.todo.v[i].path, visit_deep, &d);
	}
	if (d.todo.n > DEEP_DIRS)
		vec_push(&h->notices,
			mem_printf("%s has so many directories that links in some of them are "
				   "not followed",
				str_visible(top)));
}

/* Below top: the directory itself, and the links in it. */
static void follow_dirs(struct host *h, const char *top, const struct survey_names *there,
	const char *const *names, size_t n)
{
	bool inside = survey_reaches(h, top);

	for (size_t i = 0; i < n; i++) {
		const char *dir;

		if (!inside && !survey_may_have(there, names[i]))
			continue;
		dir = path_join(top, names[i]);
		if (inside)
			survey_lead(h, dir, YOURS);
		survey_links(h, dir, YOURS);
	}
}

/* XDG_CONFIG_HOME, as it is written, or what it is without it. */
static const char *config_home(const struct host *h)
{
	const char *dir = getenv("XDG_CONFIG_HOME");

	return dir && dir[0] == '/' ? dir : path_join(h->home, ".config");
}

static void follow_home(struct host *h)
{
	struct links dots = { .h = h, .why = YOURS, .dots = true };
	struct links all = { .h = h, .why = YOURS };
	const char *config = config_home(h), *real = fd_real_path(config);
	const size_t before = h->rules.n;
	struct survey_names names;

	survey_list(h, h->home, follow_link, &dots, &names);
	follow_dirs(h, h->home, &names, dirs, ARRAY_SIZE(dirs));
	survey_lead(h, path_join(config, "git/config"), YOURS);
	survey_list(h, config, follow_link, &all, &names);
	follow_dirs(h, real ? real : config, &names, config_dirs, ARRAY_SIZE(config_dirs));
	if (h->rules.n > before && !survey_reaches(h, real ? real : config))
		follow_deep(h, config);
	for (size_t i = 0; survey_reaches(h, h->home) && i < ARRAY_SIZE(files); i++)
		survey_lead(h, path_join(h->home, files[i]), YOURS);
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *path = getenv(variables[i]);

		if (path && path[0] == '/' && survey_lead(h, path, YOURS))
			survey_links(h, path, YOURS);
	}
}

static void follow_clients(struct host *h)
{
	for (const struct harness *const *a = harness_all; *a; a++)
		for (const struct part *p = (*a)->parts; p && p->path; p++) {
			const char *dir = survey_lead(h, path_join(h->home, p->path), CLIENTS);

			if (!dir)
				continue;
			survey_links(h, dir, CLIENTS);
			for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
				survey_links(h, path_join(dir, kept[i]), CLIENTS);
		}
}

/* carrel makes the directory of its state itself, so it cannot be kept from coming to be. */
static int follow_state(struct host *h, struct fault *f)
{
	const char *state = xdg_state();
	size_t before = h->rules.n;
	const struct rule *rule;
	const struct fact *last;

	if (!state)
		return 0;
	survey_lead(h, state, OWN);
	rule = h->rules.n > before ? &h->rules.v[before] : NULL;
	last = rule && !rule->elsewhere ? &rule->trail.v[rule->trail.n - 1] : NULL;
	if (!last || last->kind != KIND_ABSENT)
		return 0;
	fault_set(f, 0, "%s: carrel's own state will be there, where the box can write",
		str_visible(last->path));
	return fault_fix(f, "Run carrel in a project's own directory; or first: mkdir -p %s",
		str_visible(state));
}

int survey_own_files(struct host *h, struct fault *f)
{
	const char *config = xdg_config(), *dir;

	if (config && (dir = survey_lead(h, config, OWN)))
		survey_links(h, dir, OWN);
	follow_clients(h);
	follow_home(h);
	return follow_state(h, f);
}

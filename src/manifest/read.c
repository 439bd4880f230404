/*
 * manifest/read.c - the files
 *
 * A manifest is read once, as bytes. The same bytes are checked, hashed for trust and composed,
 * whatever happens to the file meanwhile.
 */
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 10 << 20 };

/*
 * Read at most one byte more than is allowed. A file that grows meanwhile is cut, and so
 * invalid JSON.
 */
static bool read_all(int fd, struct manifest_file *file)
{
	size_t n = 0, max;
	struct stat st;
	ssize_t got;
	char *bytes;

	if (fstat(fd, &st) < 0)
		return false;
	max = st.st_size > MOST_BYTES ? MOST_BYTES + 1 : (size_t)st.st_size;
	bytes = mem_alloc(max + 1);
	while (n < max && (got = read(fd, bytes + n, max - n)) != 0) {
		if (got < 0 && errno != EINTR)
			return false;
		n += got > 0 ? (size_t)got : 0;
	}
	file->bytes = bytes;
	file->size = n;
	return true;
}

/* Open what must be a plain file; -1 and errno. */
static int open_plain(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	errno = EISDIR;
	close(fd);
	errno = EISDIR;
	return -1;
}

static void parse_file(struct manifest_file *file, const struct key *keys, problems *bad)
{
	json_errors errors = { 0 };

	if (file->size > MOST_BYTES) {
		problem_add(bad, mem_printf("%s: larger than 10 MB", str_visible(file->name)));
		return;
	}
	if (json_read(file->bytes, file->size, file, &file->tree, &errors) < 0) {
		vec_each(e, &errors)
			problem_add(bad,
				mem_printf("%s:%u:%u: %s", str_visible(file->name), e->at.line,
					e->at.column, e->text));
		return;
	}
	manifest_check(file, keys, bad);
	if (file->project && json_member(file->tree, "confirm"))
		manifest_problem(bad, json_member(file->tree, "confirm"), "confirm",
			"is for your own file, not for a project's");
}

/*
 * A socket there is the stub of another box that keeps the name absent. If that box has just
 * ended, the stub is gone by now.
 */
static bool is_kept_absent(const char *path)
{
	const int err = errno;
	struct stat st;
	bool absent = lstat(path, &st) == 0 ? S_ISSOCK(st.st_mode) : errno == ENOENT;

	errno = err;
	return absent;
}

/* about has path and name. NULL when there is no such file; other errors are a problem. */
static struct manifest_file *load_file(const struct manifest_file *about,
	const struct key *keys, problems *bad)
{
	const char *path = about->path, *name = about->name;
	auto_close int fd = open_plain(path);
	struct manifest_file *file;
	char real[PATH_MAX];

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || is_kept_absent(path)))
		return NULL;
	file = mem_alloc(sizeof(*file));
	*file = *about;
	if (fd < 0 || !read_all(fd, file) || !realpath(path_parent(path), real)) {
		vec_push(bad, mem_printf("%s: %s", str_visible(name), strerror(errno)));
		return file;
	}
	/*
	 * The place where it was found, not where a link leads: its relative paths begin here,
	 * and it is approved here.
	 */
	file->dir = mem_strdup(real);
	file->path = path_join(file->dir, path_base(path));
	parse_file(file, keys, bad);
	return file;
}

static int none_found(const char *project, const char *user, struct fault *f)
{
	fault_set(f, 0, "no manifest: neither %s nor %s is there", str_visible(project),
		user ? str_visible(user) : "one of the user (HOME is not set)");
	return fault_fix(f, "`carrel init` writes one; `carrel run -- CMD` needs none.");
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
		x.st_ino == y.st_ino;
}

int manifest_find(const char *dir, const char *only, struct manifests *ret, problems *bad,
	struct fault *f)
{
	const char *config = xdg_config();
	const char *user = config ? path_join(config, MANIFEST_NAME) : NULL;
	const char *project = path_clean(path_join(dir, only ? only : MANIFEST_NAME));
	struct manifests m = { 0 };

	/*
	 * carrel was started in the configuration directory itself, or with -m and the user's
	 * file.
	 */
	if (user && same_file(project, user))
		project = NULL;
	if (project)
		m.project = load_file(&(struct manifest_file){ .path = project,
					      .name = only ? only : MANIFEST_NAME,
					      .project = true },
			manifest_keys, bad);
	if (project && !m.project && only)
		return fault_set(f, ENOENT, "manifest %s", str_visible(only));
	if (user)
		m.user = load_file(&(struct manifest_file){ .path = user, .name = user },
			manifest_keys, bad);
	*ret = m;
	if (!bad->n)
		return 0;
	manifest_check_names(&m, getenv("HOME") ? getenv("HOME") : "", bad);
	return -EINVAL;
}

int manifest_load(const char *dir, const char *only, struct manifests *ret, problems *bad,
	struct fault *f)
{
	const char *config = xdg_config();
	int rc = manifest_find(dir, only, ret, bad, f);

	if (rc == 0 && !ret->project && !ret->user)
		return none_found(path_join(dir, MANIFEST_NAME),
			config ? path_join(config, MANIFEST_NAME) : NULL, f);
	return rc;
}

enum manifest_confirm manifest_confirm(void)
{
	static const char *const names[] = { "changed", "always", "never" };
	const char *config = xdg_config(),
		   *path = config ? path_join(config, MANIFEST_NAME) : NULL;
	const struct manifest_file *file = NULL;
	const struct json_value *said;
	problems bad = { 0 };

	if (path)
		file = load_file(&(struct manifest_file){ .path = path, .name = path },
			manifest_keys, &bad);
	if (bad.n)
		return CONFIRM_ALWAYS;
	said = file ? json_member(file->tree, "confirm") : NULL;
	for (size_t i = 0; said && i < ARRAY_SIZE(names); i++)
		if (!strcmp(said->text, names[i]))
			return (enum manifest_confirm)i;
	return CONFIRM_CHANGED;
}

struct manifest_file *manifest_settings(const char *path, problems *bad)
{
	return load_file(&(struct manifest_file){ .path = path,
				 .name = path,
				 .settings = true,
				 .fix = "carrel instances set" },
		agent_keys, bad);
}

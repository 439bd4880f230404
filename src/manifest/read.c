/*
 * manifest/read.c - the files
 *
 * A manifest is read once, as bytes: what is checked, hashed for trust and composed is the
 * same, whatever happens to the file meanwhile.
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

/* At most one byte more than is allowed. A file that grows meanwhile is cut, and bad JSON. */
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

static void parse(struct manifest_file *file, const struct key *keys, problems *bad)
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
}

/*
 * A socket is what another box of this project has put there to keep it absent; when that box
 * has just ended it is gone since we tried to open it.
 */
static bool is_kept_absent(const char *path)
{
	const int err = errno;
	struct stat st;
	bool absent = lstat(path, &st) == 0 ? S_ISSOCK(st.st_mode) : errno == ENOENT;

	errno = err;
	return absent;
}

/* Path and name are given. NULL when there is no such file; other troubles are a problem. */
static struct manifest_file *load(const struct manifest_file *about, const struct key *keys,
	problems *bad)
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
	 * Where it was found, not where a link leads: its relative paths begin here, so it is
	 * here that it is approved.
	 */
	file->dir = mem_strdup(real);
	file->path = path_join(file->dir, path_base(path));
	parse(file, keys, bad);
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

	/* Started in the configuration directory itself, or with -m on the user's own. */
	if (user && same_file(project, user))
		project = NULL;
	if (project)
		m.project = load(&(struct manifest_file){ .path = project,
					 .name = only ? only : MANIFEST_NAME,
					 .project = true },
			manifest_keys, bad);
	if (project && !m.project && only)
		return fault_set(f, ENOENT, "manifest %s", str_visible(only));
	if (user)
		m.user = load(&(struct manifest_file){ .path = user, .name = user },
			manifest_keys, bad);
	*ret = m;
	return bad->n ? -EINVAL : 0;
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

struct manifest_file *manifest_settings(const char *path, problems *bad)
{
	return load(&(struct manifest_file){ .path = path,
			    .name = path,
			    .settings = true,
			    .fix = "carrel instances set" },
		agent_keys, bad);
}

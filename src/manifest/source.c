/*
 * manifest/source.c - paths that a manifest names, on the host
 *
 * A stranger may have written a project's manifest. The user approved it as text, so a path
 * that reads as lying in the project must lie there: a link in the project that leads to ~/.ssh
 * would give an innocent text another meaning. Absolute paths and those below ~ say what they
 * are.
 */
#include "manifest/source.h"
#include "manifest/manifest.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_ENTRIES = 100000, MOST_DEPTH = 64 };

/* Relative to dir, absolute, or below home; clean, links not followed. */
static const char *expand_path(const char *text, const char *dir, const char *home)
{
	if (text[0] == '~' && (!text[1] || text[1] == '/'))
		return path_clean(mem_printf("%s/%s", home, text + 1));
	return path_clean(path_join(dir, text));
}

const char *manifest_path(const struct said *said, const char *field, const char *home,
	problems *bad)
{
	const struct manifest_file *file = manifest_origin(said);
	const char *path = expand_path(said->text, file->dir, home);
	char real[PATH_MAX];

	if (!realpath(path, real)) {
		manifest_problem(bad, said->at, field, "%s: %s", str_visible(path),
			strerror(errno));
		return NULL;
	}
	if (file->project && path_within(path, file->dir) && strcmp(path, real) != 0) {
		manifest_problem(bad, said->at, field,
			"%s is a link, or behind one, that leads to %s: in a project a path "
			"must "
			"be what it says",
			str_visible(said->text), str_visible(real));
		return NULL;
	}
	return mem_strdup(real);
}

char *source_read(const char *path, size_t max)
{
	return fd_read_open(fd_open2(AT_FDCWD, path,
				    O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
				    RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS),
		max);
}

/* ---- links inside a source ---- */

struct search {
	const char *top;
	size_t seen;
	const char
		*bad; /* the first link that leads out, or an entry that cannot be examined */
	const char *why;
};

/* It may hide something. Uses errno. */
static void source_failed(struct search *s, const char *path)
{
	s->bad = path;
	s->why = mem_printf("cannot be looked at: %s", strerror(errno));
}

static void look_at_link(struct search *s, const char *dir, const char *name)
{
	const char *path = path_join(dir, name);
	char text[PATH_MAX], real[PATH_MAX];
	const char *to = realpath(path, real);
	ssize_t n;

	if (!to && !look_is_absent(errno)) {
		source_failed(s, path);
		return;
	}
	if (!to) { /* leads nowhere today, so its text counts */
		n = readlink(path, text, sizeof(text) - 1);
		if (n < 0) {
			source_failed(s, path);
			return;
		}
		text[n] = '\0';
		to = path_clean(path_join(dir, text));
	}
	if (path_within(to, s->top))
		return;
	s->bad = path;
	s->why = mem_printf("is a link that leads out of it, to %s", str_visible(to));
}

/* Some file systems do not report the type. Opening a link would follow it. */
static unsigned char type_of(struct search *s, const char *dir, const struct dirent *e)
{
	const char *path;
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type;
	path = path_join(dir, mem_strdup(e->d_name));
	if (lstat(path, &st) == 0)
		return (unsigned char)IFTODT(st.st_mode);
	if (!look_is_absent(errno))
		source_failed(s, path);
	return DT_UNKNOWN;
}

static void search_dir(struct search *s, const char *path, int depth)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	if (!dir && !look_is_absent(errno))
		source_failed(s, path);
	while (dir && !s->bad && (errno = 0, e = readdir(dir))) {
		unsigned char type = type_of(s, path, e);

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (++s->seen > MOST_ENTRIES || depth > MOST_DEPTH) {
			s->bad = path;
			s->why = "is too large to look through";
		} else if (type == DT_LNK) {
			look_at_link(s, path, e->d_name);
		} else if (type == DT_DIR) {
			search_dir(s, path_join(path, e->d_name), depth + 1);
		}
	}
	if (dir && !s->bad && errno && !look_is_absent(errno))
		source_failed(s, path);
	if (dir)
		closedir(dir);
}

const char *source_dir(const struct said *said, const char *field, const char *home,
	problems *bad)
{
	const char *path = manifest_path(said, field, home, bad);
	struct search s = { .top = path };
	struct stat st;

	if (!path)
		return NULL;
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
		manifest_problem(bad, said->at, field, "%s is no directory", str_visible(path));
		return NULL;
	}
	search_dir(&s, path, 0);
	if (s.bad) {
		manifest_problem(bad, said->at, field, "%s %s", str_visible(s.bad), s.why);
		return NULL;
	}
	return path;
}

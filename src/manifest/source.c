/*
 * manifest/source.c - paths that a manifest names, on the host
 *
 * A project's manifest may have been written by a stranger. What it says was approved by a
 * person who read it as text, so a path that reads as lying in the project must lie there: a
 * link in the project that leads to ~/.ssh would turn an innocent text into another one.
 * Absolute paths and those below ~ say what they are.
 */
#include "manifest/source.h"
#include "manifest/manifest.h"
#include "base/fd.h"
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

const char *source_expand(const char *text, const char *dir, const char *home)
{
	if (text[0] == '~' && (!text[1] || text[1] == '/'))
		return path_clean(mem_printf("%s/%s", home, text + 1));
	return path_clean(path_join(dir, text));
}

const char *manifest_path(const struct said *said, const char *field, const char *home,
	problems *bad)
{
	const struct manifest_file *file = manifest_origin(said);
	const char *path = source_expand(said->text, file->dir, home);
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
	const char *bad; /* the first link that leads out */
	const char *why;
};

static void look_at_link(struct search *s, const char *dir, const char *name)
{
	const char *path = path_join(dir, name);
	char text[PATH_MAX], real[PATH_MAX];
	const char *to = realpath(path, real);
	ssize_t n;

	if (!to) { /* leads nowhere today; what its text says counts */
		n = readlink(path, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		to = path_clean(path_join(dir, text));
	}
	if (path_within(to, s->top))
		return;
	s->bad = path;
	s->why = mem_printf("is a link that leads out of it, to %s", str_visible(to));
}

/* Some file systems do not say; to open a link would be to follow it. */
static unsigned char type_of(const char *dir, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN || lstat(path_join(dir, e->d_name), &st) < 0)
		return e->d_type;
	return (unsigned char)IFTODT(st.st_mode);
}

static void search_dir(struct search *s, const char *path, int depth)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && !s->bad && (e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (++s->seen > MOST_ENTRIES || depth > MOST_DEPTH) {
			s->bad = path;
			s->why = "is too large to look through";
		} else if (type_of(path, e) == DT_LNK) {
			look_at_link(s, path, e->d_name);
		} else if (type_of(path, e) == DT_DIR) {
			search_dir(s, path_join(path, e->d_name), depth + 1);
		}
	}
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

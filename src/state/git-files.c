#include "state/git-files.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_FILE = 1 << 20, CONFIG_FILE = 16 << 20, HEAD_READ = 255, SHA1_DIGITS = 40 };

const char *git_canonical(const char *base, const char *path)
{
	return fd_real_path(path_join(base, path));
}

bool git_exists(const char *dir, const char *name)
{
	struct stat st;

	return lstat(path_join(dir, name), &st) == 0;
}

char *git_read_text(const char *dir, const char *name)
{
	char *text = fd_read_file(AT_FDCWD, path_join(dir, name), LINE_FILE);
	size_t n = text ? strlen(text) : 0;

	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		text[--n] = '\0';
	return text;
}

/* ---- configuration ---- */

static char unescape(char c)
{
	return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'b' ? '\b' : c;
}

/* A value without quotes, escapes, comment and the blanks around it. */
static char *trim_value(char *value)
{
	bool quoted = false;
	char *to = value, *end = value;

	for (char *c = value + strspn(value, " \t"); *c; c++) {
		if (!quoted && (*c == '#' || *c == ';'))
			break;
		if (*c == '"') {
			quoted = !quoted;
			continue;
		}
		if (*c == '\\' && c[1])
			*to++ = unescape(*++c);
		else
			*to++ = *c;
		if (quoted || !strchr(" \t\r", *c))
			end = to;
	}
	*end = '\0';
	return value;
}

void git_read_config(const char *file, git_setting_fn *visit, void *ctx)
{
	char *text = fd_read_file(AT_FDCWD, file, CONFIG_FILE);
	const char *section = "";

	for (char *line = text, *next; line && *line; line = next) {
		char *value, *key, *end;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		key = line + strspn(line, " \t");
		if (*key == '[') {
			end = strchr(key, ']');
			section = key + 1;
			key = end ? end + 1 + strspn(end + 1, " \t") : key + strlen(key);
			((char *)section)[strcspn(section, " \t]\"")] = '\0';
		}
		value = strchr(key, '=');
		if (!value)
			continue;
		key[strcspn(key, " \t=")] = '\0';
		visit(ctx, section, key, trim_value(value + 1));
	}
}

struct lookup {
	const char *section, *key, *value;
};

static void match_setting(void *ctx, const char *section, const char *key, const char *value)
{
	struct lookup *l = ctx;

	if (!strcasecmp(section, l->section) && !strcasecmp(key, l->key))
		l->value = value;
}

const char *git_config_value(const char *file, const char *section, const char *key)
{
	struct lookup l = { .section = section, .key = key };

	git_read_config(file, match_setting, &l);
	return l.value;
}

/* ---- git directories ---- */

bool git_points_back(const char *admin, const char *workspace)
{
	char *text = git_read_text(admin, "gitdir");
	const char *dir;

	if (!text || strcmp(path_base(text), ".git"))
		return false;
	dir = git_canonical(admin, path_parent(text));
	return dir && !strcmp(dir, workspace);
}

static bool names_a_branch(const char *ref)
{
	return str_starts(ref + strspn(ref, " \t\r\n"), "refs/");
}

static bool is_commit(const char *text)
{
	size_t n = 0;

	while (isxdigit((unsigned char)text[n]))
		n++;
	return n >= SHA1_DIGITS;
}

/* Only the beginning is read, and only of a file: git would wait for a FIFO. */
static bool head_is_valid(const char *path)
{
	char text[HEAD_READ + 1] = "";
	auto_close int fd = -1;
	struct stat st;
	ssize_t n;

	if (lstat(path, &st) < 0)
		return false;
	if (S_ISLNK(st.st_mode))
		return readlink(path, text, HEAD_READ) > 0 && str_starts(text, "refs/");
	if (S_ISREG(st.st_mode))
		fd = openat(AT_FDCWD, path,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, HEAD_READ);
	if (n < 0)
		return false;
	text[n] = '\0';
	return is_commit(text) || (str_starts(text, "ref:") && names_a_branch(text + 4));
}

/* git is the canonical path of dir, or NULL. */
static enum git_kind find_common(const char *cwd, const char *dir, const char *git,
	const char **ret)
{
	const char *env = getenv("GIT_COMMON_DIR"), *text, *common;

	if (env)
		common = *env ? git_canonical(cwd, env) : NULL;
	else if (!git_exists(dir, "commondir"))
		common = git;
	else if ((text = git_read_text(dir, "commondir")) && *text)
		common = git_canonical(dir, text);
	else
		return GIT_BROKEN;
	if (!common)
		return env ? GIT_NONE : GIT_BROKEN;
	*ret = common;
	return GIT_FOUND;
}

enum git_kind git_look(const char *cwd, const char *dir, const char **ret_git,
	const char **ret_common)
{
	const char *objects = getenv("GIT_OBJECT_DIRECTORY"), *common, *git;
	enum git_kind kind;

	if (!head_is_valid(path_join(dir, "HEAD")))
		return GIT_NONE;
	git = git_canonical(dir, "");
	kind = find_common(cwd, dir, git, &common);
	if (kind != GIT_FOUND)
		return kind;
	objects = objects ? path_join(cwd, objects) : path_join(common, "objects");
	if (!git || access(objects, X_OK) < 0 || access(path_join(common, "refs"), X_OK) < 0)
		return GIT_NONE;
	*ret_git = git;
	*ret_common = common;
	return GIT_FOUND;
}

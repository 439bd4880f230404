#include "state/agreed.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HASH = 64, LINE = HASH + 1, MOST = 64 };

static const char *store(void)
{
	const char *state = xdg_state();

	return state ? path_join(state, "agreed") : NULL;
}

static int no_store(struct fault *f)
{
	return fault_set(f, 0, "there is no place to keep it: HOME is not set");
}

/* Read the agreed hashes; "" for none. A file that is not ours is a fault. */
static int load_agreed(const char *path, const char **ret, struct fault *f)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	const char *text;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		*ret = "";
		return 0;
	}
	text = fd < 0 ? NULL : fd_read_open(fd, (size_t)LINE * MOST);
	if (!text)
		return fault_set(f, errno, "read %s", str_visible(path));
	*ret = text;
	return 0;
}

/* Only whole lines count. */
static bool has_hash(const char *text, const char *hash)
{
	for (; strlen(text) >= LINE; text += LINE)
		if (!strncmp(text, hash, HASH) && text[HASH] == '\n')
			return true;
	return false;
}

int agreed_look(const char *id, const char *hash, bool *ret, struct fault *f)
{
	const char *dir = store(), *text = "";
	int rc = dir ? load_agreed(path_join(dir, id), &text, f) : 0;

	if (rc == 0)
		*ret = has_hash(text, hash);
	return rc;
}

/* The text with one more line, and as many of the older ones as fit. */
static const char *with(const char *text, const char *hash)
{
	size_t n = strlen(text) / LINE;

	return mem_printf("%s%s\n", n < MOST ? text : text + (n - MOST + 1) * LINE, hash);
}

/* All or nothing; the last of two writers wins. */
static int replace_agreed(const char *path, const char *text, struct fault *f)
{
	char *new = mem_printf("%s.XXXXXX", path);
	auto_close int fd = mkostemp(new, O_CLOEXEC);
	int rc = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

	if (rc == 0 && rename(new, path) < 0)
		rc = -errno;
	if (rc == 0)
		return 0;
	if (fd >= 0)
		(void)unlink(new);
	return fault_set(f, -rc, "write %s", str_visible(path));
}

int agreed_add(const char *id, const char *hash, struct fault *f)
{
	const char *dir = store(), *path = dir ? path_join(dir, id) : NULL, *text = "";
	int rc = dir ? xdg_make(xdg_state(), f) : no_store(f);

	if (rc == 0)
		rc = xdg_make(dir, f);
	if (rc == 0)
		rc = load_agreed(path, &text, f);
	if (rc < 0 || has_hash(text, hash))
		return rc;
	return replace_agreed(path, with(text, hash), f);
}

int agreed_forget(const char *id, struct fault *f)
{
	const char *dir = store();

	if (!dir || unlink(path_join(dir, id)) == 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return fault_set(f, errno, "remove %s/%s", str_visible(dir), id);
}

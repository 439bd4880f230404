/*
 * host/survey-programs.c - what the links in ~/.local/bin lead to
 *
 * pipx, uv, Claude Code's own installer and others put a program below ~/.local/share and a
 * link to it into ~/.local/bin. The box has ~/.local/bin when it is on the PATH; without what
 * the links lead to, these programs would not start. The box gets the smallest directory that
 * is a whole installation, read-only: the one around `bin`, as in pipx/venvs/NAME, or the one
 * that the program itself is in, as in claude/versions. The directory of an application, such
 * as ~/.local/share/opencode, is never shown whole: it may hold logins.
 *
 * A look that fails makes the box smaller and never weaker, so it does not stop the start.
 */
#include "host/survey.h"
#include "plan/host.h"
#include "plan/layout.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_LINKS = 256, MOST_PROGRAMS = 64, ROOM = 4096 };

/* The directory to show for a program at this path below share; NULL: none. */
static const char *installation(const char *share, const char *program)
{
	const char *dir = path_parent(program);
	const char *around = path_parent(dir);

	if (!strcmp(dir, share))
		return NULL;
	if (!strcmp(path_base(dir), "bin") && strcmp(path_parent(around), share) != 0 &&
		strcmp(around, share) != 0)
		return around;
	return strcmp(path_parent(dir), share) != 0 || !strcmp(path_base(dir), "bin") ? dir
										      : NULL;
}

static void add_program(struct host *h, const char *dir)
{
	const char *real;

	vec_each(known, &h->programs)
		if (path_within(dir, known->path))
			return;
	for (size_t i = 0; i < layout_toolchains_n; i++)
		if (h->toolchains[i].real_kind == KIND_DIR &&
			path_within(dir, h->toolchains[i].path))
			return;
	real = fd_real_path(dir);
	if (real && h->programs.n < MOST_PROGRAMS)
		vec_push(&h->programs,
			((struct fact){ .path = dir,
				.kind = KIND_DIR,
				.real_kind = KIND_DIR,
				.real = real }));
}

static void follow_link(struct host *h, int fd, const char *bin, const char *share,
	const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(fd, name, text, sizeof(text) - 1);
	const char *program, *dir;

	if (n <= 0)
		return;
	text[n] = '\0';
	program = path_clean(path_join(bin, text));
	if (!path_within(program, share) || !strcmp(program, share))
		return;
	dir = installation(share, program);
	if (dir)
		add_program(h, dir);
}

void survey_programs(struct host *h)
{
	const char *bin = path_join(h->home, ".local/bin");
	const char *share = path_join(h->home, ".local/share");
	char entries[ROOM] __attribute__((aligned(8)));
	auto_close int fd = openat(AT_FDCWD, bin, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int links = 0;
	long n;

	while (fd >= 0 && links < MOST_LINKS &&
		(n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; at < n;) {
			const struct dirent *e = (const void *)(entries + at);

			if (e->d_type == DT_LNK && links++ < MOST_LINKS)
				follow_link(h, fd, bin, share, e->d_name);
			at += e->d_reclen;
		}
}

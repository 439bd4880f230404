/*
 * host/survey-mounts.c - mounts below a directory that an overlay is to lie on
 *
 * The kernel refuses such an overlay to whoever has no rights outside of a user namespace
 * (since Linux 5.14; before, it showed what the mount covers): the box would see what lies
 * below the mount. So the start is refused, with the name of the mount.
 */
#include "host/survey.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { MOST_MOUNTS = 16 << 20 };

static int octal(const char *p)
{
	for (int i = 0; i < 3; i++)
		if (p[i] < '0' || p[i] > '7')
			return -1;
	return (p[0] - '0') << 6 | (p[1] - '0') << 3 | (p[2] - '0');
}

/* The fifth word of a line is where it is mounted, with \040 for a space. */
static const char *mount_point(const char *line)
{
	struct str path = { 0 };

	for (int word = 1; word < 5; word++) {
		line = strchr(line, ' ');
		if (!line)
			return "";
		line++;
	}
	for (; *line && !strchr(" \n", *line); line++) {
		int c = *line == '\\' ? octal(line + 1) : -1;

		str_addc(&path, c < 0 ? *line : (char)c);
		line += c < 0 ? 0 : 3;
	}
	return path.len ? path.p : "";
}

int survey_no_mounts(const char *dir, struct fault *f)
{
	static const char file[] = "/proc/self/mountinfo";
	const char *text = fd_read_file(AT_FDCWD, file, MOST_MOUNTS);

	if (!text)
		return fault_set(f, errno, "read %s", file);
	for (const char *line = text; *line;) {
		const char *at = mount_point(line);

		if (path_within(at, dir) && strcmp(at, dir) != 0) {
			fault_set(f, 0,
				"--overlay: %s holds another mount, %s, and the kernel "
				"lets no overlay lie on both",
				str_visible(dir), str_visible(at));
			return fault_fix(f,
				"Unmount it, choose another --workspace, or work without an "
				"overlay.");
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return 0;
}

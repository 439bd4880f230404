#include "host/npm-default.h"
#include "host/host-program.h"
#include "state/instance.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_ANSWER = 8192 };

#define FILE_NAME "npm-registry"

/* What the answer depends on: which npm it is, and its age. NULL: unknown. */
static const char *identity(const char *npm)
{
	struct stat st;

	if (stat(npm, &st) < 0)
		return NULL;
	return mem_printf("%s %lld.%09ld\n", npm, (long long)st.st_ctim.tv_sec,
		st.st_ctim.tv_nsec);
}

/* The first line that is a URL; npm prints its warnings on lines of their own. */
static const char *find_url(const char *text)
{
	for (const char *at = text; *at;) {
		size_t n = strcspn(at, "\r\n");

		if (str_starts(at, "https://") || str_starts(at, "http://"))
			return mem_strndup(at, n);
		at += n;
		at += strspn(at, "\r\n");
	}
	return NULL;
}

/* Run npm in the root directory, so that no project's .npmrc counts. */
static const char *ask_npm(const char *npm, const char *workspace)
{
	const char *const argv[] = { npm, "config", "get", "registry", NULL };
	const char *path = getenv("PATH"), *output;
	const char *before = path ? mem_strdup(path) : NULL;
	int rc, status = 0;

	/* npm's first line makes env(1) look for node on the PATH. */
	program_clean_path(workspace);
	rc = program_output(argv, &output, &status);
	if (before)
		setenv("PATH", before, 1);
	else
		unsetenv("PATH");
	return rc == 0 && status == 0 ? find_url(output) : NULL;
}

/* Without a state directory, npm runs again the next time. */
static void keep_default(const char *state, const char *who, const char *url)
{
	struct fault ignored = { 0 };

	if (xdg_make(state, &ignored) == 0)
		(void)instance_write(state, FILE_NAME, mem_printf("%s%s\n", who, url),
			&ignored);
}

const char *npm_default_registry(const char *workspace)
{
	const char *npm = program_find("npm", workspace), *state = xdg_state(), *url;
	const char *who = npm ? identity(npm) : NULL, *kept = NULL;

	if (!who)
		return NULL;
	if (state)
		kept = fd_read_file(AT_FDCWD, path_join(state, FILE_NAME), MOST_ANSWER);
	if (kept && str_starts(kept, who))
		return find_url(kept + strlen(who));
	url = ask_npm(npm, workspace);
	if (url && state)
		keep_default(state, who, url);
	return url;
}

/*
 * run/resume.c - how to resume the conversation of a box
 *
 * Clients print how to resume a conversation, but with a command for a client outside of the
 * box, which does not know the conversation. carrel does not read the box's output for this.
 * Conversations are files, and carrel reads only the UUID in a file's name.
 */
#include "run/resume.h"
#include "host/walk.h"
#include "harness/harness.h"
#include "plan/plan.h"
#include "state/instance.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX ".jsonl"

enum { UUID = 36 };

static bool is_uuid(const char *text)
{
	for (size_t i = 0; i < UUID; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !text[i] || !strchr("0123456789abcdef", text[i]))
			return false;
	}
	return true;
}

struct look {
	const struct talks *talks;
	struct timespec newest;
	const char *uuid; /* of that file; NULL: no conversation is new */
};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec >= b->tv_nsec;
}

static size_t depth_of(const char *rel)
{
	size_t n = 0;

	for (; *rel; rel++)
		n += *rel == '/';
	return n;
}

static enum walk_next visit_entry(void *ctx, const struct walk_entry *e)
{
	const size_t n = strlen(e->name), ends = UUID + strlen(SUFFIX),
		     depth = depth_of(e->rel);
	const char *uuid = n < ends ? "" : e->name + n - ends;
	struct look *look = ctx;
	struct stat st;

	if (e->is_dir)
		return depth < look->talks->depth ? WALK_ON : WALK_SKIP;
	if (depth != look->talks->depth || !str_ends(e->name, SUFFIX) || !is_uuid(uuid))
		return WALK_ON;
	if (fstatat(walk_dir(e), e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISREG(st.st_mode) || !is_later(&st.st_mtim, &look->newest))
		return WALK_ON;
	look->newest = st.st_mtim;
	look->uuid = mem_strndup(uuid, UUID);
	return WALK_ON;
}

const char *resume_words(const struct plan *p, const struct timespec *since)
{
	const struct harness *h = p->agent ? harness_find(p->agent->harness) : NULL;
	const char *instance = p->project_id ? instance_dir(p->project_id) : NULL;
	struct look look = { .newest = *since };
	struct fault ignored = { 0 };

	if (!h || !h->talks.dir || !instance)
		return NULL;
	look.talks = &h->talks;
	(void)walk_tree(&(struct walk_how){ .root = mem_printf("%s/%s/%s/own/%s", instance,
						    h->name, instance_part_name(h->parts->path),
						    h->talks.dir),
				.visit = visit_entry,
				.ctx = &look },
		&ignored);
	return look.uuid ? mem_printf("%s %s", h->talks.words, look.uuid) : NULL;
}

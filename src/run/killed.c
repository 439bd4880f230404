#include "run/killed.h"
#include "run/found-report.h"
#include "run/found.h"
#include "box/stubs.h"
#include "plan/plan.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "base/fault.h"

#define KILLED_FILE "killed"

static struct {
	const struct plan *plan;
	const struct timespec *since;
} watched;

/*
 * Runs in a process that the janitor has made. Nobody reads messages here, so failures are
 * ignored, and everything that can be removed is removed. The record is left alone if another
 * box has the name by now.
 */
static void find_planted(void)
{
	const struct plan *p = watched.plan;
	struct claim claim = { .lock = -1 };
	planted_vec found = { 0 };
	note_vec unread = { 0 };
	struct fault f = { 0 };

	(void)planted_find(p, watched.since, &found, &f);
	planted_sort(&found);
	if (!found.n || registry_claim(p->name, CLAIM_STRICT, &claim, &f) < 0)
		return;
	report_planted(p, &found, &unread);
	(void)boxes_put(p->name, KILLED_FILE, "", 0, &f);
	registry_release(&claim);
}

void killed_watch(const struct plan *p, const struct timespec *since)
{
	watched.plan = p;
	watched.since = since;
	stubs_when_killed(find_planted);
}

void killed_note(const char *name, name_vec *notices)
{
	struct fault f = { 0 };

	if (!boxes_has(name, KILLED_FILE))
		return;
	vec_push(notices,
		mem_printf("the last box %s was killed together with its carrel; what it left "
			   "that programs outside would run or obey: carrel found %s",
			name, name));
	(void)boxes_drop(name, KILLED_FILE, &f); /* otherwise it would be reported again */
}

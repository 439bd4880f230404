/*
 * run/detached-record.c - what is written down of a detached box, for wait and ps
 *
 * Nobody sees the end of a detached box. The second file is missing if its supervisor was
 * killed.
 */
#include "run/detached-record.h"
#include "run/run.h"
#include "supervise/supervise.h"
#include "plan/plan.h"
#include "state/boxes.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/str.h"

int detached_begin(const struct plan *p, const struct timespec *since, bool detached,
	struct fault *f)
{
	struct str text = { 0 };
	struct json j = { .out = &text };
	int rc = 0;

	if (!p->overlay && boxes_has(p->name, BOXES_RESULT))
		rc = boxes_drop(p->name, BOXES_RESULT, f);
	if (rc == 0 && !detached && boxes_has(p->name, BOXES_DETACHED))
		rc = boxes_drop(p->name, BOXES_DETACHED, f);
	if (rc < 0 || !detached)
		return rc;
	json_open(&j, NULL, '{');
	json_string(&j, "agent", p->agent ? p->agent->name : NULL);
	json_string(&j, "workspace", p->workspace);
	json_number(&j, "started", since->tv_sec);
	json_close(&j, '}');
	str_addc(&text, '\n');
	return boxes_put(p->name, BOXES_DETACHED, text.p, text.len, f);
}

/* The limits that the box reached, by their names in the table. */
static name_vec limits_reached(const struct outcome *o)
{
	const struct {
		const char *name;
		bool reached;
	} all[] = {
		{ "time", o->time_is_up },
		{ "idle", o->idle },
		{ "memory", o->counts.oom_kills },
		{ "pids", o->counts.pids_max },
		{ "scratch", o->scratch_full },
		{ "disk", o->disk_full },
	};
	name_vec names = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].reached)
			vec_push(&names, all[i].name);
	return names;
}

void detached_end(const struct plan *p, const struct outcome *outcome, struct run_result *ret)
{
	const name_vec reached = limits_reached(outcome);
	struct str text = { 0 };
	struct json j = { .out = &text };
	struct fault f = { 0 };

	json_open(&j, NULL, '{');
	json_number(&j, "code", outcome->code);
	json_number(&j, "ended", (long long)time(NULL));
	json_bool(&j, "stopped", outcome->stopped);
	json_bool(&j, "time_is_up", outcome->time_is_up);
	json_open(&j, "limits", '[');
	vec_each(name, &reached)
		json_string(&j, NULL, *name);
	json_close(&j, ']');
	json_close(&j, '}');
	str_addc(&text, '\n');
	if (boxes_put(p->name, BOXES_RESULT, text.p, text.len, &f) < 0)
		vec_push(&ret->notes, mem_printf("its result is not kept: %s", fault_line(&f)));
}

/*
 * cli/cmd-gc.c - carrel gc
 *
 * What is removed cannot be restored, so anything uncertain is kept and reported. See
 * instance_root() for when a root is gone, and state/instances.c for how an instance is
 * removed.
 */
#include "cli/cmd.h"
#include "cli/instances.h"
#include "cli/opt.h"
#include "host/walk-cache.h"
#include "state/agreed.h"
#include "state/boxes.h"
#include "state/instance.h"
#include "state/registry.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/str.h"

#include <errno.h>

struct gc_args {
	bool json, dry, unapplied;
};

struct kept {
	const struct instance *i;
	const char *why;
};

struct outcome {
	VEC(const struct instance *) removed;
	VEC(const struct box_record *) records; /* that were removed */
	unsigned long long held;                /* bytes of changes that are not applied */
	size_t holding;                         /* boxes that hold them */
	VEC(struct kept) kept;                  /* those that a person may want to know about */
	unsigned int leftovers, walks;
	size_t others;
	bool failed;
};

static void keep_instance(const struct instance *i, const char *why, struct outcome *o)
{
	vec_push(&o->kept, ((struct kept){ i, why }));
	cmd_note(mem_printf("kept %s%s%s: %s", str_visible(i->id), i->root ? " of " : "",
		i->root ? str_visible(i->root) : "", why));
}

static void collect_instance(const struct instance *i, bool dry, struct outcome *o)
{
	enum instance_root root = i->problem ? ROOT_UNSURE : instance_root(i->root);
	struct fault f = { 0 };
	int rc;

	if (i->problem) {
		keep_instance(i, i->problem, o);
	} else if (root == ROOT_UNSURE) {
		keep_instance(i,
			"its root cannot be found, but may be on a disk that is not mounted",
			o);
	} else if (root == ROOT_THERE) {
		o->others++;
	} else if (i->running) {
		keep_instance(i, "its root is gone, but a box runs in it", o);
	} else {
		rc = dry ? 0 : instance_remove(i, true, &f);
		if (rc == 0 && !dry)
			rc = agreed_forget(i->id, &f);
		if (rc == -EBUSY || rc == -EEXIST) {
			keep_instance(i, f.text, o);
		} else if (rc < 0) {
			o->failed = true;
			cmd_fail(&f);
		} else {
			vec_push(&o->removed, i);
			cmd_note(mem_printf("%s %s: %s is gone",
				dry ? "would remove" : "removed", i->id, str_visible(i->root)));
		}
	}
}

static void collect_record(const struct box_record *r, const struct gc_args *a,
	struct outcome *o)
{
	struct fault f = { 0 };
	int rc;

	if (r->problem)
		cmd_note(mem_printf("left alone boxes/%s: it %s", str_visible(r->name),
			r->problem));
	if (r->holds && !(a->unapplied && boxes_is_old(r))) {
		o->held += r->bytes;
		o->holding++;
		return;
	}
	if (!boxes_is_old(r) || registry_is_held(r->name))
		return;
	rc = a->dry ? 0 : boxes_remove(r, a->unapplied, &f);
	if (rc == -EBUSY)
		return;
	if (rc < 0) {
		o->failed = true;
		cmd_fail(&f);
		return;
	}
	vec_push(&o->records, r);
	cmd_note(mem_printf("%s the record of the box %s: older than %d days",
		a->dry ? "would remove" : "removed", r->name, BOXES_DAYS));
}

static void collect_records(const struct gc_args *a, struct outcome *o)
{
	static box_records all;
	struct fault f = { 0 };

	if (boxes_list(&all, &f) < 0) {
		o->failed = true;
		cmd_fail(&f);
	}
	vec_each(r, &all)
		collect_record(r, a, o);
}

/* These caches can be made again, so they are not reported one by one. */
static void collect_walks(bool dry, struct outcome *o)
{
	struct fault f = { 0 };

	if (walk_cache_sweep(dry, &o->walks, &f) < 0) {
		o->failed = true;
		cmd_fail(&f);
	}
}

static int print_json(const struct outcome *o, bool dry)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	json_bool(&j, "dryRun", dry);
	json_open(&j, "removed", '[');
	vec_each(i, &o->removed) {
		json_open(&j, NULL, '{');
		json_string(&j, "id", (*i)->id);
		json_string(&j, "root", (*i)->root);
		json_number(&j, "bytes", (long long)(*i)->bytes);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "records", '[');
	vec_each(r, &o->records)
		json_string(&j, NULL, (*r)->name);
	json_close(&j, ']');
	json_open(&j, "kept", '[');
	vec_each(k, &o->kept) {
		json_open(&j, NULL, '{');
		json_string(&j, "id", k->i->id);
		json_string(&j, "root", k->i->root);
		json_string(&j, "why", k->why);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_count(&j, "holding", o->holding);
	json_count(&j, "heldBytes", o->held);
	json_number(&j, "leftovers", o->leftovers);
	json_number(&j, "walks", o->walks);
	json_number(&j, "others", (long long)o->others);
	json_close(&j, '}');
	str_addc(&out, '\n');
	return cmd_print(&out);
}

static int print_text(const struct outcome *o, bool dry)
{
	unsigned long long bytes = 0;
	struct str out = { 0 };

	vec_each(i, &o->removed)
		bytes += (*i)->bytes;
	str_addf(&out, "%s%zu removed (%s), %zu kept", dry ? "dry run: " : "", o->removed.n,
		instances_size(bytes), o->kept.n + o->others);
	if (o->records.n)
		str_addf(&out, ", %zu old record%s of boxes removed", o->records.n,
			o->records.n == 1 ? "" : "s");
	if (o->holding)
		str_addf(&out, ", %zu box%s hold%s %s of changes that are not applied",
			o->holding, o->holding == 1 ? "" : "es", o->holding == 1 ? "s" : "",
			instances_size(o->held));
	if (o->walks)
		str_addf(&out, ", %u unused cache%s of directories removed", o->walks,
			o->walks == 1 ? "" : "s");
	if (o->leftovers)
		str_addf(&out, ", %u left over from broken-off removals", o->leftovers);
	str_addc(&out, '\n');
	return cmd_print(&out);
}

static int cmd_gc(void *args, int argc, char **argv)
{
	const struct gc_args *a = args;
	struct outcome o = { 0 };
	instance_vec all = { 0 };
	struct fault f = { 0 };
	int rc;

	(void)argc, (void)argv;
	if (instance_list(true, &all, &f) < 0)
		return cmd_fail(&f);
	f = (struct fault){ 0 };
	if (instance_sweep(a->dry, &o.leftovers, &f) < 0) {
		o.failed = true;
		cmd_fail(&f);
	}
	vec_each(i, &all)
		collect_instance(i, a->dry, &o);
	collect_records(a, &o);
	collect_walks(a->dry, &o);
	rc = a->json ? print_json(&o, a->dry) : print_text(&o, a->dry);
	return rc || !o.failed ? rc : EXIT_CARREL;
}

static const struct opt gc_opts[] = {
	OPT_FLAG('n', "dry-run", struct gc_args, dry, "only say what would be removed"),
	OPT_FLAG(0, "unapplied", struct gc_args, unapplied,
		"remove old records of boxes also where they hold changes that are neither "
		"applied nor discarded"),
	OPT_FLAG(0, "json", struct gc_args, json, "print the outcome as JSON"),
	OPT_END,
};

const struct cmd cmd_gc_entry = {
	.name = "gc",
	.about = "remove what was kept for projects that are gone, and old records",
	.detail =
		"Removes an instance when the root of its project does not exist any more and "
		"no box runs in it, and names it on standard error. It keeps an instance "
		"whose root cannot be examined. It also keeps one whose root may be on a disk "
		"that is not mounted: the nearest existing directory above it is empty, or "
		"one where you could not have removed anything. `carrel instances reset ID` "
		"removes such an instance.\n"
		"\n"
		"Removes the records of a box (`carrel events`, `carrel found`) 30 days after "
		"the last of them was written, unless a box of that name runs. It keeps one "
		"that holds changes of an overlay workspace which are neither applied nor "
		"discarded, and says how much space those take; `--unapplied` removes it "
		"when it is as old.\n"
		"\n"
		"With an instance carrel also forgets what you agreed to in that project. It "
		"removes its cache of the directories of a large project when that project is "
		"gone.\n"
		"\n"
		"What is not an instance, or was made by another version, is left alone and "
		"mentioned.",
	.opts = gc_opts,
	.size = sizeof(struct gc_args),
	.run = cmd_gc,
};

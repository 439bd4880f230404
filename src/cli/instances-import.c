/*
 * cli/instances-import.c - carrel instances import
 */
#include "cli/cmd.h"
#include "cli/instances.h"
#include "host/survey.h"
#include "state/import.h"
#include "base/fault.h"
#include "base/path.h"
#include "base/str.h"

static void print_names(struct str *out, const char *what, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		str_addf(out, "  %s %s\n", what, str_visible(v[i]));
}

static void print_one(const struct imported *i, bool dry, struct str *out)
{
	if (!i->id) {
		str_addf(out, "%s%s%s: left alone: %s\n", str_visible(i->from),
			i->root ? " of " : "", i->root ? str_visible(i->root) : "",
			i->why ? i->why : "it could not be read");
		return;
	}
	str_addf(out, "%s of %s → %s\n", str_visible(i->from), str_visible(i->root), i->id);
	print_names(out, dry ? "would copy" : "copied", i->copied.v, i->copied.n);
	print_names(out, "there already:", i->skipped.v, i->skipped.n);
	if (i->prompts)
		str_addf(out, "  %s %u prompts of the history\n", dry ? "would copy" : "copied",
			i->prompts);
	if (i->history_skipped)
		str_add(out, "  there already: a history\n");
	if (i->left_out)
		str_addf(out, "  left out: %u that are no files or directories\n", i->left_out);
}

int instances_import(const struct instances_args *a, int argc, char **argv)
{
	const char *dir = argc ? argv[0] : path_join(survey_home(), ".claudebox");
	imported_vec all = { 0 };
	struct fault f = { 0 };
	struct str out = { 0 };
	int rc = import_all(dir, a->dry, &all, &f), code;

	vec_each(i, &all)
		print_one(i, a->dry, &out);
	if (rc == 0 && !all.n)
		str_addf(&out, "nothing to import in %s\n", str_visible(dir));
	code = cmd_print(&out);
	return rc < 0 ? cmd_fail(&f) : code;
}

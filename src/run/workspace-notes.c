#include "run/workspace-notes.h"
#include "state/workspace.h"
#include "base/str.h"

static void add_part(struct str *out, const char *verb, size_t n)
{
	bool first = !out->len;

	if (!n)
		return;
	str_addf(out, "%s%s %zu", first ? "" : ", ", verb, n);
	if (first)
		str_add(out, n == 1 ? " file" : " files");
}

void workspace_notes(const struct workspace *w, note_vec *notes)
{
	struct str text = { 0 };
	size_t git = w->changes.git + w->repository.all.n;

	add_part(&text, "changed", w->changes.changed);
	add_part(&text, "added", w->changes.added);
	add_part(&text, "deleted", w->changes.deleted);
	if (!text.len && !git && !w->changes.all.n) {
		vec_push(notes, mem_printf("%s changed nothing", w->box));
		return;
	}
	if (!text.len)
		str_add(&text,
			git ? "changed only git's own files" : "changed only directories");
	vec_push(notes,
		mem_printf("%s %s; nothing on the host has changed yet", w->box, text.p));
	if (w->changes.partial)
		vec_push(notes,
			"some of it cannot be read, and is not counted: `carrel diff` names "
			"it");
	vec_push(notes,
		mem_printf("see it with `carrel diff %s`, take it with `carrel apply %s`",
			w->box, w->box));
}

/*
 * cli/cmd-trust.c - carrel trust
 *
 * The user approves the content that was read and shown here, by its hash; a file that changes
 * while carrel asks is not approved. Only a person at a terminal can approve. No option does
 * it, or an agent's build script could.
 */
#include "cli/cmd.h"
#include "cli/confirm.h"
#include "cli/opt.h"
#include "manifest/manifest.h"
#include "manifest/trust.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

struct trust_args {
	bool show, json, revoke;
};

/* The manifest to approve. */
struct subject {
	const char *path;
	bool own; /* the user's own manifest: there is nothing to approve */
	struct trust_state state;
};

/* NULL and a fault when it is gone. */
static const char *working_directory(struct fault *f)
{
	char cwd[PATH_MAX];

	if (getcwd(cwd, sizeof(cwd)))
		return mem_strdup(cwd);
	fault_set(f, errno, "find the working directory");
	return NULL;
}

static int load_manifest(const char *name, struct subject *ret, problems *bad, struct fault *f)
{
	const struct manifest_file *file;
	struct subject s = { 0 };
	struct manifests m;
	const char *dir = working_directory(f);
	int rc;

	if (!dir)
		return -f->err;
	rc = manifest_load(dir, name, &m, bad, f);
	if (rc < 0) {
		if (f->err == ENOENT)
			fault_fix(f, "`carrel init` writes a " MANIFEST_NAME ".");
		return rc;
	}
	file = m.project ? m.project : m.user;
	s.path = file->path;
	s.own = !file->project;
	rc = trust_check(file->path, file->bytes, file->size, file->tree, &s.state, f);
	if (rc < 0)
		return rc;
	if (s.own)
		s.state = (struct trust_state){
			.is = TRUST_GIVEN, .hash = s.state.hash, .grants = s.state.grants
		};
	*ret = s;
	return 0;
}

/* ---- --show ---- */

static void json_lines(struct json *j, const char *key, const char *const *v, size_t n)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < n; i++)
		json_string(j, NULL, v[i]);
	json_close(j, ']');
}

static int show_json(const struct subject *s)
{
	static const char *const states[] = {
		[TRUST_NEW] = "new",
		[TRUST_CHANGED] = "changed",
		[TRUST_GIVEN] = "given",
	};
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	json_string(&j, "path", s->path);
	json_string(&j, "hash", s->state.hash);
	json_string(&j, "state", states[s->state.is]);
	json_lines(&j, "grants", s->state.grants.v, s->state.grants.n);
	json_lines(&j, "added", s->state.added.v, s->state.added.n);
	json_lines(&j, "gone", s->state.gone.v, s->state.gone.n);
	json_close(&j, '}');
	str_addc(&out, '\n');
	return cmd_print(&out);
}

static int show_grants(const struct subject *s)
{
	static const char *const states[] = {
		[TRUST_NEW] = "is not approved",
		[TRUST_CHANGED] = "has changed since you approved it",
		[TRUST_GIVEN] = "is approved",
	};
	struct trust_state all = { .is = TRUST_NEW, .grants = s->state.grants };
	struct str out = { 0 };

	str_addf(&out, "%s %s\nsha256 %s\nIt grants:\n", str_visible(s->path),
		s->own ? "is your own manifest and needs no approval" : states[s->state.is],
		s->state.hash);
	trust_show(&all, &out);
	if (s->state.is == TRUST_CHANGED) {
		str_add(&out, "What has changed:\n");
		trust_show(&s->state, &out);
	}
	return cmd_print(&out);
}

/* ---- approving and taking back ---- */

static int no_terminal(const struct subject *s, struct fault *f)
{
	fault_set(f, 0, "%s is not approved: there is no terminal to ask on",
		str_visible(s->path));
	return fault_fix(f,
		"Approve it at a terminal, where you see what it grants; or set for a single "
		"start: CARREL_TRUST=%s",
		s->state.hash);
}

static int ask_trust(const struct subject *s, struct fault *f)
{
	struct str question = { 0 };
	int answer;

	str_addf(&question, "%s %s:\n", str_visible(s->path),
		s->state.is == TRUST_NEW ? "was not approved yet; it grants"
					 : "has changed since you approved it");
	trust_show(&s->state, &question);
	str_add(&question, "\nApprove it?");
	answer = confirm(question.p, f);
	if (answer < 0)
		return no_terminal(s, f);
	return answer ? trust_give(s->path, &s->state, f) : fault_set(f, 0, "not approved");
}

static int print_verdict(const char *path, const char *what)
{
	struct str out = { 0 };

	str_addf(&out, "%s %s\n", str_visible(path), what);
	return cmd_print(&out);
}

static int approve(const struct subject *s)
{
	struct fault f = { 0 };

	if (s->own)
		return print_verdict(s->path, "is your own manifest and needs no approval");
	if (s->state.is == TRUST_GIVEN)
		return print_verdict(s->path, "is approved already");
	if (ask_trust(s, &f) < 0)
		return cmd_fail(&f);
	return print_verdict(s->path, "is approved");
}

/* Also if the file is broken or gone by now: only its path counts. */
static int take_back(const char *name)
{
	struct fault f = { 0 };
	const char *dir = working_directory(&f), *path;
	char real[PATH_MAX];
	bool was;

	if (!dir)
		return cmd_fail(&f);
	path = path_clean(path_join(dir, name));
	if (realpath(path_parent(path), real))
		path = path_join(mem_strdup(real), path_base(path));
	if (trust_take(path, &was, &f) < 0)
		return cmd_fail(&f);
	return print_verdict(path, was ? "is no longer approved" : "was not approved");
}

static int cmd_trust(void *args, int argc, char **argv)
{
	const struct trust_args *a = args;
	const char *name = argc > 0 ? argv[0] : MANIFEST_NAME;
	struct fault f = { 0 };
	problems bad = { 0 };
	struct subject s;

	if (a->revoke && (a->show || a->json)) {
		fault_set(&f, 0, "--revoke takes approval back, and --show changes nothing");
		return cmd_fail(&f);
	}
	if (a->revoke)
		return take_back(name);
	/* The variable approves a single start; this command is about the store. */
	unsetenv("CARREL_TRUST");
	if (load_manifest(name, &s, &bad, &f) < 0)
		return bad.n ? cmd_problems(bad.v, bad.n) : cmd_fail(&f);
	if (a->json)
		return show_json(&s);
	return a->show ? show_grants(&s) : approve(&s);
}

static const struct opt trust_opts[] = {
	OPT_FLAG(0, "show", struct trust_args, show,
		"print what it grants and whether it is approved, and change nothing"),
	OPT_FLAG(0, "json", struct trust_args, json, "the same as JSON"),
	OPT_FLAG(0, "revoke", struct trust_args, revoke, "take the approval back"),
	OPT_END,
};

const struct cmd cmd_trust_entry = {
	.name = "trust",
	.args = "[FILE]",
	.about = "approve a project's manifest",
	.detail =
		"A `carrel.json` that comes with a project says what runs and what it may "
		"read. So carrel starts no agent of it before you have seen what it grants "
		"and said yes, here or when `carrel run` asks. FILE defaults to `carrel.json` "
		"in the working directory. You approve this content at this path; when it has "
		"changed, carrel shows the difference and asks again.\n"
		"\n"
		"No option says yes. Where nobody can be asked, `CARREL_TRUST` set to the "
		"SHA-256 of the manifest approves that content for a single start. Your own "
		"manifest in `~/.config/carrel` needs no approval.",
	.opts = trust_opts,
	.size = sizeof(struct trust_args),
	.takes = TAKES_WORD,
	.run = cmd_trust,
};

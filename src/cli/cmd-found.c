/*
 * cli/cmd-found.c - carrel found
 *
 * The record is read in pieces and shown line by line. A box chose the names in it: they are
 * shown as text that cannot drive the terminal.
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "run/found-report.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
	PIECE = 64 * 1024,
	LINE_MOST = 64 * 1024, /* a path of 4 KB, each byte of it escaped */
};

struct found_args {
	bool json;
};

struct reader {
	bool json;
	int code;
	size_t len;
	char line[LINE_MOST], piece[PIECE];
};

static const char *shown_member(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && (m->type == JSON_STRING || m->type == JSON_NUMBER) ? str_visible(m->text)
								       : "?";
}

static void print_line(struct reader *r)
{
	const struct json_value *v = NULL;
	json_errors errors = { 0 };
	void *mark = mem_mark();
	struct str out = { 0 };

	if (r->json) {
		str_addn(&out, r->line, r->len);
		str_addc(&out, '\n');
	} else if (r->len == LINE_MOST || json_read_ours(r->line, r->len, &v, &errors) < 0 ||
		v->type != JSON_OBJECT) {
		str_add(&out, "?\n");
	} else if (json_member(v, "box")) {
		str_addf(&out, "%s, which ended %s, left in %s:\n", shown_member(v, "box"),
			shown_member(v, "time"), shown_member(v, "workspace"));
	} else {
		str_addf(&out, "%-12s  %s  (%s)\n", shown_member(v, "rank"),
			shown_member(v, "path"), shown_member(v, "why"));
	}
	r->code = cmd_print(&out);
	mem_reset(mark);
}

static void take_bytes(struct reader *r, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n && !r->code; i++) {
		if (bytes[i] == '\n') {
			print_line(r);
			r->len = 0;
		} else if (r->len < sizeof(r->line)) {
			r->line[r->len++] = bytes[i];
		}
	}
}

static int read_all(struct reader *r, int fd, const char *box, struct fault *f)
{
	ssize_t n;

	while (!r->code && (n = read(fd, r->piece, sizeof(r->piece))) != 0) {
		if (n < 0 && errno != EINTR)
			return fault_set(f, errno, "read the record of '%s'", box);
		if (n > 0)
			take_bytes(r, r->piece, (size_t)n);
	}
	return 0;
}

static int no_record(const char *box, struct fault *f)
{
	fault_set(f, 0,
		registry_is_held(box)
			? "the box '%s' runs: what it leaves is looked for when it ends"
			: "a box named '%s' has left nothing that the host would run or obey, "
			  "or its record is gone",
		box);
	return fault_fix(f, "A record is kept for %d days, or until a box of that name ends.",
		BOXES_DAYS);
}

static int cmd_found(void *args, int argc, char **argv)
{
	const struct found_args *a = args;
	struct reader *r = mem_alloc(sizeof(*r));
	struct fault f = { 0 };
	auto_close int fd = boxes_open(argv[0], REPORT_FILE, &f);
	int rc = fd >= 0 ? 0 : f.err == ENOENT ? no_record(argv[0], &f) : fd;

	(void)argc;
	r->json = a->json;
	if (rc == 0 && registry_is_held(argv[0]))
		cmd_note("a box of that name runs: this is what an earlier one left");
	if (rc == 0)
		rc = read_all(r, fd, argv[0], &f);
	return rc < 0 ? cmd_fail(&f) : r->code;
}

static const struct opt found_opts[] = {
	OPT_FLAG(0, "json", struct found_args, json, "print a line of JSON for each"),
	OPT_END,
};

const struct cmd cmd_found_entry = {
	.name = "found",
	.args = "BOX",
	.about = "what a box left that programs outside would run or obey",
	.detail =
		"Shows everything that was found when the box ended; the end of a run shows "
		"the first twenty. Each line has a rank, a path below the workspace, and who "
		"runs or obeys it. What git runs comes first, then what carrel could not "
		"examine, then what clients and editors obey, then instructions for agents "
		"(CLAUDE.md, AGENTS.md), which are no alarm.\n"
		"\n"
		"The record stays until another box of that name ends, and for 30 days at "
		"most; `carrel gc` removes older ones. A box that left nothing has no record.",
	.opts = found_opts,
	.size = sizeof(struct found_args),
	.takes = TAKES_BOX,
	.ended = true,
	.run = cmd_found,
};

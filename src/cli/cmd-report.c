/*
 * cli/cmd-report.c - carrel report
 *
 * A run is named by its directory or by its id; without one it is the newest. The page is
 * written beside its place and renamed, so nobody sees half of it.
 */
#include "base/fault.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"
#include "cli/cmd.h"
#include "cli/opt.h"
#include "cli/run-files.h"
#include "eval/attempts.h"
#include "eval/outputs.h"
#include "eval/report.h"
#include "eval/summary.h"

#include <dirent.h>
#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_INFRASTRUCTURE = 3 };

struct report_args {
	const char *output;
	struct run_files more;
	bool open, files, json;
};

struct loaded {
	struct run_dir run[REPORT_RUNS];
	struct summary summary[REPORT_RUNS];
	struct report_run list[REPORT_RUNS];
	size_t n;
};

/* ---- which runs ---- */

static const char *runs_dir(void)
{
	const char *state = xdg_state();

	return state ? path_join(state, "runs") : NULL;
}

/* Names begin with the time, so the last one is the newest. */
static int newest_run(const char **ret, struct fault *f)
{
	const char *dir = runs_dir(), *newest = NULL;
	DIR *list = dir ? opendir(dir) : NULL;
	struct dirent *e;

	while (list && (e = readdir(list)))
		if (e->d_name[0] != '.' && (!newest || strcmp(e->d_name, newest) > 0))
			newest = mem_strdup(e->d_name);
	if (list)
		closedir(list);
	if (!newest) {
		fault_set(f, 0, "there is no run in %s", dir ? str_visible(dir) : "the state");
		return fault_fix(f, "`carrel eval` makes one.");
	}
	*ret = path_join(dir, newest);
	return 0;
}

static const char *find_run(const char *word)
{
	const char *dir = runs_dir();
	struct stat st;

	if (strchr(word, '/') || !dir || stat(word, &st) == 0)
		return word;
	return path_join(dir, word);
}

static int load_runs(int argc, char **argv, struct loaded *l, struct fault *f)
{
	const char *newest = NULL;
	int rc = argc ? 0 : newest_run(&newest, f);

	for (l->n = 0; rc == 0 && l->n < (size_t)(argc ? argc : 1); l->n++) {
		size_t i = l->n;

		rc = run_dir_read(argc ? find_run(argv[i]) : newest, &l->run[i], f);
		if (rc < 0)
			return rc;
		summary_make(&l->run[i], &l->summary[i]);
		l->list[i] = (struct report_run){ &l->run[i], &l->summary[i] };
	}
	return rc;
}

/* ---- writing ---- */

static int write_page(const void *arg, int fd, struct fault *f)
{
	const struct loaded *l = arg;
	struct report_cut cut;
	int rc = report_write(l->list, l->n, fd, &cut, f);

	if (rc == 0 && cut.attempts)
		cmd_note(
			mem_printf("the report would be too large: the details of %zu attempts "
				   "are left out",
				cut.attempts));
	return rc;
}

static int write_all(const struct report_args *a, const struct loaded *l, const char *page,
	struct fault *f)
{
	int rc = a->files ? summary_write(&l->run[0], &l->summary[0], f) : 0;

	if (rc == 0 && a->files)
		rc = outputs_write(&l->run[0], &l->summary[0], f);
	if (rc == 0)
		rc = run_files_write(&a->more, &l->run[0], &l->summary[0], f);
	return rc < 0 || !page ? rc : run_files_put(page, write_page, l, f);
}

/* ---- opening ---- */

static int open_page(const char *path, struct fault *f)
{
	const char *argv[] = { "xdg-open", path, NULL };
	int status = 0;
	pid_t pid;
	int err = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ);

	if (err == 0 && waitpid(pid, &status, 0) == pid && status == 0)
		return 0;
	fault_set(f, err, "xdg-open could not open '%s'", str_visible(path));
	return fault_fix(f, "The report is written: open it in any browser.");
}

static int check_args(const struct report_args *a, int argc, struct fault *f)
{
	bool one =
		a->more.junit || a->more.markdown || a->more.inspect || a->more.csv || a->files;

	if (argc > REPORT_RUNS)
		return fault_set(f, 0, "%d runs are too many, %d are the most", argc,
			REPORT_RUNS);
	if (argc > 1 && one)
		return fault_set(f, 0,
			"--junit, --markdown, --csv, --inspect and --files are of one run: "
			"name one");
	if (a->open && a->output && strcmp(a->output, "-") == 0)
		return fault_set(f, 0, "--open needs a file, and -o - is standard output");
	if (a->json && a->output && strcmp(a->output, "-") == 0)
		return fault_set(f, 0, "--json and -o - both write to standard output");
	return 0;
}

/* Print run.json, and add the figures of the attempts that exist now. */
static int print_json(const struct loaded *l)
{
	struct str out = { 0 };

	for (size_t i = 0; i < l->n; i++) {
		summary_document(&l->run[i], &l->summary[i], false, &out);
		str_addc(&out, '\n');
	}
	return cmd_print(&out) ? EXIT_INFRASTRUCTURE : 0;
}

static int cmd_report(void *args, int argc, char **argv)
{
	const struct report_args *a = args;
	struct loaded *l = mem_alloc(sizeof(*l));
	struct fault f = { 0 };
	struct str line = { 0 };
	const char *page;

	if (check_args(a, argc, &f) < 0) {
		cmd_fail(&f);
		return EXIT_USAGE;
	}
	if (load_runs(argc, argv, l, &f) < 0) {
		cmd_fail(&f);
		return EXIT_INFRASTRUCTURE;
	}
	page = a->output || (a->json && !a->open)
		? a->output
		: path_join(l->run[0].path, l->n > 1 ? "report-compared.html" : "report.html");
	if (write_all(a, l, page, &f) < 0 || (a->open && open_page(page, &f) < 0)) {
		cmd_fail(&f);
		return EXIT_INFRASTRUCTURE;
	}
	if (a->json)
		return print_json(l);
	if (strcmp(page, "-") == 0)
		return 0;
	str_add_visible(&line, page);
	str_addc(&line, '\n');
	return cmd_print(&line) ? EXIT_INFRASTRUCTURE : 0;
}

static const struct opt report_opts[] = {
	OPT_STR('o', "output", struct report_args, output, "FILE",
		"write the page to FILE, `-` for standard output", .hint = OPT_HINT_FILE),
	OPT_FLAG(0, "files", struct report_args, files,
		"write the run's own output files anew, of a run that was cut short"),
	OPT_FLAG(0, "open", struct report_args, open, "open the page in a browser"),
	OPT_FLAG(0, "json", struct report_args, json,
		"print each run's figures as a line of JSON; write a page only with -o"),
	OPT_STR(0, "junit", struct report_args, more.junit, "FILE", "write JUnit XML as well",
		.hint = OPT_HINT_FILE),
	OPT_STR(0, "markdown", struct report_args, more.markdown, "FILE",
		"write a summary in Markdown as well", .hint = OPT_HINT_FILE),
	OPT_STR(0, "csv", struct report_args, more.csv, "FILE",
		"write a row for each attempt as CSV as well", .hint = OPT_HINT_FILE),
	OPT_STR(0, "inspect", struct report_args, more.inspect, "FILE",
		"write a log for Inspect's viewer as well", .hint = OPT_HINT_FILE),
	OPT_END,
};

const struct cmd cmd_report_entry = {
	.name = "report",
	.args = "[RUN]...",
	.about = "show evaluation runs as one HTML page",
	.detail =
		"RUN is the directory of a run of `carrel eval`, or its name in the directory "
		"of runs; without one it is the newest. The page is one file: it needs no "
		"server, sends nothing, and can be mailed or kept. It is `report.html` in the "
		"run's directory unless -o says otherwise, and its path is printed.\n"
		"\n"
		"Several runs are shown side by side, with the differences of each from the "
		"first, case by case.\n"
		"\n"
		"With --json it prints `run.json` of each run with its figures, one line for "
		"each run, and writes no page unless -o or --open asks for one. `carrel "
		"schema run` describes it.\n"
		"\n"
		"A run that was cut short is shown as far as it came. What does not fit is "
		"left "
		"out and said: a text beyond 16 KB, a transcript beyond 16 MB, details beyond "
		"256 MB in all.\n"
		"\n"
		"It exits with 0, with 2 for bad usage, and with 3 if a run cannot be read or "
		"the page cannot be written.",
	.opts = report_opts,
	.size = sizeof(struct report_args),
	.takes = TAKES_PATHS,
	.usage_exit = EXIT_USAGE,
	.run = cmd_report,
};

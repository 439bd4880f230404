/*
 * eval/run-write.c - the directory of a run
 */
#include "eval/eval-run.h"
#include "eval/attempts.h"
#include "harness/harness.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the list of trials ---- */

static bool is_wanted(const char *filter, const char *id, const char *name)
{
	if (!filter)
		return true;
	for (const char *at = filter; *at;) {
		size_t n = strcspn(at, ",");
		const char *pattern = mem_strndup(at, n);

		if (n && (fnmatch(pattern, id, 0) == 0 || (name && !fnmatch(pattern, name, 0))))
			return true;
		at += n + (at[n] == ',');
	}
	return false;
}

static void add_trial(struct engine *e, struct trial t)
{
	vec_push(&e->items, ((struct item){ .trial = t }));
}

static bool has_configuration(const struct suite_case *c, const char *name)
{
	vec_each(wanted, &c->configurations)
		if (!strcmp(*wanted, name))
			return true;
	return !c->configurations.n;
}

static void add_case(struct engine *e, const struct suite_case *c, unsigned int run)
{
	vec_each(k, &e->suite->configurations)
		if (has_configuration(c, k->name))
			add_trial(e,
				(struct trial){ .kind = ATTEMPT_ARTIFACT,
					.c = c,
					.configuration = k,
					.id = c->id,
					.run = run,
					.dir = mem_printf("eval-%s/%s/run-%u", c->safe, k->name,
						run),
					.label = mem_printf("%s#%u", c->safe, run) });
}

static void add_query(struct engine *e, size_t i, unsigned int run)
{
	const char *id = mem_printf("q%03zu", i + 1);

	if (is_wanted(e->options.filter, id, e->suite->queries.v[i].query))
		add_trial(e,
			(struct trial){ .kind = ATTEMPT_TRIGGER,
				.query = &e->suite->queries.v[i],
				.id = id,
				.run = run,
				.dir = mem_printf("queries/%s-r%u", id, run),
				.label = mem_printf("%s#%u", id, run) });
}

static bool has_query(const struct engine *e)
{
	const struct suite *s = e->suite;

	for (size_t i = 0; e->options.triggers && i < s->queries.n; i++)
		if (is_wanted(e->options.filter, mem_printf("q%03zu", i + 1),
			    s->queries.v[i].query))
			return true;
	return false;
}

void engine_plan(struct engine *e)
{
	const struct suite *s = e->suite;
	unsigned int most = e->options.repeat ? e->options.repeat : s->repeat;

	vec_each(c, &s->cases)
		if (!e->options.repeat && c->repeat > most)
			most = c->repeat;
	if (has_query(e))
		for (unsigned int i = 1; i <= CONTROLS; i++)
			add_trial(e,
				(struct trial){ .kind = ATTEMPT_CONTROL,
					.id = mem_printf("c%u", i),
					.run = 1,
					.dir = mem_printf("controls/c%u", i),
					.label = mem_printf("c%u", i) });
	/* One of each before the second of any: a run that is cut short says something. */
	for (unsigned int run = 1; run <= most; run++) {
		vec_each(c, &s->cases) {
			unsigned int own = e->options.repeat ? e->options.repeat
				: c->repeat                  ? c->repeat
							     : s->repeat;

			if (e->options.artifacts && run <= own &&
				is_wanted(e->options.filter, c->id, c->name))
				add_case(e, c, run);
		}
		for (size_t i = 0; e->options.triggers && i < s->queries.n; i++)
			if (run <= (e->options.repeat ? e->options.repeat : s->repeat))
				add_query(e, i, run);
	}
}

/* ---- run.json ---- */

static void add_suite(struct json *j, const struct suite *s)
{
	json_open(j, "suite", '{');
	json_string(j, "path", s->path);
	json_string(j, "kind", s->kind);
	json_string(j, "skill", s->skill.name);
	json_string(j, "skill_path", s->skill.dir);
	json_string(j, "description", s->skill.description);
	json_string(j, "project", s->project);
	json_string(j, "sha256", s->sha256);
	json_close(j, '}');
}

static void add_options(struct json *j, const struct engine *e)
{
	const struct eval_options *o = &e->options;

	json_open(j, "options", '{');
	json_count(j, "repeat", o->repeat ? o->repeat : e->suite->repeat);
	json_count(j, "jobs", o->jobs);
	json_raw(j, "threshold", mem_printf("%.9g", o->threshold));
	json_count(j, "min_n", o->min_n);
	json_count(j, "retries", o->retries);
	json_raw(j, "usd", mem_printf("%.9g", o->usd));
	json_count(j, "time", o->time);
	json_bool(j, "fail_fast", o->fail_fast);
	json_bool(j, "until_sure", o->until_sure);
	json_bool(j, "artifacts", o->artifacts);
	json_bool(j, "triggers", o->triggers);
	json_string(j, "filter", o->filter);
	json_string(j, "grader_model", e->bench.grader_model);
	json_string(j, "trigger_name", e->bench.trigger_name);
	json_close(j, '}');
}

int engine_write(const struct engine *e, bool ended, struct fault *f)
{
	const struct suite *s = e->suite;
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	json_number(&j, "version", 1);
	json_string(&j, "id", e->id);
	add_suite(&j, s);
	json_open(&j, "agent", '{');
	json_string(&j, "harness", s->harness);
	json_string(&j, "version", e->version[0] ? e->version : NULL);
	json_string(&j, "model", s->model);
	json_string(&j, "profile", s->realistic ? "realistic" : "pure");
	json_close(&j, '}');
	json_string(&j, "started", e->started);
	json_string(&j, "ended", ended ? record_time() : NULL);
	json_string(&j, "stopped", e->why);
	add_options(&j, e);
	json_open(&j, "configurations", '[');
	if (e->options.artifacts && s->cases.n)
		vec_each(c, &s->configurations)
			json_string(&j, NULL, c->name);
	json_close(&j, ']');
	json_count(&j, "planned", e->items.n - e->spared);
	json_count(&j, "spared", e->spared);
	json_close(&j, '}');
	str_addc(&out, '\n');
	return record_file(e->bench.run_fd, "run.json", out.p, out.len, f);
}

/* ---- making it ---- */

static int make_dir(struct engine *e, struct fault *f)
{
	const struct suite *s = e->suite;
	const char *parent = e->options.output_dir, *skill = s->skill.name;
	time_t now = time(NULL);
	char stamp[32];
	struct tm tm;
	int rc = 0;

	if (!parent && !xdg_state())
		return fault_set(f, 0,
			"there is no state directory: set HOME, or say "
			"--output-dir");
	parent = parent ? parent : path_join(xdg_state(), "runs");
	if (!e->options.output_dir)
		rc = xdg_make(parent, f);
	else if (mkdir(parent, 0777) < 0 && errno != EEXIST)
		rc = fault_set(f, errno, "make %s", str_visible(parent));
	if (rc < 0)
		return rc;
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	for (unsigned int i = 1; i < 1000; i++) {
		e->id = i == 1 ? mem_printf("%s-%s", stamp, skill ? skill : "suite")
			       : mem_printf("%s-%s-%u", stamp, skill ? skill : "suite", i);
		e->bench.run_dir = path_join(parent, e->id);
		if (mkdir(e->bench.run_dir, 0755) == 0)
			break;
		if (errno != EEXIST)
			return fault_set(f, errno, "make %s", str_visible(e->bench.run_dir));
	}
	e->bench.run_dir = fd_real_path(e->bench.run_dir);
	return e->bench.run_dir ? 0 : fault_set(f, errno, "find the run's directory");
}

static int write_suite(struct engine *e, struct fault *f)
{
	struct str text = { 0 };
	int rc;

	suite_write(e->suite, &text);
	rc = record_file(e->bench.run_fd, "suite.json", text.p, text.len, f);
	for (size_t i = 0; rc == 0 && e->options.artifacts && i < e->suite->cases.n; i++) {
		const struct suite_case *c = &e->suite->cases.v[i];
		struct trial t = { .c = c, .id = c->id };
		struct record r = { .trial = &t, .bench = &e->bench };
		auto_close int dir = -1;

		if (!is_wanted(e->options.filter, c->id, c->name))
			continue;
		dir = copy_make_dirs(e->bench.run_fd, mem_printf("eval-%s", c->safe), f);
		rc = dir < 0 ? dir : record_metadata(&r, dir, f);
	}
	return rc;
}

/* ---- going on with one ---- */

static void remove_partial(int run)
{
	tree_names names = { 0 };
	struct fault f;

	if (tree_list(run, &names) < 0)
		return;
	vec_each(name, &names)
		if (str_starts(*name, ".partial-"))
			(void)tree_remove(run, *name, &f);
}

/* An attempt that ended as an error is made again; its record is kept aside. */
static void mark_done(struct engine *e, struct item *item)
{
	int fd =
		copy_open_file(e->bench.run_fd, mem_printf("%s/attempt.json", item->trial.dir));
	char *text = fd < 0 ? NULL : fd_read_open(fd, 16 << 20);
	const struct json_value *tree = NULL;
	json_errors bad = { 0 };
	const char *outcome, *aside, *verdict;
	auto_close int dir = -1;
	struct fault f;

	if (!text)
		return;
	if (json_read_ours(text, strlen(text), &tree, &bad) < 0)
		tree = NULL;
	outcome = member_text(tree, "outcome");
	verdict = member_text(tree, "verdict");
	if (outcome && strcmp(outcome, "error") != 0 &&
		(item->trial.kind != ATTEMPT_CONTROL || !strcmp(outcome, "pass"))) {
		double usd = member_number(tree, "usd");

		item->state = ITEM_DONE;
		engine_judged(item,
			!strcmp(outcome, "pass")           ? OUTCOME_PASS
				: !strcmp(outcome, "fail") ? OUTCOME_FAIL
							   : OUTCOME_UNGRADED,
			verdict && !strcmp(verdict, "fired") ? FIRED : FIRED_NOT);
		e->done++;
		e->usd += usd > 0 ? usd : 0;
		e->unpriced += !(usd >= 0) && strcmp(e->suite->harness, "command") != 0;
		if (item->trial.kind == ATTEMPT_CONTROL)
			e->controls++, e->controls_fired++;
		return;
	}
	dir = copy_make_dirs(e->bench.run_fd, "replaced", &f);
	for (unsigned int i = 1; dir >= 0 && i < 1000; i++) {
		char *name = mem_strdup(item->trial.dir);

		for (char *at = name; *at; at++)
			*at = *at == '/' ? '_' : *at;
		aside = mem_printf("%s-%u", name, i);
		if (faccessat(dir, aside, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
			renameat(e->bench.run_fd, item->trial.dir, dir, aside) == 0)
			return;
	}
}

static int reopen(struct engine *e, const char *run, struct fault *f)
{
	e->bench.run_dir = fd_real_path(run);
	if (!e->bench.run_dir)
		return fault_set(f, errno, "open the run %s", str_visible(run));
	e->id = path_base(e->bench.run_dir);
	return 0;
}

int engine_open(struct engine *e, const char *resume, struct fault *f)
{
	int rc = resume ? reopen(e, resume, f) : make_dir(e, f);

	if (rc < 0)
		return rc;
	e->bench.run_fd =
		openat(AT_FDCWD, e->bench.run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (e->bench.run_fd < 0)
		return fault_set(f, errno, "open %s", str_visible(e->bench.run_dir));
	e->journal = openat(e->bench.run_fd, "journal.jsonl",
		O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (e->journal < 0)
		return fault_set(f, errno, "open the journal of %s",
			str_visible(e->bench.run_dir));
	if (flock(e->journal, LOCK_EX | LOCK_NB) < 0)
		return fault_set(f, errno, "%s is being run already",
			str_visible(e->bench.run_dir));
	e->started = e->started ? e->started : record_time();
	if (resume) {
		remove_partial(e->bench.run_fd);
		vec_each(item, &e->items)
			mark_done(e, item);
	} else {
		rc = write_suite(e, f);
	}
	return rc < 0 ? rc : engine_write(e, false, f);
}

static unsigned int whole(const struct json_value *v, const char *key)
{
	double value = member_number(v, key);

	return value > 0 && value < 1e6 ? (unsigned int)value : 0;
}

static bool said_no(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && m->type == JSON_BOOL && !m->boolean;
}

static bool said_yes(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && m->type == JSON_BOOL && m->boolean;
}

/* What the command line says now wins over what the run began with. */
int engine_remember(struct engine *e, const char *run, struct fault *f)
{
	struct eval_options *o = &e->options;
	struct run_dir was;
	const struct json_value *said;
	int rc = run_dir_read(run, &was, f);

	if (rc < 0)
		return rc;
	said = json_member(was.json, "options");
	o->repeat = o->repeat ? o->repeat : whole(said, "repeat");
	o->min_n = o->min_n ? o->min_n : whole(said, "min_n");
	if (!o->retries_said && json_member(said, "retries")) {
		o->retries = whole(said, "retries");
		o->retries_said = true;
	}
	o->filter = o->filter ? o->filter : member_text(said, "filter");
	if (o->threshold <= 0 && member_number(said, "threshold") > 0)
		o->threshold = member_number(said, "threshold");
	o->until_sure |= said_yes(said, "until_sure");
	o->artifacts = !said_no(said, "artifacts");
	o->triggers = !said_no(said, "triggers");
	e->started = was.started;
	snprintf(e->version, sizeof(e->version), "%s", was.version);
	close(was.fd);
	return 0;
}

/*
 * eval/attempts.c - a run directory, read back
 *
 * Theory of operation. Every path is opened below the run's descriptor with openat2(2), through
 * no link, so a run directory can only show what is in it. Names are sorted in natural order
 * (run-2 before run-10), which makes every output of a run deterministic. The JSON of each
 * attempt stays in memory; transcripts and artifacts are read by those who show them.
 */
#include "eval/attempts.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	JSON_MOST = 1024 * 1024,
	MEMORY_MOST = 512u << 20,   /* of mem.h, which has 1 GB in all */
	ENTRIES_MOST = 1000 * 1000, /* of a directory */
	MIN_N = 5,                  /* where run.json names no minimum */
};

static const char *const outcomes[] = { "pass", "fail", "error", "limit", "skipped",
	"ungraded" };
static const char *const fired[] = { NULL, "fired", "not_fired", "other_skill", "error" };

const char *attempt_outcome_name(enum attempt_outcome outcome)
{
	return outcomes[outcome];
}

const char *attempt_fired_name(enum attempt_fired f)
{
	return fired[f];
}

/* ---- members ---- */

const char *member_text(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && m->type == JSON_STRING ? m->text : NULL;
}

double member_number(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && m->type == JSON_NUMBER ? m->number : NAN;
}

static const char *text_or(const struct json_value *v, const char *key, const char *otherwise)
{
	const char *text = member_text(v, key);

	return text ? text : otherwise;
}

/* An id may be a number in a suite. */
static const char *id_or(const struct json_value *v, const char *key, const char *otherwise)
{
	const struct json_value *m = json_member(v, key);

	return m && (m->type == JSON_STRING || m->type == JSON_NUMBER) ? m->text : otherwise;
}

static unsigned int count_or(const struct json_value *v, const char *key,
	unsigned int otherwise)
{
	double n = member_number(v, key);

	return n >= 0 && n <= 1e9 ? (unsigned int)n : otherwise;
}

static size_t index_of(const char *const *names, size_t n, const char *name, size_t otherwise)
{
	for (size_t i = 0; name && i < n; i++)
		if (names[i] && strcmp(names[i], name) == 0)
			return i;
	return otherwise;
}

/* ---- files ---- */

static int open_below(int dir, const char *path, int flags)
{
	return fd_open2(dir, path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

static int read_up_to(int fd, char *to, size_t max, size_t *ret_n)
{
	size_t n = 0;

	while (n < max) {
		ssize_t got = read(fd, to + n, max - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret_n = n;
	return 0;
}

char *run_dir_file(const struct run_dir *run, const char *dir, const char *name, size_t max,
	size_t *ret_n, size_t *ret_size)
{
	auto_close int fd = open_below(run->fd, path_join(dir, name), O_RDONLY);
	struct stat st;
	size_t size, n = 0;
	char *bytes;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return NULL;
	}
	size = st.st_size > 0 ? (size_t)st.st_size : 0;
	bytes = mem_alloc((size < max ? size : max) + 1);
	if (read_up_to(fd, bytes, size < max ? size : max, &n) < 0)
		return NULL;
	*ret_n = n;
	*ret_size = size;
	return bytes;
}

/* strverscmp(3) orders "-1" and "-B" differently in glibc and musl. */
static int by_name(const void *first, const void *second)
{
	const char *a = *(const char *const *)first, *b = *(const char *const *)second;

	while (*a && *b) {
		size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");

		if (n && m) {
			unsigned long x = strtoul(a, NULL, 10), y = strtoul(b, NULL, 10);

			if (x != y)
				return x < y ? -1 : 1;
			a += n;
			b += m;
		} else if (*a != *b) {
			break;
		} else {
			a++;
			b++;
		}
	}
	if (*a == *b) /* both at their end: "1" and "01" */
		return strcmp(*(const char *const *)first, *(const char *const *)second);
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

const char *const *run_dir_list(const struct run_dir *run, const char *dir)
{
	VEC(const char *) names = { 0 };
	int fd = open_below(run->fd, dir, O_RDONLY | O_DIRECTORY);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (list && names.n < ENTRIES_MOST && (e = readdir(list)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			vec_push(&names, mem_strdup(e->d_name));
	if (list)
		closedir(list);
	if (names.n)
		qsort(names.v, names.n, sizeof(*names.v), by_name);
	vec_push(&names, NULL);
	return names.v;
}

int run_dir_write(const struct run_dir *run, const char *dir, const char *name,
	const char *bytes, size_t n, struct fault *f)
{
	auto_close int at = open_below(run->fd, dir, O_RDONLY | O_DIRECTORY);
	const char *temp = mem_printf(".%s.%d", name, (int)getpid());
	auto_close int fd = -1;
	int rc;

	if (at < 0)
		return fault_set(f, errno, "open '%s' of the run", str_visible(dir));
	unlinkat(at, temp, 0); /* of a process that had this number and was killed */
	fd = openat(at, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fault_set(f, errno, "write '%s' in '%s' of the run", name,
			str_visible(dir));
	rc = fd_write_all(fd, bytes, n);
	if (rc == 0 && renameat(at, temp, at, name) < 0)
		rc = -errno;
	if (rc < 0) {
		unlinkat(at, temp, 0);
		return fault_set(f, -rc, "write '%s' in '%s' of the run", name,
			str_visible(dir));
	}
	return 0;
}

/* ---- attempts ---- */

static const struct json_value *read_json(const struct run_dir *run, const char *dir,
	const char *name, const char **ret_problem)
{
	const struct json_value *v = NULL;
	json_errors errors = { 0 };
	size_t n, size;
	const char *bytes;

	*ret_problem = "it is left out: the run has more data than fits into memory";
	if ((const char *)mem_mark() - run->memory > MEMORY_MOST)
		return NULL;
	bytes = run_dir_file(run, dir, name, JSON_MOST, &n, &size);
	*ret_problem = NULL;
	if (!bytes)
		*ret_problem = mem_printf("%s cannot be read: %s", name, strerror(errno));
	else if (size > JSON_MOST)
		*ret_problem = mem_printf("%s is larger than %d bytes", name, JSON_MOST);
	else if (json_read_ours(bytes, n, &v, &errors) < 0)
		*ret_problem = mem_printf("%s: line %u: %s", name, errors.v[0].at.line,
			errors.v[0].text);
	else if (v->type != JSON_OBJECT)
		*ret_problem = mem_printf("%s is no object", name);
	return *ret_problem ? NULL : v;
}

static void read_numbers(struct attempt *a)
{
	static const char *const kinds[] = { "input", "output", "cache_read",
		"cache_creation" };
	const struct json_value *tokens = json_member(a->json, "tokens");

	a->seconds = member_number(a->json, "seconds");
	a->usd = member_number(a->json, "usd");
	a->turns = member_number(a->json, "turns");
	a->exit = member_number(a->json, "exit");
	a->retries = member_number(a->json, "retries");
	a->denials = member_number(a->json, "permission_denials");
	for (int i = 0; i < TOKEN_KINDS; i++)
		a->tokens[i] = member_number(tokens, kinds[i]);
}

/* A verdict of "error" is one, whatever the outcome says: it is never counted. */
static void read_verdict(struct attempt *a)
{
	const struct json_value *should = json_member(a->json, "should_trigger");

	a->outcome = (enum attempt_outcome)index_of(outcomes, OUTCOMES,
		member_text(a->json, "outcome"), OUTCOME_ERROR);
	a->should_trigger = should && should->type == JSON_BOOL ? should->boolean
								: a->kind == ATTEMPT_CONTROL;
	if (a->kind == ATTEMPT_ARTIFACT)
		return;
	a->fired = (enum attempt_fired)index_of(fired, ARRAY_SIZE(fired),
		member_text(a->json, "verdict"), FIRED_NONE);
	if (a->outcome <= OUTCOME_FAIL && (a->fired == FIRED_NONE || a->fired == FIRED_ERROR))
		a->outcome = OUTCOME_ERROR;
	if (a->outcome > OUTCOME_FAIL)
		a->fired = FIRED_ERROR;
}

static void add_attempt(struct run_dir *run, enum attempt_kind kind, const char *path,
	const char *id, const char *configuration)
{
	const char *problem, *base = path_base(path), *number = strrchr(base, '-');
	struct attempt a = { .path = path, .kind = kind };

	a.json = read_json(run, path, "attempt.json", &problem);
	a.id = id_or(a.json, "case", id);
	a.configuration =
		kind == ATTEMPT_ARTIFACT ? text_or(a.json, "configuration", configuration) : "";
	a.query = member_text(a.json, "query");
	a.reason = problem ? problem : text_or(a.json, "reason", "");
	a.started = member_text(a.json, "started");
	a.ended = member_text(a.json, "ended");
	number = number ? number + 1 + (number[1] == 'r') : "1";
	a.run = count_or(a.json, "run", (unsigned int)strtoul(number, NULL, 10));
	read_verdict(&a);
	read_numbers(&a);
	vec_push(&run->attempts, a);
}

static void add_case(struct run_dir *run, const char *dir)
{
	for (const char *const *c = run_dir_list(run, dir); *c; c++) {
		const char *configuration = path_join(dir, *c);

		for (const char *const *r = run_dir_list(run, configuration); *r; r++)
			if (str_starts(*r, "run-"))
				add_attempt(run, ATTEMPT_ARTIFACT, path_join(configuration, *r),
					dir + strlen("eval-"), *c);
	}
}

/* "q007-r2" is an attempt at q007. */
static const char *query_id(const char *name)
{
	const char *dash = strstr(name, "-r");

	return dash ? mem_strndup(name, (size_t)(dash - name)) : name;
}

static void add_attempts(struct run_dir *run)
{
	for (const char *const *e = run_dir_list(run, "."); *e; e++)
		if (str_starts(*e, "eval-"))
			add_case(run, *e);
	for (const char *const *e = run_dir_list(run, "queries"); *e; e++)
		if ((*e)[0] != '.')
			add_attempt(run, ATTEMPT_TRIGGER, path_join("queries", *e),
				query_id(*e), "");
	for (const char *const *e = run_dir_list(run, "controls"); *e; e++)
		if ((*e)[0] != '.')
			add_attempt(run, ATTEMPT_CONTROL, path_join("controls", *e), *e, "");
}

/* ---- the run ---- */

static void add_configurations(struct run_dir *run)
{
	const struct json_value *list = json_member(run->json, "configurations");
	VEC(const char *) names = { 0 };

	if (list && list->type == JSON_LIST)
		json_each(it, list)
			if (it->type == JSON_STRING)
				vec_push(&names, it->text);
	vec_each(a, &run->attempts)
		if (a->kind == ATTEMPT_ARTIFACT &&
			index_of(names.v, names.n, a->configuration, names.n) == names.n)
			vec_push(&names, a->configuration);
	run->configurations = names.v;
	run->configuration_count = names.n;
}

static void read_run(struct run_dir *run)
{
	const struct json_value *suite = json_member(run->json, "suite");
	const struct json_value *agent = json_member(run->json, "agent");
	const struct json_value *options = json_member(run->json, "options");

	run->id = text_or(run->json, "id", path_base(run->path));
	run->skill = text_or(suite, "skill", run->id);
	run->harness = text_or(agent, "harness", "");
	run->version = text_or(agent, "version", "");
	run->model = text_or(agent, "model", "");
	run->profile = text_or(agent, "profile", "");
	run->started = member_text(run->json, "started");
	run->ended = member_text(run->json, "ended");
	run->planned = count_or(run->json, "planned", 0);
	run->min_n = count_or(options, "min_n", MIN_N);
	run->repeat = count_or(options, "repeat", 1);
	run->threshold = member_number(options, "threshold");
	if (!(run->threshold >= 0 && run->threshold <= 1))
		run->threshold = 0.5;
}

int run_dir_read(const char *path, struct run_dir *ret, struct fault *f)
{
	struct run_dir run = { .fd = -1, .memory = mem_mark() };
	const char *real = fd_real_path(path), *problem;

	run.path = real ? real : path;
	run.fd = openat(AT_FDCWD, run.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run.fd < 0)
		return fault_set(f, errno, "open the run '%s'", str_visible(path));
	run.json = read_json(&run, ".", "run.json", &problem);
	if (!run.json && faccessat(run.fd, "run.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		fd_close(&run.fd);
		return fault_set(f, 0, "the run '%s': %s", str_visible(path), problem);
	}
	read_run(&run);
	add_attempts(&run);
	if (!run.json && !run.attempts.n) {
		fd_close(&run.fd);
		fault_set(f, 0, "'%s' is no run: it holds neither run.json nor an attempt",
			str_visible(path));
		return fault_fix(f, "`carrel eval` prints the directory of a run at its end.");
	}
	add_configurations(&run);
	*ret = run;
	return 0;
}

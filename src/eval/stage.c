/*
 * eval/stage.c - the workspace of one attempt, and the box that is asked for
 *
 * In BMAD's order: a copy of the project, the setup directories, the skill, the case's files;
 * later wins. Left out of the copy: version control, build output, what clients obey
 * (.claude, .mcp.json), the skill itself and its suite. Otherwise a run "without" the skill
 * could read it, and any run could read what it is graded by.
 *
 * Claude Code finds the skill as a project's own in .claude/skills; declaring it in a manifest
 * would also list it in the system prompt, and a trigger eval must see the client's own list.
 * Other clients get it from the manifest.
 */
#include "eval/trial.h"
#include "harness/harness.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTROL_SKILL                                                                  \
	"---\nname: %s\ndescription: Knows the control word. Use this skill whenever " \
	"somebody "                                                                    \
	"asks for the control word.\n---\nThe control word is: lectern.\n"
#define CONTROL_QUERY "Use the %s skill and tell me the control word."

static const char *const not_copied[] = { ".git", ".bare", "node_modules", ".venv",
	"__pycache__", ".pytest_cache", ".next", "dist", "build", ".cache", NULL };
static const char *const obeyed[] = { ".claude", ".mcp.json", ".codex", ".agents", ".gemini",
	".opencode", "opencode.json", "carrel.json", NULL };
static const char *const not_of_skill[] = { "evals", "evals.json", "eval.json", "cases.json",
	"triggers.json", "trigger-eval.json", "trigger-evals.json", "trigger-queries.json",
	"trigger_eval_set.json", NULL };

/* ---- the skill ---- */

/* SKILL.md under another name: the client goes by what the front matter says. */
static const char *renamed(const char *text, const char *name)
{
	struct str out = { 0 };
	const char *at = text, *end;

	if (strncmp(text, "---\n", 4) != 0 && strncmp(text, "---\r\n", 5) != 0)
		return mem_printf("---\nname: %s\n---\n%s", name, text);
	end = strchr(text, '\n') + 1;
	str_addn(&out, text, (size_t)(end - text));
	str_addf(&out, "name: %s\n", name);
	for (at = end; *at; at = end) {
		end = at + strcspn(at, "\n");
		end += *end == '\n';
		if (!strncmp(at, "---", 3)) {
			str_add(&out, at);
			break;
		}
		if (strncmp(at, "name:", 5) != 0)
			str_addn(&out, at, (size_t)(end - at));
	}
	return out.p;
}

static int rename_skill(int dir, const char *name, struct fault *f)
{
	const char *text = fd_read_file(dir, "SKILL.md", 1 << 20);

	if (!text)
		return fault_set(f, errno, "read the staged SKILL.md");
	text = renamed(text, name);
	return record_file(dir, "SKILL.md", text, strlen(text), f);
}

static int put_skill(const struct trial *t, const char *from, const char *name, int dir,
	struct fault *f)
{
	struct copy_skip skip = { .names = not_copied, .tops = not_of_skill };
	const char *text;
	int rc;

	if (t->kind == ATTEMPT_CONTROL) {
		text = mem_printf(CONTROL_SKILL, name);
		return record_file(dir, "SKILL.md", text, strlen(text), f);
	}
	rc = copy_tree(from, dir, &skip, f);
	if (rc == 0 && t->kind == ATTEMPT_TRIGGER)
		rc = rename_skill(dir, name, f);
	return rc;
}

static int stage_skill(const struct bench *b, const struct trial *t, struct stage *s,
	struct fault *f)
{
	const struct suite *suite = b->suite;
	const char *from = suite->skill.dir, *name = suite->skill.name, *where;
	auto_close int top = -1, dir = -1;

	if (t->configuration && t->configuration->no_skill)
		return 0;
	if (t->configuration && t->configuration->skill)
		from = t->configuration->skill;
	if (t->kind == ATTEMPT_TRIGGER)
		name = b->trigger_name;
	if (t->kind == ATTEMPT_CONTROL)
		name = b->control_name;
	else if (!from)
		return 0;
	where = s->harness == &harness_claude
		? mem_printf("%s/.claude/skills/%s", path_base(s->workspace), name)
		: mem_printf("skills/%s", name);
	top = openat(AT_FDCWD, s->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = top < 0 ? -1 : copy_make_dirs(top, where, f);
	if (dir < 0)
		return fault_set(f, errno, "stage the skill in %s", str_visible(s->top));
	s->skill = name;
	return put_skill(t, from, name, dir, f);
}

/* ---- the workspace ---- */

static int stage_project(const struct bench *b, const struct trial *t, struct stage *s,
	struct fault *f)
{
	struct copy_skip skip = { .names = not_copied, .tops = obeyed };
	const struct suite *suite = b->suite;
	int rc = 0;

	if (t->kind != ATTEMPT_ARTIFACT)
		return 0;
	copy_skip_dir(&skip, suite->skill.dir);
	copy_skip_dir(&skip, t->configuration->skill);
	copy_skip_dir(&skip, b->run_dir);
	if (suite->project && strcmp(suite->dir, suite->project) != 0)
		copy_skip_dir(&skip, suite->dir);
	if (suite->project)
		rc = copy_tree(suite->project, s->workspace_fd, &skip, f);
	for (size_t i = 0; rc == 0 && i < t->c->setups.n; i++)
		rc = copy_tree(t->c->setups.v[i], s->workspace_fd, NULL, f);
	return rc;
}

static int stage_files(const struct trial *t, struct stage *s, struct fault *f)
{
	int rc = 0;

	if (t->kind != ATTEMPT_ARTIFACT)
		return 0;
	for (size_t i = 0; rc == 0 && i < t->c->files.n; i++)
		rc = copy_as(t->c->files.v[i].from, s->workspace_fd, t->c->files.v[i].to, f);
	return rc;
}

/* ---- the manifest ---- */

/* "/review the diff", where the skill `review` is not there for it to be a command. */
static bool calls_skill(const char *prompt, const char *skill)
{
	size_t n = skill ? strlen(skill) : 0;

	return n && prompt[0] == '/' && !strncmp(prompt + 1, skill, n) &&
		!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.",
			prompt[1 + n] ? prompt[1 + n] : ' ');
}

/*
 * Claude Code takes a text that begins with '/' as a command of its own, and does not ask the
 * model if it knows none of that name. A trigger eval asks what the model does with the words,
 * and an attempt without the skill has a right to them, too: behind a space they are text.
 */
static const char *as_words(const char *prompt)
{
	return mem_printf(" %s", prompt);
}

static const char *case_prompt(const struct bench *b, const struct trial *t)
{
	return t->configuration && t->configuration->no_skill &&
			calls_skill(t->c->prompt, b->suite->skill.name)
		? as_words(t->c->prompt)
		: t->c->prompt;
}

const char *stage_prompt(const struct bench *b, const struct trial *t)
{
	if (t->kind == ATTEMPT_ARTIFACT)
		return case_prompt(b, t);
	if (t->kind == ATTEMPT_TRIGGER)
		return t->query->query[0] == '/' ? as_words(t->query->query) : t->query->query;
	return b->suite->control ? b->suite->control
				 : mem_printf(CONTROL_QUERY, b->control_name);
}

const char *stage_turn(const struct bench *b, const struct trial *t, size_t n)
{
	struct str out = { 0 };
	struct json j = { .out = &out };

	if (n > t->c->turns.n)
		return NULL;
	json_open(&j, NULL, '{');
	json_string(&j, "type", "user");
	json_open(&j, "message", '{');
	json_string(&j, "role", "user");
	json_string(&j, "content", n ? t->c->turns.v[n - 1] : case_prompt(b, t));
	json_close(&j, '}');
	json_close(&j, '}');
	str_addc(&out, '\n');
	return out.p;
}

static bool has_turns(const struct trial *t)
{
	return t->c && t->c->turns.n;
}

static void add_env(const struct bench *b, const struct stage *s, struct json *j)
{
	json_open(j, "env", '{');
	if (s->harness == &harness_claude) {
		/* It would try a refused key for two minutes. */
		json_string(j, "CLAUDE_CODE_MAX_RETRIES", "4");
		if (b->suite->realistic)
			json_string(j, "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "0");
	}
	json_close(j, '}');
}

static void add_list(struct json *j, const char *key, const text_vec *list)
{
	json_open(j, key, '[');
	vec_each(item, list)
		json_string(j, NULL, *item);
	json_close(j, ']');
}

static void write_manifest(const struct bench *b, const struct trial *t, const struct stage *s,
	struct str *out)
{
	struct json j = { .out = out, .indent = true };
	bool declared = s->skill && s->harness != &harness_claude;

	json_open(&j, NULL, '{');
	json_open(&j, "library", '{');
	json_open(&j, "skills", '{');
	if (declared) {
		json_open(&j, s->skill, '{');
		json_string(&j, "source", mem_printf("%s/skills/%s", s->top, s->skill));
		json_close(&j, '}');
	}
	json_close(&j, '}');
	json_close(&j, '}');
	json_open(&j, "agents", '{');
	json_open(&j, "agent", '{');
	json_string(&j, "harness", s->harness->name);
	if (s->model)
		json_string(&j, "model", s->model);
	if (!has_turns(t))
		json_string(&j, "prompt", stage_prompt(b, t));
	if (declared) {
		json_open(&j, "skills", '[');
		json_string(&j, NULL, s->skill);
		json_close(&j, ']');
	}
	if (s->harness == &harness_command)
		add_list(&j, "command", &b->suite->command);
	add_env(b, s, &j);
	json_close(&j, '}');
	json_close(&j, '}');
	json_close(&j, '}');
	str_addc(out, '\n');
}

static int put_manifest(const struct bench *b, const struct trial *t, struct stage *s, int top,
	struct fault *f)
{
	struct str text = { 0 };

	write_manifest(b, t, s, &text);
	s->manifest = path_join(s->top, "carrel.json");
	s->trust = hash_hex(text.p, text.len);
	return record_file(top, "carrel.json", text.p, text.len, f);
}

/* ---- the whole ---- */

int stage_trial(const struct bench *b, const struct trial *t, unsigned int number,
	struct stage *ret, struct fault *f)
{
	const char *project = b->suite->project && t->kind == ATTEMPT_ARTIFACT
		? path_base(b->suite->project)
		: "project";
	const struct suite_configuration *c = t->configuration;
	struct stage s = { .top = mem_printf("%s/%u", b->scratch, number), .workspace_fd = -1 };
	auto_close int top = -1;
	int rc;

	s.harness = harness_find(c && c->harness ? c->harness : b->suite->harness);
	s.model = c && c->model ? c->model : b->suite->model;
	/* A model of one client means nothing to another. */
	if (c && c->harness && strcmp(c->harness, b->suite->harness) != 0)
		s.model = c->model;
	s.workspace = path_join(s.top,
		*project == '.' || !strcmp(project, "skills") ||
				!strcmp(project, "carrel.json") || !strcmp(project, "state") ||
				!strcmp(project, "config")
			? "project"
			: project);
	if (mkdir(s.top, 0700) < 0)
		return fault_set(f, errno, "make %s", str_visible(s.top));
	top = openat(AT_FDCWD, s.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0 || mkdirat(top, "state", 0700) < 0 || mkdirat(top, "config", 0700) < 0)
		return fault_set(f, errno, "make directories in %s", str_visible(s.top));
	s.workspace_fd = copy_make_dirs(top, path_base(s.workspace), f);
	rc = s.workspace_fd < 0 ? s.workspace_fd : stage_project(b, t, &s, f);
	if (rc == 0)
		rc = stage_skill(b, t, &s, f);
	if (rc == 0)
		rc = stage_files(t, &s, f);
	if (rc == 0)
		rc = put_manifest(b, t, &s, top, f);
	if (rc == 0)
		rc = snapshot_take(s.workspace_fd, &s.before, f);
	if (rc == 0)
		*ret = s;
	return rc;
}

/* ---- the command line ---- */

const char *stage_service(const struct harness *h)
{
	for (const char *const *name = h->variables; name && *name; name++) {
		const char *url = str_ends(*name, "_BASE_URL") ? getenv(*name) : NULL;
		const char *host = url ? strstr(url, "://") : NULL, *port;

		if (!host)
			continue;
		host += 3;
		port = str_starts(host, "127.0.0.1:")    ? host + 10
			: str_starts(host, "localhost:") ? host + 10
							 : NULL;
		if (port && strspn(port, "0123456789"))
			return mem_strndup(port, strspn(port, "0123456789"));
	}
	return NULL;
}

static void add_client_args(const struct bench *b, const struct trial *t, const struct stage *s,
	text_vec *argv)
{
	const struct suite_limits *own = t->c ? &t->c->limits : NULL;
	unsigned long long turns = own && own->turns ? own->turns : b->suite->limits.turns;
	double usd = own && own->usd > 0 ? own->usd : b->suite->limits.usd;

	vec_push(argv, "--");
	if (s->harness == &harness_claude) {
		vec_push(argv, "--setting-sources");
		vec_push(argv, "user,project");
		if (turns) {
			vec_push(argv, "--max-turns");
			vec_push(argv, mem_printf("%llu", turns));
		}
		if (usd > 0) {
			vec_push(argv, "--max-budget-usd");
			vec_push(argv, mem_printf("%.9g", usd));
		}
		if (has_turns(t)) {
			vec_push(argv, "--input-format");
			vec_push(argv, "stream-json");
		}
	}
	vec_each(arg, &b->args)
		vec_push(argv, *arg);
}

static void add_hosts(text_vec *argv, const text_vec *hosts)
{
	vec_each(host, hosts) {
		vec_push(argv, "--allow");
		vec_push(argv, *host);
	}
}

const char *const *stage_argv(const struct bench *b, const struct trial *t,
	const struct stage *s, bool plan)
{
	const char *service = stage_service(s->harness);
	text_vec argv = { 0 };
	const char *const first[] = { "carrel", "run", plan ? "-n" : "-y", "-m", s->manifest,
		"--workspace", s->workspace, "--no-git-config", "--headless", "--protect",
		"!**" };

	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		vec_push(&argv, first[i]);
	if (s->harness != &harness_command)
		vec_push(&argv, "--events");
	if (plan)
		vec_push(&argv, "--json");
	if (b->prompts)
		vec_push(&argv, "--prompts");
	if (service) {
		vec_push(&argv, "--service");
		vec_push(&argv, service);
	}
	vec_each(port, &b->services) {
		vec_push(&argv, "--service");
		vec_push(&argv, *port);
	}
	if (t->kind == ATTEMPT_ARTIFACT) { /* a trigger eval reaches the model alone */
		add_hosts(&argv, &b->allow);
		add_hosts(&argv, &b->suite->allow);
		add_hosts(&argv, &t->c->allow);
	}
	vec_push(&argv, "agent");
	add_client_args(b, t, s, &argv);
	vec_push(&argv, NULL);
	return argv.v;
}

const char *const *stage_env(const struct stage *s)
{
	const char *const extra[] = { mem_printf("XDG_STATE_HOME=%s/state", s->top),
		mem_printf("XDG_CONFIG_HOME=%s/config", s->top),
		mem_printf("CARREL_TRUST=%s", s->trust), NULL };

	return box_environment(s->harness->variables, extra);
}

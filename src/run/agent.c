/*
 * run/agent.c - from an agent's name to the request for its box
 *
 * What the host has to say to a declared agent: its manifests, where its client is
 * installed, and what the user is logged in with. Nothing is changed.
 */
#include "run/agent.h"
#include "run/base-url.h"
#include "run/egress.h"
#include "run/program.h"
#include "run/ssh-keys.h"
#include "run/survey.h"
#include "harness/harness.h"
#include "manifest/keys.h"
#include "manifest/trust.h"
#include "plan/layout.h"
#include "plan/request.h"
#include "state/instance.h"
#include "state/root.h"
#include "base/json-read.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LOGIN = 1 << 20, MOST_CONFIG = 16 << 20 };

int agent_workspace(const struct request *r, const char **ret, struct fault *f)
{
	char cwd[PATH_MAX];
	/* The kernel's own answer is canonical, or says that it leads nowhere. */
	bool here = !r->workspace && getcwd(cwd, sizeof(cwd)) && cwd[0] == '/';
	const char *real =
		here ? mem_strdup(cwd) : fd_real_path(r->workspace ? r->workspace : ".");

	if (!real)
		return fault_set(f, errno, "workspace %s",
			r->workspace ? str_visible(r->workspace) : ".");
	*ret = real;
	return 0;
}

/* ---- the client ---- */

static bool is_script(const char *path)
{
	auto_close int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char head[2] = "";

	return fd >= 0 && read(fd, head, 2) == 2 && head[0] == '#' && head[1] == '!';
}

/*
 * What must be seen of an installation: a program that is one file is that file; a script of
 * a package needs the packages around it.
 */
static const char *installation(const char *program)
{
	const char *modules = is_script(program) ? strstr(program, "/node_modules/") : NULL;

	if (!modules)
		return program;
	return mem_strndup(program, (size_t)(modules - program) + strlen("/node_modules"));
}

static int no_client(const struct harness *h, struct fault *f)
{
	fault_set(f, 0, "%s: there is no program '%s' on your PATH", h->title, h->program);
	return fault_fix(f,
		"Install it, or name another client with \"harness\"; to run any command: "
		"carrel run -- CMD.");
}

const char *agent_program(const struct harness *h, const char *workspace)
{
	return h->program ? program_find_client(h->program, workspace) : NULL;
}

static int find_client(const struct harness *h, const struct agent *a, struct job *job,
	struct request *r, struct fault *f)
{
	const char *home = job->home;

	if (!h->program) {
		problems bad = { 0 };
		const struct said *own = &a->command.v[0];

		job->program = own->text;
		if (!strchr(own->text, '/'))
			return 0;
		job->program = manifest_path(own, manifest_field(a, "command"), home, &bad);
		if (!job->program)
			return fault_set(f, 0, "%s", bad.v[0]);
	} else {
		job->program = agent_program(h, job->workspace);
		if (!job->program)
			return no_client(h, f);
	}
	if (!layout_in_system(job->program) && !path_within(job->program, job->workspace)) {
		const char *seen = installation(job->program);

		vec_push(&r->mounts,
			((struct request_mount){
				.source = seen, .target = seen, .why = h->name }));
	}
	return 0;
}

/* ---- what the user is logged in with ---- */

static bool wants(const struct harness *h, const struct agent *a, const char *variable)
{
	return !h->wants || h->wants(a, variable);
}

static bool has_key(const struct harness *h, const struct agent *a, const struct request *r)
{
	for (size_t i = 0; h->keys && h->keys[i]; i++) {
		if (!wants(h, a, h->keys[i]))
			continue;
		if (getenv(h->keys[i]) && *getenv(h->keys[i]))
			return true;
		vec_each(e, &a->env)
			if (!strcmp(e->name, h->keys[i]))
				return true;
		vec_each(e, &r->env)
			if (!strcmp(e->name, h->keys[i]))
				return true;
	}
	return false;
}

/* Its last bytes, which tell it from others; never all of it. */
static const char *key_tail(const char *key)
{
	enum { TAIL = 20 };
	size_t n = key ? strlen(key) : 0;

	return n >= 2 * TAIL ? key + n - TAIL : NULL;
}

static void find_login(const struct harness *h, const struct agent *a, struct job *job,
	struct request *r)
{
	const char *path, *text;

	for (size_t i = 0; h->variables && h->variables[i]; i++)
		if (getenv(h->variables[i]))
			vec_push(&job->variables, h->variables[i]);
	if (!job->headless && h->keys)
		job->key_tail = key_tail(getenv(h->keys[0]));
	if (h->config)
		job->config =
			fd_read_file(AT_FDCWD, path_join(job->home, h->config), MOST_CONFIG);
	if (!h->login || (job->kind == HOME_DECLARED && has_key(h, a, r)))
		return;
	path = path_join(job->home, h->login);
	errno = 0;
	text = fd_read_file(AT_FDCWD, path, MOST_LOGIN);
	job->login = text && h->stage_login ? h->stage_login(text) : text;
	/*
	 * What cannot be read is covered all the same, and so is what may come to be there
	 * while the box runs: a refresh token may be in it.
	 */
	if (!job->login && (text || errno != ENOENT || job->kind == HOME_MINE))
		job->login = "{}";
	if (!text && !has_key(h, a, r))
		vec_push(&r->notices,
			mem_printf("no login for %s: set %s, or log in outside the box once",
				h->title, h->keys[0]));
}

/*
 * What the client would obey in this project, beyond what is declared. A link is hidden like
 * any other path: where it leads to need not be the client's alone.
 */
static void hide_config(const struct harness *h, const struct job *job, struct request *r)
{
	for (size_t i = 0; h->hide && h->hide[i]; i++) {
		const char *path = path_join(job->workspace, h->hide[i]);
		char real[PATH_MAX];
		struct stat st;

		if (lstat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && realpath(path, real) && !strcmp(path, real))
			vec_push(&r->empty, h->hide[i]);
		else
			vec_push(&r->hide, h->hide[i]);
	}
}

/*
 * Programs that give values run here, outside of any box: never one that an agent may have
 * put where it is.
 */
static int find_commands(const struct job *job, struct request *r, struct fault *f)
{
	vec_each(e, &r->env) {
		char real[PATH_MAX];
		const char *program;
		size_t n = 0;

		if (e->how != ENV_COMMAND)
			continue;
		program = strchr(e->argv[0], '/') ? realpath(e->argv[0], real)
						  : program_find(e->argv[0], job->workspace);
		if (!program)
			return fault_set(f, 0, "%s: there is no program '%s'%s", e->why,
				str_visible(e->argv[0]),
				strchr(e->argv[0], '/') ? ""
							: " on your PATH, outside of the "
							  "project and the directories "
							  "around it");
		if (program_is_agents(program, job->workspace))
			return fault_set(f, 0,
				"%s: '%s' runs outside the box, and lies in the project or "
				"around it, where an agent can change it",
				e->why, str_visible(e->argv[0]));
		program = mem_strdup(program);
		while (e->argv[n])
			n++;
		e->argv = memcpy(mem_alloc((n + 1) * sizeof(*e->argv)), e->argv,
			n * sizeof(*e->argv));
		((const char **)e->argv)[0] = program;
	}
	return 0;
}

/* ---- the network ---- */

/* Whoever allows nothing may mean it, and the client says less about why it fails. */
static void note_alone(const struct harness *h, struct request *r)
{
	if (r->network == NETWORK_NONE)
		vec_push(&r->notices,
			mem_printf("no network: %s cannot reach its model; --network allow "
				   "gives it its own hosts",
				h->title));
	if (r->network != NETWORK_ALLOW || r->ask)
		return;
	vec_each(host, &r->hosts)
		if (!host->deny)
			return;
	vec_push(&r->notices,
		mem_printf("nothing is allowed: %s cannot reach its model; --allow HOST adds a "
			   "host",
			h->title));
}

/* ---- all of it ---- */

/* A project's manifest that has no part in this agent needs no approval for it. */
static int check_trust(const struct manifests *m, const struct agent *a,
	struct agent_result *ret, struct fault *f)
{
	const struct manifest_file *file = m->project;
	int rc;

	if (!file || !a->project_says)
		return 0;
	rc = trust_verdict(file->path, file->bytes, file->size, &ret->trust, f);
	if (rc == 0 && ret->trust.is != TRUST_GIVEN)
		ret->untrusted = file;
	return rc;
}

/* What was set for this project alone. */
static struct manifest_file *own_settings(const struct job *job, problems *bad)
{
	struct fault f = { 0 };
	struct project p;
	const char *dir;

	if (survey_project(job->workspace, &p, &f) < 0)
		return NULL;
	dir = instance_dir(p.id);
	return dir ? manifest_settings(path_join(dir, "settings.json"), bad) : NULL;
}

/* What `carrel` alone starts. The project's manifest counts only if it has a say in that. */
static int load_mine(const struct job *job, const char *only, struct manifests *m,
	struct agent *agent, problems *bad, struct fault *f)
{
	struct manifest_file *settings = own_settings(job, bad);
	int rc = manifest_find(job->workspace, only, m, bad, f);

	if (rc < 0 || bad->n)
		return rc < 0 ? rc : -EINVAL;
	if (m->project && !json_member(m->project->tree, "mine"))
		m->project = NULL;
	manifest_mine(m, settings, agent, bad);
	return bad->n ? -EINVAL : 0;
}

void agent_check_settings(const struct manifest_file *file, problems *bad)
{
	struct agent a = {
		.mine = true, .name = { .text = "mine", .at = file->tree }, .tree = file->tree
	};

	manifest_bind(agent_keys, file->tree, &a);
	harness_check_alone(&a, bad);
	egress_check(&a, bad);
}

static int load_named(const struct agent_options *o, const struct job *job, const char *only,
	struct manifests *m, struct agent *agent, problems *bad, struct fault *f)
{
	int rc = manifest_load(job->workspace, only, m, bad, f);

	if (rc < 0 && !bad->n) {
		struct fault why = *f;

		fault_set(f, why.err, "agent '%s': %s", str_visible(o->name), why.text);
		return fault_fix(f, "%s", why.fix);
	}
	return rc < 0 ? rc : manifest_agent(m, o->name, agent, bad, f);
}

static int load_agent(const struct agent_options *o, struct job *job, struct agent *agent,
	const struct harness **ret_harness, struct agent_result *ret, struct fault *f)
{
	const struct harness *h;
	const char *only = NULL;
	struct manifests m;
	char cwd[PATH_MAX];
	int rc;

	if (!getcwd(cwd, sizeof(cwd)))
		return fault_set(f, errno, "find the working directory");
	if (o->manifest)
		only = path_join(cwd, o->manifest);
	rc = o->name ? load_named(o, job, only, &m, agent, &ret->bad, f)
		     : load_mine(job, only, &m, agent, &ret->bad, f);
	if (rc < 0)
		return rc;
	manifest_resolve(&m, job->home, agent, &ret->bad);
	h = harness_find(agent->harness.text ? agent->harness.text : "claude");
	job->kind = harness_home(agent, !o->name);
	harness_check(h, agent, job->kind, &ret->bad);
	egress_check(agent, &ret->bad);
	rc = ret->bad.n ? 0 : ssh_keys_look(job, &ret->bad, f);
	if (rc < 0 || ret->bad.n)
		return -EINVAL;
	*ret_harness = h;
	return check_trust(&m, agent, ret, f);
}

int agent_request(const struct agent_options *o, struct request *r, struct agent_result *ret,
	struct fault *f)
{
	struct agent *agent = mem_alloc(sizeof(*agent));
	struct job job = { .agent = agent,
		.home = survey_home(),
		.headless = o->headless,
		.events = o->events,
		.args = o->args };
	const struct harness *h;
	int rc;

	rc = agent_workspace(r, &job.workspace, f);
	if (rc == 0)
		rc = load_agent(o, &job, agent, &h, ret, f);
	if (rc == 0 && o->events && (o->shell || !h->program))
		rc = fault_set(f, 0, "--events: %s has none",
			o->shell ? "a shell" : "a plain command");
	if (rc == 0)
		rc = find_client(h, agent, &job, r, f);
	if (rc < 0)
		return rc;
	r->workspace = job.workspace;
	find_login(h, agent, &job, r);
	harness_assemble(h, &job, r);
	if (job.kind == HOME_DECLARED)
		hide_config(h, &job, r);
	rc = find_commands(&job, r, f);
	if (rc < 0)
		return rc;
	if (o->shell)
		r->argv = NULL;
	if (o->shell)
		r->input = NULL;
	base_url_hosts(h, agent, r);
	if (h->program && !o->shell)
		note_alone(h, r);
	return 0;
}

/*
 * run/agent.c - from an agent's name to the request for its box
 *
 * Collect what the host knows about an agent: its manifests, where its client is installed, and
 * the user's login. Nothing is changed.
 */
#include "run/agent.h"
#include "run/base-url.h"
#include "host/network-policy.h"
#include "run/login.h"
#include "host/host-program.h"
#include "run/ssh-keys.h"
#include "host/survey.h"
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
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int agent_workspace(const struct request *r, const char **ret, struct fault *f)
{
	char cwd[PATH_MAX];
	/* The kernel's own answer is canonical, or says that the path leads nowhere. */
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
 * The part of an installation that the box must see: for a program of one file, that file; for
 * a script of a package, the packages around it as well.
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

/* ---- what it finds ---- */

/*
 * Hide what the client would obey in this project beyond the declarations. A link is hidden
 * like any other path; its target stays visible, because others may need it.
 */
static int hide_config(const struct harness *h, const struct job *job, struct request *r,
	struct fault *f)
{
	for (size_t i = 0; h->hide && h->hide[i]; i++) {
		const char *path = path_join(job->workspace, h->hide[i]);
		char real[PATH_MAX];
		struct stat st;
		int rc = look_at(AT_FDCWD, path, &st, f);

		if (rc < 0)
			return rc;
		if (!rc)
			continue;
		if (S_ISDIR(st.st_mode) && realpath(path, real) && !strcmp(path, real))
			vec_push(&r->empty, h->hide[i]);
		else
			vec_push(&r->hide, h->hide[i]);
	}
	return 0;
}

/*
 * Programs that give values run outside of any box, so never run one that an agent may have put
 * there.
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

/*
 * An empty list may be intended, so this is a notice. The client's own message would say less.
 */
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

/* If no part of the agent comes from the project's manifest, the manifest needs no approval. */
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

/* The settings of this project alone. */
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

/*
 * The agent that `carrel` alone starts. The project's manifest needs approval only if it has a
 * part in that agent.
 */
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

static bool is_declared(const char *name, const struct job *job, const char *only)
{
	struct fault ignored = { 0 };
	said_vec names = { 0 };
	problems bad = { 0 };
	struct manifests m;

	/* load_named() reports errors in a manifest. */
	if (manifest_find(job->workspace, only, &m, &bad, &ignored) < 0)
		return true;
	manifest_names(&m, &names);
	vec_each(known, &names)
		if (!strcmp(known->text, name))
			return true;
	return false;
}

/*
 * The client that the name stands for, if it means the user's own. A declared agent of that
 * name wins, unless the command itself was the client's name.
 */
static const char *own_client(const struct agent_options *o, const struct job *job,
	const char *only, struct request *r)
{
	const char *name = o->client ? o->client : o->name;
	const struct harness *h = name ? harness_find(name) : NULL;

	if (!h || !h->assemble_mine)
		return NULL;
	if (!is_declared(name, job, only))
		return name;
	vec_push(&r->notices,
		o->client ? mem_printf("this is your own %s; the agent of that name is "
				       "`carrel run %s`",
				    h->title, name)
			  : mem_printf("this is the declared agent; your own %s is "
				       "`carrel %s`",
				    h->title, name));
	return o->client;
}

/* Drop settings of "mine" that are in the terms of another client. */
static void be_client(const char *name, struct agent *a)
{
	const char *said = a->harness.text ? a->harness.text : "claude";

	if (strcmp(said, name) != 0) {
		a->model = a->effort = (struct said){ 0 };
		a->args.n = 0;
	}
	a->harness.text = name;
}

static int load_agent(const struct agent_options *o, struct job *job, struct agent *agent,
	struct request *r, const struct harness **ret_harness, struct agent_result *ret,
	struct fault *f)
{
	const struct harness *h;
	const char *only = NULL, *client;
	struct manifests m;
	char cwd[PATH_MAX];
	int rc;

	if (!getcwd(cwd, sizeof(cwd)))
		return fault_set(f, errno, "find the working directory");
	if (o->manifest)
		only = path_join(cwd, o->manifest);
	client = own_client(o, job, only, r);
	ret->own = client || !o->name;
	rc = ret->own ? load_mine(job, only, &m, agent, &ret->bad, f)
		      : load_named(o, job, only, &m, agent, &ret->bad, f);
	if (rc < 0)
		return rc;
	if (client)
		be_client(client, agent);
	if (o->prompts)
		agent->permissions.skip_prompts = FLAG_OFF;
	manifest_resolve(&m, job->home, agent, &ret->bad);
	h = harness_find(agent->harness.text ? agent->harness.text : "claude");
	job->kind = harness_home(agent, ret->own);
	harness_check(h, agent, job->kind, &ret->bad);
	egress_check(agent, &ret->bad);
	rc = ret->bad.n ? 0 : ssh_keys_look(job, &ret->bad, f);
	if (rc < 0 || ret->bad.n)
		return -EINVAL;
	*ret_harness = h;
	return check_trust(&m, agent, ret, f);
}

/* Users of other sandboxes expect `carrel -- make` to run make. */
static void hint_command(const struct harness *h, const struct job *job, struct request *r)
{
	const char *word = job->args ? job->args[0] : NULL;

	if (!word || !*word || word[0] == '-' || strpbrk(word, " \t\n/") ||
		harness_says_run(h, job) || !program_find(word, job->workspace))
		return;
	vec_push(&r->notices,
		mem_printf("%s is given '%s' as a prompt; to run that program in a box: "
			   "carrel run -- %s",
			h->title, str_visible(word), str_visible(word)));
}

/* The agent's box without its client. */
static void be_shell(struct request *r)
{
	struct request_agent *a = mem_alloc(sizeof(*a));

	*a = *r->agent;
	a->title = NULL;
	a->prompts = PROMPTS_NONE;
	r->agent = a;
	r->argv = NULL;
	r->input = NULL;
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
		rc = load_agent(o, &job, agent, r, &h, ret, f);
	if (rc == 0 && o->events && (o->shell || !h->program))
		rc = fault_set(f, 0, "--events: %s has none",
			o->shell ? "a shell" : "a plain command");
	if (rc == 0)
		rc = find_client(h, agent, &job, r, f);
	if (rc < 0)
		return rc;
	r->workspace = job.workspace;
	login_find(h, agent, &job, r);
	harness_assemble(h, &job, r);
	if (job.kind == HOME_DECLARED)
		rc = hide_config(h, &job, r, f);
	if (rc == 0)
		rc = find_commands(&job, r, f);
	if (rc < 0)
		return rc;
	if (ret->own && !o->shell)
		hint_command(h, &job, r);
	if (o->shell)
		be_shell(r);
	base_url_hosts(h, agent, r);
	if (h->program && !o->shell)
		note_alone(h, r);
	return 0;
}

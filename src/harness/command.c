/*
 * harness/command.c - any program
 *
 * The program finds its input by variables: CARREL_PROMPT and CARREL_ROLE name files,
 * CARREL_SKILLS a directory. Headless, the prompt is its standard input.
 */
#include "harness/harness.h"
#include "manifest/manifest.h"
#include "plan/request.h"

static void assemble(const struct job *job, name_vec *argv, struct request *r)
{
	const struct agent *a = job->agent;

	vec_push(argv, job->program);
	for (size_t i = 1; i < a->command.n; i++)
		vec_push(argv, a->command.v[i].text);
	if (a->prompt.text)
		harness_set(r, "CARREL_PROMPT", HARNESS_PROMPT);
	if (a->role_text)
		harness_set(r, "CARREL_ROLE", mem_printf("%s/.agents/AGENTS.md", job->home));
	if (a->use_skills.n)
		harness_set(r, "CARREL_SKILLS", mem_printf("%s/.agents/skills", job->home));
}

static void event(const struct json_value *line, struct harness_event *ret)
{
	(void)line;
	*ret = (struct harness_event){ 0 };
}

const struct harness harness_command = {
	.name = "command",
	.title = "a plain command",
	.role = ".agents/AGENTS.md",
	.skills = ".agents/skills",
	.can = CAN_SKILLS | CAN_COMMAND,
	.assemble = assemble,
	.event = event,
};

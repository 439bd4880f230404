/*
 * cli/commands.c - every command, in the order of the help
 */
#include "cli/cmd.h"
#include "cli/opt.h"

extern const struct cmd cmd_run_entry, cmd_race_entry, cmd_apply_entry, cmd_plan_entry,
	cmd_shell_entry, cmd_check_entry, cmd_help_entry, cmd_version_entry,
	cmd_completion_entry, cmd_schema_entry, cmd_man_entry, cmd_agents_entry,
	cmd_trust_entry, cmd_init_entry, cmd_instances_entry, cmd_gc_entry, cmd_ps_entry,
	cmd_events_entry, cmd_allow_entry, cmd_port_entry, cmd_found_entry, cmd_claude_entry,
	cmd_codex_entry, cmd_gemini_entry, cmd_opencode_entry, cmd_eval_entry, cmd_report_entry,
	cmd_attach_entry, cmd_stop_entry, cmd_restart_entry, cmd_wait_entry, cmd_logs_entry,
	cmd_send_entry, cmd_exec_entry, cmd_diff_entry, cmd_discard_entry, cmd_rm_entry,
	cmd_unit_entry, cmd_top_entry;

const struct cmd *const commands[] = {
	&cmd_run_entry,
	&cmd_plan_entry,
	&cmd_shell_entry,
	&cmd_claude_entry,
	&cmd_codex_entry,
	&cmd_gemini_entry,
	&cmd_opencode_entry,
	&cmd_race_entry,
	&cmd_ps_entry,
	&cmd_top_entry,
	&cmd_attach_entry,
	&cmd_exec_entry,
	&cmd_logs_entry,
	&cmd_send_entry,
	&cmd_stop_entry,
	&cmd_restart_entry,
	&cmd_wait_entry,
	&cmd_unit_entry,
	&cmd_diff_entry,
	&cmd_apply_entry,
	&cmd_discard_entry,
	&cmd_rm_entry,
	&cmd_events_entry,
	&cmd_found_entry,
	&cmd_allow_entry,
	&cmd_port_entry,
	&cmd_agents_entry,
	&cmd_init_entry,
	&cmd_trust_entry,
	&cmd_eval_entry,
	&cmd_report_entry,
	&cmd_instances_entry,
	&cmd_gc_entry,
	&cmd_check_entry,
	&cmd_help_entry,
	&cmd_version_entry,
	&cmd_completion_entry,
	&cmd_schema_entry,
	&cmd_man_entry,
	NULL,
};

const char program_about[] = "run a program in a box that holds only what it was given";

const struct opt program_opts[] = {
	OPT_FLAG('V', "version", struct program_args, version, "print the version and stop"),
	OPT_END,
};

/*
 * eval/outputs.h - a run in the forms that other tools read
 *
 * All are made from a run directory that was read (eval/attempts.h) and its summary. What they
 * have no word for, an error or a limit, they never show as a failure; docs/report.md says
 * how each form is used. Text in them is UTF-8, whatever an agent wrote.
 */
#ifndef EVAL_OUTPUTS_H
#define EVAL_OUTPUTS_H

struct attempt;
struct fault;
struct json;
struct run_dir;
struct str;
struct summary;

/*
 * Write all files that belong into the run directory: BMAD's execution-summary.json and
 * triggers-result.json, skill-creator's benchmark.json and benchmark.md, and ATIF's
 * trajectory.json in each attempt. For the engine, at the end of a run.
 */
int outputs_write(const struct run_dir *run, const struct summary *s, struct fault *f);

/* One file each, appended to out. */
void bmad_execution(const struct run_dir *run, const struct summary *s, struct str *out);
void bmad_triggers(const struct run_dir *run, const struct summary *s, struct str *out);
void benchmark_json(const struct run_dir *run, const struct summary *s, struct str *out);
void benchmark_markdown(const struct run_dir *run, const struct summary *s, struct str *out);
void attempts_csv(const struct run_dir *run, const struct summary *s, struct str *out);
void junit_xml(const struct run_dir *run, const struct summary *s, struct str *out);
void atif_trajectory(const struct run_dir *run, const struct attempt *a, struct str *out);

/* Inspect's log holds every transcript: it is written piece by piece. */
int inspect_write(const struct run_dir *run, const struct summary *s, int fd, struct fault *f);

/* "expectations": those that have a verdict, each with text, passed and evidence. */
void outputs_add_expectations(struct json *j, const struct attempt *a);

/* Text for XML and for one line of Markdown: nothing of it is obeyed. */
void xml_add(struct str *out, const char *text);
void markdown_add(struct str *out, const char *text);

#endif

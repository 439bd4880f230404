/*
 * eval/outputs.c - the files of a run that other tools read
 */
#include "eval/outputs.h"
#include "base/mem.h"
#include "base/str.h"
#include "eval/summary.h"

static const struct {
	const char *name;
	void (*make)(const struct run_dir *run, const struct summary *s, struct str *out);
	enum attempt_kind kind; /* only where the run has such attempts */
} files[] = {
	{ "execution-summary.json", bmad_execution, ATTEMPT_ARTIFACT },
	{ "triggers-result.json", bmad_triggers, ATTEMPT_TRIGGER },
	{ "benchmark.json", benchmark_json, ATTEMPT_ARTIFACT },
	{ "benchmark.md", benchmark_markdown, ATTEMPT_ARTIFACT },
};

/* An attempt never changes once it is made, so a trajectory that is there stays. */
static int write_trajectories(const struct run_dir *run, struct fault *f)
{
	vec_each(a, &run->attempts) {
		void *mark = mem_mark();
		struct str out = { 0 };
		size_t n, size;
		int rc = 0;

		if (!run_dir_file(run, a->path, "trajectory.json", 1, &n, &size)) {
			atif_trajectory(run, a, &out);
			rc = run_dir_write(run, a->path, "trajectory.json", out.p, out.len, f);
		}
		mem_reset(mark);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int outputs_write(const struct run_dir *run, const struct summary *s, struct fault *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct str out = { 0 };
		int rc;

		if (files[i].kind == ATTEMPT_TRIGGER ? !s->queries.n : !s->cases.n)
			continue;
		files[i].make(run, s, &out);
		rc = run_dir_write(run, ".", files[i].name, out.p, out.len, f);
		if (rc < 0)
			return rc;
	}
	return write_trajectories(run, f);
}

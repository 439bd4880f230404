/*
 * eval/out-junit.c - JUnit XML, for CI servers
 *
 * A test case is a case of the suite, or a query, and not an attempt: it fails where the run
 * says that it fails, so that the server and the exit code agree. Only the first
 * configuration is tested; a case that fails without the skill is no failure of the skill.
 * One without a verdict is an <error>.
 */
#include "eval/outputs.h"
#include "base/str.h"
#include "eval/conversation.h"
#include "eval/summary.h"

#include <math.h>
#include <string.h>

void xml_add(struct str *out, const char *text)
{
	for (text = utf8_clean(text); *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '<' || c == '>' || c == '&' || c == '"')
			str_add(out,
				c == '<'           ? "&lt;"
					: c == '>' ? "&gt;"
					: c == '&' ? "&amp;"
						   : "&quot;");
		else if (c == '\n' || c == '\t')
			str_addf(out, "&#%d;", c);
		else if (c < ' ' || c == 0x7f)
			str_add(out, "\xef\xbf\xbd"); /* XML 1.0 has no way to write it */
		else if (c == 0xef && (unsigned char)text[1] == 0xbf &&
			(unsigned char)text[2] >= 0xbe) {
			str_add(out, "\xef\xbf\xbd"); /* U+FFFE, U+FFFF */
			text += 2;
		} else {
			str_addc(out, (char)c);
		}
	}
}

static void add_attribute(struct str *out, const char *name, const char *value)
{
	str_addf(out, " %s=\"", name);
	xml_add(out, value);
	str_addc(out, '"');
}

static bool belongs(const struct attempt *a, const struct summary_case *c,
	enum attempt_kind kind, const char *configuration)
{
	return a->kind == kind && strcmp(a->id, c->id) == 0 &&
		(kind == ATTEMPT_TRIGGER || strcmp(a->configuration, configuration) == 0);
}

/* Attempts of a case lie together: the search goes on where the last one ended. */
struct place {
	const struct run_dir *run;
	size_t at;
	const char *configuration;
	enum attempt_kind kind;
};

static double add_attempts(struct place *p, const struct summary_case *c, struct str *text)
{
	double seconds = 0;
	size_t n = p->run->attempts.n;

	for (size_t i = 0; i < n; i++, p->at = (p->at + 1) % n) {
		const struct attempt *a = &p->run->attempts.v[p->at];

		if (!belongs(a, c, p->kind, p->configuration)) {
			if (text->len)
				break;
			continue;
		}
		seconds += isfinite(a->seconds) ? a->seconds : 0;
		str_addf(text, "%s: %s%s%s\n", a->path, attempt_outcome_name(a->outcome),
			*a->reason ? ": " : "", a->reason);
	}
	return seconds;
}

static void add_case(struct place *p, const struct summary_case *c, const char *suite,
	struct str *out)
{
	struct str text = { 0 };
	const struct stats_case *v = &c->v[0];
	double seconds = add_attempts(p, c, &text);
	bool bad = v->n && !summary_case_passes(p->run, c, p->kind);

	str_add(out, "    <testcase");
	add_attribute(out, "classname", suite);
	add_attribute(out, "name", c->query ? mem_printf("%s: %s", c->id, c->query) : c->id);
	str_addf(out, " time=\"%.3f\">", seconds);
	if (bad || !v->n) {
		str_addf(out, "\n      <%s", bad ? "failure" : "error");
		add_attribute(out, "message",
			!v->n ? "no attempt gave a verdict"
				: p->kind == ATTEMPT_TRIGGER
				? mem_printf("fired in %u of %u attempts, and should%s",
					  v->passed, v->n, c->should_trigger ? "" : " not")
				: mem_printf("%u of %u attempts pass", v->passed, v->n));
		str_addc(out, '>');
		xml_add(out, text.p ? text.p : "");
		str_addf(out, "</%s>\n    ", bad ? "failure" : "error");
	}
	str_add(out, "</testcase>\n");
}

static void add_suite(const struct run_dir *run, const summary_cases *list,
	enum attempt_kind kind, const char *configuration, struct str *out)
{
	struct place p = { .run = run, .configuration = configuration, .kind = kind };
	const char *name = mem_printf("%s.%s", run->skill,
		kind == ATTEMPT_TRIGGER ? "triggers" : configuration);
	size_t failures = 0, errors = 0;

	vec_each(c, list) {
		failures += c->v[0].n && !summary_case_passes(run, c, kind);
		errors += !c->v[0].n;
	}
	str_add(out, "  <testsuite");
	add_attribute(out, "name", name);
	str_addf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"0\"", list->n,
		failures, errors);
	if (run->started)
		add_attribute(out, "timestamp", run->started);
	str_add(out, ">\n");
	vec_each(c, list)
		add_case(&p, c, name, out);
	str_add(out, "  </testsuite>\n");
}

void junit_xml(const struct run_dir *run, const struct summary *s, struct str *out)
{
	str_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
	add_attribute(out, "name", run->id);
	str_add(out, ">\n");
	if (s->cases.n)
		add_suite(run, &s->cases, ATTEMPT_ARTIFACT, s->configurations[0].name, out);
	if (s->queries.n)
		add_suite(run, &s->queries, ATTEMPT_TRIGGER, "", out);
	str_add(out, "</testsuites>\n");
}

/*
 * eval/report.c - one HTML file that shows runs
 *
 * Theory of operation. The file is, in this order: a head with a content security policy,
 * the style, the page's frame, the data of the overview, the script, and then one element
 * for each attempt. The script starts before the attempts are parsed, so ten thousand of
 * them do not delay the first picture. An attempt's details are JSON, compressed (RFC 1951)
 * and in base64, and the page unpacks the one that is looked at.
 *
 * Hostile content stays inert three times over. It stands in <script> elements with a type
 * that no browser executes, as base64 or with every "<" escaped, so no byte of it can end
 * the element. The page's script builds text nodes only. And the policy allows exactly one
 * script and one style, by their hashes, and no request of any kind.
 */
#include "eval/report.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/str.h"
#include "eval/conversation.h"
#include "eval/summary.h"

#include "report-page.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	FILE_MOST = 256u << 20, /* of the page; a browser opens that */
	REASON_MOST = 300,
	QUERY_MOST = 500,
};

/* ---- text ---- */

static void add_base64(struct str *out, const unsigned char *p, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		unsigned int v = (unsigned int)p[i] << 16 |
			(i + 1 < n ? (unsigned int)p[i + 1] << 8 : 0) |
			(i + 2 < n ? p[i + 2] : 0);

		str_addc(out, digits[v >> 18]);
		str_addc(out, digits[v >> 12 & 63]);
		str_addc(out, i + 1 < n ? digits[v >> 6 & 63] : '=');
		str_addc(out, i + 2 < n ? digits[v & 63] : '=');
	}
}

/* JSON inside <script>: no "<" may end the element or open a comment. */
static void add_embedded(struct str *out, const struct str *json)
{
	for (size_t i = 0, n; i < json->len; i += n) {
		n = strcspn(json->p + i, "<");
		if (n)
			str_addn(out, json->p + i, n);
		if (i + n < json->len) {
			str_add(out, "\\u003c");
			n++;
		}
	}
}

static const char *short_text(const char *text, size_t most)
{
	size_t n = strlen(text);

	return utf8_clean(n <= most ? text : mem_printf("%.*s...", (int)most, text));
}

/* 'sha256-...' of what stands between the tags, for the policy. */
static void add_source_hash(struct str *out, const unsigned char *bytes, size_t n)
{
	const char *hex = hash_hex(bytes, n);
	unsigned char digest[32];

	for (int i = 0; i < 32; i++) {
		char pair[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

		digest[i] = (unsigned char)strtoul(pair, NULL, 16);
	}
	str_add(out, "'sha256-");
	add_base64(out, digest, sizeof(digest));
	str_addc(out, '\'');
}

/* ---- the overview ---- */

/* Seconds since the epoch of "2026-11-18T10:15:02.5Z"; NAN where it is no such time. */
static double seconds_of(const char *text)
{
	int v[6] = { 0 }, at = 0;
	long long days, year;
	double fraction = 0;

	if (!text ||
		sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &v[0], &v[1], &v[2], &v[3], &v[4],
			&v[5], &at) != 6)
		return NAN;
	if (text[at] == '.')
		fraction = strtod(text + at, NULL);
	year = v[0] - (v[1] <= 2);
	days = 365 * year + year / 4 - year / 100 + year / 400 +
		(153 * (v[1] + (v[1] > 2 ? -3 : 9)) + 2) / 5 + v[2] - 719469;
	return (double)(days * 86400 + v[3] * 3600 + v[4] * 60 + v[5]) + fraction;
}

static size_t configuration_of(const struct run_dir *run, const struct attempt *a)
{
	size_t i = 0;

	while (i < run->configuration_count &&
		strcmp(run->configurations[i], a->configuration) != 0)
		i++;
	return i;
}

/* A row; the script names its columns in the same order. */
static void add_row(struct json *j, const struct run_dir *run, const struct attempt *a)
{
	json_open(j, NULL, '[');
	json_count(j, NULL, a->kind);
	json_string(j, NULL, short_text(a->id, QUERY_MOST));
	json_count(j, NULL, a->kind == ATTEMPT_ARTIFACT ? configuration_of(run, a) : 0);
	json_count(j, NULL, a->run);
	json_count(j, NULL, a->outcome);
	json_count(j, NULL, a->fired);
	json_real(j, NULL, seconds_of(a->started));
	json_real(j, NULL, a->seconds);
	json_real(j, NULL, a->usd);
	json_real(j, NULL, a->turns);
	for (int i = 0; i < TOKEN_KINDS; i++)
		json_real(j, NULL, a->tokens[i]);
	json_string(j, NULL, short_text(a->reason, REASON_MOST));
	json_close(j, ']');
}

static void add_case(struct json *j, const struct summary_case *c, size_t columns)
{
	json_open(j, NULL, '{');
	json_string(j, "id", short_text(c->id, QUERY_MOST));
	if (c->query) {
		json_string(j, "query", short_text(c->query, QUERY_MOST));
		json_bool(j, "should", c->should_trigger);
	}
	json_open(j, "v", '[');
	for (size_t i = 0; i < columns; i++) {
		json_open(j, NULL, '[');
		json_count(j, NULL, c->v[i].passed);
		json_count(j, NULL, c->v[i].n);
		json_count(j, NULL, c->lost[i]);
		json_close(j, ']');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void add_cases(struct json *j, const char *key, const summary_cases *list,
	size_t columns)
{
	json_open(j, key, '[');
	vec_each(c, list)
		add_case(j, c, columns);
	json_close(j, ']');
}

static void add_run(struct json *j, const struct report_run *r)
{
	const struct run_dir *run = r->run;
	const char *stopped = run->json ? member_text(run->json, "stopped") : NULL;
	struct str lines = { 0 };

	json_open(j, NULL, '{');
	json_string(j, "id", utf8_clean(run->id));
	json_string(j, "path", utf8_clean(run->path));
	json_string(j, "skill", utf8_clean(run->skill));
	json_string(j, "harness", utf8_clean(run->harness));
	json_string(j, "version", utf8_clean(run->version));
	json_string(j, "model", utf8_clean(run->model));
	json_string(j, "profile", utf8_clean(run->profile));
	json_string(j, "stopped", stopped ? utf8_clean(stopped) : NULL);
	json_real(j, "started", seconds_of(run->started));
	json_real(j, "ended", seconds_of(run->ended));
	json_real(j, "threshold", run->threshold);
	json_count(j, "min_n", run->min_n);
	summary_lines(run, r->summary, &lines);
	json_string(j, "lines", utf8_clean(lines.p));
	json_open(j, "configurations", '[');
	for (size_t i = 0; i < run->configuration_count; i++)
		json_string(j, NULL, utf8_clean(run->configurations[i]));
	json_close(j, ']');
	summary_add_json(j, "summary", run, r->summary);
	add_cases(j, "cases", &r->summary->cases, r->summary->configuration_count);
	add_cases(j, "queries", &r->summary->queries, 1);
	json_open(j, "attempts", '[');
	vec_each(a, &run->attempts)
		add_row(j, run, a);
	json_close(j, ']');
	json_close(j, '}');
}

/* ---- two runs ---- */

static const struct stats_case *find_case(const struct summary *s, const char *id, size_t near)
{
	for (size_t i = 0; i < s->cases.n; i++) {
		const struct summary_case *c = &s->cases.v[(near + i) % s->cases.n];

		if (strcmp(c->id, id) == 0)
			return &c->v[0];
	}
	return NULL;
}

/* The first configuration of a run against that of the first run, over the cases of both. */
static void add_comparison(struct json *j, const struct report_run *first,
	const struct report_run *other)
{
	size_t n = first->summary->cases.n;
	struct stats_case *a = mem_alloc((n + 1) * sizeof(*a));
	struct stats_case *b = mem_alloc((n + 1) * sizeof(*b));
	struct stats_difference d;

	for (size_t i = 0; i < n; i++) {
		const struct summary_case *c = &first->summary->cases.v[i];
		const struct stats_case *found = find_case(other->summary, c->id, i);

		a[i] = c->v[0];
		if (found)
			b[i] = *found;
	}
	stats_difference(b, a, n, first->run->min_n, &d);
	json_open(j, NULL, '{');
	json_count(j, "cases", d.cases);
	json_real(j, "difference", d.difference);
	json_real(j, "low", d.interval.low);
	json_real(j, "high", d.interval.high);
	json_real(j, "detectable", d.detectable);
	json_bool(j, "enough", d.enough);
	json_close(j, '}');
}

/* ---- writing ---- */

struct page {
	int fd;
	size_t bytes, left_out;
	z_stream z;
};

static int page_flush(struct page *p, const struct str *s, struct fault *f)
{
	int rc = fd_write_all(p->fd, s->p, s->len);

	p->bytes += s->len;
	return rc < 0 ? fault_set(f, -rc, "write the report") : 0;
}

static void add_head(struct str *out)
{
	str_add(out,
		"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"base-uri 'none'; form-action 'none'; script-src ");
	add_source_hash(out, report_app_js, sizeof(report_app_js));
	str_add(out, "; style-src ");
	add_source_hash(out, report_style_css, sizeof(report_style_css));
	str_add(out, "\">\n<style>");
	str_addn(out, (const char *)report_style_css, sizeof(report_style_css));
	str_add(out, "</style>\n");
	str_addn(out, (const char *)report_page_html, sizeof(report_page_html));
}

static void add_data(struct str *out, const struct report_run *runs, size_t n)
{
	struct str json = { 0 };
	struct json j = { .out = &json };

	json_open(&j, NULL, '{');
	json_open(&j, "runs", '[');
	for (size_t i = 0; i < n; i++)
		add_run(&j, &runs[i]);
	json_close(&j, ']');
	json_open(&j, "comparisons", '[');
	for (size_t i = 1; i < n; i++)
		add_comparison(&j, &runs[0], &runs[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	str_add(out, "<script type=\"application/json\" id=\"data\">");
	add_embedded(out, &json);
	str_add(out, "</script>\n<script>");
	str_addn(out, (const char *)report_app_js, sizeof(report_app_js));
	str_add(out, "</script>\n");
}

static int add_packed(struct page *p, struct str *out, const struct str *json, struct fault *f)
{
	size_t room = deflateBound(&p->z, json->len);
	unsigned char *packed = mem_alloc(room);

	deflateReset(&p->z);
	p->z.next_in = (unsigned char *)json->p;
	p->z.avail_in = (unsigned int)json->len;
	p->z.next_out = packed;
	p->z.avail_out = (unsigned int)room;
	if (deflate(&p->z, Z_FINISH) != Z_STREAM_END)
		return fault_set(f, 0, "compress an attempt");
	add_base64(out, packed, room - p->z.avail_out);
	return 0;
}

static int write_attempt(struct page *p, const struct run_dir *run, size_t run_index,
	size_t index, struct fault *f)
{
	void *mark = mem_mark();
	struct str json = { 0 }, out = { 0 };
	int rc;

	report_attempt(run, &run->attempts.v[index], &json);
	str_addf(&out, "<script type=\"application/octet-stream\" id=\"a%zu-%zu\">", run_index,
		index);
	rc = add_packed(p, &out, &json, f);
	str_add(&out, "</script>\n");
	if (rc == 0)
		rc = page_flush(p, &out, f);
	mem_reset(mark);
	return rc;
}

static int write_attempts(struct page *p, const struct report_run *runs, size_t n,
	struct fault *f)
{
	for (size_t r = 0; r < n; r++)
		for (size_t i = 0; i < runs[r].run->attempts.n; i++) {
			int rc;

			if (p->bytes > FILE_MOST) {
				p->left_out++;
				continue;
			}
			rc = write_attempt(p, runs[r].run, r, i, f);
			if (rc < 0)
				return rc;
		}
	return 0;
}

static int write_page(struct page *p, const struct report_run *runs, size_t n, struct fault *f)
{
	struct str out = { 0 }, end = { 0 };
	int rc;

	add_head(&out);
	add_data(&out, runs, n);
	rc = page_flush(p, &out, f);
	if (rc == 0)
		rc = write_attempts(p, runs, n, f);
	str_add(&end, "<script type=\"application/json\" id=\"end\">{\"left_out\":");
	str_addf(&end, "%zu}</script>\n</body>\n</html>\n", p->left_out);
	return rc < 0 ? rc : page_flush(p, &end, f);
}

int report_write(const struct report_run *runs, size_t n, int fd, struct report_cut *ret,
	struct fault *f)
{
	struct page p = { .fd = fd };
	int rc;

	if (deflateInit2(&p.z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return fault_set(f, ENOMEM, "begin to compress");
	rc = write_page(&p, runs, n, f);
	deflateEnd(&p.z);
	if (rc == 0)
		*ret = (struct report_cut){ .attempts = p.left_out, .bytes = p.bytes };
	return rc;
}

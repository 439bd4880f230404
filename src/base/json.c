#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

/* The length of printable ASCII that needs no escape, which is nearly everything. */
static size_t plain_length(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] >= ' ' && p[i] < 0x7f && p[i] != '"' && p[i] != '\\')
		i++;
	return i;
}

static size_t add_special(struct str *out, const char *p, size_t n)
{
	size_t len = utf8_length(p, n);

	if (len == 0)
		str_addf(out, "\\udc%02x", (unsigned char)*p);
	else if (*p == '"' || *p == '\\')
		str_addf(out, "\\%c", *p);
	else if (*p == '\n' || *p == '\t')
		str_add(out, *p == '\n' ? "\\n" : "\\t");
	else if (len == 1)
		str_addf(out, "\\u%04x", (unsigned char)*p);
	else if (len == 2 && (unsigned char)p[0] == 0xc2 && (unsigned char)p[1] < 0xa0)
		str_addf(out, "\\u%04x",
			(unsigned char)p[1]); /* C1: some terminals obey them */
	else
		str_addn(out, p, len);
	return len ? len : 1;
}

void json_add_quoted(struct str *out, const char *bytes, unsigned long n)
{
	str_addc(out, '"');
	while (n) {
		size_t len = plain_length(bytes, n);

		if (len)
			str_addn(out, bytes, len);
		else
			len = add_special(out, bytes, n);
		bytes += len;
		n -= len;
	}
	str_addc(out, '"');
}

static void newline(struct json *j)
{
	if (!j->indent)
		return;
	str_addc(j->out, '\n');
	for (int i = 0; i < j->depth; i++)
		str_add(j->out, "  ");
}

static void begin_value(struct json *j, const char *key)
{
	if (j->more)
		str_addc(j->out, ',');
	if (j->depth)
		newline(j);
	if (key) {
		json_add_quoted(j->out, key, strlen(key));
		str_add(j->out, j->indent ? ": " : ":");
	}
	j->more = true;
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin_value(j, key);
	str_addc(j->out, bracket);
	j->depth++;
	j->more = false;
}

void json_close(struct json *j, char bracket)
{
	bool empty = !j->more;

	j->depth--;
	if (!empty)
		newline(j);
	str_addc(j->out, bracket);
	j->more = true;
}

void json_string(struct json *j, const char *key, const char *value)
{
	begin_value(j, key);
	if (value)
		json_add_quoted(j->out, value, strlen(value));
	else
		str_add(j->out, "null");
}

void json_number(struct json *j, const char *key, long long value)
{
	begin_value(j, key);
	str_addf(j->out, "%lld", value);
}

void json_count(struct json *j, const char *key, unsigned long long value)
{
	begin_value(j, key);
	str_addf(j->out, "%llu", value);
}

void json_real(struct json *j, const char *key, double value)
{
	begin_value(j, key);
	if (isfinite(value))
		str_addf(j->out, "%.10g", value);
	else
		str_add(j->out, "null");
}

void json_raw(struct json *j, const char *key, const char *value)
{
	begin_value(j, key);
	str_add(j->out, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin_value(j, key);
	str_add(j->out, value ? "true" : "false");
}

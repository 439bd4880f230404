#include "base/json.h"
#include "base/str.h"

#include <string.h>

void json_add_quoted(struct str *out, const char *bytes, unsigned long n)
{
	size_t len;

	str_addc(out, '"');
	for (size_t i = 0; i < n; i += len) {
		unsigned char c = (unsigned char)bytes[i];

		len = utf8_length(bytes + i, n - i);
		if (len == 0) {
			str_addf(out, "\\udc%02x", c);
			len = 1;
		} else if (c == '"' || c == '\\') {
			str_addc(out, '\\');
			str_addc(out, (char)c);
		} else if (c == '\n') {
			str_add(out, "\\n");
		} else if (c == '\t') {
			str_add(out, "\\t");
		} else if (c < 0x20 || c == 0x7f) {
			str_addf(out, "\\u%04x", c);
		} else {
			str_addn(out, bytes + i, len);
		}
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

static void begin(struct json *j, const char *key)
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
	begin(j, key);
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
	begin(j, key);
	if (value)
		json_add_quoted(j->out, value, strlen(value));
	else
		str_add(j->out, "null");
}

void json_number(struct json *j, const char *key, long long value)
{
	begin(j, key);
	str_addf(j->out, "%lld", value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	str_add(j->out, value ? "true" : "false");
}

#include "harness/toml.h"
#include "base/str.h"

#include <string.h>

/* Write one character of a quoted string; returns how many bytes it has. */
static size_t add_char(struct str *out, const char *at, size_t left)
{
	size_t n = utf8_length(at, left);
	unsigned char c = (unsigned char)*at;

	if (!n)
		str_add(out, "\\uFFFD");
	else if (c < 0x20 || c == 0x7f)
		str_addf(out, "\\u%04X", c);
	else if (c == '"' || c == '\\')
		str_addf(out, "\\%c", c);
	else
		str_addn(out, at, n);
	return n ? n : 1;
}

void toml_string(struct str *out, const char *text)
{
	const char *end = text + strlen(text);

	str_addc(out, '"');
	while (text < end)
		text += add_char(out, text, (size_t)(end - text));
	str_addc(out, '"');
}

void toml_table(struct str *out, const char *group, const char *name)
{
	str_addf(out, "\n[%s", group);
	if (name) {
		str_addc(out, '.');
		toml_string(out, name);
	}
	str_add(out, "]\n");
}

void toml_key(struct str *out, const char *key)
{
	toml_string(out, key);
	str_add(out, " = ");
}

void toml_text(struct str *out, const char *key, const char *value)
{
	toml_key(out, key);
	toml_string(out, value);
	str_addc(out, '\n');
}

void toml_open(struct toml_list *list, struct str *out, const char *key)
{
	*list = (struct toml_list){ .out = out };
	toml_key(out, key);
	str_addc(out, '[');
}

void toml_item(struct toml_list *list, const char *text)
{
	if (list->n++)
		str_add(list->out, ", ");
	toml_string(list->out, text);
}

void toml_close(struct toml_list *list)
{
	str_add(list->out, "]\n");
}

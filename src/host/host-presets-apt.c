/*
 * host/host-presets-apt.c - the three forms of apt's configuration
 *
 * sources.list(5) in one-line and deb822 form, and the proxies of apt.conf(5). Only URLs of
 * http and https matter: files and discs need no network, and the contents of a mirror list are
 * not known before it is fetched. These parsers read what the system's own files contain, not
 * all that apt would accept; what they do not understand adds nothing.
 */
#include "host/host-presets.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>
#include <strings.h>

enum { MOST_DEPTH = 8, KEY_SIZE = 256 };

static const char blank[] = " \t\r";

static bool starts_word(const char *s, const char *word)
{
	size_t n = strlen(word);

	return !strncasecmp(s, word, n) && s[n] && strchr(" \t[", s[n]);
}

/* ---- one line ---- */

/* "deb [arch=amd64 signed-by=/x] https://host/path suite component" */
static void read_source_line(struct preset_list *list, const char *line)
{
	if (!starts_word(line, "deb") && !starts_word(line, "deb-src"))
		return;
	line += strcspn(line, " \t[");
	line += strspn(line, blank);
	if (*line == '[') {
		line += strcspn(line, "]");
		line += *line == ']';
		line += strspn(line, blank);
	}
	preset_add_url(list, line, strcspn(line, blank));
}

void preset_read_sources_list(struct preset_list *list, const char *text)
{
	while (*text) {
		size_t n;

		text += strspn(text, " \t\r\n");
		n = strcspn(text, "#\n");
		read_source_line(list, mem_strndup(text, n));
		text += strcspn(text, "\n");
	}
}

/* ---- deb822 ---- */

struct stanza {
	struct preset_list uris; /* as written */
	bool disabled;
};

static bool is_no(const char *s, size_t n)
{
	static const char *const no[] = { "no", "false", "without", "off", "disable", "0" };

	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (n == strlen(no[i]) && !strncasecmp(s, no[i], n))
			return true;
	return false;
}

static void end_stanza(struct preset_list *list, struct stanza *s)
{
	for (size_t i = 0; i < s->uris.n && !s->disabled; i++)
		preset_add_url(list, s->uris.v[i], strlen(s->uris.v[i]));
	*s = (struct stanza){ 0 };
}

static void add_words(struct preset_list *words, const char *s)
{
	for (s += strspn(s, blank); *s; s += strspn(s, blank)) {
		size_t n = strcspn(s, blank);

		if (words->n < PRESET_ENTRIES)
			vec_push(words, mem_strndup(s, n));
		s += n;
	}
}

/* One line of a stanza; *in_uris: the next line may continue it. */
static void read_field(struct stanza *s, const char *line, bool *in_uris)
{
	const char *value = strchr(line, ':');
	size_t key;

	if (*line == ' ' || *line == '\t') {
		if (*in_uris)
			add_words(&s->uris, line);
		return;
	}
	*in_uris = false;
	if (!value)
		return;
	key = (size_t)(value++ - line);
	value += strspn(value, blank);
	if (key == 4 && !strncasecmp(line, "URIs", key)) {
		*in_uris = true;
		add_words(&s->uris, value);
	} else if (key == 7 && !strncasecmp(line, "Enabled", key)) {
		s->disabled = is_no(value, strcspn(value, blank));
	}
}

void preset_read_deb822(struct preset_list *list, const char *text)
{
	struct stanza stanza = { 0 };
	bool in_uris = false;

	while (*text) {
		size_t n = strcspn(text, "\n");
		const char *line = mem_strndup(text, n);

		if (!line[strspn(line, blank)]) {
			end_stanza(list, &stanza);
			in_uris = false;
		} else if (*line != '#') {
			read_field(&stanza, line, &in_uris);
		}
		text += n + (text[n] == '\n');
	}
	end_stanza(list, &stanza);
}

/* ---- apt.conf ---- */

/*
 * Scopes and values: Acquire::http::Proxy "URL"; or Acquire { http { Proxy "URL"; }; };
 * `key` is the path of names to where we are, and depth[] how long it was at each brace.
 */
struct conf {
	char key[KEY_SIZE];
	size_t len, depth[MOST_DEPTH];
	int n;
	bool lost; /* deeper than any proxy: ignore the rest */
};

static const char *skip_comment(const char *s)
{
	const char *end;

	if (*s == '#' || (s[0] == '/' && s[1] == '/'))
		return s + strcspn(s, "\n");
	if (s[0] != '/' || s[1] != '*')
		return NULL;
	end = strstr(s + 2, "*/");
	return end ? end + 2 : s + strlen(s);
}

static void add_name(struct conf *c, const char *name, size_t n)
{
	if (c->len + 2 + n >= sizeof(c->key)) {
		c->lost = true;
		return;
	}
	if (c->len) {
		memcpy(c->key + c->len, "::", 2);
		c->len += 2;
	}
	memcpy(c->key + c->len, name, n);
	c->len += n;
	c->key[c->len] = '\0';
}

/* Acquire::http::Proxy, and Acquire::http::Proxy::HOST for one host alone. */
static bool is_proxy(const char *key)
{
	static const char *const keys[] = { "Acquire::http::Proxy", "Acquire::https::Proxy" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		size_t n = strlen(keys[i]);

		if (!strncasecmp(key, keys[i], n) && (!key[n] || str_starts(key + n, "::")))
			return true;
	}
	return false;
}

static void back_to(struct conf *c)
{
	c->len = c->n ? c->depth[c->n - 1] : 0;
	c->key[c->len] = '\0';
}

static void take_mark(struct conf *c, char mark)
{
	if (mark == '{' && c->n == MOST_DEPTH)
		c->lost = true;
	else if (mark == '{')
		c->depth[c->n++] = c->len;
	else if (mark == '}' && c->n)
		c->n--;
	if (mark != '{')
		back_to(c);
}

/* A word, which is a name, or a value when it is quoted or behind one: what it takes. */
static size_t take_word(struct conf *c, struct preset_list *list, const char *s)
{
	bool quoted = *s == '"';
	size_t n = quoted ? strcspn(s + 1, "\"\n") : strcspn(s, " \t\r\n{};\"");
	bool named = c->len > (c->n ? c->depth[c->n - 1] : 0);

	if (!quoted && !named)
		add_name(c, s, n);
	else if (is_proxy(c->key))
		preset_add_url(list, s + quoted, n);
	return quoted ? n + 1 + (s[n + 1] == '"') : n;
}

void preset_read_apt_conf(struct preset_list *list, const char *text)
{
	struct conf c = { 0 };

	while (*text && !c.lost) {
		const char *after = skip_comment(text);

		if (after)
			text = after;
		else if (strchr(" \t\r\n", *text))
			text++;
		else if (strchr("{};", *text))
			take_mark(&c, *text++);
		else
			text += take_word(&c, list, text);
	}
}

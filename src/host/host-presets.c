/*
 * host/host-presets.c - @npm and @debian, from the configuration of npm and apt
 *
 * Theory of operation. carrel suggests no registry or mirror of its own: the user has
 * configured npm and apt, and carrel reads their files, in their own order. Every URL that they
 * fetch from becomes an entry of a policy. npm: the environment, the user's npmrc, the
 * system's; the first that sets a key wins, and within one file the last. If none sets a
 * registry, npm itself knows its default (host/npm-default.h). apt: all sources that are not
 * disabled, and the proxies.
 *
 * A project's .npmrc is never read: it comes with the project, and could open the network to
 * any host. The environment and the files read here belong to the user and the system. They may
 * still contain anything, so what is not understood adds nothing, and what cannot be a host of
 * a policy is left out here or refused there.
 *
 * Must not: start apt-config, nor npm if a file has the answer: they take longer than a box.
 */
#include "host/host-presets.h"
#include "host/npm-default.h"
#include "host/survey.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_FILE = 256 * 1024, MOST_FILES = 256 };

#define NO_NPM                                                                 \
	"no registry in your npm configuration, and no npm to ask; set one: `" \
	"npm config set registry URL`"
#define NO_NPM_URL "what your npm configuration has for a registry is no http or https URL"
#define NO_DEBIAN                                                              \
	"no http or https source in /etc/apt/sources.list or sources.list.d; " \
	"list the hosts instead"

/* ---- lists ---- */

static bool has_entry(const struct preset_list *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (!strcmp(list->v[i], text))
			return true;
	return false;
}

static void add_entry(struct preset_list *list, const char *text)
{
	if (list->n < PRESET_ENTRIES && !has_entry(list, text))
		vec_push(list, text);
}

/* ---- URLs ---- */

static const struct scheme {
	const char *prefix, *port;
} schemes[] = {
	{ "https://", "443" },
	{ "http://", "80" },
};

/* The text between the scheme and the path, without a login. */
static const char *find_authority(const char *url, size_t n, const char *prefix, size_t *ret_n)
{
	const char *start = url + strlen(prefix), *at;
	size_t len = 0, most = n - strlen(prefix);

	while (len < most && !strchr("/?#\\", start[len]))
		len++;
	at = memrchr(start, '@', len);
	*ret_n = at ? len - (size_t)(at + 1 - start) : len;
	return at ? at + 1 : start;
}

/* host, host:port or [v6]:port as an entry; the default port of the scheme is left out. */
static bool add_authority(struct preset_list *list, const char *s, size_t n, const char *own)
{
	const char *colon = memrchr(s, ':', n), *port;
	bool bracket = n && s[n - 1] == ']';
	size_t host = colon && !bracket ? (size_t)(colon - s) : n;
	char name[NAME_SIZE];
	enum name_kind kind = name_canon(s, host, name);

	if (kind == NAME_BAD || (kind == NAME_IPV6 && s[0] != '['))
		return false;
	port = host < n ? mem_strndup(colon + 1, n - host - 1) : own;
	if (!port[0] || !strcmp(port, own))
		add_entry(list, mem_strdup(name));
	else if (strspn(port, "0123456789") == strlen(port))
		add_entry(list,
			mem_printf(kind == NAME_IPV6 ? "[%s]:%s" : "%s:%s", name, port));
	else
		return false;
	return true;
}

bool preset_add_url(struct preset_list *list, const char *url, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		const char *prefix = schemes[i].prefix, *authority;
		size_t len;

		if (n <= strlen(prefix) || strncasecmp(url, prefix, strlen(prefix)) != 0)
			continue;
		authority = find_authority(url, n, prefix, &len);
		return add_authority(list, authority, len, schemes[i].port);
	}
	return false;
}

/* ---- npm ---- */

/* "registry", "@scope:registry" */
static bool is_registry(const char *key)
{
	return !strcmp(key, "registry") || (key[0] == '@' && str_ends(key, ":registry"));
}

/* A value as npm's ini has it: perhaps quoted, perhaps with a comment after it. */
static const char *ini_value(const char *s, size_t *n)
{
	size_t len = *n;

	while (len && strchr(" \t\r", s[len - 1]))
		len--;
	if (len >= 2 && (s[0] == '"' || s[0] == '\'') && s[len - 1] == s[0]) {
		*n = len - 2;
		return s + 1;
	}
	for (size_t i = 0; i < len; i++)
		if (s[i] == ';' || s[i] == '#')
			len = i;
	while (len && strchr(" \t", s[len - 1]))
		len--;
	*n = len;
	return s;
}

/* The length of "${NAME}" or "${NAME?}" at s, or 0. */
static size_t reference_length(const char *s)
{
	size_t n;

	if (!str_starts(s, "${"))
		return 0;
	n = 2 + strcspn(s + 2, "${}?");
	if (n == 2)
		return 0;
	n += s[n] == '?';
	return s[n] == '}' ? n + 1 : 0;
}

/*
 * As npm does it: an unset variable stays as it is written, and is then no host; with a ? it
 * becomes empty. A variable after a backslash also stays.
 */
static const char *expand(const char *s)
{
	struct str out = { 0 };
	char before = '\0';

	str_add(&out, "");
	while (*s) {
		size_t n = before == '\\' ? 0 : reference_length(s);
		bool optional = n && s[n - 2] == '?';
		const char *value = n ? getenv(mem_strndup(s + 2, n - 3 - optional)) : NULL;

		if (value)
			str_add(&out, value);
		else if (!optional)
			str_addn(&out, s, n ? n : 1);
		before = *s;
		s += n ? n : 1;
	}
	return out.p;
}

struct setting {
	const char *key, *value;
};

typedef VEC(struct setting) settings;

static void set(settings *all, const char *key, const char *value)
{
	for (size_t i = 0; i < all->n; i++) {
		if (!strcmp(all->v[i].key, key)) {
			all->v[i].value = value;
			return;
		}
	}
	if (all->n < PRESET_ENTRIES)
		vec_push(all, ((struct setting){ key, value }));
}

static void read_setting(settings *all, const char *line, size_t n)
{
	const char *equals = memchr(line, '=', n), *value, *key;
	size_t key_len, value_len;

	if (!equals)
		return;
	key_len = (size_t)(equals - line);
	while (key_len && strchr(" \t", line[key_len - 1]))
		key_len--;
	key = mem_strndup(line, key_len);
	if (!is_registry(key))
		return;
	value = equals + 1 + strspn(equals + 1, " \t");
	value_len = value < line + n ? (size_t)(line + n - value) : 0;
	value = ini_value(value, &value_len);
	if (value_len)
		set(all, key, expand(mem_strndup(value, value_len)));
}

static void read_settings(settings *all, const char *text)
{
	while (*text) {
		size_t n;

		text += strspn(text, " \t\r\n");
		n = strcspn(text, "\n");
		if (*text == '[') /* keys in a section are not npm's */
			return;
		if (n && *text != ';' && *text != '#')
			read_setting(all, text, n);
		text += n;
	}
}

void preset_read_npmrc(struct preset_list *list, const char *text, struct preset_list *seen)
{
	settings all = { 0 };

	read_settings(&all, text);
	for (size_t i = 0; i < all.n; i++) {
		if (has_entry(seen, all.v[i].key))
			continue;
		add_entry(seen, all.v[i].key);
		preset_add_url(list, all.v[i].value, strlen(all.v[i].value));
	}
}

/* npm accepts its variables in either case. */
static const char *npm_variable(const char *lower, const char *upper)
{
	const char *value = getenv(lower);

	if (!value || !value[0])
		value = getenv(upper);
	return value && value[0] ? expand(value) : NULL;
}

/* People set a path that is no file, such as /dev/null, to say that there is none. */
static bool is_absent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EINVAL;
}

/* NULL, or why the file could not be read. */
static const char *read_npmrc(struct preset_list *list, const char *path,
	struct preset_list *seen)
{
	const char *text;

	if (path[0] != '/')
		return NULL;
	text = fd_read_file(AT_FDCWD, path, MOST_FILE);
	if (text)
		preset_read_npmrc(list, text, seen);
	else if (!is_absent(errno))
		return mem_printf("'%s' cannot be read (%s)", path, strerror(errno));
	return NULL;
}

/* Returns why the list is empty, if it is. */
static const char *find_npm(struct preset_list *list, const char *workspace)
{
	static const char *const global[] = { "/etc/npmrc", "/usr/etc/npmrc",
		"/usr/local/etc/npmrc" };
	const char *registry = npm_variable("npm_config_registry", "NPM_CONFIG_REGISTRY");
	const char *user = npm_variable("npm_config_userconfig", "NPM_CONFIG_USERCONFIG");
	const char *system = npm_variable("npm_config_globalconfig", "NPM_CONFIG_GLOBALCONFIG");
	struct preset_list seen = { 0 };
	const char *problem, *other;

	if (registry) {
		add_entry(&seen, "registry");
		preset_add_url(list, registry, strlen(registry));
	}
	problem = read_npmrc(list, user ? user : path_join(survey_home(), ".npmrc"), &seen);
	for (size_t i = 0; i < (system ? 1 : ARRAY_SIZE(global)); i++) {
		other = read_npmrc(list, system ? system : global[i], &seen);
		problem = problem ? problem : other;
	}
	/* A file overrides the next one, so if one cannot be read, nothing is known. */
	if (problem)
		list->n = 0;
	if (problem || has_entry(&seen, "registry"))
		return problem ? problem : NO_NPM_URL;
	registry = npm_default_registry(workspace);
	if (!registry || !preset_add_url(list, registry, strlen(registry)))
		return NO_NPM;
	return NULL;
}

/* ---- apt ---- */

typedef void preset_reader(struct preset_list *list, const char *text);

/* All sources add up, so an unreadable one only leaves hosts out. */
static void read_apt_file(struct preset_list *list, int dir, const char *name,
	preset_reader *reader)
{
	const char *text = fd_read_file(dir, name, MOST_FILE);

	if (text)
		reader(list, text);
}

/* The files of a directory that apt reads: plain names with that ending. */
static bool is_apt_name(const char *name, const char *end)
{
	if (name[0] == '.' ||
		strspn(name,
			"abcdefghijklmnopqrstuvwxyz0123456789_.-"
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(name))
		return false;
	return str_ends(name, end) || (!strcmp(end, ".conf") && !strchr(name, '.'));
}

static void read_apt_dir(struct preset_list *list, const char *path, const char *end,
	preset_reader *reader)
{
	DIR *d = opendir(path);
	struct dirent *e;

	for (int i = 0; d && i < MOST_FILES && (e = readdir(d)); i++)
		if (is_apt_name(e->d_name, end))
			read_apt_file(list, dirfd(d), e->d_name, reader);
	if (d)
		closedir(d);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void find_debian(struct preset_list *list)
{
	static const char sources[] = "/etc/apt/sources.list.d", conf[] = "/etc/apt/apt.conf.d";

	read_apt_file(list, AT_FDCWD, "/etc/apt/sources.list", preset_read_sources_list);
	read_apt_dir(list, sources, ".list", preset_read_sources_list);
	read_apt_dir(list, sources, ".sources", preset_read_deb822);
	/* A proxy without a source is useless. */
	if (list->n) {
		read_apt_dir(list, conf, ".conf", preset_read_apt_conf);
		read_apt_file(list, AT_FDCWD, "/etc/apt/apt.conf", preset_read_apt_conf);
	}
	/* Sort, because the order of a directory is random and the plan must not be. */
	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), by_name);
}

void presets_of_host(const char *workspace, struct policy_preset ret[2])
{
	struct preset_list npm = { 0 }, debian = { 0 };
	const char *no_npm = find_npm(&npm, workspace);

	find_debian(&debian);
	ret[0] = (struct policy_preset){
		.name = "@npm", .entry = npm.v, .n = npm.n, .missing = no_npm
	};
	ret[1] = (struct policy_preset){
		.name = "@debian", .entry = debian.v, .n = debian.n, .missing = NO_DEBIAN
	};
}

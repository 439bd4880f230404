#include "git/git-allow.h"
#include "git/git-config.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

enum { MOST_VALUE = 4096, MOST_NAME = 255 };

#define DIGITS "0123456789"
#define ALNUM  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS

/* ---- values ---- */

/* Printable UTF-8. With lines, a newline and a tab count as printable too. */
static bool is_text(const char *value, bool lines)
{
	size_t n = strlen(value);

	if (n > MOST_VALUE)
		return false;
	for (size_t i = 0, len; i < n; i += len) {
		unsigned char c = (unsigned char)value[i];

		len = utf8_length(value + i, n - i);
		if (!len || c == 0x7f)
			return false;
		if (c < 0x20 && !(lines && (c == '\n' || c == '\t')))
			return false;
		if (c == 0xc2 && (unsigned char)value[i + 1] < 0xa0) /* U+0080 to U+009F */
			return false;
	}
	return true;
}

static bool good_text(const char *value)
{
	return is_text(value, false);
}

static bool good_lines(const char *value)
{
	return is_text(value, true);
}

/* git removes these characters from a name and an address. */
static bool good_identity(const char *value)
{
	return *value && is_text(value, false) && !strpbrk(value, "<>");
}

static bool is_one_of(const char *value, const char *words)
{
	size_t n = strlen(value);

	for (const char *at = words; n && *at; at += strspn(at, "|")) {
		size_t len = strcspn(at, "|");

		if (len == n && !strncasecmp(at, value, n))
			return true;
		at += len;
	}
	return false;
}

static bool good_bool(const char *value)
{
	return is_one_of(value, "true|false|yes|no|on|off|0|1");
}

static bool good_rebase(const char *value)
{
	return good_bool(value) || is_one_of(value, "merges");
}

static bool good_ff(const char *value)
{
	return good_bool(value) || is_one_of(value, "only");
}

static bool good_push_default(const char *value)
{
	return is_one_of(value, "nothing|current|upstream|tracking|simple|matching");
}

static bool good_tag_opt(const char *value)
{
	return is_one_of(value, "--tags|--no-tags");
}

static bool good_update(const char *value)
{
	return is_one_of(value, "checkout|rebase|merge|none");
}

/* A name of a branch, a remote or a submodule: no option, no path out, no command. */
static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n && n <= MOST_NAME && is_text(name, false) && !strchr("-./", name[0]) &&
		!strpbrk(name, " \\^~:?*[\"") && !strstr(name, "..") && !strstr(name, "//") &&
		!strstr(name, "/.") && name[n - 1] != '/' && !str_ends(name, ".lock");
}

static bool good_remote(const char *value)
{
	return !strcmp(value, ".") || is_name(value);
}

static bool good_ref(const char *value)
{
	return str_starts(value, "refs/") && is_name(value);
}

static bool good_branch(const char *value)
{
	return is_name(value);
}

/* One side of a refspec, with at most one star. */
static bool is_side(const char *text, size_t n)
{
	char *side = mem_strndup(text, n), *star = strchr(side, '*');

	if (star)
		*star = 'x';
	return n == 0 || !strcmp(side, "HEAD") || !strcmp(side, "@") || is_name(side);
}

static bool good_refspec(const char *value)
{
	size_t n;

	if (!*value || strlen(value) > MOST_NAME)
		return false;
	value += *value == '+' || *value == '^';
	n = strcspn(value, ":");
	return is_side(value, n) &&
		(!value[n] || is_side(value + n + 1, strlen(value + n + 1)));
}

/* What `gh` records about a remote: "base", or OWNER/NAME. */
static bool good_word(const char *value)
{
	return is_name(value);
}

/* ---- URLs ---- */

/* [USER@]HOST[:PORT] in n bytes; without a password. */
static bool is_authority(const char *at, size_t n, bool port)
{
	const char *user = memchr(at, '@', n), *host = user ? user + 1 : at, *end = at + n;
	size_t len;

	if (user &&
		(user == at || *at == '-' || strspn(at, ALNUM "._-+") != (size_t)(user - at)))
		return false;
	if (*host == '[') {
		len = strspn(host + 1, DIGITS "abcdefABCDEF:.");
		if (!len || host[1 + len] != ']')
			return false;
		host += len + 2;
	} else {
		len = strspn(host, ALNUM ".-_");
		if (!len || *host == '-' || *host == '.')
			return false;
		host += len;
	}
	if (port && host < end && *host == ':')
		host += 1 + strspn(host + 1, DIGITS);
	return host == end;
}

static bool is_path_text(const char *path)
{
	return is_text(path, false) && !strpbrk(path, " \\\"'`$;|&<>(){}!*");
}

bool git_allow_url(const char *url)
{
	static const char *const schemes[] = { "https://", "http://", "ssh://", "git://" };
	size_t n;

	if (!is_path_text(url) || strlen(url) > 2048)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		const char *at = url + strlen(schemes[i]);

		if (!str_starts(url, schemes[i]))
			continue;
		n = strcspn(at, "/?#");
		return is_authority(at, n, true) && (at[n] == '/' || !at[n]);
	}
	/* HOST:PATH, as in scp; HOST::PATH would name a program. */
	n = strcspn(url, ":/");
	return !strstr(url, "://") && url[n] == ':' && url[n + 1] &&
		!strchr(":-", url[n + 1]) && is_authority(url, n, false);
}

/* ---- out of the box ---- */

/*
 * git takes an unknown remote for a path: `git push origin` would run the hooks of a repository
 * ./origin that a box has made. So a box may name only remotes that exist, and cannot remove
 * the URL of one. Nor can it remove what the user has set up: it may remove only what git
 * records about branches and submodules, when these are removed.
 */
static const struct out {
	const char *section, *key;
	bool sub;
	struct git_allow allow;
} outs[] = {
	{ "branch", "remote", true, { .goes = true, .good = good_remote, .remote = true } },
	{ "branch", "pushremote", true, { .goes = true, .good = good_remote, .remote = true } },
	{ "branch", "merge", true, { .goes = true, .good = good_ref } },
	{ "branch", "rebase", true, { .goes = true, .good = good_rebase } },
	{ "branch", "description", true, { .goes = true, .good = good_lines } },
	{ "remote", "url", true, { .good = git_allow_url, .told = true } },
	{ "remote", "pushurl", true,
		{ .of_remote = true, .good = git_allow_url, .told = true } },
	{ "remote", "fetch", true, { .of_remote = true, .good = good_refspec } },
	{ "remote", "push", true, { .of_remote = true, .good = good_refspec } },
	{ "remote", "tagopt", true, { .of_remote = true, .good = good_tag_opt } },
	{ "remote", "prune", true, { .of_remote = true, .good = good_bool } },
	{ "remote", "prunetags", true, { .of_remote = true, .good = good_bool } },
	{ "remote", "skipdefaultupdate", true, { .of_remote = true, .good = good_bool } },
	{ "remote", "skipfetchall", true, { .of_remote = true, .good = good_bool } },
	{ "remote", "gh-resolved", true, { .of_remote = true, .good = good_word } },
	{ "submodule", "active", true, { .goes = true, .good = good_bool } },
	{ "submodule", "url", true, { .goes = true, .good = git_allow_url, .told = true } },
	{ "submodule", "update", true, { .goes = true, .good = good_update } },
	{ "user", "name", false, { .good = good_identity, .told = true } },
	{ "user", "email", false, { .good = good_identity, .told = true } },
	{ "pull", "rebase", false, { .good = good_rebase } },
	{ "pull", "ff", false, { .good = good_ff } },
	{ "push", "default", false, { .good = good_push_default } },
	{ "push", "autosetupremote", false, { .good = good_bool } },
	{ "push", "followtags", false, { .good = good_bool } },
	{ "fetch", "prune", false, { .good = good_bool } },
	{ "fetch", "prunetags", false, { .good = good_bool } },
	{ "init", "defaultbranch", false, { .good = good_branch } },
	{ "rerere", "enabled", false, { .good = good_bool } },
	/*
	 * What `git sparse-checkout` records; its files are in the working tree and the index.
	 */
	{ "core", "sparsecheckout", false, { .good = good_bool } },
	{ "core", "sparsecheckoutcone", false, { .good = good_bool } },
	{ "index", "sparse", false, { .good = good_bool } },
	{ "extensions", "worktreeconfig", false, { .good = good_bool } },
};

const struct git_allow *git_allow_out(const struct git_setting *s)
{
	static const struct git_allow none;

	for (size_t i = 0; i < ARRAY_SIZE(outs); i++)
		if (!strcmp(s->section, outs[i].section) && !strcmp(s->key, outs[i].key) &&
			outs[i].sub == (s->subsection != NULL) &&
			(!s->subsection || is_name(s->subsection)))
			return &outs[i].allow;
	return &none;
}

/* ---- into the box ---- */

/* An alias for a git command, not for a shell command. */
static bool good_alias(const char *value)
{
	return *value && *value != '!' && good_lines(value);
}

/*
 * The prefix of a URL, without a secret in it: a token may stand alone before the @, except in
 * URLs of ssh.
 */
static bool good_rewrite(const char *value)
{
	const char *at = strstr(value, "://");
	size_t n = at ? strcspn(at + 3, "/?#") : 0, user = at ? strcspn(at + 3, "@") : 0;

	if (!good_text(value) || strchr(value, ' ') || strstr(value, "::"))
		return false;
	if (!at || user >= n)
		return true;
	return str_starts(value, "ssh://") && !memchr(at + 3, ':', user);
}

/* Without a key, the rule is for all keys of the section. */
static const struct in {
	const char *section, *key;
	bool sub;
	bool (*good)(const char *value);
} ins[] = {
	{ "user", "name", false, good_lines },
	{ "user", "email", false, good_lines },
	{ "user", "useconfigonly", false, good_bool },
	{ "author", "name", false, good_lines },
	{ "author", "email", false, good_lines },
	{ "committer", "name", false, good_lines },
	{ "committer", "email", false, good_lines },
	{ "init", "defaultbranch", false, good_lines },
	{ "pull", "rebase", false, good_lines },
	{ "pull", "ff", false, good_lines },
	{ "pull", "octopus", false, good_lines },
	{ "pull", "twohead", false, good_lines },
	{ "push", "default", false, good_lines },
	{ "push", "autosetupremote", false, good_bool },
	{ "push", "followtags", false, good_bool },
	{ "push", "usefor", false, good_bool },
	{ "push", "recursesubmodules", false, good_lines },
	{ "fetch", "prune", false, good_bool },
	{ "fetch", "prunetags", false, good_bool },
	{ "fetch", "all", false, good_bool },
	{ "fetch", "parallel", false, good_lines },
	{ "fetch", "writecommitgraph", false, good_bool },
	{ "fetch", "recursesubmodules", false, good_lines },
	{ "merge", "conflictstyle", false, good_lines },
	{ "merge", "ff", false, good_lines },
	{ "merge", "log", false, good_lines },
	{ "merge", "stat", false, good_lines },
	{ "merge", "renames", false, good_lines },
	{ "merge", "directoryrenames", false, good_lines },
	{ "merge", "branchdesc", false, good_bool },
	{ "merge", "autostash", false, good_bool },
	{ "rebase", "autosquash", false, good_bool },
	{ "rebase", "autostash", false, good_bool },
	{ "rebase", "updaterefs", false, good_bool },
	{ "rebase", "stat", false, good_bool },
	{ "rebase", "missingcommitscheck", false, good_lines },
	{ "rebase", "abbreviatecommands", false, good_bool },
	{ "rebase", "rebasemerges", false, good_lines },
	{ "rebase", "forkpoint", false, good_bool },
	{ "rerere", NULL, false, good_bool },
	{ "color", NULL, false, good_lines },
	{ "color", NULL, true, good_lines },
	{ "column", NULL, false, good_lines },
	{ "advice", NULL, false, good_bool },
	{ "core", "abbrev", false, good_lines },
	{ "core", "autocrlf", false, good_lines },
	{ "core", "commentchar", false, good_lines },
	{ "core", "commentstring", false, good_lines },
	{ "core", "eol", false, good_lines },
	{ "core", "logallrefupdates", false, good_lines },
	{ "core", "precomposeunicode", false, good_bool },
	{ "core", "quotepath", false, good_bool },
	{ "core", "safecrlf", false, good_lines },
	{ "core", "whitespace", false, good_lines },
	{ "commit", "cleanup", false, good_lines },
	{ "commit", "status", false, good_bool },
	{ "commit", "verbose", false, good_lines },
	{ "diff", "algorithm", false, good_lines },
	{ "diff", "colormoved", false, good_lines },
	{ "diff", "colormovedws", false, good_lines },
	{ "diff", "context", false, good_lines },
	{ "diff", "dirstat", false, good_lines },
	{ "diff", "ignoresubmodules", false, good_lines },
	{ "diff", "indentheuristic", false, good_bool },
	{ "diff", "interhunkcontext", false, good_lines },
	{ "diff", "mnemonicprefix", false, good_bool },
	{ "diff", "noprefix", false, good_bool },
	{ "diff", "renamelimit", false, good_lines },
	{ "diff", "renames", false, good_lines },
	{ "diff", "statgraphwidth", false, good_lines },
	{ "diff", "submodule", false, good_lines },
	{ "diff", "suppressblankempty", false, good_bool },
	{ "diff", "wserrorhighlight", false, good_lines },
	{ "format", "pretty", false, good_lines },
	{ "pretty", NULL, false, good_lines },
	{ "log", "abbrevcommit", false, good_bool },
	{ "log", "date", false, good_lines },
	{ "log", "decorate", false, good_lines },
	{ "log", "diffmerges", false, good_lines },
	{ "log", "follow", false, good_bool },
	{ "log", "graphcolors", false, good_lines },
	{ "log", "mailmap", false, good_bool },
	{ "log", "showroot", false, good_bool },
	{ "blame", "coloring", false, good_lines },
	{ "blame", "date", false, good_lines },
	{ "branch", "autosetupmerge", false, good_lines },
	{ "branch", "autosetuprebase", false, good_lines },
	{ "branch", "sort", false, good_lines },
	{ "checkout", "defaultremote", false, good_lines },
	{ "checkout", "guess", false, good_bool },
	{ "clone", "defaultremotename", false, good_lines },
	{ "grep", "linenumber", false, good_bool },
	{ "grep", "patterntype", false, good_lines },
	{ "help", "autocorrect", false, good_lines },
	{ "stash", NULL, false, good_bool },
	{ "status", NULL, false, good_lines },
	{ "submodule", "recurse", false, good_bool },
	{ "tag", "sort", false, good_lines },
	{ "versionsort", "suffix", false, good_lines },
	{ "worktree", "guessremote", false, good_bool },
	{ "alias", NULL, false, good_alias },
	{ "alias", "command", true, good_alias },
	{ "safe", "directory", false, good_lines },
	{ "url", "insteadof", true, good_rewrite },
	{ "url", "pushinsteadof", true, good_rewrite },
};

bool git_allow_in(const struct git_setting *s)
{
	const char *value = s->value ? s->value : "true";

	if (s->subsection && !good_text(s->subsection))
		return false;
	if (!strcmp(s->section, "url") && (!s->subsection || !good_rewrite(s->subsection)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ins); i++)
		if (!strcmp(s->section, ins[i].section) &&
			(!ins[i].key || !strcmp(s->key, ins[i].key)) &&
			ins[i].sub == (s->subsection != NULL))
			return ins[i].good(value);
	return false;
}

/*
 * git/git-config.h - git's configuration files, read as git reads them
 *
 * The syntax is git's own, to the byte: a byte-order mark at the beginning, lines that go on
 * after a backslash, quotes and escapes, `[section "subsection"]` and the old
 * `[section.subsection]`, keys without a value, comments, CR LF, settings behind a `]`. git
 * stops at a file that it cannot parse, and so does this: half a file is never taken for a
 * whole one.
 *
 * Files may be hostile. Nothing here waits for a FIFO, runs anything or recurses without bound.
 */
#ifndef GIT_GIT_CONFIG_H
#define GIT_GIT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct fault;

/* One setting. The strings stay valid as long as the process. */
struct git_setting {
	const char *name;       /* section.subsection.key, as `git config --list` prints it */
	const char *section;    /* lower case; "": the key stands before any section */
	const char *subsection; /* case-sensitive; NULL: none */
	const char *key;        /* lower case */
	const char *value;      /* NULL: the key stands alone, which means true */
	const char *file;       /* that says it */
	bool conditional;       /* the file was included by an includeIf */
	size_t head;            /* where its section begins in the text, at the bracket; */
	size_t from, to;        /* and where the setting begins and its line ends */
};

typedef void git_setting_fn(void *ctx, const struct git_setting *s);

/*
 * Visit the settings of one file, in order, without its includes. 1: read; 0: the file is
 * absent; -EBADMSG: git would stop at it, and the fault names the line; -errno: it cannot be
 * read. After an error only some of the settings were visited, so do not use them.
 */
int git_config_read(const char *file, git_setting_fn *visit, void *ctx, struct fault *f);

/* The same for a text of n bytes. false: git would stop at it. */
bool git_config_parse(const char *text, size_t n, git_setting_fn *visit, void *ctx);

/*
 * The same for a file and all that it includes, in git's order. Every condition of an includeIf
 * counts as true, because it can become true later. If git would stop at a file that only a
 * condition includes, that file ends there without an error.
 */
int git_config_read_all(const char *file, git_setting_fn *visit, void *ctx, struct fault *f);

/* Set the name and its parts. The subsection is the text between the first dot and the last. */
void git_config_split(const char *name, struct git_setting *ret);

/* Is this setting the path of a file to include? */
bool git_config_is_include(const struct git_setting *s);

/*
 * A value that is a path, with `~/` and `~user/` expanded as git does. A relative path stays
 * relative. NULL: git could not expand it either.
 */
const char *git_config_expand(const char *value);

/* The path that an include names; a relative one is relative to the directory of its file. */
const char *git_config_include_path(const struct git_setting *s);

/* Is a value true? NULL, for a key without a value, is. */
bool git_config_is_true(const char *value);

/* The last value that one file, without its includes, gives to section.key; NULL: none. */
const char *git_config_value(const char *file, const char *section, const char *key);

#endif

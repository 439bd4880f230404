#include "git/git-tracked.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <fcntl.h>
#include <sha1.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 1024 * 1024, MAX_INDEX = 1024 * 1024 * 1024 };

struct text {
	void *p;
	size_t n, room;
};

static void text_drop(const struct text *t)
{
	if (t->p)
		munmap(t->p, t->room);
}

/*
 * NULL: not a regular file, empty, too large, or unreadable. The file itself is not mapped: a
 * box may truncate it meanwhile, and then SIGBUS would end this process.
 */
static struct text text_read(const char *path, off_t max)
{
	auto_close int fd = openat(AT_FDCWD, path,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct text text = { 0 };
	struct stat st;
	ssize_t n = 1;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size ||
		st.st_size > max)
		return text;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	if (p == MAP_FAILED)
		return text;
	text = (struct text){ .p = p, .room = (size_t)st.st_size };
	while (text.n < text.room && n > 0) {
		n = read(fd, (char *)text.p + text.n, text.room - text.n);
		text.n += n > 0 ? (size_t)n : 0;
	}
	if (text.n)
		return text;
	text_drop(&text);
	return (struct text){ 0 };
}

/* The index of the repository whose .git is in dir; NULL: there is none. */
static const char *index_of(const char *dir)
{
	const char *git = path_join(dir, ".git");
	struct text link;
	struct stat st;
	char *to;

	if (lstat(git, &st) < 0)
		return NULL;
	if (S_ISDIR(st.st_mode))
		return path_join(git, "index");
	link = text_read(git, 4096);
	to = link.p ? mem_strndup(link.p, link.n) : mem_strdup("");
	text_drop(&link);
	to[strcspn(to, "\n")] = '\0';
	return str_starts(to, "gitdir: ") ? path_join(path_join(dir, to + 8), "index") : git;
}

static const char *find_index(const char *root, const char *path)
{
	const char *dir = path, *index = NULL;

	do {
		dir = path_parent(dir);
		index = index_of(dir);
	} while (!index && strcmp(dir, root) != 0 && path_within(dir, root));
	return index;
}

/* The id that git gives it: the hash of "blob LENGTH", NUL and the content. */
static bool is_named(const struct text *index, const struct text *file)
{
	uint8_t sha1[SHA1_DIGEST_LENGTH], sha256[SHA256_DIGEST_LENGTH];
	char head[32];
	size_t n = (size_t)snprintf(head, sizeof(head), "blob %zu", file->n) + 1;
	SHA1_CTX one;
	SHA2_CTX two;

	SHA1Init(&one);
	SHA1Update(&one, (const uint8_t *)head, n);
	SHA1Update(&one, file->p, file->n);
	SHA1Final(sha1, &one);
	SHA256Init(&two);
	SHA256Update(&two, (const uint8_t *)head, n);
	SHA256Update(&two, file->p, file->n);
	SHA256Final(sha256, &two);
	return memmem(index->p, index->n, sha1, sizeof(sha1)) ||
		memmem(index->p, index->n, sha256, sizeof(sha256));
}

/* In the index, the flags before a name hold its length, and a NUL follows it. */
static bool has_name(const struct text *index, const char *name)
{
	const size_t n = strlen(name);
	const uint8_t *at = index->p, *end = at + index->n;

	while ((at = memmem(at, (size_t)(end - at), name, n + 1))) {
		const size_t before = (size_t)(at - (const uint8_t *)index->p);
		/* Version 3 has two more bytes there in some entries. */
		for (size_t back = 2; back <= 4 && back <= before; back += 2)
			if ((size_t)((at[-back] & 0xf) << 8 | at[1 - back]) == n)
				return true;
		at++;
	}
	return false;
}

/* The file's name in its repository, which is the first one with a .git on the way up. */
static const char *name_in(const char *root, const char *path)
{
	const char *top = path_parent(path);

	while (!index_of(top) && strcmp(top, root) != 0)
		top = path_parent(top);
	return path_below(path, top);
}

enum tracked tracked_look(const char *root, const char *rel)
{
	const char *path = path_join(root, rel), *at = find_index(root, path);
	enum tracked is = TRACKED_NOT;
	struct text file = { 0 }, index = { 0 };

	if (at)
		file = text_read(path, MAX_FILE);
	if (file.p)
		index = text_read(at, MAX_INDEX);
	if (index.p)
		is = is_named(&index, &file)                    ? TRACKED_CONTENT
			: has_name(&index, name_in(root, path)) ? TRACKED_NAME
								: TRACKED_NOT;
	text_drop(&file);
	text_drop(&index);
	return is;
}

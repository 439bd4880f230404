/*
 * tests/fuzz/memory.c - base/mem.h for the fuzz targets
 *
 * Each request is a block of its own, so that the sanitizer sees a byte too many, and all go
 * back at the end of an input, so that a million inputs fit. The arena itself is here too,
 * under other names, for what else base/mem.h has.
 */
#define mem_alloc   arena_alloc
#define mem_grow    arena_grow
#define mem_strdup  arena_strdup
#define mem_strndup arena_strndup
#define mem_printf  arena_printf
#include "base/mem.c"
#undef mem_alloc
#undef mem_grow
#undef mem_strdup
#undef mem_strndup
#undef mem_printf

#include "fuzz.h"

void *mem_alloc(size_t size);
void *mem_grow(void *old, size_t old_size, size_t new_size);
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
char *mem_printf(const char *fmt, ...);

static VEC(void *) blocks;

static void remember(void *block)
{
	if (blocks.n == blocks.cap) {
		blocks.cap = blocks.cap ? 2 * blocks.cap : 1024;
		blocks.v = realloc(blocks.v, blocks.cap * sizeof(*blocks.v));
	}
	blocks.v[blocks.n++] = block;
}

void memory_reset(void)
{
	while (blocks.n)
		free(blocks.v[--blocks.n]);
}

void *mem_alloc(size_t size)
{
	void *block = calloc(1, size ? size : 1);

	CHECK(block);
	remember(block);
	return block;
}

void *mem_grow(void *old, size_t old_size, size_t new_size)
{
	void *block = mem_alloc(new_size);

	if (old_size)
		memcpy(block, old, old_size);
	return block;
}

char *mem_strndup(const char *s, size_t n)
{
	char *copy = mem_alloc(n + 1);

	memcpy(copy, s, n);
	return copy;
}

char *mem_strdup(const char *s)
{
	return mem_strndup(s, strlen(s));
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap, again;
	char *text;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	text = mem_alloc((size_t)n + 1);
	vsnprintf(text, (size_t)n + 1, fmt, again);
	va_end(again);
	return text;
}

#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Bump allocation from large mappings: most requests are short strings, and none is
 * returned. Straight from mmap(2) because its pages are zero already and cost nothing
 * until they are touched.
 */
enum { BLOCK = 1 << 20 };

/* At the start of each mapping, so that all can be found again. */
struct mapping {
	struct mapping *before;
	size_t size;
};

static struct mapping *last;
static char *block;
static size_t left;

static void out_of_memory(void)
{
	static const char text[] = "carrel: out of memory\n";

	(void)!write(2, text, sizeof(text) - 1);
	_exit(125);
}

static void *map(size_t size)
{
	struct mapping *p = mmap(NULL, size + sizeof(*p), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		out_of_memory();
	p->before = last;
	p->size = size + sizeof(*p);
	last = p;
	return p + 1;
}

void mem_release(void)
{
	while (last) {
		struct mapping *p = last;

		last = p->before;
		munmap(p, p->size);
	}
	left = 0;
}

void *mem_alloc(size_t size)
{
	void *p;

	if (size > SIZE_MAX - 15)
		out_of_memory();
	size = (size + 15) & ~(size_t)15;
	if (size > BLOCK / 4)
		return map(size);
	if (size > left) {
		block = map(BLOCK - sizeof(struct mapping));
		left = BLOCK - sizeof(struct mapping);
	}
	p = block;
	block += size;
	left -= size;
	return p;
}

void *mem_grow(void *old, size_t old_size, size_t new_size)
{
	void *p = mem_alloc(new_size);

	if (old_size)
		memcpy(p, old, old_size);
	return p;
}

char *mem_strndup(const char *s, size_t n)
{
	char *p = mem_alloc(n + 1);

	memcpy(p, s, n);
	return p;
}

char *mem_strdup(const char *s)
{
	return mem_strndup(s, strlen(s));
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap, again;
	char *p;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	p = mem_alloc((size_t)n + 1);
	vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return p;
}

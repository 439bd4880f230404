#include "base/mem.h"

#include <errno.h>
#include <link.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Bump allocation from one large reservation: most requests are short strings, and none is
 * returned. Pages cost nothing until they are touched, and are then zero. The reservation is
 * shared over clone(2), so that the box's init can start before the plan is made and still read
 * it; see mem_own().
 */
static const size_t sizes[] = { 1UL << 30, 256UL << 20, 32UL << 20 };
static char *arena, *next;
static size_t arena_size, shared_size, left;

static void out_of_memory(void)
{
	static const char text[] = "carrel: out of memory\n";

	(void)!write(2, text, sizeof(text) - 1);
	_exit(125);
}

static void reserve(int flags)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		arena = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE,
			flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (arena != MAP_FAILED) {
			next = arena;
			arena_size = left = sizes[i];
			return;
		}
	}
	out_of_memory();
}

void mem_own(void)
{
	shared_size = arena_size;
	reserve(MAP_PRIVATE);
}

void mem_release(const void *shared)
{
	munmap(arena, arena_size);
	munmap((void *)shared, shared_size);
	arena = NULL;
	left = 0;
}

const void *mem_arena(void)
{
	if (!arena)
		reserve(MAP_SHARED);
	return arena;
}

void *mem_alloc(size_t size)
{
	void *p;

	mem_arena();
	/* `left` is a multiple of 16, so if the size fits, the rounded size fits too. */
	if (size > left)
		out_of_memory();
	size = (size + 15) & ~(size_t)15;
	p = next;
	next += size;
	left -= size;
	return p;
}

void *mem_mark(void)
{
	mem_arena();
	return next;
}

void mem_reset(void *mark)
{
	size_t used = (size_t)(next - (char *)mark);

	memset(mark, 0, used); /* allocated memory must be zero */
	next = mark;
	left += used;
}

enum { PAGE = 4096, DEEPEST = 96 * 1024 };

/* Only whole pages. The contents must not matter, so a failure does not matter either. */
void mem_drop(void *stack, size_t size)
{
	uintptr_t from = ((uintptr_t)stack + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	uintptr_t to = ((uintptr_t)stack + size) & ~(uintptr_t)(PAGE - 1);

	if (from < to)
		madvise((void *)from, to - from, MADV_DONTNEED);
}

/*
 * A segment of the program itself. The kernel reads its pages from the file again when they are
 * used.
 */
static const ElfW(Phdr) * segment_of(bool code)
{
	const ElfW(Phdr) *segment = (const void *)getauxval(AT_PHDR);

	for (unsigned long i = getauxval(AT_PHNUM); segment && i > 0; i--, segment++)
		if (segment->p_type == PT_LOAD && segment->p_filesz > PAGE &&
			(segment->p_flags & (PF_X | PF_W)) == (code ? PF_X : 0U))
			return segment;
	return NULL;
}

/*
 * The kernel maps sixteen pages of a file when one is used. So after dropping the code, run as
 * little of it as possible, and nothing of the C library, which is elsewhere. An idle box of
 * eight is 25 KB smaller for it. Returns -errno.
 */
static inline long call_kernel(long number, const long arg[5])
{
#ifdef __x86_64__
	register long fourth __asm__("r10") = arg[3];
	register long fifth __asm__("r8") = arg[4];
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "a"(number), "D"(arg[0]), "S"(arg[1]), "d"(arg[2]), "r"(fourth),
			 "r"(fifth)
			 : "rcx", "r11", "memory");
	return rc;
#else
	long rc = syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4]);

	return rc < 0 ? -errno : rc;
#endif
}

static inline void drop_program(void)
{
#ifndef __PIE__ /* in a PIE the addresses in the headers are not those in memory */
	const ElfW(Phdr) *data = segment_of(false), *code = segment_of(true);

	if (!data || !code)
		return;
	mem_drop((void *)data->p_vaddr, data->p_memsz);
	call_kernel(SYS_madvise,
		(const long[5]){ (long)(code->p_vaddr & ~(uintptr_t)(PAGE - 1)),
			(long)code->p_memsz, MADV_DONTNEED });
#else
	(void)segment_of;
#endif
}

/* Leave some bytes for the frames of the functions called from there. */
static inline void drop_stack(char *here)
{
	mem_drop(here - DEEPEST, DEEPEST - 512);
}

__attribute__((noinline)) void mem_trim(void)
{
	drop_stack(__builtin_frame_address(0));
	drop_program();
}

__attribute__((noinline)) int mem_rest(struct pollfd *fds, unsigned int n, int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };
	const long arg[5] = { (long)fds, n, ms < 0 ? 0 : (long)&t, 0, 8 };
	long rc;

	drop_stack(__builtin_frame_address(0));
	drop_program();
	rc = call_kernel(SYS_ppoll, arg);
	if (rc >= 0)
		return (int)rc;
	errno = (int)-rc;
	return -1;
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
	va_list ap;
	int n;

	mem_arena();
	va_start(ap, fmt);
	n = vsnprintf(next, left, fmt, ap); /* mem_alloc() will return this address */
	va_end(ap);
	if (n < 0)
		out_of_memory();
	return mem_alloc((size_t)n + 1);
}

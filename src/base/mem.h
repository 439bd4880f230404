/*
 * base/mem.h - memory for a command that lives briefly
 *
 * carrel reads its input, makes one plan and runs one box: what it allocates on
 * the way lives as long as the process, so nothing here is ever freed and no
 * caller checks for NULL (running out of memory ends the command with a message).
 * Code that loops for the life of a box (supervise/supervise.c and what it calls) must
 * not allocate from here; it uses fixed buffers.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

struct pollfd;

void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull)); /* zeroed */
void *mem_grow(void *old, size_t old_size, size_t new_size) __attribute__((returns_nonnull));
char *mem_strdup(const char *s) __attribute__((returns_nonnull));
char *mem_strndup(const char *s, size_t n) __attribute__((returns_nonnull));
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/*
 * The memory is shared with processes that are cloned after the first use: they also see what
 * is allocated later. Such a process calls mem_own() before it allocates, and can give
 * everything back with mem_release(): what mem_arena() returned before, and its own.
 */
const void *mem_arena(void);
void mem_own(void);
void mem_release(const void *shared);

/*
 * For a long loop: give back all that was allocated since the mark. A caller that keeps
 * something longer allocates it before the mark, or copies it.
 */
void *mem_mark(void);
void mem_reset(void *mark);

/*
 * For a process that is about to wait, perhaps for days. mem_drop() gives back the pages of a
 * buffer or stack. mem_trim() does that for our own unused stack and for our code; the kernel
 * reads code from the file again when it is needed.
 */
void mem_drop(void *stack, size_t size);
void mem_trim(void);

/* mem_trim() and poll(2), with hardly any code between the two that would come back. */
int mem_rest(struct pollfd *fds, unsigned int n, int ms);

/* A growing array: VEC(struct thing) list = {}; vec_push(&list, thing); list.v[i], list.n */
#define VEC(type)              \
	struct {               \
		type *v;       \
		size_t n, cap; \
	}

#define vec_push(vec, item)                                                         \
	do {                                                                        \
		if ((vec)->n == (vec)->cap) {                                       \
			size_t cap_ = (vec)->cap ? 2 * (vec)->cap : 4;              \
			(vec)->v = mem_grow((vec)->v, (vec)->n * sizeof(*(vec)->v), \
				cap_ * sizeof(*(vec)->v));                          \
			(vec)->cap = cap_;                                          \
		}                                                                   \
		(vec)->v[(vec)->n++] = (item);                                      \
	} while (0)

/* Reserve room for n elements, when about so many are certain to come. */
#define vec_reserve(vec, n_)                                    \
	do {                                                    \
		(vec)->v = mem_alloc((n_) * sizeof(*(vec)->v)); \
		(vec)->cap = (n_);                              \
	} while (0)

#define vec_each(it, vec) \
	for (__typeof__(&*(vec)->v) it = (vec)->v; it < (vec)->v + (vec)->n; it++)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))

#endif

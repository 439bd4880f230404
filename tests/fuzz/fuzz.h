/*
 * tests/fuzz/fuzz.h - what the fuzz targets share
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that every input must have. */
#define CHECK(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

/* memory.c: free all that mem_alloc() gave out since the last call. */
void memory_reset(void);

/* valid.c: is this one JSON value and nothing else? In strings: no raw control characters. */
bool valid_json(const char *text, size_t n);

/* valid.c: can this be written to a terminal? Newlines are let through. */
bool valid_output(const char *text);

#endif

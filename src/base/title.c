#include "base/title.h"

#include <stddef.h>
#include <string.h>

static char *start;
static size_t size;

void title_init(int argc, char **argv)
{
	if (argc < 1)
		return;
	start = argv[0];
	size = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - start);
}

void title_set(const char *text)
{
	size_t n = strlen(text);

	if (!size)
		return;
	memset(start, 0, size);
	memcpy(start, text, n < size ? n : size - 1);
}

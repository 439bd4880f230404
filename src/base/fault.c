#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fault_set(struct fault *f, int err, const char *fmt, ...)
{
	va_list ap;

	f->err = err;
	f->fix[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	return err ? -err : -EINVAL;
}

int fault_fix(struct fault *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->fix, sizeof(f->fix), fmt, ap);
	va_end(ap);
	return f->err ? -f->err : -EINVAL;
}

int fault_in_flight(struct fault *f)
{
	size_t n = strlen(f->text);

	if (f->err != ETOOMANYREFS)
		return f->err ? -f->err : -EINVAL;
	/* musl has no text for this errno. */
	snprintf(f->text + n, sizeof(f->text) - n, ": too many descriptors are in flight");
	f->err = 0;
	return fault_fix(f,
		"Your limit of descriptors in flight, sent over a socket and not received yet, "
		"is "
		"used up: another box or program of yours holds them. End it, or raise the "
		"hard "
		"limit of open files (ulimit -Hn) for carrel.");
}

void bug_abort(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "carrel: bug at %s:%d: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

const char *fault_line(const struct fault *f)
{
	return f->err ? mem_printf("%s: %s", f->text, strerror(f->err)) : mem_strdup(f->text);
}

#include "cli/table.h"

#include <string.h>
#include <sys/ioctl.h>

enum { GAP = 2 };

/* The number of bytes that begin a character: close enough to the width. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void measure(const struct table *t, const char *const *cells, size_t *widths)
{
	for (size_t i = 0; i < t->columns; i++) {
		size_t n = width_of(cells[i]);

		widths[i] = n > widths[i] ? n : widths[i];
	}
}

static void print_line(const struct table *t, const char *const *cells, size_t columns,
	const size_t *widths, struct str *out)
{
	struct str line = { 0 };

	for (size_t i = 0; i < columns; i++) {
		int pad = (int)(widths[i] - width_of(cells[i]));

		str_addf(&line, "%*s%s%*s", (i ? GAP : 0) + (t->right[i] ? pad : 0), "",
			cells[i], t->right[i] ? 0 : pad, "");
	}
	while (line.len && line.p[line.len - 1] == ' ')
		line.len--;
	str_addn(out, line.p, line.len);
	str_addc(out, '\n');
}

size_t table_width(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void table_print(const struct table *t, size_t width, struct str *out)
{
	size_t widths[TABLE_MOST] = { 0 }, columns = t->columns, whole = 0;

	if (!t->rows.n)
		return;
	measure(t, t->heads, widths);
	vec_each(row, &t->rows)
		measure(t, row->cells, widths);
	for (size_t i = 0; i < columns; i++)
		whole += widths[i] + (i ? GAP : 0);
	if (width && whole > width)
		columns--;
	print_line(t, t->heads, columns, widths, out);
	vec_each(row, &t->rows) {
		print_line(t, row->cells, columns, widths, out);
		if (columns < t->columns && *row->cells[columns])
			str_addf(out, "  %s\n", row->cells[columns]);
		str_addn(out, row->below.p ? row->below.p : "", row->below.len);
	}
}

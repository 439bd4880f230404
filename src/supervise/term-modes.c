/*
 * supervise/term-modes.c - the modes that a stream of output has set on a terminal
 *
 * Sequences are those of ECMA-48 as xterm has them, in seven bits. In UTF-8 the bytes of the
 * eight-bit forms are parts of characters. Some terminals obey the characters U+0080 to U+009F:
 * these are read, and passed on, as ESC and a letter. A control character in the middle of a
 * sequence acts as it would between sequences; CAN, SUB and another ESC end it.
 */
#include "supervise/term-modes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEL = 7, SHIFT_OUT = 14, SHIFT_IN = 15, CAN = 24, SUB = 26, ESC = 27, C1_LEAD = 0xc2 };

/* CSI ? number h and l. */
static const struct {
	unsigned short number;
	bool on;      /* on in a plain terminal */
	bool reports; /* makes the terminal send something by itself */
} table[] = {
	/* The screens come first: a terminal may keep the other modes for each screen. */
	{ 47, false, false }, { 1047, false, false }, { 1049, false, false },
	{ 1, false, false },  /* application cursor keys */
	{ 6, false, false },  /* origin */
	{ 5, false, false },  /* reverse video */
	{ 7, true, false },   /* wrap */
	{ 25, true, false },  /* cursor */
	{ 66, false, false }, /* application keypad; also ESC = */
	{ 9, false, true },   /* mouse */
	{ 1000, false, true }, { 1001, false, true }, { 1002, false, true },
	{ 1003, false, true }, { 1004, false, true }, /* focus */
	{ 1005, false, false }, { 1006, false, false }, { 1015, false, false },
	{ 1016, false, false }, { 1007, false, false }, /* wheel as arrow keys */
	{ 2004, false, false },                         /* bracketed paste */
	{ 2026, false, false },                         /* synchronised output */
	{ 2031, false, true },                          /* colour scheme */
	{ 2048, false, true },                          /* size */
	{ 9001, false, true },                          /* win32 input */
};

enum { MODES = sizeof(table) / sizeof(*table), ALTERNATES = 3, KEYPAD = 8 };
_Static_assert(MODES < 64, "a bit for each");

static void set_bit(struct term *t, int i, bool on)
{
	const uint64_t bit = 1ULL << i;

	t->modes = on == table[i].on ? t->modes & ~bit : t->modes | bit;
}

static void set_mode(struct term *t, unsigned long number, bool on)
{
	for (int i = 0; i < MODES; i++)
		if (table[i].number == number)
			set_bit(t, i, on);
}

/* Set all modes of "?1000;1006". */
static void set_modes(struct term *t, const char *params, bool on)
{
	for (const char *at = params; *at;) {
		char *end;
		unsigned long number = strtoul(at, &end, 10);

		if (end == at)
			return;
		set_mode(t, number, on);
		at = end + (*end == ';');
	}
}

/* A sequence as a string, without ESC [ and its last byte; true: a terminal would answer it. */
static bool csi_asks(const char *params, char last)
{
	const size_t n = strlen(params);
	const char middle = n ? params[n - 1] : '\0';

	switch (last) {
	case 'c': /* DA1, DA2, DA3 */
	case 'n': /* DSR, cursor position */
	case 'x': /* DECREQTPARM */
		return true;
	case 'q': /* XTVERSION; with a space it is the cursor's shape */
		return params[0] == '>';
	case 'u': /* keyboard protocol */
		return params[0] == '?';
	case 'm': /* XTQMODKEYS */
		return params[0] == '?';
	case 'p': /* DECRQM */
		return middle == '$';
	case 'S': /* XTSMGRAPHICS */
		return params[0] == '?';
	case 'w': /* rectangular checksums, locator */
	case 'y':
		return middle == '$' || middle == '*' || middle == '\'';
	case 't': { /* window: reports are 11, 13 to 16, 18 to 21 */
		unsigned long what = strtoul(params, NULL, 10);

		return what >= 11 && what <= 21 && what != 12 && what != 17;
	}
	default:
		return false;
	}
}

static bool csi_keyboard(const char *params, char last)
{
	if (last == 'u')
		return params[0] == '>' || params[0] == '<' || params[0] == '=';
	return last == 'm' && params[0] == '>';
}

/* true: not for another terminal. */
static bool take_csi(struct term *t, const char *params, char last)
{
	const size_t n = strlen(params);

	if (csi_asks(params, last)) {
		t->asked = true;
		return true;
	}
	if (csi_keyboard(params, last)) {
		t->keyboard = true;
		return true;
	}
	if (params[0] == '?' && (last == 'h' || last == 'l'))
		set_modes(t, params + 1, last == 'h');
	else if (last == 'q' && n && params[n - 1] == ' ')
		t->shape = (unsigned int)strtoul(params, NULL, 10) % 16;
	else if (last == 'r' && params[0] != '?')
		t->region = n > 0;
	else if (last == 'p' && !strcmp(params, "!")) /* DECSTR */
		t->region = t->charset = false;
	return false;
}

/* What works and then does not has a moment for its user: as if the bell had rung. */
static void set_working(struct term *t, bool *which, bool on)
{
	t->bell |= *which && !on;
	*which = on;
}

/*
 * Clients turn something at the beginning of the title while they work: a braille character
 * (U+2800 to 28FF) or a part of a circle (U+25D0 to 25D3).
 */
static bool is_spinner(const char *title)
{
	const unsigned char *c = (const unsigned char *)title;

	return c[0] == 0xe2 &&
		((c[1] >= 0xa0 && c[1] <= 0xa3) ||
			(c[1] == 0x97 && c[2] >= 0x90 && c[2] <= 0x93));
}

/* Copy a title without control characters. */
static void take_title(struct term *t, const char *text)
{
	size_t n = 0;

	for (; *text && n < TERM_TITLE - 1; text++)
		if ((unsigned char)*text >= ' ' && *text != 127)
			t->title[n++] = *text;
	t->title[n] = '\0';
	t->titled = true;
	set_working(t, &t->spins, is_spinner(t->title));
}

/*
 * OSC 9: "4;1;50" is progress, where 1 and 3 mean that it works; other numbers are other
 * settings of a terminal; and any other text is a notification.
 */
static void take_osc_9(struct term *t, const char *text)
{
	const size_t digits = strspn(text, "0123456789");

	if (!strncmp(text, "4;", 2))
		set_working(t, &t->progress, text[2] == '1' || text[2] == '3');
	else if (!digits || (text[digits] && text[digits] != ';'))
		t->bell = true;
}

/* An operating system command: "2;text". A question has a ? in place of the value. */
static bool take_osc(struct term *t, const char *text)
{
	const unsigned long what = strtoul(text, NULL, 10);
	const char *value = strchr(text, ';');
	const size_t n = strlen(text);

	if (value && n > 1 && text[n - 1] == '?' && text[n - 2] == ';' && what > 2) {
		t->asked = true;
		return true;
	}
	if (value && (what == 0 || what == 2))
		take_title(t, value + 1);
	if (value && what == 9)
		take_osc_9(t, value + 1);
	if (what == 777 || what == 99)
		t->bell = true;
	return false;
}

/* A complete string: ESC, its kind, and its text without the terminator. */
static bool take_string(struct term *t)
{
	const char kind = (char)t->held[1], *text = (const char *)t->held + 2;

	if (kind == ']')
		return take_osc(t, text);
	/* XTGETTCAP, DECRQSS; all other device control strings are only drawn. */
	if (kind == 'P' && (!strncmp(text, "+q", 2) || !strncmp(text, "$q", 2))) {
		t->asked = true;
		return true;
	}
	/* A terminal answers a graphics command unless it has q=2. */
	if (kind == '_' && text[0] == 'G')
		t->asked = true;
	return false;
}

/* RIS; the title stays. */
static void as_new(struct term *t)
{
	t->modes = 0;
	t->shape = 0;
	t->keyboard = t->region = t->charset = false;
}

/* ESC and one more byte, or ESC ( and the byte after it. */
static void take_escape(struct term *t, char last)
{
	if (last == 'c' && t->n == 2)
		as_new(t);
	else if (last == '=')
		set_bit(t, KEYPAD, true);
	else if (last == '>')
		set_bit(t, KEYPAD, false);
	else if (t->n == 3 && t->held[1] == '(')
		t->charset = last != 'B';
}

/* ---- byte by byte ---- */

enum verdict {
	VERDICT_SHOW, /* this byte is for the screen */
	VERDICT_HOLD, /* part of a sequence that is not complete */
	VERDICT_PASS, /* the held sequence is complete, or too long: pass it on unchanged */
	VERDICT_DROP, /* the held sequence is complete, and is not passed on */
};

static enum verdict finish_sequence(struct term *t, bool drop)
{
	const bool was_long = t->passing;

	t->state = TERM_GROUND;
	t->passing = false;
	return drop && !was_long ? VERDICT_DROP : VERDICT_PASS;
}

static void begin_sequence(struct term *t)
{
	t->state = TERM_ESCAPE;
	t->passing = false;
	t->n = 1;
	t->held[0] = ESC;
}

/* Between sequences. */
static enum verdict plain(struct term *t, unsigned char c)
{
	if (c == ESC) {
		begin_sequence(t);
		return VERDICT_HOLD;
	}
	if (c == BEL)
		t->bell = true;
	if (c == SHIFT_OUT || c == SHIFT_IN)
		t->charset = c == SHIFT_OUT;
	return VERDICT_SHOW;
}

/* The held bytes as a string, from `from` on and without the last `end`. */
static const char *kept(struct term *t, size_t from, size_t end)
{
	t->held[t->n - end] = '\0';
	return (const char *)t->held + from;
}

static enum verdict in_escape(struct term *t, unsigned char c)
{
	if (t->n == 2 && c == '[')
		t->state = TERM_CSI;
	else if (t->n == 2 && memchr("]PX^_", c, 5))
		t->state = TERM_STRING;
	else if (c >= 0x30) {
		take_escape(t, (char)c);
		return finish_sequence(t, false);
	} else if (c < 0x20) {
		return finish_sequence(t, false);
	}
	return VERDICT_HOLD;
}

static enum verdict in_csi(struct term *t, unsigned char c)
{
	bool drop;

	if (c < 0x40 || c == 127)
		return VERDICT_HOLD;
	if (t->passing)
		return finish_sequence(t, false);
	drop = take_csi(t, kept(t, 2, 1), (char)c);
	t->held[t->n - 1] = c; /* where the string was ended */
	return finish_sequence(t, drop);
}

static enum verdict in_string(struct term *t, unsigned char c)
{
	const bool escaped = t->state == TERM_STRING_ESCAPE;
	unsigned char last;
	bool drop = false;

	if (c == ESC && !escaped) {
		t->state = TERM_STRING_ESCAPE;
		return VERDICT_HOLD;
	}
	if (c != BEL && !escaped)
		return VERDICT_HOLD;
	/* Another sequence than the terminator: terminals drop the string then. */
	if (escaped && c != '\\') {
		begin_sequence(t);
		t->held[t->n++] = c;
		return in_escape(t, c);
	}
	if (!t->passing) {
		last = t->held[t->n - 1 - escaped];
		kept(t, 0, 1U + escaped);
		drop = take_string(t);
		t->held[t->n - 1 - escaped] = last;
	}
	return finish_sequence(t, drop);
}

static enum verdict take_byte(struct term *t, unsigned char c)
{
	if (t->state == TERM_GROUND)
		return plain(t, c);
	if (c == CAN || c == SUB) {
		t->held[t->n++] = c;
		return finish_sequence(t, false);
	}
	/* A new sequence ends an incomplete one. */
	if (c == ESC && t->state != TERM_STRING && t->state != TERM_STRING_ESCAPE) {
		t->n = 0;
		begin_sequence(t);
		return VERDICT_HOLD;
	}
	t->held[t->n++] = c;
	if (t->state == TERM_ESCAPE)
		return in_escape(t, c);
	if (t->state == TERM_CSI)
		return in_csi(t, c);
	return in_string(t, c);
}

static size_t give(struct term *t, char *out)
{
	const size_t n = t->n;

	if (out)
		memcpy(out, t->held, n);
	t->n = 0;
	return out ? n : 0;
}

/* How many bytes it has written. */
static size_t feed(struct term *t, unsigned char c, char *out)
{
	switch (take_byte(t, c)) {
	case VERDICT_SHOW:
		if (out)
			*out = (char)c;
		return out ? 1 : 0;
	case VERDICT_HOLD:
		/* There must always be room for one byte and a terminating NUL. */
		if (t->n < TERM_HELD - 2)
			return 0;
		t->passing = true;
		return give(t, out);
	case VERDICT_PASS:
		return give(t, out);
	case VERDICT_DROP:
		t->n = 0;
		break;
	}
	return 0;
}

static size_t step(struct term *t, const char *bytes, size_t n, char *out)
{
	size_t made = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)bytes[i];
		const bool control = t->led && c >= 0x80 && c < 0xa0;

		/* In UTF-8 this byte only begins a character. */
		if (t->led)
			made += feed(t, control ? ESC : C1_LEAD, out ? out + made : NULL);
		t->led = !control && c == C1_LEAD;
		if (control)
			c -= 0x40;
		if (!t->led)
			made += feed(t, c, out ? out + made : NULL);
	}
	return made;
}

void term_follow(struct term *t, const char *bytes, size_t n)
{
	step(t, bytes, n, NULL);
}

size_t term_filter(struct term *t, const char *bytes, size_t n, char *out)
{
	return step(t, bytes, n, out);
}

/* ---- to and fro ---- */

static size_t add_text(char *out, size_t n, const char *text)
{
	const size_t more = strlen(text);

	if (n + more > TERM_RESET)
		return n;
	memcpy(out + n, text, more);
	return n + more;
}

static size_t add_mode(char *out, size_t n, int i, bool set)
{
	char text[16];

	snprintf(text, sizeof(text), "\033[?%d%c", table[i].number,
		set == table[i].on ? 'l' : 'h');
	return add_text(out, n, text);
}

size_t term_set(const struct term *t, char *out)
{
	char text[32 + TERM_TITLE];
	size_t n = 0;

	for (int i = 0; i < MODES; i++)
		if (t->modes & 1ULL << i)
			n = add_mode(out, n, i, true);
	if (t->modes & 1ULL << KEYPAD)
		n = add_text(out, n, "\033=");
	if (t->shape) {
		snprintf(text, sizeof(text), "\033[%u q", t->shape);
		n = add_text(out, n, text);
	}
	if (t->titled) {
		snprintf(text, sizeof(text), "\033]2;%s\a", t->title);
		n = add_text(out, n, text);
	}
	return n;
}

size_t term_reset(const struct term *t, char *out)
{
	size_t n = 0;

	/* End an incomplete sequence, because it would swallow everything after it. */
	if (t->state != TERM_GROUND)
		n = add_text(out, n, "\030");
	/* Setting the margins moves the cursor, so restore it. */
	if (t->region)
		n = add_text(out, n, "\0337\033[r\0338");
	for (int i = MODES; i-- > 0;)
		if (t->modes & 1ULL << i)
			n = add_mode(out, n, i, false);
	if (t->modes & 1ULL << KEYPAD)
		n = add_text(out, n, "\033>");
	if (t->keyboard)
		n = add_text(out, n, "\033[<99u\033[=0u\033[>4m");
	if (t->shape)
		n = add_text(out, n, "\033[0 q");
	if (t->charset)
		n = add_text(out, n, "\033(B\017");
	if (t->titled)
		n = add_text(out, n, "\033]2;\a");
	return n;
}

bool term_reports(const struct term *t)
{
	for (int i = 0; i < MODES; i++)
		if (table[i].reports && t->modes & 1ULL << i)
			return true;
	return t->asked || t->keyboard;
}

bool term_alternate(const struct term *t)
{
	return t->modes & ((1ULL << ALTERNATES) - 1);
}

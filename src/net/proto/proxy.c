/*
 * net/proto/proxy.c - the heads of HTTP CONNECT (RFC 9110, 9112) and SOCKS5 (RFC 1928)
 *
 * Theory of operation. The first byte tells the protocol: SOCKS begins with its version, HTTP
 * with a capital letter. The beginning of a SOCKS message gives its length, so bytes are
 * collected until it is complete. For HTTP the first line is collected, up to a bound, and
 * judged; the headers are counted and dropped. That includes the Host header: a second name for
 * the target could only contradict the first.
 *
 * A refusal of an HTTP request waits for the end of its head: closing a connection with unread
 * bytes resets it, and the reply might be lost. Only a malformed head ends at once. Lines end
 * in CR LF and nothing else: the client's own data begin where the head ends, and there must be
 * no doubt about where that is.
 *
 * Must not: decide whether a host may be reached, or give the caller a name that has not been
 * through name_canon().
 */
#include "net/proto/proxy.h"

#include <stdio.h>
#include <string.h>

enum proxy_protocol {
	PROTOCOL_NEW,
	PROTOCOL_HTTP,
	PROTOCOL_SOCKS5,
	PROTOCOL_SOCKS4,
	NO_PROTOCOL
};
enum proxy_step { STEP_FIRST, STEP_SECOND, STEP_READY, STEP_BAD };

enum { SOCKS_IPV4 = 1, SOCKS_NAME = 3, SOCKS_IPV6 = 4, SOCKS_CONNECT = 1 };

/* ---- what both need ---- */

/* Keep the first reason; the caller decides when the state becomes BAD. */
static void refuse_request(struct proxy *p, enum proxy_answer answer, const char *why)
{
	if (p->why[0])
		return;
	p->answer = (uint8_t)answer;
	snprintf(p->why, sizeof(p->why), "%s", why);
}

static enum proxy_state bad(struct proxy *p, enum proxy_answer answer, const char *why)
{
	refuse_request(p, answer, why);
	p->step = STEP_BAD;
	return PROXY_BAD;
}

/* The request is complete: READY, unless it was refused. */
static enum proxy_state finish_head(struct proxy *p)
{
	p->step = p->why[0] ? STEP_BAD : STEP_READY;
	return p->why[0] ? PROXY_BAD : PROXY_READY;
}

static void set_target(struct proxy *p, const char *host, size_t n, unsigned int port)
{
	const char *wrong = name_why(host, n);
	char why[PROXY_WHY];

	if (wrong) {
		snprintf(why, sizeof(why), "the host in the request %s", wrong);
		refuse_request(p, PROXY_MALFORMED, why);
		return;
	}
	if (!port) {
		refuse_request(p, PROXY_MALFORMED, "the request has no port from 1 to 65535");
		return;
	}
	p->kind = (uint8_t)name_canon(host, n, p->name);
	p->port = (uint16_t)port;
	if (p->kind != NAME_HOST)
		address_parse(p->name, strlen(p->name), &p->address);
	else if (name_is_local(p->name))
		refuse_request(p, PROXY_NO,
			"localhost is the client's own loopback: connect without the proxy");
}

/* ---- HTTP ---- */

#define METHOD "CONNECT "

/* 1 to 65535, decimal, no leading zero; else 0. */
static unsigned int parse_port(const char *s, size_t n)
{
	unsigned int value = 0;

	if (!n || n > 5 || s[0] == '0')
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return 0;
		value = value * 10 + (unsigned int)(s[i] - '0');
	}
	return value <= 65535 ? value : 0;
}

/* host:port, [v6]:port */
static void parse_authority(struct proxy *p, const char *s, size_t n)
{
	const char *colon = memrchr(s, ':', n);
	size_t host = colon ? (size_t)(colon - s) : n;

	if (!colon)
		refuse_request(p, PROXY_MALFORMED,
			"the request has no port: CONNECT takes host:port");
	else if (s[0] != '[' && memchr(s, ':', host))
		refuse_request(p, PROXY_MALFORMED,
			"the request has an IPv6 address without brackets");
	else
		set_target(p, s, host, parse_port(colon + 1, n - host - 1));
}

static void parse_request_line(struct proxy *p)
{
	static const char version[] = " HTTP/1.";
	const char *s = (const char *)p->line + strlen(METHOD);
	size_t tail = strlen(version) + 1, n = p->len - strlen(METHOD) - tail;

	if (p->why[0])
		return;
	if (p->len <= strlen(METHOD) + tail || memcmp(s + n, version, tail - 1) != 0 ||
		s[n + tail - 1] < '0' || s[n + tail - 1] > '9')
		refuse_request(p, PROXY_MALFORMED,
			"the first line is not of the form CONNECT host:port HTTP/1.1");
	else
		parse_authority(p, s, n);
}

/* Add a byte of the first line. A long URL after another method is skipped. */
static void add_to_line(struct proxy *p, uint8_t c)
{
	if (p->len < strlen(METHOD) && c != (uint8_t)METHOD[p->len])
		refuse_request(p, PROXY_METHOD,
			"this proxy takes no other method than CONNECT");
	if (p->why[0])
		return;
	if (p->len == PROXY_LINE)
		refuse_request(p, PROXY_LONG,
			"the first line is too long for a host and a port");
	else
		p->line[p->len++] = c;
}

static enum proxy_state end_line(struct proxy *p)
{
	if (p->step == STEP_FIRST) {
		parse_request_line(p);
		p->step = STEP_SECOND;
	} else if (!p->in_line) {
		return finish_head(p);
	}
	p->in_line = false;
	return PROXY_MORE;
}

static enum proxy_state http_byte(struct proxy *p, uint8_t c)
{
	if (++p->seen > PROXY_HEAD)
		return bad(p, PROXY_LONG, "the head of the request has more than 8 KiB");
	if (p->after_cr != (c == '\n'))
		return bad(p, PROXY_MALFORMED, "a line of the request does not end in CR LF");
	if (c == '\r' || c == '\n') {
		p->after_cr = c == '\r';
		return c == '\n' ? end_line(p) : PROXY_MORE;
	}
	if ((c < 0x20 && c != '\t') || c == 0x7f)
		return bad(p, PROXY_MALFORMED, "the request has a control character");
	if (p->step == STEP_FIRST)
		add_to_line(p, c);
	p->in_line = true;
	return PROXY_MORE;
}

static enum proxy_state http_read(struct proxy *p, const uint8_t *bytes, size_t n, size_t *used)
{
	enum proxy_state state = PROXY_MORE;

	for (; *used < n && state == PROXY_MORE; (*used)++)
		state = http_byte(p, bytes[*used]);
	return state;
}

/* ---- SOCKS5 ---- */

/* The length of the message, as far as its beginning tells. */
static size_t socks_length(const struct proxy *p)
{
	const uint8_t *b = p->line;

	if (p->step == STEP_FIRST)
		return p->len < 2 ? 2 : 2 + (size_t)b[1];
	if (p->len < 4)
		return 4;
	switch (b[3]) {
	case SOCKS_IPV4:
		return 4 + 4 + 2;
	case SOCKS_IPV6:
		return 4 + 16 + 2;
	case SOCKS_NAME:
		return p->len < 5 ? 5 : 5 + (size_t)b[4] + 2;
	default:
		return 4;
	}
}

static enum proxy_state socks_greet(struct proxy *p)
{
	if (!memchr(p->line + 2, 0, p->line[1]))
		return bad(p, PROXY_LOGIN, "the client takes no method without a login");
	p->step = STEP_SECOND;
	p->len = 0;
	return PROXY_GREET;
}

static enum proxy_state socks_request(struct proxy *p)
{
	const uint8_t *b = p->line, *end = b + p->len;
	unsigned int port = (unsigned int)end[-2] << 8 | end[-1];
	char text[ADDRESS_SIZE];
	struct address a;

	if (b[0] != 5 || b[2])
		return bad(p, PROXY_MALFORMED, "this is no SOCKS5 request");
	if (b[3] != SOCKS_IPV4 && b[3] != SOCKS_IPV6 && b[3] != SOCKS_NAME)
		return bad(p, PROXY_ADDRESS, "the request has an address of an unknown type");
	if (b[1] != SOCKS_CONNECT)
		return bad(p, PROXY_METHOD, "this proxy takes no other command than CONNECT");
	if (b[3] == SOCKS_NAME) {
		set_target(p, (const char *)b + 5, b[4], port);
	} else {
		a = b[3] == SOCKS_IPV4 ? address_v4(b + 4) : address_v6(b + 4);
		address_format(&a, text);
		set_target(p, text, strlen(text), port);
	}
	return finish_head(p);
}

static enum proxy_state socks_read(struct proxy *p, const uint8_t *bytes, size_t n,
	size_t *used)
{
	while (p->len < socks_length(p)) {
		if (*used == n)
			return PROXY_MORE;
		p->line[p->len++] = bytes[(*used)++];
	}
	return p->step == STEP_FIRST ? socks_greet(p) : socks_request(p);
}

/* ---- the beginning ---- */

static enum proxy_protocol protocol_of(uint8_t first)
{
	if (first == 5)
		return PROTOCOL_SOCKS5;
	if (first == 4)
		return PROTOCOL_SOCKS4;
	return first >= 'A' && first <= 'Z' ? PROTOCOL_HTTP : NO_PROTOCOL;
}

enum proxy_state proxy_read(struct proxy *p, const uint8_t *bytes, size_t n, size_t *used)
{
	*used = 0;
	if (p->step >= STEP_READY)
		return p->step == STEP_READY ? PROXY_READY : PROXY_BAD;
	if (!n)
		return PROXY_MORE;
	if (p->protocol == PROTOCOL_NEW)
		p->protocol = (uint8_t)protocol_of(bytes[0]);
	switch (p->protocol) {
	case PROTOCOL_HTTP:
		return http_read(p, bytes, n, used);
	case PROTOCOL_SOCKS5:
		return socks_read(p, bytes, n, used);
	case PROTOCOL_SOCKS4:
		return bad(p, PROXY_METHOD, "this is SOCKS4, and the proxy takes SOCKS5");
	default:
		return bad(p, PROXY_MALFORMED, "this is neither HTTP nor SOCKS5");
	}
}

/* ---- replies ---- */

static const struct reply {
	uint16_t status;
	uint8_t socks; /* RFC 1928, 6 */
	const char *phrase;
} replies[] = {
	[PROXY_YES] = { 200, 0, "Connection established" },
	[PROXY_NO] = { 403, 2, "Forbidden" },
	[PROXY_NO_HOST] = { 502, 4, "Bad Gateway" },
	[PROXY_UNREACHABLE] = { 502, 3, "Bad Gateway" },
	[PROXY_REFUSED] = { 502, 5, "Bad Gateway" },
	[PROXY_LATE] = { 504, 4, "Gateway Timeout" },
	[PROXY_FAILED] = { 502, 1, "Bad Gateway" },
	[PROXY_MALFORMED] = { 400, 1, "Bad Request" },
	[PROXY_METHOD] = { 501, 7, "Not Implemented" },
	[PROXY_ADDRESS] = { 400, 8, "Bad Request" },
	[PROXY_LONG] = { 431, 1, "Request Header Fields Too Large" },
	[PROXY_LOGIN] = { 400, 1, "Bad Request" },
};

size_t proxy_greeting(uint8_t out[PROXY_REPLY])
{
	out[0] = 5;
	out[1] = 0;
	return 2;
}

static size_t http_reply(const struct reply *r, const char *why, uint8_t out[PROXY_REPLY])
{
	char body[PROXY_WHY + NAME_SIZE];
	size_t n = why ? strnlen(why, sizeof(body) - 1) : 0;

	if (r->status == 200)
		return (size_t)snprintf((char *)out, PROXY_REPLY, "HTTP/1.1 200 %s\r\n\r\n",
			r->phrase);
	for (size_t i = 0; i < n; i++)
		body[i] = (char)(why[i] < 0x20 || why[i] > 0x7e ? '?' : why[i]);
	body[n] = '\0';
	return (size_t)snprintf((char *)out, PROXY_REPLY,
		"HTTP/1.1 %u %s\r\n"
		"Content-Type: text/plain\r\n"
		"Content-Length: %zu\r\n"
		"Connection: close\r\n"
		"\r\n"
		"carrel: %s\n",
		r->status, r->phrase, strlen("carrel: ") + n + 1, body);
}

static size_t socks_reply(enum proxy_answer answer, uint8_t out[PROXY_REPLY])
{
	/* The client does not need the address that we dialled from: zeros. */
	const uint8_t reply[10] = { 5, replies[answer].socks, 0, SOCKS_IPV4 };
	const uint8_t no_method[2] = { 5, 0xff };

	if (answer == PROXY_LOGIN) {
		memcpy(out, no_method, sizeof(no_method));
		return sizeof(no_method);
	}
	memcpy(out, reply, sizeof(reply));
	return sizeof(reply);
}

size_t proxy_reply(const struct proxy *p, enum proxy_answer answer, const char *why,
	uint8_t out[PROXY_REPLY])
{
	static const uint8_t socks4_no[8] = { 0, 0x5b };

	switch (p->protocol) {
	case PROTOCOL_HTTP:
		return http_reply(&replies[answer], why, out);
	case PROTOCOL_SOCKS5:
		return socks_reply(answer, out);
	case PROTOCOL_SOCKS4:
		memcpy(out, socks4_no, sizeof(socks4_no));
		return sizeof(socks4_no);
	default:
		return 0;
	}
}

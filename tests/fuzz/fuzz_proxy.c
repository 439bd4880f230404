/*
 * tests/fuzz/fuzz_proxy.c - any bytes from a client of the proxy, whole and in pieces
 */
#include "fuzz.h"
#include "net/proto/proxy.h"

#include <string.h>

/* All of it, in pieces of at most `step` bytes; what was used of it. */
static size_t feed(struct proxy *p, const uint8_t *data, size_t size, size_t step,
	enum proxy_state *ret)
{
	enum proxy_state state = PROXY_MORE;
	size_t at = 0, used;

	*p = (struct proxy){ 0 };
	while (at < size && state <= PROXY_GREET) {
		size_t n = size - at < step ? size - at : step;
		uint8_t *piece = malloc(n);

		memcpy(piece, data + at, n);
		state = proxy_read(p, piece, n, &used);
		free(piece);
		CHECK(used <= n && (state != PROXY_MORE || used == n));
		at += used;
	}
	*ret = state;
	return at;
}

static void check_reply(const struct proxy *p, enum proxy_answer answer, const char *why)
{
	uint8_t out[PROXY_REPLY];
	size_t n = proxy_reply(p, answer, why, out);

	CHECK(n < PROXY_REPLY);
	/* One head, one line of body, nothing of the client's in between. */
	if (n > 10) {
		char text[PROXY_REPLY + 1] = "";
		const char *body;

		memcpy(text, out, n);
		body = strstr(text, "\r\n\r\n");
		CHECK(body && strlen(text) == n && !strncmp(text, "HTTP/1.1 ", 9));
		CHECK(!body[4] || strchr(body + 4, '\n') == text + n - 1);
	}
}

static void check_ready(const struct proxy *p)
{
	char again[NAME_SIZE];
	struct address a;

	CHECK(p->port && !p->why[0]);
	CHECK(name_canon(p->name, strlen(p->name), again) == p->kind);
	CHECK(!strcmp(again, p->name) && !name_is_local(p->name));
	if (p->kind != NAME_HOST)
		CHECK(address_parse(p->name, strlen(p->name), &a) &&
			address_equal(&a, &p->address));
	for (int i = PROXY_YES; i <= PROXY_FAILED; i++)
		check_reply(p, (enum proxy_answer)i, p->name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct proxy whole, pieces;
	enum proxy_state state, again;
	size_t used = feed(&whole, data, size, size, &state);

	for (size_t step = 1; step < 8; step += 3) {
		CHECK(feed(&pieces, data, size, step, &again) == used && again == state);
		CHECK(!memcmp(&whole, &pieces, sizeof(whole)));
	}
	CHECK(used <= PROXY_HEAD + 1);
	if (state == PROXY_READY)
		check_ready(&whole);
	CHECK(state != PROXY_BAD || (whole.why[0] && whole.answer));
	if (state == PROXY_BAD)
		check_reply(&whole, (enum proxy_answer)whole.answer, whole.why);
	return 0;
}

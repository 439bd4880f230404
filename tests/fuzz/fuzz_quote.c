/*
 * tests/fuzz/fuzz_quote.c - any bytes as what the kernel says of a refused datagram
 *
 * The first byte says of which family. What is taken from it is checked by hand-counted
 * offsets.
 */
#include "fuzz.h"
#include "net/proto/icmp-quote.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum address_family family = size && data[0] & 1 ? ADDRESS_V6 : ADDRESS_V4;
	struct address to = { 0 };
	uint16_t port = 0;
	size_t inner, udp;
	uint8_t *copy;

	if (!size)
		return 0;
	size--;
	copy = malloc(size + !size);
	memcpy(copy, data + 1, size);
	if (!quote_read(family, copy, size, &to, &port)) {
		CHECK(to.family == ADDRESS_NONE && !port);
		free(copy);
		return 0;
	}
	inner = family == ADDRESS_V6 ? 8 : (copy[0] & 15U) * 4 + 8;
	udp = inner + (family == ADDRESS_V6 ? 40 : (copy[inner] & 15U) * 4);
	CHECK(udp + 4 <= size);
	CHECK(copy[inner] >> 4 == (int)family);
	CHECK(port == (copy[udp + 2] << 8 | copy[udp + 3]));
	if (family == ADDRESS_V4)
		CHECK(to.family == ADDRESS_V4 && !memcmp(to.byte, copy + inner + 16, 4));
	else if (to.family == ADDRESS_V6)
		CHECK(!memcmp(to.byte, copy + inner + 24, 16));
	else
		CHECK(!memcmp(to.byte, copy + inner + 24 + 12, 4)); /* a mapped one */
	free(copy);
	return 0;
}

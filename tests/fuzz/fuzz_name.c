/*
 * tests/fuzz/fuzz_name.c - whatever names a host: one form, and no second meaning
 *
 * The C library is the judge: what it reads as an address must be that address here or
 * nothing at all, and never a name.
 */
#include "fuzz.h"
#include "net/policy/name.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

static void check_text(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";

	CHECK(*name && strspn(name, plain) == strlen(name));
	CHECK(strlen(name) <= NAME_LENGTH);
	CHECK(name[0] != '.' && name[0] != '-' && name[strlen(name) - 1] != '.');
	CHECK(!strstr(name, "..") && !strstr(name, ".-") && !strstr(name, "-."));
}

/* With AI_NUMERICHOST nobody is asked. */
static void check_no_address(const char *name)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *list = NULL;
	struct in_addr v4;

	CHECK(!inet_aton(name, &v4));
	CHECK(getaddrinfo(name, NULL, &hints, &list) != 0);
}

static void check_form(const char *name, enum name_kind kind)
{
	char again[NAME_SIZE];
	struct address a;

	CHECK(name_canon(name, strlen(name), again) == kind);
	CHECK(!strcmp(again, name));
	if (kind == NAME_HOST) {
		check_text(name);
		check_no_address(name);
		CHECK(!address_parse(name, strlen(name), &a));
		return;
	}
	CHECK(address_parse(name, strlen(name), &a));
	CHECK(a.family == (kind == NAME_IPV4 ? ADDRESS_V4 : ADDRESS_V6));
}

/* What inet_pton(3) reads is read the same. */
static void check_literal(const char *text, enum name_kind kind, const char *name)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t want[16], got[16];
	bool v4 = inet_pton(AF_INET, text, want) == 1;
	bool v6 = inet_pton(AF_INET6, text, want) == 1;

	if (v6 && !memcmp(want, mapped, 12)) {
		memmove(want, want + 12, 4);
		v6 = false;
		v4 = true;
	} else if (v4) {
		inet_pton(AF_INET, text, want);
	}
	if (v4 || v6) {
		CHECK(kind == (v4 ? NAME_IPV4 : NAME_IPV6));
		CHECK(inet_pton(v4 ? AF_INET : AF_INET6, name, got) == 1);
		CHECK(!memcmp(want, got, v4 ? 4 : 16));
	} else if (kind == NAME_IPV4 || kind == NAME_IPV6) {
		CHECK(text[0] == '[' && text[strlen(text) - 1] == ']');
	}
}

/* The bytes themselves as an address. */
static void check_address(const uint8_t *data)
{
	struct address a = address_v6(data), back, inner;
	char text[ADDRESS_SIZE], libc[INET6_ADDRSTRLEN];

	memset(text, 'x', sizeof(text));
	address_format(&a, text);
	CHECK(strnlen(text, sizeof(text)) < sizeof(text));
	CHECK(address_parse(text, strlen(text), &back) && address_equal(&a, &back));
	CHECK(inet_ntop(a.family == ADDRESS_V4 ? AF_INET : AF_INET6, a.byte, libc,
		sizeof(libc)));
	CHECK(strchr(libc, '.') || !strcmp(libc, text));
	CHECK(address_within(&a, &a, address_bits(&a)));
	CHECK(address_is_network(&a, address_bits(&a)));
	/* What leads to a private address is private. */
	if (address_embedded(&a, &inner) && address_range(&inner))
		CHECK(address_range(&a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[NAME_SIZE] = "untouched", *text;
	enum name_kind kind = name_canon((const char *)data, size, name);

	CHECK((name_why((const char *)data, size) == NULL) == (kind != NAME_BAD));
	if (kind == NAME_BAD)
		CHECK(!strcmp(name, "untouched"));
	else
		check_form(name, kind);
	if (kind != NAME_BAD)
		CHECK(!memchr(data, '\0', size) && !memchr(data, '%', size));
	text = strndup((const char *)data, size);
	if (strlen(text) == size)
		check_literal(text, kind, name);
	free(text);
	if (size >= 16)
		check_address(data);
	return 0;
}

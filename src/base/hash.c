#include "base/hash.h"
#include "base/mem.h"

#include <sha256.h>
#include <stdint.h>

const char *hash_hex(const void *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t digest[SHA256_DIGEST_LENGTH];
	char *hex = mem_alloc(2 * sizeof(digest) + 1);
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, bytes, n);
	SHA256Final(digest, &ctx);
	for (size_t i = 0; i < sizeof(digest); i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	return hex;
}

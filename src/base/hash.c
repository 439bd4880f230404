#include "base/hash.h"
#include "base/mem.h"

#include <errno.h>
#include <sha1.h>
#include <sha256.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static const char *hex_of(const uint8_t *digest, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char *hex = mem_alloc(2 * n + 1);

	for (size_t i = 0; i < n; i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	return hex;
}

static const char *hex_digest(SHA2_CTX *ctx)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];

	SHA256Final(digest, ctx);
	return hex_of(digest, sizeof(digest));
}

const char *hash_hex(const void *bytes, size_t n)
{
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, bytes, n);
	return hex_digest(&ctx);
}

const char *hash_fd(int fd)
{
	char buf[1 << 14];
	SHA2_CTX ctx;
	ssize_t n;

	SHA256Init(&ctx);
	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return NULL;
		SHA256Update(&ctx, (const uint8_t *)buf, (size_t)n);
	}
	return hex_digest(&ctx);
}

const char *hash_git_blob(const void *bytes, size_t n)
{
	const char *head = mem_printf("blob %zu", n);
	uint8_t digest[SHA1_DIGEST_LENGTH];
	SHA1_CTX ctx;

	SHA1Init(&ctx);
	SHA1Update(&ctx, (const uint8_t *)head, strlen(head) + 1);
	SHA1Update(&ctx, bytes, n);
	SHA1Final(digest, &ctx);
	return hex_of(digest, sizeof(digest));
}

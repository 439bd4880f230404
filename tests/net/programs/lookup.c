/* lookup NAME...: the addresses of each by getaddrinfo(3), of whichever libc this is built with */
#define _GNU_SOURCE
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++) {
		const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
		struct addrinfo *found = NULL;
		int rc = getaddrinfo(argv[i], "443", &hints, &found);
		char text[100];

		if (rc)
			printf("%s", gai_strerror(rc));
		for (struct addrinfo *a = found; a; a = a->ai_next)
			if (!getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0,
				    NI_NUMERICHOST))
				printf("%s ", text);
		putchar('\n');
		failed |= rc;
	}
	return failed != 0;
}

/*
 * bench/netload.c - the two ends of the network measurements
 *
 *	netload serve ADDRESS PORT
 *		until it is killed: answers 'p' with one byte, and 'd' followed by a number
 *		of bytes with so many zeros
 *	netload connect ADDRESS PORT COUNT
 *		so many times, one after the other: connect, send a byte, get a byte, close
 *	netload download ADDRESS PORT MEGABYTES
 *
 * Both clients print JSON: microseconds of each connection (median, p10, p90, n), or
 * bytes and seconds. Times are taken in here, so what starts the client does not count.
 *
 * With PROXY=HOST:PORT in the environment a client goes through that proxy with CONNECT,
 * and the time of asking it counts; PROXY_USER is "user:password" in base64 if it wants that.
 *
 * The client ends its connections by a reset, after the time was taken: thousands of them
 * in TIME_WAIT would be measured along.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 256 * 1024, MOST = 100000, WARM_UP = 20 };

static char block[BLOCK];

static void die(const char *what)
{
	fprintf(stderr, "netload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct sockaddr_in address(const char *host, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(port)) };

	if (inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1", &a.sin_addr) !=
		1)
		die(host);
	return a;
}

/* ---- the server ---- */

static void send_zeros(int fd)
{
	uint64_t left;

	if (recv(fd, &left, sizeof(left), MSG_WAITALL) != (ssize_t)sizeof(left))
		return;
	while (left) {
		ssize_t n = send(fd, block, left < BLOCK ? (size_t)left : BLOCK, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		left -= (uint64_t)n;
	}
}

static void serve_one(int fd)
{
	const int yes = 1;
	char what;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (recv(fd, &what, 1, 0) != 1)
		return;
	if (what == 'p')
		send(fd, &what, 1, MSG_NOSIGNAL);
	else if (fork() == 0) {
		send_zeros(fd);
		_exit(0);
	}
}

static int serve(char **argv)
{
	const struct sockaddr_in a = address(argv[0], argv[1]);
	const int yes = 1;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	signal(SIGCHLD, SIG_IGN);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (s < 0 || bind(s, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(s, 1024) < 0)
		die("listen");
	puts("ready");
	fflush(stdout);
	for (int fd; (fd = accept4(s, NULL, NULL, SOCK_CLOEXEC)) >= 0; close(fd))
		serve_one(fd);
	die("accept");
	return 1;
}

/* ---- the clients ---- */

/* Ask the proxy, and read its answer up to the empty line, no further. */
static void ask_proxy(int s, char **argv)
{
	const char *user = getenv("PROXY_USER");
	char text[4096];
	size_t n = (size_t)snprintf(text, sizeof(text),
		"CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n%s%s%s\r\n", argv[0], argv[1],
		argv[0], argv[1], user ? "Proxy-Authorization: Basic " : "", user ? user : "",
		user ? "\r\n" : "");

	if (send(s, text, n, MSG_NOSIGNAL) != (ssize_t)n)
		die("ask the proxy");
	for (n = 0; n < 4 || memcmp(text + n - 4, "\r\n\r\n", 4) != 0;)
		if (n == sizeof(text) || recv(s, text + n++, 1, 0) != 1)
			die("the proxy's answer");
	if (n < 12 || memcmp(text + 9, "200", 3) != 0) {
		fprintf(stderr, "netload: the proxy says %.*s\n", 30, text);
		exit(1);
	}
}

static int dial(char **argv)
{
	const int yes = 1;
	char proxy[64], *colon = NULL;
	struct sockaddr_in a;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (getenv("PROXY")) {
		snprintf(proxy, sizeof(proxy), "%s", getenv("PROXY"));
		colon = strchr(proxy, ':');
		if (!colon)
			die("PROXY");
		*colon = '\0';
	}
	a = colon ? address(proxy, colon + 1) : address(argv[0], argv[1]);
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (s < 0 || connect(s, (struct sockaddr *)&a, sizeof(a)) < 0)
		die("connect");
	if (colon)
		ask_proxy(s, argv);
	return s;
}

static void hang_up(int s)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(s);
}

static double ping(char **argv)
{
	double began = now_us();
	int s = dial(argv);
	char byte = 'p';

	if (send(s, &byte, 1, MSG_NOSIGNAL) != 1 || recv(s, &byte, 1, 0) != 1)
		die("the round trip");
	began = now_us() - began;
	hang_up(s);
	return began;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int measure_connects(char **argv)
{
	static double took[MOST];
	size_t n = strtoul(argv[2], NULL, 10);

	if (!n || n > MOST)
		die("COUNT");
	for (size_t i = 0; i < WARM_UP; i++)
		ping(argv);
	for (size_t i = 0; i < n; i++)
		took[i] = ping(argv);
	qsort(took, n, sizeof(*took), by_value);
	printf("{\"median\": %.2f, \"p10\": %.2f, \"p90\": %.2f, \"n\": %zu}\n", took[n / 2],
		took[n / 10], took[n * 9 / 10], n);
	return 0;
}

static int measure_download(char **argv)
{
	uint64_t bytes = strtoull(argv[2], NULL, 10) << 20, left = bytes;
	double began;
	int s = dial(argv);
	char head[9] = { 'd' };

	memcpy(head + 1, &bytes, sizeof(bytes));
	began = now_us();
	if (send(s, head, sizeof(head), MSG_NOSIGNAL) != (ssize_t)sizeof(head))
		die("ask");
	while (left) {
		ssize_t n = recv(s, block, sizeof(block), 0);

		if (n <= 0)
			die("the download");
		left -= (uint64_t)n;
	}
	printf("{\"bytes\": %llu, \"seconds\": %.6f}\n", (unsigned long long)bytes,
		(now_us() - began) / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve"))
		return serve(argv + 2);
	if (argc == 5 && !strcmp(argv[1], "connect"))
		return measure_connects(argv + 2);
	if (argc == 5 && !strcmp(argv[1], "download"))
		return measure_download(argv + 2);
	fputs("netload: see the head of netload.c\n", stderr);
	return 2;
}

/*
 * tests/unit/test_broker_wire.c - words between supervisor and broker
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/broker/broker.h"

static int pair[2];

static int set_up(void **state)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int tear_down(void **state)
{
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static const struct broker_message word = { .word = BROKER_EVENT, .value = 7 };

static void test_a_word_and_what_follows(void **state)
{
	const struct net_event event = { .kind = NET_CLOSE, .id = 1 };
	struct net_event heard;
	struct broker_message m;
	int fds[NET_ENDS];
	size_t n = 0;

	assert_int_equal(broker_send(pair[0], &word, &event, sizeof(event), NULL, 0, 0), 0);
	assert_int_equal(broker_receive(pair[1], &m, &heard, sizeof(heard), &n, fds, 0), 0);
	assert_int_equal(m.word, BROKER_EVENT);
	assert_int_equal(m.value, 7);
	assert_int_equal(n, sizeof(event));
	assert_memory_equal(&heard, &event, n);
	assert_int_equal(fds[0], -1);
}

static void test_more_than_there_is_room_for(void **state)
{
	char body[100] = "x", heard[99];
	struct broker_message m;
	int fds[NET_ENDS];
	size_t n = 0;

	assert_int_equal(broker_send(pair[0], &word, body, sizeof(body), &pair[0], 1, 0), 0);
	assert_int_equal(broker_receive(pair[1], &m, heard, sizeof(heard), &n, fds, 0),
		-EPROTO);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	broker_close(fds);
	assert_int_equal(fds[0], -1);
}

static void test_less_than_a_word(void **state)
{
	struct broker_message m;
	int fds[NET_ENDS];
	size_t n = 0;

	assert_int_equal(send(pair[0], &word, sizeof(word) - 1, 0), sizeof(word) - 1);
	assert_int_equal(broker_receive(pair[1], &m, NULL, 0, &n, fds, 0), -EPIPE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_word_and_what_follows, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_more_than_there_is_room_for, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_less_than_a_word, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * What the user is asked about: one question for all connections to a host, gone with the last
 * of them, whatever the broker says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "net/broker/broker-event.h"
#include "net/policy/policy.h"
#include "plan/plan.h"
#include "supervise/control-serve.h"
#include "base/fault.h"

static struct steer s;
static struct policy policy, known;

static int set_up(void **state)
{
	static const struct plan plan = { .name = "box", .policy = &policy };
	static struct broker_link link = { .plan = &plan, .known = &known };

	(void)state;
	policy_init(&policy, false);
	policy_init(&known, false);
	memset(&s, 0, sizeof(s));
	s.plan = &plan;
	s.broker = &link;
	return 0;
}

/* Of a connection to a name, or to 93.184.216.last. */
static void tell(enum net_event_kind kind, const char *name, uint8_t last, uint16_t port)
{
	const uint8_t v4[4] = { 93, 184, 216, last };
	struct net_event e = { .kind = (uint8_t)kind, .port = port, .address = address_v4(v4) };

	strcpy(e.name, name);
	assert_true(net_event_is_sane(&e));
	steer_event(&s, &e);
}

static void test_one_question_for_many(void **state)
{
	(void)state;
	tell(NET_HELD, "a.example", 1, 80);
	tell(NET_HELD, "a.example", 1, 80);
	tell(NET_HELD, "a.example", 1, 81);
	tell(NET_HELD, "", 1, 80);
	tell(NET_HELD, "", 2, 80);
	assert_int_equal(s.n_questions, 4);
	/* A name has another address when it has been looked up. */
	tell(NET_CONNECT, "a.example", 9, 80);
	assert_int_equal(s.n_questions, 4);
	tell(NET_CONNECT, "a.example", 9, 80);
	assert_int_equal(s.n_questions, 3);
	assert_int_equal(s.questions[0].port, 81);
	tell(NET_CONNECT, "", 1, 80);
	assert_int_equal(s.n_questions, 2);
	assert_int_equal(s.questions[1].address.byte[3], 2);
	tell(NET_LOST, "", 0, 0);
	assert_int_equal(s.n_questions, 0);
}

/* What the broker asked about before it heard the answer. */
static void test_what_is_answered_is_not_asked(void **state)
{
	static const struct policy_entry entries[] = { { .text = "a.example" },
		{ .text = "93.184.216.1:80", .deny = true } };
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(policy_parse(&policy, entries, 2, NULL, 0, &f), 0);
	tell(NET_HELD, "a.example", 1, 80);
	tell(NET_HELD, "", 1, 80);
	assert_int_equal(s.n_questions, 0);
	tell(NET_HELD, "a.example", 1, 81);
	tell(NET_HELD, "b.example", 1, 80);
	assert_int_equal(s.n_questions, 2);
}

static void test_a_broker_that_lies(void **state)
{
	(void)state;
	tell(NET_CONNECT, "a.example", 1, 80);
	assert_int_equal(s.n_questions, 0);
	for (int i = 0; i < 2 * BROKER_CONNECTIONS; i++)
		tell(NET_HELD, "a.example", 1, 80);
	assert_int_equal(s.questions[0].n, BROKER_CONNECTIONS);
	for (int i = 0; i < 2 * BROKER_CONNECTIONS; i++)
		tell(NET_CONNECT, "a.example", 1, 80);
	assert_int_equal(s.n_questions, 0);
	for (uint16_t port = 1; port <= 2 * STEER_QUESTIONS; port++)
		tell(NET_HELD, "a.example", 1, port);
	assert_int_equal(s.n_questions, STEER_QUESTIONS);
	for (uint16_t port = 2 * STEER_QUESTIONS; port; port--)
		tell(NET_CONNECT, "a.example", 1, port);
	assert_int_equal(s.n_questions, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_one_question_for_many, set_up),
		cmocka_unit_test_setup(test_what_is_answered_is_not_asked, set_up),
		cmocka_unit_test_setup(test_a_broker_that_lies, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

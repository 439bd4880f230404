/*
 * run/supervise.h - the life of one running box
 */
#ifndef RUN_SUPERVISE_H
#define RUN_SUPERVISE_H

#include <stdbool.h>
#include <sys/types.h>

struct fault;
struct frame;
struct plan;
struct policy;
struct str;

struct outcome {
	int code;         /* what carrel exits with */
	bool time_is_up;  /* the time limit ended it */
	bool killed;      /* the box's init was killed from outside */
	int record_error; /* errno of a recording that is incomplete, or 0 */
	bool net_lost;    /* the broker ended before the box did, or could not start */
	const struct fault *net_fault; /* why it could not, or NULL */
	int net_error; /* errno of a record of network events that is incomplete, or 0 */
	const char *net_summary; /* lines for the person about the network; "" or NULL: none */
	const char *const *replaced; /* see struct box */
};

/* Makes the plan, or has it already; with the policy of its network, or NULL. */
typedef int plan_fn(void *ctx, const struct plan **ret, const struct policy **ret_policy,
	struct fault *f);

/*
 * Begin a box, get its plan, start the plan's command and stay until it has ended and its
 * output is delivered. On failure nothing was started or nothing is left. record is the
 * file to write, or NULL. *ret_init is that of the box: as long as it ends, the box's mounts
 * are there.
 */
int supervise(const struct frame *frame, plan_fn *plan, void *ctx, const char *record,
	pid_t *ret_init, struct fault *f);

/*
 * After a supervise() that succeeded: remove what is left of the box on the host. The kernel
 * takes its mounts down from the moment the command has ended, and a stub that is still
 * mounted on is removed ten times slower: do what else there is to do before.
 */
void supervise_end(struct outcome *ret);

#endif

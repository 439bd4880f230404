#include "net/broker/pump.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	COPY_SIZE = 64 * 1024,
	BULK_AFTER = 256 * 1024, /* below it a pipe costs more than it saves */
	PIPE_SIZE = 1024 * 1024,
	TURN = 2 * 1024 * 1024, /* after that many bytes other connections take their turn */
};

static char scratch[COPY_SIZE] __attribute__((aligned(4096)));

unsigned int flow_pipes;

/*
 * Returns the bytes that went from one to the other, 0 at the end of the source, or -errno.
 * *ret_all: no more bytes were there.
 */
static ssize_t copy(struct flow *flow, int from, int to, size_t room, bool *ret_all)
{
	const size_t size = room < COPY_SIZE ? room : COPY_SIZE;
	ssize_t seen = recv(from, scratch, size, MSG_PEEK | MSG_DONTWAIT), n = seen;

	if (n > 0) {
		n = send(to, scratch, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
		flow->stuck = n < 0 && errno == EAGAIN;
	}
	*ret_all = n > 0 && n == seen && (size_t)n < size;
	if (n > 0 && recv(from, scratch, (size_t)n, MSG_TRUNC | MSG_DONTWAIT) != n)
		return -EIO; /* the bytes are gone, although nobody else reads this socket */
	return n < 0 ? -errno : n;
}

static bool get_pipe(struct flow *flow)
{
	if (flow->has_pipe || flow->no_pipe)
		return flow->has_pipe;
	if (!flow_pipes || pipe2(flow->ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		flow->no_pipe = true;
		return false;
	}
	flow_pipes--;
	fcntl(flow->ends[1], F_SETPIPE_SZ, PIPE_SIZE);
	flow->has_pipe = true;
	return true;
}

/* The same through the pipe; -EAGAIN when neither end could move a byte. */
static ssize_t move(struct flow *flow, int from, int to, size_t room)
{
	const unsigned int how = SPLICE_F_NONBLOCK | SPLICE_F_MOVE;
	ssize_t in = -1, out = -1;
	int in_error = 0;

	if (!flow->held && !flow->ended) {
		in = splice(from, NULL, flow->ends[1], NULL,
			room < PIPE_SIZE ? room : PIPE_SIZE, how);
		in_error = in < 0 ? errno : 0;
		if (in > 0)
			flow->held += (uint32_t)in;
	}
	if (!flow->held)
		return in < 0 ? -in_error : 0;
	out = splice(flow->ends[0], NULL, to, NULL, flow->held, how);
	flow->stuck = out < 0 && errno == EAGAIN;
	if (out < 0)
		return -errno;
	flow->held -= (uint32_t)out;
	return out;
}

/*
 * splice(2) does not pass the urgent byte: it reports there that nothing has come, or the end.
 * A plain read skips that byte. epoll(7) reports urgent data separately, so a caller without
 * `all` has none.
 */
static bool is_at_mark(const struct flow *flow, ssize_t n, bool all)
{
	return !flow->held && !flow->ended && (n == 0 || (n == -EAGAIN && all));
}

static enum pump_result settle_flow(struct flow *flow, int to)
{
	if (!flow->ended || flow->held || flow->shut)
		return PUMP_WAIT;
	flow->shut = true;
	return shutdown(to, SHUT_WR) < 0 && errno != ENOTCONN ? PUMP_BREAK : PUMP_WAIT;
}

enum pump_result flow_pump(struct flow *flow, int from, int to, uint64_t *room, bool all)
{
	size_t turn = 0;

	while (!flow->shut) {
		bool bulk = flow->held || (flow->moved > BULK_AFTER && get_pipe(flow));
		bool was_all = false;
		ssize_t n;

		if (flow->ended && !flow->held)
			return settle_flow(flow, to);
		if (!*room || turn > TURN)
			return PUMP_MORE;
		n = bulk ? move(flow, from, to, *room) : -EAGAIN;
		if (!bulk || is_at_mark(flow, n, all))
			n = copy(flow, from, to, *room, &was_all);
		if (n == -EAGAIN || n == -EINTR)
			return PUMP_WAIT;
		if (n < 0)
			return PUMP_BREAK;
		if (n == 0)
			flow->ended = true;
		flow->moved += (uint64_t)n;
		*room -= (uint64_t)n < *room ? (uint64_t)n : *room;
		turn += (size_t)n;
		if (was_all && !all)
			return PUMP_WAIT;
	}
	return PUMP_WAIT;
}

void flow_close(struct flow *flow)
{
	if (!flow->has_pipe)
		return;
	close(flow->ends[0]);
	close(flow->ends[1]);
	flow->has_pipe = false;
	flow_pipes++;
}

void flow_idle(void)
{
	mem_drop(scratch, sizeof(scratch));
}

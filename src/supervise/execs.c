#include "supervise/execs.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/sock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

void execs_init(struct execs *s, const struct engine *engine, struct box *box,
	const struct plan *p)
{
	*s = (struct execs){ .engine = engine, .box = box, .plan = p };
	for (int i = 0; i < BOX_EXECS; i++)
		s->client[i].fd = -1;
}

/* The environment of the first command, with the TERM of this command's terminal. */
static const char *const *environment(const struct plan *p, const char *term)
{
	const char **envp = mem_alloc((p->env.n + 2) * sizeof(*envp));
	size_t n = 0;

	vec_each(e, &p->env)
		if (e->value && !(term && !strcmp(e->name, "TERM")))
			envp[n++] = mem_printf("%s=%s", e->name, e->value);
	if (term)
		envp[n++] = mem_printf("TERM=%s", term);
	return envp;
}

int execs_start(struct execs *s, int *client, const char *const *argv, const struct box_io *io,
	const char *term, struct fault *f)
{
	struct box_exec e = { .workdir = s->plan->workdir, .argv = argv, .io = *io };
	int i = 0, rc;

	while (i < BOX_EXECS && s->client[i].fd >= 0)
		i++;
	if (i == BOX_EXECS)
		return fault_set(f, 0, "%d commands were added to it already", BOX_EXECS);
	e.envp = environment(s->plan, term);
	e.number = ++s->numbers;
	rc = s->engine->exec(s->box, &e, f);
	if (rc < 0)
		return rc;
	s->client[i].fd = take_fd(client);
	s->client[i].number = e.number;
	return 0;
}

static void send_packet(int fd, char letter, int32_t value, int carried)
{
	char packet[1 + sizeof(value)] = { letter };

	memcpy(packet + 1, &value, sizeof(value));
	/* A client whose socket has no room for five bytes does not read: treat it as gone. */
	sock_send(fd, packet, sizeof(packet), &carried, carried >= 0,
		MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void execs_event(struct execs *s, struct box_event *e)
{
	int i = 0;

	while (i < BOX_EXECS && (s->client[i].fd < 0 || s->client[i].number != e->number))
		i++;
	if (i == BOX_EXECS) {
		/* Its client has left meanwhile. */
		if (e->type == BOX_EXEC_STARTED)
			s->engine->exec_signal(s->box, e->number, SIGKILL);
	} else if (e->type == BOX_EXEC_STARTED) {
		send_packet(s->client[i].fd, EXEC_STARTED, 0, e->fd);
	} else {
		if (e->type == BOX_EXEC_FAILED)
			send_packet(s->client[i].fd, EXEC_FAILED, e->status, -1);
		else
			send_packet(s->client[i].fd, EXEC_ENDED, exit_code(e->status), -1);
		fd_close(&s->client[i].fd);
	}
	fd_close(&e->fd);
}

void execs_poll(const struct execs *s, struct pollfd *fds)
{
	for (int i = 0; i < BOX_EXECS; i++)
		fds[i] = (struct pollfd){ .fd = s->client[i].fd, .events = POLLIN };
}

static void hear(struct execs *s, int i)
{
	char packet[1 + sizeof(int32_t)];
	ssize_t n = recv(s->client[i].fd, packet, sizeof(packet), MSG_DONTWAIT);
	int32_t sig;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == sizeof(packet) && packet[0] == EXEC_SIGNAL) {
		memcpy(&sig, packet + 1, sizeof(sig));
		if (sig > 0 && sig < _NSIG)
			s->engine->exec_signal(s->box, s->client[i].number, sig);
		return;
	}
	s->engine->exec_signal(s->box, s->client[i].number, SIGKILL);
	fd_close(&s->client[i].fd);
}

void execs_serve(struct execs *s, const struct pollfd *fds)
{
	for (int i = 0; i < BOX_EXECS; i++)
		if (fds[i].revents && fds[i].fd == s->client[i].fd)
			hear(s, i);
}

void execs_end(struct execs *s, int code)
{
	for (int i = 0; i < BOX_EXECS; i++) {
		if (s->client[i].fd >= 0)
			send_packet(s->client[i].fd, EXEC_ENDED, code, -1);
		fd_close(&s->client[i].fd);
	}
}

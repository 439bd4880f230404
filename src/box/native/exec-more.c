/*
 * box/native/exec-more.c - a further command in a running box
 *
 * Theory of operation. Nothing enters the box's namespaces from outside. init itself starts the
 * command. init lives under all layers of the box (namespaces, no capability, Landlock,
 * seccomp, limits, uid), so the command is confined as the first one is. The supervisor sends
 * the ends of pipes, or asks for a terminal from the box's own devpts. It also sends a file in
 * memory with the words:
 *
 *	struct box_exec_head, the working directory, argc arguments, envc variables
 *
 * each a string with its NUL. The command has a session of its own, and ends with the box.
 */
#include "box/native/native.h"
#include "box/engine.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WORDS = 1 << 20, MOST_BYTES = 4 << 20 };

static struct {
	int number;
	pid_t pid; /* 0: none */
} running[BOX_EXECS];

static int streams[3] = { -1, -1, -1 }; /* of the next */

struct more {
	const struct native *n;
	const char *workdir, *path;
	char **argv, **envp;
	int terminal, err;
};

/* ---- the words ---- */

/* The next string, or NULL; *at moves on. */
static char *next_word(char **at, const char *end)
{
	char *word = *at, *nul = word < end ? memchr(word, '\0', (size_t)(end - word)) : NULL;

	if (!nul)
		return NULL;
	*at = nul + 1;
	return word;
}

static bool split_words(struct more *m, char *bytes, size_t size, char **room)
{
	const struct box_exec_head *head = (const void *)bytes;
	char *at = bytes + sizeof(*head);
	const char *end = bytes + size;
	bool good;

	m->workdir = next_word(&at, end);
	m->argv = room;
	m->envp = room + head->argc + 1;
	m->path = "";
	good = m->workdir && head->argc;
	for (uint32_t i = 0; good && i < head->argc; i++)
		good = (m->argv[i] = next_word(&at, end));
	for (uint32_t i = 0; good && i < head->envc; i++) {
		good = (m->envp[i] = next_word(&at, end));
		if (good && !strncmp(m->envp[i], "PATH=", 5))
			m->path = m->envp[i] + 5;
	}
	return good;
}

/* ---- the process ---- */

/* init does not use 0 to 2, so a received descriptor may have such a number: move it first. */
static int arrange(const struct more *m)
{
	int from[3];

	for (int i = 0; i <= 2; i++) {
		int fd = m->terminal >= 0 && (i < 2 || streams[2] < 0) ? m->terminal
								       : streams[i];

		if (fd < 0)
			fd = openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
		from[i] = fcntl(fd, F_DUPFD_CLOEXEC, FD_FIRST_FREE);
		if (from[i] < 0)
			return -1;
	}
	for (int i = 0; i <= 2; i++)
		if (dup2(from[i], i) < 0)
			return -1;
	return 0;
}

static int exec_child(void *arg)
{
	struct more *m = arg;
	sigset_t none;

	sigemptyset(&none);
	umask(m->n->umask);
	if (setsid() < 0 || (m->terminal >= 0 && ioctl(m->terminal, TIOCSCTTY, 0) < 0) ||
		arrange(m) < 0 || chdir(m->workdir) < 0 || limits_of_files(m->n->files) < 0 ||
		sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		m->err = errno;
	else
		m->err = exec_search(m->argv, m->envp, m->path);
	_exit(127);
}

/* 0 or an errno; the words are in bytes. */
static int run_command(const struct native *n, char *bytes, size_t size, int number,
	bool terminal)
{
	const struct box_exec_head *head = (const void *)bytes;
	const size_t words = (size_t)head->argc + head->envc + 2;
	struct more m = { .n = n, .terminal = -1 };
	auto_close int master = -1;
	int slot = 0;
	char **room;
	pid_t pid;

	while (slot < BOX_EXECS && running[slot].pid)
		slot++;
	if (slot == BOX_EXECS || head->argc > MOST_WORDS || head->envc > MOST_WORDS)
		return slot == BOX_EXECS ? EAGAIN : E2BIG;
	room = mmap(NULL, words * sizeof(*room), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return ENOMEM;
	if (terminal)
		m.terminal = terminal_open(head->rows, head->cols, &master);
	if ((terminal && m.terminal < 0) || !split_words(&m, bytes, size, room))
		m.err = EINVAL;
	pid = m.err ? -1 : exec_clone(exec_child, &m);
	if (pid < 0 && !m.err)
		m.err = errno;
	if (!m.err) {
		running[slot].number = number;
		running[slot].pid = pid;
		wire_send_fd(n->control,
			&(struct wire){ .type = WIRE_EXEC_STARTED, .group = number }, master);
	}
	fd_close(&m.terminal);
	munmap(room, words * sizeof(*room));
	return m.err;
}

static void start_command(const struct native *n, const struct wire *w, int fd)
{
	struct stat st;
	char *bytes = MAP_FAILED;
	int err = EINVAL;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size <= MOST_BYTES &&
		st.st_size >= (off_t)sizeof(struct box_exec_head))
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
			0);
	if (bytes != MAP_FAILED) {
		err = run_command(n, bytes, (size_t)st.st_size, w->group, w->value);
		munmap(bytes, (size_t)st.st_size);
	}
	for (int i = 0; i < 3; i++)
		fd_close(&streams[i]);
	exec_trim();
	if (err)
		wire_send(n->control,
			&(struct wire){
				.type = WIRE_EXEC_FAILED, .value = err, .group = w->group });
}

void exec_more_hear(const struct native *n, const struct wire *w, int *fd)
{
	if (w->type == WIRE_EXEC_STREAM && w->value >= 0 && w->value <= 2) {
		fd_close(&streams[w->value]);
		streams[w->value] = take_fd(fd);
	} else if (w->type == WIRE_EXEC) {
		start_command(n, w, *fd);
	} else if (w->type == WIRE_EXEC_SIGNAL) {
		for (int i = 0; i < BOX_EXECS; i++)
			if (running[i].pid && running[i].number == w->group)
				kill(-running[i].pid, w->value);
	}
}

bool exec_more_ended(const struct native *n, pid_t pid, int status)
{
	if (WIFSTOPPED(status))
		return false;
	for (int i = 0; i < BOX_EXECS; i++) {
		if (running[i].pid != pid)
			continue;
		running[i].pid = 0;
		wire_send(n->control,
			&(struct wire){ .type = WIRE_EXEC_ENDED,
				.value = status,
				.group = running[i].number });
		return true;
	}
	return false;
}

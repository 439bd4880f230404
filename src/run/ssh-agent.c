/*
 * run/ssh-agent.c - the ssh-agent of one box
 *
 * Theory of operation. Each box has OpenSSH's own ssh-agent to itself, so a box can harm only
 * its own keys. Its socket is bound into the box. Its clients are hostile, so it is restricted
 * before it starts:
 *
 * - Each key is bound to user and host (ssh-add -h). ssh-agent signs for a session only when
 *   the host's own key has signed that session, so what a program in the box claims about
 *   where it is connected to does not count; nor does it sign anything that is no login.
 * - No libraries for hardware tokens (-P; CVE-2023-38408), no helper programs that no key
 *   needs, and no environment: keys that the box adds itself must not lead to a device or a
 *   window.
 * - Limits on memory and descriptors, and no core file: the box may add any number of keys.
 *
 * It ends with us, however we end: the kernel sends it SIGTERM, and it removes its socket. The
 * kernel forgets that signal when a set-group-id program is executed, as ssh-agent is on some
 * systems; no_new_privs prevents that. The socket stays only if both were killed. The next
 * start of a box with keys removes it, because no box holds its name.
 */
#include "run/ssh-agent.h"
#include "host/host-program.h"
#include "plan/plan.h"
#include "state/registry.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MOST_FILES = 64, /* of which ssh-agent takes four fifths for connections */
	MOST_MEMORY = 64 << 20,
	KNOWN_FD = 3, /* ssh-add's, for the host keys */
};

/* ---- where ---- */

int ssh_agent_dir(bool make, const char **ret, struct fault *f)
{
	const char *dir = xdg_runtime();
	int rc = 0;

	if (!dir || access(path_parent(dir), W_OK | X_OK) < 0)
		dir = xdg_state();
	if (!dir) {
		fault_set(f, 0, "ssh: there is no directory for the agent's socket");
		return fault_fix(f, "Set XDG_RUNTIME_DIR to a directory of your own.");
	}
	if (make)
		rc = xdg_make(dir, f);
	if (rc == 0)
		*ret = fd_real_path(dir) ?: dir;
	return rc;
}

static const char *socket_of(const struct plan *p)
{
	vec_each(place, &p->places)
		if (!strcmp(place->target, REQUEST_SSH_SOCKET))
			return place->source;
	BUG("a plan with ssh keys and no socket");
}

/* A name that is free has no supervisor, and so no agent. */
static void sweep(int dir)
{
	DIR *list = fdopendir(dup(dir));
	struct dirent *e;

	while (list && (e = readdir(list))) {
		struct claim unused;
		struct fault ignored = { 0 };
		size_t n = strlen(e->d_name) - strlen(REQUEST_SSH_SUFFIX);

		if (e->d_name[0] == '.' || !str_ends(e->d_name, REQUEST_SSH_SUFFIX))
			continue;
		if (registry_peek(mem_strndup(e->d_name, n), CLAIM_STRICT, &unused, &ignored) ==
			0)
			unlinkat(dir, e->d_name, 0);
	}
	if (list)
		closedir(list);
}

/* ---- the agent ---- */

static void limit(int what, rlim_t value)
{
	const struct rlimit l = { value, value };

	if (setrlimit(what, &l) < 0)
		_exit(126);
}

/* Runs in the child. The socket has a relative name, because addresses are short. */
static void become_agent(const char *program, const char *const *env, int dir,
	const char *socket, int out, pid_t parent)
{
	const char *const argv[] = { program, "-D", "-P", "none", "-a", socket, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	limit(RLIMIT_NOFILE, MOST_FILES);
	limit(RLIMIT_DATA, MOST_MEMORY);
	limit(RLIMIT_CORE, 0);
	if (setsid() < 0 || fchdir(dir) < 0 || null < 0 || dup2(null, 0) < 0 ||
		dup2(out, 1) < 0 || dup2(null, 2) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
		_exit(126);
	execve(program, (char *const *)argv, (char *const *)env);
	_exit(126);
}

/* Allow no helper programs for tokens, except the FIDO helper if one of the keys needs it. */
static const char *const *environment_for(const struct plan *p)
{
	static const char *const plain[] = { "SSH_PKCS11_HELPER=/nonexistent",
		"SSH_SK_HELPER=/nonexistent", NULL };
	static const char *const token[] = { "SSH_PKCS11_HELPER=/nonexistent", NULL };

	vec_each(s, &p->ssh)
		if (s->token)
			return token;
	return plain;
}

/* It prints the path of its socket once it listens. */
static bool await_listening(int from)
{
	char c;
	ssize_t n;

	do
		n = read(from, &c, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

static int start_agent(const struct plan *p, const char *program, int dir, const char *socket,
	pid_t *ret, struct fault *f)
{
	const char *const *env = environment_for(p);
	auto_close int from = -1, to = -1;
	pid_t parent = getpid();
	int ends[2];
	pid_t agent;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, errno, "make a pipe for ssh-agent");
	from = ends[0];
	to = ends[1];
	agent = fork();
	if (agent == 0)
		become_agent(program, env, dir, socket, to, parent);
	if (agent < 0)
		return fault_set(f, errno, "start ssh-agent");
	*ret = agent;
	fd_close(&to);
	if (await_listening(from))
		return 0;
	return fault_set(f, 0, "%s did not start", str_visible(program));
}

void ssh_agent_stop(pid_t *agent)
{
	if (!*agent)
		return;
	kill(*agent, SIGTERM);
	program_wait(*agent);
	*agent = 0;
}

/* ---- its keys ---- */

typedef VEC(const char *) words;

/* The user's own environment: asking for a passphrase may need a window. */
static char *const *add_environment(const char *socket)
{
	words env = { 0 };

	for (char **e = environ; *e; e++)
		if (!str_starts(*e, "SSH_AUTH_SOCK="))
			vec_push(&env, *e);
	vec_push(&env, mem_printf("SSH_AUTH_SOCK=%s", socket));
	vec_push(&env, NULL);
	return (char *const *)env.v;
}

/* ssh-add asks on the terminal only if its standard input is a terminal. */
static int spawn_add(const words *argv, const char *socket, int dir, int known, pid_t *ret)
{
	auto_close int tty = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	posix_spawn_file_actions_t files;
	int err = posix_spawn_file_actions_init(&files);

	if (err)
		return -err;
	if (tty >= 0)
		err = posix_spawn_file_actions_adddup2(&files, tty, STDIN_FILENO);
	else
		err = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null",
			O_RDONLY, 0);
	if (!err)
		err = posix_spawn_file_actions_addfchdir_np(&files, dir);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&files, known, KNOWN_FD);
	if (!err)
		err = posix_spawn(ret, argv->v[0], &files, NULL, (char *const *)argv->v,
			add_environment(socket));
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

/*
 * A file without a name, which leaves nothing behind; its number is above ssh-add's own
 * descriptors.
 */
static int known_file(const char *text)
{
	auto_close int fd = memfd_create("known_hosts", MFD_CLOEXEC);
	int rc = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

	if (rc < 0)
		return rc;
	rc = fcntl(fd, F_DUPFD_CLOEXEC, KNOWN_FD + 1);
	return rc < 0 ? -errno : rc;
}

/*
 * Add one key with all the places where it may be used: adding it twice would replace the
 * first.
 */
static int load_key(const struct plan *p, const char *program, const char *key, int dir,
	const char *socket, struct fault *f)
{
	words argv = { 0 };
	struct str known = { 0 };
	auto_close int fd = -1;
	int rc;
	pid_t pid;

	vec_push(&argv, program);
	vec_push(&argv, "-q");
	vec_each(s, &p->ssh) {
		if (strcmp(s->key, key) != 0)
			continue;
		vec_push(&argv, "-h");
		vec_push(&argv, s->to);
		str_add(&known, s->known);
	}
	vec_push(&argv, "-H");
	vec_push(&argv, mem_printf("/dev/fd/%d", KNOWN_FD));
	vec_push(&argv, key);
	vec_push(&argv, NULL);
	fd = known_file(known.p);
	rc = fd < 0 ? fd : spawn_add(&argv, socket, dir, fd, &pid);
	if (rc < 0)
		return fault_set(f, -rc, "start %s", str_visible(program));
	rc = program_wait(pid);
	if (rc == 0)
		return 0;
	fault_set(f, 0, "ssh-add does not load the key %s", str_visible(key));
	return fault_fix(f,
		"What it says stands above. A passphrase is asked for on the terminal; OpenSSH "
		"8.9 or later can bind a key to hosts.");
}

static int load_all(const struct plan *p, int dir, const char *socket, struct fault *f)
{
	const char *program = program_find("ssh-add", p->workspace);

	if (!program)
		return fault_set(f, 0, "ssh: there is no program 'ssh-add' on your PATH");
	for (size_t i = 0; i < p->ssh.n; i++) {
		size_t earlier = 0;
		int rc = 0;

		while (earlier < i && strcmp(p->ssh.v[earlier].key, p->ssh.v[i].key) != 0)
			earlier++;
		if (earlier == i)
			rc = load_key(p, program, p->ssh.v[i].key, dir, socket, f);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int ssh_agent_start(const struct plan *p, pid_t *ret, struct fault *f)
{
	const char *program = program_find("ssh-agent", p->workspace);
	struct sigaction plain = { .sa_handler = SIG_DFL };
	const char *path = socket_of(p), *socket = path_base(path);
	auto_close int dir = -1;
	pid_t agent = 0;
	int rc;

	if (!program)
		return fault_set(f, 0, "ssh: there is no program 'ssh-agent' on your PATH");
	path = path_parent(path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fault_set(f, errno, "open %s", str_visible(path));
	/* If our parent ignored SIGCHLD, we do too, and the exit status would be lost. */
	sigaction(SIGCHLD, &plain, NULL);
	sweep(dir);
	unlinkat(dir, socket, 0); /* we hold the name, so no living box uses it */
	rc = start_agent(p, program, dir, socket, &agent, f);
	if (rc == 0)
		rc = load_all(p, dir, socket, f);
	if (rc < 0)
		ssh_agent_stop(&agent);
	else
		*ret = agent;
	return rc;
}

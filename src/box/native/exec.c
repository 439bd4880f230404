/*
 * box/native/exec.c - start the command
 *
 * The child shares init's memory until it has executed the program (as vfork does),
 * so it can leave its error in a variable, and no page is copied.
 */
#include "box/native/native.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/title.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

struct start {
	struct native *n;
	char **argv, **envp;
	const char *path; /* the box's PATH */
	int err;
	const char *what, *where; /* failed before the program was tried */
};

static char stack[64 * 1024] __attribute__((aligned(4096)));

static char **make_env(const struct plan *p, const char **ret_path)
{
	char **envp = mem_alloc((p->env.n + 1) * sizeof(*envp));

	*ret_path = "";
	for (size_t i = 0; i < p->env.n; i++) {
		const char *name = p->env.v[i].name, *value = p->env.v[i].value;
		size_t len = strlen(name);

		envp[i] = mem_alloc(len + strlen(value) + 2);
		memcpy(envp[i], name, len);
		envp[i][len] = '=';
		strcpy(envp[i] + len + 1, value);
		if (!strcmp(name, "PATH"))
			*ret_path = value;
	}
	return envp;
}

/* The plan may point into the supervisor's own arguments, which are about to be overwritten. */
static char **copy_argv(const char *const *argv)
{
	size_t n = 0;
	char **copy;

	while (argv[n])
		n++;
	copy = mem_alloc((n + 1) * sizeof(*copy));
	while (n-- > 0)
		copy[n] = mem_strdup(argv[n]);
	return copy;
}

int exec_search(char *const *argv, char *const *envp, const char *path)
{
	int err = ENOENT;

	if (strchr(argv[0], '/')) {
		execve(argv[0], argv, envp);
		return errno;
	}
	for (const char *at = path; *at; at += strcspn(at, ":"), at += *at == ':') {
		char file[4096];
		int n = (int)strcspn(at, ":");

		if (snprintf(file, sizeof(file), "%.*s/%s", n, at, argv[0]) >=
			(int)sizeof(file))
			continue;
		execve(file, argv, envp);
		if (errno != ENOENT && errno != ENOTDIR)
			err = errno;
	}
	return err;
}

pid_t exec_clone(int (*child)(void *arg), void *arg)
{
#ifdef __SANITIZE_ADDRESS__
	/* The last child never returned from its functions, so their marks are still there. */
	__asan_unpoison_memory_region(stack, sizeof(stack));
#endif
	return clone(child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, arg);
}

/*
 * Become a process group of its own, in the foreground of the terminal, with default signals.
 */
static const char *become_job(const struct native *n)
{
	sigset_t none;

	if (setpgid(0, 0) < 0)
		return "make a process group";
	/* From the background this would stop us; SIGTTOU is still blocked. */
	if (n->terminal >= 0 && tcsetpgrp(n->terminal, getpid()) < 0)
		return "take the terminal";
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return NULL;
}

static int read_from(const char *path)
{
	int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : dup2(fd, STDIN_FILENO);
}

static int exec_child(void *arg)
{
	struct start *s = arg;

	umask(s->n->umask);
	s->what = become_job(s->n);
	s->where = s->n->plan->workdir;
	if (!s->what && chdir(s->n->plan->workdir) < 0)
		s->what = "enter the working directory";
	if (!s->what && s->n->plan->input && read_from(s->n->plan->input) < 0) {
		s->what = "open the command's input";
		s->where = s->n->plan->input;
	}
	if (!s->what && limits_of_files(s->n->files) < 0) {
		s->what = "limit the open files of";
		s->where = s->argv[0];
	}
	s->err = s->what ? errno : exec_search(s->argv, s->envp, s->path);
	_exit(127);
}

void exec_trim(void)
{
	mem_drop(stack, sizeof(stack));
}

int step_exec(struct native *n, struct fault *f)
{
	struct start s = { .n = n };
	sigset_t all;
	pid_t pid;

	n->files = n->plan->limits.files;
	s.argv = copy_argv(n->plan->argv);
	s.envp = make_env(n->plan, &s.path);
	title_set("carrel-init");
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	pid = exec_clone(exec_child, &s);
	if (pid < 0) {
		snprintf(f->step, sizeof(f->step), "start");
		return fault_set(f, errno, "start the command");
	}
	if (!s.err) {
		n->command = pid;
		return 0;
	}
	/*
	 * Not the command's fault: the exit code differs from that of a program that cannot
	 * run.
	 */
	if (s.what)
		snprintf(f->step, sizeof(f->step), "start");
	if (s.what)
		return fault_set(f, s.err, "%s '%s'", s.what, str_visible(s.where));
	fault_set(f, s.err, "run '%s'", str_visible(s.argv[0]));
	if (s.err == ENOENT)
		return fault_fix(f,
			"There is no such program in the box; `carrel plan` shows what "
			"it can see.");
	return -s.err;
}

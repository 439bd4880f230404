/*
 * host/box-use.c - what boxes use of the machine right now
 *
 * A box with a control group is asked about there: the kernel has counted everything, also
 * what is in its tmpfs and what ended processes have used. Otherwise the processes of a box
 * are its init and all descendants of it, since an orphan goes to init. Their memory is what
 * is resident, and pages that they share count for each. Processor time of children that have
 * ended is in their parents' record.
 */
#include "host/box-use.h"
#include "box/cgroup.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
	pid_t pid, parent;
	unsigned long long ticks, pages;
};
typedef VEC(struct process) process_vec;

/* The numbers of /proc/PID/stat, after the name, which may hold anything. */
static bool read_stat(const char *pid, struct process *ret)
{
	enum { PARENT = 1, FIRST_TIME = 11, LAST_TIME = 14, PAGES = 21 };
	char path[64], text[1024];
	struct process p = { .pid = (pid_t)strtol(pid, NULL, 10) };
	auto_close int fd = -1;
	char *at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false; /* it has ended */
	text[n] = '\0';
	at = strrchr(text, ')');
	if (!at || strlen(at) < 4)
		return false;
	at += 3; /* its state */
	for (int i = 1; i <= PAGES && (at = strchr(at, ' ')); i++, at++) {
		long long value = strtoll(at + 1, NULL, 10);

		if (i == PARENT)
			p.parent = (pid_t)value;
		else if (i >= FIRST_TIME && i <= LAST_TIME)
			p.ticks += (unsigned long long)value;
		else if (i == PAGES)
			p.pages = (unsigned long long)value;
	}
	*ret = p;
	return at != NULL;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void read_processes(process_vec *ret)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	struct process p;

	while (d && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && read_stat(e->d_name, &p))
			vec_push(ret, p);
	if (d)
		closedir(d);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_pid);
}

/* Bounded: the table was not read at one moment, so parents could go round. */
static bool is_below(const process_vec *all, const struct process *p, pid_t init)
{
	for (size_t i = 0; p && i < all->n; i++) {
		const struct process key = { .pid = p->parent };

		if (p->pid == init)
			return true;
		p = bsearch(&key, all->v, all->n, sizeof(*all->v), by_pid);
	}
	return false;
}

static void sum_up(const process_vec *all, struct box_use *box)
{
	const unsigned long long page = (unsigned long long)sysconf(_SC_PAGESIZE);
	const unsigned long long hertz = (unsigned long long)sysconf(_SC_CLK_TCK);

	vec_each(p, all) {
		if (!is_below(all, p, box->init))
			continue;
		box->known = true;
		box->memory += p->pages * page;
		box->cpu_usec += p->ticks * 1000000 / hertz;
	}
}

void box_use_read(struct box_use *boxes, size_t n)
{
	process_vec all = { 0 };
	struct cgroup_use use;

	for (size_t i = 0; i < n; i++) {
		if (boxes[i].cgroup && cgroup_use(boxes[i].cgroup, &use)) {
			boxes[i].memory = use.memory;
			boxes[i].cpu_usec = use.cpu_usec;
			boxes[i].known = true;
		} else if (boxes[i].init > 0) {
			if (!all.n)
				read_processes(&all);
			sum_up(&all, &boxes[i]);
		}
	}
}

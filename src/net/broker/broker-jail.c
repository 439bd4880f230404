/*
 * net/broker/broker-jail.c - the system calls that the broker makes after its start
 */
#include "net/broker/broker.h"
#include "helper/jail.h"
#include "base/mem.h"

#include <sys/syscall.h>

static const uint16_t calls[] = {
	SYS_close,
	SYS_accept4,
	SYS_connect,
	SYS_shutdown,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_sendto,
	SYS_sendmsg,
	SYS_getpeername,
	SYS_getsockname,
	SYS_getsockopt,
	SYS_setsockopt,
	SYS_splice,
	SYS_pipe2,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
	SYS_epoll_pwait,
	SYS_epoll_ctl,
	SYS_clock_gettime,
	SYS_getrandom,
	SYS_madvise,
	SYS_rt_sigreturn,
	SYS_restart_syscall,
	SYS_exit_group,
#ifdef __SANITIZE_ADDRESS__
	SYS_read,
	SYS_write,
	SYS_mmap,
	SYS_munmap,
	SYS_futex,
	SYS_getpid,
	SYS_gettid,
	SYS_sigaltstack,
	SYS_rt_sigprocmask,
	SYS_rt_sigaction,
	SYS_prctl,
	SYS_ioctl,
	SYS_writev,
#endif
};

const struct jail broker_jail = { .calls = calls, .n = ARRAY_SIZE(calls), .sockets = true };

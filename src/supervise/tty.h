/*
 * supervise/tty.h - the host's terminal
 *
 *	if (tty_open(&t, 0, 1) && tty_foreground(&t))
 *		tty_raw(&t);
 *	...
 *	tty_restore(&t);	on every way out
 *
 * While the terminal is ours and raw, each key is a byte for the box: Ctrl-C,
 * Ctrl-Z and Ctrl-\ act in the box, through its own pty. In the background there
 * is no raw mode and stdin must not be read; a shell that does `fg` on a running
 * job sends no signal, so look at tty_foreground() now and then until it is.
 */
#ifndef SUPERVISE_TTY_H
#define SUPERVISE_TTY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

struct winsize;

struct tty {
	int in, out; /* borrowed: where the modes are set and the size is read */
	bool is_tty; /* both are terminals */
	bool raw;    /* we changed the modes and have to put them back */
	pid_t owner; /* who made it raw: a child that exits must not restore it */
	struct termios saved;
};

/* Returns is_tty. Changes nothing. */
bool tty_open(struct tty *t, int in, int out);

/*
 * May we read `in`, and change its modes, without being stopped? Of use also when
 * only `in` is a terminal: `carrel run -- make | tee log &` must not be stopped for
 * reading what the box never asked for.
 */
bool tty_foreground(const struct tty *t);

/*
 * Raw mode, when we are in the foreground; else nothing. Call it at the start, after
 * each SIGCONT and when the foreground was gained: it may be repeated. Returns
 * whether the terminal is raw now.
 */
bool tty_raw(struct tty *t);

/* Restore the original modes. May be repeated; async-signal-safe; keeps errno. */
void tty_restore(struct tty *t);

/*
 * Stop as Ctrl-Z would, and return when continued: with the whole process group
 * when it is the box that stopped (nobody else knows), alone when a SIGTSTP
 * arrived (whoever sent it has told the others). Then raw again if we are in the
 * foreground, and returns whether we are. Does not stop at all where nobody would
 * ever continue us.
 */
bool tty_suspend(struct tty *t, bool group);

/* Write to the terminal, as much of it as it takes at once. */
void tty_say(const struct tty *t, const char *bytes, size_t n);

/*
 * Read and drop what the terminal has sent and is about to send. It is asked a question that
 * every terminal answers; everything before that answer is old. If it does not answer, give up
 * after a moment.
 */
void tty_swallow(const struct tty *t);

/* Rows, columns and pixels; 24 x 80 if the terminal does not report them, or there is none. */
void tty_size(const struct tty *t, struct winsize *ret);

/*
 * The user's modes and control characters (erase, UTF-8, ...), as the initial settings of the
 * box's pty; NULL if they are not usable.
 */
const struct termios *tty_cooked(const struct tty *t);

#endif

/*
 * screen/screen.h - messages between the supervisor and a box's screen
 *
 * The screen of a detached box is a process of its own, carrel-screen. It reads all output of
 * the box's terminal, keeps what a terminal would show, answers as a terminal would, and logs
 * the text. The supervisor starts it with these descriptors and nothing else, and first sends
 * the size of the screen.
 *
 * Each message is one packet (SOCK_SEQPACKET): a letter and its data.
 */
#ifndef SCREEN_SCREEN_H
#define SCREEN_SCREEN_H

#include <stdint.h>

#define SCREEN_PROGRAM "carrel-screen"

enum {
	SCREEN_SOCKET = 3,
	SCREEN_LOG,  /* lines that have scrolled off, as they last were */
	SCREEN_TEXT, /* SCREEN_PLAIN or SCREEN_FULL, a line feed, and what is shown now */
	SCREEN_FDS,
	SCREEN_PACKET = 16 * 1024, /* bytes after the letter, at most */
	SCREEN_LOG_SIZE = 8 << 20, /* bytes; then the older half is dropped */
	SCREEN_ROWS = 1000,
	SCREEN_COLS = 1000,
};

enum screen_letter {
	/* To the screen. */
	SCREEN_OUTPUT = 'o',  /* bytes of the box */
	SCREEN_SIZE = 's',    /* struct screen_size */
	SCREEN_PICTURE = 'p', /* asks for a picture; from the screen: bytes that draw it */
	SCREEN_END = 'e',     /* the box has ended: write the rest of the log, and end */
	/* From the screen. */
	SCREEN_READY = 'r',  /* it has entered its jail */
	SCREEN_FAULT = 'f',  /* it could not: the reason, as text */
	SCREEN_ANSWER = 'a', /* bytes for the box to read */
	SCREEN_DRAWN = 'd',  /* the picture is complete */
};

/* The first letter of SCREEN_TEXT. */
enum { SCREEN_PLAIN = 'P', SCREEN_FULL = 'F' }; /* F: a full-screen program is shown */

struct screen_size {
	uint16_t rows, cols;
};

#endif

/*
 * base/clock.h - how late it is
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* Milliseconds of a clock that nobody sets. */
long long clock_ms(void);

#endif

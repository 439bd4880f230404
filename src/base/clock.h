/*
 * base/clock.h - the monotonic clock
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* The monotonic clock in milliseconds: setting the system's time does not change it. */
long long clock_ms(void);

#endif

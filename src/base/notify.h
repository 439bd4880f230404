/*
 * base/notify.h - tell a service manager how we are
 */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

/*
 * Send a state such as "READY=1" to the socket that $NOTIFY_SOCKET names, as sd_notify(3) does.
 * Does nothing where there is no such socket: a service runs without, too.
 */
void notify(const char *state);

#endif

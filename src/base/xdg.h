/*
 * base/xdg.h - carrel's own directories, as the XDG base directory specification has them
 *
 * Each is NULL when neither the variable nor HOME says where. A variable that is no absolute
 * path is ignored, as the specification wants it. Nothing is created here.
 */
#ifndef BASE_XDG_H
#define BASE_XDG_H

const char *xdg_config(void); /* $XDG_CONFIG_HOME/carrel, or ~/.config/carrel */
const char *xdg_state(void);  /* $XDG_STATE_HOME/carrel, or ~/.local/state/carrel */

const char *xdg_runtime(void); /* $XDG_RUNTIME_DIR/carrel; the session made it, or nobody */

struct fault;

/* Make dir and what is missing above it, mode 0700; refuses one that somebody else owns. */
int xdg_make(const char *dir, struct fault *f);

#endif

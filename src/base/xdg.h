/*
 * base/xdg.h - carrel's own directories, as the XDG base directory specification has them
 *
 * Each is NULL when neither the variable nor HOME says where. A variable that is not an
 * absolute path is ignored, as the specification demands. These functions create nothing.
 */
#ifndef BASE_XDG_H
#define BASE_XDG_H

const char *xdg_config(void); /* $XDG_CONFIG_HOME/carrel, or ~/.config/carrel */
const char *xdg_state(void);  /* $XDG_STATE_HOME/carrel, or ~/.local/state/carrel */

const char *xdg_runtime(void); /* $XDG_RUNTIME_DIR/carrel, if the session has one */

/* Why there is no runtime directory: "XDG_RUNTIME_DIR is not set"; NULL: there is one. */
const char *xdg_runtime_problem(void);

struct fault;

/* Make dir and its missing parents, with mode 0700; refuses one that somebody else owns. */
int xdg_make(const char *dir, struct fault *f);

#endif

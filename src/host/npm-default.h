/*
 * host/npm-default.h - the registry that npm uses when no file configures one
 *
 * Only npm knows its built-in default. npm takes longer to answer than a box takes to start,
 * so it is asked once, outside of any box, and the answer is kept in carrel's state directory
 * until another npm is installed.
 */
#ifndef HOST_NPM_DEFAULT_H
#define HOST_NPM_DEFAULT_H

/*
 * Its URL, or NULL when there is no npm or it gives none. npm is never one that an agent may
 * have put into this canonical workspace or around it.
 */
const char *npm_default_registry(const char *workspace);

#endif

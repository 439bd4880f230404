/*
 * host/npm-default.h - the registry that npm uses when no file configures one
 *
 * Only npm knows its built-in default. npm takes longer to answer than a box takes to start, so
 * carrel runs it once, outside of any box, and caches the answer in its state directory until
 * another npm is installed.
 */
#ifndef HOST_NPM_DEFAULT_H
#define HOST_NPM_DEFAULT_H

/*
 * Its URL, or NULL if there is no npm or it prints none. Never runs an npm that an agent may
 * have put into this canonical workspace or around it.
 */
const char *npm_default_registry(const char *workspace);

#endif

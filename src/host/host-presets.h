/*
 * host/host-presets.h - presets that depend on the user's own configuration
 *
 * "@npm" and "@debian" are the hosts that this user's npm and this machine's apt are
 * configured to fetch from. Reading that takes a dozen files, so the caller asks for it only
 * when an entry is one of them.
 */
#ifndef HOST_HOST_PRESETS_H
#define HOST_HOST_PRESETS_H

#include "net/policy/policy.h"

/*
 * "@npm" and "@debian", with entries or with the reason why there are none. The workspace is
 * canonical; a program in it or around it is not run.
 */
void presets_of_host(const char *workspace, struct policy_preset ret[2]);

/* ---- the parsers: text in, entries of a policy added to a list, none twice ---- */

enum { PRESET_ENTRIES = 64 };

struct preset_list {
	const char **v;
	size_t n, cap;
};

/* A URL that is not http or https, or has no valid host, adds nothing; true if it added one. */
bool preset_add_url(struct preset_list *list, const char *url, size_t n);

/*
 * Read an npmrc and expand ${NAME} from the environment. A key in `seen` was set by a file with
 * precedence and is skipped; the keys of this file are added to it.
 */
void preset_read_npmrc(struct preset_list *list, const char *text, struct preset_list *seen);

/* host-presets-apt.c: sources.list, *.sources and apt.conf (of which its proxies). */
void preset_read_sources_list(struct preset_list *list, const char *text);
void preset_read_deb822(struct preset_list *list, const char *text);
void preset_read_apt_conf(struct preset_list *list, const char *text);

#endif

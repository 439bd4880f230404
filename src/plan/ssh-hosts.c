/*
 * plan/ssh-hosts.c - hosts to log in to, with keys that stay outside
 *
 * The socket of the ssh agent is the only socket of the host in a box. That agent has these
 * keys and nothing else.
 */
#include "plan/internal.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/path.h"
#include "base/str.h"

/* Could the box read this path? */
static const struct place *place_of(const struct plan *p, const char *path)
{
	vec_each(place, &p->places) {
		if (place->source && path_within(path, place->source))
			return place;
		for (size_t i = 0; place->lowers && place->lowers[i]; i++)
			if (path_within(path, place->lowers[i]))
				return place;
	}
	return NULL;
}

int plan_add_ssh(const struct request *r, const struct host *h, struct plan *p, struct fault *f)
{
	vec_each(s, &r->ssh) {
		const struct place *in = place_of(p, s->key);

		if (in) {
			fault_set(f, 0, "ssh %s: the box could read the key %s: it is in %s",
				str_visible(s->host), str_visible(s->key),
				in->source ? str_visible(in->source) : in->target);
			return fault_fix(f, "Leave out what shows it (%s), or move the key.",
				str_visible(in->why));
		}
		vec_push(&p->ssh, *s);
	}
	if (r->ssh.n)
		vec_push(&p->places,
			((struct place){ .kind = PLACE_BIND,
				.target = REQUEST_SSH_SOCKET,
				.source = mem_printf("%s/%s" REQUEST_SSH_SUFFIX, h->sockets,
					p->name),
				.named = true,
				.own = true,
				.mode = 0600,
				.why = "ssh keys" }));
	return 0;
}

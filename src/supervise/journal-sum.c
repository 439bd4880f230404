/*
 * supervise/journal-sum.c - summarise a box's network in one line or two
 *
 *	2 hosts reached (12K sent, 3.4M received), 1 refused: telemetry.example.com
 *	to allow it: carrel run --allow telemetry.example.com ...
 *
 * An entry is offered only if the policy's own parser accepts it. If a name leads to an address
 * that is not public, the entry is for that address. An entry that the user denied is not
 * offered.
 */
#include "supervise/journal.h"
#include "net/policy/policy.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 5 };

static const char *size_of(uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	double n = (double)bytes;
	size_t u = 0;

	if (bytes < 1024)
		return mem_printf("%d", (int)bytes);
	for (n /= 1024; n >= 1023.5 && u + 2 < sizeof(units); n /= 1024)
		u++;
	return mem_printf(n < 9.95 ? "%.1f%c" : "%.0f%c", n, units[u]);
}

/*
 * Count distinct names: a name may be listed for several ports, or for its lookup and a port.
 */
static bool is_first(const struct journal_hosts *hosts, unsigned int i)
{
	for (unsigned int k = 0; k < i; k++)
		if (!strcmp(hosts->host[k].name, hosts->host[i].name))
			return false;
	return true;
}

static unsigned int names_of(const struct journal_hosts *hosts)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < hosts->n; i++)
		n += is_first(hosts, i);
	return n;
}

static const char *number_of(const struct journal_hosts *hosts)
{
	return mem_printf("%s%u", hosts->more ? "more than " : "", names_of(hosts));
}

/* The reason, unless the host was simply in no list. */
static const char *because_refused(const struct journal_host *h)
{
	if (h->why == POLICY_UNLISTED)
		return "";
	if (h->why == POLICY_PORT)
		return mem_printf(":%u", h->port);
	if (!h->is_address && h->address.family != ADDRESS_NONE) {
		char text[ADDRESS_SIZE];

		address_format(&h->address, text);
		return mem_printf(" (%s: %s)", text, policy_reason_text(h->why));
	}
	return mem_printf(" (%s)", policy_reason_text(h->why));
}

static const char *because_failed(const struct journal_host *h)
{
	return mem_printf(" (%s)", journal_error_text(h->why));
}

static void add_names(struct str *out, const struct journal_hosts *hosts,
	const char *(*because)(const struct journal_host *h))
{
	unsigned int shown = 0, n = names_of(hosts);

	for (unsigned int i = 0; i < hosts->n && shown < SHOWN; i++) {
		if (!is_first(hosts, i))
			continue;
		str_add(out, shown++ ? ", " : ": ");
		str_add_visible(out, hosts->host[i].name);
		str_add(out, because(&hosts->host[i]));
	}
	if (n > shown)
		str_addf(out, " and %u more", n - shown);
}

/* ---- the way to allow it ---- */

/*
 * Does the address belong to this machine or to a network around it, where the user may have a
 * service? A line that users copy must not open a cloud's metadata service, which has
 * credentials.
 */
static bool may_offer(const struct journal_host *h)
{
	return h->address.family != ADDRESS_NONE &&
		(!address_range(&h->address) || address_is_site(&h->address));
}

/* The entry that would have allowed it; NULL: no entry would. */
static const char *entry_for(const struct journal_host *h, struct policy *scratch)
{
	struct policy_rule rule = { .ports = PORTS_WEB, .kind = RULE_NAME };
	char text[POLICY_TEXT];
	struct policy_entry e = { .text = text };
	struct fault ignored = { 0 };

	if (h->why != POLICY_UNLISTED && h->why != POLICY_PORT && !may_offer(h))
		return NULL;
	if (h->port && h->port != 443 && h->port != 80) {
		rule.ports = PORTS_ONE;
		rule.port = h->port;
	}
	if (h->address.family != ADDRESS_NONE) {
		rule.kind = RULE_NETWORK;
		rule.net = h->address;
		rule.bits = (uint8_t)address_bits(&rule.net);
	} else if (h->is_address) {
		rule.kind = RULE_NETWORK;
		if (!address_parse(h->name, strlen(h->name), &rule.net))
			return NULL;
		rule.bits = (uint8_t)address_bits(&rule.net);
	} else {
		memcpy(rule.name, h->name, sizeof(rule.name));
	}
	policy_rule_text(&rule, text);
	policy_init(scratch, false);
	return policy_parse(scratch, &e, 1, NULL, 0, &ignored) == 0 ? mem_strdup(text) : NULL;
}

/* The same name was refused on a port as well, and the port says more than the lookup. */
static bool is_said_better(const struct journal_hosts *hosts, const struct journal_host *h)
{
	for (unsigned int i = 0; !h->port && i < hosts->n; i++)
		if (hosts->host[i].port && !strcmp(hosts->host[i].name, h->name))
			return true;
	return false;
}

static void add_remedy(struct str *out, const struct journal_hosts *hosts)
{
	struct policy *scratch = mem_alloc(sizeof(*scratch));
	VEC(const char *) entries = { 0 };

	for (unsigned int i = 0; i < hosts->n; i++) {
		const char *entry = is_said_better(hosts, &hosts->host[i])
			? NULL
			: entry_for(&hosts->host[i], scratch);
		bool new = entry;

		vec_each(known, &entries)
			new = new &&strcmp(*known, entry) != 0;
		if (new)
			vec_push(&entries, entry);
	}
	if (!entries.n)
		return;
	str_addf(out, "to allow %s: carrel run", entries.n > 1 ? "them" : "it");
	for (size_t i = 0; i < entries.n && i < SHOWN; i++)
		str_addf(out, " --allow %s", entries.v[i]);
	str_add(out, " ...");
	if (entries.n > SHOWN)
		str_addf(out, "  (and %zu more)", entries.n - SHOWN);
	str_addc(out, '\n');
}

void journal_summary(const struct journal *j, struct str *out)
{
	const struct journal_sum *sum = journal_sum(j);
	unsigned int reached;

	if (!sum ||
		(!sum->reached.n && !sum->refused.n && !sum->failed.n && !sum->lost &&
			!sum->limit[0][0]))
		return;
	reached = names_of(&sum->reached);
	str_addf(out, "%s host%s reached", number_of(&sum->reached), reached == 1 ? "" : "s");
	if (sum->sent || sum->received)
		str_addf(out, " (%s sent, %s received)", size_of(sum->sent),
			size_of(sum->received));
	if (sum->failed.n) {
		str_addf(out, ", %s could not be reached", number_of(&sum->failed));
		add_names(out, &sum->failed, because_failed);
	}
	if (sum->refused.n) {
		str_addf(out, ", %s refused", number_of(&sum->refused));
		add_names(out, &sum->refused, because_refused);
	}
	for (unsigned int i = 0; i < JOURNAL_LIMITS && sum->limit[i][0]; i++)
		str_addf(out, "%s%s",
			i ? ", " : "; limits reached: ", str_visible(sum->limit[i]));
	if (sum->lost)
		str_add(out, "; the network ended before the box did");
	str_addc(out, '\n');
	add_remedy(out, &sum->refused);
}

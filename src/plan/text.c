#include "plan/text.h"
#include "plan/plan.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

void text_heading(struct str *out, bool colour, const char *label)
{
	str_addf(out, "%s%-*s%s", colour ? "\033[1m" : "", TEXT_INDENT, label,
		colour ? "\033[0m" : "");
}

void text_line(struct str *out, bool colour, const char *label, const char *text)
{
	text_heading(out, colour, label);
	str_add_visible(out, text);
	str_addc(out, '\n');
}

void text_flow(struct str *out, bool colour, const char *label, const char *text)
{
	size_t at = TEXT_INDENT;

	text_heading(out, colour, label);
	while (*text) {
		size_t n = strcspn(text, " ");

		if (at > TEXT_INDENT && at + 1 + n > TEXT_WIDTH) {
			str_addc(out, '\n');
			text_heading(out, colour, "");
			at = TEXT_INDENT;
		} else if (at > TEXT_INDENT) {
			str_addc(out, ' ');
			at++;
		}
		str_addn(out, text, n);
		at += n;
		text += n + (text[n] == ' ');
	}
	str_addc(out, '\n');
}

void text_wrap(struct text_wrapped *w, const char *text)
{
	size_t n = strlen(text);

	/* A comma follows. */
	if (!w->begun || w->width + n + 1 > TEXT_WIDTH) {
		str_add(w->out, w->begun ? ",\n" : "");
		text_heading(w->out, w->colour, w->begun ? "" : w->label);
		w->width = TEXT_INDENT;
	} else {
		str_add(w->out, ", ");
	}
	str_add(w->out, text);
	w->width += n + 2;
	w->begun = true;
}

void text_wrap_end(struct text_wrapped *w)
{
	if (w->begun)
		str_addc(w->out, '\n');
}

static bool allows_any(const struct plan *p)
{
	vec_each(rule, &p->net_rules)
		if (!rule->deny)
			return true;
	return false;
}

const char *text_network(const struct plan *p)
{
	static const char *const modes[] = {
		[NETWORK_NONE] = "none (its own loopback)",
		[NETWORK_OPEN] = "open: the public Internet, not this machine or its network",
		[NETWORK_HOST] =
			"host: everything this machine can reach, its own services too",
	};
	bool any = allows_any(p);

	if (p->frame.network != NETWORK_ALLOW)
		return modes[p->frame.network];
	if (p->ask)
		return any ? "allow: these hosts; you are asked about others"
			   : "allow: you are asked about every host";
	return any ? "allow: these hosts and nothing else" : "allow: nothing is allowed";
}

const char *text_login(const struct request_agent *a)
{
	return a->login_until ? mem_printf("%s, %s", a->login, a->login_until) : a->login;
}

const char *text_prompts(const struct request_agent *a)
{
	return a->prompts == PROMPTS_OFF
		? mem_printf("off: %s asks for no permission, the box is what holds it",
			  a->title)
		: mem_printf("on: %s asks for permission as it does outside", a->title);
}

/*
 * box/native/seccomp-gen.c - turn the policy table into programs for the kernel
 *
 *	seccomp-gen x86_64|aarch64 > seccomp-filter.h
 *
 * A tool of the build, not a part of carrel. Why at build time: asking libseccomp at run time
 * costs more than the rest of a box's start. Why a tree: when the program is installed, the
 * kernel tries it out for every call number. Later it runs the program for every call whose
 * verdict depends on arguments. So each step costs time.
 *
 * How. Every number gets a verdict; neighbours with the same verdict become one interval; a
 * binary search tree over the first numbers of the intervals leads to the verdicts. If single
 * numbers are exceptions in an interval, one comparison finds each of them, where the tree
 * would need two. Of all such trees the generator takes the one that is cheapest to install. A
 * verdict that looks at arguments is a rule, a block of its own behind the tree; each return
 * value of rules and leaves stands once, at the very end:
 *
 *	load arch, not ours: kill       (before anything else: numbers mean nothing yet)
 *	load number
 *	the tree                        jumps only, one instruction a node
 *	the rules                       those that this program can reach
 *	the returns
 *
 * Keep this order. As long as the program has looked at the number alone, the kernel (5.11) can
 * note which numbers end in "allow", and then does not run the program for them at all.
 *
 * All jumps lead forward and a conditional one reaches 255 instructions. A program that
 * grows beyond that, an unknown or repeated name, a rule that leads backwards: each is
 * an error that stops the build.
 */
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "box/native/seccomp-policy.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

enum {
	MAX_NR = 1024, /* call numbers we look at; beyond them all is refused */
	MAX_INTERVALS = 256,
	MAX_INSNS = 512,
	MAX_RETURNS = 16,
	MAX_LABELS = MAX_INSNS,
	MAX_REACH = 255,
	FALL_THROUGH = -1, /* a label: the next instruction */

	/*
	 * The cost of installing: translating one instruction costs as much as that many trial
	 * steps.
	 */
	INSN_COST = 75,
	LAST_TRIED = 470, /* the kernel tries out the numbers it has */
};

struct arch {
	const char *name, *macro;
	uint32_t token, audit;
	bool x32;
};

static const struct arch arches[] = {
	{ "x86_64", "__x86_64__", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64, true },
	{ "aarch64", "__aarch64__", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64, false },
};

struct interval {
	uint32_t first; /* it ends where the next one begins */
	uint32_t verdict;
};

struct insn {
	uint16_t code;
	uint32_t k;
	int yes, no; /* labels */
	char note[64];
};

struct program {
	const struct arch *arch;
	bool nest;

	struct interval intervals[MAX_INTERVALS];
	size_t interval_count;
	unsigned int cost[MAX_INTERVALS][MAX_INTERVALS + 1]; /* of the tree for [from, to) */
	size_t split[MAX_INTERVALS][MAX_INTERVALS + 1];

	struct insn insns[MAX_INSNS];
	size_t insn_count;

	size_t labels[MAX_LABELS]; /* where each one stands */
	int label_count;

	int rule_label[RULE_COUNT]; /* FALL_THROUGH: not reached (so far) */
	uint32_t returns[MAX_RETURNS];
	int return_label[MAX_RETURNS];
	size_t return_count;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
	va_list ap;

	fputs("seccomp-gen: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/*
 * The table: numbers and verdicts.
 */

/* The number of a call, or -1 when this architecture does not have it. */
static int number_of(const struct arch *arch, const char *name)
{
	int known = seccomp_syscall_resolve_name_arch(arch->token, name);

	for (size_t i = 0; i < LENGTH(policy_numbers); i++) {
		const struct policy_number *own = &policy_numbers[i];

		if (strcmp(own->name, name) != 0)
			continue;
		if (own->arch && strcmp(own->arch, arch->name) != 0)
			return -1;
		if (known >= 0 && known != own->nr)
			die("%s is %d here and %d for libseccomp", name, own->nr, known);
		return own->nr;
	}
	if (known == __NR_SCMP_ERROR)
		die("nobody knows a system call named %s", name);
	/*
	 * libseccomp uses other negative numbers for calls that this architecture does not
	 * have.
	 */
	return known < 0 ? -1 : known;
}

static void set_group(const struct program *p, const struct policy_group *group,
	uint32_t *verdicts, bool *seen)
{
	const char *rest = group->names;
	char name[64];

	while (policy_next_name(&rest, name, sizeof(name))) {
		int nr = number_of(p->arch, name);

		if (nr < 0)
			continue;
		if (nr >= MAX_NR)
			die("%s has the number %d, beyond the table", name, nr);
		if (seen[nr])
			die("%s stands in the table twice", name);
		seen[nr] = true;
		verdicts[nr] = p->nest ? group->nest : group->strict;
	}
	if (*rest)
		die("a name is too long: %s", rest);
}

static void add_interval(struct program *p, uint32_t first, uint32_t verdict)
{
	if (p->interval_count > 0 && p->intervals[p->interval_count - 1].verdict == verdict)
		return;
	if (p->interval_count == MAX_INTERVALS)
		die("too many intervals");
	p->intervals[p->interval_count++] = (struct interval){ first, verdict };
}

static void make_intervals(struct program *p)
{
	uint32_t verdicts[MAX_NR];
	bool seen[MAX_NR] = { false };

	for (size_t nr = 0; nr < MAX_NR; nr++)
		verdicts[nr] = VERDICT_DEFAULT;
	for (size_t i = 0; i < LENGTH(policy_groups); i++)
		set_group(p, &policy_groups[i], verdicts, seen);

	for (uint32_t nr = 0; nr < MAX_NR; nr++)
		add_interval(p, nr, verdicts[nr]);
	add_interval(p, MAX_NR, VERDICT_DEFAULT);
	if (p->arch->x32)
		add_interval(p, X32_BIT, VERDICT_KILL);
	add_interval(p, NR_SKIPPED, VERDICT_ALLOW);
}

/*
 * Instructions and labels. A label is created when an instruction jumps to it, and placed when
 * its target is written. The jumps are filled in at the end.
 */

static int new_label(struct program *p)
{
	if (p->label_count == MAX_LABELS)
		die("too many labels");
	p->labels[p->label_count] = SIZE_MAX;
	return p->label_count++;
}

static void place_label(struct program *p, int label)
{
	p->labels[label] = p->insn_count;
}

__attribute__((format(printf, 6, 7))) static void emit(struct program *p, int code, uint32_t k,
	int yes, int no, const char *note, ...)
{
	struct insn *insn;
	va_list ap;

	if (p->insn_count == MAX_INSNS)
		die("too many instructions");
	insn = &p->insns[p->insn_count++];
	*insn = (struct insn){ .code = (uint16_t)code, .k = k, .yes = yes, .no = no };
	va_start(ap, note);
	vsnprintf(insn->note, sizeof(insn->note), note, ap);
	va_end(ap);
}

static void emit_load(struct program *p, size_t offset, const char *note)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, FALL_THROUGH, FALL_THROUGH, "%s",
		note);
}

static int return_label(struct program *p, uint32_t verdict)
{
	size_t i;

	for (i = 0; i < p->return_count; i++)
		if (p->returns[i] == verdict)
			return p->return_label[i];
	if (i == MAX_RETURNS)
		die("too many different verdicts");
	p->returns[i] = verdict;
	p->return_label[i] = new_label(p);
	p->return_count++;
	return p->return_label[i];
}

static int verdict_label(struct program *p, uint32_t verdict)
{
	int *label;

	if (!VERDICT_IS_RULE(verdict))
		return return_label(p, verdict);
	label = &p->rule_label[VERDICT_TO_RULE(verdict)];
	if (*label == FALL_THROUGH)
		*label = new_label(p);
	return *label;
}

/*
 * The parts of a program, in their order.
 */

static void emit_head(struct program *p)
{
	emit_load(p, offsetof(struct seccomp_data, arch), "arch");
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, p->arch->audit, FALL_THROUGH,
		verdict_label(p, VERDICT_KILL), "%s?", p->arch->name);
	emit_load(p, offsetof(struct seccomp_data, nr), "number");
}

/*
 * The number of single numbers that are exceptions to one verdict, if [from, to) has nothing
 * else: then every second interval is one. 0: it has something else.
 */
static size_t exceptions(const struct program *p, size_t from, size_t to)
{
	const struct interval *at = p->intervals;

	if ((to - from) % 2 == 0)
		return 0;
	for (size_t i = from; i < to; i += 2)
		if (at[i].verdict != at[from].verdict)
			return 0;
	for (size_t i = from + 1; i < to; i += 2)
		if (at[i + 1].first - at[i].first != 1)
			return 0;
	return (to - from) / 2;
}

/* How many numbers of the interval the kernel tries out. */
static unsigned int tried(const struct program *p, size_t i)
{
	uint32_t from = p->intervals[i].first;
	uint32_t to = i + 1 < p->interval_count ? p->intervals[i + 1].first : UINT32_MAX;

	if (from > LAST_TRIED)
		return 0;
	return (to > LAST_TRIED ? LAST_TRIED + 1 : to) - from;
}

/*
 * The cost of the tree for [from, to), and where it splits (0 for exceptions), once both are
 * known for all parts. Each instruction is translated, and each number that reaches it is a
 * step.
 */
static void plan_subtree(struct program *p, size_t from, size_t to)
{
	unsigned int singles = (unsigned int)exceptions(p, from, to), numbers = 0;
	unsigned int least = UINT_MAX;

	for (size_t i = from; i < to; i++)
		numbers += tried(p, i);
	p->split[from][to] = 0;
	if (singles)
		least = singles * (INSN_COST + numbers);
	for (size_t middle = from + 1; middle < to; middle++) {
		unsigned int cost =
			INSN_COST + numbers + p->cost[from][middle] + p->cost[middle][to];

		if (cost >= least)
			continue;
		least = cost;
		p->split[from][to] = middle;
	}
	p->cost[from][to] = to - from == 1 ? 0 : least;
}

static void plan_tree(struct program *p)
{
	for (size_t size = 1; size <= p->interval_count; size++)
		for (size_t from = 0; from + size <= p->interval_count; from++)
			plan_subtree(p, from, from + size);
}

/* Valid until the next call. */
static const char *name_of(const struct program *p, uint32_t nr)
{
	static char name[64];
	char *known = seccomp_syscall_resolve_num_arch(p->arch->token, (int)nr);

	snprintf(name, sizeof(name), "%s", known ? known : "here");
	free(known);
	return name;
}

static void emit_exceptions(struct program *p, size_t from, size_t to)
{
	for (size_t i = from + 1; i < to; i += 2) {
		const struct interval *at = &p->intervals[i];
		int no = i + 2 == to ? verdict_label(p, at[1].verdict) : FALL_THROUGH;

		emit(p, BPF_JMP | BPF_JEQ | BPF_K, at->first, verdict_label(p, at->verdict), no,
			"%s?", name_of(p, at->first));
	}
}

/*
 * The target for intervals [from, to): a verdict, or a part of the tree that is not written
 * yet.
 */
static int subtree_label(struct program *p, size_t from, size_t to)
{
	return to - from == 1 ? verdict_label(p, p->intervals[from].verdict) : new_label(p);
}

static void emit_tree(struct program *p, size_t from, size_t to)
{
	size_t middle = p->split[from][to];
	int below, above;

	if (!middle) {
		emit_exceptions(p, from, to);
		return;
	}
	below = subtree_label(p, from, middle);
	above = subtree_label(p, middle, to);
	emit(p, BPF_JMP | BPF_JGE | BPF_K, p->intervals[middle].first, above, below,
		"from %s on?", name_of(p, p->intervals[middle].first));
	if (middle - from > 1) {
		place_label(p, below);
		emit_tree(p, from, middle);
	}
	if (to - middle > 1) {
		place_label(p, above);
		emit_tree(p, middle, to);
	}
}

/* Both architectures are little-endian: the low word of an argument comes first. */
static void emit_load_arg(struct program *p, const struct policy_test *t)
{
	size_t low = offsetof(struct seccomp_data, args) + t->arg * sizeof(uint64_t);
	char note[32];

	snprintf(note, sizeof(note), "arg %u%s", t->arg, t->kind == TEST_HIGH ? ", high" : "");
	emit_load(p, t->kind == TEST_HIGH ? low + sizeof(uint32_t) : low, note);
	if (t->kind == TEST_EQUAL && t->mask != UINT32_MAX)
		emit(p, BPF_ALU | BPF_AND | BPF_K, t->mask, FALL_THROUGH, FALL_THROUGH,
			"masked");
}

/* Does the accumulator hold what t needs after test before it? */
static bool same_load(const struct policy_test *before, const struct policy_test *t)
{
	uint32_t left = before->kind == TEST_EQUAL ? before->mask : UINT32_MAX;
	uint32_t needs = t->kind == TEST_EQUAL ? t->mask : UINT32_MAX;

	return before->arg == t->arg && left == needs &&
		(before->kind == TEST_HIGH) == (t->kind == TEST_HIGH);
}

static void emit_test(struct program *p, const struct policy_test *t)
{
	int yes = verdict_label(p, t->verdict), no = FALL_THROUGH;

	if (t[1].kind == TEST_OTHERWISE)
		no = verdict_label(p, t[1].verdict);
	if (t->kind == TEST_EQUAL)
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, t->value, yes, no, "equal?");
	else if (t->kind == TEST_ANY_BIT)
		emit(p, BPF_JMP | BPF_JSET | BPF_K, t->mask, yes, no, "any bit?");
	else
		emit(p, BPF_JMP | BPF_JGE | BPF_K, 1, yes, no, "any bit?");
}

static void check_rule(unsigned int rule)
{
	const struct policy_test *t = policy_rules[rule].tests;

	if (t->kind == TEST_OTHERWISE)
		die("the rule %s tests nothing", policy_rules[rule].name);
	for (;; t++) {
		if (VERDICT_IS_RULE(t->verdict) && VERDICT_TO_RULE(t->verdict) <= rule)
			die("the rule %s leads backwards", policy_rules[rule].name);
		if (t->kind == TEST_OTHERWISE)
			return;
	}
}

static void emit_rules(struct program *p)
{
	for (unsigned int rule = 0; rule < RULE_COUNT; rule++) {
		const struct policy_test *first = policy_rules[rule].tests;

		check_rule(rule);
		if (p->rule_label[rule] == FALL_THROUGH)
			continue;
		place_label(p, p->rule_label[rule]);
		for (const struct policy_test *t = first; t->kind != TEST_OTHERWISE; t++) {
			if (t == first || !same_load(t - 1, t))
				emit_load_arg(p, t);
			emit_test(p, t);
		}
	}
}

static void emit_returns(struct program *p)
{
	for (size_t i = 0; i < p->return_count; i++) {
		uint32_t v = p->returns[i];

		place_label(p, p->return_label[i]);
		if ((v & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
			emit(p, BPF_RET | BPF_K, v, FALL_THROUGH, FALL_THROUGH, "%s",
				strerrorname_np((int)(v & SECCOMP_RET_DATA)));
		else
			emit(p, BPF_RET | BPF_K, v, FALL_THROUGH, FALL_THROUGH, "%s",
				v == VERDICT_ALLOW ? "allow" : "kill");
	}
}

static void make_program(struct program *p, const struct arch *arch, bool nest)
{
	*p = (struct program){ .arch = arch, .nest = nest };
	for (size_t i = 0; i < RULE_COUNT; i++)
		p->rule_label[i] = FALL_THROUGH;
	make_intervals(p);
	emit_head(p);
	plan_tree(p);
	emit_tree(p, 0, p->interval_count);
	emit_rules(p);
	emit_returns(p);
}

/*
 * The header.
 */

static const char *verdict_text(uint32_t verdict)
{
	if (VERDICT_IS_RULE(verdict))
		return policy_rules[VERDICT_TO_RULE(verdict)].name;
	if (verdict == VERDICT_ALLOW)
		return "allow";
	if (verdict == VERDICT_KILL)
		return "kill";
	return strerrorname_np((int)(verdict & SECCOMP_RET_DATA));
}

static void print_intervals(const struct program *p)
{
	for (size_t i = 0; i < p->interval_count; i++) {
		const struct interval *at = &p->intervals[i];
		uint32_t last = i + 1 < p->interval_count ? at[1].first - 1 : UINT32_MAX;
		char *from = seccomp_syscall_resolve_num_arch(p->arch->token, (int)at->first);
		char *to = seccomp_syscall_resolve_num_arch(p->arch->token, (int)last);

		printf(" * %10u - %-10u %-12s %s%s%s\n", at->first, last,
			verdict_text(at->verdict), from ? from : "-",
			last == at->first ? "" : " ... ",
			last == at->first ? "" : (to ? to : "-"));
		free(from);
		free(to);
	}
}

static unsigned int distance(const struct program *p, size_t from, int label)
{
	size_t steps;

	if (label == FALL_THROUGH)
		return 0;
	if (p->labels[label] == SIZE_MAX || p->labels[label] <= from)
		die("instruction %zu jumps to nowhere", from);
	steps = p->labels[label] - from - 1;
	if (steps > MAX_REACH)
		die("instruction %zu jumps %zu steps, %d is the limit", from, steps, MAX_REACH);
	return (unsigned int)steps;
}

static void print_program(const struct program *p)
{
	const char *name = p->nest ? "nest" : "strict";

	printf("/*\n * %s, %zu instructions\n *\n", name, p->insn_count);
	print_intervals(p);
	printf(" */\nstatic const struct sock_filter filter_%s[] = {\n", name);
	for (size_t i = 0; i < p->insn_count; i++) {
		const struct insn *insn = &p->insns[i];

		printf("\t/* %3zu */ { 0x%02x, %3u, %3u, 0x%08x }, /* %s */\n", i, insn->code,
			distance(p, i, insn->yes), distance(p, i, insn->no), insn->k,
			insn->note);
	}
	printf("};\n\n");
}

int main(int argc, char **argv)
{
	static struct program strict, nest;

	for (size_t i = 0; argc == 2 && i < LENGTH(arches); i++) {
		if (strcmp(arches[i].name, argv[1]) != 0)
			continue;
		make_program(&strict, &arches[i], false);
		make_program(&nest, &arches[i], true);
		printf("/* Made by seccomp-gen from seccomp-policy.h: change that one. */\n"
		       "#ifndef %s\n#error \"this filter is for %s\"\n#endif\n\n"
		       "#include <linux/filter.h>\n\n",
			arches[i].macro, arches[i].name);
		print_program(&strict);
		print_program(&nest);
		return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
	}
	die("usage: seccomp-gen x86_64|aarch64 (no policy for '%s')", argc == 2 ? argv[1] : "");
}

/* sandbox_generate ARCH >filters.h: what make runs to have libseccomp compile the policy for x86_64 or aarch64,
 * wherever it runs itself. No part of the supervisor.
 *
 * A word that is known at run time only is a blank in the programs. It is found by compiling twice, with two different
 * stand-ins for each word: the programs must be alike but for constants of "jump if equal", each of which was one
 * word's stand-in in both, and there must be as many as the policy asks for. Equal programs are written once. */
#include "sandbox_compile.h"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAMS_MAX = 2 * POLICY_KINDS, BLANKS_MAX = 8 };

struct filter {
	struct sandbox_program program;
	struct sandbox_blank blanks[BLANKS_MAX];
	unsigned blank_count;
	char users[256];
};

static uint32_t arch;
static struct filter filters[PROGRAMS_MAX + 1]; /* the answers come last */
static unsigned filter_count;
static unsigned filter_of[POLICY_KINDS][2];

static const char *const kind_names[POLICY_KINDS] = {"native CPU", "native GPU", "PyTorch CPU", "PyTorch GPU", "host"};

/* Two stand-ins for each word, which occur nowhere else: small numbers are system calls and flags. */
static const uint32_t stand_ins[2][SANDBOX_WORDS] = {
        {[WORD_OWN_PID] = 0x5a3c0f1d,
         [WORD_PARENT_PID] = 0x6b2d1e0c,
         [WORD_EXEC_FD] = 0x7c1e2d0b,
         [WORD_PATH_LOW] = 0x52e4b6d8,
         [WORD_PATH_HIGH] = 0x61f3a5c7},
        {[WORD_OWN_PID] = 0x15c2f0e7,
         [WORD_PARENT_PID] = 0x14d3e1f6,
         [WORD_EXEC_FD] = 0x13e4d2f5,
         [WORD_PATH_LOW] = 0x92f5c3e4,
         [WORD_PATH_HIGH] = 0x11a6b4d3},
};

/* How often each occurs. kill, tgkill and tkill share one comparison, which libseccomp sees to be the same. */
static const unsigned expected[SANDBOX_FILTERS][SANDBOX_WORDS] = {
        [SANDBOX_BOUNDARY] = {[WORD_OWN_PID] = 1, [WORD_EXEC_FD] = 1, [WORD_PATH_LOW] = 1, [WORD_PATH_HIGH] = 1},
        [SANDBOX_ANSWERS] = {[WORD_PARENT_PID] = 1},
};

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fputs("sandbox_generate: ", stderr);
	(void)vfprintf(stderr, format, args);
	(void)fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static void compile(unsigned kind, bool writes_confined, enum sandbox_filter which, const uint32_t *words,
                    struct sandbox_program *program)
{
	uint64_t path = (uint64_t)words[WORD_PATH_HIGH] << 32 | words[WORD_PATH_LOW];
	struct sandbox_seccomp values = {
	        .kind = 1U << kind,
	        .writes_confined = writes_confined,
	        .own_pid = (pid_t)words[WORD_OWN_PID],
	        .parent_pid = (pid_t)words[WORD_PARENT_PID],
	        .exec_fd = (int)words[WORD_EXEC_FD],
	        .exec_path = (const char *)(uintptr_t)path, // NOLINT(performance-no-int-to-ptr)
	};
	int rc = sandbox_compile(arch, which, &values, program);

	if (rc)
		fail("%s, filter %u: %s", kind_names[kind], which, strerror(-rc));
}

static int word_behind(uint32_t first, uint32_t second)
{
	for (int word = 0; word < SANDBOX_WORDS; word++)
		if (first == stand_ins[0][word] && second == stand_ins[1][word])
			return word;
	return -1;
}

static bool is_stand_in(uint32_t constant)
{
	for (unsigned word = 0; word < SANDBOX_WORDS; word++)
		if (constant == stand_ins[0][word] || constant == stand_ins[1][word])
			return true;
	return false;
}

/* The word that the instruction waits for, or -1 when it is complete. */
static int blank_in(const struct sock_filter *first, const struct sock_filter *second)
{
	bool alike = first->code == second->code && first->jt == second->jt && first->jf == second->jf;
	int word = word_behind(first->k, second->k);

	if (!alike || (word < 0 && (first->k != second->k || is_stand_in(first->k))))
		fail("a program depends on its run-time values in more than constants");
	if (word >= 0 && first->code != (BPF_JMP | BPF_JEQ | BPF_K))
		fail("a run-time value is not just compared");
	return word;
}

static void find_blanks(struct filter *filter, const struct sandbox_program *second, enum sandbox_filter which)
{
	const struct sandbox_program *first = &filter->program;
	unsigned found[SANDBOX_WORDS] = {0};

	if (first->length != second->length)
		fail("a program's length depends on its run-time values");
	for (unsigned i = 0; i < first->length; i++) {
		int word = blank_in(&first->code[i], &second->code[i]);
		if (word < 0)
			continue;
		if (filter->blank_count == BLANKS_MAX)
			fail("too many run-time values");
		filter->blanks[filter->blank_count++] = (struct sandbox_blank){(uint16_t)i, (uint16_t)word};
		filter->program.code[i].k = 0;
		found[word]++;
	}
	for (unsigned word = 0; word < SANDBOX_WORDS; word++)
		if (found[word] != expected[which][word])
			fail("word %u occurs %u times in filter %u, not %u", word, found[word], which,
			     expected[which][word]);
}

static bool same(const struct filter *a, const struct filter *b)
{
	return a->program.length == b->program.length && memcmp(a->blanks, b->blanks, sizeof a->blanks) == 0 &&
	       memcmp(a->program.code, b->program.code, a->program.length * sizeof a->program.code[0]) == 0;
}

/* Makes one filter, or finds the equal one; returns its index. */
static unsigned make(unsigned kind, bool writes_confined, enum sandbox_filter which)
{
	static struct sandbox_program second;
	struct filter *filter = &filters[filter_count];
	unsigned index = 0;

	compile(kind, writes_confined, which, stand_ins[0], &filter->program);
	compile(kind, writes_confined, which, stand_ins[1], &second);
	find_blanks(filter, &second, which);
	while (!same(&filters[index], filter))
		index++;
	if (index == filter_count)
		filter_count++;
	else
		memset(filter, 0, sizeof *filter);
	return index;
}

static void note_user(struct filter *filter, const char *name, const char *condition)
{
	size_t length = strlen(filter->users);

	(void)snprintf(filter->users + length, sizeof filter->users - length, "%s%s%s", length ? ", " : "", name,
	               condition);
}

static void make_all(void)
{
	for (unsigned kind = 0; kind < POLICY_KINDS; kind++)
		for (unsigned landlock = 0; landlock < 2; landlock++) {
			unsigned index = make(kind, landlock, SANDBOX_BOUNDARY);
			filter_of[kind][landlock] = index;
			note_user(&filters[index], kind_names[kind], landlock ? " with Landlock" : " without Landlock");
		}
	if (make(0, false, SANDBOX_ANSWERS) != filter_count - 1)
		fail("the second filter is like another");
	note_user(&filters[filter_count - 1], "all", ", the second filter");
}

static void write_code(void)
{
	puts("static const struct sock_filter filter_code[] = {");
	for (unsigned i = 0; i < filter_count; i++) {
		printf("\t/* %s: %u instructions */\n", filters[i].users, filters[i].program.length);
		for (unsigned j = 0; j < filters[i].program.length; j++) {
			const struct sock_filter *code = &filters[i].program.code[j];
			printf("\t{0x%02x, %u, %u, 0x%08x},\n", code->code, code->jt, code->jf, code->k);
		}
	}
	puts("};\n");
}

static void write_blanks(void)
{
	puts("static const struct sandbox_blank filter_blanks[] = {");
	for (unsigned i = 0; i < filter_count; i++)
		for (unsigned j = 0; j < filters[i].blank_count; j++)
			printf("\t{%u, %u},\n", filters[i].blanks[j].at, filters[i].blanks[j].word);
	puts("};\n");
}

static void write_extents(void)
{
	unsigned code = 0, blank = 0;

	puts("static const struct sandbox_extent filter_extents[] = {");
	for (unsigned i = 0; i < filter_count; i++) {
		if (i == filter_count - 1)
			printf("};\n\nstatic const struct sandbox_extent filter_answers =");
		printf("\t{%u, %u, %u, %u}%s\n", code, filters[i].program.length, blank, filters[i].blank_count,
		       i == filter_count - 1 ? ";\n" : ",");
		code += filters[i].program.length;
		blank += filters[i].blank_count;
	}
	puts("/* by kind, without and with Landlock */\nstatic const uint8_t filter_of[][2] = {");
	for (unsigned kind = 0; kind < POLICY_KINDS; kind++)
		printf("\t{%u, %u}, /* %s */\n", filter_of[kind][0], filter_of[kind][1], kind_names[kind]);
	puts("};");
}

int main(int argc, char *argv[])
{
	if (argc != 2)
		fail("usage: sandbox_generate x86_64|aarch64");
	arch = strcmp(argv[1], "x86_64") == 0    ? SCMP_ARCH_X86_64
	       : strcmp(argv[1], "aarch64") == 0 ? SCMP_ARCH_AARCH64
	                                         : 0;
	if (!arch)
		fail("no policy for %s", argv[1]);
	make_all();
	printf("/* Made by sandbox_generate for %s. */\n#ifndef __%s__\n#error \"filters.h is for another "
	       "architecture\"\n"
	       "#endif\n\n",
	       argv[1], argv[1]);
	write_code();
	write_blanks();
	write_extents();
	return fflush(stdout) || ferror(stdout) ? 1 : 0;
}

/* The programs that the build made: filled in, they are what libseccomp would have made with the values of this run, or
 * decide the same; and what they decide is what the policy table says, by an interpreter of BPF and one of the table.
 */
#include "sandbox_compile.h"
#include "tap.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifdef __x86_64__
#define NATIVE       SCMP_ARCH_X86_64
#define NATIVE_NAME  "x86_64"
#define FOREIGN      SCMP_ARCH_AARCH64
#define FOREIGN_NAME "aarch64"
#else
#define NATIVE       SCMP_ARCH_AARCH64
#define NATIVE_NAME  "aarch64"
#define FOREIGN      SCMP_ARCH_X86_64
#define FOREIGN_NAME "x86_64"
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- interpreters ---- */

enum { BROKEN = 1 /* no action */ };

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word = 0;

	if (offset % 4 == 0 && offset + 4 <= sizeof *data)
		memcpy(&word, (const char *)data + offset, sizeof word);
	return word;
}

static bool jumps(unsigned code, uint32_t accumulator, uint32_t constant)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return accumulator == constant;
	case BPF_JGT:
		return accumulator > constant;
	case BPF_JGE:
		return accumulator >= constant;
	default:
		return (accumulator & constant) != 0;
	}
}

/* What the program returns; BROKEN for what a kernel would not load, or libseccomp was not seen to make. */
static uint32_t interpret(const struct sandbox_program *program, const struct seccomp_data *data)
{
	uint32_t accumulator = 0;

	for (unsigned at = 0; at < program->length; at++) {
		const struct sock_filter *code = &program->code[at];
		switch (code->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			accumulator = load(data, code->k);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			accumulator &= code->k;
			break;
		case BPF_JMP | BPF_JA:
			at += code->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
		case BPF_JMP | BPF_JGT | BPF_K:
		case BPF_JMP | BPF_JGE | BPF_K:
		case BPF_JMP | BPF_JSET | BPF_K:
			at += jumps(code->code, accumulator, code->k) ? code->jt : code->jf;
			break;
		case BPF_RET | BPF_K:
			return code->k;
		default:
			return BROKEN;
		}
	}
	return BROKEN;
}

/* As the kernel combines filters: the strictest, and among equals the newest. */
static uint32_t decision(const struct sandbox_program filters[SANDBOX_FILTERS], const struct seccomp_data *data)
{
	uint32_t old = interpret(&filters[SANDBOX_BOUNDARY], data), new = interpret(&filters[SANDBOX_ANSWERS], data);

	if (old == BROKEN || new == BROKEN)
		return BROKEN;
	return (old & SECCOMP_RET_ACTION_FULL) < (new &SECCOMP_RET_ACTION_FULL) ? old : new;
}

static uint64_t value_of(const struct policy_test *test, unsigned i, const struct sandbox_seccomp *values)
{
	switch (test->source) {
	case POLICY_OWN_PID:
		return (uint64_t)values->own_pid;
	case POLICY_PARENT_PID:
		return (uint64_t)values->parent_pid;
	case POLICY_EXEC_FD:
		return (uint64_t)values->exec_fd;
	case POLICY_EXEC_PATH:
		return (uint64_t)(uintptr_t)values->exec_path;
	case POLICY_FIXED:
		break;
	}
	return test->values[i];
}

static bool holds(const struct policy_test *test, const uint64_t *args, const struct sandbox_seccomp *values)
{
	uint64_t seen = args[test->argument] & test->mask;

	if (test->source == POLICY_EXEC_PATH && !values->exec_path)
		return true;
	if (!test->count)
		return seen == (value_of(test, 0, values) & test->mask);
	for (unsigned i = 0; i < test->count; i++)
		if (seen == (value_of(test, i, values) & test->mask))
			return false;
	return true;
}

static bool all_hold(const struct policy_call *call, const uint64_t *args, const struct sandbox_seccomp *values)
{
	for (unsigned i = 0; i < POLICY_TESTS_MAX; i++)
		if (call->tests[i].mask && !holds(&call->tests[i], args, values))
			return false;
	return true;
}

struct entry { /* one line of the table, with its number */
	const struct policy_group *group;
	const struct policy_call *call;
	int number;
};

static struct entry entries[2048];
static size_t entry_count;

static int number_of(uint32_t arch, const char *name)
{
	struct policy_call call = {.name = name};
	return sandbox_compile_number(arch, &call);
}

static int read_table(uint32_t arch)
{
	int unknown = 0;

	entry_count = 0;
	for (size_t i = 0; i < sandbox_policy_count; i++)
		for (size_t j = 0; j < sandbox_policy[i].count && entry_count < COUNT(entries); j++) {
			const struct policy_call *call = &sandbox_policy[i].calls[j];
			int number = sandbox_compile_number(arch, call);
			unknown += number == -1;
			if (number >= 0)
				entries[entry_count++] = (struct entry){&sandbox_policy[i], call, number};
		}
	return unknown;
}

static bool applies(const struct policy_group *group, const struct sandbox_seccomp *values)
{
	return group->action == POLICY_ALLOW && (group->kinds & values->kind) &&
	       (group->landlock & (values->writes_confined ? POLICY_WITH_LANDLOCK : POLICY_WITHOUT_LANDLOCK));
}

/* What the table says, without any filter. */
static uint32_t verdict(uint32_t arch, const struct sandbox_seccomp *values, const struct seccomp_data *data)
{
	bool known = false, allowed = false;

	if (data->arch != arch || (uint32_t)data->nr >= 0x40000000)
		return SECCOMP_RET_ERRNO | EPERM;
	for (size_t i = 0; i < entry_count; i++) {
		const struct entry *entry = &entries[i];
		if (entry->number != data->nr || entry->group->action == POLICY_ENOSYS)
			continue;
		known = true;
		allowed |= applies(entry->group, values) && all_hold(entry->call, (const uint64_t *)data->args, values);
	}
	if (!known)
		return SECCOMP_RET_ERRNO | ENOSYS;
	return allowed ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EPERM;
}

/* ---- samples ---- */

struct sampler {
	uint32_t arch;
	const struct sandbox_seccomp *values;
	const struct sandbox_program *filters;
	const struct sandbox_program *others; /* to compare with, instead of the table */
	long tried, wrong;
};

static void try(struct sampler *sampler, const struct seccomp_data *data)
{
	uint32_t want =
	        sampler->others ? decision(sampler->others, data) : verdict(sampler->arch, sampler->values, data);
	uint32_t got = decision(sampler->filters, data);

	sampler->tried++;
	if (got == want)
		return;
	if (sampler->wrong++ < 3)
		printf("# call %d (%llx, %llx, %llx): 0x%x, not 0x%x\n", data->nr, (unsigned long long)data->args[0],
		       (unsigned long long)data->args[1], (unsigned long long)data->args[2], got, want);
}

static void try_around(struct sampler *sampler, struct seccomp_data data)
{
	try(sampler, &data);
	for (unsigned argument = 0; argument < 5; argument++)
		for (unsigned bit = 0; bit < 64; bit++) {
			struct seccomp_data other = data;
			other.args[argument] ^= UINT64_C(1) << bit;
			try(sampler, &other);
		}
}

/* Arguments that satisfy the line, and all that are one bit off. */
static void try_entry(struct sampler *sampler, const struct entry *entry)
{
	struct seccomp_data data = {.nr = entry->number, .arch = sampler->arch};

	for (unsigned value = 0; value < POLICY_VALUES_MAX; value++) {
		for (unsigned i = 0; i < POLICY_TESTS_MAX; i++) {
			const struct policy_test *test = &entry->call->tests[i];
			if (test->mask)
				data.args[test->argument] = value_of(test, value, sampler->values) & test->mask;
		}
		if (value <= entry->call->tests[0].count)
			try_around(sampler, data);
	}
}

static void try_all(struct sampler *sampler)
{
	struct seccomp_data data = {.arch = sampler->arch};

	for (data.nr = -2; data.nr < 600; data.nr++)
		try(sampler, &data);
	for (data.nr = 0x40000000; data.nr < 0x40000200; data.nr++)
		try(sampler, &data);
	for (size_t i = 0; i < entry_count; i++)
		try_entry(sampler, &entries[i]);
	data.nr = number_of(sampler->arch, "ioctl");
	for (data.args[1] = 0; data.args[1] < 0x10000; data.args[1]++)
		try(sampler, &data);
	data.args[1] = 0;
	for (data.nr = 0, data.arch = 0x40000003; data.nr < 450; data.nr++) /* i386 */
		try(sampler, &data);
}

/* ---- tests ---- */

static const struct {
	pid_t own, parent;
	int exec_fd;
	uint64_t path;
} runs[] = {
        {7, 1, 64, 0x7fffffffefff},                        /* a container */
        {31337, 31336, 255, 0x7fffffffefff},               /* a host */
        {4194303, 4194302, 1023, 0xffffffffffffff - 4096}, /* the largest pids; five-level page tables */
        {2, 1, 3, 0xffffffffffff},                         /* the smallest; aarch64 */
        {15, 38, 200, 0}, /* pids that are constants of the policy too; no such address */
        {65536, 1 << 20, 1 << 20, UINT64_C(0x7fffffff00000000) >> 16}, /* words with zeroes */
};

static struct sandbox_seccomp values_of(size_t run, unsigned kind, bool landlock)
{
	return (struct sandbox_seccomp){
	        .kind = 1U << kind,
	        .writes_confined = landlock,
	        .own_pid = runs[run].own,
	        .parent_pid = runs[run].parent,
	        .exec_fd = runs[run].exec_fd,
	        .exec_path = (const char *)(uintptr_t)runs[run].path, // NOLINT(performance-no-int-to-ptr)
	};
}

static bool fill_both(const struct sandbox_seccomp *values, struct sandbox_program filters[SANDBOX_FILTERS])
{
	bool fits = true;

	for (unsigned which = 0; which < SANDBOX_FILTERS; which++) {
		sandbox_seccomp_fill((enum sandbox_filter)which, values, &filters[which]);
		fits &= filters[which].length > 50 && filters[which].length <= SANDBOX_PROGRAM_MAX;
	}
	return fits;
}

static int compile_both(uint32_t arch, const struct sandbox_seccomp *values,
                        struct sandbox_program filters[SANDBOX_FILTERS])
{
	int rc = sandbox_compile(arch, SANDBOX_BOUNDARY, values, &filters[SANDBOX_BOUNDARY]);
	return rc ? rc : sandbox_compile(arch, SANDBOX_ANSWERS, values, &filters[SANDBOX_ANSWERS]);
}

static bool same(const struct sandbox_program *a, const struct sandbox_program *b)
{
	return a->length == b->length && memcmp(a->code, b->code, a->length * sizeof a->code[0]) == 0;
}

static struct sandbox_program made[SANDBOX_FILTERS], direct[SANDBOX_FILTERS];
static int identical, alike;

static void test_against_libseccomp(size_t run, unsigned kind, bool landlock)
{
	struct sandbox_seccomp values = values_of(run, kind, landlock);
	struct sampler sampler = {.arch = NATIVE, .values = &values, .filters = made, .others = direct};
	bool fits = fill_both(&values, made);

	if (!ok(fits && compile_both(NATIVE, &values, direct) == 0, "run %zu, kind %u, Landlock %d: within bounds", run,
	        kind, landlock))
		return;
	bool is_same = same(&made[0], &direct[0]) && same(&made[1], &direct[1]);
	if (!is_same)
		try_all(&sampler);
	ok(sampler.wrong == 0, "and libseccomp's own, made now, %s", is_same ? "is the same" : "decides the same");
	identical += is_same;
	alike += !is_same;
}

static void test_against_table(uint32_t arch, const char *name, size_t run, unsigned kind, bool landlock)
{
	struct sandbox_seccomp values = values_of(run, kind, landlock);
	struct sampler sampler = {.arch = arch, .values = &values, .filters = made};

	if (arch == NATIVE)
		(void)fill_both(&values, made);
	else if (compile_both(arch, &values, made))
		memset(made, 0, sizeof made);
	try_all(&sampler);
	ok(sampler.wrong == 0 && sampler.tried > 50000,
	   "%s, run %zu, kind %u, Landlock %d: as the table says (%ld calls)", name, run, kind, landlock,
	   sampler.tried);
}

static bool is_value(const struct sandbox_seccomp *values, uint32_t word)
{
	uint64_t path = (uint64_t)(uintptr_t)values->exec_path;

	return word == (uint32_t)values->own_pid || word == (uint32_t)values->parent_pid ||
	       word == (uint32_t)values->exec_fd || word == (uint32_t)path || word == (uint32_t)(path >> 32);
}

/* Every blank is filled, and nothing else differs between two runs. */
static void test_blanks(unsigned kind, bool landlock)
{
	struct sandbox_seccomp a = values_of(2, kind, landlock), b = values_of(5, kind, landlock);
	int filled = 0, odd = 0;

	(void)fill_both(&a, made);
	(void)fill_both(&b, direct);
	for (unsigned which = 0; which < SANDBOX_FILTERS; which++)
		for (unsigned i = 0; i < made[which].length; i++) {
			const struct sock_filter *one = &made[which].code[i], *other = &direct[which].code[i];
			if (memcmp(one, other, sizeof *one) == 0)
				continue;
			filled++;
			odd += one->code != other->code || one->jt != other->jt || one->jf != other->jf ||
			       !is_value(&a, one->k) || !is_value(&b, other->k);
		}
	ok(filled == 5 && odd == 0, "kind %u, Landlock %d: runs differ in five constants, all of them values", kind,
	   landlock);
}

/* All of what a command prints; the caller frees it. */
static char *output_of(const char *command)
{
	size_t size = 1 << 20, length;
	char *text = calloc(1, size);
	FILE *pipe = popen(command, "r"); // NOLINT(cert-env33-c): the generator, by a fixed path

	if (!pipe || !text)
		return text;
	length = fread(text, 1, size - 1, pipe);
	if (pclose(pipe) || length == size - 1)
		text[0] = '\0';
	return text;
}

/* From the top of the tree, as tests/run.sh does. */
static void test_generator(void)
{
	if (access("build/sandbox/generate", X_OK) != 0) {
		ok(true, "the generator # SKIP not in build/sandbox below this folder");
		return;
	}
	char *once = output_of("build/sandbox/generate " NATIVE_NAME),
	     *again = output_of("build/sandbox/generate " NATIVE_NAME);
	char *built = output_of("cat build/sandbox/filters.h"),
	     *foreign = output_of("build/sandbox/generate " FOREIGN_NAME);
	ok(*once && strcmp(once, again) == 0, "the generator writes the same twice");
	ok(strcmp(once, built) == 0, "which is what was built in");
	ok(*foreign && strcmp(foreign, once) != 0, "it writes for %s too", FOREIGN_NAME);
	free(once), free(again), free(built), free(foreign);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	is_int(read_table(FOREIGN), 0, "libseccomp knows every name of the table on " FOREIGN_NAME);
	for (unsigned i = 0; i < 2 * POLICY_KINDS; i++)
		test_against_table(FOREIGN, FOREIGN_NAME, i % COUNT(runs), i / 2, i % 2);
	is_int(read_table(NATIVE), 0, "libseccomp knows every name of the table on " NATIVE_NAME);
	for (unsigned i = 0; i < 2 * POLICY_KINDS; i++) {
		for (size_t run = 0; run < COUNT(runs); run++)
			test_against_libseccomp(run, i / 2, i % 2);
		test_against_table(NATIVE, NATIVE_NAME, i % COUNT(runs), i / 2, i % 2);
		test_blanks(i / 2, i % 2);
	}
	printf("# %d pairs of filters are libseccomp's own to the byte, %d decide the same\n", identical, alike);
	test_generator();
	return done();
}

#include "sandbox_compile.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

enum { NUMBERS_MAX = 512, X32_BIT = 0x40000000 };

struct builder {
	uint32_t arch;
	const struct sandbox_seccomp *values;
	scmp_filter_ctx context;
	int number; /* as libseccomp wants it: of the architecture that this program runs on */
};

int sandbox_compile_number(uint32_t arch, const struct policy_call *call)
{
	if (call->x86_64)
		return arch == SCMP_ARCH_X86_64 ? call->x86_64 : -2;
	return seccomp_syscall_resolve_name_arch(arch, call->name);
}

static uint64_t value_of(const struct policy_test *test, const struct sandbox_seccomp *values)
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
	return test->values[0];
}

/* ---- the boundary ---- */

static int add(const struct builder *builder, unsigned count, const struct scmp_arg_cmp *tests)
{
	return seccomp_rule_add_exact_array(builder->context, SCMP_ACT_ALLOW, builder->number, count, tests);
}

static bool none_begins_with(const struct policy_test *test, uint64_t mask, uint64_t prefix)
{
	for (unsigned i = 0; i < test->count; i++)
		if ((test->values[i] & mask) == prefix)
			return false;
	return true;
}

/* A rule of libseccomp says "equal through a mask", never "unequal", and has no order among rules. So "none of these
 * values" becomes the disjoint prefixes that no value begins with, as one cuts an address out of a network's block. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as an int has bits
static int add_none_of(const struct builder *builder, const struct policy_test *test, uint64_t mask, uint64_t prefix)
{
	struct scmp_arg_cmp rule = {
	        .arg = test->argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = prefix};
	uint64_t left = test->mask & ~mask;
	int rc;

	if (none_begins_with(test, mask, prefix))
		return add(builder, 1, &rule);
	if (!left)
		return 0;
	uint64_t bit = 1ULL << (63 - __builtin_clzll(left));
	rc = add_none_of(builder, test, mask | bit, prefix);
	return rc ? rc : add_none_of(builder, test, mask | bit, prefix | bit);
}

static bool is_left_to_answers(const struct policy_call *call)
{
	return call->tests[0].count && call->tests[0].source != POLICY_FIXED;
}

static int add_call(const struct builder *builder, const struct policy_call *call)
{
	struct scmp_arg_cmp tests[POLICY_TESTS_MAX];
	unsigned count = 0;

	if (is_left_to_answers(call))
		return add(builder, 0, NULL);
	if (call->tests[0].count)
		return add_none_of(builder, &call->tests[0], 0, 0);
	for (unsigned i = 0; i < POLICY_TESTS_MAX && call->tests[i].mask; i++) {
		const struct policy_test *test = &call->tests[i];
		if (test->source == POLICY_EXEC_PATH && !builder->values->exec_path)
			continue;
		tests[count++] = (struct scmp_arg_cmp){.arg = test->argument,
		                                       .op = SCMP_CMP_MASKED_EQ,
		                                       .datum_a = test->mask,
		                                       .datum_b = value_of(test, builder->values) & test->mask};
	}
	return add(builder, count, tests);
}

/* libseccomp takes the number that a call has here and translates it to the filter's architecture by its name. */
static int number_here(const struct builder *builder, const struct policy_call *call)
{
	return seccomp_arch_native() == builder->arch ? sandbox_compile_number(builder->arch, call)
	                                              : seccomp_syscall_resolve_name(call->name);
}

static int add_group(struct builder *builder, const struct policy_group *group)
{
	unsigned landlock = builder->values->writes_confined ? POLICY_WITH_LANDLOCK : POLICY_WITHOUT_LANDLOCK;
	int rc = 0;

	if (!(group->kinds & builder->values->kind) || !(group->landlock & landlock) || group->action != POLICY_ALLOW)
		return 0;
	for (size_t i = 0; rc == 0 && i < group->count; i++) {
		if (sandbox_compile_number(builder->arch, &group->calls[i]) < 0)
			continue;
		builder->number = number_here(builder, &group->calls[i]);
		rc = add_call(builder, &group->calls[i]);
	}
	return rc;
}

static int aim_at(scmp_filter_ctx context, uint32_t arch)
{
	int rc = arch == seccomp_arch_native() ? 0 : seccomp_arch_add(context, arch);

	return rc || arch == seccomp_arch_native() ? rc : seccomp_arch_remove(context, SCMP_ARCH_NATIVE);
}

/* EPERM to 32-bit and x32 entry too: libseccomp's default there kills the thread, which would leave a worker that
 * hangs. */
static int create(struct builder *builder)
{
	int rc;

	builder->context = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!builder->context)
		return -ENOMEM;
	rc = aim_at(builder->context, builder->arch);
	if (rc == 0)
		rc = seccomp_attr_set(builder->context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
	if (rc == 0) /* a binary tree by number (from 2.5) */
		rc = seccomp_attr_set(builder->context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return rc;
}

static int build(struct builder *builder)
{
	/* for the second filter, which then refuses it */
	struct scmp_arg_cmp load = {.op = SCMP_CMP_MASKED_EQ, .datum_a = UINT32_MAX, .datum_b = PR_SET_SECCOMP};
	int rc = create(builder);

	for (size_t i = 0; rc == 0 && i < sandbox_policy_count; i++)
		rc = add_group(builder, &sandbox_policy[i]);
	builder->number = SCMP_SYS(prctl);
	return rc ? rc : add(builder, 1, &load);
}

/* The size is asked for first: libseccomp 2.6.0 copies as many bytes as there is room for, past its program's end. */
static int take(scmp_filter_ctx context, struct sandbox_program *program)
{
	size_t size = 0;
	int rc = seccomp_export_bpf_mem(context, NULL, &size);

	if (rc || size > sizeof program->code)
		return rc ? rc : -E2BIG;
	program->length = (unsigned short)(size / sizeof program->code[0]);
	return seccomp_export_bpf_mem(context, program->code, &size);
}

static int boundary(uint32_t arch, const struct sandbox_seccomp *values, struct sandbox_program *program)
{
	struct builder builder = {.arch = arch, .values = values};
	int rc = build(&builder);

	if (rc == 0)
		rc = take(builder.context, program);
	if (builder.context)
		seccomp_release(builder.context);
	return rc;
}

/* ---- the answers ---- */

static void say(struct sandbox_program *program, struct sock_filter instruction)
{
	if (program->length < SANDBOX_PROGRAM_MAX)
		program->code[program->length++] = instruction;
}

#define SAY(program, ...) say((program), (struct sock_filter)__VA_ARGS__)

/* With the number loaded: the call is refused when the argument's low half is `value`; both architectures are
 * little-endian. */
static void refuse(struct sandbox_program *program, int number, unsigned argument, uint32_t value)
{
	SAY(program, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4));
	SAY(program, BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	                      (uint32_t)(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t))));
	SAY(program, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
	SAY(program, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
	SAY(program, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

/* Marks what the table knows, and says what it leaves to this filter. */
static int read_group(uint32_t arch, const struct policy_group *group, const struct sandbox_seccomp *values,
                      bool *known, struct sandbox_program *program)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct policy_call *call = &group->calls[i];
		int number = sandbox_compile_number(arch, call);

		if (number == -1 || number >= NUMBERS_MAX)
			return -EINVAL;
		if (number < 0 || group->action == POLICY_ENOSYS)
			continue;
		known[number] = true;
		if (is_left_to_answers(call))
			refuse(program, number, call->tests[0].argument, (uint32_t)value_of(&call->tests[0], values));
	}
	return 0;
}

static void head(uint32_t arch, struct sandbox_program *program)
{
	SAY(program, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
	SAY(program, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0));
	/* the first filter's to refuse; so is x32, next */
	SAY(program, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	SAY(program, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
	SAY(program, BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
	SAY(program, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

static uint32_t answer_of(bool is_known)
{
	return is_known ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOSYS;
}

/* Runs of known and unknown numbers, from the highest down: each step asks "from here on?". Jumps and loads of the
 * number only, so that the kernel (from 5.11) still sees that the answer for a number is constant and caches it. */
static int answers(uint32_t arch, const struct sandbox_seccomp *values, struct sandbox_program *program)
{
	const struct policy_call prctl_call = {.name = "prctl"};
	bool known[NUMBERS_MAX + 1] = {false}; /* what lies beyond is not known */

	program->length = 0;
	head(arch, program);
	refuse(program, sandbox_compile_number(arch, &prctl_call), 0, PR_SET_SECCOMP);
	for (size_t i = 0; i < sandbox_policy_count; i++) {
		int rc = read_group(arch, &sandbox_policy[i], values, known, program);
		if (rc)
			return rc;
	}
	for (unsigned i = NUMBERS_MAX; i > 0; i--) {
		if (known[i] == known[i - 1])
			continue;
		SAY(program, BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, i, 0, 1));
		SAY(program, BPF_STMT(BPF_RET | BPF_K, answer_of(known[i])));
	}
	SAY(program, BPF_STMT(BPF_RET | BPF_K, answer_of(known[0])));
	return program->length < SANDBOX_PROGRAM_MAX ? 0 : -E2BIG;
}

int sandbox_compile(uint32_t arch, enum sandbox_filter which, const struct sandbox_seccomp *values,
                    struct sandbox_program *program)
{
	return which == SANDBOX_BOUNDARY ? boundary(arch, values, program) : answers(arch, values, program);
}

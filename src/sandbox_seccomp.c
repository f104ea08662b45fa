/* From the policy table to two seccomp filters.
 *
 * The first is the boundary: libseccomp's, an allow-list, everything else EPERM. The second, loaded after it, takes
 * nothing away but two answers: numbers that the table does not know say ENOSYS instead, so that a library newer than
 * the table falls back as on an older kernel; and no further filter is accepted. libseccomp has one default, and
 * listing the 200 refused calls in it cost 3 ms of each start (its generator is quadratic), more than the rest of a
 * native CPU check. Of two filters that both refuse, the kernel takes the newer one's errno. */
#include "sandbox_seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp policy for this architecture"
#endif

enum { NUMBERS_MAX = 512, ANSWERS_MAX = 2 * NUMBERS_MAX + 16 };

struct builder {
	scmp_filter_ctx context;
	const struct sandbox_seccomp *values;
	int number;
};

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

static int add(const struct builder *builder, unsigned count, const struct scmp_arg_cmp *tests)
{
	return seccomp_rule_add_exact_array(builder->context, SCMP_ACT_ALLOW, builder->number, count, tests);
}

static bool none_begins_with(const uint64_t *values, unsigned count, uint64_t mask, uint64_t prefix)
{
	for (unsigned i = 0; i < count; i++)
		if ((values[i] & mask) == prefix)
			return false;
	return true;
}

/* A rule of libseccomp says "equal through a mask", never "unequal", and has no order among rules. So "none of these
 * values" becomes the disjoint prefixes that no value begins with, as one cuts an address out of a network's block. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as an int has bits
static int add_none_of(const struct builder *builder, const struct policy_test *test, const uint64_t *values,
                       uint64_t mask, uint64_t prefix)
{
	struct scmp_arg_cmp rule = {
	        .arg = test->argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = prefix};
	uint64_t left = test->mask & ~mask;
	int rc;

	if (none_begins_with(values, test->count, mask, prefix))
		return add(builder, 1, &rule);
	if (!left)
		return 0;
	uint64_t bit = 1ULL << (63 - __builtin_clzll(left));
	rc = add_none_of(builder, test, values, mask | bit, prefix);
	return rc ? rc : add_none_of(builder, test, values, mask | bit, prefix | bit);
}

static int add_call(const struct builder *builder, const struct policy_call *call)
{
	struct scmp_arg_cmp tests[POLICY_TESTS_MAX];
	unsigned count = 0;

	if (call->tests[0].count) {
		uint64_t one[1] = {value_of(&call->tests[0], builder->values)};
		return add_none_of(builder, &call->tests[0], call->tests[0].count == 1 ? one : call->tests[0].values, 0,
		                   0);
	}
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

static int add_group(struct builder *builder, const struct policy_group *group)
{
	unsigned landlock = builder->values->writes_confined ? POLICY_WITH_LANDLOCK : POLICY_WITHOUT_LANDLOCK;

	if (!(group->kinds & builder->values->kind) || !(group->landlock & landlock) || group->action != POLICY_ALLOW)
		return 0;
	for (size_t i = 0; i < group->count; i++) {
		builder->number = group->calls[i].number;
		int rc = builder->number < 0 ? 0 : add_call(builder, &group->calls[i]);
		if (rc)
			return rc;
	}
	return 0;
}

/* EPERM to 32-bit and x32 entry too: libseccomp's default there kills the thread, which would leave a worker that
 * hangs. */
static int create(scmp_filter_ctx *context)
{
	int rc;

	*context = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!*context)
		return -ENOMEM;
	rc = seccomp_attr_set(*context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
	if (rc == 0) /* the kernel's errno, where libseccomp would say ECANCELED (from 2.5) */
		rc = seccomp_attr_set(*context, SCMP_FLTATR_API_SYSRAWRC, 1);
	if (rc == 0) /* a binary tree by number (from 2.5) */
		rc = seccomp_attr_set(*context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return rc;
}

static int build(const struct sandbox_seccomp *values, scmp_filter_ctx *context)
{
	struct builder builder = {.values = values, .number = SCMP_SYS(prctl)};
	/* for the second filter, which then refuses it */
	struct scmp_arg_cmp load = {.op = SCMP_CMP_MASKED_EQ, .datum_a = UINT32_MAX, .datum_b = PR_SET_SECCOMP};
	int rc = create(context);

	builder.context = *context;
	for (size_t i = 0; rc == 0 && i < sandbox_policy_count; i++)
		rc = add_group(&builder, &sandbox_policy[i]);
	builder.number = SCMP_SYS(prctl);
	return rc ? rc : add(&builder, 1, &load);
}

static void mark_known(bool *known)
{
	for (size_t i = 0; i < sandbox_policy_count; i++) {
		const struct policy_group *group = &sandbox_policy[i];
		for (size_t j = 0; group->action != POLICY_ENOSYS && j < group->count; j++)
			if (group->calls[j].number >= 0 && group->calls[j].number < NUMBERS_MAX)
				known[group->calls[j].number] = true;
	}
}

static uint32_t answer_of(bool is_known)
{
	return is_known ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOSYS;
}

/* Runs of known and unknown numbers, from the highest down: each step asks "from here on?". Jumps and loads of the
 * number only, so that the kernel (from 5.11) still sees that the answer for a number is constant and caches it. */
static unsigned short answers(struct sock_filter *program)
{
	bool known[NUMBERS_MAX + 1] = {false}; /* what lies beyond is not known */
	const struct sock_filter head[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), /* the first filter's to refuse; so is x32, next */
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SCMP_SYS(prctl), 0, 4),
	        /* the low half: both architectures are little-endian */
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	unsigned short length = sizeof head / sizeof head[0];

	mark_known(known);
	memcpy(program, head, sizeof head);
	for (unsigned i = NUMBERS_MAX; i > 0; i--) {
		if (known[i] == known[i - 1])
			continue;
		program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, i, 0, 1);
		program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer_of(known[i]));
	}
	program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer_of(known[0]));
	return length;
}

static int load_answers(void)
{
	struct sock_filter program[ANSWERS_MAX];
	struct sock_fprog filter = {.len = answers(program), .filter = program};

	/* prctl, not seccomp(2): gVisor and kernels with an outer filter take this way as well as the other */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) ? -errno : 0;
}

int sandbox_seccomp_load(const struct sandbox_seccomp *values, const char **step)
{
	scmp_filter_ctx context;
	int rc = build(values, &context);

	*step = "seccomp filter";
	if (rc == 0) {
		*step = "seccomp";
		rc = seccomp_load(context);
	}
	if (context)
		seccomp_release(context);
	return rc ? rc : load_answers();
}

int sandbox_seccomp_export(const struct sandbox_seccomp *values, int fd)
{
	scmp_filter_ctx context;
	int rc = build(values, &context);

	if (rc == 0)
		rc = seccomp_export_bpf(context, fd);
	if (context)
		seccomp_release(context);
	return rc;
}

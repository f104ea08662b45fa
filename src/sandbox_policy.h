/* What a worker may ask of the kernel: the system calls, as constant data with a reason for each group. Read by the
 * generator of the filters (sandbox_compile.c), which make runs, by the tests, and by the printer of the table in
 * SECURITY.md; the supervisor carries only what was made of it. */
#ifndef KD_SANDBOX_POLICY_H
#define KD_SANDBOX_POLICY_H

#include <stddef.h>
#include <stdint.h>

/* The worker kinds, as bits of policy_group.kinds. */
enum {
	POLICY_NATIVE_CPU = 1 << 0,
	POLICY_NATIVE_GPU = 1 << 1,
	POLICY_PYTHON_CPU = 1 << 2,
	POLICY_PYTHON_GPU = 1 << 3,
	POLICY_HOST = 1 << 4,
	POLICY_CPU = POLICY_NATIVE_CPU | POLICY_PYTHON_CPU,
	POLICY_HIP = POLICY_NATIVE_GPU | POLICY_PYTHON_GPU, /* may load HIP */
	POLICY_GPU = POLICY_HIP | POLICY_HOST,
	POLICY_MAKES_FILES = POLICY_HIP | POLICY_PYTHON_CPU, /* fails where it cannot make temporary files */
	POLICY_FOREIGN = POLICY_PYTHON_CPU | POLICY_GPU,     /* runs libraries that we do not know */
	POLICY_ALL = POLICY_CPU | POLICY_GPU,
	POLICY_KINDS = 5,
};

/* Whether Landlock already confines writes decides what seccomp has to do about them. */
enum {
	POLICY_WITH_LANDLOCK = 1 << 0,
	POLICY_WITHOUT_LANDLOCK = 1 << 1,
	POLICY_ALWAYS = POLICY_WITH_LANDLOCK | POLICY_WITHOUT_LANDLOCK,
};

enum policy_action {
	POLICY_ALLOW,
	POLICY_EPERM,  /* known, and refused; so is an allowed call whose tests fail, and one allowed to another kind
	                  only */
	POLICY_ENOSYS, /* as every number outside the table; listed only to say why */
};

/* Where the value of a comparison comes from. */
enum policy_value {
	POLICY_FIXED,      /* policy_test.values */
	POLICY_OWN_PID,    /* the worker's pid: it is the same after the exec */
	POLICY_PARENT_PID, /* the supervisor's */
	POLICY_EXEC_FD,    /* sandbox_request.exec_fd */
	POLICY_EXEC_PATH,  /* sandbox_state.exec_path, as an address */
};

enum { POLICY_VALUES_MAX = 8, POLICY_TESTS_MAX = 3 };

/* One argument, seen through `mask`: equal to the value, or (`count` > 0) equal to none of `count` values; a value that
 * is not fixed then is the only one, and 32 bits wide. */
struct policy_test {
	uint64_t mask; /* 0: no test */
	uint64_t values[POLICY_VALUES_MAX];
	enum policy_value source;
	uint8_t argument;
	uint8_t count;
};

/* A call; every test must hold. A test with `count` stands alone. */
struct policy_call {
	const char *name;
	int x86_64; /* its number there, where libseccomp does not know the name; else 0 */
	struct policy_test tests[POLICY_TESTS_MAX];
};

struct policy_group {
	const char *title;
	const char *reason;
	enum policy_action action;
	unsigned kinds, landlock;
	const struct policy_call *calls;
	size_t count;
};

/* The whole table, in the order in which it is best read. */
extern const struct policy_group sandbox_policy[];
extern const size_t sandbox_policy_count;

#endif

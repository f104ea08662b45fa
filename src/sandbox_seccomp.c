/* libseccomp took 1.3 to 4.6 ms of every worker's start to make the same few programs, so that is left to the build;
 * build/sandbox/filters.h holds them, for one architecture. */
#include "sandbox_seccomp.h"

#include "build/sandbox/filters.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef SYS_clone3
#define SYS_clone3 435 /* Linux 5.3, the same number on every architecture */
#endif

static uint32_t word_of(unsigned word, const struct sandbox_seccomp *values)
{
	uint64_t path = (uint64_t)(uintptr_t)values->exec_path;

	switch (word) {
	case WORD_OWN_PID:
		return (uint32_t)values->own_pid;
	case WORD_PARENT_PID:
		return (uint32_t)values->parent_pid;
	case WORD_EXEC_FD:
		return (uint32_t)values->exec_fd;
	case WORD_PATH_HIGH:
		return (uint32_t)(path >> 32);
	default:
		return (uint32_t)path;
	}
}

/* Every blank is the constant of a "jump if equal" (the generator sees to it). */
static void fill(struct sock_filter *instruction, unsigned word, const struct sandbox_seccomp *values)
{
	if (!values->exec_path && (word == WORD_PATH_LOW || word == WORD_PATH_HIGH))
		instruction->jf = instruction->jt; /* no test: on, either way */
	else
		instruction->k = word_of(word, values);
}

static const struct sandbox_extent *extent_of(enum sandbox_filter which, const struct sandbox_seccomp *values)
{
	unsigned kind = (unsigned)__builtin_ctz(values->kind);

	return which == SANDBOX_ANSWERS ? &filter_answers : &filter_extents[filter_of[kind][values->writes_confined]];
}

void sandbox_seccomp_fill(enum sandbox_filter which, const struct sandbox_seccomp *values,
                          struct sandbox_program *program)
{
	const struct sandbox_extent *extent = extent_of(which, values);

	program->length = extent->length;
	memcpy(program->code, &filter_code[extent->code], extent->length * sizeof program->code[0]);
	for (unsigned i = 0; i < extent->blanks; i++) {
		const struct sandbox_blank *blank = &filter_blanks[extent->blank + i];
		fill(&program->code[blank->at], blank->word, values);
	}
}

/* Of two filters that answer with an errno the newest has its way (seccomp(2)): our ENOSYS for clone3 would hide the
 * EPERM of an old container runtime, under which the C library creates no thread (FIELD-NOTES 32). */
static void keep_clone3_refused(struct sandbox_program *program)
{
	static const struct sock_filter FIRST[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	const size_t count = sizeof FIRST / sizeof *FIRST;

	if (program->length + count > sizeof program->code / sizeof *program->code)
		return;
	memmove(program->code + count, program->code, program->length * sizeof program->code[0]);
	memcpy(program->code, FIRST, sizeof FIRST);
	program->length = (unsigned short)(program->length + count);
}

int sandbox_seccomp_load(const struct sandbox_seccomp *values, const char **step)
{
	struct sandbox_program program;
	struct sock_fprog filter = {.filter = program.code};

	*step = "seccomp";
	for (unsigned which = 0; which < SANDBOX_FILTERS; which++) {
		sandbox_seccomp_fill((enum sandbox_filter)which, values, &program);
		if (which == SANDBOX_ANSWERS && values->clone3_refused)
			keep_clone3_refused(&program);
		filter.len = program.length;
		/* prctl, not seccomp(2), which the first filter refuses and some container runtimes do */
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
			return -errno;
	}
	return 0;
}

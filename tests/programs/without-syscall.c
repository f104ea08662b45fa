/* without-syscall NAME[=ERRNO]... -- PROGRAM ARG...: becomes PROGRAM behind a seccomp filter under which each named
 * system call answers with ERRNO (its number; ENOSYS where none is given). For what a kernel or a container runtime may
 * lack or refuse. As root: no_new_privs stays as it is, so that PROGRAM can be tested for setting it. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ANY = -1, FILTER_MAX = 128 };

/* A call, or a call with this value as its first argument. */
static const struct {
	const char *name;
	long number;
	int first_argument;
} CALLS[] = {
        {"seccomp", SYS_seccomp, ANY},
        {"prctl-seccomp", SYS_prctl, PR_SET_SECCOMP},
        {"prctl-no-new-privs", SYS_prctl, PR_SET_NO_NEW_PRIVS},
        {"prctl-pdeathsig", SYS_prctl, PR_SET_PDEATHSIG},
        {"landlock", 444 /* landlock_create_ruleset, the same on every architecture */, ANY},
        {"memfd_create", SYS_memfd_create, ANY},
        {"execveat", SYS_execveat, ANY},
        {"clone3", 435, ANY},
        {"close_range", 436, ANY},
        {"linkat", SYS_linkat, ANY},
        {"renameat2", SYS_renameat2, ANY},
        {"fsync", SYS_fsync, ANY},
        {"getrandom", SYS_getrandom, ANY},
        {"setsid", SYS_setsid, ANY},
};

static struct sock_filter filter[FILTER_MAX];
static unsigned short used;

static void emit(unsigned short code, unsigned int k, unsigned char jt, unsigned char jf)
{
	filter[used++] = (struct sock_filter)BPF_JUMP(code, k, jt, jf);
}

static int refuse(const char *setting)
{
	size_t length = strcspn(setting, "=");
	unsigned int error = setting[length] ? (unsigned int)atoi(setting + length + 1) : ENOSYS;

	for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
		if (strlen(CALLS[i].name) != length || memcmp(CALLS[i].name, setting, length) != 0)
			continue;
		emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
		if (CALLS[i].first_argument == ANY) {
			emit(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)CALLS[i].number, 0, 1);
		} else {
			emit(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)CALLS[i].number, 0, 3);
			emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]), 0, 0);
			emit(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)CALLS[i].first_argument, 0, 1);
		}
		emit(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA), 0, 0);
		return 0;
	}
	fprintf(stderr, "without-syscall: unknown call %s\n", setting);
	return -1;
}

int main(int argc, char *argv[])
{
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (used + 8 > FILTER_MAX || refuse(argv[i]) < 0)
			return 2;
	if (i + 1 >= argc)
		return 2;
	emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	struct sock_fprog program = {used, filter};
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		perror("without-syscall: seccomp");
		return 2;
	}
	(void)execvp(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return 127;
}

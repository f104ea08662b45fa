/* sandbox-attacker KIND [--without-landlock] [--scratch DIR] [--off] -- PROGRAM [ARG]...
 *     starts any dynamic or static program as a worker of KIND would be started: native-cpu, native-gpu, python-cpu,
 *     python-gpu, host. What was put up is told on stderr when SANDBOX_VERBOSE is set.
 * sandbox-attacker --policy
 *     prints the policy table as Markdown.
 *
 * For tests and for strace: the program itself attacks, this only puts it where it would be. */
#include "../src/sandbox.h"
#include "../src/sandbox_policy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

enum { EXEC_FD = 255 };

static const struct {
	const char *name;
	enum worker_kind kind;
	bool gpu;
} kinds[] = {
        {"native-cpu", WORKER_NATIVE, false}, {"native-gpu", WORKER_NATIVE, true}, {"python-cpu", WORKER_PYTHON, false},
        {"python-gpu", WORKER_PYTHON, true},  {"host", WORKER_HOST, true},
};

/* A kernel without Landlock, as an older one or a container's filter shows itself. */
static void hide_landlock(void)
{
	struct sock_filter code[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 444, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof code / sizeof code[0], .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		perror("sandbox-attacker: unable to hide Landlock");
}

static const char *kinds_text(unsigned bits, char *text, size_t size)
{
	static const char *const names[] = {"native CPU", "native GPU", "PyTorch CPU", "PyTorch GPU", "host"};
	size_t length = 0;

	if (bits == POLICY_ALL)
		return "all";
	text[0] = '\0';
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (bits & (1U << i))
			length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "", names[i]);
	return text;
}

static void print_calls(const struct policy_group *group)
{
	const char *last = "";

	for (size_t i = 0; i < group->count; i++) {
		if (strcmp(last, group->calls[i].name) == 0)
			continue;
		printf("%s`%s`%s", *last ? " " : "", group->calls[i].name, group->calls[i].tests[0].mask ? "*" : "");
		last = group->calls[i].name;
	}
}

static int print_policy(void)
{
	static const char *const actions[] = {"allow", "EPERM", "ENOSYS"};
	static const char *const when[] = {"", "with Landlock", "without", "always"};
	char text[128];

	puts("| group | answer | workers | Landlock | calls (* by argument) | reason |\n|---|---|---|---|---|---|");
	for (size_t i = 0; i < sandbox_policy_count; i++) {
		const struct policy_group *group = &sandbox_policy[i];
		printf("| %s | %s | %s | %s | ", group->title, actions[group->action],
		       kinds_text(group->kinds, text, sizeof text), when[group->landlock]);
		print_calls(group);
		printf(" | %s |\n", group->reason);
	}
	return 0;
}

static int find_program(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, EXEC_FD);

	if (high != EXEC_FD)
		return -1;
	(void)close(fd);
	return high;
}

static int become(struct sandbox_request *request, char *argv[])
{
	struct sandbox_state state;
	struct error error = {0};

	request->exec_fd = find_program(argv[0]);
	if (request->exec_fd < 0)
		return perror(argv[0]), 127;
	if (sandbox_enter(request, &state, &error))
		return fprintf(stderr, "sandbox-attacker: %s\n", error.text), 14;
	if (getenv("SANDBOX_VERBOSE"))
		fprintf(stderr, "# no_new_privs %d seccomp %d landlock %d sealed %d failed %s (%d)\n",
		        state.no_new_privs, state.seccomp, state.landlock_abi, state.exec_sealed,
		        state.failed ? state.failed : "-", state.failed_errno);
	int rc = sandbox_exec(request->exec_fd, &state, argv, environ);
	return fprintf(stderr, "sandbox-attacker: %s: %s\n", argv[0], strerror(-rc)), 126;
}

int main(int argc, char *argv[])
{
	struct sandbox_request request = {.mode = SANDBOX_REQUIRE};
	size_t kind = 0;
	int at = 2;

	if (argc == 2 && strcmp(argv[1], "--policy") == 0)
		return print_policy();
	while (argc > 1 && kind < sizeof kinds / sizeof kinds[0] && strcmp(kinds[kind].name, argv[1]) != 0)
		kind++;
	if (argc < 3 || kind == sizeof kinds / sizeof kinds[0])
		return fputs("usage: see the head of sandbox-attacker.c\n", stderr), 2;
	request.kind = kinds[kind].kind;
	request.gpu = kinds[kind].gpu;
	for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
		if (strcmp(argv[at], "--without-landlock") == 0)
			hide_landlock();
		else if (strcmp(argv[at], "--off") == 0)
			request.mode = SANDBOX_OFF;
		else if (strcmp(argv[at], "--scratch") == 0 && at + 1 < argc)
			request.scratch = argv[++at];
	}
	/* a child, so that pids are those of a real run and strace -f sees a fork */
	pid_t child = fork();
	int status = 0;
	if (child == 0)
		_exit(at + 1 < argc ? become(&request, argv + at + 1) : 2);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 1;
	if (WIFSIGNALED(status))
		fprintf(stderr, "sandbox-attacker: killed by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

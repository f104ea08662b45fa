/* kd-preflight: options, workload, output, workers, verdict, report, hand-over. */
#include "embed.h"
#include "handover.h"
#include "host.h"
#include "options.h"
#include "output.h"
#include "plan.h"
#include "report.h"
#include "signals.h"
#include "summarize.h"
#include "supervise.h"
#include "terminal.h"
#include "verdict.h"
#include "workload.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* One run, in the order in which it is filled. It lives until the process ends or becomes the workload. */
struct run {
	struct signals signals;
	time_t started_at;
	int64_t started_ms;
	struct options options;
	struct workload workload;
	struct output output;
	struct plan plan;
	struct supervision supervision;
	bool supervised;
	struct host_facts host;
	struct verdict verdict;
	char message[sizeof((struct error *)0)->text]; /* what went wrong before any worker ran, or "" */
	bool report_saved;
};

static const char *path_variable(void)
{
	return getenv("PATH");
}

static int print_codes(void)
{
	for (int code = 0; code < CODE_COUNT; code++) {
		int status = code_exit_status((enum code)code, 0);
		char text[16];
		(void)snprintf(text, sizeof text, code == CODE_INTERRUPTED ? "%d+n" : "%d", status);
		printf("%-6s %-24s %s\n", text, code_name((enum code)code),
		       messages_next_action((enum code)code, LANGUAGE_EN));
	}
	return 0;
}

/* The actions that check nothing. What they print must arrive: a full disk behind stdout is told. */
static int act(const struct options *options)
{
	int status = 0;

	if (options->action == ACTION_HELP)
		options_print_help(stdout);
	else if (options->action == ACTION_VERSION)
		printf("kd-preflight %s\n", KD_VERSION);
	else if (options->action == ACTION_LIST_CODES)
		(void)print_codes();
	else
		status = summarize_run(options->summarize_dir, options->format == FORMAT_JSON, stdout, stderr);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		terminal_line("unable to write to stdout: %s", strerror(errno));
		return code_exit_status(CODE_OUTPUT_WRITE_FAILED, 0);
	}
	return status;
}

/* A failure before any worker ran. */
static void fail_early(struct run *run, enum code code, enum stage stage, const struct error *error)
{
	run->verdict = (struct verdict){.code = code, .stage = stage, .detail = {.elapsed_ms = -1}};
	(void)snprintf(run->message, sizeof run->message, "%s", error->text);
}

static bool find_workload(struct run *run)
{
	struct error error = {0};
	enum code code;

	if (!run->options.program ||
	    workload_find(run->options.program[0], path_variable(), &run->workload, &code, &error) == 0)
		return true;
	fail_early(run, code, STAGE_WORKLOAD, &error);
	return false;
}

/* Also after an early failure: its report goes where it was asked for, if it can. */
static bool reserve_output(struct run *run)
{
	struct error error = {0};

	if (!run->options.output || output_reserve(&run->output, run->options.output, &error) == 0)
		return true;
	if (run->message[0]) {
		terminal_line("%s", error.text);
		verdict_add_hint(&run->verdict, HINT_REPORT_NOT_SAVED);
	} else {
		fail_early(run, CODE_OUTPUT_WRITE_FAILED, STAGE_OUTPUT, &error);
	}
	return false;
}

static bool make_plan(struct run *run)
{
	struct error error = {0};
	const struct workload *workload = run->options.program ? &run->workload : NULL;

	if (plan_make(&run->plan, &run->options, workload, path_variable(), &error) == 0)
		return true;
	fail_early(run, CODE_INTERPRETER_FAILED, STAGE_INTERPRETER, &error);
	if (run->plan.interpreter.is_wrapper)
		verdict_add_hint(&run->verdict, HINT_PYTHON_IS_WRAPPER);
	return false;
}

static void read_host(struct run *run)
{
	const struct worker *worker = &run->supervision.host;

	if (worker->outcome.fate == FATE_NOT_STARTED) {
		host_read_amdgpu(&run->host);
		return;
	}
	run->host.source = "nvidia-smi";
	if (worker->outcome.fate == FATE_EXITED && worker->outcome.exit_status == 0)
		host_read_nvidia_smi(&run->host, worker->output, worker->output_length);
	else
		run->host.problem = worker->outcome.fate == FATE_TIMEOUT ? "timeout" : "failed";
}

/* Under best-effort a worker may have run with less than `require` asks for: that is told. */
static bool is_weak(const struct worker *worker)
{
	return worker->have_sandbox && !(worker->sandbox.no_new_privs && worker->sandbox.seccomp);
}

static void add_sandbox_hints(struct run *run)
{
	bool weak = is_weak(&run->supervision.python);

	for (int i = 0; i < run->supervision.native_count; i++)
		weak |= is_weak(run->supervision.native[i]);
	if (run->options.sandbox == SANDBOX_OFF)
		verdict_add_hint(&run->verdict, HINT_SANDBOX_OFF);
	else if (weak)
		verdict_add_hint(&run->verdict, HINT_SANDBOX_WEAK);
}

/* SIGKILL may be anybody's; the counter of the control group says when it was the kernel's, for memory. */
static void add_memory_hint(struct run *run)
{
	if (run->supervision.killed_for_memory && run->verdict.detail.signal == SIGKILL)
		verdict_add_hint(&run->verdict, HINT_KILLED_FOR_MEMORY);
}

static void show_outputs(const struct run *run)
{
	enum language language = run->options.language;

	terminal_show_output(&run->supervision.python, "python", language);
	for (int i = 0; i < run->supervision.native_count; i++)
		terminal_show_output(run->supervision.native[i], "native", language);
}

static void check(struct run *run)
{
	struct error error = {0};
	struct supervision *supervision = &run->supervision;

	supervision->options = &run->options;
	supervision->signals = &run->signals;
	supervision->envp = environ;
	supervision->path_variable = path_variable();
	supervision->interpreter = &run->plan.interpreter;
	supervision->torch_rule = run->plan.torch_rule;
	supervision->loader = run->plan.loader;
	supervision->hip_dirs = run->plan.hip_dirs;
	if (supervise_run(supervision, &error) < 0) {
		fail_early(run, CODE_WORKER_FAILED, STAGE_SANDBOX, &error);
		return;
	}
	run->supervised = true;
	struct verdict_input input = supervise_input(supervision);
	run->verdict = verdict_decide(&input);
	add_sandbox_hints(run);
	add_memory_hint(run);
	if (run->options.host_check && !supervision->interrupted_by)
		read_host(run);
	if (run->options.verbose)
		show_outputs(run);
}

static struct report_facts facts_of(const struct run *run)
{
	return (struct report_facts){
	        .options = &run->options,
	        .verdict = &run->verdict,
	        .supervision = run->supervised ? &run->supervision : NULL,
	        .host = run->supervised && run->options.host_check ? &run->host : NULL,
	        .started_at = run->started_at,
	        .duration_ms = worker_now_ms() - run->started_ms,
	        .workload_given = run->options.program != NULL,
	        .workload_starting = run->options.program && run->verdict.code == CODE_GPU_CHECK_PASSED,
	};
}

/* Saves the report where that was asked for. A pass whose report is not saved is none. */
static void save_report(struct run *run)
{
	struct report_facts facts = facts_of(run);
	struct error note = {0}, error = {0};

	if (run->output.dir_fd < 0)
		return;
	char *text = report_text(&facts, true);
	int status = text ? output_write(&run->output, text, strlen(text), &note, &error)
	                  : error_set(&error, ENOMEM, "unable to write the report: %s", strerror(ENOMEM));
	free(text);
	output_close(&run->output);
	if (note.text[0])
		terminal_line("%s", note.text);
	run->report_saved = status == 0;
	if (run->report_saved)
		return;
	terminal_line("%s", error.text);
	verdict_add_hint(&run->verdict, HINT_REPORT_NOT_SAVED);
	if (code_is_pass(run->verdict.code)) {
		run->verdict.code = CODE_OUTPUT_WRITE_FAILED;
		run->verdict.stage = STAGE_OUTPUT;
	}
}

/* Without PROGRAM stdout gets the report; with it stdout is the workload's. */
static void tell(struct run *run)
{
	struct report_facts facts = facts_of(run);
	bool json = run->options.format == FORMAT_JSON;

	if (!json)
		terminal_tell(&facts, run->message[0] ? run->message : NULL);
	if (run->report_saved && !json)
		terminal_line("%s %s", messages_text(MESSAGE_REPORT_SAVED, run->options.language), run->output.path);
	if (run->options.program && !json)
		return;
	char *text = report_text(&facts, !json);
	int fd = run->options.program ? STDERR_FILENO : STDOUT_FILENO;
	int status = text ? terminal_write(fd, text, strlen(text)) : -ENOMEM;
	if (status < 0)
		terminal_line("unable to print the report: %s", strerror(-status));
	free(text);
}

/* A worker's directory that could not be removed, or not within its bounds. */
static void tell_left(const struct scratch *scratch)
{
	if (scratch->path[0] && access(scratch->path, F_OK) == 0)
		terminal_line("unable to remove %s in full: remove it", scratch->path);
}

/* Past this line the check has passed, its report is saved where asked, and no worker is left. */
static int become_workload(struct run *run)
{
	struct error error = {0};
	enum code code;
	int signal_number = 0;

	handover_exec(&run->workload, run->options.program, environ, &run->signals, &code, &signal_number, &error);
	run->verdict.code = code;
	run->verdict.signal = signal_number;
	run->verdict.stage = STAGE_WORKLOAD;
	terminal_line("%s (exit %d): %s", code_name(code), code_exit_status(code, signal_number), error.text);
	struct report_facts facts = facts_of(run);
	terminal_log_termination(run->options.termination_log, &facts);
	return code_exit_status(code, signal_number);
}

int main(int argc, char *argv[])
{
	static struct run run;
	struct error error = {0};

	signals_take(&run.signals);
	/* No worker of the same user may open our memory; execve makes the workload dumpable again (prctl(2)). */
	(void)prctl(PR_SET_DUMPABLE, 0);
	terminal_hold_standard_descriptors();
	run.started_at = time(NULL);
	run.started_ms = worker_now_ms();
	output_init(&run.output);
	int parsed = options_parse(&run.options, argc, argv, environ, &error);
	if (parsed == 0 && run.options.action != ACTION_CHECK) {
		signals_restore_in_child(&run.signals); /* no check: a signal may end it as it would any program */
		return act(&run.options);
	}
	if (parsed < 0)
		fail_early(&run, CODE_USAGE_ERROR, STAGE_ARGUMENTS, &error);
	else
		(void)find_workload(&run);
	if (reserve_output(&run) && !run.message[0] && make_plan(&run))
		check(&run);
	save_report(&run);
	tell(&run);
	struct report_facts facts = facts_of(&run);
	if (!facts.workload_starting)
		terminal_log_termination(run.options.termination_log, &facts);
	if (run.supervised) {
		supervise_finish(&run.supervision);
		tell_left(&run.supervision.python_scratch);
		tell_left(&run.supervision.native_scratch);
	}
	if (facts.workload_starting)
		return become_workload(&run);
	return code_exit_status(run.verdict.code, run.verdict.signal);
}

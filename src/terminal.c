#include "terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WRITE_PATIENCE_MS = 2000,
	CHUNK = 4096 /* PIPE_BUF: a pipe that poll calls writable takes it whole (pipe(7)) */
};

void terminal_hold_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/", O_PATH | O_CLOEXEC); /* takes the lowest free number, which is fd */
}

/* A socket that poll calls writable may still not take a whole chunk, and write would wait for the rest. */
static ssize_t write_some(int fd, const char *bytes, size_t length)
{
	ssize_t sent = send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

	return sent < 0 && errno == ENOTSOCK ? write(fd, bytes, length) : sent;
}

int terminal_write(int fd, const char *bytes, size_t length)
{
	static bool stuck[STDERR_FILENO + 1]; /* nobody read from it before: it is not waited for again */
	int64_t until_ms = worker_now_ms() + WRITE_PATIENCE_MS;

	while (length > 0) {
		struct pollfd ready = {.fd = fd, .events = POLLOUT};
		int64_t left_ms = stuck[fd] ? 0 : until_ms - worker_now_ms();
		if (poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0) == 0) {
			stuck[fd] = true;
			return -ETIMEDOUT;
		}
		ssize_t wrote = write_some(fd, bytes, length < CHUNK ? length : CHUNK);
		if (wrote < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (wrote > 0) {
			bytes += wrote;
			length -= (size_t)wrote;
		} else if (worker_now_ms() >= until_ms) {
			stuck[fd] = true;
			return -ETIMEDOUT;
		}
	}
	return 0;
}

/* Text that grows in a fixed buffer and is cut, never overrun. */
struct text {
	size_t used;
	char bytes[16384];
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int length = vsnprintf(text->bytes + text->used, sizeof text->bytes - text->used, format, args);
	va_end(args);
	if (length > 0)
		text->used += (size_t)length;
	if (text->used >= sizeof text->bytes)
		text->used = sizeof text->bytes - 1;
}

void terminal_line(const char *format, ...)
{
	char line[1024] = "kd-preflight: ";
	size_t used = strlen(line);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line + used, sizeof line - used - 1, format, args);
	va_end(args);
	used = strlen(line);
	line[used++] = '\n';
	(void)terminal_write(STDERR_FILENO, line, used);
}

static bool use_colour(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDERR_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

enum rung { RUNG_INTERPRETER, RUNG_BACKEND, RUNG_COMPUTATION, RUNG_COUNT };

/* The rungs of CONTRACT.md 1 and the last stage of each. */
static const struct {
	enum message name;
	enum stage last;
} RUNGS[RUNG_COUNT] = {
        [RUNG_INTERPRETER] = {MESSAGE_RUNG_INTERPRETER, STAGE_IMPORT},
        [RUNG_BACKEND] = {MESSAGE_RUNG_BACKEND, STAGE_DEVICE},
        [RUNG_COMPUTATION] = {MESSAGE_RUNG_COMPUTATION, STAGE_SYNCHRONIZATION},
};

static enum message rung_state(const struct verdict *verdict, enum rung rung)
{
	enum stage first = rung == 0 ? STAGE_INTERPRETER : RUNGS[rung - 1].last + 1;

	if (code_is_pass(verdict->code) || verdict->code == CODE_OUTPUT_WRITE_FAILED ||
	    verdict->stage > RUNGS[rung].last)
		return MESSAGE_OK;
	/* A check that a signal stopped found no fault in the layer it was at. */
	return verdict->stage < first || verdict->code == CODE_INTERRUPTED ? MESSAGE_NOT_REACHED : MESSAGE_FAILED;
}

/* What is known of a rung, in the field's own words. */
static void append_facts(struct text *text, const struct report_facts *facts, enum rung rung)
{
	const struct supervision *s = facts->supervision;
	const struct result *python = &s->python.result, *native = s->native_count ? &s->native[0]->result : NULL;
	bool is_gpu = facts->options->device == DEVICE_GPU;

	if (rung == RUNG_INTERPRETER) {
		if (python->python_version[0])
			append(text, ": Python %s", python->python_version);
		if (facts->verdict->torch_checked && python->torch_version[0])
			append(text, ", PyTorch %s", python->torch_version);
		else if (!facts->verdict->torch_checked)
			append(text, "%s %s: %s", python->python_version[0] ? "," : ":",
			       messages_text(MESSAGE_PYTORCH, facts->options->language),
			       messages_text(MESSAGE_NOT_CHECKED, facts->options->language));
	} else if (rung == RUNG_BACKEND && !is_gpu) {
		append(text, ": cpu");
	} else if (rung == RUNG_BACKEND && native && native->backend[0]) {
		int index = facts->options->device_index < 0 ? 0 : facts->options->device_index;
		const char *name = index < RESULT_DEVICES_MAX ? native->devices[index].name : "";
		append(text, ": %s", native->backend);
		if (native->device_count >= 0)
			append(text, ", %d visible", native->device_count);
		if (name[0])
			append(text, ", %d: %s", index, name);
	} else if (rung == RUNG_COMPUTATION && facts->verdict->by && facts->verdict->have_loss) {
		append(text, ": loss %.9g, by %s", (double)facts->verdict->loss,
		       facts->verdict->by->result->kind == WORKER_PYTHON ? "torch" : "native");
	}
}

static void append_rung(struct text *text, const struct report_facts *facts, enum rung rung, bool colour)
{
	enum language language = facts->options->language;
	enum message state = rung_state(facts->verdict, rung);
	/* Without PyTorch in question the first rung was not climbed; its line says so. */
	if (rung == RUNG_INTERPRETER && !facts->verdict->torch_checked && state == MESSAGE_OK)
		state = MESSAGE_NOT_CHECKED;
	const char *on = !colour ? "" : state == MESSAGE_OK ? "\033[32m" : state == MESSAGE_FAILED ? "\033[31m" : "";

	append(text, "kd-preflight: %s[%s]%s %s", on, messages_text(state, language), *on ? "\033[0m" : "",
	       messages_text(RUNGS[rung].name, language));
	if (state != MESSAGE_NOT_REACHED)
		append_facts(text, facts, rung);
	append(text, "\n");
}

static void append_detail(struct text *text, const struct detail *detail)
{
	char unknown[16];

	if (!detail->have)
		return;
	if (detail->call && *detail->call)
		append(text, ", %s", detail->call);
	if (detail->error_name && *detail->error_name)
		append(text, ", %s", detail->error_name);
	if (detail->have_error_number)
		append(text, " (%ld)", detail->error_number);
	if (detail->missing && *detail->missing)
		append(text, ", %s", detail->missing);
	if (detail->signal)
		append(text, ", %s", signals_name(detail->signal, unknown));
	if (detail->expected[0])
		append(text, ", %s != %s", detail->observed, detail->expected);
	if (detail->elapsed_ms >= 0)
		append(text, ", %lld ms", (long long)detail->elapsed_ms);
	if (detail->unkillable)
		append(text, ", SIGKILL had no effect");
}

static void append_verdict(struct text *text, const struct report_facts *facts, const char *message)
{
	const struct verdict *verdict = facts->verdict;
	enum language language = facts->options->language;

	append(text, "kd-preflight: %s (exit %d)", code_name(verdict->code),
	       code_exit_status(verdict->code, verdict->signal));
	if (message) {
		append(text, ": %s\n", message);
		return;
	}
	append(text, ", %s %s", messages_text(MESSAGE_STAGE, language), stage_name(verdict->stage));
	append_detail(text, &verdict->detail);
	append(text, "; %s: %s", messages_text(MESSAGE_NEXT, language), messages_next_action(verdict->code, language));
	if (facts->workload_given)
		append(text, "; %s",
		       messages_text(facts->workload_starting ? MESSAGE_STARTING : MESSAGE_NOT_STARTED, language));
	append(text, "\n");
}

void terminal_tell(const struct report_facts *facts, const char *message)
{
	static struct text text;
	enum language language = facts->options->language;
	bool colour = use_colour();

	text.used = 0;
	if (facts->supervision && facts->options->sandbox == SANDBOX_OFF)
		append(&text, "kd-preflight: %s\n", messages_text(MESSAGE_SANDBOX_OFF, language));
	for (int rung = 0; facts->supervision && rung < RUNG_COUNT; rung++)
		append_rung(&text, facts, (enum rung)rung, colour);
	append_verdict(&text, facts, message);
	for (int i = 0; i < facts->verdict->hint_count; i++)
		append(&text, "kd-preflight: %s %s: %s\n", messages_text(MESSAGE_HINT, language),
		       messages_hint_id(facts->verdict->hints[i]),
		       messages_hint_text(facts->verdict->hints[i], language));
	(void)terminal_write(STDERR_FILENO, text.bytes, text.used);
}

void terminal_show_output(const struct worker *worker, const char *name, enum language language)
{
	static struct text text;

	if (worker->output_length == 0)
		return;
	text.used = 0;
	append(&text, "kd-preflight: %s (%s):\n| ", messages_text(MESSAGE_WORKER_PRINTED, language), name);
	for (size_t i = 0; i < worker->output_length; i++) {
		unsigned char byte = (unsigned char)worker->output[i];
		if (byte == '\n')
			append(&text, i + 1 < worker->output_length ? "\n| " : "\n");
		else
			append(&text, "%c", byte < ' ' || byte > '~' ? '?' : byte);
	}
	append(&text, worker->output_cut ? "\n| ...\n" : "\n");
	(void)terminal_write(STDERR_FILENO, text.bytes, text.used);
}

void terminal_log_termination(const char *path, const struct report_facts *facts)
{
	char line[1024];
	struct stat status;
	size_t length = path ? report_termination_line(facts, line, sizeof line) : 0;

	if (length == 0)
		return;
	/* O_APPEND: should the path name a file of the user's own, nothing in it is lost. */
	int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		(void)!write(fd, line, length);
	(void)close(fd);
}

#include "native_report.h"

#include "native_system.h"
#include "native_text.h"

void report_init(struct report *report, int fd)
{
	report->fd = fd;
	report->stage = NULL;
	report->length = 0;
}

void report_flush(struct report *report)
{
	size_t done = 0;

	while (done < report->length) {
		long written = system_call(__NR_write, report->fd, (long)(report->buffer + done),
		                           (long)(report->length - done));
		if (written > 0)
			done += (size_t)written;
		else if (written != -SYSTEM_EINTR && written != -SYSTEM_EAGAIN)
			system_exit(1);
	}
	report->length = 0;
}

static void report_line(struct report *report, const char *key, const char *value)
{
	char *to = report->buffer + report->length;
	size_t size = strlen(key) + strlen(value) + 3;

	if (size > sizeof report->buffer)
		return;
	if (report->length + size > sizeof report->buffer) {
		report_flush(report);
		to = report->buffer;
	}
	text_copy(to, size, key);
	text_append(to, size, " ");
	text_append(to, size, value);
	report->length += text_append(to, size, "\n");
}

void report_text(struct report *report, const char *key, const char *value)
{
	char text[REPORT_TEXT_MAX + 1];
	size_t length = text_copy(text, sizeof text, value);

	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	if (length)
		report_line(report, key, text);
}

void report_number(struct report *report, const char *key, long long number)
{
	char text[24] = "";

	text_append_number(text, sizeof text, number);
	report_line(report, key, text);
}

void report_floats(struct report *report, const char *key, const float *values, size_t count)
{
	static const char DIGITS[] = "0123456789abcdef";
	char text[REPORT_TEXT_MAX + 1] = "";

	for (size_t i = 0; i < count; i++) {
		char word[10] = " ";
		uint32_t bits;
		memcpy(&bits, &values[i], sizeof bits);
		for (unsigned digit = 0; digit < 8; digit++)
			word[1 + digit] = DIGITS[bits >> (28 - 4 * digit) & 15];
		word[9] = '\0';
		text_append(text, sizeof text, i ? word : word + 1);
	}
	report_line(report, key, text);
}

void report_stage(struct report *report, const char *name)
{
	if (!report->stage || !text_equal(report->stage, name))
		report_line(report, "stage", name);
	report->stage = name;
	report_flush(report);
}

void report_end(struct report *report, bool pass)
{
	report_line(report, "end", pass ? "pass" : "fail");
	report_flush(report);
	system_exit(0);
}

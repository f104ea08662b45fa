/* The table over a folder of reports: generated folders, damaged and hostile files, ten thousand reports. */
#include "summarize.h"

#include "tap.h"

#include <cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[64];

/* What a run printed. */
static struct {
	int status;
	char *out, *err;
} run;

static void summarize(const char *dir, int json)
{
	size_t size;
	free(run.out);
	free(run.err);
	FILE *out = open_memstream(&run.out, &size), *err = open_memstream(&run.err, &size);
	run.status = summarize_run(dir, json, out, err);
	(void)fclose(out);
	(void)fclose(err);
}

static void put(const char *name, const char *bytes, size_t length)
{
	char path[512];
	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		printf("# unable to write %s: %s\n", path, strerror(errno));
	(void)close(fd);
}

static void put_text(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

/* A report with what counts here; `driver` and `torch` as JSON. */
static void put_report(const char *name, const char *code, int exit_code, const char *stage, const char *driver,
                       const char *torch)
{
	char text[1024];
	bool passed = strstr(code, "PASSED") != NULL;
	(void)snprintf(
	        text, sizeof text,
	        "{\"status\": \"%s\", \"code\": \"%s\", \"exit_code\": %d, \"stage\": \"%s\", \"schema_version\": 1,"
	        " \"pytorch\": %s, \"driver\": %s}\n",
	        passed ? "passed" : "failed", code, exit_code, stage, torch, driver);
	put_text(name, text);
}

#define DRIVER "{\"driver_version\": \"12.4\", \"visible_device_count\": 8}"
#define TORCH  "{\"version\": \"2.6.0\", \"visible_device_count\": 8}"

static void put_pass(const char *name)
{
	put_report(name, "GPU_CHECK_PASSED", 0, "complete", DRIVER, TORCH);
}

static void clear(void)
{
	char path[512];
	DIR *stream = opendir(folder);
	for (struct dirent *entry; stream && (entry = readdir(stream));) {
		(void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			(void)remove(path);
	}
	if (stream)
		(void)closedir(stream);
}

static void says(const char *text, const char *part, const char *name)
{
	if (!ok(strstr(text, part) != NULL, "%s", name))
		printf("# no '%s' in:\n# %s\n", part, text);
}

/* Nothing a terminal would act on: printable ASCII, newlines, and UTF-8 that is no C1 control. */
static bool is_clean(const char *text)
{
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if ((*at < 0x20 && *at != '\n' && *at != '\t') || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0))
			return false;
		if (*at >= 0x80 && *at < 0xc0 && (at == (const unsigned char *)text || at[-1] < 0x80))
			return false;
	}
	return true;
}

static void test_nothing(void)
{
	clear();
	summarize(folder, 0);
	is_int(run.status, 2, "an empty folder is 2");
	says(run.err, "it holds no report", "and says so");
	is_string(run.out, "", "and prints no table");
	summarize("/nonexistent/folder", 0);
	is_int(run.status, 2, "a missing folder is 2");
	says(run.err, "No such file", "and says why");
	summarize("/dev/null", 1);
	is_int(run.status, 2, "a file is 2");
	summarize("/nonexistent\033[31m\n", 0);
	(void)ok(is_clean(run.err) && strchr(run.err, '\n') == run.err + strlen(run.err) - 1,
	         "the folder's name is cleaned");
	put_text("only.json", "{");
	summarize(folder, 0);
	is_int(run.status, 2, "a folder with nothing but damage is 2");
	says(run.err, "skipped only.json: not JSON", "and the damage is named");
}

static void test_fleet(void)
{
	char name[32];
	clear();
	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof name, "node%02d.json", i);
		put_pass(name);
	}
	summarize(folder, 0);
	is_int(run.status, 0, "twenty passes are 0");
	says(run.out, "20 reports, 0 files skipped", "they are counted");
	says(run.out, "usual: code GPU_CHECK_PASSED, stage complete, driver 12.4, devices 8, PyTorch 2.6.0\n",
	     "the usual is told");
	says(run.out, "odd ones out: 0\n", "and nobody is odd");
	says(run.out, "all passed", "and the end is good");
	is_string(run.err, "", "with nothing on err");

	put_report("node03.json", "GPU_CHECK_PASSED", 0, "complete",
	           "{\"driver_version\": \"12.2\", \"visible_device_count\": 8}", TORCH);
	put_report("node04.json", "GPU_CHECK_PASSED", 0, "complete",
	           "{\"driver_version\": \"12.4\", \"visible_device_count\": 7}", TORCH);
	put_report("node05.json", "GPU_CHECK_PASSED", 0, "complete", DRIVER, "null");
	summarize(folder, 0);
	is_int(run.status, 0, "odd passes are passes");
	says(run.out,
	     "odd ones out: 3\n  node03.json: driver 12.2\n  node04.json: devices 7\n  node05.json: PyTorch none\n",
	     "each odd one is named with what differs, in the order of the names");

	put_report("node06.json", "TIMEOUT", 10, "device", DRIVER, TORCH);
	put_report("node07.json", "CHECK_FAILED", 8, "product", DRIVER, TORCH);
	put_report("node08.json", "GPU_UNAVAILABLE", 6, "device", "null", "null");
	put_text("node09.json", "{\"status\": \"passed\"}");
	put_text("notes.txt", "{");
	put_text(".hidden.json", "{");
	summarize(folder, 0);
	is_int(run.status, 6, "the worst is the earliest stage, then the first code");
	says(run.out, "worst: GPU_UNAVAILABLE at device, exit status 6", "and is named");
	says(run.out, "19 reports, 1 files skipped", "damage is counted apart");
	says(run.err, "skipped node09.json: not a report\n", "and named");
	says(run.out, "       1  GPU_UNAVAILABLE         device\n", "failures are counted by code and stage");
	says(run.out, "      16  GPU_CHECK_PASSED        complete\n", "so are passes");
	says(run.out, "  node08.json: code GPU_UNAVAILABLE, stage device, driver none, devices none, PyTorch none\n",
	     "an odd one differs in several things");
	(void)ok(!strstr(run.out, "notes") && !strstr(run.err, "notes") && !strstr(run.err, "hidden"),
	         "other files and hidden ones are no business of ours");
}

static void test_json(void)
{
	summarize(folder, 1);
	is_int(run.status, 6, "JSON: the same status");
	cJSON *document = cJSON_Parse(run.out);
	(void)ok(cJSON_IsObject(document), "JSON: it parses");
	is_int(cJSON_GetObjectItem(document, "reports")->valueint, 19, "JSON: reports");
	is_int(cJSON_GetObjectItem(document, "exit_code")->valueint, 6, "JSON: exit_code");
	is_int(cJSON_GetArraySize(cJSON_GetObjectItem(document, "odd")), 6, "JSON: odd ones");
	is_int(cJSON_GetArraySize(cJSON_GetObjectItem(document, "counts")), 4, "JSON: rows of counts");
	char *usual = cJSON_PrintUnformatted(cJSON_GetObjectItem(document, "usual"));
	is_string(usual,
	          "{\"code\":\"GPU_CHECK_PASSED\",\"stage\":\"complete\",\"driver_version\":\"12.4\","
	          "\"visible_device_count\":8,\"pytorch_version\":\"2.6.0\"}",
	          "JSON: the usual");
	free(usual);
	char *odd = cJSON_PrintUnformatted(cJSON_GetArrayItem(cJSON_GetObjectItem(document, "odd"), 2));
	is_string(odd, "{\"file\":\"node05.json\",\"differs\":{\"pytorch_version\":null}}", "JSON: what differs");
	free(odd);
	char *skipped = cJSON_PrintUnformatted(cJSON_GetObjectItem(document, "skipped"));
	is_string(skipped, "[{\"file\":\"node09.json\",\"problem\":\"not a report\"}]", "JSON: what was skipped");
	free(skipped);
	cJSON_Delete(document);
}

static void test_interrupted(void)
{
	clear();
	put_report("a.json", "INTERRUPTED", 143, "import", "null", "null");
	put_report("b.json", "INTERRUPTED", 130, "import", "null", "null");
	put_pass("c.json");
	summarize(folder, 0);
	is_int(run.status, 143, "an interruption keeps its own status");
	put_report("d.json", "WORKLOAD_NOT_FOUND", 127, "workload", "null", "null");
	summarize(folder, 0);
	is_int(run.status, 127, "the workload stands before the import");
}

/* One report among two good ones must be skipped, with `problem`. */
static void is_skipped(const char *bytes, size_t length, const char *problem, const char *name)
{
	put("bad.json", bytes, length);
	summarize(folder, 0);
	bool skipped = run.status == 0 && strstr(run.out, "2 reports, 1 files skipped") && strstr(run.err, problem);
	if (!ok(skipped && is_clean(run.err), "%s is skipped", name))
		printf("# status %d, out: %s# err: %s", run.status, run.out, run.err);
}

static void is_skipped_text(const char *text, const char *problem, const char *name)
{
	is_skipped(text, strlen(text), problem, name);
}

#define HEAD "{\"status\":\"failed\",\"code\":\"TIMEOUT\",\"exit_code\":10,\"stage\":\"device\",\"schema_version\":"

static void test_hostile_values(void)
{
	clear();
	put_pass("a.json");
	put_pass("b.json");
	is_skipped_text("", "not JSON", "an empty file");
	is_skipped_text(HEAD "1} trailing", "not JSON", "trailing text");
	is_skipped(HEAD "1}\0{}", sizeof HEAD + 5, "not JSON", "a NUL byte");
	is_skipped_text(HEAD "1,\"driver\":{\"driver_version\":\"12.4\\u0000\"}}", "not JSON", "an escaped NUL");
	is_skipped_text("[]", "not a report", "an array");
	is_skipped_text("\"text\"", "not a report", "a text");
	is_skipped_text(HEAD "2}", "schema version", "another schema version");
	is_skipped_text(HEAD "\"1\"}", "not a report", "a version that is a text");
	is_skipped_text(HEAD "1,\"driver\":{\"driver_version\":7}}", "fit together", "a version that is a number");
	is_skipped_text(HEAD "1,\"driver\":{\"visible_device_count\":1e999}}", "fit together", "an endless count");
	is_skipped_text(HEAD "1,\"driver\":{\"visible_device_count\":-1}}", "fit together", "a negative count");
	is_skipped_text(HEAD "1,\"driver\":{\"visible_device_count\":1.5}}", "fit together", "half a device");
	is_skipped_text(HEAD "1,\"driver\":{\"visible_device_count\":true}}", "fit together", "a count that is true");
	is_skipped_text("{\"status\":\"passed\",\"code\":\"TIMEOUT\",\"exit_code\":10,\"stage\":\"device\",\"schema_"
	                "version\":1}",
	                "fit together", "a passed failure");
	is_skipped_text("{\"status\":\"passed\",\"code\":\"GPU_CHECK_PASSED\",\"exit_code\":0,\"stage\":\"device\","
	                "\"schema_version\":1}",
	                "fit together", "a pass that is not complete");
	is_skipped_text("{\"status\":\"failed\",\"code\":\"TIMEOUT\",\"exit_code\":0,\"stage\":\"device\",\"schema_"
	                "version\":1}",
	                "fit together", "a failure with exit status 0");
	is_skipped_text("{\"status\":\"failed\",\"code\":\"INTERRUPTED\",\"exit_code\":128,\"stage\":\"device\","
	                "\"schema_version\":1}",
	                "fit together", "an interruption without a signal");
	is_skipped_text("{\"status\":\"failed\",\"code\":\"timeout\",\"exit_code\":10,\"stage\":\"device\",\"schema_"
	                "version\":1}",
	                "fit together", "an unknown code");
	is_skipped_text("{\"status\":\"failed\",\"code\":7,\"exit_code\":10,\"stage\":\"device\",\"schema_version\":1}",
	                "fit together", "a code that is a number");
	put_text("bad.json", HEAD "1,\"driver\":[{\"driver_version\":\"1\"}],\"pytorch\":\"x\"}");
	summarize(folder, 0);
	is_int(run.status, 10, "a driver and a pytorch of another type have nothing to say (a report is still one)");
}

static void test_hostile_sizes(void)
{
	static char big[SUMMARIZE_FILE_MAX + 8];
	char path[512];
	clear();
	put_pass("a.json");
	put_pass("b.json");
	memset(big, '[', sizeof big);
	is_skipped(big, 200000, "not JSON", "200,000 open brackets");
	for (size_t i = 0; i + 5 < 200000; i += 5)
		memcpy(big + i, "{\"a\":", 5);
	is_skipped(big, 199995, "not JSON", "40,000 objects within each other");
	memset(big, ' ', sizeof big);
	is_skipped(big, SUMMARIZE_FILE_MAX + 1, "larger than 256 KiB", "a file of 256 KiB and one byte");
	(void)snprintf(big, sizeof big, HEAD "1}");
	big[strlen(big)] = ' ';
	put("bad.json", big, SUMMARIZE_FILE_MAX);
	summarize(folder, 0);
	is_int(run.status, 10, "a file of exactly 256 KiB is read (the control)");
	(void)snprintf(path, sizeof path, "%s/bad.json", folder);
	(void)truncate(path, (off_t)1 << 40);
	summarize(folder, 0);
	says(run.err, "larger than 256 KiB", "a file of a terabyte is not read");
}

static void test_hostile_kinds(void)
{
	char path[512], target[512];
	clear();
	put_pass("a.json");
	put_pass("b.json");
	(void)snprintf(path, sizeof path, "%s/bad.json", folder);
	(void)snprintf(target, sizeof target, "%s/a.json", folder);
	(void)mkfifo(path, 0600);
	summarize(folder, 0);
	says(run.err, "skipped bad.json: not a regular file", "a pipe is skipped, and not waited for");
	(void)unlink(path);
	(void)mkdir(path, 0755);
	summarize(folder, 0);
	says(run.err, "skipped bad.json: not a regular file", "a folder is skipped");
	(void)rmdir(path);
	(void)symlink(target, path);
	summarize(folder, 0);
	says(run.err, "skipped bad.json: not a regular file", "a link is skipped");
	(void)unlink(path);
	if (geteuid() == 0)
		return;
	put("bad.json", "{}", 2);
	(void)chmod(path, 0);
	summarize(folder, 0);
	says(run.err, "skipped bad.json: unreadable", "an unreadable file is skipped");
}

static void test_terminal(void)
{
	clear();
	put_pass("a.json");
	put_pass("b.json");
	put_text("evil\033]0;title\007\x9b\xc2\x9b\xe2\x80\xae\n.json", "{");
	put_report("odd\033[2J.json", "GPU_CHECK_PASSED", 0, "complete",
	           "{\"driver_version\": \"1\\u001b[31m\\u009b\\u202e2\\n3\\u007f\xff\", \"visible_device_count\": 8}",
	           TORCH);
	for (int json = 0; json < 2; json++) {
		summarize(folder, json);
		(void)ok(is_clean(run.out) && is_clean(run.err), "%s: no control character reaches the terminal",
		         json ? "JSON" : "text");
		says(run.err, "skipped evil?]0;title?????.json: not JSON", "a damaged file's name is cleaned");
		says(run.out, "odd?[2J.json", "an odd one's name is cleaned");
		says(run.out, "1?[31m??2?3??", "a value is cleaned");
	}
	put_text("gr\xc3\xbc\xc3\x9f.json", "{");
	summarize(folder, 0);
	says(run.err, "skipped gr\xc3\xbc\xc3\x9f.json", "letters of other alphabets stay");
}

static void test_many_values(void)
{
	char name[32], driver[96];
	clear();
	for (int i = 0; i < 600; i++) {
		(void)snprintf(name, sizeof name, "%04d.json", i);
		(void)snprintf(driver, sizeof driver, "{\"driver_version\": \"%d\", \"visible_device_count\": %d}", i,
		               i);
		put_report(name, "GPU_CHECK_PASSED", 0, "complete", driver, TORCH);
	}
	summarize(folder, 0);
	is_int(run.status, 0, "six hundred different versions are a folder like others");
	says(run.out, "600 reports", "all are counted");
	summarize(folder, 1);
	cJSON *document = cJSON_Parse(run.out);
	(void)ok(cJSON_IsObject(document), "and told as JSON");
	cJSON_Delete(document);
}

static void test_full_output(void)
{
	FILE *full = fopen("/dev/full", "we"), *nowhere = fopen("/dev/null", "we");
	if (full && nowhere) {
		clear();
		put_pass("a.json");
		is_int(summarize_run(folder, 0, full, nowhere), 12, "a table that cannot be written is 12");
		put_report("b.json", "TIMEOUT", 10, "device", DRIVER, TORCH);
		is_int(summarize_run(folder, 1, full, nowhere), 10, "unless a report failed");
	}
	if (full)
		(void)fclose(full);
	if (nowhere)
		(void)fclose(nowhere);
}

static void test_ten_thousand(void)
{
	char name[32];
	struct timespec start, end;
	struct rusage before, after;
	clear();
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(name, sizeof name, "node%05d.json", i);
		if (i % 1000 == 7)
			put_report(name, "GPU_UNAVAILABLE", 6, "device", "null", TORCH);
		else
			put_pass(name);
	}
	(void)getrusage(RUSAGE_SELF, &before);
	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	summarize(folder, 0);
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	(void)getrusage(RUSAGE_SELF, &after);
	long ms = (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000;
	printf("# 10,000 reports: %ld ms, %ld KB more memory\n", ms, after.ru_maxrss - before.ru_maxrss);
	is_int(run.status, 6, "ten thousand reports: the ten bad ones decide");
	says(run.out, "10000 reports", "ten thousand reports: all are counted");
	says(run.out, "odd ones out: 10\n", "ten thousand reports: ten are odd");
	(void)ok(ms < 60000, "ten thousand reports take no minute, even under valgrind");
}

int main(void)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)snprintf(folder, sizeof folder, "/tmp/kd-test-summarize-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	test_nothing();
	test_fleet();
	test_json();
	test_interrupted();
	test_hostile_values();
	test_hostile_sizes();
	test_hostile_kinds();
	test_terminal();
	test_many_values();
	test_full_output();
	test_ten_thousand();
	clear();
	(void)rmdir(folder);
	free(run.out);
	free(run.err);
	return done();
}

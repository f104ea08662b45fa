/* The KEY=VALUE arguments that the supervisor gives to kd-probe. */
#ifndef KD_NATIVE_OPTIONS_H
#define KD_NATIVE_OPTIONS_H

#include <stdbool.h>

enum backend_choice { BACKEND_AUTO, BACKEND_CUDA, BACKEND_HIP };
enum sandbox_expected { SANDBOX_EXPECT_OFF, SANDBOX_EXPECT_BEST_EFFORT, SANDBOX_EXPECT_REQUIRE };

struct native_options {
	int result_fd;
	bool gpu;
	int index; /* the device to check */
	bool list; /* tell the facts of every visible device, not of this one only */
	bool uuid; /* tell device UUIDs */
	enum backend_choice backend;
	int expect;           /* how many devices must be visible, or -1 */
	const char *hip_dirs; /* DIR:DIR, where a Python package keeps its own HIP, or "" */
	enum sandbox_expected sandbox;
	const char *confine; /* a file that exists, is writable by its mode and must not open for writing, or NULL */
	int exec_fd;         /* K of sandbox.h, or -1 */
};

/* Reads argv[1..]; the options point into it. Returns false for an unknown key, a bad value or a missing result=. */
bool native_options_read(int argc, char *const argv[], struct native_options *options);

#endif

#include "native_facts.h"

#include "native_library.h"
#include "native_system.h"
#include "native_text.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/utsname.h>

enum node {
	NODE_ABSENT,
	NODE_OPENS,
	NODE_GROUP,      /* open to a group that we are not in */
	NODE_PERMISSION, /* closed to us by its mode */
	NODE_FORBIDDEN,  /* EPERM: the container's device rules no longer list it */
	NODE_OTHER
};

enum { FACTS_NVIDIA_NODES = 16, FACTS_GROUPS_MAX = 1024, FACTS_READ_WRITE = 6 /* R_OK | W_OK */ };

/* Where drivers lie when they are mounted into a container and the loader does not look there. */
static const char CUDA_ELSEWHERE[][56] = {
        "/usr/local/nvidia/lib64/libcuda.so.1", /* GKE */
        "/usr/local/nvidia/lib/libcuda.so.1",
        "/usr/lib/wsl/lib/libcuda.so.1",
        "/run/opengl-driver/lib/libcuda.so.1", /* NixOS */
        "/home/kubernetes/bin/nvidia/lib64/libcuda.so.1",
        "/usr/lib64/libcuda.so.1",
#if defined(__x86_64__)
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
#else
        "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
        "/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1",
#endif
};
static const char HIP_ELSEWHERE[][56] = {
        "/opt/rocm/lib/libamdhip64.so.7",   "/opt/rocm/lib/libamdhip64.so.6",     "/opt/rocm/lib/libamdhip64.so.5",
        "/opt/rocm/lib64/libamdhip64.so.6", "/opt/rocm/hip/lib/libamdhip64.so.5",
};

static bool file_exists(const char *path)
{
	return system_call6(__NR_faccessat, SYSTEM_AT_FDCWD, (long)path, 0, 0, 0, 0) == 0;
}

static bool group_is_ours(unsigned group)
{
	unsigned groups[FACTS_GROUPS_MAX] = {0};
	long count = system_call(__NR_getgroups, FACTS_GROUPS_MAX, (long)groups, 0);

	for (long i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return system_call(__NR_getegid, 0, 0, 0) == (long)group;
}

/* The mode is asked before the open: under our own Landlock an open can fail with EACCES that says nothing about it. */
static enum node node_look(const char *path, unsigned *group)
{
	struct stat status = {0};
	long result = system_call6(__NR_newfstatat, SYSTEM_AT_FDCWD, (long)path, (long)&status, 0, 0, 0);

	if (result == -SYSTEM_ENOENT)
		return NODE_ABSENT;
	if (result < 0)
		return NODE_OTHER;
	if (system_call6(__NR_faccessat, SYSTEM_AT_FDCWD, (long)path, FACTS_READ_WRITE, 0, 0, 0) == -SYSTEM_EACCES) {
		*group = status.st_gid;
		return (status.st_mode & 060) == 060 && !group_is_ours(status.st_gid) ? NODE_GROUP : NODE_PERMISSION;
	}
	result = system_open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (result == -SYSTEM_EPERM)
		return NODE_FORBIDDEN;
	if (result < 0)
		return NODE_OTHER;
	system_close((int)result);
	return NODE_OPENS;
}

static void node_hint(const char *path, struct failure *failure)
{
	unsigned group = 0;

	switch (node_look(path, &group)) {
	case NODE_GROUP:
		failure_hint(failure, HINT_DEVICE_NODE_GROUP);
		if (!failure->missing[0]) {
			text_copy(failure->missing, sizeof failure->missing, "group ");
			text_append_number(failure->missing, sizeof failure->missing, group);
		}
		break;
	case NODE_PERMISSION:
		failure_hint(failure, HINT_DEVICE_NODE_PERMISSION);
		break;
	case NODE_FORBIDDEN:
		failure_hint(failure, HINT_CONTAINER_LOST_GPU);
		break;
	case NODE_ABSENT:
	case NODE_OPENS:
	case NODE_OTHER:
		break;
	}
}

/* The first /dev/nvidiaN; "" when there is none. */
static bool nvidia_card(char *path, size_t size)
{
	for (int i = 0; i < FACTS_NVIDIA_NODES; i++) {
		text_copy(path, size, "/dev/nvidia");
		text_append_number(path, size, i);
		if (file_exists(path))
			return true;
	}
	path[0] = '\0';
	return false;
}

static bool nvidia_present(void)
{
	char card[24];

	return file_exists("/dev/nvidiactl") || nvidia_card(card, sizeof card) || file_exists("/dev/dxg") ||
	       file_exists("/dev/nvmap"); /* Tegra */
}

bool facts_vendor_present(const struct backend *backend)
{
	return backend == &CUDA_BACKEND ? nvidia_present() : file_exists("/dev/kfd");
}

static bool library_elsewhere(const char (*paths)[56], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (file_exists(paths[i]))
			return true;
	return false;
}

static void cuda_absent(struct failure *failure)
{
	bool windows = file_exists("/dev/dxg");

	if (windows)
		failure_hint(failure, HINT_WSL);
	if (library_elsewhere(CUDA_ELSEWHERE, sizeof CUDA_ELSEWHERE / sizeof *CUDA_ELSEWHERE))
		failure_hint(failure, HINT_LIBRARY_OFF_PATH);
	else if (nvidia_present() && !windows)
		/* nvidia-smi may well work here: its library comes with the capability "utility" (FIELD-NOTES 6). */
		failure_hint(failure, HINT_CAPABILITIES_WITHOUT_COMPUTE);
	else if (!windows && file_exists("/dev/kfd"))
		failure_hint(failure, HINT_AMD_ONLY);
}

static bool running_in_gvisor(void)
{
	struct new_utsname name = {.version = ""};

	/* What its uname has always answered: pkg/sentry/syscalls/linux/linux64.go. */
	return system_call(__NR_uname, (long)&name, 0, 0) == 0 &&
	       text_equal(name.version, "#1 SMP Sun Jan 10 15:06:54 PST 2016");
}

void facts_library_absent(const struct backend *backend, struct failure *failure)
{
	if (backend == &CUDA_BACKEND)
		cuda_absent(failure);
	else if (library_elsewhere(HIP_ELSEWHERE, sizeof HIP_ELSEWHERE / sizeof *HIP_ELSEWHERE))
		failure_hint(failure, HINT_LIBRARY_OFF_PATH);
	if (running_in_gvisor())
		failure_hint(failure, HINT_GVISOR);
}

static void cuda_nodes(bool counted, struct failure *failure)
{
	char card[24];

	if (!nvidia_present()) {
		if (!counted)
			failure_hint(failure, file_exists("/dev/kfd") ? HINT_AMD_ONLY : HINT_DEVICE_NODE_MISSING);
		return;
	}
	if (file_exists("/dev/dxg"))
		failure_hint(failure, HINT_WSL);
	node_hint("/dev/nvidiactl", failure);
	if (!nvidia_card(card, sizeof card)) {
		if (file_exists("/dev/nvidiactl") && !counted)
			failure_hint(failure, HINT_DEVICE_NODE_MISSING);
		return;
	}
	node_hint(card, failure);
	node_hint("/dev/nvidia-uvm", failure);
	/* The driver would have nvidia-modprobe make it, which the sandbox stops (DESIGN.md 3). */
	if (!file_exists("/dev/nvidia-uvm"))
		failure_hint(failure, HINT_UVM_MISSING);
}

static void hip_nodes(bool counted, struct failure *failure)
{
	if (!file_exists("/dev/kfd")) {
		if (!counted)
			failure_hint(failure, HINT_DEVICE_NODE_MISSING);
		return;
	}
	node_hint("/dev/kfd", failure);
	node_hint("/dev/dri/renderD128", failure);
	if (!counted && !file_exists("/dev/dri/renderD128"))
		failure_hint(failure, HINT_DEVICE_NODE_MISSING);
}

void facts_device_failed(const struct backend *backend, const char *origin, bool counted, struct failure *failure)
{
	if (text_equal(origin, "compat"))
		failure_hint(failure, HINT_LIBRARY_COMPAT);
	if (text_equal(origin, "stub"))
		failure_hint(failure, HINT_LIBRARY_STUB);
	if (backend == &CUDA_BACKEND)
		cuda_nodes(counted, failure);
	else
		hip_nodes(counted, failure);
	if (running_in_gvisor())
		failure_hint(failure, HINT_GVISOR);
}

static bool variable_set(char *const environment[], const char *assignment, bool even_empty)
{
	for (; *environment; environment++)
		if (text_starts(*environment, assignment))
			return even_empty || (*environment)[strlen(assignment)];
	return false;
}

void facts_mask(const struct backend *backend, char *const environment[], struct failure *failure)
{
	bool set = variable_set(environment, "CUDA_VISIBLE_DEVICES=", backend == &CUDA_BACKEND);

	if (backend == &HIP_BACKEND)
		set = set || variable_set(environment, "HIP_VISIBLE_DEVICES=", false) ||
		      variable_set(environment, "ROCR_VISIBLE_DEVICES=", false) ||
		      variable_set(environment, "GPU_DEVICE_ORDINAL=", false);
	if (set)
		failure_hint(failure, HINT_MASK_SET);
}

#include "double.h"

#include "../../kernels/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ALLOCATIONS_MAX = 256, MODULES_MAX = 64, KERNELS = 2 };

/* Where device addresses begin. Nothing of an x86-64 or aarch64 Linux process is mapped there, nor the sanitizers'
 * shadow. */
static const uint64_t FIRST_ADDRESS = UINT64_C(0x200000000000);

/* What a context of the driver itself takes from the free memory. */
static const uint64_t RESERVED = 64 << 20;

struct allocation {
	uint64_t address, size;
	int device;
	unsigned char *bytes; /* NULL: freed */
};

struct module {
	int device;
	bool live;
	char functions[KERNELS]; /* their addresses are the function handles */
};

static struct {
	int devices; /* in the machine */
	char arch[DOUBLE_DEVICES_MAX][32];
	int version;
	uint64_t memory;
	const char *exclusive;
	int log_fd; /* -1: no log */

	bool initialised;
	int visible_count;
	int visible[DOUBLE_DEVICES_MAX]; /* physical ordinals */
	int references[DOUBLE_DEVICES_MAX];
	int lock[DOUBLE_DEVICES_MAX]; /* the bound socket, or -1 */
	int current;

	struct allocation allocations[ALLOCATIONS_MAX];
	int allocation_count;
	uint64_t next_address;
	struct module modules[MODULES_MAX];
	int module_count;
} gpu;

void double_die(const char *format, ...)
{
	char text[512];
	int length, prefix = snprintf(text, sizeof text, "kd-double: ");
	va_list args;

	va_start(args, format);
	length = prefix + vsnprintf(text + prefix, sizeof text - (size_t)prefix - 1, format, args);
	va_end(args);
	if (length > (int)sizeof text - 2)
		length = (int)sizeof text - 2;
	text[length++] = '\n';
	if (write(STDERR_FILENO, text, (size_t)length) == length)
		(void)signal(SIGTRAP, SIG_DFL);
	(void)raise(SIGTRAP);
	__builtin_trap();
}

/* Set-up */

static long long number_of(const char *name, long long standard, long long least, long long most)
{
	const char *text = getenv(name);
	char *end;
	long long number;

	if (!text)
		return standard;
	errno = 0;
	number = strtoll(text, &end, 10);
	if (end == text || *end || errno || number < least || number > most)
		double_die("%s=%s is not a number from %lld to %lld", name, text, least, most);
	return number;
}

static void read_architectures(void)
{
	const char *list = getenv("KD_DOUBLE_ARCH"), *prefix = double_backend.arch_prefix;
	int count = 0;

	for (int i = 0; i < DOUBLE_DEVICES_MAX; i++)
		(void)snprintf(gpu.arch[i], sizeof gpu.arch[i], "%s", double_backend.default_arch);
	while (list && *list) {
		int length = (int)strcspn(list, ",");

		if (strncmp(list, "sm_", 3) != 0 && strncmp(list, "gfx", 3) != 0)
			double_die("KD_DOUBLE_ARCH: neither sm_NN nor gfx...: %.*s", length, list);
		if (strncmp(list, prefix, strlen(prefix)) == 0) {
			for (int i = count; i < DOUBLE_DEVICES_MAX; i++)
				(void)snprintf(gpu.arch[i], sizeof gpu.arch[i], "%.*s", length, list);
			count += count < DOUBLE_DEVICES_MAX - 1;
		}
		list += length + (list[length] == ',');
	}
}

static int open_log(const char *where)
{
	int fd;

	if (!where || !*where)
		return -1;
	if (strcmp(where, "stderr") == 0)
		return STDERR_FILENO;
	if (strncmp(where, "fd:", 3) == 0) {
		char *end;
		long number = strtol(where + 3, &end, 10);
		if (end == where + 3 || *end || number < 0 || fcntl((int)number, F_GETFD) < 0)
			double_die("KD_DOUBLE_LOG=%s is no open descriptor", where);
		return (int)number;
	}
	fd = open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		double_die("unable to open KD_DOUBLE_LOG=%s: %s", where, strerror(errno));
	return fd;
}

/* At load time, so that a wrong setting cannot hide behind a call that is never made. */
__attribute__((constructor)) static void set_up(void)
{
	gpu.devices = (int)number_of("KD_DOUBLE_DEVICES", 1, 0, DOUBLE_DEVICES_MAX);
	gpu.version = (int)number_of("KD_DOUBLE_DRIVER_VERSION", double_backend.default_version, 1, 999999999);
	gpu.memory = (uint64_t)number_of("KD_DOUBLE_MEMORY", 17179869184, 1, 1LL << 48);
	gpu.exclusive = getenv("KD_DOUBLE_EXCLUSIVE");
	gpu.log_fd = open_log(getenv("KD_DOUBLE_LOG"));
	gpu.current = DOUBLE_NO_DEVICE;
	gpu.next_address = FIRST_ADDRESS;
	for (int i = 0; i < DOUBLE_DEVICES_MAX; i++)
		gpu.lock[i] = -1;
	read_architectures();
	fault_parse(getenv("KD_DOUBLE_FAULT"));
}

/* Calls */

int double_begin(const char *call, int device)
{
	return fault_apply(call, device);
}

int double_end(const char *call, int device, int result)
{
	char line[128];
	int length;

	if (gpu.log_fd < 0)
		return result;
	length = snprintf(line, sizeof line, "kd-double %ld %s %d %d\n", (long)getpid(), call, device, result);
	if (write(gpu.log_fd, line, (size_t)length) != length)
		gpu.log_fd = -1; /* closed under us, by a test of just that */
	return result;
}

/* Devices */

int double_init(void)
{
	if (gpu.initialised)
		return 0;
	gpu.visible_count = double_backend.mask(gpu.devices, gpu.visible);
	if (gpu.visible_count == 0)
		return E_NO_DEVICE;
	gpu.initialised = true;
	return 0;
}

bool double_initialised(void)
{
	return gpu.initialised;
}

int double_version(void)
{
	return gpu.version;
}

int double_count(int *count)
{
	if (!gpu.initialised)
		return E_NOT_INITIALIZED;
	if (!count)
		return E_INVALID_VALUE;
	*count = gpu.visible_count;
	return 0;
}

int double_check_device(int device)
{
	if (!gpu.initialised)
		return E_NOT_INITIALIZED;
	return device >= 0 && device < gpu.visible_count ? 0 : E_INVALID_DEVICE;
}

int double_name(int device, char *name, int size)
{
	int error = double_check_device(device);

	if (error)
		return error;
	if (!name || size < 1)
		return E_INVALID_VALUE;
	(void)snprintf(name, (size_t)size, "kd-double GPU %d", gpu.visible[device]);
	return 0;
}

int double_uuid(int device, uint8_t uuid[16])
{
	int error = double_check_device(device);

	if (error)
		return error;
	if (!uuid)
		return E_INVALID_VALUE;
	mask_uuid_bytes(gpu.visible[device], uuid);
	return 0;
}

const char *double_arch(int device)
{
	return gpu.arch[gpu.visible[device]];
}

int double_memory_total(int device, size_t *bytes)
{
	int error = double_check_device(device);

	if (error)
		return error;
	if (!bytes)
		return E_INVALID_VALUE;
	*bytes = gpu.memory;
	return 0;
}

int double_physical(int device)
{
	return gpu.visible[device];
}

/* Contexts */

/* The device's lock, which another process may hold. */
static int lock_device(int device)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, length, error;

	if (!gpu.exclusive || gpu.lock[device] >= 0)
		return 0;
	length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "kd-double:%s:%d", gpu.exclusive,
	                  gpu.visible[device]);
	if (length >= (int)sizeof address.sun_path - 1)
		double_die("KD_DOUBLE_EXCLUSIVE is too long");
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		double_die("unable to create the socket of KD_DOUBLE_EXCLUSIVE: %s", strerror(errno));
	if (bind(fd, (struct sockaddr *)&address,
	         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0) {
		gpu.lock[device] = fd;
		return 0;
	}
	error = errno;
	(void)close(fd);
	if (error != EADDRINUSE)
		double_die("unable to bind the socket of KD_DOUBLE_EXCLUSIVE: %s", strerror(error));
	return double_backend.busy_error;
}

int double_context_retain(int device)
{
	int error = double_check_device(device);

	if (!error)
		error = lock_device(device);
	if (!error)
		gpu.references[device]++;
	return error;
}

/* Everything on the device dies with its context. */
static void destroy_context(int device)
{
	for (int i = 0; i < gpu.allocation_count; i++) {
		struct allocation *allocation = &gpu.allocations[i];
		if (allocation->bytes && allocation->device == device) {
			free(allocation->bytes);
			allocation->bytes = NULL;
		}
	}
	for (int i = 0; i < gpu.module_count; i++) {
		if (gpu.modules[i].device == device)
			gpu.modules[i].live = false;
	}
	if (gpu.lock[device] >= 0)
		(void)close(gpu.lock[device]);
	gpu.lock[device] = -1;
}

int double_context_release(int device)
{
	int error = double_check_device(device);

	if (error)
		return error;
	if (gpu.references[device] == 0)
		return E_INVALID_CONTEXT;
	if (--gpu.references[device] == 0)
		destroy_context(device);
	return 0;
}

bool double_context_live(int device)
{
	return gpu.references[device] > 0;
}

void double_set_current(int device)
{
	gpu.current = device;
}

int double_current(void)
{
	return gpu.current;
}

static int need_context(void)
{
	if (!gpu.initialised)
		return E_NOT_INITIALIZED;
	return gpu.current != DOUBLE_NO_DEVICE && double_context_live(gpu.current) ? 0 : E_INVALID_CONTEXT;
}

/* Memory */

static uint64_t memory_used(int device)
{
	uint64_t used = gpu.memory > RESERVED ? RESERVED : 0;

	for (int i = 0; i < gpu.allocation_count; i++) {
		if (gpu.allocations[i].bytes && gpu.allocations[i].device == device)
			used += gpu.allocations[i].size;
	}
	return used;
}

int double_memory_info(size_t *available, size_t *total)
{
	int error = need_context();

	if (error)
		return error;
	if (!available || !total)
		return E_INVALID_VALUE;
	*available = gpu.memory - memory_used(gpu.current);
	*total = gpu.memory;
	return 0;
}

int double_alloc(uint64_t *address, size_t size)
{
	struct allocation *allocation;
	int error = need_context();

	if (error)
		return error;
	if (!address || size == 0)
		return E_INVALID_VALUE;
	if (size > gpu.memory - memory_used(gpu.current))
		return E_OUT_OF_MEMORY;
	if (gpu.allocation_count == ALLOCATIONS_MAX)
		double_die("more than %d allocations", ALLOCATIONS_MAX);
	allocation = &gpu.allocations[gpu.allocation_count];
	allocation->bytes = malloc(size);
	if (!allocation->bytes)
		return E_OUT_OF_MEMORY;
	memset(allocation->bytes, DOUBLE_POISON, size);
	allocation->address = gpu.next_address;
	allocation->size = size;
	allocation->device = gpu.current;
	gpu.next_address += (size + 0x1fff) & ~UINT64_C(0xfff); /* a gap after each, for what runs over the end */
	gpu.allocation_count++;
	*address = allocation->address;
	return 0;
}

int double_free(uint64_t address)
{
	int error = need_context();

	if (error)
		return error;
	for (int i = 0; i < gpu.allocation_count; i++) {
		struct allocation *allocation = &gpu.allocations[i];
		if (allocation->bytes && allocation->address == address && allocation->device == gpu.current) {
			free(allocation->bytes);
			allocation->bytes = NULL;
			return 0;
		}
	}
	return E_INVALID_VALUE;
}

/* The bytes behind [address, address + size), where one live allocation of the current device holds all of them. */
static unsigned char *device_bytes(uint64_t address, size_t size)
{
	for (int i = 0; i < gpu.allocation_count; i++) {
		const struct allocation *allocation = &gpu.allocations[i];
		if (allocation->bytes && allocation->device == gpu.current && address >= allocation->address &&
		    address - allocation->address <= allocation->size &&
		    size <= allocation->size - (address - allocation->address))
			return allocation->bytes + (address - allocation->address);
	}
	return NULL;
}

int double_upload(uint64_t to, const void *from, size_t size)
{
	int error = need_context();
	unsigned char *bytes;

	if (error)
		return error;
	bytes = device_bytes(to, size);
	if (!bytes || !from || size == 0)
		return E_INVALID_VALUE;
	memcpy(bytes, from, size);
	return 0;
}

int double_download(void *to, uint64_t from, size_t size)
{
	int error = need_context();
	const unsigned char *bytes;

	if (error)
		return error;
	bytes = device_bytes(from, size);
	if (!bytes || !to || size == 0)
		return E_INVALID_VALUE;
	memcpy(to, bytes, size);
	return 0;
}

/* Modules */

static struct module *find_module(const void *handle)
{
	for (int i = 0; i < gpu.module_count; i++) {
		struct module *module = &gpu.modules[i];
		if (handle == module && module->live && module->device == gpu.current)
			return module;
	}
	return NULL;
}

int double_module_load(void **module, const void *image)
{
	int error = need_context();

	if (error)
		return error;
	if (!module || !image)
		return E_INVALID_VALUE;
	error = double_backend.check_image(image, double_arch(gpu.current));
	if (error)
		return error;
	if (gpu.module_count == MODULES_MAX)
		double_die("more than %d modules", MODULES_MAX);
	gpu.modules[gpu.module_count].device = gpu.current;
	gpu.modules[gpu.module_count].live = true;
	*module = &gpu.modules[gpu.module_count++];
	return 0;
}

int double_module_function(void **function, void *handle, const char *name)
{
	static const char *const names[KERNELS] = {"kd_product", "kd_gradient"};
	struct module *module;
	int error = need_context();

	if (error)
		return error;
	if (!function || !name)
		return E_INVALID_VALUE;
	module = find_module(handle);
	if (!module)
		return E_INVALID_HANDLE;
	for (int i = 0; i < KERNELS; i++) {
		if (strcmp(names[i], name) == 0) {
			*function = &module->functions[i];
			return 0;
		}
	}
	return E_NOT_FOUND;
}

int double_module_unload(void *handle)
{
	struct module *module;
	int error = need_context();

	if (error)
		return error;
	module = find_module(handle);
	if (!module)
		return E_INVALID_HANDLE;
	module->live = false;
	return 0;
}

/* Which kernel a function handle means; -1 for none of a live module of the current device. */
static int find_kernel(const void *handle)
{
	for (int i = 0; i < gpu.module_count; i++) {
		for (int k = 0; k < KERNELS; k++) {
			if (handle == &gpu.modules[i].functions[k])
				return find_module(&gpu.modules[i]) ? k : -1;
		}
	}
	return -1;
}

static int run(enum kernel kernel, void *const *arguments)
{
	uint64_t in_address, out_address;
	float in[CHECK_IN_COUNT], out[CHECK_OUT_COUNT];
	unsigned char *in_bytes, *out_bytes;

	memcpy(&in_address, arguments[0], sizeof in_address);
	memcpy(&out_address, arguments[1], sizeof out_address);
	in_bytes = device_bytes(in_address, sizeof in);
	out_bytes = device_bytes(out_address, sizeof out);
	if (!in_bytes || !out_bytes || in_address % sizeof(float) || out_address % sizeof(float))
		return E_ILLEGAL_ADDRESS;
	if (in_address < out_address + sizeof out && out_address < in_address + sizeof in)
		return E_INVALID_VALUE;
	memcpy(in, in_bytes, sizeof in);
	memcpy(out, out_bytes, sizeof out);
	if (kernel == KERNEL_PRODUCT)
		kd_product_host(in, out);
	else
		kd_gradient_host(in, out);
	fault_corrupt(kernel, out);
	memcpy(out_bytes, out, sizeof out);
	return 0;
}

int double_launch(void *function, const unsigned grid[3], const unsigned block[3], unsigned shared, const void *stream,
                  void *const *arguments, void *const *extra)
{
	int error = need_context(), kernel;

	if (error)
		return error;
	kernel = find_kernel(function);
	if (kernel < 0)
		return E_INVALID_HANDLE;
	if (grid[0] != 1 || grid[1] != 1 || grid[2] != 1 || block[0] != CHECK_THREADS || block[1] != 1 || block[2] != 1)
		return E_INVALID_VALUE;
	if (shared || stream || extra || !arguments || !arguments[0] || !arguments[1])
		return E_INVALID_VALUE;
	return run((enum kernel)kernel, arguments);
}

int double_synchronise(void)
{
	return need_context();
}

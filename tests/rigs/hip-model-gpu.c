/* The device of ROCr's model mode (HSA_MODEL_LIB): the interface 0.4 of libhsakmt's hsakmtmodeliface.h, as ROCr 7.2
 * loads it. There are no GPU instructions here: a dispatch is executed when its machine code is, byte for byte, a
 * kernel of a code object that we ship (then by the host's version of it), or when it is one of the runtime's own copy
 * and fill kernels. So this proves that the real runtime loads our objects, finds the kernels, lays out their arguments
 * and launches and synchronises them as we mean it to; it proves nothing about the instructions.
 *
 * HIP_MODEL_TRACE=1 prints what is dispatched. */
#include "../../build/kernels/images.h"
#include "../../kernels/check.h"

#include <elf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	INTERFACE_MAJOR = 0,
	INTERFACE_MINOR = 4,
	QUEUE_AQL = 2, /* KFD_IOC_QUEUE_TYPE_COMPUTE_AQL */
	PACKET_SIZE = 64,
	PACKET_INVALID = 1, /* hsa_packet_type_t */
	PACKET_DISPATCH = 2,
	PACKET_BARRIER_AND = 3,
	PACKET_BARRIER_OR = 5,
	BARRIER_SIGNALS = 5,
	COPY_ARGUMENTS = 48, /* kernarg sizes of the runtime's own kernels: source, target, size, ... */
	FILL_ARGUMENTS = 40, /* start, pattern, ..., end */
	POLL_US = 20
};

/* hsa_kernel_dispatch_packet_t; addresses are relative to the aperture. */
struct packet {
	uint16_t header, setup, group_x, group_y, group_z, reserved;
	uint32_t grid_x, grid_y, grid_z, private_size, group_size;
	uint64_t kernel, arguments, reserved2, signal;
};

/* hsa_barrier_and_packet_t */
struct barrier {
	uint16_t header, reserved[3];
	uint64_t dependencies[BARRIER_SIGNALS];
	uint64_t reserved2, signal;
};

/* The head of amd_signal_t. */
struct signal {
	int64_t kind, value;
	uint64_t mailbox;
	uint32_t event;
};

/* The head of amd_kernel_code/kernel descriptor (LLVM AMDGPUUsage, "Kernel Descriptor"). */
struct descriptor {
	uint32_t group_size, private_size, argument_size, reserved;
	int64_t entry;
};

struct queue_info {
	uint64_t ring, write_pointer, read_pointer;
	uint64_t *doorbell;
	uint32_t size, type;
};

struct queue {
	struct queue_info info;
	uint64_t read;
	volatile bool stop;
};

typedef void set_event(void *data, unsigned event);

static struct {
	char *base;
	set_event *signal_event;
	void *signal_data;
	bool trace;
} model;

static void *at(uint64_t address)
{
	return model.base + address;
}

static const Elf64_Shdr *sections(const unsigned char *image, const Elf64_Ehdr **header)
{
	*header = (const Elf64_Ehdr *)(const void *)image;
	return (const Elf64_Shdr *)(const void *)(image + (*header)->e_shoff);
}

/* Is `code` the function `name` of this image? */
static bool is_function(const struct kernel_image *image, const char *name, const void *code)
{
	const Elf64_Ehdr *header;
	const Elf64_Shdr *section = sections(image->bytes, &header);

	for (unsigned i = 0; i < header->e_shnum; i++) {
		const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(image->bytes + section[i].sh_offset);
		const char *names;

		if (section[i].sh_type != SHT_SYMTAB)
			continue;
		names = (const char *)image->bytes + section[section[i].sh_link].sh_offset;
		for (uint64_t k = 0; k < section[i].sh_size / sizeof *symbol; k++) {
			const Elf64_Shdr *text =
			        &section[symbol[k].st_shndx < header->e_shnum ? symbol[k].st_shndx : 0];
			if (strcmp(names + symbol[k].st_name, name) == 0)
				return memcmp(image->bytes + text->sh_offset + (symbol[k].st_value - text->sh_addr),
				              code, symbol[k].st_size) == 0;
		}
	}
	return false;
}

static bool is_ours(const char *name, const void *code)
{
	for (unsigned i = 0; i < kernel_image_count; i++) {
		if (is_function(&kernel_images[i], name, code))
			return true;
	}
	return false;
}

static void dispatch(const struct packet *packet)
{
	const struct descriptor *descriptor = at(packet->kernel);
	const void *code = (const char *)descriptor + descriptor->entry;
	const uint64_t *arguments = at(packet->arguments);
	const char *what = "unknown, left undone";
	bool product = is_ours("kd_product", code), gradient = is_ours("kd_gradient", code);

	if (product || gradient) {
		bool right = packet->grid_x == CHECK_THREADS && packet->group_x == CHECK_THREADS &&
		             packet->grid_y == 1 && packet->grid_z == 1 &&
		             descriptor->argument_size == 2 * sizeof *arguments;
		what = product ? "kd_product" : "kd_gradient";
		if (!right)
			what = "ours, in a wrong grid: left undone";
		else if (product)
			kd_product_host(at(arguments[0]), at(arguments[1]));
		else
			kd_gradient_host(at(arguments[0]), at(arguments[1]));
	} else if (descriptor->argument_size == COPY_ARGUMENTS) {
		what = "the runtime's copy";
		memmove(at(arguments[1]), at(arguments[0]), arguments[2]);
	} else if (descriptor->argument_size == FILL_ARGUMENTS) {
		what = "the runtime's fill";
		memset(at(arguments[0]), *(const unsigned char *)at(arguments[1]), arguments[3] - arguments[0]);
	}
	if (model.trace)
		(void)fprintf(stderr, "hip-model: %s (grid %u, arguments %u bytes)\n", what, packet->grid_x,
		              descriptor->argument_size);
}

static void wait_for(const struct barrier *barrier)
{
	for (int i = 0; i < BARRIER_SIGNALS; i++) {
		struct signal *signal = at(barrier->dependencies[i]);
		while (barrier->dependencies[i] && __atomic_load_n(&signal->value, __ATOMIC_ACQUIRE) != 0)
			(void)usleep(POLL_US);
	}
}

static void complete(uint64_t address)
{
	struct signal *signal = at(address);

	if (!address)
		return;
	(void)__atomic_fetch_sub(&signal->value, 1, __ATOMIC_SEQ_CST);
	if (signal->mailbox && signal->event && model.signal_event)
		model.signal_event(model.signal_data, signal->event);
}

/* One packet; false when its header is not written yet. */
static bool step(struct queue *queue)
{
	char *slot = (char *)at(queue->info.ring) + (queue->read % (queue->info.size / PACKET_SIZE)) * PACKET_SIZE;
	unsigned type = __atomic_load_n((uint16_t *)(void *)slot, __ATOMIC_ACQUIRE) & 0xff;

	if (type == PACKET_INVALID)
		return false;
	if (type == PACKET_DISPATCH)
		dispatch((const struct packet *)(void *)slot);
	else if (type == PACKET_BARRIER_AND || type == PACKET_BARRIER_OR)
		wait_for((const struct barrier *)(void *)slot);
	else if (model.trace)
		(void)fprintf(stderr, "hip-model: packet of type %u\n", type);
	complete(((const struct packet *)(void *)slot)->signal);
	__atomic_store_n((uint16_t *)(void *)slot, PACKET_INVALID, __ATOMIC_RELEASE);
	queue->read++;
	__atomic_store_n((uint64_t *)at(queue->info.read_pointer), queue->read, __ATOMIC_RELEASE);
	return true;
}

static void *serve(void *argument)
{
	struct queue *queue = argument;

	while (!queue->stop) {
		uint64_t written = __atomic_load_n((uint64_t *)at(queue->info.write_pointer), __ATOMIC_ACQUIRE);
		if (queue->read >= written || !step(queue))
			(void)usleep(POLL_US);
	}
	return NULL;
}

/* The interface */

static void *model_create(void)
{
	model.trace = getenv("HIP_MODEL_TRACE") != NULL;
	return &model;
}

static void model_destroy(void *self)
{
	(void)self;
}

static void model_aperture(void *self, void *base, uint64_t size)
{
	(void)self;
	(void)size;
	model.base = base;
}

static void model_allocated(void *self, void *base, uint64_t size, uint32_t flags)
{
	(void)self;
	(void)base;
	(void)size;
	(void)flags;
}

static void model_freed(void *self, void *base, uint64_t size)
{
	(void)self;
	(void)base;
	(void)size;
}

static void model_callback(void *self, void *callback, void *data)
{
	(void)self;
	(void)callback;
	(void)data;
}

static void *model_queue(void *self, const struct queue_info *info)
{
	struct queue *queue = calloc(1, sizeof *queue);
	pthread_t thread;

	(void)self;
	if (!queue)
		return NULL;
	queue->info = *info;
	if (info->type != QUEUE_AQL) {
		(void)fprintf(stderr, "hip-model: queue of type %u is not served\n", info->type);
		return queue;
	}
	if (pthread_create(&thread, NULL, serve, queue) == 0)
		(void)pthread_detach(thread);
	return queue;
}

static void model_set_event(void *self, set_event *callback, void *data)
{
	(void)self;
	model.signal_event = callback;
	model.signal_data = data;
}

static void model_queue_end(void *self, void *queue)
{
	(void)self;
	((struct queue *)queue)->stop = true;
}

struct functions {
	uint32_t major, minor;
	void *(*create)(void);
	void (*destroy)(void *self);
	void (*aperture)(void *self, void *base, uint64_t size);
	void (*allocated)(void *self, void *base, uint64_t size, uint32_t flags);
	void (*freed)(void *self, void *base, uint64_t size);
	void (*on_notify)(void *self, void *callback, void *data);
	void (*on_wait)(void *self, void *callback, void *data);
	void *(*queue)(void *self, const struct queue_info *info);
	void (*on_set_event)(void *self, set_event *callback, void *data);
	void (*queue_end)(void *self, void *queue);
};

const struct functions *get_hsakmt_model_functions(void);

const struct functions *get_hsakmt_model_functions(void)
{
	static const struct functions functions = {
	        .major = INTERFACE_MAJOR,
	        .minor = INTERFACE_MINOR,
	        .create = model_create,
	        .destroy = model_destroy,
	        .aperture = model_aperture,
	        .allocated = model_allocated,
	        .freed = model_freed,
	        .on_notify = model_callback,
	        .on_wait = model_callback,
	        .queue = model_queue,
	        .on_set_event = model_set_event,
	        .queue_end = model_queue_end,
	};

	return &functions;
}

/* A file system of one directory in memory, spoken straight over /dev/fuse (linux/fuse.h): the rig for mounts that
 * refuse links, renames or fsync, or that report their errors at close. Header-only, for one test program. */
#ifndef KD_TEST_FUSE_H
#define KD_TEST_FUSE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FUSE_FILES = 64, FUSE_FILE_SIZE = 65536, FUSE_OPCODES = 64, FUSE_FIRST_NODE = 2 };

struct fuse_rig {
	int errors[FUSE_OPCODES]; /* what the server answers to an operation; 0: it does it */
	int in_place;             /* for a write to a file whose name has no leading dot: an errno, or -1: half of it */
	bool careless_rename;     /* RENAME_NOREPLACE is ignored, as by a server that never heard of flags */
	pid_t server;
};

struct fuse_file {
	unsigned names, mode;
	size_t size;
	char data[FUSE_FILE_SIZE];
};

struct fuse_name {
	char name[256];
	int file; /* -1: free */
};

static struct fuse_file fuse_files[FUSE_FILES];
static struct fuse_name fuse_names[FUSE_FILES];

static void fuse_answer(int fd, uint64_t unique, int error, const void *body, size_t size)
{
	struct fuse_out_header header = {.len = (uint32_t)(sizeof header + size), .error = -error, .unique = unique};
	struct iovec parts[] = {{&header, sizeof header}, {(void *)(uintptr_t)body, size}};
	if (writev(fd, parts, 2) < 0 && errno != ENOENT)
		_exit(1);
}

static struct fuse_attr fuse_attr_of(int file)
{
	struct fuse_attr attr = {.ino = (uint64_t)(file + FUSE_FIRST_NODE), .blksize = 4096};
	if (file < 0) {
		attr.ino = FUSE_ROOT_ID;
		attr.mode = S_IFDIR | 0777;
		attr.nlink = 2;
		return attr;
	}
	attr.mode = fuse_files[file].mode;
	attr.nlink = fuse_files[file].names;
	attr.size = fuse_files[file].size;
	return attr;
}

static int fuse_find(const char *name)
{
	for (int i = 0; i < FUSE_FILES; i++) {
		if (fuse_names[i].file >= 0 && strcmp(fuse_names[i].name, name) == 0)
			return i;
	}
	return -1;
}

static void fuse_unname(int name)
{
	if (name >= 0) {
		fuse_files[fuse_names[name].file].names--;
		fuse_names[name].file = -1;
	}
}

static void fuse_add_name(const char *name, int file)
{
	for (int i = 0; i < FUSE_FILES; i++) {
		if (fuse_names[i].file < 0) {
			(void)snprintf(fuse_names[i].name, sizeof fuse_names[i].name, "%s", name);
			fuse_names[i].file = file;
			fuse_files[file].names++;
			return;
		}
	}
}

static int fuse_new_file(uint32_t mode)
{
	static int next;
	int file = next++ % FUSE_FILES;
	fuse_files[file] = (struct fuse_file){.mode = S_IFREG | (mode & 0777)};
	return file;
}

static struct fuse_entry_out fuse_entry_of(int file)
{
	return (struct fuse_entry_out){
	        .nodeid = (uint64_t)(file + FUSE_FIRST_NODE), .generation = 1, .attr = fuse_attr_of(file)};
}

static void fuse_created(int fd, uint64_t unique, int file)
{
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} body = {.entry = fuse_entry_of(file)};
	fuse_answer(fd, unique, 0, &body, sizeof body);
}

static void fuse_rename_names(int fd, uint64_t unique, const char *from, unsigned flags, const struct fuse_rig *rig)
{
	const char *to = from + strlen(from) + 1;
	int source = fuse_find(from), target = fuse_find(to);
	if (source < 0) {
		fuse_answer(fd, unique, ENOENT, NULL, 0);
	} else if (target >= 0 && (flags & 1) && !rig->careless_rename) {
		fuse_answer(fd, unique, EEXIST, NULL, 0);
	} else {
		fuse_unname(target);
		(void)snprintf(fuse_names[source].name, sizeof fuse_names[source].name, "%s", to);
		fuse_answer(fd, unique, 0, NULL, 0);
	}
}

static void fuse_list(int fd, uint64_t unique, uint64_t offset)
{
	char body[4096];
	size_t used = 0;
	for (uint64_t i = offset; i < FUSE_FILES; i++) {
		if (fuse_names[i].file < 0)
			continue;
		struct fuse_dirent entry = {.ino = (uint64_t)(fuse_names[i].file + FUSE_FIRST_NODE),
		                            .off = i + 1,
		                            .namelen = (uint32_t)strlen(fuse_names[i].name)};
		size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + entry.namelen);
		if (used + size > sizeof body)
			break;
		memset(body + used, 0, size);
		memcpy(body + used, &entry, FUSE_NAME_OFFSET);
		memcpy(body + used + FUSE_NAME_OFFSET, fuse_names[i].name, entry.namelen);
		used += size;
	}
	fuse_answer(fd, unique, 0, body, used);
}

static bool fuse_is_final(int file)
{
	for (int i = 0; i < FUSE_FILES; i++) {
		if (fuse_names[i].file == file && fuse_names[i].name[0] != '.')
			return true;
	}
	return false;
}

static void fuse_write(int fd, const struct fuse_in_header *header, const struct fuse_write_in *in,
                       const struct fuse_rig *rig)
{
	int file = (int)header->nodeid - FUSE_FIRST_NODE, in_place = fuse_is_final(file) ? rig->in_place : 0;
	struct fuse_write_out out = {.size = in_place < 0 ? in->size / 2 : in->size};
	if (in_place > 0 || in->offset + in->size > FUSE_FILE_SIZE) {
		fuse_answer(fd, header->unique, in_place > 0 ? in_place : ENOSPC, NULL, 0);
		return;
	}
	memcpy(fuse_files[file].data + in->offset, in + 1, out.size);
	if (in->offset + out.size > fuse_files[file].size)
		fuse_files[file].size = in->offset + out.size;
	fuse_answer(fd, header->unique, 0, &out, sizeof out);
}

static void fuse_serve_content(int fd, const struct fuse_in_header *header, const void *body,
                               const struct fuse_rig *rig)
{
	int file = (int)header->nodeid - FUSE_FIRST_NODE;
	if (header->opcode == FUSE_WRITE) {
		fuse_write(fd, header, body, rig);
		return;
	}
	const struct fuse_read_in *in = body;
	size_t size = fuse_files[file].size, start = in->offset < size ? in->offset : size;
	size_t count = size - start < in->size ? size - start : in->size;
	fuse_answer(fd, header->unique, 0, fuse_files[file].data + start, count);
}

static void fuse_serve_names(int fd, const struct fuse_in_header *header, const char *body, const struct fuse_rig *rig)
{
	switch (header->opcode) {
	case FUSE_LOOKUP: {
		int name = fuse_find(body);
		struct fuse_entry_out out = fuse_entry_of(name < 0 ? 0 : fuse_names[name].file);
		fuse_answer(fd, header->unique, name < 0 ? ENOENT : 0, &out, name < 0 ? 0 : sizeof out);
		return;
	}
	case FUSE_CREATE:
	case FUSE_TMPFILE: {
		const struct fuse_create_in *in = (const void *)body;
		int file = fuse_new_file(in->mode);
		if (header->opcode == FUSE_CREATE)
			fuse_add_name((const char *)(in + 1), file);
		fuse_created(fd, header->unique, file);
		return;
	}
	case FUSE_LINK: {
		const struct fuse_link_in *in = (const void *)body;
		int file = (int)in->oldnodeid - FUSE_FIRST_NODE;
		if (fuse_find((const char *)(in + 1)) >= 0) {
			fuse_answer(fd, header->unique, EEXIST, NULL, 0);
			return;
		}
		fuse_add_name((const char *)(in + 1), file);
		struct fuse_entry_out out = fuse_entry_of(file);
		fuse_answer(fd, header->unique, 0, &out, sizeof out);
		return;
	}
	case FUSE_UNLINK:
		fuse_unname(fuse_find(body));
		fuse_answer(fd, header->unique, 0, NULL, 0);
		return;
	case FUSE_RENAME2:
		fuse_rename_names(fd, header->unique, body + sizeof(struct fuse_rename2_in),
		                  ((const struct fuse_rename2_in *)(const void *)body)->flags, rig);
		return;
	default:
		fuse_rename_names(fd, header->unique, body + sizeof(struct fuse_rename_in), 0, rig);
	}
}

static void fuse_serve_one(int fd, const struct fuse_in_header *header, const void *body, const struct fuse_rig *rig)
{
	struct fuse_open_out opened = {0};
	struct fuse_statfs_out space = {.st = {.bsize = 4096, .namelen = 255}};
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
	                             .minor = FUSE_KERNEL_MINOR_VERSION,
	                             .max_write = FUSE_FILE_SIZE,
	                             .max_readahead = 4096};
	struct fuse_attr_out attr = {.attr = fuse_attr_of((int)header->nodeid - FUSE_FIRST_NODE)};
	if (header->opcode == FUSE_FORGET || header->opcode == FUSE_BATCH_FORGET || header->opcode == FUSE_INTERRUPT)
		return;
	if (header->opcode < FUSE_OPCODES && rig->errors[header->opcode]) {
		fuse_answer(fd, header->unique, rig->errors[header->opcode], NULL, 0);
		return;
	}
	switch (header->opcode) {
	case FUSE_INIT:
		fuse_answer(fd, header->unique, 0, &init, sizeof init);
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		fuse_answer(fd, header->unique, 0, &attr, sizeof attr);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		fuse_answer(fd, header->unique, 0, &opened, sizeof opened);
		break;
	case FUSE_READDIR:
		fuse_list(fd, header->unique, ((const struct fuse_read_in *)body)->offset);
		break;
	case FUSE_STATFS:
		fuse_answer(fd, header->unique, 0, &space, sizeof space);
		break;
	case FUSE_READ:
	case FUSE_WRITE:
		fuse_serve_content(fd, header, body, rig);
		break;
	case FUSE_LOOKUP:
	case FUSE_CREATE:
	case FUSE_TMPFILE:
	case FUSE_LINK:
	case FUSE_UNLINK:
	case FUSE_RENAME:
	case FUSE_RENAME2:
		fuse_serve_names(fd, header, body, rig);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
	case FUSE_DESTROY:
		fuse_answer(fd, header->unique, 0, NULL, 0);
		break;
	default:
		fuse_answer(fd, header->unique, ENOSYS, NULL, 0);
	}
}

static void fuse_serve(int fd, const struct fuse_rig *rig)
{
	static _Alignas(8) char request[FUSE_FILE_SIZE + 8192];
	for (int i = 0; i < FUSE_FILES; i++)
		fuse_names[i].file = -1;
	for (;;) {
		ssize_t size = read(fd, request, sizeof request);
		if (size < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (size < (ssize_t)sizeof(struct fuse_in_header))
			_exit(0); /* ENODEV: unmounted */
		fuse_serve_one(fd, (const struct fuse_in_header *)(const void *)request,
		               request + sizeof(struct fuse_in_header), rig);
	}
}

/* Mounts the rig on `directory`. Returns 0 or a negative errno. */
static int fuse_start(struct fuse_rig *rig, const char *directory)
{
	char options[128];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)snprintf(options, sizeof options,
	               "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", fd);
	if (mount("kd-fuse", directory, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		int number = errno;
		(void)close(fd);
		return -number;
	}
	rig->server = fork();
	if (rig->server == 0)
		fuse_serve(fd, rig);
	(void)close(fd);
	return rig->server < 0 ? -errno : 0;
}

static void fuse_stop(struct fuse_rig *rig, const char *directory)
{
	(void)umount2(directory, MNT_DETACH);
	(void)kill(rig->server, SIGKILL);
	(void)waitpid(rig->server, NULL, 0);
}

#endif

#include "output.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE /* absent from musl 1.2.3, as is the renameat2 wrapper */
#define RENAME_NOREPLACE 1u
#endif

enum {
	REPORT_MODE = 0644,
	DIRECTORY_MODE = 0777,
	NAME_TRIES = 16,        /* random names that may be taken before we give up */
	INTERRUPTED_TRIES = 64, /* a FUSE server may answer EINTR for ever: that must not hold us */
	TEMPORARY_SIZE = sizeof ".kd-preflight-01234567.tmp",
	WAY_MISSING = 1, /* this mount does not have this way */
};

#define RETRY(result, call)                                                                                            \
	do {                                                                                                           \
		int tries_left = INTERRUPTED_TRIES;                                                                    \
		do                                                                                                     \
			(result) = (call);                                                                             \
		while ((result) < 0 && errno == EINTR && --tries_left > 0);                                            \
	} while (0)

/* The report while it has no final name. */
struct draft {
	int fd;                         /* -1 once closed */
	char temporary[TEMPORARY_SIZE]; /* "": made with O_TMPFILE */
	bool synced;                    /* fsync held; false: the file system has none */
	struct stat identity;
};

/* ---- what people are told ---- */

static const char *way_out(int number)
{
	switch (number) {
	case EACCES:
	case EPERM:
		return "name a place that this user may write to";
	case EROFS:
		return "name a place on a writable file system";
	case ENOSPC:
	case EDQUOT:
		return "make room, or name a place on another file system";
	case EFBIG:
		return "raise the limit on file sizes (ulimit -f)";
	case ENOENT:
		return "make its directory first (with a '/' at the end, the last directory of the path is made)";
	case ENAMETOOLONG:
		return "use a shorter path, with names of at most 255 bytes";
	case EEXIST:
		return "nothing is ever overwritten: name a new file, or a directory";
	default:
		return "name another place";
	}
}

static int fail(struct error *error, int number, const char *verb, const char *object)
{
	return error_set(error, number, "unable to %s %.250s: %s; %s", verb, object, strerror(number), way_out(number));
}

static void note_add(struct error *note, int number, const char *text)
{
	if (!note)
		return;
	size_t used = strlen(note->text);
	note->number = number;
	(void)snprintf(note->text + used, sizeof note->text - used, "%s%s%s%s", used ? "; " : "", text,
	               number ? ": " : "", number ? strerror(number) : "");
}

static const char *kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFLNK:
		return "a symbolic link";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	case S_IFIFO:
		return "a pipe";
	case S_IFSOCK:
		return "a socket";
	case S_IFDIR:
		return "a directory";
	default:
		return "a file";
	}
}

/* The path as shown: a name may hold anything, a terminal should not get it. */
static void show(char *shown, size_t size, const char *path)
{
	size_t i = 0;
	for (; path[i] && i + 1 < size; i++)
		shown[i] = (unsigned char)path[i] < 0x20 || path[i] == 0x7f ? '?' : path[i];
	shown[i] = '\0';
}

/* ---- names ---- */

/* Random only to be free: O_EXCL, link and RENAME_NOREPLACE decide. So a clock serves where getrandom does not. */
static unsigned random_bits(void)
{
	unsigned bits = 0;
	struct timespec now;
	if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) == (ssize_t)sizeof bits)
		return bits;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned)now.tv_nsec * 2654435761u ^ (unsigned)getpid();
}

/* Replaces the last part of the shown path too: in the directory form that is always the name. */
static void take_fresh_name(struct output *output)
{
	char when[sizeof "20261130T045448Z"];
	struct timespec now = {0};
	struct tm utc = {0};
	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &utc);
	if (strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc) == 0)
		when[0] = '\0';
	(void)snprintf(output->name, sizeof output->name, "kd-preflight-%s-%06x.json", when, random_bits() & 0xffffffu);

	char *slash = strrchr(output->path, '/');
	char *last = slash ? slash + 1 : output->path;
	(void)snprintf(last, sizeof output->path - (size_t)(last - output->path), "%s", output->name);
}

/* ---- system calls: 0 (or a descriptor), or a negative errno ---- */

static int open_at(int dir_fd, const char *name, int flags, mode_t mode)
{
	int fd;
	RETRY(fd, openat(dir_fd, name, flags | O_CLOEXEC, mode));
	return fd < 0 ? -errno : fd;
}

/* An O_PATH descriptor for a directory that may be searched and written but not read (mode 0300): it can only not be
 * synced. */
static int open_directory(int dir_fd, const char *name)
{
	int fd = open_at(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	return fd == -EACCES ? open_at(dir_fd, name, O_PATH | O_DIRECTORY, 0) : fd;
}

static int open_temporary(int dir_fd, char name[TEMPORARY_SIZE])
{
	int fd = -EEXIST;
	for (int tries = 0; tries < NAME_TRIES && fd == -EEXIST; tries++) {
		(void)snprintf(name, TEMPORARY_SIZE, ".kd-preflight-%08x.tmp", random_bits());
		fd = open_at(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, REPORT_MODE);
	}
	return fd;
}

static int remove_name(int dir_fd, const char *name)
{
	int result;
	RETRY(result, unlinkat(dir_fd, name, 0));
	return result < 0 && errno != ENOENT ? -errno : 0;
}

static int link_at(int from_fd, const char *from, const struct output *output, int flags)
{
	int result;
	RETRY(result, linkat(from_fd, from, output->dir_fd, output->name, flags));
	return result < 0 ? -errno : 0;
}

static int write_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written;
		RETRY(written, write(fd, bytes, length));
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

/* fsync(2): EINVAL and EROFS for what cannot be synced; ENOSYS from FUSE servers of the older protocol; EOPNOTSUPP from
 * network file systems. Returns WAY_MISSING for these. */
static int sync_fd(int fd)
{
	int result;
	RETRY(result, fsync(fd));
	if (result == 0)
		return 0;
	switch (errno) {
	case EINVAL:
	case EROFS:
	case ENOSYS:
	case EOPNOTSUPP:
		return WAY_MISSING;
	default:
		return -errno;
	}
}

/* close is never repeated: Linux has released the descriptor whatever it answers (close(2)). An EINTR says that a
 * server was not asked to the end, which is no loss after an fsync. */
static int close_checked(int fd, bool synced)
{
	if (close(fd) == 0 || (errno == EINTR && synced))
		return 0;
	return -errno;
}

/* ---- giving the name ---- */

/* An answer can get lost after the deed: NFS then hears EEXIST from its own repetition, and so do we after EINTR. The
 * name is ours when it leads to our very file, which the link has given one name more (open(2), on O_EXCL and NFS). */
static bool is_ours(const struct output *output, const struct draft *draft, nlink_t names)
{
	struct stat found;
	return fstatat(output->dir_fd, output->name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
	       found.st_dev == draft->identity.st_dev && found.st_ino == draft->identity.st_ino &&
	       found.st_size == draft->identity.st_size && found.st_nlink >= names;
}

/* Errors that no other way would mend. All else, EACCES and EPERM of a security module or a seccomp filter, EMLINK,
 * EXDEV, ENOENT for want of /proc or of CAP_DAC_READ_SEARCH, may concern this one call. */
static bool is_final(int result)
{
	switch (-result) {
	case EEXIST:
	case ENOSPC:
	case EDQUOT:
	case EROFS:
	case ENAMETOOLONG:
		return true;
	default:
		return false;
	}
}

static int attach_unnamed(const struct output *output, const struct draft *draft)
{
	char magic[sizeof "/proc/self/fd/-2147483648"];
	(void)snprintf(magic, sizeof magic, "/proc/self/fd/%d", draft->fd);
	int result = link_at(AT_FDCWD, magic, output, AT_SYMLINK_FOLLOW);
	if (result < 0 && !is_final(result))
		result = link_at(draft->fd, "", output, AT_EMPTY_PATH);
	return result == -EEXIST && is_ours(output, draft, 1) ? 0 : result;
}

static int attach_by_link(const struct output *output, const struct draft *draft)
{
	int result = link_at(output->dir_fd, draft->temporary, output, 0);
	return result == -EEXIST && is_ours(output, draft, 2) ? 0 : result;
}

/* The kernel looks for the target itself, so that a FUSE server which ignores the flag replaces nothing (fs/namei.c).
 */
static int attach_by_rename(const struct output *output, const struct draft *draft)
{
	long result;
	RETRY(result,
	      syscall(SYS_renameat2, output->dir_fd, draft->temporary, output->dir_fd, output->name, RENAME_NOREPLACE));
	if (result == 0)
		return 0;
	int number = errno;
	return (number == ENOENT || number == EEXIST) && is_ours(output, draft, 1) ? 0 : -number;
}

static int attach(struct output *output, const struct draft *draft,
                  int (*way)(const struct output *, const struct draft *))
{
	int result = way(output, draft);
	for (int tries = 1; result == -EEXIST && output->fresh && tries < NAME_TRIES; tries++) {
		take_fresh_name(output);
		result = way(output, draft);
	}
	return result;
}

/* ---- writing ---- */

/* Takes the final name away after a failure, or says that it stayed. */
static void withdraw(const struct output *output, struct error *error)
{
	int result = remove_name(output->dir_fd, output->name);
	if (result == 0 || !error)
		return;
	size_t used = strlen(error->text);
	(void)snprintf(error->text + used, sizeof error->text - used, "; what was written could not be removed: %s",
	               strerror(-result));
}

/* Everything that can still go wrong with the content, before there is a name. Closing a duplicate brings out what
 * close has to say (Linux calls the file system's flush at each close) while the file stays open to be linked. */
static int fill(const struct output *output, struct draft *draft, const char *bytes, size_t length, struct error *error)
{
	int result = write_all(draft->fd, bytes, length);
	if (result < 0)
		return fail(error, -result, "write the report to", output->path);
	result = sync_fd(draft->fd);
	if (result < 0)
		return fail(error, -result, "save (fsync) the report", output->path);
	draft->synced = result == 0;
	if (fstat(draft->fd, &draft->identity) < 0)
		return fail(error, errno, "examine the report", output->path);
	int copy = fcntl(draft->fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return fail(error, errno, "close the report", output->path);
	result = close_checked(copy, draft->synced);
	return result < 0 ? fail(error, -result, "save (close) the report", output->path) : 0;
}

/* Without the right to read the directory its fsync is out of reach; that of the file, after the naming, is the nearest
 * thing (ext4 and xfs commit the naming with it, being one transaction). */
static int sync_unreadable_directory(const struct output *output)
{
	int fd = open_at(output->dir_fd, output->name, O_WRONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return WAY_MISSING;
	int result = sync_fd(fd);
	(void)close(fd);
	return result;
}

/* The last step of every way: the name is there, now it has to last. */
static int finish(const struct output *output, const struct draft *draft, struct error *note, struct error *error)
{
	int result = sync_fd(output->dir_fd);
	if (result == -EBADF) {
		result = sync_unreadable_directory(output);
		if (result >= 0)
			note_add(note, 0, "the report's directory may not be read, so only the file itself was synced");
	}
	if (result < 0) {
		(void)fail(error, -result, "save (fsync) the directory of", output->path);
		withdraw(output, error);
		return result;
	}
	if (!draft->synced || result == WAY_MISSING)
		note_add(note, 0,
		         "the report is written, but this file system has no fsync: a power loss may still lose it");
	return 0;
}

static int write_unnamed(struct output *output, const char *bytes, size_t length, struct error *note,
                         struct error *error)
{
	if (output->file_fd < 0)
		return WAY_MISSING;
	struct draft draft = {.fd = output->file_fd};
	int result = fill(output, &draft, bytes, length, error);
	if (result == 0) {
		result = attach(output, &draft, attach_unnamed);
		if (result < 0 && is_final(result))
			(void)fail(error, -result, "save the report as", output->path);
		else if (result < 0)
			result = WAY_MISSING;
	}
	(void)close(output->file_fd); /* it has spoken in fill() */
	output->file_fd = -1;
	return result == 0 ? finish(output, &draft, note, error) : result;
}

/* Returns 0 with the temporary name gone or turned into the final one. */
static int name_temporary(struct output *output, const struct draft *draft, struct error *note, struct error *error)
{
	int result = attach(output, draft, attach_by_link);
	bool linked = result == 0;
	if (!linked && !is_final(result))
		result = attach(output, draft, attach_by_rename);
	if (linked || result < 0) {
		int removal = remove_name(output->dir_fd, draft->temporary);
		if (removal < 0)
			note_add(note, -removal, "a temporary file (.kd-preflight-*.tmp) could not be removed");
	}
	if (result == 0)
		return 0;
	/* EIO: CIFS answers a link so when the server has none; from a rename it is the disk. */
	if (is_final(result) || result == -EIO)
		return fail(error, -result, "save the report as", output->path);
	return WAY_MISSING;
}

static int write_temporary(struct output *output, const char *bytes, size_t length, struct error *note,
                           struct error *error)
{
	struct draft draft = {.fd = -1};
	int result = open_temporary(output->dir_fd, draft.temporary);
	if (result < 0)
		return fail(error, -result, "create a file for", output->path);
	draft.fd = result;
	result = fill(output, &draft, bytes, length, error);
	/* Really closed before it is linked: object-store mounts upload here. */
	int closed = close_checked(draft.fd, draft.synced);
	if (result == 0 && closed < 0)
		result = fail(error, -closed, "save (close) the report", output->path);
	if (result < 0) {
		(void)remove_name(output->dir_fd, draft.temporary);
		return result;
	}
	result = name_temporary(output, &draft, note, error);
	return result == 0 ? finish(output, &draft, note, error) : result;
}

static int create_in_place(struct output *output)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
	int fd = open_at(output->dir_fd, output->name, flags, REPORT_MODE);
	for (int tries = 1; fd == -EEXIST && output->fresh && tries < NAME_TRIES; tries++) {
		take_fresh_name(output);
		fd = open_at(output->dir_fd, output->name, flags, REPORT_MODE);
	}
	return fd;
}

/* One write, so that the instant in which a crash leaves less than the whole is as short as can be. */
static int fill_in_place(int fd, const char *bytes, size_t length, bool *synced)
{
	ssize_t written;
	RETRY(written, write(fd, bytes, length));
	int result = written < 0 ? -errno : (size_t)written < length ? -ENOSPC : sync_fd(fd);
	*synced = result == 0;
	int closed = close_checked(fd, *synced);
	return result < 0 ? result : closed;
}

static int write_in_place(struct output *output, const char *bytes, size_t length, struct error *note,
                          struct error *error)
{
	struct draft draft = {.fd = -1};
	int fd = create_in_place(output);
	if (fd < 0)
		return fail(error, -fd, "save the report as", output->path);
	int result = fill_in_place(fd, bytes, length, &draft.synced);
	if (result < 0) {
		(void)fail(error, -result, "write the report to", output->path);
		withdraw(output, error);
		return result;
	}
	note_add(note, 0,
	         "the report was written in place (no links or exclusive renames here): a crash at that moment "
	         "would have left a short file");
	return finish(output, &draft, note, error);
}

int output_write(struct output *output, const char *bytes, size_t length, struct error *note, struct error *error)
{
	if (note)
		note->number = 0, note->text[0] = '\0';
	if (output->dir_fd < 0)
		return error_set(error, EBADF, "unable to save the report: no place was reserved for it");
	int result = write_unnamed(output, bytes, length, note, error);
	if (result == WAY_MISSING)
		result = write_temporary(output, bytes, length, note, error);
	if (result == WAY_MISSING)
		result = write_in_place(output, bytes, length, note, error);
	return result;
}

/* ---- reserving ---- */

/* Cuts PATH before its last part; the root has none, and is its own parent. */
static void split(const char *path, char parent[sizeof((struct output *)0)->path], const char **name,
                  size_t *name_length)
{
	size_t end = strlen(path);
	while (end > 1 && path[end - 1] == '/')
		end--;
	size_t start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	*name = path + start;
	*name_length = end - start;
	while (start > 1 && path[start - 1] == '/')
		start--;
	memcpy(parent, start ? path : ".", start ? start : 1);
	parent[start ? start : 1] = '\0';
}

/* Opens the parent of PATH as dir_fd and puts its last part into name. */
static int open_parent(struct output *output, const char *path, struct error *error)
{
	char parent[sizeof output->path];
	const char *name;
	size_t length;
	split(path, parent, &name, &length);
	if (length >= sizeof output->name)
		return fail(error, ENAMETOOLONG, "create", output->path);
	memcpy(output->name, name, length);
	output->name[length] = '\0';
	output->dir_fd = open_directory(AT_FDCWD, parent);
	if (output->dir_fd < 0)
		return fail(error, -output->dir_fd, "open the directory of", output->path);
	return 0;
}

static int refuse_existing(const struct output *output, mode_t mode, struct error *error)
{
	struct stat target;
	bool dangles = S_ISLNK(mode) && fstatat(output->dir_fd, output->name, &target, 0) < 0 && errno == ENOENT;
	return error_set(error, EEXIST, "unable to write the report to %.250s: it exists (%s%s); %s", output->path,
	                 kind_of(mode), dangles ? " that leads nowhere" : "", way_out(EEXIST));
}

static int reserve_file(struct output *output, const char *path, struct error *error)
{
	struct stat found;
	int result = open_parent(output, path, error);
	if (result < 0)
		return result;
	if (fstatat(output->dir_fd, output->name, &found, AT_SYMLINK_NOFOLLOW) == 0)
		return refuse_existing(output, found.st_mode, error);
	if (errno != ENOENT)
		return fail(error, errno, "examine", output->path);
	return 0;
}

/* The new directory has to outlive a power loss as well, or the report in it would not. */
static int make_directory(struct output *output, const char *path, bool *made, struct error *error)
{
	struct stat found;
	int result = open_parent(output, path, error);
	if (result < 0)
		return result;
	if (fstatat(output->dir_fd, output->name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode))
		return refuse_existing(output, found.st_mode, error);
	RETRY(result, mkdirat(output->dir_fd, output->name, DIRECTORY_MODE));
	*made = result == 0;
	if (result < 0 && errno != EEXIST)
		return fail(error, errno, "make the directory", output->path);
	int fd = open_directory(output->dir_fd, output->name);
	result = sync_fd(output->dir_fd);
	(void)close(output->dir_fd);
	output->dir_fd = fd;
	if (fd < 0)
		return fail(error, -fd, "open the directory", output->path);
	return result < 0 && result != -EBADF ? fail(error, -result, "save (fsync) the directory", output->path) : 0;
}

static int reserve_directory(struct output *output, const char *path, bool *made, struct error *error)
{
	output->dir_fd = open_directory(AT_FDCWD, path);
	int result = output->dir_fd;
	if (result == -ENOENT)
		result = make_directory(output, path, made, error);
	else if (result < 0)
		return fail(error, -result, "open the directory", output->path);
	if (result < 0)
		return result;
	size_t length = strlen(output->path);
	if (length + 1 + sizeof "kd-preflight-20261130T045448Z-012345.json" > sizeof output->path)
		return fail(error, ENAMETOOLONG, "create a file in", output->path);
	if (output->path[length - 1] != '/')
		memcpy(output->path + length, "/", 2);
	output->fresh = 1;
	return 0;
}

/* Will the directory take a file? The file that shows it is kept where it needs no name. Everywhere else a named one
 * has the last word, whatever O_TMPFILE said (EISDIR and ENOENT before Linux 3.11, EOPNOTSUPP, EINVAL on 9p). */
static int try_directory(struct output *output, struct error *error)
{
	char name[TEMPORARY_SIZE];
	int fd = open_at(output->dir_fd, ".", O_TMPFILE | O_WRONLY, REPORT_MODE);
	if (fd >= 0) {
		output->file_fd = fd;
		return 0;
	}
	fd = open_temporary(output->dir_fd, name);
	if (fd < 0)
		return fail(error, -fd, "create a file for", output->path);
	(void)close(fd); /* empty: nothing to lose */
	int result = remove_name(output->dir_fd, name);
	return result < 0 ? fail(error, -result, "remove a trial file beside", output->path) : 0;
}

void output_init(struct output *output)
{
	*output = (struct output){.dir_fd = -1, .file_fd = -1};
}

static bool is_directory(const char *path)
{
	struct stat found;
	return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

int output_reserve(struct output *output, const char *path, struct error *error)
{
	size_t length = strlen(path);
	bool made = false;
	show(output->path, sizeof output->path, path);
	if (length == 0)
		return error_set(error, ENOENT, "unable to write the report: its path is empty; name a new file");
	if (length >= sizeof output->path)
		return fail(error, ENAMETOOLONG, "write the report to", output->path);

	int result = path[length - 1] == '/' || is_directory(path) ? reserve_directory(output, path, &made, error)
	                                                           : reserve_file(output, path, error);
	if (result == 0)
		result = try_directory(output, error);
	if (result == 0) {
		if (output->fresh)
			take_fresh_name(output);
		return 0;
	}
	output_close(output);
	if (made)
		(void)rmdir(path);
	return result;
}

void output_close(struct output *output)
{
	if (output->file_fd >= 0)
		(void)close(output->file_fd);
	if (output->dir_fd >= 0)
		(void)close(output->dir_fd);
	output->file_fd = output->dir_fd = -1;
}

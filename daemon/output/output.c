// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reserve. The writer never looks at the disk: it has a grant, a file offset up to which it may
 * write. A grant is space that is already taken, with fallocate(2), and was only taken while more
 * than the reserve remained afterwards: so the writes themselves cannot cross it, nor run into
 * ENOSPC, however late this thread is. Where fallocate() is not to be had (tmpfs: it would use
 * memory), what is granted but not yet written is reckoned as used.
 *
 * Blocks beyond the end of the file (FALLOC_FL_KEEP_SIZE) are not visible in it: a file that a
 * crash leaves behind has no zero bytes at its end.
 */

#include "daemon/output/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "common/protocol.h"
#include "common/units.h"

#define GRANT_STEP_BYTES (UINT64_C(128) << 20)
#define GRANT_LATE_BYTES (UINT64_C(1) << 20)  /* for one that is longer than was expected */
#define GRANT_MIN_BYTES  (UINT64_C(64) << 10) /* less is not worth a window */

/* Room for the sidecar and the file system's own blocks, which nobody grants. */
#define MARGIN_BYTES (UINT64_C(256) << 10)

void output_init(struct output *output, uint64_t reserve_bytes, uint64_t max_bytes)
{
    *output = (struct output){
        .fd = -1,
        .reserve_bytes = reserve_bytes,
        .max_bytes = max_bytes,
    };
}

void output_done(struct output *output)
{
    fd_close(&output->fd);
    free_charp(&output->path);
}

/* What ordinary users may still use, as df(1) shows it; 0 if the file system does not tell. */
static uint64_t available_bytes(const struct output *output)
{
    struct statvfs st;

    if (fstatvfs(output->fd, &st) < 0)
        return 0;
    return (uint64_t)st.f_bavail * st.f_frsize;
}

uint64_t output_headroom_bytes(const struct output *output, uint64_t written_bytes)
{
    uint64_t available = available_bytes(output);
    uint64_t taken = output->reserve_bytes + MARGIN_BYTES;

    if (!output->preallocates)
        taken += output->granted_bytes - min_u64(written_bytes, output->granted_bytes);
    return available > taken ? available - taken : 0;
}

/* Takes STEP bytes behind what is granted. Returns 0, or -ENOSPC to try with less. */
static int take_space(struct output *output, uint64_t step)
{
    off_t start = (off_t)output->granted_bytes;

    if (!output->preallocates)
        return 0;
    if (fallocate(output->fd, FALLOC_FL_KEEP_SIZE, start, (off_t)step) < 0) {
        if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
            return -ENOSPC;
        output->preallocates = false; /* the file system cannot */
        return 0;
    }
    if (available_bytes(output) >= output->reserve_bytes)
        return 0;
    /* Somebody else was quicker: give it back. (ext4 does so only when the file is cut, at the
     * end: behind the end of a file it punches nothing.) */
    (void)fallocate(output->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, (off_t)step);
    return -ENOSPC;
}

uint64_t output_step_bytes(const struct output *output)
{
    uint64_t step = GRANT_STEP_BYTES;

    if (output->aim_bytes > output->granted_bytes)
        step = min_u64(step, output->aim_bytes - output->granted_bytes);
    else if (output->aim_bytes)
        step = GRANT_LATE_BYTES;
    return min_u64(step, output->max_bytes - output->granted_bytes);
}

void output_extend(struct output *output, uint64_t written_bytes)
{
    uint64_t step = output_step_bytes(output);

    if (output->is_stream || output->is_final)
        return;
    output->ran_out = false;
    while (step > 0) {
        uint64_t headroom = output_headroom_bytes(output, written_bytes);

        if (step <= headroom && take_space(output, step) == 0) {
            output->granted_bytes += step;
            output->is_final = output->granted_bytes == output->max_bytes;
            return;
        }
        step = align_down(min_u64(step / 2, headroom), GRANT_MIN_BYTES);
    }
    output->is_final = !output->waits;
    output->ran_out = true;
}

/* Whether allocating ahead costs nothing but time: not where files are memory. */
static bool can_preallocate(int fd)
{
    struct statfs st;

    return fstatfs(fd, &st) == 0 && st.f_type != TMPFS_MAGIC && st.f_type != RAMFS_MAGIC;
}

static bool set_direct(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
}

static int refuse_no_space(const struct output *output, struct failure *failure)
{
    char available_text[UNITS_TEXT_MAX], reserve_text[UNITS_TEXT_MAX];

    (void)size_format(available_text, available_bytes(output));
    if (output->reserve_bytes == 0)
        return failure_set(
            failure, -ENOSPC, ERROR_NO_SPACE,
            "There is no space for %s: its file system has %s left. Free some, or write "
            "elsewhere with --output.",
            output->path, available_text);
    return failure_set(
        failure, -ENOSPC, ERROR_NO_SPACE,
        "There is no space for %s: its file system has %s left, and %s are to stay free. "
        "Free some, lower --reserve, or write elsewhere with --output.",
        output->path, available_text, size_format(reserve_text, output->reserve_bytes));
}

static int grant_first(struct output *output, struct failure *failure)
{
    output->preallocates = can_preallocate(output->fd);
    output->is_direct = set_direct(output->fd);
    output_extend(output, 0);
    return output->granted_bytes > 0 ? 0 : refuse_no_space(output, failure);
}

int output_require(struct output *output, uint64_t bytes, struct failure *failure)
{
    /* Not a disk full of grants, for all to see, only to find that it is too small. */
    if (bytes > output->granted_bytes &&
        bytes - output->granted_bytes > output_headroom_bytes(output, 0))
        return refuse_no_space(output, failure);
    while (output->granted_bytes < bytes && !output->is_final)
        output_extend(output, 0);
    return output->granted_bytes >= bytes ? 0 : refuse_no_space(output, failure);
}

/* Creates FILE, which is to be called NAME.xentrace. */
static int create(struct output *output, int directory_fd, const char *directory, const char *file,
                  const char *name, struct failure *failure)
{
    int r;

    if (asprintf(&output->path, "%s/%s.xentrace", directory, name) < 0)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    output->fd =
        openat(directory_fd, file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (output->fd < 0 && errno == EEXIST)
        return failure_set(failure, -EEXIST, ERROR_NAME_IN_USE,
                           "%s exists, and captures are never overwritten. Choose another name, or "
                           "none.",
                           output->path);
    if (output->fd < 0)
        return failure_set(failure, -errno, ERROR_OUTPUT, "Cannot create %s: %s.", output->path,
                           strerror(errno));
    r = grant_first(output, failure);
    if (r < 0)
        (void)unlinkat(directory_fd, file, 0);
    return r;
}

#define HIDDEN_PREFIX  "."
#define HIDDEN_SUFFIX  ".xentrace.new"
#define SEGMENT_SUFFIX ".xentrace.next"
#define SIDECAR_SUFFIX ".json.new" /* sidecar.c's */

static void name_file(char file[static NAME_MAX + 1], const char *prefix, const char *name,
                      const char *suffix)
{
    (void)snprintf(file, NAME_MAX + 1, "%s%s%s", prefix, name, suffix);
}

int output_create(struct output *output, int directory_fd, const char *directory, const char *name,
                  struct failure *failure)
{
    char file[NAME_MAX + 1];

    name_file(file, "", name, ".xentrace");
    return create(output, directory_fd, directory, file, name, failure);
}

int output_create_hidden(struct output *output, int directory_fd, const char *directory,
                         const char *name, struct failure *failure)
{
    char file[NAME_MAX + 1];

    name_file(file, "", name, ".xentrace");
    if (faccessat(directory_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return failure_set(failure, -EEXIST, ERROR_NAME_IN_USE,
                           "%s/%s exists, and is never overwritten. Choose another name, or none.",
                           directory, file);
    name_file(file, HIDDEN_PREFIX, name, HIDDEN_SUFFIX);
    return create(output, directory_fd, directory, file, name, failure);
}

/* Renames, but replaces nothing. */
static int publish(int directory_fd, const char *hidden, const char *file)
{
    if (renameat2(directory_fd, hidden, directory_fd, file, RENAME_NOREPLACE) == 0)
        return 0;
    /* A file system that cannot do without replacing: then the check comes a moment before. */
    if (errno != EINVAL)
        return -errno;
    if (faccessat(directory_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(directory_fd, hidden, directory_fd, file) < 0 ? -errno : 0;
}

int output_publish(int directory_fd, const char *name)
{
    char hidden[NAME_MAX + 1], file[NAME_MAX + 1];

    name_file(hidden, HIDDEN_PREFIX, name, HIDDEN_SUFFIX);
    name_file(file, "", name, ".xentrace");
    return publish(directory_fd, hidden, file);
}

void output_discard(int directory_fd, const char *name)
{
    char hidden[NAME_MAX + 1];

    name_file(hidden, HIDDEN_PREFIX, name, HIDDEN_SUFFIX);
    (void)unlinkat(directory_fd, hidden, 0); /* swept at the next start if it cannot be now */
}

int output_prepare_segment(struct output *output, int directory_fd, const char *directory,
                           const char *name, struct failure *failure)
{
    char file[NAME_MAX + 1];

    name_file(file, HIDDEN_PREFIX, name, SEGMENT_SUFFIX);
    return create(output, directory_fd, directory, file, name, failure);
}

int output_publish_segment(struct output *output, int directory_fd, const char *directory,
                           const char *prepared, const char *name)
{
    char hidden[NAME_MAX + 1], file[NAME_MAX + 1];
    char *path;
    int r;

    name_file(hidden, HIDDEN_PREFIX, prepared, SEGMENT_SUFFIX);
    name_file(file, "", name, ".xentrace");
    r = publish(directory_fd, hidden, file);
    if (r >= 0 && asprintf(&path, "%s/%s", directory, file) >= 0) {
        free_charp(&output->path);
        output->path = path;
    }
    return r;
}

void output_discard_segment(int directory_fd, const char *prepared)
{
    char hidden[NAME_MAX + 1];

    name_file(hidden, HIDDEN_PREFIX, prepared, SEGMENT_SUFFIX);
    (void)unlinkat(directory_fd, hidden, 0); /* swept at the next start if it cannot be now */
}

static bool is_hidden(const char *file, const char *suffix)
{
    size_t length = strlen(file), suffix_length = strlen(suffix);

    return file[0] == HIDDEN_PREFIX[0] && length > suffix_length + 1 &&
           strcmp(file + length - suffix_length, suffix) == 0;
}

/* It was handed over, but its daemon ended before it could give it its name. */
static bool is_written_segment(int directory_fd, const char *file)
{
    struct stat st;

    return is_hidden(file, SEGMENT_SUFFIX) &&
           fstatat(directory_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0;
}

/* Its place may be taken: then it stays as it is, for people. */
static void restore_segment(int directory_fd, const char *file)
{
    char name[NAME_MAX + 1];

    (void)snprintf(name, sizeof(name), "%.*s",
                   (int)(strlen(file) - 1 - strlen(SEGMENT_SUFFIX) + strlen(".xentrace")),
                   file + 1);
    (void)publish(directory_fd, file, name);
}

void output_sweep(int directory_fd)
{
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (!directory) {
        fd_close(&fd);
        return;
    }
    while ((entry = readdir(directory))) {
        if (is_written_segment(directory_fd, entry->d_name))
            restore_segment(directory_fd, entry->d_name);
        else if (is_hidden(entry->d_name, HIDDEN_SUFFIX) ||
                 is_hidden(entry->d_name, SEGMENT_SUFFIX) ||
                 is_hidden(entry->d_name, SIDECAR_SUFFIX))
            (void)unlinkat(directory_fd, entry->d_name, 0);
    }
    (void)closedir(directory);
}

int output_adopt(struct output *output, int fd, const char *path, struct failure *failure)
{
    struct stat st;
    int flags;

    output->path = strdup(path);
    output->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (!output->path || output->fd < 0)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory or descriptors.");
    flags = fcntl(output->fd, F_GETFL);
    if (fstat(output->fd, &st) < 0 || flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return failure_set(failure, -EBADF, ERROR_OUTPUT, "%s is not open for writing.",
                           strcmp(path, "-") == 0 ? "Standard output" : path);
    if (isatty(output->fd))
        return failure_set(
            failure, -EINVAL, ERROR_OUTPUT,
            "Trace data is binary and is not written to a terminal: redirect it, or give "
            "a file.");
    /* Without a path, standard output: appended to whatever it is. */
    output->is_stream = !S_ISREG(st.st_mode) || strcmp(path, "-") == 0;
    if (output->is_stream) {
        output->granted_bytes = UINT64_MAX;
        return 0;
    }
    /* Writes go to offsets, several at once; appending would put them where they come. */
    if ((flags & O_APPEND) && fcntl(output->fd, F_SETFL, flags & ~O_APPEND) < 0)
        return failure_set(failure, -errno, ERROR_OUTPUT, "%s can only be appended to.", path);
    if (st.st_size != 0)
        return failure_set(failure, -EEXIST, ERROR_OUTPUT,
                           "%s is not empty, and captures are never overwritten.", path);
    return grant_first(output, failure);
}

int output_finish(struct output *output, uint64_t bytes)
{
    if (output->is_stream)
        return 0;
    /* Also where the length is right already: it frees the blocks behind the end. */
    if (ftruncate(output->fd, (off_t)bytes) < 0 || fsync(output->fd) < 0)
        return -errno;
    output_drop_cache(output, bytes);
    return 0;
}

void output_drop_cache(const struct output *output, uint64_t bytes)
{
    if (output->is_stream || output->is_direct)
        return;
    /* Advice: what has not reached the disk yet stays, and goes the next time. */
    (void)sync_file_range(output->fd, 0, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
    (void)posix_fadvise(output->fd, 0, (off_t)bytes, POSIX_FADV_DONTNEED);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reserve. The writer never looks at the disk: it has a grant, a file offset up to which it may
 * write. A grant is space that is already taken, with fallocate(2), and was only taken while more
 * than the reserve remained afterwards: so the writes themselves cannot cross it, nor run into
 * ENOSPC, however late this thread is. Where fallocate() is unavailable (tmpfs: it would use
 * memory), space that is granted but not written yet counts as used.
 *
 * Blocks beyond the end of the file (FALLOC_FL_KEEP_SIZE) are not visible in it: a file that a
 * crash leaves has no zero bytes at its end.
 */

#include "daemon/output/output-file.h"

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

#include "common/sidecar-path.h"
#include "common/protocol.h"
#include "common/units.h"
#include "daemon/output/disk-call.h"
#include "daemon/output/held-files.h"
#include "daemon/output/passed-file.h"
#include "daemon/output/place.h"

#define GRANT_STEP_BYTES (UINT64_C(128) << 20)
#define GRANT_LATE_BYTES (UINT64_C(1) << 20)  /* for one that is longer than was expected */
#define GRANT_MIN_BYTES  (UINT64_C(64) << 10) /* less is not worth a window */

/*
 * No more than that part of what is left above the reserve is taken at once. Other programs write
 * to the disk while fallocate(2) runs, and ext4 takes nothing back. So the reserve is crossed by at
 * most that part, if they used up all the rest in that time.
 */
#define NEAR_PARTS 8u

/* Room for the sidecar and the file system's own blocks, which nobody grants. */
#define MARGIN_BYTES (UINT64_C(256) << 10)

void output_file_init(struct output_file *output, uint64_t reserve_bytes, uint64_t max_bytes)
{
    *output = (struct output_file){
        .fd = -1,
        .reserve_bytes = reserve_bytes,
        .max_bytes = max_bytes,
    };
}

void output_file_done(struct output_file *output)
{
    live_file_leave(&output->live);
    if (output->space)
        disk_space_set_loose(output->space, &output->unwritten_bytes, 0);
    output->space = disk_space_unref(output->space);
    fd_close(&output->fd);
    free_charp(&output->path);
}

/* Space available to ordinary users, as shown by df(1); 0: unknown. */
static uint64_t available_bytes(const struct output_file *output)
{
    struct statvfs st;

    if (fstatvfs(output->fd, &st) < 0)
        return 0;
    return (uint64_t)st.f_bavail * st.f_frsize;
}

uint64_t output_file_headroom_bytes(struct output_file *output, uint64_t written_bytes)
{
    uint64_t available = available_bytes(output);
    uint64_t taken = output->reserve_bytes + MARGIN_BYTES;

    disk_space_set_loose(
        output->space, &output->unwritten_bytes,
        min_u64(output->loose_bytes,
                output->granted_bytes - min_u64(written_bytes, output->granted_bytes)));
    taken += disk_space_loose_bytes(output->space);
    return available > taken ? available - taken : 0;
}

/*
 * Takes STEP bytes after what is granted. Returns 0, or -ENOSPC to try with less. If they cannot be
 * allocated for another reason, the writes will show whether there is space; the next step is tried
 * again.
 */
static int take_space(struct output_file *output, uint64_t step)
{
    off_t start = (off_t)output->granted_bytes;
    int r = -EOPNOTSUPP;

    if (output->preallocates)
        r = DISK_CALL(fallocate(output->fd, FALLOC_FL_KEEP_SIZE, start, (off_t)step));
    if (r == -ENOSPC || r == -EDQUOT || r == -EFBIG)
        return -ENOSPC;
    if (r < 0) {
        output->preallocates = output->preallocates && disk_error_may_pass(r);
        output->loose_bytes += step;
        return 0;
    }
    if (available_bytes(output) >= output->reserve_bytes)
        return 0;
    /* Somebody else was quicker: give it back. (ext4 does so only when the file is cut, at the
     * end: beyond the end of a file it punches nothing.) */
    (void)fallocate(output->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, (off_t)step);
    return -ENOSPC;
}

uint64_t output_file_step_bytes(const struct output_file *output)
{
    uint64_t step = GRANT_STEP_BYTES;

    if (output->aim_bytes > output->granted_bytes)
        step = min_u64(step, output->aim_bytes - output->granted_bytes);
    else if (output->aim_bytes) /* more each time, or the grant may never get ahead of the writer */
        step = max_u64(GRANT_LATE_BYTES, min_u64(step, output->granted_bytes - output->aim_bytes));
    return min_u64(step, output->max_bytes - output->granted_bytes);
}

/* With the lock of the file system's space held. Returns false if there is none. */
static bool grant_step(struct output_file *output, uint64_t step, uint64_t written_bytes)
{
    while (step > 0) {
        uint64_t headroom = output_file_headroom_bytes(output, written_bytes);
        uint64_t most = max_u64(headroom / NEAR_PARTS, min_u64(headroom, GRANT_LATE_BYTES));

        if (step > most)
            step = align_down(most, GRANT_MIN_BYTES);
        if (step > 0 && take_space(output, step) == 0) {
            output->granted_bytes += step;
            return true;
        }
        step = align_down(step / 2, GRANT_MIN_BYTES);
    }
    return false;
}

void output_file_extend(struct output_file *output, uint64_t written_bytes)
{
    uint64_t step = output_file_step_bytes(output);

    if (output->is_stream || output->is_final)
        return;
    disk_space_lock(output->space);
    output->ran_out = !grant_step(output, step, written_bytes);
    disk_space_unlock(output->space);
    output->is_final =
        output->ran_out ? !output->waits : output->granted_bytes == output->max_bytes;
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

static int refuse_no_space(const struct output_file *output, struct failure *failure)
{
    char available_text[UNITS_TEXT_MAX], reserve_text[UNITS_TEXT_MAX];

    (void)size_format(available_text, available_bytes(output));
    if (output->reserve_bytes == 0)
        return failure_set(failure, -ENOSPC, ERROR_NO_SPACE,
                           "There is no space for %s: its file system has %s left. Free some "
                           "space, or choose another file with --output.",
                           output->path, available_text);
    return failure_set(
        failure, -ENOSPC, ERROR_NO_SPACE,
        "There is no space for %s: its file system has %s left, and the reserve is %s. Free some "
        "space, lower --reserve, or choose another file with --output.",
        output->path, available_text, size_format(reserve_text, output->reserve_bytes));
}

static void find_reserve(struct output_file *output)
{
    struct statvfs st;

    if (output->reserve_bytes != DISK_RESERVE_AUTO)
        return;
    output->reserve_bytes = 0;
    if (fstatvfs(output->fd, &st) == 0)
        output->reserve_bytes =
            disk_auto_reserve_bytes(output->keep_free, (uint64_t)st.f_blocks * st.f_frsize,
                                    (uint64_t)st.f_bavail * st.f_frsize);
}

static int grant_first(struct output_file *output, struct failure *failure)
{
    struct stat st;
    int r;

    r = DISK_CALL(fstat(output->fd, &st));
    if (r < 0)
        return failure_set(failure, r, ERROR_OUTPUT, "Cannot read the state of %s: %s.",
                           output->path, strerror(-r));
    output->space = disk_space_ref(st.st_dev);
    if (!output->space)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    find_reserve(output);
    output->preallocates = can_preallocate(output->fd);
    output->is_direct = !output->is_buffered && set_direct(output->fd);
    output_file_extend(output, 0);
    return output->granted_bytes > 0 ? 0 : refuse_no_space(output, failure);
}

int output_file_require(struct output_file *output, uint64_t bytes, struct failure *failure)
{
    /* Checked first, so as not to fill a disk with grants only to find that it is too small. */
    if (bytes > output->granted_bytes &&
        bytes - output->granted_bytes > output_file_headroom_bytes(output, 0))
        return refuse_no_space(output, failure);
    while (output->granted_bytes < bytes && !output->is_final)
        output_file_extend(output, 0);
    return output->granted_bytes >= bytes ? 0 : refuse_no_space(output, failure);
}

#define HIDDEN_PREFIX         "."
#define HIDDEN_SUFFIX         TRACE_SUFFIX ".new"
#define SEGMENT_ENDING        ".next"
#define SEGMENT_SUFFIX        TRACE_SUFFIX SEGMENT_ENDING
#define SEGMENT_SUFFIX_PACKED TRACE_SUFFIX TRACE_SUFFIX_PACKED SEGMENT_ENDING
#define SIDECAR_SUFFIX        ".json.new" /* sidecar.c's */

/* A snapshot that is hidden has the same name if it is compressed: so there is one at a time. */
static void name_file(char file[static NAME_MAX + 1], const char *name, enum output_naming naming,
                      bool is_packed)
{
    static const char *const suffixes[][2] = {
        [OUTPUT_NAMED] = {TRACE_SUFFIX, TRACE_SUFFIX TRACE_SUFFIX_PACKED},
        [OUTPUT_HIDDEN] = {HIDDEN_SUFFIX, HIDDEN_SUFFIX},
        [OUTPUT_PREPARED] = {SEGMENT_SUFFIX, SEGMENT_SUFFIX_PACKED},
    };

    (void)snprintf(file, NAME_MAX + 1, "%s%s%s", naming == OUTPUT_NAMED ? "" : HIDDEN_PREFIX, name,
                   suffixes[naming][is_packed]);
}

/* Compressed or not: they would have the same sidecar. */
static bool is_published(int directory_fd, const char *name)
{
    char file[NAME_MAX + 1];

    for (int is_packed = 0; is_packed <= 1; is_packed++) {
        name_file(file, name, OUTPUT_NAMED, is_packed);
        if (faccessat(directory_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

static int refuse_existing(const struct output_file *output, struct failure *failure)
{
    return failure_set(
        failure, -EEXIST, ERROR_NAME_IN_USE,
        "%s exists, and captures are never overwritten. Choose another name, or omit the name.",
        output->path);
}

/* Nothing is swept that is being created. */
static int create_live(struct output_file *output, int directory_fd, const char *file)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int r;

    live_files_lock();
    r = DISK_CALL(output->fd = openat(directory_fd, file, flags, 0640));
    if (r >= 0) {
        (void)snprintf(output->file, sizeof(output->file), "%s", file);
        r = live_file_enter(&output->live, output->fd);
    }
    live_files_unlock();
    return r;
}

int output_file_create(struct output_file *output, int directory_fd, const char *directory,
                       const char *name, enum output_naming naming, output_check_fn check,
                       struct failure *failure)
{
    char file[NAME_MAX + 1], published[NAME_MAX + 1];
    int r;

    name_file(file, name, naming, output->is_packed);
    name_file(published, name, OUTPUT_NAMED, output->is_packed);
    if (asprintf(&output->path, "%s/%s", directory, published) < 0) {
        output->path = NULL;
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    }
    if (naming != OUTPUT_PREPARED && /* a segment whose name is taken is given another one */
        is_published(directory_fd, name))
        return refuse_existing(output, failure);
    r = check ? check(directory_fd, directory, name, failure) : 0;
    if (r < 0)
        return r;
    r = create_live(output, directory_fd, file);
    if (r == -EEXIST)
        return refuse_existing(output, failure);
    if (r < 0)
        return failure_set(failure, r, ERROR_OUTPUT, "Cannot create %s: %s.", output->path,
                           strerror(-r));
    /* Another file may have been published, and given up the hidden name, since the first look. */
    if (naming == OUTPUT_HIDDEN && is_published(directory_fd, name))
        r = refuse_existing(output, failure);
    else
        r = grant_first(output, failure);
    if (r < 0) {
        output_file_remove(output, directory_fd);
        live_file_leave(&output->live);
        fd_close(&output->fd);
    }
    return r;
}

int output_file_publish(struct output_file *output, int directory_fd, const char *directory,
                        const char *name)
{
    char file[NAME_MAX + 1];
    char *path;
    int r;

    name_file(file, name, OUTPUT_NAMED, output->is_packed);
    r = place_file(directory_fd, output->file, file);
    if (r < 0)
        return r;
    (void)snprintf(output->file, sizeof(output->file), "%s", file);
    output->is_published = true;
    if (asprintf(&path, "%s/%s", directory, file) >= 0) {
        free_charp(&output->path);
        output->path = path;
    }
    return DISK_CALL(fsync(directory_fd));
}

void output_file_remove(struct output_file *output, int directory_fd)
{
    /* A hidden one that stays is swept at the next start. */
    (void)DISK_CALL(unlinkat(directory_fd, output->file, 0));
}

static bool is_hidden(const char *file, const char *suffix)
{
    size_t length = strlen(file), suffix_length = strlen(suffix);

    return file[0] == HIDDEN_PREFIX[0] && length > suffix_length + 1 &&
           strcmp(file + length - suffix_length, suffix) == 0;
}

/* If its name is taken, the hidden file stays, for people to look at. */
static void restore_segment(int directory_fd, const char *file)
{
    char name[NAME_MAX + 1];

    (void)snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - 1 - strlen(SEGMENT_ENDING)),
                   file + 1);
    (void)place_file(directory_fd, file, name);
}

static void sweep_hidden(int directory_fd, const char *file)
{
    bool is_segment = is_hidden(file, SEGMENT_SUFFIX) || is_hidden(file, SEGMENT_SUFFIX_PACKED);
    struct stat st;

    if (!is_segment && !is_hidden(file, HIDDEN_SUFFIX) && !is_hidden(file, SIDECAR_SUFFIX))
        return;
    if (DISK_CALL(fstatat(directory_fd, file, &st, AT_SYMLINK_NOFOLLOW)) < 0 ||
        live_files_have(&st))
        return;
    /* A segment that holds records, whose daemon ended before it could name the file. */
    if (is_segment && st.st_size > 0)
        restore_segment(directory_fd, file);
    else
        (void)DISK_CALL(unlinkat(directory_fd, file, 0));
}

/* One file at a time: others are created in between. */
static void sweep_file(int directory_fd, const char *file)
{
    if (file[0] != HIDDEN_PREFIX[0]) {
        if (trace_path_is_trace(file))
            (void)output_file_trim(directory_fd, file); /* or vacuum.c does it later */
        return;
    }
    live_files_lock();
    sweep_hidden(directory_fd, file);
    live_files_unlock();
}

static void sweep_directory(int directory_fd, const char *prefix)
{
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (!directory) {
        fd_close(&fd);
        return;
    }
    while ((entry = readdir(directory)))
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            sweep_file(directory_fd, entry->d_name);
    (void)closedir(directory);
}

void output_file_sweep(int directory_fd)
{
    sweep_directory(directory_fd, "");
}

void output_file_sweep_segments(int directory_fd, const char *name)
{
    char prefix[NAME_MAX + 1];

    (void)snprintf(prefix, sizeof(prefix), "%s%s.", HIDDEN_PREFIX, name);
    sweep_directory(directory_fd, prefix);
}

/* XFS allocates ahead by itself, and file systems count blocks of their own. */
#define SPARE_MIN_BYTES (UINT64_C(1) << 20)

bool output_file_has_spare(const struct stat *st)
{
    return (uint64_t)st->st_blocks * 512 > (uint64_t)st->st_size + SPARE_MIN_BYTES;
}

static bool can_trim(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && output_file_has_spare(st) &&
           !live_files_have(st);
}

/*
 * With the lock of the live files held: none has just been created, and is to grow. One that is not
 * to be trimmed is not even opened, as who removes it would take that for a reader.
 */
static bool trim_file(int directory_fd, const char *file)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    _cleanup_fd_ int fd = -1;
    struct stat st;

    if (fstatat(directory_fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0 || !can_trim(&st))
        return false;
    fd = openat(directory_fd, file, flags);
    return fd >= 0 && fstat(fd, &st) == 0 && can_trim(&st) &&
           !held_file_is_shared(fd) && /* the kernel may still complete its last writes */
           DISK_CALL(ftruncate(fd, st.st_size)) == 0;
}

bool output_file_trim(int directory_fd, const char *file)
{
    bool is_trimmed;

    live_files_lock();
    is_trimmed = trim_file(directory_fd, file);
    live_files_unlock();
    return is_trimmed;
}

int output_file_adopt(struct output_file *output, int fd, const char *path, bool by_root,
                      struct failure *failure)
{
    int r;

    output->fd = fd;
    output->path = strdup(path);
    if (!output->path)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    r = passed_file_check_output(fd, path, by_root, &output->is_stream, failure);
    if (r < 0)
        return r;
    if (!output->is_stream)
        return grant_first(output, failure);
    output->granted_bytes = UINT64_MAX;
    output->reserve_bytes = 0;
    return 0;
}

int output_file_finish(struct output_file *output, uint64_t bytes)
{
    int r;

    if (output->is_stream)
        return 0;
    /* Also where the length is right already: it frees the blocks beyond the end. */
    r = DISK_CALL(ftruncate(output->fd, (off_t)bytes));
    if (r >= 0)
        r = DISK_SYNC(output->fd);
    if (r < 0)
        return r;
    output_file_drop_cache(output, bytes);
    return 0;
}

void output_file_drop_cache(const struct output_file *output, uint64_t bytes)
{
    if (output->is_stream || output->is_direct)
        return;
    /* Advice: pages that have not reached the disk yet stay, and leave the next time. */
    (void)sync_file_range(output->fd, 0, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
    (void)posix_fadvise(output->fd, 0, (off_t)bytes, POSIX_FADV_DONTNEED);
}

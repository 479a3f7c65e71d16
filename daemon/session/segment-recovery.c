// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel may still be completing the last writes of a process that was killed: a file is read
 * when no process has it open for writing any more, which a read lease shows.
 */

#include "daemon/session/segment-recovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "common/protocol.h"
#include "common/seek-table.h"
#include "common/sidecar-path.h"
#include "common/trace-file.h"
#include "common/unpack.h"
#include "common/util.h"
#include "common/write-all.h"
#include "daemon/output/disk-call.h"
#include "daemon/output/live-files.h"
#include "daemon/output/output-file.h"
#include "daemon/output/sidecar.h"
#include "daemon/output/state-files.h"

#define LEASE_TRIES      200u
#define LEASE_PAUSE_MSEC 10

/* --- A finished one, by its sidecar. --- */

static struct json_object *member(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;

    (void)json_object_object_get_ex(object, key, &value); /* NULL of what is no object */
    return value;
}

static uint64_t number_of(struct json_object *object, const char *key)
{
    return json_object_get_uint64(member(object, key));
}

static int take_sidecar_cpus(struct recovered_segment *segment, struct json_object *cpus,
                             unsigned int nr_cpus)
{
    if (!json_object_is_type(cpus, json_type_array))
        return -EBADMSG;
    for (size_t i = 0; i < json_object_array_length(cpus); i++) {
        struct json_object *entry = json_object_array_get_idx(cpus, i);
        uint64_t cpu = number_of(entry, "cpu");

        if (cpu >= nr_cpus)
            return -EBADMSG;
        segment->cpus[cpu].delivered = number_of(entry, "delivered");
        segment->cpus[cpu].last_tsc = number_of(entry, "last_tsc");
    }
    return 0;
}

static int take_sidecar(struct recovered_segment *segment, struct json_object *sidecar,
                        unsigned int nr_cpus)
{
    struct json_object *object = member(sidecar, "segment");
    struct segment *facts = &segment->segment;

    facts->bytes = number_of(object, "bytes");
    facts->plain_bytes = number_of(object, "plain_bytes");
    facts->raw_bytes = number_of(object, "raw_bytes");
    facts->first_tsc = number_of(object, "first_tsc");
    facts->last_tsc = number_of(object, "last_tsc");
    facts->first_ns = number_of(object, "first_ns");
    facts->last_ns = number_of(object, "last_ns");
    facts->records = number_of(object, "records");
    facts->lost = number_of(object, "lost");
    facts->dropped = number_of(object, "dropped");
    facts->complete_from_tsc = number_of(object, "complete_from_tsc");
    facts->reason = segment_reason_parse(json_object_get_string(member(object, "reason")));
    facts->is_packed = member(object, "compression");
    return take_sidecar_cpus(segment, member(member(object, "ledger"), "cpus"), nr_cpus);
}

/* --- One that was being written. --- */

/* Opens the trace NAME, compressed or not: that may have changed since the segment before. */
static int open_to_read(int directory_fd, const char *name)
{
    char file[NAME_MAX + 1];
    int fd = -1;

    for (int is_packed = 0; is_packed <= 1 && fd < 0; is_packed++) {
        state_file_name(file, name, is_packed);
        fd = openat(directory_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    }
    return fd < 0 ? -errno : fd;
}

/* Takes a descriptor of its own: a read lease is for one that cannot write. */
static void await_last_writes(int directory_fd, const char *name)
{
    const struct timespec pause = {.tv_nsec = LEASE_PAUSE_MSEC * 1000000};
    _cleanup_fd_ int fd = open_to_read(directory_fd, name);

    for (unsigned int i = 0; fd >= 0 && i < LEASE_TRIES; i++) {
        if (fcntl(fd, F_SETLEASE, F_RDLCK) >= 0 || errno != EAGAIN)
            return; /* closing it gives the lease back */
        (void)nanosleep(&pause, NULL);
    }
}

/* It completes a compressed file. */
static int append_seek_table(int fd, const struct seek_table *table, off_t end)
{
    size_t length;
    _cleanup_free_ char *bytes = seek_table_make(table, &length);

    if (!bytes)
        return -ENOMEM;
    if (lseek(fd, end, SEEK_SET) < 0)
        return -errno;
    return write_all(fd, bytes, length);
}

/*
 * A compressed file is cut after its last whole frame, which holds whole windows, and gets its seek
 * table. If that cannot be written, as on a full disk, it stays without one: then it is read as a
 * whole, and holds the same.
 */
static int finish_packed(int fd)
{
    _cleanup_(unpack_freep) struct unpack *unpack = NULL;
    _cleanup_(seek_table_done) struct seek_table table = {0};
    off_t end = 0;
    int r;

    r = unpack_new_fd(fd, NULL, 0, &unpack);
    if (r < 0)
        return r;
    r = unpack_list_frames(unpack, &table);
    if (r < 0)
        return r;
    if (table.nr_frames > 0)
        end = (off_t)table.frames[table.nr_frames].stored;
    r = DISK_CALL(ftruncate(fd, end));
    if (r < 0 || end == 0 || append_seek_table(fd, &table, end) == 0)
        return r;
    return DISK_CALL(ftruncate(fd, end));
}

static void take_summary(struct recovered_segment *segment,
                         const struct trace_file_summary *summary, unsigned int nr_cpus)
{
    struct segment *facts = &segment->segment;

    facts->bytes = summary->is_packed ? summary->stored_bytes : summary->sound_bytes;
    facts->plain_bytes = summary->is_packed ? summary->sound_bytes : 0;
    facts->first_tsc = summary->first_tsc;
    facts->last_tsc = summary->last_tsc;
    facts->records = summary->records;
    facts->lost = summary->lost;
    facts->reason = SEGMENT_RESTART;
    segment->windows = summary->windows;
    memcpy(segment->class_records, summary->class_records, sizeof(segment->class_records));
    for (unsigned int cpu = 0; cpu < nr_cpus && cpu < summary->nr_cpus; cpu++)
        segment->cpus[cpu] = (struct recovered_cpu){
            .delivered = summary->cpus[cpu].records,
            .told = summary->cpus[cpu].lost,
            .last_tsc = summary->cpus[cpu].last_tsc,
        };
}

/*
 * Compressed or not: that may have changed since the segment before. Its length is about to change:
 * it is LIVE for those that cut files.
 */
static int open_trace(const struct recovery_request *request, const char *name,
                      struct live_file *live, bool *ret_is_packed)
{
    char file[NAME_MAX + 1];
    int fd = -1, r = -ENOENT;

    live_files_lock();
    for (int is_packed = 0; is_packed <= 1 && r < 0; is_packed++) {
        state_file_name(file, name, is_packed);
        r = DISK_CALL(fd = openat(request->directory_fd, file, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
        *ret_is_packed = is_packed;
    }
    if (r >= 0)
        r = live_file_enter(live, fd);
    live_files_unlock();
    if (r >= 0)
        return fd;
    fd_close(&fd);
    return r;
}

/* Returns 1 if nothing is in it: then the file is gone. */
static int read_trace(struct recovered_segment *segment, const struct recovery_request *request,
                      const char *name)
{
    _cleanup_(live_file_leave) struct live_file live = {0};
    struct trace_file_summary *summary = NULL;
    bool is_packed, is_empty;
    _cleanup_fd_ int fd = -1;
    int r;

    await_last_writes(request->directory_fd, name);
    fd = open_trace(request, name, &live, &is_packed);
    if (fd < 0)
        return fd;
    r = is_packed ? finish_packed(fd) : 0;
    if (r < 0)
        return r;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    r = trace_file_scan(fd, &summary);
    if (r < 0)
        return r;
    is_empty = summary->sound_bytes == 0;
    take_summary(segment, summary, request->nr_cpus);
    segment->segment.is_packed = is_packed;
    trace_file_summary_free(summary);
    if (is_empty) {
        r = state_file_remove(request->directory_fd, name, NULL);
        return r < 0 ? r : 1;
    }
    r = DISK_CALL(ftruncate(fd, (off_t)segment->segment.bytes));
    if (r < 0)
        return r;
    segment->is_read = true;
    return 0;
}

/* Before its sidecar is written. */
static int sync_trace(const struct recovery_request *request, const char *name)
{
    _cleanup_fd_ int fd = open_to_read(request->directory_fd, name);

    return fd < 0 ? fd : DISK_SYNC(fd);
}

/* --- All of them. --- */

static void name_segment(char name[static SEGMENT_NAME_MAX], const struct recovery_request *request,
                         uint32_t number)
{
    (void)snprintf(name, SEGMENT_NAME_MAX, "%s.%05u", request->name, number);
}

/* Takes the figures of a file that is read later. */
static int find_segment(struct recovered_segment *segment, const struct recovery_request *request,
                        const char *name)
{
    char file[NAME_MAX + 1];
    struct stat st;

    segment->is_unread = true;
    for (int is_packed = 0; is_packed <= 1; is_packed++) {
        state_file_name(file, name, is_packed);
        if (fstatat(request->directory_fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        segment->segment.is_packed = is_packed;
        segment->segment.bytes = (uint64_t)st.st_size;
        return 0;
    }
    return 1; /* it has just gone */
}

static int recover_segment(struct recovered_segment *segment,
                           const struct recovery_request *request, uint32_t number)
{
    struct json_object *sidecar;
    char name[SEGMENT_NAME_MAX];

    name_segment(name, request, number);
    *segment = (struct recovered_segment){.segment.number = number};
    segment->cpus = calloc(request->nr_cpus, sizeof(*segment->cpus));
    if (!segment->cpus)
        return -ENOMEM;
    if (!request->has_state || number <= request->finished_number)
        return find_segment(segment, request, name);
    sidecar = state_sidecar_read(request->directory_fd, name);
    segment->has_sidecar = member(sidecar, "segment");
    json_object_put(sidecar);
    return read_trace(segment, request, name);
}

int recovery_complete(const struct recovery_request *request, struct recovered_segment *segment)
{
    struct json_object *sidecar;
    char name[SEGMENT_NAME_MAX];
    int r = -EBADMSG;

    name_segment(name, request, segment->segment.number);
    if (!segment->is_unread)
        return sync_trace(request, name);
    sidecar = state_sidecar_read(request->directory_fd, name);
    segment->has_sidecar = member(sidecar, "segment");
    if (segment->has_sidecar)
        r = take_sidecar(segment, sidecar, request->nr_cpus);
    json_object_put(sidecar);
    if (r < 0)
        r = read_trace(segment, request, name);
    if (r == 0 && segment->is_read)
        r = sync_trace(request, name);
    if (request->has_state)
        segment->is_read = false; /* the ledger has it */
    segment->is_unread = r != 0;
    return r;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return left < right ? -1 : left > right;
}

static int add_number(uint32_t **numbers, size_t *count, uint32_t number)
{
    uint32_t *longer = reallocarray(*numbers, *count + 1, sizeof(*longer));

    if (!longer)
        return -ENOMEM;
    *numbers = longer;
    longer[(*count)++] = number;
    return 0;
}

/* NAME.00001.xentrace: 1; 0: another file. */
static uint32_t number_of_file(const char *file, const char *session)
{
    char name[NAME_MAX + 1];

    if (!trace_path_is_trace(file))
        return 0;
    (void)snprintf(name, sizeof(name), "%.*s", (int)trace_path_stem(file), file);
    if (!state_name_is_segment(name, session))
        return 0;
    return (uint32_t)strtoul(strrchr(name, '.') + 1, NULL, 10);
}

static int list_numbers(const struct recovery_request *request, uint32_t **ret_numbers,
                        size_t *ret_count)
{
    int fd = openat(request->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    int r = 0;

    if (!directory) {
        r = -errno;
        fd_close(&fd);
        return r;
    }
    while (r >= 0 && (entry = readdir(directory))) {
        uint32_t number = number_of_file(entry->d_name, request->name);

        if (number > 0)
            r = add_number(ret_numbers, ret_count, number);
    }
    (void)closedir(directory);
    if (r >= 0 && *ret_count > 0)
        qsort(*ret_numbers, *ret_count, sizeof(**ret_numbers), compare_numbers);
    return r;
}

static int recover_numbers(const struct recovery_request *request, const uint32_t *numbers,
                           size_t count, struct recovery *recovery, struct failure *failure)
{
    recovery->segments = calloc(count + 1, sizeof(*recovery->segments));
    if (!recovery->segments)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    for (size_t i = 0; i < count; i++) {
        struct recovered_segment *segment = &recovery->segments[recovery->count];
        int r = recover_segment(segment, request, numbers[i]);

        if (r == 0) {
            recovery->count++;
            recovery->last_number = numbers[i];
            continue;
        }
        free(segment->cpus);
        if (r < 0)
            return failure_set(failure, r, ERROR_OUTPUT,
                               "Cannot complete segment %s/%s.%05u, which was being written "
                               "before the restart: %s.",
                               request->directory, request->name, numbers[i], strerror(-r));
    }
    return 0;
}

/* A trace NAME.xentrace of another capture may be there, which needs its sidecar to be read. */
static bool sidecar_is_foreign(const struct recovery_request *request)
{
    struct json_object *sidecar = state_sidecar_read(request->directory_fd, request->name);
    bool is_ours = member(sidecar, "segments");
    struct failure failure;

    json_object_put(sidecar);
    return !is_ours && sidecar_check_none(request->directory_fd, request->directory, request->name,
                                          &failure) < 0;
}

int recovery_read(const struct recovery_request *request, struct recovery *ret_recovery,
                  struct failure *failure)
{
    uint32_t *numbers = NULL;
    size_t count = 0;
    int r;

    *ret_recovery = (struct recovery){0};
    output_file_sweep_segments(request->directory_fd, request->name); /* gives them their names */
    r = list_numbers(request, &numbers, &count);
    if (r < 0)
        (void)failure_set(failure, r, ERROR_OUTPUT, "Cannot read the state directory %s: %s.",
                          request->directory, strerror(-r));
    else
        r = recover_numbers(request, numbers, count, ret_recovery, failure);
    free(numbers);
    if (r < 0)
        recovery_done(ret_recovery);
    ret_recovery->sidecar_is_foreign = !request->has_state && sidecar_is_foreign(request);
    return r;
}

void recovery_done(struct recovery *recovery)
{
    for (size_t i = 0; i < recovery->count; i++)
        free(recovery->segments[i].cpus);
    free(recovery->segments);
    *recovery = (struct recovery){0};
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The files of a disk ring: what was asked for, how they are named, which are there, and what they
 * hold. One at a time is deleted, the oldest, and its records become evicted ones when it is gone.
 * Whoever needs room looks again then: segments_advance() asks each in turn.
 */

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/xen.h"
#include "common/protocol.h"
#include "common/sidecar-path.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/clock-history.h"
#include "daemon/base/log.h"
#include "daemon/output/held-files.h"
#include "daemon/output/output.h"
#include "daemon/output/sidecar.h"
#include "daemon/output/state-files.h"
#include "daemon/session/segments-state.h"

#define SIZE_MIN_BYTES     (UINT64_C(1) << 20)
#define TIME_MIN_USEC      USEC_PER_SEC
#define KEEP_FILES_MAX     99999u              /* five digits */
#define KEEP_SLACK_BYTES   (UINT64_C(1) << 20) /* a round may be longer than what is left */
#define KEEP_DEFAULT_PARTS 8u /* segments in keep-size=, if they have no size of their own */

/* --- What was asked for. --- */

static int check_others(const struct session_options *options, bool segmented,
                        struct failure *failure)
{
    if (!segmented && (options->keep_files || options->keep_size_bytes))
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "--keep-files and --keep-size limit segments: they need --segment-size "
                           "or --segment-time.");
    if (!segmented && options->on_reserve && strcmp(options->on_reserve, "rotate") == 0)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "--on-reserve rotate deletes the oldest segments: it needs "
                           "--segment-size or --segment-time.");
    if (segmented && options->has_output)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "Segments are written to xentraced's own directory: omit --output.");
    if (segmented && options->memory_bytes)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A capture is kept either in memory or in segments on the disk: use "
                           "either --memory, or --segment-size and --segment-time.");
    if (segmented && options->max_size_bytes)
        return failure_set(
            failure, -EINVAL, ERROR_INVALID,
            "--max-size limits a capture of one file: to limit segments, use --keep-size.");
    return 0;
}

static int check_shape(const struct session_options *options, struct failure *failure)
{
    char text[UNITS_TEXT_MAX];

    if (options->segment_size_bytes && options->segment_size_bytes < SIZE_MIN_BYTES)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A segment of %s is too small: use --segment-size of at least %s.",
                           size_format(text, options->segment_size_bytes), "1M");
    if (options->segment_size_bytes >= UINT64_MAX / 4 || options->keep_size_bytes >= UINT64_MAX / 4)
        return failure_set(failure, -EINVAL, ERROR_INVALID, "No disk is that large.");
    if (options->segment_time_usec && options->segment_time_usec < TIME_MIN_USEC)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A segment of %s is too short: use --segment-time of at least 1 s.",
                           duration_format(text, options->segment_time_usec));
    if (options->keep_files == 1 || options->keep_files > KEEP_FILES_MAX)
        return failure_set(
            failure, -EINVAL, ERROR_INVALID,
            "--keep-files must be from 2 (the current segment and a finished one) to %u.",
            KEEP_FILES_MAX);
    return 0;
}

static int check_keep_size(const struct segments *segments, struct failure *failure)
{
    uint64_t min = 2 * segments->size_bytes + KEEP_SLACK_BYTES;
    char text[UNITS_TEXT_MAX];

    if (!segments->keep_bytes || segments->keep_bytes >= min)
        return 0;
    return failure_set(failure, -EINVAL, ERROR_INVALID,
                       "--keep-size must hold two segments and 1 MiB: use at least %s.",
                       size_format(text, min));
}

int segments_check_options(const struct session_options *options, bool *ret_segmented,
                           struct failure *failure)
{
    bool segmented = options->segment_size_bytes || options->segment_time_usec;
    int r;

    r = check_others(options, segmented, failure);
    if (r < 0)
        return r;
    r = check_shape(options, failure);
    if (r < 0)
        return r;
    *ret_segmented = segmented;
    return 0;
}

int segments_take_options(struct segments *segments, const struct session_options *options,
                          struct failure *failure)
{
    segments->size_bytes = options->segment_size_bytes;
    segments->time_usec = options->segment_time_usec;
    segments->keep_files = options->keep_files;
    segments->keep_bytes = options->keep_size_bytes;
    if (segments->keep_bytes && !segments->size_bytes)
        segments->size_bytes = max_u64(segments->keep_bytes / KEEP_DEFAULT_PARTS, SIZE_MIN_BYTES);
    return check_keep_size(segments, failure);
}

/* --- Names. --- */

void segment_name(const struct session *session, unsigned int number,
                  char ret_name[static SEGMENT_NAME_MAX])
{
    (void)snprintf(ret_name, SEGMENT_NAME_MAX, "%s.%05u", session->name, number);
}

void segment_path(const struct session *session, const struct segment *segment,
                  char ret_path[static PATH_MAX])
{
    char name[SEGMENT_NAME_MAX], file[NAME_MAX + 1];

    segment_name(session, segment->number, name);
    state_file_name(file, name, segment->is_packed);
    (void)snprintf(ret_path, PATH_MAX, "%s/%s", session->context->state_dir, file);
}

/* Whether FILE is NAME, a dot, digits, and the ending of a trace or ".json". */
static bool is_segment_file(const char *file, const char *name)
{
    size_t length = strlen(name);
    const char *digits, *end;

    if (strncmp(file, name, length) != 0 || file[length] != '.')
        return false;
    digits = end = file + length + 1;
    while (isdigit((unsigned char)*end))
        end++;
    return end - digits >= 5 &&
           (strcmp(end, TRACE_SUFFIX) == 0 || strcmp(end, TRACE_SUFFIX TRACE_SUFFIX_PACKED) == 0 ||
            strcmp(end, ".json") == 0);
}

/* On a worker. */
static int check_no_segments(int directory_fd, const char *directory_path, const char *name,
                             struct failure *failure)
{
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    int r = 0;

    if (!directory) {
        fd_close(&fd);
        return 0; /* then none of them can be created either */
    }
    while (r >= 0 && (entry = readdir(directory)))
        if (is_segment_file(entry->d_name, name))
            r = failure_set(failure, -EEXIST, ERROR_NAME_IN_USE,
                            "%s/%s belongs to an older capture of that name, and segments of two "
                            "captures are not mixed. Choose another name, or omit the name.",
                            directory_path, entry->d_name);
    (void)closedir(directory);
    return r;
}

int segments_check_none(int directory_fd, const char *directory, const char *name,
                        struct failure *failure)
{
    const char *number = strrchr(name, '.');
    char session_name[SESSION_NAME_MAX + 1];
    int r;

    assert(number);
    (void)snprintf(session_name, sizeof(session_name), "%.*s", (int)(number - name), name);
    r = sidecar_check_none(directory_fd, directory, session_name, failure);
    if (r < 0)
        return r;
    return check_no_segments(directory_fd, directory, session_name, failure);
}

/* --- What is in them. --- */

static uint64_t earlier_of(uint64_t a, uint64_t b)
{
    return a && (!b || a < b) ? a : b;
}

void segment_describe(const struct session *session, const struct sink *sink,
                      struct segment *ret_segment)
{
    const struct clock_history *clock = session->context->clock;
    struct segment segment = {0};
    struct sink_totals totals;

    for (unsigned int cpu = 0; cpu < session->selection.nr_cpus; cpu++) {
        struct ledger ledger;

        sink_read_ledger(sink, cpu, &ledger);
        segment.records += ledger.delivered;
        segment.lost += ledger.lost;
        segment.dropped += ledger.dropped;
        segment.first_tsc = earlier_of(ledger.first_tsc, segment.first_tsc);
        segment.last_tsc = max_u64(ledger.last_tsc, segment.last_tsc);
    }
    segment.first_ns = clock_history_realtime_ns(clock, segment.first_tsc);
    segment.last_ns = clock_history_realtime_ns(clock, segment.last_tsc);
    sink_read_totals(sink, &totals);
    segment.bytes = totals.output_bytes;
    segment.is_packed = session->settings.is_packed;
    segment.plain_bytes = totals.plain_bytes;
    segment.raw_bytes = totals.raw_bytes;
    segment.complete_from_tsc = totals.complete_from_tsc;
    *ret_segment = segment;
}

static void add_ledger(struct ledger *sum, const struct ledger *part)
{
    sum->produced += part->produced;
    sum->delivered += part->delivered;
    sum->lost += part->lost;
    sum->dropped += part->dropped;
    sum->evicted += part->evicted;
    sum->first_tsc = earlier_of(part->first_tsc, sum->first_tsc);
    sum->last_tsc = max_u64(part->last_tsc, sum->last_tsc);
}

static void add_totals(struct sink_totals *sum, const struct sink_totals *part)
{
    sum->output_bytes += part->output_bytes;
    sum->plain_bytes += part->plain_bytes;
    sum->raw_bytes += part->raw_bytes;
    sum->queued_bytes += part->queued_bytes;
    sum->windows += part->windows;
    sum->complete_from_tsc = earlier_of(part->complete_from_tsc, sum->complete_from_tsc);
    sum->last_loss_tsc = max_u64(part->last_loss_tsc, sum->last_loss_tsc);
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        sum->class_records[i] += part->class_records[i];
    for (unsigned int i = 0; i < DROP_CAUSES; i++)
        sum->drops[i] += part->drops[i];
}

void segments_add_ledger(const struct storage *storage, unsigned int cpu, struct ledger *ledger)
{
    const struct segments *segments = segments_of(storage);
    struct ledger before;

    add_ledger(ledger, &segments->past[cpu]);
    if (!segments->before)
        return;
    sink_read_ledger(segments->before, cpu, &before);
    add_ledger(ledger, &before);
}

void segments_add_totals(const struct storage *storage, struct sink_totals *totals)
{
    const struct segments *segments = segments_of(storage);
    struct sink_totals before;

    add_totals(totals, &segments->past_totals);
    if (!segments->before)
        return;
    sink_read_totals(segments->before, &before);
    add_totals(totals, &before);
    totals->held_bytes += before.held_bytes; /* past ones hold nothing, and write nothing */
    totals->writing_since_usec = earlier_of(before.writing_since_usec, totals->writing_since_usec);
}

void segments_add_sink(const struct sink *sink, unsigned int nr_cpus, struct ledger *past,
                       struct sink_totals *totals)
{
    struct sink_totals added;

    for (unsigned int cpu = 0; cpu < nr_cpus; cpu++) {
        struct ledger ledger;

        sink_read_ledger(sink, cpu, &ledger);
        add_ledger(&past[cpu], &ledger);
    }
    sink_read_totals(sink, &added);
    add_totals(totals, &added);
}

void segments_enter_past(struct segments *segments, const struct sink *sink)
{
    segments_add_sink(sink, segments->nr_cpus, segments->past, &segments->past_totals);
}

/* --- Which are there. --- */

/* Out of the list; to be freed. */
static struct segment_file *segments_take_file(struct segments *segments, size_t i)
{
    struct segment_file *file = segments->files[i];

    segments->files_bytes -= file->segment.bytes;
    segments->nr_files--;
    memmove(&segments->files[i], &segments->files[i + 1],
            (segments->nr_files - i) * sizeof(segments->files[i]));
    return file;
}

/* Those that are neither shown nor ever deleted need not be remembered. */
static void segments_forget_old(struct segments *segments)
{
    if (segments->keep_files || segments->keep_bytes ||
        segments_session(segments)->settings.is_configured ||
        segments->storage.space.on_reserve == ON_RESERVE_ROTATE ||
        segments->nr_files < SEGMENTS_SHOWN_MAX)
        return;
    free(segments_take_file(segments, 0));
}

static struct segment_file *segments_add_file(struct segments *segments)
{
    struct segment_file *file =
        calloc(1, sizeof(*file) + segments->nr_cpus * sizeof(file->delivered[0]));
    struct segment_file **files =
        realloc(segments->files, (segments->nr_files + 1) * sizeof(*files));

    if (files)
        segments->files = files;
    if (!file || !files) {
        free(file);
        return NULL;
    }
    files[segments->nr_files++] = file;
    return file;
}

static void segments_fill_file(const struct segments *segments, struct segment_file *file,
                               const struct segment *segment, const struct sink *sink)
{
    file->segment = *segment;
    for (unsigned int cpu = 0; cpu < segments->nr_cpus; cpu++) {
        struct ledger ledger;

        sink_read_ledger(sink, cpu, &ledger);
        file->delivered[cpu] = ledger.delivered;
    }
}

void segments_list_old(struct segments *segments, const struct segment *segment,
                       const uint64_t *delivered, bool is_unread)
{
    struct segment_file *file;

    segments_forget_old(segments);
    file = segments_add_file(segments);
    if (!file)
        return; /* it stays on the disk */
    file->segment = *segment;
    file->segment.ledger = NULL;
    file->is_unread = is_unread;
    memcpy(file->delivered, delivered, segments->nr_cpus * sizeof(*delivered));
    segments->files_bytes += segment->bytes;
}

/* Returns its place in the list, where numbers ascend; the list's length: it is not there. */
static size_t segments_find_file(const struct segments *segments, unsigned int number)
{
    size_t first = 0, end = segments->nr_files;

    while (first < end) {
        size_t middle = first + (end - first) / 2;

        if (segments->files[middle]->segment.number < number)
            first = middle + 1;
        else
            end = middle;
    }
    if (first < segments->nr_files && segments->files[first]->segment.number == number)
        return first;
    return segments->nr_files;
}

void segments_update_old(struct segments *segments, const struct segment *segment,
                         const uint64_t *delivered)
{
    size_t i = segments_find_file(segments, segment->number);
    struct segment_file *file;

    if (i == segments->nr_files)
        return; /* it was forgotten */
    file = segments->files[i];
    segments->files_bytes += segment->bytes - file->segment.bytes;
    file->segment = *segment;
    file->segment.ledger = NULL;
    file->is_unread = false;
    memcpy(file->delivered, delivered, segments->nr_cpus * sizeof(*delivered));
}

void segments_drop_old(struct segments *segments, unsigned int number)
{
    size_t i = segments_find_file(segments, number);

    if (i < segments->nr_files)
        free(segments_take_file(segments, i));
}

void segments_enter_file(struct segments *segments, const struct sink *sink, unsigned int number,
                         enum segment_reason reason, struct segment *ret_segment)
{
    struct session *session = segments_session(segments);
    struct segment_file *file;

    segment_describe(session, sink, ret_segment);
    ret_segment->number = number;
    ret_segment->reason = reason;
    ret_segment->missing_before = segments->before_missing;
    segments_forget_old(segments);
    file = segments_add_file(segments);
    segments->written++;
    session->is_sidecar_due = true;
    if (!file) {
        log_line(LOG_ERR, session->name,
                 "Out of memory: segment %u is complete, but will be neither listed nor deleted.",
                 number);
        return;
    }
    segments_fill_file(segments, file, ret_segment, sink);
    segments->files_bytes += ret_segment->bytes;
}

/* --- Their sidecars. --- */

struct segment_sidecar {
    struct segments *segments;
    struct segment segment;
    struct sidecar sidecar;
    bool is_last; /* the session waits for it */
};

static void segment_sidecar_free(struct segment_sidecar *sidecar)
{
    sidecar_done(&sidecar->sidecar, NULL);
    free(sidecar);
}

static void segments_report_finished(const struct segments *segments, const struct segment *segment)
{
    const struct session *session = segments_session(segments);

    session->context->segment_finished(session->context->userdata, session, segment->number,
                                       segment);
}

static void segments_log_sidecar(const struct segments *segments, const struct segment *segment,
                                 int error)
{
    const struct session *session = segments_session(segments);
    char name[SEGMENT_NAME_MAX];

    segment_name(session, segment->number, name);
    log_line(LOG_ERR, session->name,
             "Cannot write the sidecar %s.json: %s. The segment itself is complete.", name,
             strerror(-error));
}

static void segments_handle_sidecar(void *userdata, int error)
{
    struct segment_sidecar *sidecar = userdata;
    struct segments *segments = sidecar->segments;
    struct segment segment = sidecar->segment;
    bool is_last = sidecar->is_last;

    segment_sidecar_free(sidecar);
    if (segments->is_released)
        return;
    segments->nr_sidecars--;
    if (error < 0)
        segments_log_sidecar(segments, &segment, error);
    segments_report_finished(segments, &segment);
    if (is_last)
        session_note_sidecar(segments_session(segments), false); /* may free the segments */
    else
        session_continue_end(segments_session(segments)); /* the same */
}

static int segments_send_sidecar(struct segments *segments, const struct segment *segment,
                                 const struct sink *sink, bool is_last)
{
    const struct session *session = segments_session(segments);
    const struct session_context *context = session->context;
    struct segment_sidecar *sidecar = calloc(1, sizeof(*sidecar));
    char name[SEGMENT_NAME_MAX];
    int r;

    if (!sidecar)
        return -ENOMEM;
    sidecar_init(&sidecar->sidecar);
    sidecar->segments = segments;
    sidecar->segment = *segment;
    sidecar->segment.ledger = NULL; /* what is needed of it is described now */
    sidecar->is_last = is_last;
    segment_name(session, segment->number, name);
    r = sidecar_name(&sidecar->sidecar, context->state_dir_fd, context->state_dir, name);
    if (r < 0) {
        segment_sidecar_free(sidecar);
        return r;
    }
    r = sidecar_write(&sidecar->sidecar, session->worker,
                      context->describe_segment(session, segment, sink), true,
                      segments_handle_sidecar, sidecar);
    if (r < 0) {
        segment_sidecar_free(sidecar);
        return r;
    }
    segments->nr_sidecars++;
    return 0;
}

void segments_write_sidecar(struct segments *segments, const struct segment *segment,
                            const struct sink *sink)
{
    int r = segments_send_sidecar(segments, segment, sink, false);

    if (r >= 0)
        return;
    segments_log_sidecar(segments, segment, r);
    segments_report_finished(segments, segment);
}

void segments_write_last_sidecar(struct segments *segments)
{
    const struct segment *last;
    int r;

    if (segments->nr_files == 0)
        return;
    last = &segments->files[segments->nr_files - 1]->segment;
    if (last->reason != SEGMENT_END)
        return; /* that one was empty */
    r = segments_send_sidecar(segments, last, segments->storage.sink, true);
    if (r >= 0) {
        session_note_sidecar(segments_session(segments), true);
        return;
    }
    segments_log_sidecar(segments, last, r);
    segments_report_finished(segments, last);
}

/* --- Removing them. --- */

static void segment_removal_run(struct job *job)
{
    struct segment_removal *removal = job_container(job, struct segment_removal, job);

    removal->error = state_file_remove(removal->directory_fd, removal->name, removal->held);
}

static void segment_removal_done(struct job *job)
{
    struct segment_removal *removal = job_container(job, struct segment_removal, job);
    struct segments *segments = removal->segments;

    removal->is_under_way = false;
    removal->held = held_files_unref(removal->held);
    if (segments->is_released)
        return;
    if (removal->done)
        removal->done(segments, removal->error);
    else
        session_continue_end(segments_session(segments)); /* may free the segments */
}

static void segment_removal_send(struct segment_removal *removal, struct segments *segments,
                                 unsigned int number,
                                 void (*done)(struct segments *segments, int error))
{
    const struct session *session = segments_session(segments);

    assert(!removal->is_under_way);
    *removal = (struct segment_removal){
        .job = {.run = segment_removal_run, .done = segment_removal_done},
        .segments = segments,
        .done = done,
        .is_under_way = true,
        .directory_fd = session->context->state_dir_fd,
        .held = held_files_ref(session->context->held),
    };
    segment_name(session, number, removal->name);
    worker_send(session->worker, &removal->job);
    session_expect_answer(segments_session(segments));
}

void segments_remove_empty(struct segments *segments, unsigned int number,
                           void (*done)(struct segments *segments, int error))
{
    segment_removal_send(&segments->empty, segments, number, done);
}

static void segments_note_evicted(struct segments *segments, const struct segment_file *file)
{
    for (unsigned int cpu = 0; cpu < segments->nr_cpus; cpu++) {
        segments->past[cpu].delivered -= file->delivered[cpu];
        segments->past[cpu].evicted += file->delivered[cpu];
    }
    segments->deleted++;
    segments_session(segments)->is_sidecar_due = true;
}

/* One that could not be deleted is forgotten: asked again, it would fail again. */
static void segments_handle_deleted(struct segments *segments, int error)
{
    struct segment_file *file = segments_take_file(segments, 0);

    if (error < 0) {
        segments->gone_number = file->segment.number - 1;
        log_line(LOG_ERR, segments_session(segments)->name,
                 "Cannot delete segment %u: %s. Delete it by hand.", file->segment.number,
                 strerror(-error));
    } else {
        segments_note_evicted(segments, file);
    }
    free(file);
    segments->room_has_deleted = true;
    segments->needs_space = false;
    segments_advance(segments);
    session_continue_end(segments_session(segments)); /* may free the segments */
}

void segments_delete_oldest(struct segments *segments)
{
    if (segments->nr_files == 0 || segments->oldest.is_under_way)
        return;
    segments->gone_number = segments->files[0]->segment.number;
    segment_removal_send(&segments->oldest, segments, segments->gone_number,
                         segments_handle_deleted);
}

void segments_advance_eviction(struct segments *segments)
{
    if (segments->evictions_due == 0 || segments->oldest.is_under_way)
        return;
    if (segments->nr_files == 0) {
        segments->evictions_due = 0;
        return;
    }
    segments->evictions_due--;
    segments_delete_oldest(segments);
}

void segments_evict(struct session *session, unsigned int count)
{
    struct segments *segments = (struct segments *)segments_of(session->storage);

    if (session->state != SESSION_RUNNING)
        return; /* at the next look they are nobody's */
    segments->evictions_due = count;
    segments_advance_eviction(segments);
}

/* --- When. --- */

/* What OUTPUT's file may become without another request: none is longer than it was granted. */
static uint64_t segments_used_by(const struct segments *segments, const struct output *output)
{
    if (!output)
        return 0;
    if (output_is_busy(output, OUTPUT_OPEN))
        return segments_first_grant_bytes(segments);
    if (output_is_busy(output, OUTPUT_EXTEND))
        return output->figures.granted_bytes + output->figures.next_step_bytes;
    return output->figures.granted_bytes;
}

bool segments_exceed_keep_bytes(const struct segments *segments, uint64_t bytes)
{
    uint64_t used = segments->files_bytes + segments_used_by(segments, segments->storage.output) +
                    segments_used_by(segments, segments->next_output) +
                    segments_used_by(segments, segments->before_output);

    return segments->keep_bytes && segments->nr_files > 0 && used + bytes > segments->keep_bytes;
}

bool segments_exceed_keep_files(const struct segments *segments)
{
    size_t others = segments->before && segments->before_number ? 2 : 1;

    return segments->keep_files && segments->nr_files > 0 &&
           segments->nr_files + others > segments->keep_files;
}

void segments_advance_room(struct segments *segments)
{
    bool needs_one =
        segments->room_needs_one && !segments->room_has_deleted && segments->nr_files > 0;
    void (*done)(struct storage * storage, bool has_deleted);

    if (!segments->room_done || segments->oldest.is_under_way)
        return;
    if (needs_one || segments_exceed_keep_bytes(segments, segments->room_bytes)) {
        segments_delete_oldest(segments);
        return;
    }
    done = TAKE_PTR(segments->room_done);
    done(&segments->storage, segments->room_has_deleted);
}

void segments_make_room(struct storage *storage, uint64_t bytes, bool disk_is_full,
                        void (*done)(struct storage *storage, bool has_deleted))
{
    struct segments *segments = (struct segments *)segments_of(storage);

    segments->room_done = done;
    segments->room_bytes = bytes;
    segments->room_needs_one = disk_is_full && storage->space.on_reserve == ON_RESERVE_ROTATE;
    segments->room_has_deleted = false;
    segments_advance_room(segments);
}

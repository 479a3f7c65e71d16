// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The files of a disk ring: what was asked for, how they are named, which are there, and what they
 * hold. When one is deleted, its records become evicted ones.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/protocol.h"
#include "common/units.h"
#include "daemon/base/clock.h"
#include "daemon/document/document.h"
#include "daemon/base/log.h"
#include "daemon/session/segments.h"
#include "daemon/session/session.h"
#include "daemon/output/sidecar.h"

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
                           "--keep-files and --keep-size are about segments: they need "
                           "--segment-size or --segment-time.");
    if (!segmented && options->on_reserve && strcmp(options->on_reserve, "rotate") == 0)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "--on-reserve rotate deletes the oldest segments: it needs "
                           "--segment-size or --segment-time.");
    if (segmented && options->has_output)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "Segments are files in xentraced's own directory: leave out --output.");
    if (segmented && options->memory_bytes)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A capture is kept in memory or in segments on the disk: give either "
                           "--memory, or --segment-size and --segment-time.");
    if (segmented && options->max_size_bytes)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "--max-size ends a capture of one file: limit segments with "
                           "--keep-size.");
    return 0;
}

static int check_shape(const struct session_options *options, struct failure *failure)
{
    char text[UNITS_TEXT_MAX];

    if (options->segment_size_bytes && options->segment_size_bytes < SIZE_MIN_BYTES)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A segment of %s is too small: --segment-size is at least %s.",
                           size_format(text, options->segment_size_bytes), "1M");
    if (options->segment_size_bytes >= UINT64_MAX / 4 || options->keep_size_bytes >= UINT64_MAX / 4)
        return failure_set(failure, -EINVAL, ERROR_INVALID, "No disk is that large.");
    if (options->segment_time_usec && options->segment_time_usec < TIME_MIN_USEC)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A segment of %s is too short: --segment-time is at least 1 s.",
                           duration_format(text, options->segment_time_usec));
    if (options->keep_files == 1 || options->keep_files > KEEP_FILES_MAX)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "--keep-files is from 2, for the segment being written and one that is "
                           "finished, to %u.",
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
                       "--keep-size has to hold two segments and 1 MiB: it is at least %s here.",
                       size_format(text, min));
}

int segments_new(const struct session_options *options, unsigned int nr_cpus,
                 struct segments **ret_segments, struct failure *failure)
{
    bool segmented = options->segment_size_bytes || options->segment_time_usec;
    struct segments *segments;
    int r;

    r = check_others(options, segmented, failure);
    if (r >= 0)
        r = check_shape(options, failure);
    if (r < 0 || !segmented)
        return r;
    segments = calloc(1, sizeof(*segments));
    if (segments)
        segments->past = calloc(nr_cpus, sizeof(*segments->past));
    if (!segments || !segments->past) {
        segments_free(segments);
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    }
    segments->number = 1;
    segments->nr_cpus = nr_cpus;
    segments->size_bytes = options->segment_size_bytes;
    segments->time_usec = options->segment_time_usec;
    segments->keep_files = options->keep_files;
    segments->keep_bytes = options->keep_size_bytes;
    if (segments->keep_bytes && !segments->size_bytes)
        segments->size_bytes = max_u64(segments->keep_bytes / KEEP_DEFAULT_PARTS, SIZE_MIN_BYTES);
    output_init(&segments->next_output, 0, UINT64_MAX);
    output_init(&segments->before_output, 0, UINT64_MAX);
    r = check_keep_size(segments, failure);
    if (r < 0) {
        segments_free(segments);
        return r;
    }
    *ret_segments = segments;
    return 0;
}

struct segments *segments_free(struct segments *segments)
{
    if (!segments)
        return NULL;
    segments_stop_timers(segments);
    sink_free(segments->next);
    sink_free(segments->before);
    output_done(&segments->next_output);
    output_done(&segments->before_output);
    for (size_t i = 0; i < segments->nr_files; i++)
        free(segments->files[i]);
    free(segments->files);
    free(segments->past);
    free(segments);
    return NULL;
}

/* --- Names. --- */

void segment_name(const struct session *session, unsigned int number,
                  char ret_name[static SEGMENT_NAME_MAX])
{
    (void)snprintf(ret_name, SEGMENT_NAME_MAX, "%s.%05u", session->name, number);
}

/* Whether FILE is NAME, a dot, digits, and ".xentrace" or ".json". */
static bool is_segment_file(const char *file, const char *name)
{
    size_t length = strlen(name);
    const char *digits, *end;

    if (strncmp(file, name, length) != 0 || file[length] != '.')
        return false;
    digits = end = file + length + 1;
    while (isdigit((unsigned char)*end))
        end++;
    return end - digits >= 5 && (strcmp(end, ".xentrace") == 0 || strcmp(end, ".json") == 0);
}

int segments_refuse_old(const struct session *session, struct failure *failure)
{
    int fd = openat(session->context->state_dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    int r = 0;

    if (!directory) {
        fd_close(&fd);
        return 0; /* then none of them can be created either */
    }
    while (r >= 0 && (entry = readdir(directory)))
        if (is_segment_file(entry->d_name, session->name))
            r = failure_set(failure, -EEXIST, ERROR_NAME_IN_USE,
                            "%s/%s is of an older capture of that name, which this one is not to "
                            "be mixed with. Choose another name, or none.",
                            session->context->state_dir, entry->d_name);
    (void)closedir(directory);
    return r;
}

/* --- What is in them. --- */

static uint64_t earlier_of(uint64_t a, uint64_t b)
{
    return a && (!b || a < b) ? a : b;
}

void segment_describe(const struct session *session, const struct sink *sink,
                      struct segment *ret_segment)
{
    double khz = xen_host_info(session->context->xen)->tsc_khz;
    struct segment segment = {0};
    struct sink_totals totals;

    for (unsigned int cpu = 0; cpu < session->nr_cpus; cpu++) {
        struct ledger ledger;

        sink_read_ledger(sink, cpu, &ledger);
        segment.records += ledger.delivered;
        segment.lost += ledger.lost;
        segment.dropped += ledger.dropped;
        segment.first_tsc = earlier_of(ledger.first_tsc, segment.first_tsc);
        segment.last_tsc = max_u64(ledger.last_tsc, segment.last_tsc);
    }
    segment.first_ns = clock_realtime_ns(segment.first_tsc, khz);
    segment.last_ns = clock_realtime_ns(segment.last_tsc, khz);
    sink_read_totals(sink, &totals);
    segment.bytes = totals.output_bytes;
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
    sum->queued_bytes += part->queued_bytes;
    sum->windows += part->windows;
    sum->complete_from_tsc = earlier_of(part->complete_from_tsc, sum->complete_from_tsc);
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        sum->class_records[i] += part->class_records[i];
}

void segments_add_ledger(const struct segments *segments, unsigned int cpu, struct ledger *ledger)
{
    struct ledger before;

    add_ledger(ledger, &segments->past[cpu]);
    if (!segments->before)
        return;
    sink_read_ledger(segments->before, cpu, &before);
    add_ledger(ledger, &before);
}

void segments_add_totals(const struct segments *segments, struct sink_totals *totals)
{
    struct sink_totals before;

    add_totals(totals, &segments->past_totals);
    if (!segments->before)
        return;
    sink_read_totals(segments->before, &before);
    add_totals(totals, &before);
}

void segments_enter_past(struct segments *segments, const struct sink *sink)
{
    struct sink_totals totals;

    for (unsigned int cpu = 0; cpu < segments->nr_cpus; cpu++) {
        struct ledger ledger;

        sink_read_ledger(sink, cpu, &ledger);
        add_ledger(&segments->past[cpu], &ledger);
    }
    sink_read_totals(sink, &totals);
    add_totals(&segments->past_totals, &totals);
}

/* --- Which are there. --- */

/* Out of the list; to be freed. */
static struct segment_file *take_oldest(struct segments *segments)
{
    struct segment_file *oldest = segments->files[0];

    segments->files_bytes -= oldest->segment.bytes;
    segments->nr_files--;
    memmove(&segments->files[0], &segments->files[1],
            segments->nr_files * sizeof(segments->files[0]));
    return oldest;
}

/* Those that are neither shown nor ever deleted need not be remembered. */
static void forget_old(struct session *session)
{
    struct segments *segments = session->segments;

    if (segments->keep_files || segments->keep_bytes ||
        session->space.on_reserve == ON_RESERVE_ROTATE || segments->nr_files < SEGMENTS_SHOWN_MAX)
        return;
    free(take_oldest(segments));
}

static struct segment_file *add_file(struct segments *segments)
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

static void write_sidecar(const struct session *session, const struct segment *segment,
                          const struct sink *sink)
{
    char name[SEGMENT_NAME_MAX];
    int r;

    segment_name(session, segment->number, name);
    r = sidecar_write(session->context->state_dir_fd, name, -1,
                      document_of_segment_file(session, segment, sink));
    if (r < 0)
        log_line(LOG_ERR, session->name,
                 "The sidecar %s.json could not be written: %s. Its segment is complete without "
                 "it.",
                 name, strerror(-r));
}

void segments_enter_file(struct session *session, const struct sink *sink, unsigned int number,
                         enum segment_reason reason)
{
    const struct session_context *context = session->context;
    struct segments *segments = session->segments;
    struct segment_file *file;
    struct segment segment;

    forget_old(session);
    file = add_file(segments);
    segment_describe(session, sink, &segment);
    segment.number = number;
    segment.reason = reason;
    segments->written++;
    segments->is_changed = true;
    if (!file) {
        log_line(LOG_ERR, session->name,
                 "Out of memory: segment %u is complete, but is neither listed nor deleted later.",
                 number);
    } else {
        file->segment = segment;
        segments->files_bytes += segment.bytes;
        for (unsigned int cpu = 0; cpu < segments->nr_cpus; cpu++) {
            struct ledger ledger;

            sink_read_ledger(sink, cpu, &ledger);
            file->delivered[cpu] = ledger.delivered;
        }
    }
    if (reason != SEGMENT_END) /* that one's comes with the session's own */
        write_sidecar(session, &segment, sink);
    context->segment_finished(context->userdata, session, number, &segment);
}

void segments_write_last_sidecar(const struct session *session)
{
    const struct segments *segments = session->segments;
    const struct segment *last;

    if (segments->nr_files == 0)
        return;
    last = &segments->files[segments->nr_files - 1]->segment;
    if (last->reason == SEGMENT_END)
        write_sidecar(session, last, session->sink);
}

int segments_remove_file(const struct session *session, unsigned int number)
{
    int directory_fd = session->context->state_dir_fd;
    char name[SEGMENT_NAME_MAX], file[SEGMENT_NAME_MAX + 16];
    int r = 0;

    segment_name(session, number, name);
    (void)snprintf(file, sizeof(file), "%s.xentrace", name);
    if (unlinkat(directory_fd, file, 0) < 0 && errno != ENOENT)
        r = -errno;
    (void)snprintf(file, sizeof(file), "%s.json", name);
    if (r >= 0)
        (void)unlinkat(directory_fd, file, 0); /* there may be none */
    return r;
}

bool segments_delete_oldest(struct session *session)
{
    struct segments *segments = session->segments;
    struct segment_file *file;
    int r;

    if (!segments || segments->nr_files == 0)
        return false;
    file = take_oldest(segments);
    r = segments_remove_file(session, file->segment.number);
    if (r < 0)
        log_line(LOG_ERR, session->name,
                 "Segment %u could not be deleted: %s. It stays: delete it by hand.",
                 file->segment.number, strerror(-r));
    for (unsigned int cpu = 0; r >= 0 && cpu < segments->nr_cpus; cpu++) {
        segments->past[cpu].delivered -= file->delivered[cpu];
        segments->past[cpu].evicted += file->delivered[cpu];
    }
    segments->deleted += r >= 0;
    free(file);
    return true;
}

/* What the files may become without another grant: none is longer than it was granted. */
static uint64_t used_bytes(const struct session *session)
{
    const struct segments *segments = session->segments;

    return segments->files_bytes + session->output.granted_bytes +
           (segments->next ? segments->next_output.granted_bytes : 0) +
           (segments->before ? segments->before_output.granted_bytes : 0);
}

void segments_make_room(struct session *session, uint64_t bytes)
{
    struct segments *segments = session->segments;

    if (!segments || !segments->keep_bytes)
        return;
    while (used_bytes(session) + bytes > segments->keep_bytes && segments_delete_oldest(session))
        ;
}

void segments_make_place(struct session *session)
{
    struct segments *segments = session->segments;
    size_t others = segments->before && segments->before_number ? 2 : 1;

    while (segments->keep_files && segments->nr_files + others > segments->keep_files &&
           segments_delete_oldest(session))
        ;
}

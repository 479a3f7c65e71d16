// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A ring's output is written when it ends. Until then its file is a promise, and the flight
 * recorder has none, so the memory is shown and not the size of the file.
 */

#include "ctl/storage.h"

#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "ctl/number.h"
#include "ctl/str.h"
#include "ctl/table.h"

/* One kind of storage. */
struct kind {
    const char *name;
    uint64_t (*bytes)(struct json_object *session);
    const char *(*file)(struct json_object *session);
    char *(*place)(struct json_object *session);
    void (*print_start)(FILE *file, struct json_object *session);
    void (*print)(FILE *file, struct json_object *session);
    const char *amount; /* label of its amount */
    bool has_rate;      /* records are written all the time */
    bool is_memory;     /* records are kept in memory until the end */
};

bool storage_is_recorder(struct json_object *session)
{
    return doc_flag(session, "recorder");
}

uint64_t storage_memory_bytes(struct json_object *session)
{
    return doc_number(session, "ring.memory_bytes");
}

/* A file */

static uint64_t file_bytes(struct json_object *session)
{
    return doc_number(session, "output.bytes");
}

static const char *file_path(struct json_object *session)
{
    return doc_text(session, "output.path", "-");
}

static char *file_place(struct json_object *session)
{
    return strdup(doc_text(session, "output.path", "unknown file"));
}

static void file_print(FILE *file, struct json_object *session)
{
    table_print_field(file, "File", "%s", doc_text(session, "output.path", "unknown"));
}

/* A stream: nothing can be read from it again. */

static const char *stream_path(struct json_object *session)
{
    (void)session;
    return "-";
}

static char *stream_place(struct json_object *session)
{
    const char *path = doc_text(session, "output.path", "-");

    return strdup(strcmp(path, "-") == 0 ? "standard output" : path);
}

static void stream_print(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *place = stream_place(session);

    table_print_field(file, "File", "%s", place ? place : "unknown");
}

/* A ring in memory */

static bool ring_has_output(struct json_object *session)
{
    return *doc_text(session, "output.path", "");
}

static bool ring_is_in_memory(struct json_object *session)
{
    return !doc_session_has_ended(session) || !ring_has_output(session);
}

static uint64_t ring_bytes(struct json_object *session)
{
    return doc_number(session, ring_is_in_memory(session) ? "ring.used_bytes" : "output.bytes");
}

static const char *ring_file(struct json_object *session)
{
    bool is_file = strcmp(doc_text(session, "output.kind", "file"), "file") == 0;

    return is_file ? doc_text(session, "output.path", "-") : "-";
}

static char *ring_place(struct json_object *session)
{
    return ring_has_output(session) ? stream_place(session) : strdup("memory only");
}

static void ring_print_output(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *place = ring_place(session);

    if (ring_has_output(session))
        table_print_field(file, "File", "%s%s", place ? place : "unknown",
                          ring_is_in_memory(session) ? ", written at the end" : "");
}

static void ring_print_start(FILE *file, struct json_object *session)
{
    char size[UNITS_TEXT_MAX];

    table_print_field(file, "Memory", "%s, written to the file at the end",
                      size_format(size, storage_memory_bytes(session)));
    table_print_field(file, "File", "%s", doc_text(session, "output.path", "unknown"));
    table_print_field(file, "Snapshot", "xentracectl snapshot --session %s",
                      doc_text(session, "name", "NAME"));
}

static void ring_print_memory(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *memory = storage_memory(session);
    uint64_t max_age = doc_number(session, "ring.max_age_usec");
    char age[UNITS_TEXT_MAX];

    table_print_field(file, "Memory", "%s used%s%s", memory ? memory : "unknown",
                      max_age ? ", for records of the last " : "",
                      max_age ? duration_format(age, max_age) : "");
    if (doc_session_has_ended(session))
        return;
    if (doc_says_no(session, "ring.locked"))
        table_print_field(file, "Locked", "no: the memory can be paged out");
    if (doc_says_no(session, "ring.kept"))
        table_print_field(file, "Restart", "the records are lost when xentraced ends");
}

/* "; about 8min at 102K/s when full", "; full, 102K/s", "; 5min at most, 102K/s", or nothing. */
static char *ring_forecast(struct json_object *session)
{
    uint64_t full_usec = doc_number(session, "ring.history_full_usec");
    uint64_t per_second = doc_number(session, "ring.bytes_per_second");
    char rate[UNITS_TEXT_MAX], time[UNITS_TEXT_MAX];

    if (!full_usec || !per_second)
        return strdup("");
    (void)size_format(rate, per_second);
    if (full_usec == doc_number(session, "ring.max_age_usec"))
        return str_format("; %s at most, %s/s", duration_format(time, full_usec), rate);
    if (doc_flag(session, "ring.full"))
        return str_format("; full, %s/s", rate);
    return str_format("; about %s at %s/s when full", duration_format_about(time, full_usec), rate);
}

char *storage_history(struct json_object *session)
{
    uint64_t usec = doc_number(session, "ring.history_usec");
    _cleanup_free_ char *forecast = ring_forecast(session);
    char time[UNITS_TEXT_MAX];

    if (!usec)
        return strdup("");
    if (usec >= 10 * USEC_PER_SEC)
        usec -= usec % USEC_PER_SEC;
    return str_format("%s%s", duration_format(time, usec), forecast ? forecast : "");
}

static void ring_print_history(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *history = storage_history(session);

    if (history && *history)
        table_print_field(file, "History", "%s", history);
}

static void ring_print(FILE *file, struct json_object *session)
{
    uint64_t evicted = doc_number(session, "ledger.evicted");
    uint64_t restored = doc_number(session, "ring.restored");
    uint64_t snapshots = doc_number(session, "ring.snapshots");
    uint64_t borrowed = doc_number(session, "ring.borrowed_bytes");
    uint64_t shortened = doc_number(session, "ring.shortened_bytes");
    char text[STR_WINDOW_MAX], size[UNITS_TEXT_MAX], count[NUMBER_MAX];

    ring_print_memory(file, session);
    if (borrowed)
        table_print_field(file, "Borrowed", "%s, while snapshots are written",
                          size_format(size, borrowed));
    if (shortened)
        table_print_field(file, "Shortened",
                          "by %s in all while snapshots were written: see pool-max=",
                          size_format(size, shortened));
    if (ring_is_in_memory(session))
        table_print_field(file, "Holds", "%s",
                          str_window(text, doc_number(session, "ring.oldest_ns"),
                                     doc_number(session, "ring.newest_ns")));
    ring_print_history(file, session);
    if (evicted)
        table_print_field(file, "Evicted", "%s records, older than these",
                          number_format(count, evicted));
    if (restored)
        table_print_field(file, "Restored", "%s time%s, after restarts of xentraced",
                          number_format(count, restored), restored == 1 ? "" : "s");
    if (snapshots)
        table_print_field(file, "Snapshots", "%s written", number_format(count, snapshots));
    ring_print_output(file, session);
}

/* Segments on the disk */

static struct json_object *segments_newest(struct json_object *session)
{
    struct json_object *files = doc_array(session, "segments.files");

    return doc_length(files) ? doc_at(files, doc_length(files) - 1) : NULL;
}

static uint64_t segments_bytes(struct json_object *session)
{
    struct json_object *files = doc_array(session, "segments.files");
    uint64_t bytes = 0;

    if (!doc_length(files))
        return doc_number(session, "output.bytes");
    for (size_t i = 0; i < doc_length(files); i++)
        bytes += doc_number(doc_at(files, i), "bytes");
    return bytes;
}

static const char *segments_file(struct json_object *session)
{
    return doc_text(segments_newest(session), "path", "-");
}

static char *segments_place(struct json_object *session)
{
    size_t count = doc_length(doc_array(session, "segments.files"));

    if (!count)
        return file_place(session);
    return str_format("%zu segment%s up to %s", count, count == 1 ? "" : "s",
                      doc_text(segments_newest(session), "path", "an unknown file"));
}

static void segments_print_start(FILE *file, struct json_object *session)
{
    table_print_field(file, "Segments", "%s", doc_text(session, "output.path", "unknown"));
}

/* ", each 64M or 1min", as asked for. */
static char *segments_shape(struct json_object *session)
{
    uint64_t bytes = doc_number(session, "segments.size_bytes");
    uint64_t usec = doc_number(session, "segments.time_usec");
    char size[UNITS_TEXT_MAX], time[UNITS_TEXT_MAX];

    return str_format("%s%s%s%s", bytes || usec ? ", each " : "",
                      bytes ? size_format(size, bytes) : "", bytes && usec ? " or " : "",
                      usec ? duration_format(time, usec) : "");
}

/* ", 10 files and 1G at most", as asked for. */
static char *segments_bounds(struct json_object *session)
{
    uint64_t files = doc_number(session, "segments.keep_files");
    uint64_t bytes = doc_number(session, "segments.keep_size_bytes");
    _cleanup_free_ char *count = files ? str_format("%" PRIu64 " files", files) : strdup("");
    char size[UNITS_TEXT_MAX];

    if (!count || (!files && !bytes))
        return strdup("");
    return str_format(", %s%s%s at most", count, files && bytes ? " and " : "",
                      bytes ? size_format(size, bytes) : "");
}

static void segments_print(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *place = segments_place(session), *shape = segments_shape(session);
    _cleanup_free_ char *bounds = segments_bounds(session);
    char written[NUMBER_MAX], deleted[NUMBER_MAX], evicted[NUMBER_MAX];

    table_print_field(file, "Files", "%s", place ? place : "unknown");
    table_print_field(file, "Segments", "%s written, %s of them deleted%s%s",
                      number_format(written, doc_number(session, "segments.written")),
                      number_format(deleted, doc_number(session, "segments.deleted")),
                      shape ? shape : "", bounds ? bounds : "");
    if (doc_number(session, "segments.continued"))
        table_print_field(file, "Continued", "%" PRIu64 " time%s, after restarts of xentraced",
                          doc_number(session, "segments.continued"),
                          doc_number(session, "segments.continued") == 1 ? "" : "s");
    if (doc_flag(session, "options.persist") && !doc_session_has_ended(session))
        table_print_field(file, "Restart", "continues in its next segment");
    if (doc_number(session, "ledger.evicted"))
        table_print_field(file, "Evicted", "%s records, in deleted segments",
                          number_format(evicted, doc_number(session, "ledger.evicted")));
}

/* The table */

static const struct kind kinds[] = {
    {
        .name = "file",
        .bytes = file_bytes,
        .file = file_path,
        .place = file_place,
        .print_start = file_print,
        .print = file_print,
        .amount = "Written",
        .has_rate = true,
    },
    {
        .name = "stream",
        .bytes = file_bytes,
        .file = stream_path,
        .place = stream_place,
        .print_start = stream_print,
        .print = stream_print,
        .amount = "Written",
        .has_rate = true,
    },
    {
        .name = "ring",
        .bytes = ring_bytes,
        .file = ring_file,
        .place = ring_place,
        .print_start = ring_print_start,
        .print = ring_print,
        .amount = "Written",
        .is_memory = true,
    },
    {
        .name = "segments",
        .bytes = segments_bytes,
        .file = segments_file,
        .place = segments_place,
        .print_start = segments_print_start,
        .print = segments_print,
        .amount = "On disk",
    },
};

/* A file and a stream differ in their output only. */
static const struct kind *kind_of(struct json_object *session)
{
    const char *name = doc_text(session, "kind", "file");

    if (strcmp(name, "file") == 0)
        name = doc_text(session, "output.kind", "file");
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return &kinds[0];
}

const char *storage_name(struct json_object *session)
{
    return storage_is_recorder(session) ? "recorder" : kind_of(session)->name;
}

bool storage_is_in_memory(struct json_object *session)
{
    return kind_of(session)->is_memory && ring_is_in_memory(session);
}

uint64_t storage_bytes(struct json_object *session)
{
    return kind_of(session)->bytes(session);
}

const char *storage_file(struct json_object *session)
{
    return kind_of(session)->file(session);
}

char *storage_place(struct json_object *session)
{
    return kind_of(session)->place(session);
}

char *storage_memory(struct json_object *session)
{
    char used[UNITS_TEXT_MAX], total[UNITS_TEXT_MAX];

    if (!kind_of(session)->is_memory)
        return strdup("-");
    return str_format("%s of %s", size_format(used, doc_number(session, "ring.used_bytes")),
                      size_format(total, storage_memory_bytes(session)));
}

void storage_print_start(FILE *file, struct json_object *session)
{
    kind_of(session)->print_start(file, session);
}

void storage_print(FILE *file, struct json_object *session)
{
    kind_of(session)->print(file, session);
    if (doc_flag(session, "output.paused") || doc_flag(session, "segments.paused"))
        table_print_field(file, "Paused",
                          "the disk reached its reserve; the capture continues when there is "
                          "space");
}

void storage_print_amount(FILE *file, struct json_object *session, uint64_t records, uint64_t usec)
{
    const struct kind *kind = kind_of(session);
    uint64_t bytes = kind->bytes(session);
    double per_second = usec ? (double)bytes * (double)USEC_PER_SEC / (double)usec : 0;
    char size[UNITS_TEXT_MAX], rate[UNITS_TEXT_MAX], count[NUMBER_MAX];

    (void)number_format(count, records);
    (void)size_format(rate, per_second < 9e18 ? (uint64_t)per_second : 0);
    if (storage_is_in_memory(session))
        table_print_field(file, "Records", "%s in memory", count);
    else
        table_print_field(file, kind->amount, "%s, %s records%s%s%s", size_format(size, bytes),
                          count, kind->has_rate ? ", " : "", kind->has_rate ? rate : "",
                          kind->has_rate ? "/s on average" : "");
}

char *storage_missing(struct json_object *counts)
{
    uint64_t lost = doc_number(counts, "lost"), dropped = doc_number(counts, "dropped");
    char by_xen[NUMBER_MAX], by_us[NUMBER_MAX];

    if (!doc_find(counts, "lost"))
        return strdup("unknown");
    if (!lost && !dropped)
        return strdup("none");
    return str_format("%s lost by Xen, %s dropped by xentraced", number_format(by_xen, lost),
                      number_format(by_us, dropped));
}

void storage_print_segments(FILE *file, struct json_object *session, int width)
{
    struct json_object *files = doc_array(session, "segments.files");
    _cleanup_table_ struct table *table = NULL;

    if (!doc_length(files) ||
        table_new(">SEGMENT >SIZE >RECORDS >LOST >DROPPED END /FILE", &table) < 0)
        return;
    for (size_t i = 0; i < doc_length(files); i++) {
        struct json_object *segment = doc_at(files, i);
        char size[UNITS_TEXT_MAX];

        table_add(table, "%" PRIu64, doc_number(segment, "number"));
        table_add(table, "%s", size_format(size, doc_number(segment, "bytes")));
        table_add_count(table, doc_number(segment, "records"));
        table_add_count(table, doc_number(segment, "lost"));
        table_add_count(table, doc_number(segment, "dropped"));
        table_add(table, "%s", doc_text(segment, "reason", "-"));
        table_add(table, "%s", doc_text(segment, "path", "-"));
    }
    table_print(table, file, 4, width);
}

void storage_print_segment(FILE *file, struct json_object *segment)
{
    _cleanup_free_ char *missing = storage_missing(segment);
    char window[STR_WINDOW_MAX], size[UNITS_TEXT_MAX], count[NUMBER_MAX];

    table_print_field(file, "File", "%s", doc_text(segment, "path", "unknown"));
    table_print_field(
        file, "Window", "%s",
        str_window(window, doc_number(segment, "first_ns"), doc_number(segment, "last_ns")));
    table_print_field(file, "Records", "%s", number_format(count, doc_number(segment, "records")));
    table_print_field(file, "Missing", "%s", missing ? missing : "unknown");
    if (doc_number(segment, "missing_before"))
        table_print_field(file, "Before it",
                          "%" PRIu64 " records are missing: xentraced was restarted",
                          doc_number(segment, "missing_before"));
    table_print_field(file, "Size", "%s", size_format(size, doc_number(segment, "bytes")));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Files move, so segments are known by their names. */
struct json_object *storage_find_segment(struct json_object *session, const char *path)
{
    struct json_object *files = doc_array(session, "segments.files");

    for (size_t i = 0; i < doc_length(files); i++) {
        struct json_object *segment = doc_at(files, i);

        if (strcmp(base_name(doc_text(segment, "path", "")), base_name(path)) == 0)
            return segment;
    }
    return NULL;
}

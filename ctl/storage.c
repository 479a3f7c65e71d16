/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A ring's output is written when it ends; until then its file is a promise, and the flight
 * recorder has none. So the memory is shown, not the file's size.
 */

#include "ctl/storage.h"

#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "ctl/session.h"
#include "ctl/str.h"
#include "ctl/table.h"

bool storage_is_ring(struct json_object *session)
{
    return strcmp(doc_text(session, "kind", "file"), "ring") == 0;
}

bool storage_is_segmented(struct json_object *session)
{
    return strcmp(doc_text(session, "kind", "file"), "segments") == 0;
}

bool storage_is_recorder(struct json_object *session)
{
    return doc_flag(session, "recorder");
}

const char *storage_kind(struct json_object *session)
{
    return storage_is_recorder(session) ? "recorder" : doc_text(session, "kind", "file");
}

bool storage_is_in_memory(struct json_object *session)
{
    return storage_is_ring(session) &&
           (!session_has_ended(session) || !*doc_text(session, "output.path", ""));
}

static uint64_t segments_bytes(struct json_object *session)
{
    struct json_object *files = doc_array(session, "segments.files");
    uint64_t bytes = 0;

    for (size_t i = 0; i < doc_length(files); i++)
        bytes += doc_number(doc_at(files, i), "bytes");
    return bytes;
}

uint64_t storage_bytes(struct json_object *session)
{
    if (storage_is_in_memory(session))
        return doc_number(session, "ring.used_bytes");
    if (doc_length(doc_array(session, "segments.files")))
        return segments_bytes(session);
    return doc_number(session, "output.bytes");
}

const char *storage_newest(struct json_object *session)
{
    struct json_object *files = doc_array(session, "segments.files");

    return doc_length(files) ? doc_text(doc_at(files, doc_length(files) - 1), "path", "-") : "-";
}

char *storage_place(struct json_object *session)
{
    struct json_object *files = doc_array(session, "segments.files");
    size_t count = doc_length(files);

    if (storage_is_segmented(session) && count)
        return str_format("%zu segment%s up to %s", count, count == 1 ? "" : "s",
                          doc_text(doc_at(files, count - 1), "path", "an unknown file"));
    if (storage_is_ring(session) && !*doc_text(session, "output.path", ""))
        return strdup("memory only");
    return strdup(doc_text(session, "output.path", "unknown file"));
}

char *storage_memory(struct json_object *session)
{
    char used[UNITS_TEXT_MAX], total[UNITS_TEXT_MAX];

    if (!storage_is_ring(session))
        return strdup("-");
    return str_format("%s of %s", size_format(used, doc_number(session, "ring.used_bytes")),
                      size_format(total, doc_number(session, "ring.memory_bytes")));
}

char *storage_missing(struct json_object *counts)
{
    uint64_t lost = doc_number(counts, "lost"), dropped = doc_number(counts, "dropped");

    if (!doc_find(counts, "lost"))
        return strdup("unknown");
    if (!lost && !dropped)
        return strdup("nothing is missing");
    return str_format("%" PRIu64 " lost by Xen, %" PRIu64 " dropped by xentraced", lost, dropped);
}

/* A key that is absent is of an older daemon, and says nothing. */
static bool says_no(struct json_object *session, const char *path)
{
    return doc_find(session, path) && !doc_flag(session, path);
}

static void print_ring(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *memory = storage_memory(session);
    uint64_t evicted = doc_number(session, "ledger.evicted");
    uint64_t max_age = doc_number(session, "ring.max_age_usec");
    char text[STR_WINDOW_MAX], age[UNITS_TEXT_MAX];

    session_print_field(
        file, "Memory", "%s used%s%s%s", memory ? memory : "unknown",
        max_age ? ", for records of the last " : "", max_age ? duration_format(age, max_age) : "",
        storage_is_in_memory(session) && says_no(session, "ring.locked") ? "; it can be paged out"
                                                                         : "");
    if (storage_is_in_memory(session))
        session_print_field(file, "Holds", "%s",
                            str_window(text, doc_number(session, "ring.oldest_ns"),
                                       doc_number(session, "ring.newest_ns")));
    if (evicted)
        session_print_field(file, "Evicted", "%" PRIu64 " records, older than what it holds",
                            evicted);
    if (doc_number(session, "ring.restored"))
        session_print_field(file, "Restored",
                            "%" PRIu64 " times, kept when xentraced was started again",
                            doc_number(session, "ring.restored"));
    if (says_no(session, "ring.kept") && !session_has_ended(session))
        session_print_field(file, "Kept", "no: it is lost if xentraced dies");
    if (doc_number(session, "ring.snapshots"))
        session_print_field(file, "Snapshots", "%" PRIu64 " written",
                            doc_number(session, "ring.snapshots"));
}

void storage_print_segments(FILE *file, struct json_object *session)
{
    struct json_object *files = doc_array(session, "segments.files");
    _cleanup_table_ struct table *table = NULL;

    if (!doc_length(files) ||
        table_new(">SEGMENT >SIZE >RECORDS >LOST >DROPPED END FILE", &table) < 0)
        return;
    for (size_t i = 0; i < doc_length(files); i++) {
        struct json_object *segment = doc_at(files, i);
        char size[UNITS_TEXT_MAX];

        table_add(table, "%" PRIu64, doc_number(segment, "number"));
        table_add(table, "%s", size_format(size, doc_number(segment, "bytes")));
        table_add(table, "%" PRIu64, doc_number(segment, "records"));
        table_add(table, "%" PRIu64, doc_number(segment, "lost"));
        table_add(table, "%" PRIu64, doc_number(segment, "dropped"));
        table_add(table, "%s", doc_text(segment, "reason", "-"));
        table_add(table, "%s", doc_text(segment, "path", "-"));
    }
    table_print(table, file, 4);
}

void storage_print_segment(FILE *file, struct json_object *segment)
{
    _cleanup_free_ char *missing = storage_missing(segment);
    char window[STR_WINDOW_MAX], size[UNITS_TEXT_MAX];

    session_print_field(file, "File", "%s", doc_text(segment, "path", "unknown"));
    session_print_field(
        file, "Window", "%s",
        str_window(window, doc_number(segment, "first_ns"), doc_number(segment, "last_ns")));
    session_print_field(file, "Records", "%" PRIu64 ", %s", doc_number(segment, "records"),
                        missing ? missing : "unknown");
    session_print_field(file, "Size", "%s", size_format(size, doc_number(segment, "bytes")));
}

/* ", each 64M or 1min", as asked for. */
static char *segment_shape(struct json_object *session)
{
    uint64_t bytes = doc_number(session, "segments.size_bytes");
    uint64_t usec = doc_number(session, "segments.time_usec");
    char size[UNITS_TEXT_MAX], time[UNITS_TEXT_MAX];

    return str_format("%s%s%s%s", bytes || usec ? ", each " : "",
                      bytes ? size_format(size, bytes) : "", bytes && usec ? " or " : "",
                      usec ? duration_format(time, usec) : "");
}

/* ", 10 files and 1G at most", as asked for. */
static char *segment_bounds(struct json_object *session)
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

static void print_segments(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *place = storage_place(session), *shape = segment_shape(session);
    _cleanup_free_ char *bounds = segment_bounds(session);

    session_print_field(file, "Files", "%s", place ? place : "unknown");
    session_print_field(file, "Segments", "%" PRIu64 " written, %" PRIu64 " of them deleted%s%s",
                        doc_number(session, "segments.written"),
                        doc_number(session, "segments.deleted"), shape ? shape : "",
                        bounds ? bounds : "");
    if (doc_number(session, "ledger.evicted"))
        session_print_field(file, "Evicted", "%" PRIu64 " records, in deleted segments",
                            doc_number(session, "ledger.evicted"));
    if (doc_flag(session, "segments.paused"))
        session_print_field(file, "Paused",
                            "the disk reached its reserve; it goes on when there is space");
}

void storage_print(FILE *file, struct json_object *session)
{
    const char *path = doc_text(session, "output.path", "");

    if (storage_is_segmented(session)) {
        print_segments(file, session);
        return;
    }
    if (storage_is_ring(session))
        print_ring(file, session);
    if (strcmp(path, "-") == 0)
        path = "standard output";
    if (*path)
        session_print_field(file, "File", "%s%s", path,
                            storage_is_in_memory(session) ? ", written at the end" : "");
    else if (!storage_is_ring(session))
        session_print_field(file, "File", "unknown");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* "Missing: none" is printed only if the document has counts, and they are 0. */

#include "ctl/snapshot.h"

#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "ctl/number.h"
#include "ctl/session.h"
#include "ctl/storage.h"
#include "ctl/str.h"
#include "ctl/table.h"

#define LIST_SHOWN 5u /* status --json has the others */

bool snapshot_is(struct json_object *doc)
{
    return doc_is(doc, DOC_FORMAT_SNAPSHOT);
}

bool snapshot_is_ok(struct json_object *snapshot)
{
    return doc_flag(snapshot, "snapshot.ok");
}

bool snapshot_is_shorter(struct json_object *snapshot)
{
    return *doc_text(snapshot, "snapshot.shorter_because", "");
}

void snapshot_print_shorter(FILE *file, struct json_object *snapshot)
{
    char part[UNITS_PART_MAX];

    if (!snapshot_is_shorter(snapshot))
        return;
    table_print_field(file, "Holds", "%s asked for",
                      duration_format_part(part, doc_number(snapshot, "snapshot.held_usec"),
                                           doc_number(snapshot, "snapshot.asked_usec")));
    (void)fprintf(file, "%9s  %s\n", "",
                  doc_text(snapshot, "snapshot.shorter_message", "no reason given"));
}

char *snapshot_cause(struct json_object *snapshot)
{
    const char *label = doc_text(snapshot, "snapshot.label", "");

    return str_format("%s%s%s%s", doc_text(snapshot, "snapshot.cause", "unknown"),
                      *label ? " (" : "", label, *label ? ")" : "");
}

void snapshot_print(FILE *file, struct json_object *snapshot)
{
    const char *path = doc_text(snapshot, "output.path", "-");
    bool is_file = strcmp(path, "-") != 0;
    _cleanup_free_ char *missing = storage_missing(doc_find(snapshot, "snapshot"));
    char window[STR_WINDOW_MAX], size[UNITS_TEXT_MAX], duration[UNITS_TEXT_MAX];
    char count[NUMBER_MAX];

    table_print_field(file, "File", "%s", is_file ? path : "standard output");
    table_print_field(file, "Window", "%s",
                      str_window(window, doc_number(snapshot, "snapshot.first_ns"),
                                 doc_number(snapshot, "snapshot.last_ns")));
    snapshot_print_shorter(file, snapshot);
    table_print_field(file, "Records", "%s",
                      number_format(count, doc_number(snapshot, "snapshot.records")));
    table_print_field(file, "Missing", "%s", missing ? missing : "unknown");
    table_print_field(file, "Written", "%s in %s",
                      size_format(size, doc_number(snapshot, "output.bytes")),
                      duration_format(duration, doc_number(snapshot, "snapshot.write_usec")));
    if (doc_find(snapshot, "output.compression"))
        table_print_field(file, "Holds", "%s of records, compressed with zstd",
                          size_format(size, doc_number(snapshot, "output.plain_bytes")));
    if (!snapshot_is_ok(snapshot))
        table_print_field(file, "Early", "%s",
                          doc_text(snapshot, "snapshot.message", "no reason given"));
    if (is_file && strcmp(doc_text(snapshot, "output.kind", "file"), "stream") != 0)
        session_print_next(file, snapshot, path);
}

static uint64_t taken_ns(struct json_object *snapshot)
{
    uint64_t ended = doc_number(snapshot, "ended.realtime_ns");

    return ended ? ended : doc_number(snapshot, "snapshot.last_ns");
}

/* " (waiting for the disk since 12:00:03 (14s))", " (incomplete)", or nothing. */
static char *describe_state(struct json_object *snapshot)
{
    uint64_t since_ns = doc_number(snapshot, "output.waiting_since_ns");
    char since[STR_SINCE_MAX];

    if (since_ns)
        return str_format(" (waiting for the disk since %s)", str_since(since, since_ns));
    return strdup(snapshot_is_ok(snapshot) ? "" : " (incomplete)");
}

/* "5min", or "9min 58s of the 1h" that was asked for. */
static void add_covered(struct table *table, struct json_object *snapshot)
{
    uint64_t first = doc_number(snapshot, "snapshot.first_ns");
    uint64_t last = doc_number(snapshot, "snapshot.last_ns");
    char part[UNITS_PART_MAX], covers[UNITS_TEXT_MAX];

    if (snapshot_is_shorter(snapshot))
        table_add(table, "%s",
                  duration_format_part(part, doc_number(snapshot, "snapshot.held_usec"),
                                       doc_number(snapshot, "snapshot.asked_usec")));
    else
        table_add(table, "%s",
                  duration_format(covers, last > first ? (last - first) / NSEC_PER_USEC : 0));
}

static void add_row(struct table *table, struct json_object *snapshot)
{
    _cleanup_free_ char *state = describe_state(snapshot);
    _cleanup_free_ char *cause = snapshot_cause(snapshot);
    char taken[STR_AGO_MAX];

    table_add(table, "%s", str_ago(taken, taken_ns(snapshot)));
    table_add(table, "%s", cause ? cause : "-");
    table_add(table, "%s", doc_text(snapshot, "snapshot.session", "-"));
    add_covered(table, snapshot);
    table_add_count(table, doc_number(snapshot, "snapshot.records"));
    table_add_count(table, doc_number(snapshot, "snapshot.lost") +
                               doc_number(snapshot, "snapshot.dropped"));
    table_add(table, "%s%s", doc_text(snapshot, "output.path", "-"), state ? state : "");
}

void snapshot_print_list(FILE *file, struct json_object *snapshots, int width)
{
    _cleanup_table_ struct table *table = NULL;
    size_t count = doc_length(snapshots);

    if (!count || table_new("TAKEN ~CAUSE ?OF COVERS >RECORDS >MISSING /FILE", &table) < 0)
        return;
    (void)fputs("\nSnapshots\n", file);
    for (size_t i = 0; i < count && i < LIST_SHOWN; i++)
        add_row(table, doc_at(snapshots, i));
    table_print(table, file, 4, width);
    if (count > LIST_SHOWN)
        (void)fprintf(file, "    and %zu more: xentracectl status --json\n", count - LIST_SHOWN);
}

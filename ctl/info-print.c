/* SPDX-License-Identifier: GPL-2.0-or-later */
/* struct info for people. The verdict comes first; everything below it describes the sound part. */

#include "ctl/info.h"

#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "ctl/session.h"
#include "ctl/snapshot.h"
#include "ctl/storage.h"
#include "ctl/str.h"
#include "ctl/table.h"

static void print_verdict(FILE *file, const struct info *info)
{
    const struct trace_file_summary *summary = info->summary;
    const char *advice = info_is_running(info)
                             ? "; xentraced may still be writing it: xentracectl list tells"
                             : "; what stands before it can be read";

    if (summary->damage == TRACE_FILE_EMPTY)
        session_print_field(file, "Verdict", "sound, but empty: no record was written");
    else if (summary->damage != TRACE_FILE_SOUND)
        session_print_field(file, "Verdict", "DAMAGED at byte %" PRIu64 ": %s%s",
                            summary->damage_offset, trace_file_damage_text(summary->damage),
                            summary->sound_bytes || info_is_running(info) ? advice : "");
    else if (info_is_short(info))
        session_print_field(file, "Verdict", "INCOMPLETE: readable, but its sidecar knows of more");
    else
        session_print_field(file, "Verdict", "sound: every reader of Xen traces can read it");
}

static void print_span(FILE *file, const struct info *info)
{
    uint64_t ticks = info->summary->last_tsc - info->summary->first_tsc;
    uint64_t khz = info_tsc_khz(info);
    char duration[UNITS_TEXT_MAX];

    if (khz)
        session_print_field(file, "Span", "%s (%" PRIu64 " ticks of %" PRIu64 " kHz)",
                            duration_format(duration, str_ticks_usec(ticks, khz)), ticks, khz);
    else
        session_print_field(file, "Span", "%" PRIu64 " TSC ticks (their frequency is not known)",
                            ticks);
}

static void print_classes(FILE *file, const struct trace_file_summary *summary)
{
    _cleanup_free_ char *text = strdup("");
    const char *comma = "";

    for (unsigned int i = 0; i < EVENT_CLASSES && text; i++) {
        char *longer;

        if (!summary->class_records[i])
            continue;
        longer = str_format("%s%s%s %" PRIu64, text, comma,
                            event_class_name(UINT32_C(1) << (16 + i)), summary->class_records[i]);
        free(text);
        text = longer;
        comma = ", ";
    }
    if (text && *text)
        session_print_field(file, "Classes", "%s", text);
}

static void print_cpus(FILE *file, const struct trace_file_summary *summary)
{
    _cleanup_table_ struct table *table = NULL;

    if (!summary->windows || table_new(">CPU >WINDOWS >BYTES >RECORDS >LOST", &table) < 0)
        return;
    for (unsigned int i = 0; i < summary->nr_cpus; i++) {
        const struct trace_file_cpu *cpu = &summary->cpus[i];

        if (!cpu->present)
            continue;
        table_add(table, "%u", i);
        table_add(table, "%" PRIu64, cpu->windows);
        table_add(table, "%" PRIu64, cpu->bytes);
        table_add(table, "%" PRIu64, cpu->records);
        table_add(table, "%" PRIu64, cpu->lost);
    }
    table_print(table, file, 4);
}

/* Where the two tell different things. */
static void print_disagreement(FILE *file, const struct info *info)
{
    const struct info_told told = info_read_told(info);
    const struct {
        const char *what;
        uint64_t told, in_file;
    } counts[] = {
        {"bytes", told.bytes, info->summary->bytes},
        {"records", told.records, info->summary->records},
        {"lost", told.lost, info->summary->lost},
    };

    for (size_t i = 0; i < ARRAY_SIZE(counts) && told.is_known; i++) {
        if (counts[i].told != counts[i].in_file)
            session_print_field(file, "Differs",
                                "%s: %" PRIu64 " in the file, %" PRIu64 " in the sidecar",
                                counts[i].what, counts[i].in_file, counts[i].told);
    }
}

static void print_snapshot(FILE *file, struct json_object *snapshot)
{
    _cleanup_free_ char *cause = snapshot_cause(snapshot);
    _cleanup_free_ char *missing = storage_missing(doc_find(snapshot, "snapshot"));
    char window[STR_WINDOW_MAX];

    session_print_field(file, "Snapshot", "%s of %s on %s",
                        doc_text(snapshot, "name", "(without a name)"),
                        doc_text(snapshot, "snapshot.session", "an unknown capture"),
                        doc_text(snapshot, "host.hostname", "(unknown host)"));
    session_print_field(file, "Cause", "%s", cause ? cause : "unknown");
    if (doc_text(snapshot, "snapshot.reason", "")[0] != '\0')
        session_print_field(file, "Reason", "%s", doc_text(snapshot, "snapshot.reason", ""));
    session_print_field(file, "Window", "%s",
                        str_window(window, doc_number(snapshot, "snapshot.first_ns"),
                                   doc_number(snapshot, "snapshot.last_ns")));
    session_print_field(file, "Missing", "%s", missing ? missing : "unknown");
}

static void print_host(FILE *file, struct json_object *session)
{
    char since[STR_TIME_MAX];

    if (snapshot_is(session))
        print_snapshot(file, session);
    else
        session_print_field(file, "Capture", "%s on %s, since %s",
                            doc_text(session, "name", "(without a name)"),
                            doc_text(session, "host.hostname", "(unknown host)"),
                            str_time(since, doc_number(session, "started.realtime_ns")));
    session_print_field(
        file, "Host", "Xen %s, %" PRIu64 " CPUs, %s, scheduler %s",
        doc_text(session, "host.xen_version", "(unknown version)"),
        doc_number(session, "host.cpus"),
        doc_text(session, "host.cpu_model", doc_text(session, "host.cpu_vendor", "unknown CPU")),
        doc_text(session, "host.scheduler", "unknown"));
    session_print_field(file, "Events", "%s", doc_text(session, "events.spec", "unknown"));
}

static void print_end(FILE *file, struct json_object *sidecar)
{
    bool is_snapshot = snapshot_is(sidecar);
    bool is_ok = is_snapshot ? snapshot_is_ok(sidecar) : session_is_ok(sidecar);

    if (!session_has_ended(sidecar)) { /* a finished segment of a capture that goes on */
        session_print_field(file, "Ended", "this segment; its capture goes on");
        return;
    }
    session_print_field(
        file, "Ended", "%s%s", is_ok ? "" : "early: ",
        doc_text(sidecar, is_snapshot ? "snapshot.message" : "ended.message", "no reason given"));
}

static void print_sidecar(FILE *file, const struct info *info)
{
    if (info->sidecar_error)
        session_print_field(file, "Sidecar", "%s: %s", info->sidecar_path, info->sidecar_error);
    if (!info->sidecar)
        return;
    session_print_field(file, "Sidecar", "%s", info->sidecar_path);
    print_host(file, info->sidecar);
    if (info_is_running(info)) {
        session_print_field(file, "Ended",
                            "not by this sidecar: xentraced is still writing, or died meanwhile");
        return;
    }
    print_end(file, info->sidecar);
    print_disagreement(file, info);
}

void info_print(FILE *file, struct info *info)
{
    const struct trace_file_summary *summary = info->summary;
    char size[UNITS_TEXT_MAX];

    str_make_printable(info->path);
    if (info->sidecar_path)
        str_make_printable(info->sidecar_path);
    doc_make_printable(info->sidecar);

    (void)fprintf(file, "%s\n", strcmp(info->path, "-") == 0 ? "standard input" : info->path);
    print_verdict(file, info);
    session_print_field(file, "Bytes", "%" PRIu64 " (%s)", summary->bytes,
                        size_format(size, summary->bytes));
    if (summary->damage != TRACE_FILE_SOUND && summary->damage != TRACE_FILE_EMPTY)
        session_print_field(file, "Sound", "%" PRIu64 " bytes", summary->sound_bytes);
    session_print_field(file, "Records", "%" PRIu64 " in %" PRIu64 " windows, %" PRIu64 " rounds",
                        summary->records, summary->windows, summary->rounds);
    session_print_field(file, "Lost", "%" PRIu64, summary->lost);
    if (summary->windows)
        print_span(file, info);
    print_classes(file, summary);
    print_sidecar(file, info);
    print_cpus(file, summary);
}

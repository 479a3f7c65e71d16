// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xentracectl info: what is in trace files, and whether it is all there. Needs no daemon.
 *
 * A file is judged by its own bytes; the sidecar adds what they cannot tell: how it ended, and
 * how much should be there. A capture that was cut between two windows is sound in itself: only the
 * ledger shows what is missing.
 */

#include <errno.h>
#include <getopt.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/record.h"
#include "common/sidecar-path.h"
#include "common/trace-file.h"
#include "common/trace-open.h"
#include "common/units.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/domains.h"
#include "ctl/input.h"
#include "ctl/pager.h"
#include "ctl/reader.h"
#include "ctl/session.h"
#include "ctl/snapshot.h"
#include "ctl/storage.h"
#include "ctl/str.h"
#include "ctl/table.h"
#include "trace/state.h"

#define GUEST_CLASS 11u /* the bit of TRC_GUEST, counted from bit 16 */
_Static_assert(TRC_GUEST >> 16 == UINT32_C(1) << GUEST_CLASS, "a file format");

/* One file, read to its end, and what its sidecar says about it. */
struct info {
    char *path;                         /* as typed */
    struct trace_file_summary *summary; /* NULL: could not be read, see error */
    char *error;
    struct reader_facts facts; /* what the records say */
    char *sidecar_path;
    struct json_object *sidecar; /* NULL: none */
    char *sidecar_error;         /* there is one, but it is no use */
};

static struct info *info_free(struct info *info)
{
    if (!info)
        return NULL;
    (void)trace_file_summary_free(info->summary);
    (void)doc_free(info->sidecar);
    free(info->path);
    free(info->error);
    free(info->sidecar_path);
    free(info->sidecar_error);
    free(info);
    return NULL;
}

static void info_freep(struct info **info)
{
    *info = info_free(*info);
}

static int open_trace(const char *path)
{
    int fd;

    if (strcmp(path, "-") != 0)
        return trace_open(path);
    fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? -errno : fd;
}

/* A sidecar in place of the trace: 1 with a sentence in info->error. */
static int refuse_sidecar(struct info *info)
{
    info->error = input_explain_sidecar(info->path);
    return info->error ? 1 : 0;
}

static int note_record(void *context, unsigned int cpu, const void *record, uint32_t bytes)
{
    struct reader_facts *facts = context;
    const uint8_t *p = record;
    uint32_t header, reason;
    size_t at;

    (void)cpu;
    memcpy(&header, p, sizeof(header));
    at = RECORD_MIN_BYTES + (record_has_tsc(header) ? 8u : 0u);
    if (!state_is_exit(record_event(header)) || bytes < at + sizeof(reason))
        return 0;
    memcpy(&reason, p + at, sizeof(reason));
    reader_note_exit(facts, record_event(header), reason);
    return 0;
}

static int read_trace(struct info *info)
{
    _cleanup_fd_ int fd = -1;
    struct stat before, after;
    int r;

    r = strcmp(info->path, "-") == 0 ? 0 : refuse_sidecar(info);
    if (r != 0)
        return r < 0 ? r : 0;
    fd = open_trace(info->path);
    if (fd >= 0)
        r = fstat(fd, &before) < 0 ? -errno
                                   : trace_file_walk(fd, note_record, &info->facts, &info->summary);
    else
        r = fd;
    if (r == 0 || r == -ENOMEM)
        return r;
    if (r == -EIO && fstat(fd, &after) == 0 && after.st_size < before.st_size)
        info->error = str_format("%s has become shorter while it was read.", info->path);
    else
        (void)str_refuse(r, &info->error, "Cannot read %s: %s.", info->path, trace_open_problem(r));
    return info->error ? 0 : -ENOMEM;
}

static int read_sidecar(struct info *info)
{
    int r;

    if (strcmp(info->path, "-") == 0)
        return 0;
    info->sidecar_path = sidecar_path_of(info->path);
    if (!info->sidecar_path)
        return -ENOMEM;
    r = doc_read_file(info->sidecar_path, &info->sidecar);
    if (r == 0 && !doc_is(info->sidecar, DOC_FORMAT_SESSION) && !snapshot_is(info->sidecar)) {
        info->sidecar = doc_free(info->sidecar);
        r = -EBADMSG;
    }
    if (r == -EBADMSG || r == -EFBIG) {
        info->sidecar_error = strdup(r == -EFBIG ? "too large for a sidecar, and was not read"
                                                 : "not a session document");
        return info->sidecar_error ? 0 : -ENOMEM;
    }
    if (r < 0 && r != -ENOENT) {
        errno = -r;
        info->sidecar_error = str_format("%m");
    }
    return r == -ENOMEM ? r : 0;
}

/* Reads PATH ("-": standard input) and its sidecar. Only -ENOMEM is an error. */
static int info_new(const char *path, struct info **ret_info)
{
    _cleanup_(info_freep) struct info *info = calloc(1, sizeof(*info));
    int r;

    if (!info)
        return -ENOMEM;
    info->path = strdup(path);
    if (!info->path)
        return -ENOMEM;
    r = read_trace(info);
    if (r < 0)
        return r;
    r = info->summary ? read_sidecar(info) : 0;
    if (r < 0)
        return r;
    *ret_info = TAKE_PTR(info);
    return 0;
}

/* The counts for this file in its sidecar. */
struct info_expected {
    bool is_known; /* false: the sidecar does not know this file */
    uint64_t bytes, records, lost;
};

static struct info_expected info_read_expected(const struct info *info)
{
    struct json_object *sidecar = info->sidecar;
    bool is_snapshot = snapshot_is(sidecar), is_segmented = doc_find(sidecar, "segments");
    struct json_object *counts = is_snapshot    ? doc_find(sidecar, "snapshot")
                                 : is_segmented ? storage_find_segment(sidecar, info->path)
                                                : doc_find(sidecar, "ledger");
    struct json_object *file = is_segmented ? counts : doc_find(sidecar, "output");

    return (struct info_expected){
        .is_known = is_snapshot || is_segmented ? counts != NULL : sidecar != NULL,
        .bytes = doc_number(file, doc_find(file, "compression") ? "plain_bytes" : "bytes"),
        .records = doc_number(counts, is_snapshot || is_segmented ? "records" : "delivered"),
        /* After a restart of the daemon, the first segment reports what was dropped in it. */
        .lost = doc_number(counts, "lost") + doc_number(counts, "missing_before"),
    };
}

/* Whether xentraced may still be writing it, by its sidecar. */
static bool info_is_running(const struct info *info)
{
    if (!info->sidecar || doc_session_has_ended(info->sidecar))
        return false;
    /* a segment may be finished while its capture continues */
    return !*doc_text(storage_find_segment(info->sidecar, info->path), "reason", "");
}

/* Whether the sidecar, of a capture that ended, has more records than the file. */
static bool info_is_short(const struct info *info)
{
    struct info_expected expected = info_read_expected(info);

    return expected.is_known && !info_is_running(info) &&
           (expected.bytes > info->summary->bytes || expected.records > info->summary->records);
}

/* Whether the file can be relied on: exit code 0. */
static bool info_is_sound(const struct info *info)
{
    return info->summary &&
           (info->summary->damage == TRACE_FILE_SOUND ||
            info->summary->damage == TRACE_FILE_EMPTY) &&
           !info_is_short(info);
}

static uint64_t info_tsc_khz(const struct info *info)
{
    return doc_number(info->sidecar, "host.tsc_khz");
}

/*
 * The TSC from which on all CPUs of the file have their records, if that is later than its first
 * record, else 0. A segment and a snapshot have their own object for what is theirs alone.
 */
static uint64_t info_complete_from_tsc(const struct info *info, uint64_t *ret_ns)
{
    struct json_object *objects[] = {
        doc_find(info->sidecar, "segment"),
        doc_find(info->sidecar, "snapshot"),
        info->sidecar,
    };

    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        uint64_t tsc = doc_number(objects[i], "complete_from_tsc");

        if (!tsc)
            continue;
        *ret_ns = doc_number(objects[i], "complete_from_ns");
        return tsc > info->summary->first_tsc && info->summary->records ? tsc : 0;
    }
    return 0;
}

/* For people: the verdict comes first; everything below it describes the sound part. */

static void print_verdict(FILE *file, const struct info *info)
{
    const struct trace_file_summary *summary = info->summary;
    const char *advice =
        info_is_running(info)
            ? "; xentraced may still be writing it, see: xentracectl list"
            : "; the part before it is readable, the rest after: xentracectl repair";

    if (summary->damage == TRACE_FILE_EMPTY)
        table_print_field(file, "Verdict", "sound, but empty: no record was written");
    else if (summary->damage != TRACE_FILE_SOUND)
        table_print_field(file, "Verdict", "DAMAGED at byte %" PRIu64 ": %s%s",
                          summary->damage_offset, trace_file_damage_text(summary->damage),
                          summary->sound_bytes || info_is_running(info) ? advice : "");
    else if (info_is_short(info))
        table_print_field(file, "Verdict",
                          "INCOMPLETE: readable, but its sidecar counts more records");
    else
        table_print_field(file, "Verdict", "sound");
}

static void print_compression(FILE *file, const struct trace_file_summary *summary)
{
    char stored[UNITS_TEXT_MAX];

    if (!summary->is_packed)
        return;
    table_print_field(file, "Stored", "%" PRIu64 " (%s), compressed with zstd%s",
                      summary->stored_bytes, size_format(stored, summary->stored_bytes),
                      summary->has_seek_table ? ""
                                              : ", without a seek table: it is read as a whole");
    if (summary->packing != UNPACK_SOUND)
        (void)fprintf(file, "%9s  %s\n", "", unpack_damage_text(summary->packing));
}

static void add_compression(struct json_object *object, const struct trace_file_summary *summary)
{
    struct json_object *compression;

    if (!summary->is_packed)
        return;
    compression = doc_add_object(object, "compression");
    doc_add_text(compression, "kind", "zstd");
    doc_add_number(compression, "stored_bytes", summary->stored_bytes);
    doc_add_flag(compression, "seek_table", summary->has_seek_table);
    if (summary->packing != UNPACK_SOUND)
        doc_add_text(compression, "damage", unpack_damage_text(summary->packing));
}

/* The sidecar knows the processor; of the exits, those that are there count. */
static void print_readers(FILE *file, const struct info *info)
{
    struct reader_facts facts = reader_facts_of(info->sidecar);

    facts.has_exits = info->facts.has_exits;
    facts.has_svm_exits = info->facts.has_svm_exits;
    facts.highest_reason = info->facts.highest_reason;
    facts.is_amd = facts.is_amd || info->facts.is_amd;
    facts.has_guest_records = info->summary->class_records[GUEST_CLASS] > 0;
    facts.nr_cpus = info->summary->nr_cpus;
    table_print_field(file, "Readers", "xentracectl report; %s%s",
                      info->summary->is_packed ? "after zstd -d: " : "", reader_describe(&facts));
}

static void print_span(FILE *file, const struct info *info)
{
    uint64_t ticks = info->summary->last_tsc - info->summary->first_tsc;
    uint64_t khz = info_tsc_khz(info);
    char duration[UNITS_TEXT_MAX];

    if (khz)
        table_print_field(file, "Span", "%s (%" PRIu64 " ticks of %" PRIu64 " kHz)",
                          duration_format(duration, str_ticks_usec(ticks, khz)), ticks, khz);
    else
        table_print_field(file, "Span", "%" PRIu64 " TSC ticks of unknown frequency", ticks);
}

static void print_complete(FILE *file, const struct info *info)
{
    uint64_t ns = 0, tsc = info_complete_from_tsc(info, &ns), khz = info_tsc_khz(info);
    _cleanup_free_ char *from = NULL;
    char time[STR_TIME_MAX], delay[UNITS_TEXT_MAX];

    if (!tsc)
        return;
    from = ns ? strdup(str_time(time, ns)) : str_format("TSC %" PRIu64, tsc);
    (void)duration_format(delay, str_ticks_usec(tsc - info->summary->first_tsc, khz));
    table_print_field(file, "Complete", "from %s on%s%s%s", from ? from : "unknown",
                      khz ? ", " : "", khz ? delay : "", khz ? " after the first record" : "");
    (void)fprintf(file, "%9s  before that, records of some CPUs are missing\n", "");
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
        table_print_field(file, "Classes", "%s", text);
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
    table_print(table, file, 4, 0);
}

/* Where the counts of the two differ. */
static void print_disagreement(FILE *file, const struct info *info)
{
    const struct info_expected expected = info_read_expected(info);
    const struct {
        const char *what;
        uint64_t expected, in_file;
    } counts[] = {
        {"bytes", expected.bytes, info->summary->bytes},
        {"records", expected.records, info->summary->records},
        {"lost", expected.lost, info->summary->lost},
    };

    for (size_t i = 0; i < ARRAY_SIZE(counts) && expected.is_known; i++) {
        if (counts[i].expected != counts[i].in_file)
            table_print_field(file, "Differs",
                              "%s: %" PRIu64 " in the file, %" PRIu64 " in the sidecar",
                              counts[i].what, counts[i].in_file, counts[i].expected);
    }
}

static void print_snapshot(FILE *file, struct json_object *snapshot)
{
    _cleanup_free_ char *cause = snapshot_cause(snapshot);
    _cleanup_free_ char *missing = storage_missing(doc_find(snapshot, "snapshot"));
    char window[STR_WINDOW_MAX];

    table_print_field(file, "Snapshot", "%s of %s on %s",
                      doc_text(snapshot, "name", "(without a name)"),
                      doc_text(snapshot, "snapshot.session", "an unknown capture"),
                      doc_text(snapshot, "host.hostname", "(unknown host)"));
    table_print_field(file, "Cause", "%s", cause ? cause : "unknown");
    if (doc_text(snapshot, "snapshot.reason", "")[0] != '\0')
        table_print_field(file, "Reason", "%s", doc_text(snapshot, "snapshot.reason", ""));
    table_print_field(file, "Window", "%s",
                      str_window(window, doc_number(snapshot, "snapshot.first_ns"),
                                 doc_number(snapshot, "snapshot.last_ns")));
    snapshot_print_shorter(file, snapshot);
    table_print_field(file, "Missing", "%s", missing ? missing : "unknown");
}

static void print_host(FILE *file, struct json_object *session)
{
    char since[STR_TIME_MAX];

    if (snapshot_is(session))
        print_snapshot(file, session);
    else
        table_print_field(file, "Capture", "%s on %s, since %s",
                          doc_text(session, "name", "(without a name)"),
                          doc_text(session, "host.hostname", "(unknown host)"),
                          str_time(since, doc_number(session, "started.realtime_ns")));
    table_print_field(
        file, "Host", "Xen %s, %" PRIu64 " CPUs, %s, scheduler %s",
        doc_text(session, "host.xen_version", "(unknown version)"),
        doc_number(session, "host.cpus"),
        doc_text(session, "host.cpu_model", doc_text(session, "host.cpu_vendor", "unknown CPU")),
        doc_text(session, "host.scheduler", "unknown"));
    table_print_field(file, "Events", "%s", doc_text(session, "events.spec", "unknown"));
}

static void print_end(FILE *file, struct json_object *sidecar)
{
    bool is_snapshot = snapshot_is(sidecar);
    bool is_ok = is_snapshot ? snapshot_is_ok(sidecar) : session_is_ok(sidecar);

    if (!doc_session_has_ended(sidecar)) { /* a finished segment of a capture that continues */
        table_print_field(file, "Ended", "this segment; its capture continues");
        return;
    }
    table_print_field(
        file, "Ended", "%s%s", is_ok ? "" : "early: ",
        doc_text(sidecar, is_snapshot ? "snapshot.message" : "ended.message", "no reason given"));
}

static void print_sidecar(FILE *file, const struct info *info)
{
    if (info->sidecar_error)
        table_print_field(file, "Sidecar", "%s: %s", info->sidecar_path, info->sidecar_error);
    if (!info->sidecar)
        return;
    table_print_field(file, "Sidecar", "%s", info->sidecar_path);
    print_host(file, info->sidecar);
    if (info_is_running(info)) {
        table_print_field(file, "Ended", "not recorded: xentraced is still writing, or was killed");
        return;
    }
    print_end(file, info->sidecar);
    print_disagreement(file, info);
}

static void info_print(FILE *file, struct info *info)
{
    const struct trace_file_summary *summary = info->summary;
    char size[UNITS_TEXT_MAX];

    str_make_printable(info->path);
    if (info->sidecar_path)
        str_make_printable(info->sidecar_path);
    doc_make_printable(info->sidecar);

    (void)fprintf(file, "%s\n", strcmp(info->path, "-") == 0 ? "standard input" : info->path);
    print_verdict(file, info);
    if (info->summary->damage == TRACE_FILE_SOUND)
        print_readers(file, info);
    table_print_field(file, "Bytes", "%" PRIu64 " (%s)", summary->bytes,
                      size_format(size, summary->bytes));
    print_compression(file, summary);
    if (summary->damage != TRACE_FILE_SOUND && summary->damage != TRACE_FILE_EMPTY)
        table_print_field(file, "Sound", "%" PRIu64 " bytes", summary->sound_bytes);
    table_print_field(file, "Records", "%" PRIu64 " in %" PRIu64 " windows, %" PRIu64 " rounds",
                      summary->records, summary->windows, summary->rounds);
    table_print_field(file, "Lost", "%" PRIu64, summary->lost);
    if (summary->windows)
        print_span(file, info);
    print_complete(file, info);
    print_classes(file, summary);
    print_sidecar(file, info);
    domains_print(file, info->sidecar);
    print_cpus(file, summary);
}

/* As JSON: the format is described in xentracectl(1), keys are only ever added. */

static void add_counts(struct json_object *object, const struct trace_file_summary *summary)
{
    doc_add_number(object, "bytes", summary->bytes);
    doc_add_number(object, "sound_bytes", summary->sound_bytes);
    add_compression(object, summary);
    doc_add_number(object, "windows", summary->windows);
    doc_add_number(object, "rounds", summary->rounds);
    doc_add_number(object, "records", summary->records);
    doc_add_number(object, "lost", summary->lost);
    doc_add_number(object, "first_tsc", summary->first_tsc);
    doc_add_number(object, "last_tsc", summary->last_tsc);
}

static void add_classes(struct json_object *object, const struct trace_file_summary *summary)
{
    struct json_object *classes = doc_add_object(object, "classes");

    for (unsigned int i = 0; i < EVENT_CLASSES; i++) {
        if (summary->class_records[i])
            doc_add_number(classes, event_class_name(UINT32_C(1) << (16 + i)),
                           summary->class_records[i]);
    }
}

static void add_cpus(struct json_object *object, const struct trace_file_summary *summary)
{
    struct json_object *cpus = doc_add_array(object, "cpus");

    for (unsigned int i = 0; i < summary->nr_cpus; i++) {
        const struct trace_file_cpu *cpu = &summary->cpus[i];
        struct json_object *entry;

        if (!cpu->present)
            continue;
        entry = doc_append_object(cpus);
        doc_add_number(entry, "cpu", i);
        doc_add_number(entry, "windows", cpu->windows);
        doc_add_number(entry, "bytes", cpu->bytes);
        doc_add_number(entry, "records", cpu->records);
        doc_add_number(entry, "lost", cpu->lost);
        doc_add_number(entry, "first_tsc", cpu->first_tsc);
        doc_add_number(entry, "last_tsc", cpu->last_tsc);
    }
}

static void add_sidecar(struct json_object *object, const struct info *info)
{
    struct json_object *sidecar;

    if (!info->sidecar && !info->sidecar_error)
        return;
    sidecar = doc_add_object(object, "sidecar");
    doc_add_text(sidecar, "path", info->sidecar_path);
    if (info->sidecar_error)
        doc_add_text(sidecar, "error", info->sidecar_error);
    if (!info->sidecar)
        return;
    doc_add_flag(sidecar, "running", info_is_running(info));
    doc_add_flag(sidecar, "incomplete", info_is_short(info));
    doc_add_document(sidecar, "session", info->sidecar);
}

static void info_add_json(struct json_object *array, const struct info *info)
{
    struct json_object *object = doc_append_object(array);
    const struct trace_file_summary *summary = info->summary;
    uint64_t khz = info_tsc_khz(info), complete_ns, complete_tsc;

    doc_add_text(object, "path", info->path);
    doc_add_flag(object, "sound", info_is_sound(info));
    if (!summary) {
        doc_add_text(object, "error", info->error);
        return;
    }
    if (summary->damage != TRACE_FILE_SOUND) {
        struct json_object *damage = doc_add_object(object, "damage");

        doc_add_text(damage, "kind", trace_file_damage_kind(summary->damage));
        doc_add_text(damage, "text", trace_file_damage_text(summary->damage));
        doc_add_number(damage, "offset", summary->damage_offset);
    }
    add_counts(object, summary);
    if (khz) {
        doc_add_number(object, "tsc_khz", khz);
        doc_add_number(object, "span_usec",
                       str_ticks_usec(summary->last_tsc - summary->first_tsc, khz));
    }
    complete_tsc = info_complete_from_tsc(info, &complete_ns);
    if (complete_tsc)
        doc_add_number(object, "complete_from_tsc", complete_tsc);
    add_classes(object, summary);
    add_cpus(object, summary);
    add_sidecar(object, info);
}

static int show(struct ctl *ctl, const char *path, bool is_first, struct json_object *files)
{
    _cleanup_(info_freep) struct info *info = NULL;

    if (info_new(path, &info) < 0) {
        ctl_error_sentence(NULL);
        return CTL_FAILURE;
    }
    if (ctl->json) {
        info_add_json(files, info);
    } else if (info->summary) {
        if (!is_first)
            (void)putchar('\n');
        info_print(stdout, info);
    }
    if (!info->summary)
        ctl_error_sentence(info->error);
    return info_is_sound(info) ? CTL_OK : CTL_FAILURE;
}

static int cmd_info(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_pager_ struct pager *pager = NULL;
    _cleanup_doc_ struct json_object *doc = NULL;
    struct json_object *files;
    char *error = NULL;
    int r, code = CTL_OK;

    r = args_parse(ctl, NULL, argc, argv, argc, NULL, NULL, &error);
    if (r == 0 && optind == argc)
        r = str_refuse(-EINVAL, &error, "info needs the name of a trace file.");
    if (r < 0)
        return args_exit(&verb_info, r, error);
    doc = doc_new("xentraced-info");
    files = doc_add_array(doc, "files");
    if (!ctl->json)
        pager_open(!ctl->no_pager, &pager);
    for (int i = optind; i < argc; i++) {
        if (show(ctl, argv[i], i == optind, files) != CTL_OK)
            code = CTL_FAILURE;
    }
    if (ctl->json)
        doc_print(stdout, doc);
    return code;
}

const struct verb verb_info = {
    .name = "info",
    .run = cmd_info,
    .words = "FILE...",
    .completes = "files",
    .summary = "show what a trace file contains, and check it",
    .help = "Reads trace files (- is standard input) to their end and shows what they\n"
            "contain, whether they are sound, and the facts of their sidecars. Needs no\n"
            "daemon.\n\n"
            "Exit status: 1 if a file is damaged, incomplete or unreadable.\n",
};

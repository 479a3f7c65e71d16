// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every key may be missing. Unknown facts are left out or shown as unknown. Losses are always
 * shown: "Lost: none" is printed only if the ledger has the count, and it is 0.
 */

#include "ctl/session.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cpu-set.h"
#include "common/units.h"
#include "ctl/number.h"
#include "ctl/reader.h"
#include "ctl/storage.h"
#include "ctl/str.h"
#include "ctl/table.h"

#define LOSSES_SHOWN 6u /* CPUs named in one line; status has the table */

bool session_is_ok(struct json_object *session)
{
    return doc_flag(session, "ended.ok");
}

bool session_was_aborted(struct json_object *session)
{
    return strcmp(doc_text(session, "ended.reason", ""), "abort") == 0;
}

/* From FROM to TO, by their TSC: the wall clock may have been set in between. */
static uint64_t usec_between(struct json_object *session, struct json_object *from,
                             struct json_object *to)
{
    uint64_t from_tsc = doc_number(from, "tsc"), to_tsc = doc_number(to, "tsc");
    uint64_t from_ns = doc_number(from, "realtime_ns"), to_ns = doc_number(to, "realtime_ns");
    uint64_t khz = doc_number(session, "host.tsc_khz");

    if (khz && from_tsc && to_tsc > from_tsc)
        return str_ticks_usec(to_tsc - from_tsc, khz);
    return from_ns && to_ns > from_ns ? (to_ns - from_ns) / NSEC_PER_USEC : 0;
}

uint64_t session_duration_usec(struct json_object *session)
{
    struct json_object *start = doc_find(session, "started"), *end = doc_find(session, "ended");
    struct json_object *clock = doc_array(session, "clock");
    uint64_t now_ns = 0, told_ns;
    struct timespec now;

    if (doc_number(end, "realtime_ns"))
        return usec_between(session, start, end);
    if (clock_gettime(CLOCK_REALTIME, &now) == 0)
        now_ns = (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
    /* it runs: since the document was made, too */
    if (doc_length(clock) > 0)
        end = doc_at(clock, doc_length(clock) - 1);
    else
        end = start;
    told_ns = doc_number(end, "realtime_ns");
    return usec_between(session, start, end) +
           (told_ns && now_ns > told_ns ? (now_ns - told_ns) / NSEC_PER_USEC : 0);
}

/* " (CPU 2: 7, CPU 3: 3)"; empty if no CPU is named. */
static char *lossy_cpus(struct json_object *session)
{
    struct json_object *cpus = doc_array(session, "ledger.cpus");
    char *text = strdup("");
    size_t shown = 0;

    for (size_t i = 0; i < doc_length(cpus) && text; i++) {
        struct json_object *cpu = doc_at(cpus, i);
        uint64_t lost = doc_number(cpu, "lost") + doc_number(cpu, "dropped");
        char *longer, count[NUMBER_MAX];

        if (!lost)
            continue;
        longer = shown < LOSSES_SHOWN
                     ? str_format("%s%sCPU %" PRIu64 ": %s", text, shown ? ", " : " (",
                                  doc_number(cpu, "cpu"), number_format(count, lost))
                     : str_format("%s, ...", text);
        free(text);
        text = longer;
        if (++shown > LOSSES_SHOWN)
            break;
    }
    if (text && shown) {
        char *closed = str_format("%s)", text);

        free(text);
        text = closed;
    }
    return text;
}

char *session_losses(struct json_object *session)
{
    uint64_t lost = doc_number(session, "ledger.lost");
    uint64_t dropped = doc_number(session, "ledger.dropped");
    const char *unknown = doc_text(session, "ledger.loss_unknown_cpus", "");
    _cleanup_free_ char *cpus = NULL;
    char by_xen[NUMBER_MAX], by_us[NUMBER_MAX];

    if (!lost && !dropped && !*unknown)
        return strdup(doc_find(session, "ledger.lost") ? "none" : "unknown");
    cpus = lossy_cpus(session);
    if (!cpus)
        return NULL;
    return str_format("%s by Xen, %s by xentraced%s%s%s", number_format(by_xen, lost),
                      number_format(by_us, dropped), cpus,
                      *unknown ? "; more, uncounted, on CPUs " : "", unknown);
}

uint64_t session_drops(struct json_object *session, enum drop_cause cause)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "ledger.dropped_by.%s", drop_causes[cause].name);
    return doc_number(session, path);
}

static void print_losses(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *losses = session_losses(session);
    char text[NUMBER_MAX];

    table_print_field(file, "Lost", "%s", losses ? losses : "unknown");
    for (unsigned int i = 0; i < DROP_CAUSES; i++) {
        uint64_t count = session_drops(session, i);

        if (count)
            table_print_field(file, "Dropped", "%s: %s. %s", number_format(text, count),
                              drop_causes[i].why, drop_causes[i].advice);
    }
}

static void print_amount(FILE *file, struct json_object *session)
{
    storage_print_amount(file, session, doc_number(session, "ledger.delivered"),
                         session_duration_usec(session));
}

/* The recorder is not offered --abort: its ring would be lost. */
static void print_waiting(FILE *file, struct json_object *session)
{
    uint64_t since_ns = doc_number(session, "output.waiting_since_ns");
    const char *name = doc_text(session, "name", "");
    _cleanup_free_ char *quoted = str_shell_show(name);
    char since[STR_SINCE_MAX];

    if (!since_ns)
        return;
    table_print_field(file, "Waiting", "for the disk since %s; %s", str_since(since, since_ns),
                      strcmp(doc_text(session, "state", ""), "stopping") == 0
                          ? "the file is finished when it answers"
                          : "records are kept in memory as long as there is room");
    if (*name && quoted && !storage_is_recorder(session))
        (void)fprintf(file, "%9s  to end the capture now: xentracectl stop --abort %s\n", "",
                      quoted);
}

/* Only an aborted session holds memory after its end. */
static void print_held(FILE *file, struct json_object *session)
{
    uint64_t held = doc_number(session, "output.held_bytes");
    char size[UNITS_TEXT_MAX];

    if (held)
        table_print_field(file, "Held", "%s of memory, until the disk answers",
                          size_format(size, held));
}

/* A capture that ends when the disk has no more for it. */
static bool ends_by_disk(struct json_object *session)
{
    return doc_find(session, "output.room_bytes") && !doc_number(session, "limits.time_usec") &&
           !doc_number(session, "limits.max_size_bytes") &&
           !doc_number(session, "segments.keep_files") &&
           !doc_number(session, "segments.keep_size_bytes") &&
           strcmp(doc_text(session, "limits.on_reserve", "stop"), "stop") == 0;
}

/* At the average rate so far; 0: unknown. */
static uint64_t usec_left(struct json_object *session)
{
    bool is_packed = doc_find(session, "output.compression"); /* what is queued is not, yet */
    uint64_t bytes = doc_number(session, "output.bytes") +
                     (is_packed ? 0 : doc_number(session, "output.queued_bytes"));
    uint64_t usec = session_duration_usec(session);
    double left;

    if (!bytes || usec < USEC_PER_SEC / 2)
        return 0;
    left = (double)doc_number(session, "output.room_bytes") * (double)usec / (double)bytes;
    return left < 9e18 ? (uint64_t)left : 0;
}

bool session_has_forecast(struct json_object *session)
{
    return !ends_by_disk(session) || usec_left(session) > 0;
}

char *session_end_forecast(struct json_object *session)
{
    uint64_t reserve = doc_number(session, "limits.reserve_bytes"), left;
    char size[UNITS_TEXT_MAX], time[UNITS_TEXT_MAX];

    if (!ends_by_disk(session))
        return NULL;
    left = usec_left(session);
    return str_format("when %s%s%s%s", reserve ? size_format(size, reserve) : "the disk is full",
                      reserve ? " are left free" : "", left ? ": about " : "",
                      left ? duration_format_about(time, left) : "");
}

static void print_limits(FILE *file, struct json_object *session)
{
    uint64_t time = doc_number(session, "limits.time_usec");
    uint64_t size = doc_number(session, "limits.max_size_bytes");
    uint64_t reserve = doc_number(session, "limits.reserve_bytes");
    const char *on_reserve = doc_text(session, "limits.on_reserve", "stop");
    _cleanup_free_ char *forecast = session_end_forecast(session);
    char text[UNITS_TEXT_MAX];

    if (forecast)
        table_print_field(file, "Ends", "%s", forecast);
    if (time)
        table_print_field(file, "Time", "ends after %s", duration_format(text, time));
    if (size)
        table_print_field(file, "Size", "ends at %s", size_format(text, size));
    if (reserve && !forecast)
        table_print_field(
            file, "Reserve", "%s of the disk are left free%s", size_format(text, reserve),
            strcmp(on_reserve, "rotate") == 0  ? "; the oldest segments are deleted"
            : strcmp(on_reserve, "pause") == 0 ? "; the capture pauses until there is space"
                                               : "");
}

/* A CPU list has one CPU, or several. */
static bool is_plural(const char *cpus)
{
    return strpbrk(cpus, ",-") != NULL;
}

char *session_missing_cpus(struct json_object *session)
{
    const char *cpus = doc_text(session, "buffers.missing", "");
    bool many = is_plural(cpus);

    if (!*cpus)
        return NULL;
    return str_format("CPU%s %s %s no trace buffer and %s not recorded. Xen allocates the buffers "
                      "once per boot, for the CPUs that are online: reboot the host to record %s.",
                      many ? "s" : "", cpus, many ? "have" : "has", many ? "are" : "is",
                      many ? "them" : "it");
}

/* CPUs without records, and the reason. */
static void print_unrecorded(FILE *file, struct json_object *session)
{
    const char *set_aside = doc_text(session, "buffers.set_aside", "");
    const char *missing = doc_text(session, "buffers.missing", "");
    const char *silent = doc_text(session, "buffers.silent", "");

    if (*set_aside)
        table_print_field(file, "Damaged",
                          "the trace buffer%s of CPU%s %s %s set aside; see: xl dmesg",
                          is_plural(set_aside) ? "s" : "", is_plural(set_aside) ? "s" : "",
                          set_aside, is_plural(set_aside) ? "are" : "is");
    if (*missing)
        table_print_field(file, "No buffer",
                          "CPU%s %s %s not recorded; to record %s, reboot the host while %s "
                          "online",
                          is_plural(missing) ? "s" : "", missing, is_plural(missing) ? "are" : "is",
                          is_plural(missing) ? "them" : "it",
                          is_plural(missing) ? "they are" : "it is");
    if (*silent) {
        table_print_field(file, "Silent",
                          "CPU%s %s %s in use, but Xen has recorded nothing for a minute",
                          is_plural(silent) ? "s" : "", silent, is_plural(silent) ? "are" : "is");
        (void)fprintf(file,
                      "%9s  a CPU that has been offline is not traced until the host is rebooted\n",
                      "");
    }
}

/* The CPUs that have a trace buffer; all of them if the document does not tell. */
static struct cpu_set read_buffer_cpus(struct json_object *session)
{
    _cleanup_free_ char *error = NULL;
    struct cpu_set set = {};

    if (cpu_set_parse(doc_text(session, "buffers.cpus", "all"), CPU_SET_MAX, &set, &error) < 0)
        return (struct cpu_set){};
    return set;
}

/* It has lost records, or may soon. */
static bool is_troubled(struct json_object *cpu)
{
    return doc_number(cpu, "lost") || doc_number(cpu, "dropped") ||
           doc_number(cpu, "fill_percent") > SESSION_FULL_PERCENT;
}

static void add_cpu(struct table *table, struct json_object *cpu, bool has_buffer, bool evicts)
{
    table_add(table, "%" PRIu64, doc_number(cpu, "cpu"));
    table_add_count(table, doc_number(cpu, "delivered"));
    table_add_count(table, doc_number(cpu, "lost"));
    table_add_count(table, doc_number(cpu, "dropped"));
    if (evicts)
        table_add_count(table, doc_number(cpu, "evicted"));
    if (has_buffer)
        table_add(table, "%" PRIu64 "%%", doc_number(cpu, "fill_percent"));
    else
        table_add(table, "no buffer");
}

/* ALL CPUs, or those that are in trouble, if any is. */
static void print_cpus(FILE *file, struct json_object *session, bool all)
{
    struct json_object *cpus = doc_array(session, "ledger.cpus");
    struct cpu_set buffers = read_buffer_cpus(session);
    bool evicts = doc_number(session, "ledger.evicted");
    _cleanup_table_ struct table *table = NULL;
    size_t shown = 0, left = 0;

    if (table_new(evicts ? ">CPU >RECORDS >LOST >DROPPED >EVICTED >FILL"
                         : ">CPU >RECORDS >LOST >DROPPED >FILL",
                  &table) < 0)
        return;
    for (size_t i = 0; i < doc_length(cpus); i++) {
        struct json_object *cpu = doc_at(cpus, i);
        uint64_t number = min_u64(doc_number(cpu, "cpu"), UINT_MAX);

        if (all || is_troubled(cpu)) {
            add_cpu(table, cpu, cpu_set_has(&buffers, (unsigned int)number), evicts);
            shown++;
        } else {
            left++;
        }
    }
    if (!all && !shown)
        return;
    table_print(table, file, 4, 0);
    if (left)
        (void)fprintf(file, "    and %zu CPU%s without losses: xentracectl status --all\n", left,
                      left == 1 ? "" : "s");
}

static void print_state(FILE *file, struct json_object *session)
{
    char since[STR_TIME_MAX], duration[UNITS_TEXT_MAX];
    const char *state = doc_text(session, "state", "unknown");
    bool ended = doc_session_has_ended(session);

    (void)duration_format(duration, session_duration_usec(session));
    table_print_field(file, "State", "%s%s %s", state,
                      !ended                   ? ", for"
                      : session_is_ok(session) ? " after"
                                               : " early, after",
                      duration);
    table_print_field(file, "Since", "%s",
                      str_time(since, doc_number(session, "started.realtime_ns")));
    if (ended)
        table_print_field(file, "Reason", "%s (%s)", doc_text(session, "ended.message", "unknown"),
                          doc_text(session, "ended.reason", "unknown"));
}

static void print_compression(FILE *file, struct json_object *session)
{
    uint64_t plain = doc_number(session, "output.plain_bytes");
    uint64_t raw = doc_number(session, "output.raw_bytes");
    char size[UNITS_TEXT_MAX], raw_size[UNITS_TEXT_MAX];

    if (!plain)
        return;
    table_print_field(file, "Holds", "%s of records, compressed with zstd%s%s%s",
                      size_format(size, plain), raw ? " (" : "",
                      raw ? size_format(raw_size, raw) : "",
                      raw ? " are not: the processors were busy)" : "");
}

void session_print(FILE *file, struct json_object *session, bool with_cpus, int width)
{
    doc_make_printable(session);
    (void)fprintf(file, "%s\n", doc_text(session, "name", "(without a name)"));
    print_state(file, session);
    storage_print(file, session);
    print_compression(file, session);
    print_waiting(file, session);
    print_held(file, session);
    table_print_field(file, "Events", "%s (Xen's mask 0x%08" PRIx64 "%s)",
                      doc_text(session, "events.spec", "unknown"),
                      doc_number(session, "events.xen_mask"),
                      doc_flag(session, "events.filtered") ? ", filtered" : "");
    table_print_field(file, "CPUs", "%s",
                      doc_text(session, "cpus.list", doc_text(session, "cpus.spec", "unknown")));
    print_limits(file, session);
    print_amount(file, session);
    print_losses(file, session);
    print_unrecorded(file, session);
    if (with_cpus)
        storage_print_segments(file, session, width);
    print_cpus(file, session, with_cpus);
}

void session_print_result(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *losses = NULL, *place = NULL;
    char size[UNITS_TEXT_MAX], duration[UNITS_TEXT_MAX], count[NUMBER_MAX];
    bool early = doc_session_has_ended(session) && !session_is_ok(session);

    doc_make_printable(session);
    losses = session_losses(session);
    place = storage_place(session);
    (void)fprintf(file, "%s: %s, %s records, %s in %s, lost: %s%s%s\n",
                  doc_text(session, "name", "(without a name)"), place ? place : "unknown file",
                  number_format(count, doc_number(session, "ledger.delivered")),
                  size_format(size, storage_bytes(session)),
                  duration_format(duration, session_duration_usec(session)),
                  losses ? losses : "unknown", early ? ". It ended early: " : "",
                  early ? doc_text(session, "ended.message", "no reason given") : "");
}

void session_add_ended(struct table *table, struct json_object *session)
{
    _cleanup_free_ char *losses = session_losses(session), *place = storage_place(session);
    bool ok = session_is_ok(session);
    char size[UNITS_TEXT_MAX], duration[UNITS_TEXT_MAX];

    table_add(table, "%s", doc_text(session, "name", "-"));
    table_add_count(table, doc_number(session, "ledger.delivered"));
    table_add(table, "%s", size_format(size, storage_bytes(session)));
    table_add(table, "%s", duration_format(duration, session_duration_usec(session)));
    table_add(table, "%s", losses ? losses : "unknown");
    table_add(table, "%s", place ? place : "-");
    table_add(table, "%s%s", ok ? "-" : "Ended early: ",
              ok ? "" : doc_text(session, "ended.message", "no reason given"));
}

void session_print_aborted(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *place = NULL;
    char text[UNITS_TEXT_MAX], count[NUMBER_MAX];

    doc_make_printable(session);
    place = storage_place(session);
    (void)fprintf(file, "%s was aborted after %s: %s\n",
                  doc_text(session, "name", "(without a name)"),
                  duration_format(text, session_duration_usec(session)),
                  doc_text(session, "ended.message", "no reason given"));
    table_print_field(file, "Kept", "%s, %s records in %s",
                      size_format(text, storage_bytes(session)),
                      number_format(count, doc_number(session, "ledger.delivered")),
                      place ? place : "unknown file");
    table_print_field(file, "Dropped", "%s records",
                      number_format(count, doc_number(session, "ledger.dropped")));
    if (doc_number(session, "ledger.lost"))
        table_print_field(file, "Lost", "%s records by Xen",
                          number_format(count, doc_number(session, "ledger.lost")));
    print_held(file, session);
}

/* Captures are root's, and the group's to read: for who may not, it takes sudo. */
static const char *sudo_for(const char *path)
{
    return access(path, R_OK) < 0 && errno == EACCES ? "sudo " : "";
}

void session_print_next(FILE *file, struct json_object *session, const char *path)
{
    _cleanup_free_ char *quoted = str_shell_show(path);
    const char *sudo = sudo_for(path);
    uint64_t khz = doc_number(session, "host.tsc_khz");
    const char *remote = doc_text(session, "remote", "");
    struct reader_facts facts = reader_facts_of(session);

    if (!quoted)
        return;
    if (*remote) {
        table_print_field(file, "Next", "xentracectl -H %s report %s", remote, quoted);
        return;
    }
    if (strcmp(doc_text(session, "output.kind", ""), "bundle") == 0) {
        table_print_field(file, "Next", "%star -xf %s", sudo, quoted);
        return;
    }
    table_print_field(file, "Next", "%sxentracectl report %s", sudo, quoted);
    reader_print_command(file, &facts, sudo, quoted, khz);
}

void session_print_summary(FILE *file, struct json_object *session)
{
    char duration[UNITS_TEXT_MAX];
    const char *path;

    doc_make_printable(session);
    path = storage_file(session);
    (void)fprintf(file, "%s ended%s after %s: %s\n", doc_text(session, "name", "(without a name)"),
                  session_is_ok(session) ? "" : " early",
                  duration_format(duration, session_duration_usec(session)),
                  doc_text(session, "ended.message", "no reason given"));
    storage_print(file, session);
    print_amount(file, session);
    print_losses(file, session);
    if (strcmp(path, "-") != 0)
        session_print_next(file, session, path);
}

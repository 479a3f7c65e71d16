// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ages are taken between two dates of the document, so that they are right on another host, too.
 * Keys that an older daemon does not have are no reason to worry anybody.
 */

#include "ctl/health.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "common/protocol.h"
#include "ctl/ctl.h"
#include "ctl/session.h"
#include "ctl/storage.h"
#include "ctl/str.h"

static void warn(struct health *health, const char *format, ...) _printf_(2, 3);

static void warn(struct health *health, const char *format, ...)
{
    va_list ap;
    char *text;
    int r;

    if (health->nr_warnings == HEALTH_WARNINGS_MAX)
        return;
    va_start(ap, format);
    r = vasprintf(&text, format, ap);
    va_end(ap);
    if (r >= 0)
        health->warnings[health->nr_warnings++] = text;
}

/* Takes TEXT. */
static void set_headline(struct health *health, char *text)
{
    free(health->headline);
    health->headline = text;
}

static uint64_t now_of(struct json_object *session)
{
    struct json_object *clock = doc_array(session, "clock");
    size_t length = doc_length(clock);

    return length ? doc_number(doc_at(clock, length - 1), "realtime_ns") : 0;
}

uint64_t health_loss_age_usec(struct json_object *session)
{
    uint64_t now_ns = now_of(session), loss_ns = doc_number(session, "ledger.last_loss_ns");

    if (!now_ns || !loss_ns)
        return 0;
    return now_ns > loss_ns ? max_u64((now_ns - loss_ns) / NSEC_PER_USEC, 1) : 1;
}

bool health_loses_now(struct json_object *session)
{
    uint64_t age_usec = health_loss_age_usec(session);

    return !doc_session_has_ended(session) && age_usec && age_usec <= HEALTH_LOSS_NOW_USEC;
}

/* "flight-recorder: 10 by Xen, 0 by xentraced (CPU 1: 10), the last ones 2s ago". */
static char *describe_losses(struct json_object *session)
{
    _cleanup_free_ char *losses = session_losses(session);
    uint64_t age_usec = health_loss_age_usec(session);
    char age[UNITS_TEXT_MAX];

    return str_format("%s: %s, the last ones %s%s", doc_text(session, "name", "-"),
                      losses ? losses : "unknown",
                      age_usec < USEC_PER_SEC ? "just now" : duration_format(age, age_usec),
                      age_usec < USEC_PER_SEC ? "" : " ago");
}

/*
 * The running sessions, for the headline: "the flight recorder and 2 captures are". NULL: nothing,
 * or no memory.
 */
static char *describe_running(struct json_object *sessions)
{
    size_t captures = 0;
    bool has_recorder = false;

    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);

        if (doc_session_has_ended(session))
            continue;
        if (storage_is_recorder(session))
            has_recorder = true;
        else
            captures++;
    }
    if (!has_recorder && !captures)
        return NULL;
    if (!captures)
        return strdup("the flight recorder is");
    return str_format("%s%zu capture%s %s", has_recorder ? "the flight recorder and " : "",
                      captures, captures == 1 ? "" : "s",
                      captures == 1 && !has_recorder ? "is" : "are");
}

/* Returns how many sessions lose records now; the first of them is in *RET_FIRST. */
static size_t find_losing(struct json_object *sessions, struct json_object **ret_first)
{
    size_t count = 0;

    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);

        if (!health_loses_now(session))
            continue;
        if (count++ == 0)
            *ret_first = session;
    }
    return count;
}

/* An older loss is no news; the sessions' own lines show it. */
#define LOSS_WARNED_USEC (24 * 3600 * USEC_PER_SEC)

static bool has_lost_lately(struct json_object *session)
{
    uint64_t age_usec = health_loss_age_usec(session);

    return age_usec && age_usec <= LOSS_WARNED_USEC && !health_loses_now(session);
}

/* Warnings of one session that has not ended. */
static void read_session(struct health *health, struct json_object *session)
{
    const char *name = doc_text(session, "name", "-");
    _cleanup_free_ char *losses = NULL;
    const char *set_aside = doc_text(session, "buffers.set_aside", "");
    const char *missing = doc_text(session, "buffers.missing", "");
    const char *silent = doc_text(session, "buffers.silent", "");
    uint64_t waiting_ns = doc_number(session, "output.waiting_since_ns");
    char since[STR_SINCE_MAX];

    if (has_lost_lately(session)) {
        losses = describe_losses(session);
        warn(health, "Records were lost earlier. %s.", losses ? losses : name);
    }
    if (waiting_ns)
        warn(health, "%s: its disk has not answered since %s. Records are kept in memory.", name,
             str_since(since, waiting_ns));
    if (doc_flag(session, "output.paused") || doc_flag(session, "segments.paused"))
        warn(health, "%s is paused: its disk has reached the reserve. Free some space.", name);
    if (*set_aside)
        warn(health, "%s: CPUs with a damaged trace buffer are not recorded: %s. See: xl dmesg",
             name, set_aside);
    if (*missing)
        warn(health, "%s: CPUs without a trace buffer are not recorded: %s. Reboot the host.", name,
             missing);
    if (*silent)
        warn(health, "%s: CPUs that are in use, but not recorded by Xen: %s.", name, silent);
}

/* A persistent capture that has failed, unless there is a later one of its name: newest first. */
static bool should_continue(struct json_object *sessions, size_t n)
{
    struct json_object *session = doc_at(sessions, n);
    const char *name = doc_text(session, "name", "");

    for (size_t i = 0; i < n; i++)
        if (strcmp(doc_text(doc_at(sessions, i), "name", ""), name) == 0)
            return false;
    return doc_flag(session, "options.persist") && doc_says_no(session, "ended.ok") &&
           !session_was_aborted(session);
}

static void read_warnings(struct health *health, struct json_object *status)
{
    struct json_object *sessions = doc_array(status, "sessions");
    struct json_object *triggers = doc_array(status, "triggers");
    char left[UNITS_TEXT_MAX], keep[UNITS_TEXT_MAX];

    for (size_t i = 0; i < doc_length(sessions); i++) {
        if (!doc_session_has_ended(doc_at(sessions, i)))
            read_session(health, doc_at(sessions, i));
        else if (should_continue(sessions, i))
            warn(health, "%s is to be recorded over restarts, but has ended. %s",
                 doc_text(doc_at(sessions, i), "name", "-"),
                 doc_text(doc_at(sessions, i), "ended.message", ""));
    }
    if (*doc_text(status, "disk.error", ""))
        warn(health,
             "The directory %s cannot be written: %s. Captures and snapshots into it fail. Check "
             "the disk: dmesg",
             doc_text(status, "daemon.state_dir", "-"), doc_text(status, "disk.error", ""));
    if (doc_says_no(status, "daemon.memory_locked"))
        warn(health, "The memory of xentraced is not locked. See: xentracectl doctor");
    if (doc_flag(status, "disk.filled_by_others"))
        warn(health,
             "Files that xentraced may not remove fill the disk: %s are free, less than "
             "keep-free=%s.",
             size_format(left, doc_number(status, "disk.free_bytes")),
             size_format(keep, doc_number(status, "disk.keep_free_bytes")));
    for (size_t i = 0; i < doc_length(triggers); i++) {
        struct json_object *trigger = doc_at(triggers, i);

        if (*doc_text(trigger, "last_error", ""))
            warn(health, "The trigger %s could not write its last snapshot.",
                 doc_text(trigger, "name", "-"));
    }
}

/* The recorder does not run although it should, or was stopped. */
static bool is_recorder_down(struct json_object *status)
{
    const char *state = doc_text(status, "recorder.state", "");

    return strcmp(state, "stopped") == 0 || strcmp(state, "failed") == 0;
}

static void read_bad(struct health *health, struct json_object *losing, size_t nr_losing,
                     bool is_down)
{
    static const char down[] = "The flight recorder is not running.";
    _cleanup_free_ char *losses = NULL, *more = NULL;

    health->level = HEALTH_BAD;
    health->exit_code = is_down ? CTL_NO_RECORDER : CTL_LOSING;
    if (!nr_losing) {
        set_headline(health, strdup(down));
        return;
    }
    health->exit_code = CTL_LOSING;
    losses = describe_losses(losing);
    more = nr_losing > 1 ? str_format("; and %zu more", nr_losing - 1) : strdup("");
    set_headline(health, str_format("Records are being lost. %s%s.%s%s", losses ? losses : "",
                                    more ? more : "", is_down ? " " : "", is_down ? down : ""));
}

static void read_good(struct health *health, struct json_object *status, const char *running)
{
    bool is_off = strcmp(doc_text(status, "recorder.state", ""), "off") == 0;
    size_t n = health->nr_warnings;

    if (n > 0) {
        health->level = HEALTH_WARN;
        set_headline(health, str_format("No records are being lost, but there %s %zu warning%s.",
                                        n == 1 ? "is" : "are", n, n == 1 ? "" : "s"));
    } else if (running) {
        set_headline(health, str_format("All is well: %s recording without losses.%s", running,
                                        is_off ? " The flight recorder is off." : ""));
    } else {
        set_headline(health, strdup(is_off ? "All is well: the flight recorder is off, as "
                                             "configured, and nothing is being recorded."
                                           : "All is well: nothing is being recorded."));
    }
}

void health_read(struct health *health, struct json_object *status)
{
    struct json_object *sessions = doc_array(status, "sessions"), *losing = NULL;
    _cleanup_free_ char *running = describe_running(sessions);
    size_t nr_losing = find_losing(sessions, &losing);
    bool is_down = is_recorder_down(status);

    *health = (struct health){.exit_code = CTL_OK};
    read_warnings(health, status);
    if (nr_losing || is_down)
        read_bad(health, losing, nr_losing, is_down);
    else
        read_good(health, status, running);
}

void health_done(struct health *health)
{
    for (size_t i = 0; i < health->nr_warnings; i++)
        free(health->warnings[i]);
    free(health->headline);
    *health = (struct health){0};
}

void health_print(FILE *file, const struct health *health, const struct palette *palette)
{
    const char *const colors[] = {
        [HEALTH_GOOD] = palette->good,
        [HEALTH_WARN] = palette->warn,
        [HEALTH_BAD] = palette->bad,
    };

    (void)fprintf(file, "%s%s%s\n", colors[health->level],
                  health->headline ? health->headline : "Out of memory.", palette->end);
    if (health->exit_code == CTL_LOSING)
        (void)fputs("  Next: xentracectl doctor\n", file);
    for (size_t i = 0; i < health->nr_warnings; i++)
        (void)fprintf(file, "  %sWarning:%s %s\n", palette->warn, palette->end,
                      health->warnings[i]);
}

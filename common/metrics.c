// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The format wants all samples of a metric together, after its HELP and TYPE. So a table of metrics
 * is the outer loop, and what they are of (sessions, triggers) the inner one.
 *
 * `delivered` is a gauge: a ring's records, and those of deleted segments, move on to `evicted`.
 *
 * Source: prometheus.io/docs/instrumenting/exposition_formats, "Text-based format".
 */

#include "common/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <json-c/json.h>
#include <json-c/printbuf.h>

#include "common/cpu-set.h"
#include "common/drop-cause.h"
#include "common/units.h"
#include "common/utf8.h"
#include "common/util.h"

#define LABEL_MAX 256u /* with the zero */

struct metrics_text {
    struct printbuf *buffer;
    bool has_failed; /* no memory: the text is not complete */
};

#define ADD(text, ...) ((text)->has_failed |= sprintbuf((text)->buffer, __VA_ARGS__) < 0)

/* The objects for each of which a metric has a sample. */
enum scope {
    SCOPE_DAEMON,
    SCOPE_SESSION, /* that has not ended */
    SCOPE_TRIGGER,
};

struct metric {
    enum scope scope;
    const char *name; /* after "xentraced_"; with "_total" a counter, else a gauge */
    const char *path; /* in the document of the scope */
    uint64_t divisor; /* of the number there; 0: as it is */
    const char *help;
};

/* No line of a table: its value is made of other things than a number. */
struct special {
    const char *name;
    void (*add)(struct metrics_text *text, const struct special *special,
                struct json_object *status);
    const char *path;
    const char *help;
};

static const struct metric metrics[] = {
    {SCOPE_DAEMON, "start_time_seconds", "daemon.started_ns", NSEC_PER_SEC,
     "When the daemon was started, in seconds since 1970."},
    {SCOPE_DAEMON, "memory_locked", "daemon.memory_locked", 0,
     "Whether the collector's memory is locked."},
    {SCOPE_DAEMON, "pool_bytes", "daemon.pool_bytes", 0,
     "Memory for records that are being written to the disk."},
    {SCOPE_DAEMON, "pool_free_bytes", "daemon.pool_free_bytes", 0, "Free memory of the pool."},
    {SCOPE_DAEMON, "pool_max_bytes", "daemon.pool_max_bytes", 0,
     "Limit of the memory that the pool and rings may use together."},
    {SCOPE_DAEMON, "pool_refusals_total", "daemon.pool_refusals", 0,
     "Times the pool needed more memory but could not grow."},
    {SCOPE_DAEMON, "collector_wakeups_total", "daemon.collector_wakeups", 0,
     "Times the collector thread was woken."},
    {SCOPE_DAEMON, "collector_rounds_total", "daemon.rounds", 0,
     "Rounds in which Xen's buffers were read."},
    {SCOPE_DAEMON, "collector_virqs_total", "daemon.virqs", 0,
     "Times Xen reported a half full buffer."},
    {SCOPE_DAEMON, "xen_cpus", "xen.cpus", 0, "Physical CPUs of the host."},
    {SCOPE_DAEMON, "xen_buffer_pages", "xen.buffer_pages", 0,
     "Pages of Xen's trace buffer per CPU; 0: not allocated."},
    {SCOPE_DAEMON, "xen_event_mask", "xen.event_mask", 0, "Xen's event mask."},

    {SCOPE_SESSION, "session_start_time_seconds", "started.realtime_ns", NSEC_PER_SEC,
     "When the session was started, in seconds since 1970."},
    {SCOPE_SESSION, "session_produced_records_total", "ledger.produced", 0,
     "Records that Xen produced for the session."},
    {SCOPE_SESSION, "session_delivered_records", "ledger.delivered", 0,
     "Records that the session received."},
    {SCOPE_SESSION, "session_lost_records_total", "ledger.lost", 0,
     "Records that Xen dropped because a buffer was full."},
    {SCOPE_SESSION, "session_dropped_records_total", "ledger.dropped", 0,
     "Records that xentraced dropped."},
    {SCOPE_SESSION, "session_evicted_records_total", "ledger.evicted", 0,
     "Records that newer ones replaced in the ring, by design."},
    {SCOPE_SESSION, "session_output_bytes", "output.bytes", 0, "Bytes written to the output."},
    {SCOPE_SESSION, "session_queued_bytes", "output.queued_bytes", 0,
     "Bytes waiting to be written."},
    {SCOPE_SESSION, "session_paused", "output.paused", 0,
     "Whether the session is paused until there is space on the disk."},
    {SCOPE_SESSION, "session_reserve_bytes", "limits.reserve_bytes", 0,
     "Free space that the session leaves on the disk."},
    {SCOPE_SESSION, "ring_memory_bytes", "ring.memory_bytes", 0, "Memory of the ring."},
    {SCOPE_SESSION, "ring_used_bytes", "ring.used_bytes", 0, "Bytes of records in the ring."},
    {SCOPE_SESSION, "ring_borrowed_bytes", "ring.borrowed_bytes", 0,
     "Memory that the ring has borrowed from pool-max= while snapshots are written."},
    {SCOPE_SESSION, "ring_history_seconds", "ring.history_usec", USEC_PER_SEC,
     "How far back the ring is complete."},
    {SCOPE_SESSION, "ring_kept", "ring.kept", 0, "Whether the ring survives a restart."},
    {SCOPE_SESSION, "ring_snapshots_total", "ring.snapshots", 0, "Snapshots written of the ring."},

    {SCOPE_TRIGGER, "trigger_fired_total", "fired", 0, "Times the trigger's condition was met."},
    {SCOPE_TRIGGER, "trigger_snapshots_total", "written", 0, "Snapshots the trigger has written."},
    {SCOPE_TRIGGER, "trigger_last_fired_seconds", "last_fired_ns", NSEC_PER_SEC,
     "When the trigger last fired, in seconds since 1970; 0: never."},
};

/* --- Reading the document. --- */

/* The value at PATH ("ledger.lost"); NULL if there is none. Borrowed. */
static struct json_object *find(struct json_object *object, const char *path)
{
    char key[64];

    while (object && *path) {
        size_t length = strcspn(path, ".");
        struct json_object *next = NULL;

        if (length >= sizeof(key))
            return NULL;
        memcpy(key, path, length);
        key[length] = '\0';
        (void)json_object_object_get_ex(object, key, &next); /* NULL if it is not there */
        object = next;
        path += length + (path[length] == '.');
    }
    return object;
}

static const char *find_text(struct json_object *object, const char *path)
{
    struct json_object *text = find(object, path);

    return json_object_is_type(text, json_type_string) ? json_object_get_string(text) : "";
}

static size_t length_of(struct json_object *array)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* A number, or a flag as 0 or 1; false if there is neither. */
static bool find_value(struct json_object *object, const char *path, uint64_t *ret_value)
{
    struct json_object *found = find(object, path);

    if (json_object_is_type(found, json_type_boolean)) {
        *ret_value = json_object_get_boolean(found) ? 1 : 0;
        return true;
    }
    if (!json_object_is_type(found, json_type_int))
        return false;
    *ret_value = json_object_get_uint64(found); /* 0 if it is negative */
    return true;
}

/* --- Writing. --- */

static void add_head(struct metrics_text *text, const char *name, const char *help)
{
    size_t length = strlen(name);
    bool is_counter = length > 6 && strcmp(name + length - 6, "_total") == 0;

    ADD(text, "# HELP xentraced_%s %s\n# TYPE xentraced_%s %s\n", name, help, name,
        is_counter ? "counter" : "gauge");
}

/* A label's value, with its quotes. */
static void add_quoted(struct metrics_text *text, const char *value_untrusted)
{
    char copy[LABEL_MAX], *value = copy;

    (void)utf8_copy_short(copy, sizeof(copy), value_untrusted);
    ADD(text, "\"");
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            ADD(text, "\\%c", *value);
        else
            ADD(text, "%c", *value);
    }
    ADD(text, "\"");
}

static void add_name(struct metrics_text *text, const char *name)
{
    ADD(text, "xentraced_%s", name);
}

/* SEPARATOR is '{' before the first label, ',' before the others; add_value() follows the last. */
static void add_label(struct metrics_text *text, char separator, const char *label,
                      const char *value)
{
    ADD(text, "%c%s=", separator, label);
    add_quoted(text, value);
}

static void add_value(struct metrics_text *text, bool has_labels, uint64_t value, uint64_t divisor)
{
    ADD(text, "%s %" PRIu64, has_labels ? "}" : "", divisor ? value / divisor : value);
    if (divisor > 1)
        ADD(text, ".%06" PRIu64,
            (uint64_t)((unsigned __int128)(value % divisor) * 1000000 / divisor));
    ADD(text, "\n");
}

/* --- What the table says. --- */

static bool runs(struct json_object *session)
{
    const char *state = find_text(session, "state");

    return *state && strcmp(state, "ended") != 0;
}

static void add_sample(struct metrics_text *text, const struct metric *metric,
                       struct json_object *object)
{
    const char *label = metric->scope == SCOPE_SESSION ? "session" : "trigger";
    bool has_labels = metric->scope != SCOPE_DAEMON;
    uint64_t value;

    if (!find_value(object, metric->path, &value))
        return;
    add_name(text, metric->name);
    if (has_labels)
        add_label(text, '{', label, find_text(object, "name"));
    add_value(text, has_labels, value, metric->divisor);
}

static void add_metric(struct metrics_text *text, const struct metric *metric,
                       struct json_object *status)
{
    struct json_object *list =
        find(status, metric->scope == SCOPE_SESSION ? "sessions" : "triggers");

    add_head(text, metric->name, metric->help);
    if (metric->scope == SCOPE_DAEMON) {
        add_sample(text, metric, status);
        return;
    }
    for (size_t i = 0; i < length_of(list); i++) {
        struct json_object *object = json_object_array_get_idx(list, i);

        if (metric->scope == SCOPE_TRIGGER || runs(object))
            add_sample(text, metric, object);
    }
}

/* --- What it cannot say. --- */

static void add_build(struct metrics_text *text, const struct special *special,
                      struct json_object *status)
{
    add_name(text, special->name);
    add_label(text, '{', "version", find_text(status, "daemon.version"));
    add_label(text, ',', "xen", find_text(status, "xen.version"));
    add_value(text, true, 1, 0);
}

static void add_tracing(struct metrics_text *text, const struct special *special,
                        struct json_object *status)
{
    const char *tracing = find_text(status, "xen.tracing");

    if (strcmp(tracing, "on") != 0 && strcmp(tracing, "off") != 0)
        return; /* unknown */
    add_name(text, special->name);
    add_value(text, false, strcmp(tracing, "on") == 0, 0);
}

static void add_running(struct metrics_text *text, const struct special *special,
                        struct json_object *status)
{
    struct json_object *sessions = find(status, "sessions");
    uint64_t count = 0;

    for (size_t i = 0; i < length_of(sessions); i++)
        count += runs(json_object_array_get_idx(sessions, i));
    add_name(text, special->name);
    add_value(text, false, count, 0);
}

/* One sample for each state, 1 for the one that holds. */
static void add_recorder_states(struct metrics_text *text, const struct special *special,
                                struct json_object *status)
{
    static const char *const states[] = {"running", "starting", "stopping",
                                         "stopped", "off",      "failed"};
    const char *state = find_text(status, special->path);

    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        add_name(text, special->name);
        add_label(text, '{', "state", states[i]);
        add_value(text, true, strcmp(states[i], state) == 0, 0);
    }
}

static void add_waiting(struct metrics_text *text, const struct special *special,
                        struct json_object *status)
{
    struct json_object *sessions = find(status, "sessions");
    uint64_t since_ns;

    for (size_t i = 0; i < length_of(sessions); i++) {
        struct json_object *session = json_object_array_get_idx(sessions, i);

        if (!runs(session))
            continue;
        add_name(text, special->name);
        add_label(text, '{', "session", find_text(session, "name"));
        add_value(text, true, find_value(session, special->path, &since_ns), 0);
    }
}

/* Whether a newer session has the name of session N: newer ones come first. */
static bool has_newer(struct json_object *sessions, size_t n)
{
    const char *name = find_text(json_object_array_get_idx(sessions, n), "name");

    for (size_t i = 0; i < n; i++)
        if (strcmp(find_text(json_object_array_get_idx(sessions, i), "name"), name) == 0)
            return true;
    return false;
}

/*
 * Adds a sample for each cause, because an alert needs the zero before the first drop. Of ended
 * sessions, too: most causes end the session.
 */
static void add_drops(struct metrics_text *text, const struct special *special,
                      struct json_object *status)
{
    struct json_object *sessions = find(status, "sessions");

    for (size_t i = 0; i < length_of(sessions); i++) {
        struct json_object *session = json_object_array_get_idx(sessions, i);
        struct json_object *drops = find(session, special->path);

        if (!drops || has_newer(sessions, i))
            continue;
        for (unsigned int cause = 0; cause < DROP_CAUSES; cause++) {
            uint64_t count = 0;

            (void)find_value(drops, drop_causes[cause].name, &count);
            add_name(text, special->name);
            add_label(text, '{', "session", find_text(session, "name"));
            add_label(text, ',', "cause", drop_causes[cause].name);
            add_value(text, true, count, 0);
        }
    }
}

/* How many CPUs are in each list of `buffers`. */
static void add_unrecorded(struct metrics_text *text, const struct special *special,
                           struct json_object *status)
{
    static const struct {
        const char *label, *path;
    } lists[] = {
        {"set-aside", "buffers.set_aside"},
        {"no-buffer", "buffers.missing"},
        {"silent", "buffers.silent"},
    };
    struct json_object *sessions = find(status, "sessions");

    for (size_t i = 0; i < length_of(sessions); i++) {
        struct json_object *session = json_object_array_get_idx(sessions, i);

        for (size_t j = 0; runs(session) && j < ARRAY_SIZE(lists); j++) {
            const char *list = find_text(session, lists[j].path);
            _cleanup_free_ char *error = NULL;
            struct cpu_set set = {0};

            if (*list && cpu_set_parse(list, CPU_SET_MAX, &set, &error) < 0)
                continue;
            add_name(text, special->name);
            add_label(text, '{', "session", find_text(session, "name"));
            add_label(text, ',', "reason", lists[j].label);
            add_value(text, true, cpu_set_count(&set), 0);
        }
    }
}

/* Xen's buffers are the same for all sessions: the first that records a CPU speaks for it. */
static void add_cpus(struct metrics_text *text, const struct special *special,
                     struct json_object *status)
{
    struct json_object *sessions = find(status, "sessions");
    struct cpu_set seen = {0};
    uint64_t cpu, percent;
    char number[24];

    for (size_t i = 0; i < length_of(sessions); i++) {
        struct json_object *session = json_object_array_get_idx(sessions, i);
        struct json_object *cpus = runs(session) ? find(session, "ledger.cpus") : NULL;

        for (size_t j = 0; j < length_of(cpus); j++) {
            struct json_object *object = json_object_array_get_idx(cpus, j);

            if (!find_value(object, "cpu", &cpu) || !find_value(object, special->path, &percent) ||
                cpu >= CPU_SET_MAX || cpu_set_has(&seen, (unsigned int)cpu))
                continue;
            cpu_set_add(&seen, (unsigned int)cpu);
            (void)snprintf(number, sizeof(number), "%" PRIu64, cpu);
            add_name(text, special->name);
            add_label(text, '{', "cpu", number);
            add_value(text, true, percent, 100);
        }
    }
}

static void add_suppressed(struct metrics_text *text, const struct special *special,
                           struct json_object *status)
{
    struct json_object *triggers = find(status, "triggers");

    for (size_t i = 0; i < length_of(triggers); i++) {
        struct json_object *trigger = json_object_array_get_idx(triggers, i);
        struct json_object *reasons = find(trigger, special->path);

        if (!json_object_is_type(reasons, json_type_object))
            continue;
        json_object_object_foreach(reasons, reason, count)
        {
            add_name(text, special->name);
            add_label(text, '{', "trigger", find_text(trigger, "name"));
            add_label(text, ',', "reason", reason);
            add_value(text, true, json_object_get_uint64(count), 0);
        }
    }
}

static void add_trigger_failures(struct metrics_text *text, const struct special *special,
                                 struct json_object *status)
{
    struct json_object *triggers = find(status, "triggers");

    for (size_t i = 0; i < length_of(triggers); i++) {
        struct json_object *trigger = json_object_array_get_idx(triggers, i);

        add_name(text, special->name);
        add_label(text, '{', "trigger", find_text(trigger, "name"));
        add_value(text, true, *find_text(trigger, special->path) ? 1 : 0, 0);
    }
}

static void add_last_snapshot(struct metrics_text *text, const struct special *special,
                              struct json_object *status)
{
    struct json_object *snapshots = find(status, "snapshots");
    uint64_t ended_ns = 0;

    if (length_of(snapshots) > 0) /* newest first */
        (void)find_value(json_object_array_get_idx(snapshots, 0), special->path, &ended_ns);
    add_name(text, special->name);
    add_value(text, false, ended_ns, NSEC_PER_SEC);
}

static const struct special specials[] = {
    {"build_info", add_build, "", "The versions of xentraced and Xen."},
    {"xen_tracing", add_tracing, "", "Whether tracing is enabled in Xen."},
    {"recorder_state", add_recorder_states, "recorder.state", "The state of the flight recorder."},
    {"sessions_running", add_running, "", "Running sessions, including the flight recorder."},
    {"session_output_waiting", add_waiting, "output.waiting_since_ns",
     "Whether the disk or the reader has not answered for 2 s or longer."},
    {"session_dropped_records_by_cause_total", add_drops, "ledger.dropped_by",
     "Records that xentraced dropped, by cause."},
    {"session_unrecorded_cpus", add_unrecorded, "", "CPUs that are not recorded, by reason."},
    {"cpu_buffer_fill_ratio", add_cpus, "fill_percent", "How full Xen's buffer of a CPU was."},
    {"trigger_suppressed_total", add_suppressed, "suppressed",
     "Snapshots that a trigger suppressed, by reason."},
    {"trigger_snapshot_failed", add_trigger_failures, "last_error",
     "Whether the trigger's last snapshot could not be written."},
    {"last_snapshot_seconds", add_last_snapshot, "ended.realtime_ns",
     "When the newest snapshot was written, in seconds since 1970; 0: none."},
};

#define HEAD_OF_UP                                                                                 \
    "# HELP xentraced_up Whether xentraced runs.\n"                                                \
    "# TYPE xentraced_up gauge\n"

const char *metrics_of_none(void)
{
    return HEAD_OF_UP "xentraced_up 0\n";
}

static void add_everything(struct metrics_text *text, struct json_object *status)
{
    ADD(text, HEAD_OF_UP "xentraced_up 1\n");
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
        add_metric(text, &metrics[i], status);
    for (size_t i = 0; i < ARRAY_SIZE(specials); i++) {
        add_head(text, specials[i].name, specials[i].help);
        specials[i].add(text, &specials[i], status);
    }
}

int metrics_render(struct json_object *status, char **ret_text)
{
    struct metrics_text text = {0};
    char *copy;

    if (strcmp(find_text(status, "format"), "xentraced-status") != 0)
        return -EBADMSG;
    text.buffer = printbuf_new();
    if (!text.buffer)
        return -ENOMEM;
    add_everything(&text, status);
    copy = text.has_failed ? NULL : strdup(text.buffer->buf);
    printbuf_free(text.buffer);
    if (!copy)
        return -ENOMEM;
    *ret_text = copy;
    return 0;
}

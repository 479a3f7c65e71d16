// SPDX-License-Identifier: GPL-2.0-or-later

#include "common/metrics.h"

#include <json-c/json.h>

#include "tests/unit/test.h"

#define STATUS(rest) "{\"format\": \"xentraced-status\", \"version\": 1" rest "}"

struct metrics_case {
    const char *name;
    const char *status;
    const char *line;   /* is there */
    const char *absent; /* is nowhere; NULL: nothing is asked */
};

static const struct metrics_case cases[] = {
    {"the daemon runs", STATUS(""), "xentraced_up 1", NULL},
    {"a number", STATUS(", \"daemon\": {\"pool_bytes\": 67108864}"),
     "xentraced_pool_bytes 67108864", NULL},
    {"a number above 2^63", STATUS(", \"daemon\": {\"rounds\": 18446744073709551615}"),
     "xentraced_collector_rounds_total 18446744073709551615", NULL},
    {"a flag", STATUS(", \"daemon\": {\"memory_locked\": true}"), "xentraced_memory_locked 1",
     NULL},
    {"nanoseconds", STATUS(", \"daemon\": {\"started_ns\": 1795241112023456789}"),
     "xentraced_start_time_seconds 1795241112.023456", NULL},
    {"a key that is missing has no sample", STATUS(", \"daemon\": {}"), "xentraced_up 1",
     "\nxentraced_pool_bytes"},
    {"a text in place of a number has no sample", STATUS(", \"daemon\": {\"pool_bytes\": \"1\"}"),
     "xentraced_up 1", "\nxentraced_pool_bytes"},
    {"a negative number is 0", STATUS(", \"daemon\": {\"pool_bytes\": -5}"),
     "xentraced_pool_bytes 0", NULL},
    {"a session",
     STATUS(
         ", \"sessions\": [{\"name\": \"a\", \"state\": \"running\", \"ledger\": {\"lost\": 7}}]"),
     "xentraced_session_lost_records_total{session=\"a\"} 7", NULL},
    {"an ended session has no samples",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"ended\", \"ledger\": {\"lost\": 7}}]"),
     "xentraced_sessions_running 0", "session=\"a\""},
    {"a name with quotes",
     STATUS(", \"sessions\": [{\"name\": \"a\\\"b\\\\c\\nd\", \"state\": \"running\","
            " \"ledger\": {\"lost\": 7}}]"),
     "xentraced_session_lost_records_total{session=\"a\\\"b\\\\c\\\\x0ad\"} 7", NULL},
    {"a name that steers a terminal",
     STATUS(", \"sessions\": [{\"name\": \"\\u001b[31m\\u202e\", \"state\": \"running\","
            " \"ledger\": {\"lost\": 7}}]"),
     "xentraced_session_lost_records_total{session=\"\\\\x1b[31m\\\\u202e\"} 7", NULL},
    {"sessions that are no array", STATUS(", \"sessions\": 5, \"triggers\": \"x\""),
     "xentraced_sessions_running 0", NULL},
    {"microseconds",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"running\","
            " \"ring\": {\"history_usec\": 1500000}}]"),
     "xentraced_ring_history_seconds{session=\"a\"} 1.500000", NULL},
    {"an output that does not answer",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"running\","
            " \"output\": {\"waiting_since_ns\": 5}}]"),
     "xentraced_session_output_waiting{session=\"a\"} 1", NULL},
    {"an output that does",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"running\", \"output\": {}}]"),
     "xentraced_session_output_waiting{session=\"a\"} 0", NULL},
    {"drops, by cause",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"running\","
            " \"ledger\": {\"dropped_by\": {\"slow-output\": 7}}}]"),
     "xentraced_session_dropped_records_by_cause_total{session=\"a\",cause=\"slow-output\"} 7",
     NULL},
    {"a cause that was none",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"running\","
            " \"ledger\": {\"dropped_by\": {}}}]"),
     "xentraced_session_dropped_records_by_cause_total{session=\"a\",cause=\"aborted\"} 0", NULL},
    {"drops of a session that has ended",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"ended\","
            " \"ledger\": {\"dropped_by\": {\"output-failed\": 9}}}]"),
     "xentraced_session_dropped_records_by_cause_total{session=\"a\",cause=\"output-failed\"} 9",
     NULL},
    {"one sample for each name",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"running\","
            " \"ledger\": {\"dropped_by\": {}}}, {\"name\": \"a\", \"state\": \"ended\","
            " \"ledger\": {\"dropped_by\": {\"output-failed\": 9}}}]"),
     "xentraced_session_dropped_records_by_cause_total{session=\"a\",cause=\"output-failed\"} 0",
     "} 9"},
    {"CPUs that are silent",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"running\","
            " \"buffers\": {\"silent\": \"1-3,7\", \"missing\": \"\"}}]"),
     "xentraced_session_unrecorded_cpus{session=\"a\",reason=\"silent\"} 4", NULL},
    {"no CPU without a buffer",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"running\","
            " \"buffers\": {\"missing\": \"\"}}]"),
     "xentraced_session_unrecorded_cpus{session=\"a\",reason=\"no-buffer\"} 0", NULL},
    {"a buffer's fill",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"running\","
            " \"ledger\": {\"cpus\": [{\"cpu\": 3, \"fill_percent\": 12}]}}]"),
     "xentraced_cpu_buffer_fill_ratio{cpu=\"3\"} 0.120000", NULL},
    {"a CPU that does not exist",
     STATUS(", \"sessions\": [{\"name\": \"a\", \"state\": \"running\","
            " \"ledger\": {\"cpus\": [{\"cpu\": 99999999, \"fill_percent\": 12}]}}]"),
     "xentraced_up 1", "cpu=\"99999999\""},
    {"the recorder's state", STATUS(", \"recorder\": {\"state\": \"failed\"}"),
     "xentraced_recorder_state{state=\"failed\"} 1", NULL},
    {"and no other", STATUS(", \"recorder\": {\"state\": \"failed\"}"),
     "xentraced_recorder_state{state=\"running\"} 0", NULL},
    {"tracing that is unknown", STATUS(", \"xen\": {\"tracing\": \"unknown\"}"), "xentraced_up 1",
     "\nxentraced_xen_tracing"},
    {"a trigger",
     STATUS(", \"triggers\": [{\"name\": \"crash\", \"suppressed\": {\"cooldown\": 2}}]"),
     "xentraced_trigger_suppressed_total{trigger=\"crash\",reason=\"cooldown\"} 2", NULL},
    {"a trigger whose snapshot failed",
     STATUS(", \"triggers\": [{\"name\": \"crash\", \"last_error\": \"No space.\"}]"),
     "xentraced_trigger_snapshot_failed{trigger=\"crash\"} 1", NULL},
    {"the newest snapshot",
     STATUS(", \"snapshots\": [{\"ended\": {\"realtime_ns\": 2000000000}}, {}]"),
     "xentraced_last_snapshot_seconds 2.000000", NULL},
};

static bool has_line(const char *text, const char *line)
{
    size_t length = strlen(line);

    for (const char *at = text; (at = strstr(at, line)); at++)
        if ((at == text || at[-1] == '\n') && at[length] == '\n')
            return true;
    return false;
}

static void test_line(const struct metrics_case *test)
{
    struct json_object *status = json_tokener_parse(test->status);
    char *text = NULL;

    CHECK(status);
    CHECK_INT(metrics_render(status, &text), 0);
    if (!CHECK(text && has_line(text, test->line)) && text)
        TEST_SAY("there is no line %s in\n%s", test->line, text);
    if (test->absent)
        CHECK(text && !strstr(text, test->absent));
    free(text);
    json_object_put(status);
}

static void test_refused(void)
{
    struct json_object *session = json_tokener_parse("{\"format\": \"xentraced-session\"}");
    char *text = NULL;

    test_case("another document");
    CHECK_INT(metrics_render(session, &text), -EBADMSG);
    CHECK(!text);
    test_case("none");
    CHECK_INT(metrics_render(NULL, &text), -EBADMSG);
    test_case("no daemon");
    CHECK(has_line(metrics_of_none(), "xentraced_up 0"));
    json_object_put(session);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_case(cases[i].name);
        test_line(&cases[i]);
    }
    test_refused();
    return test_end();
}

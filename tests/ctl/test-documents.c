// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Documents as people see them: of rings, segments, snapshots and triggers, of older daemons, which
 * do not have the new keys, and of none that ever was.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "ctl/session.h"
#include "ctl/snapshot.h"
#include "ctl/storage.h"
#include "ctl/str.h"
#include "ctl/trigger.h"

static int failures;

static void check_text(const char *got, const char *want, const char *test, const char *name)
{
    if (got && strcmp(got, want) == 0)
        return;
    failures++;
    (void)printf("FAILED: %s: %s\n  got  \"%s\"\n  want \"%s\"\n", test, name, got ? got : "(null)",
                 want);
}

static struct json_object *parse(const char *text)
{
    struct json_object *doc = NULL;

    if (doc_parse(text, strlen(text), &doc) < 0) {
        failures++;
        (void)printf("FAILED: not JSON: %s\n", text);
    }
    return doc;
}

#define RING "\"kind\":\"ring\",\"ring\":{\"used_bytes\":6442450944,\"memory_bytes\":8589934592}"
#define SEGMENTS                                                                                   \
    "\"kind\":\"segments\",\"output\":{\"bytes\":7},\"segments\":{\"files\":[{\"path\":\"/a.1\","  \
    "\"bytes\":4294967296},{\"path\":\"/a.2\",\"bytes\":1}]}"

static void test_storage(void)
{
    static const struct {
        const char *name, *text, *kind, *memory, *place;
        uint64_t bytes;
    } cases[] = {
        {"an older daemon's", "{\"output\":{\"path\":\"/a\",\"bytes\":5}}", "file", "-", "/a", 5},
        {"a stream", "{\"output\":{\"path\":\"-\",\"kind\":\"stream\",\"bytes\":5}}", "stream", "-",
         "standard output", 5},
        {"nothing", "{}", "file", "-", "unknown file", 0},
        {"a ring that runs", "{" RING ",\"output\":{\"path\":\"/a\",\"bytes\":5}}", "ring",
         "6G of 8G", "/a", 6442450944},
        {"a ring that ended",
         "{" RING ",\"state\":\"ended\",\"output\":{\"path\":\"/a\","
         "\"bytes\":5}}",
         "ring", "6G of 8G", "/a", 5},
        {"the recorder", "{" RING ",\"recorder\":true}", "recorder", "6G of 8G", "memory only",
         6442450944},
        {"the recorder, ended", "{" RING ",\"recorder\":true,\"state\":\"ended\"}", "recorder",
         "6G of 8G", "memory only", 6442450944},
        {"a ring without its facts", "{\"kind\":\"ring\"}", "ring", "0B of 0B", "memory only", 0},
        {"segments", "{" SEGMENTS "}", "segments", "-", "2 segments up to /a.2", 4294967297},
        {"no segment yet", "{\"kind\":\"segments\",\"output\":{\"path\":\"/a\",\"bytes\":7}}",
         "segments", "-", "/a", 7},
        {"wrong types", "{\"kind\":7,\"ring\":[],\"segments\":{\"files\":[1,null]},\"recorder\":1}",
         "file", "-", "unknown file", 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_doc_ struct json_object *doc = parse(cases[i].text);
        _cleanup_free_ char *memory = storage_memory(doc), *place = storage_place(doc);

        check_text(storage_name(doc), cases[i].kind, "kind", cases[i].name);
        check_text(memory, cases[i].memory, "memory", cases[i].name);
        check_text(place, cases[i].place, "place", cases[i].name);
        if (storage_bytes(doc) != cases[i].bytes) {
            failures++;
            (void)printf("FAILED: bytes: %s\n", cases[i].name);
        }
    }
}

static void test_missing(void)
{
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        {"not counted", "{}", "unknown"},
        {"nothing", "{\"lost\":0,\"dropped\":0}", "none"},
        {"by Xen", "{\"lost\":7000000000}", "7,000,000,000 lost by Xen, 0 dropped by xentraced"},
        {"by xentraced", "{\"lost\":0,\"dropped\":2}", "0 lost by Xen, 2 dropped by xentraced"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_doc_ struct json_object *doc = parse(cases[i].text);
        _cleanup_free_ char *got = storage_missing(doc);

        check_text(got, cases[i].want, "missing", cases[i].name);
    }
}

/* The line of a printed document that begins with LABEL, without it; "" if there is none. */
static char *line_of(char *text, const char *label)
{
    char *line = text ? strstr(text, label) : NULL;

    if (!line)
        return strdup("");
    line += strlen(label);
    return strndup(line, strcspn(line, "\n"));
}

static void test_history(void)
{
    static const struct {
        const char *name, *ring, *want;
    } cases[] = {
        {"it fills",
         "\"history_usec\":19400000,\"history_full_usec\":493000000,\"bytes_per_second\":104448,"
         "\"full\":false",
         "19s; about 8min at 102K/s when full"},
        {"full",
         "\"history_usec\":482000000,\"history_full_usec\":482000000,\"bytes_per_second\":104448,"
         "\"full\":true",
         "8min 2s; full, 102K/s"},
        {"too short to tell", "\"history_usec\":1500000,\"history_full_usec\":0", "1.5s"},
        {"silent", "\"history_usec\":3600000000,\"bytes_per_second\":0", "1h"},
        {"max-age",
         "\"history_usec\":19000000,\"history_full_usec\":300000000,\"bytes_per_second\":104448,"
         "\"max_age_usec\":300000000,\"full\":true",
         "19s; 5min at most, 102K/s"},
        {"an older daemon's", "\"used_bytes\":5", ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *json = NULL, *text = NULL, *line = NULL;
        size_t bytes = 0;
        FILE *file = open_memstream(&text, &bytes);

        if (!file || asprintf(&json, "{\"kind\":\"ring\",\"ring\":{%s}}", cases[i].ring) < 0)
            continue;
        {
            _cleanup_doc_ struct json_object *doc = parse(json);

            storage_print(file, doc);
        }
        (void)fclose(file);
        line = line_of(text, "History: ");
        check_text(line, cases[i].want, "history", cases[i].name);
    }
}

static void test_suppressed(void)
{
    static const struct {
        const char *name, *text;
        bool want;
    } cases[] = {
        {"never", "{\"last_fired_ns\":5,\"last_suppressed_ns\":0}", false},
        {"before", "{\"last_fired_ns\":5,\"last_suppressed_ns\":4}", false},
        {"this time, counted as fired", "{\"last_fired_ns\":5,\"last_suppressed_ns\":5}", true},
        {"this time", "{\"last_fired_ns\":4,\"last_suppressed_ns\":5}", true},
        {"nothing known", "{}", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_doc_ struct json_object *doc = parse(cases[i].text);

        if (trigger_was_suppressed(doc) != cases[i].want) {
            failures++;
            (void)printf("FAILED: suppressed: %s\n", cases[i].name);
        }
    }
}

static void test_times(void)
{
    static const struct {
        const char *name;
        uint64_t first_ns, last_ns;
        const char *want;
    } windows[] = {
        {"on one day", UINT64_C(1795241112123456789), UINT64_C(1795241412123456789),
         "2026-11-21 06:05:12 to 06:10:12 (5min)"},
        {"over midnight", UINT64_C(1795305600000000000) - 1000000000, UINT64_C(1795305600000000000),
         "2026-11-21 23:59:59 to 2026-11-22 00:00:00 (1s)"},
        {"of no record", 0, 0, "empty"},
        {"backwards", UINT64_C(1795241112000000000), UINT64_C(1795241111000000000),
         "2026-11-21 06:05:12 to 06:05:11 (0us)"},
        {"without an end", UINT64_C(1795241112000000000), 0, "2026-11-21 06:05:12 to - (0us)"},
    };
    char window[STR_WINDOW_MAX], ago[STR_AGO_MAX];
    uint64_t now_ns = (uint64_t)time(NULL) * NSEC_PER_SEC;

    for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
        check_text(str_window(window, windows[i].first_ns, windows[i].last_ns), windows[i].want,
                   "window", windows[i].name);
    check_text(str_ago(ago, 0), "never", "ago", "never");
    check_text(str_ago(ago, now_ns - 7500 * NSEC_PER_SEC), "2h 5min ago", "ago", "hours");
    check_text(str_ago(ago, now_ns + 3600 * NSEC_PER_SEC), "just now", "ago", "a clock set back");
}

/* Whatever it says: all printers must survive it, and say something of it. */
static void test_odd(void)
{
    static const char *const odd[] = {
        "{}",
        "{\"kind\":\"ring\",\"ring\":7,\"recorder\":\"yes\",\"ledger\":[]}",
        "{\"kind\":\"segments\",\"segments\":{\"files\":[1,null,{\"path\":7,\"bytes\":-1}]}}",
        "{\"kind\":\"segments\",\"segments\":{\"files\":{}},\"limits\":{\"on_reserve\":3}}",
        "{\"snapshot\":{\"first_ns\":18446744073709551615,\"last_ns\":1,\"lost\":\"x\","
        "\"shorter_because\":7,\"held_usec\":18446744073709551615,\"asked_usec\":[]}}",
        "{\"kind\":\"ring\",\"ring\":{\"history_usec\":18446744073709551615,"
        "\"history_full_usec\":18446744073709551615,\"bytes_per_second\":1}}",
        "{\"state\":[],\"suppressed\":[1],\"fired\":\"never\",\"last_error\":{},\"name\":null}",
        "{\"suppressed\":{\"busy\":99999999999999999999,\"cooldown\":-3},\"last_fired_ns\":1e99}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        _cleanup_doc_ struct json_object *doc = parse(odd[i]), *array = json_object_new_array();
        _cleanup_free_ char *text = NULL;
        size_t bytes = 0;
        FILE *file = open_memstream(&text, &bytes);

        if (!file)
            continue;
        (void)json_object_array_add(array, json_object_get(doc));
        (void)json_object_array_add(array, json_object_new_int(7));
        session_print(file, doc, true, i % 2 ? 80 : 0);
        session_print_result(file, doc);
        session_print_summary(file, doc);
        storage_print_segment(file, doc);
        snapshot_print(file, doc);
        snapshot_print_list(file, array, i % 2 ? 80 : 0);
        trigger_print(file, doc);
        trigger_print_list(file, array, 4, i % 2, i % 3 ? 80 : 0);
        (void)fclose(file);
        if (!text || !strstr(text, "State: ") || !strstr(text, "Snapshots\n")) {
            failures++;
            (void)printf("FAILED: odd: %s\n", odd[i]);
        }
    }
}

int main(void)
{
    if (setenv("TZ", "UTC", 1) < 0)
        return 77;
    test_storage();
    test_missing();
    test_history();
    test_suppressed();
    test_times();
    test_odd();
    (void)printf("%d failed\n", failures);
    return failures ? 1 : 0;
}

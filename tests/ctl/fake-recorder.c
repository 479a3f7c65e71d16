// SPDX-License-Identifier: GPL-2.0-or-later
/* Documents are written as text, as docs/control-protocol.md shows them, and parsed. */

#include "tests/ctl/fake-recorder.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

static struct json_object *document(const char *format, ...) _printf_(1, 2);

static struct json_object *document(const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list ap;
    int r;

    va_start(ap, format);
    r = vasprintf(&text, format, ap);
    va_end(ap);
    return r < 0 ? NULL : json_tokener_parse(text);
}

static void add_ring(struct json_object *session, const struct fake_storage *storage,
                     uint64_t now_ns)
{
    struct json_object *ring =
        document("{\"memory_bytes\":%" PRIu64 ",\"used_bytes\":1048576,\"max_age_usec\":%" PRIu64
                 ",\"oldest_ns\":%" PRIu64 ",\"newest_ns\":%" PRIu64
                 ",\"locked\":false,\"kept\":false,\"restored\":0,\"snapshots\":0}",
                 storage->memory_bytes, storage->max_age_usec, now_ns - 5 * NSEC_PER_SEC, now_ns);

    json_object_object_add(session, "kind", json_object_new_string("ring"));
    json_object_object_add(session, "ring", ring);
}

static void add_segments(struct json_object *session, const struct fake_storage *storage,
                         uint64_t rounds, uint64_t now_ns)
{
    struct json_object *files = json_object_new_array();
    struct json_object *segments = document(
        "{\"size_bytes\":%" PRIu64 ",\"time_usec\":%" PRIu64 ",\"keep_files\":%" PRIu32
        ",\"keep_size_bytes\":%" PRIu64 ",\"paused\":%s,\"written\":12,\"deleted\":9}",
        storage->segment_size_bytes, storage->segment_time_usec, storage->keep_files,
        storage->keep_size_bytes, strcmp(storage->on_reserve, "pause") == 0 ? "true" : "false");

    for (uint64_t i = 0; i < 3; i++)
        json_object_array_add(files, fake_segment(rounds + i, i < 2 ? "size" : "time", now_ns));
    json_object_object_add(segments, "files", files);
    json_object_object_add(session, "kind", json_object_new_string("segments"));
    json_object_object_add(session, "segments", segments);
}

void fake_add_storage(struct json_object *session, const struct fake_storage *storage,
                      uint64_t rounds, uint64_t now_ns)
{
    if (storage->memory_bytes)
        add_ring(session, storage, now_ns);
    else if (storage->segment_size_bytes || storage->segment_time_usec)
        add_segments(session, storage, rounds, now_ns);
}

struct json_object *fake_recorder(uint64_t now_ns, bool ended)
{
    return document(
        "{\"format\":\"xentraced-session\",\"version\":1,\"name\":\"flight-recorder\","
        "\"kind\":\"ring\",\"recorder\":true,\"state\":\"%s\",\"started\":{\"realtime_ns\":%" PRIu64
        "},%s\"events\":{\"spec\":\"all\",\"xen_mask\":4294963200},\"cpus\":{\"list\":\"0-7\"},"
        "\"ring\":{\"memory_bytes\":8589934592,\"used_bytes\":6442450944,\"max_age_usec\":0,"
        "\"oldest_ns\":%" PRIu64 ",\"newest_ns\":%" PRIu64
        ",\"history_usec\":723000000,\"history_full_usec\":1084500000,"
        "\"bytes_per_second\":8910721,\"full\":false,\"locked\":true,\"kept\":true,\"restored\":2,"
        "\"snapshots\":3},"
        "\"ledger\":{\"produced\":12000000000,\"delivered\":5000000000,\"lost\":0,\"dropped\":0,"
        "\"evicted\":7000000000,\"loss_unknown_cpus\":\"\",\"cpus\":[{\"cpu\":0,"
        "\"delivered\":5000000000,\"lost\":0,\"dropped\":0,\"evicted\":7000000000,"
        "\"fill_percent\":12}]}}",
        ended ? "ended" : "running", now_ns - 7500 * NSEC_PER_SEC,
        ended ? "\"ended\":{\"reason\":\"stop\",\"message\":\"Stopped on request.\",\"ok\":true},"
              : "",
        now_ns - 723 * NSEC_PER_SEC, now_ns);
}

struct json_object *fake_recorder_object(uint64_t now_ns, bool ended)
{
    if (!ended)
        return document("{\"state\":\"running\"}");
    return document("{\"state\":\"stopped\",\"stopped\":{\"realtime_ns\":%" PRIu64
                    ",\"uid\":0,\"user\":\"root\",\"pid\":4711,\"comm\":\"xentracectl\","
                    "\"kept\":true}}",
                    now_ns - 300 * NSEC_PER_SEC);
}

struct json_object *fake_snapshot(const struct fake_snapshot *snapshot, uint64_t now_ns)
{
    bool is_shorter = snapshot->held_usec < snapshot->last_usec;

    return document(
        "{\"format\":\"xentraced-snapshot\",\"version\":1,\"name\":\"%s\",\"kind\":\"snapshot\","
        "\"state\":\"ended\",\"ended\":{\"realtime_ns\":%" PRIu64
        "},\"output\":{\"path\":\"%s\",\"kind\":\"%s\",\"bytes\":%" PRIu64
        "},\"events\":{\"spec\":\"all\"},\"host\":{\"hostname\":\"dom0\",\"tsc_khz\":2300000},"
        "\"snapshot\":{\"session\":\"%s\",\"label\":\"%s\",\"cause\":\"%s\",\"message\":\"last "
        "%" PRIu64 ", since %" PRIu64 ", until %" PRIu64 ", ago %" PRIu64 ", size %" PRIu64
        "\",\"ok\":%s,\"first_ns\":%" PRIu64 ",\"last_ns\":%" PRIu64 ",\"asked_usec\":%" PRIu64
        ",\"held_usec\":%" PRIu64
        ",\"shorter_because\":\"%s\",\"shorter_message\":\"%s\",\"records\":%" PRIu64
        ",\"lost\":%" PRIu64
        ",\"dropped\":0,\"evicted\":1000,\"pin_usec\":12,\"write_usec\":900000}}",
        snapshot->name, now_ns, snapshot->path, *snapshot->path == '/' ? "file" : "stream",
        snapshot->bytes, snapshot->session, snapshot->label,
        strcmp(snapshot->name, "crash") == 0 ? "trigger" : "request", snapshot->last_usec,
        snapshot->since_ns, snapshot->until_ns, snapshot->until_ago_usec, snapshot->max_size_bytes,
        snapshot->ok ? "true" : "false", now_ns - 300 * NSEC_PER_SEC, now_ns, snapshot->last_usec,
        snapshot->held_usec, is_shorter ? "began" : "",
        is_shorter ? "Recording began at 12:03:04." : "", snapshot->records, snapshot->lost);
}

struct json_object *fake_snapshots(size_t count, uint64_t now_ns)
{
    struct fake_snapshot crash = {
        .name = "crash",
        .session = "flight-recorder",
        .label = "crash",
        .path = "/fake/crash.xentrace",
        .last_usec = 600 * USEC_PER_SEC,
        .held_usec = 300 * USEC_PER_SEC,
        .records = 6000000000,
        .lost = 5,
        .ok = true,
    };
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < count; i++)
        json_object_array_add(array, fake_snapshot(&crash, now_ns - 120 * NSEC_PER_SEC));
    return array;
}

static struct json_object *trigger(const char *name, const char *condition, const char *state,
                                   uint64_t fired_ns, uint64_t suppressed_ns, const char *error)
{
    return document(
        "{\"name\":\"%s\",\"condition\":\"%s\",\"state\":\"%s\",\"delay_usec\":0,"
        "\"cooldown_usec\":60000000,\"max_per_day\":10,\"last_usec\":0,\"fired\":%d,"
        "\"last_fired_ns\":%" PRIu64 ",\"last_reason\":\"Domain 3 (web) crashed.\",\"written\":%d,"
        "\"last_snapshot\":\"\",\"last_error\":\"%s\",\"suppressed\":{\"busy\":0,\"cooldown\":%d,"
        "\"max_per_day\":%d},\"last_suppressed_ns\":%" PRIu64
        ",\"last_suppressed_reason\":\"Cooling down for 58 s more.\"}",
        name, condition, state, fired_ns ? 3 : 0, fired_ns, fired_ns ? 2 : 0, error,
        suppressed_ns ? 1 : 0, suppressed_ns ? 2 : 0, suppressed_ns);
}

struct json_object *fake_reload(void)
{
    return document("{\"format\":\"xentraced-reload\",\"version\":1,"
                    "\"files\":[\"/etc/xentraced/xentraced.conf\"],\"changes\":["
                    "{\"change\":\"changed\",\"section\":\"trigger crash\",\"key\":\"cooldown\","
                    "\"value\":\"5min\",\"origin\":\"/etc/xentraced/xentraced.conf:12\","
                    "\"applied\":true},"
                    "{\"change\":\"changed\",\"section\":\"daemon\",\"key\":\"pool\","
                    "\"value\":\"1G\",\"origin\":\"/etc/xentraced/xentraced.conf:3\","
                    "\"applied\":false},"
                    "{\"change\":\"removed\",\"section\":\"trigger old\",\"key\":\"\","
                    "\"value\":\"\",\"origin\":\"\",\"applied\":true}],"
                    "\"warnings\":[\"\\u001bWarned.\"]}");
}

struct json_object *fake_triggers(uint64_t now_ns)
{
    uint64_t before = now_ns - 120 * NSEC_PER_SEC;
    struct json_object *array = json_object_new_array(), *limited;

    json_object_array_add(array, trigger("crash", "domain-crash", "armed", before, before - 1, ""));
    limited = trigger("latency", "runnable-latency=50ms", "off", 0, 0, "");
    json_object_object_add(limited, "delay_usec", json_object_new_int(5000000));
    json_object_object_add(limited, "last_usec", json_object_new_int(30000000));
    json_object_array_add(array, limited);
    limited = trigger("burst", "event=hw-irq", "armed", 0, 0, "");
    json_object_object_add(limited, "count", json_object_new_int(100));
    json_object_object_add(limited, "within_usec", json_object_new_int(1000000));
    json_object_array_add(array, limited);
    json_object_array_add(array, trigger("manual", "manual", "armed", 0, 0, "The disk is full."));
    json_object_array_add(array, trigger("tired", "manual", "cooling", before, before, ""));
    return array;
}

struct json_object *fake_fired(const char *name, uint64_t now_ns)
{
    if (strcmp(name, "manual") == 0)
        return trigger(name, "manual", "delaying", now_ns, now_ns - 1, "");
    if (strcmp(name, "tired") == 0)
        return trigger(name, "manual", "cooling", now_ns - 1, now_ns, "");
    return NULL;
}

struct json_object *fake_segment(uint64_t number, const char *reason, uint64_t now_ns)
{
    return document("{\"path\":\"/fake/capture.%" PRIu64 ".xentrace\",\"number\":%" PRIu64
                    ",\"bytes\":4294967296,\"first_ns\":%" PRIu64 ",\"last_ns\":%" PRIu64
                    ",\"records\":90,\"lost\":1,\"dropped\":0,\"reason\":\"%s\"}",
                    number, number, now_ns - 60 * NSEC_PER_SEC, now_ns, reason);
}

uint64_t fake_stuck_since(uint64_t now_ns)
{
    return now_ns - 14 * NSEC_PER_SEC;
}

struct json_object *fake_stuck_snapshots(uint64_t now_ns)
{
    struct json_object *array = fake_snapshots(1, now_ns), *output;

    if (json_object_object_get_ex(json_object_array_get_idx(array, 0), "output", &output))
        json_object_object_add(output, "waiting_since_ns",
                               json_object_new_uint64(fake_stuck_since(now_ns)));
    return array;
}

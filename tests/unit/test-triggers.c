// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * daemon/triggers/triggers.c with real watches and a real event loop; domains crash when the test
 * says so. The delays are short, and only their lower ends are checked.
 */

#include "daemon/triggers/triggers.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>
#include <xen/trace.h>

#include "collector/watch.h"
#include "common/protocol.h"
#include "common/record.h"
#include "common/units.h"
#include "daemon/base/log.h"
#include "daemon/base/requester.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/domain-watch.h"
#include "daemon/document/trigger-document.h"
#include "daemon/triggers/domain-filter.h"
#include "tests/unit/test.h"

static const struct requester operator= {.is_set = true, .uid = 1000, .pid = 7, .comm = "op"};

#define TSC_KHZ 2000000u /* 2000 ticks a microsecond */

/* --- Of domain-watch.h and domain-names.h, what the triggers call. --- */

static struct {
    domain_crashed_fn crashed;
    void *userdata;
    int watches;
} domains;

int domain_watch_new(struct sd_event *event, struct xen_host *host, struct domain_names *names,
                     domain_crashed_fn crashed, void *userdata, struct domain_watch **ret_watch)
{
    CHECK(event && !host && !names);
    domains.crashed = crashed;
    domains.userdata = userdata;
    domains.watches++;
    *ret_watch = (struct domain_watch *)&domains;
    return 0;
}

struct domain_watch *domain_watch_free(struct domain_watch *watch)
{
    domains.watches -= !!watch;
    return NULL;
}

/* 3 is web, with a UUID of 33s, and db is 5. 6 has no name yet. */
static const struct xen_domain running[] = {
    {.domid = 0, .name = "Domain-0"},
    {.domid = 3, .name = "web", .uuid = "3333333333333333"},
    {.domid = 5, .name = "db"},
    {.domid = 6, .name = ""},
};

const struct xen_domain *domain_names_find(const struct domain_names *names, uint32_t domid)
{
    CHECK(!names);
    for (size_t i = 0; i < ARRAY_SIZE(running); i++)
        if (running[i].domid == domid)
            return &running[i];
    return NULL;
}

unsigned int domain_names_read(const struct domain_names *names,
                               const struct xen_domain **ret_domains)
{
    CHECK(!names);
    *ret_domains = running;
    return ARRAY_SIZE(running);
}

const char *domain_names_of(const struct domain_names *names, uint32_t domid)
{
    const struct xen_domain *domain = domain_names_find(names, domid);

    return domain ? domain->name : "";
}

/* DOMID crashes, which is known as it is listed above. */
static void crash(uint32_t domid)
{
    const struct xen_domain *known = domain_names_find(NULL, domid);
    const struct xen_domain unknown = {.domid = domid};

    domains.crashed(domains.userdata, known ? known : &unknown);
}

/* --- The log. --- */

static char last_line[256];

void log_line(int priority, const char *session, const char *format, ...)
{
    va_list arguments;

    (void)session;
    if (priority == LOG_DEBUG)
        return;
    va_start(arguments, format);
    (void)vsnprintf(last_line, sizeof(last_line), format, arguments);
    va_end(arguments);
}

void log_event(int priority, const struct log_about *about, const char *format, ...)
{
    (void)priority, (void)about, (void)format;
}

/* --- Triggers, and the snapshots that they ask for. --- */

struct bench {
    sd_event *event;
    struct triggers *triggers;
    struct config config;
    unsigned int asked;
    struct trigger *trigger; /* that asked last */
    char label[TRIGGER_NAME_MAX + 1];
    uint64_t last_usec;
    bool fail_at_once;
};

static void note_snapshot(void *userdata, struct trigger *trigger, const char *label,
                          uint64_t last_usec)
{
    struct bench *bench = userdata;

    bench->asked++;
    bench->trigger = trigger;
    (void)snprintf(bench->label, sizeof(bench->label), "%s", label);
    bench->last_usec = last_usec;
    if (bench->fail_at_once)
        triggers_snapshot_done(bench->triggers, trigger, NULL, "The disk is full.");
}

static void add(struct bench *bench, const char *name, enum trigger_condition condition,
                struct trigger_config config)
{
    (void)snprintf(config.name, sizeof(config.name), "%s", name);
    (void)snprintf(config.condition_text, sizeof(config.condition_text), "%s",
                   trigger_condition_name(condition));
    config.condition = condition;
    config.max_per_day = config.max_per_day ? config.max_per_day : 10;
    config.count = config.count ? config.count : 1;
    bench->config.triggers[bench->config.nr_triggers++] = config;
}

static void bench_start(struct bench *bench)
{
    struct triggers_context context = {
        .config = &bench->config,
        .tsc_khz = TSC_KHZ,
        .snapshot = note_snapshot,
        .userdata = bench,
    };

    if (sd_event_new(&bench->event) < 0)
        exit(EXIT_FAILURE);
    context.event = bench->event;
    CHECK_INT(triggers_new(&context, &bench->triggers), 0);
}

static void bench_done(struct bench *bench)
{
    bench->triggers = triggers_free(bench->triggers);
    sd_event_unref(bench->event);
    CHECK_INT(domains.watches, 0);
}

/* The trigger's object, as text. */
static bool document_has(const struct bench *bench, size_t index, const char *part)
{
    struct json_object *array = document_of_triggers(bench->triggers);
    const char *text;
    bool has;

    text = json_object_to_json_string_ext(json_object_array_get_idx(array, index),
                                          JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    has = strstr(text, part);
    if (!has)
        fprintf(stderr, "    %s\n", text);
    json_object_put(array);
    return has;
}

static uint64_t usec_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

/* Runs the loop until a snapshot is asked for, or that much time has passed. */
static void run(struct bench *bench, uint64_t usec)
{
    uint64_t end = usec_now() + usec;
    unsigned int asked = bench->asked;

    while (bench->asked == asked && usec_now() < end)
        CHECK(sd_event_run(bench->event, end - usec_now()) >= 0);
}

/* --- Records, as the collector shows them. --- */

static void show(struct bench *bench, const void *record)
{
    uint32_t header;

    memcpy(&header, record, sizeof(header));
    watch_window(triggers_watch_set(bench->triggers), 2, record, record_bytes(header));
}

static void show_event(struct bench *bench, uint32_t event, uint64_t tsc)
{
    const uint32_t record[3] = {1u << 31 | event, (uint32_t)tsc, (uint32_t)(tsc >> 32)};

    show(bench, record);
}

static void show_change(struct bench *bench, uint32_t states, uint32_t who, uint64_t tsc)
{
    const uint32_t record[4] = {0x90021001 | states, (uint32_t)tsc, (uint32_t)(tsc >> 32), who};

    show(bench, record);
}

/* The round ends; what the collector would tell. Returns whether it would. */
static bool end_round(struct bench *bench)
{
    bool has_fired = watch_end_round(triggers_watch_set(bench->triggers), true);

    if (has_fired)
        triggers_handle_watch(bench->triggers);
    return has_fired;
}

/* --- Cases. --- */

static void test_manual(void)
{
    struct bench bench = {0};
    struct failure failure = {0};
    const struct trigger *trigger = NULL;

    test_case("manual: refused");
    add(&bench, "hand", TRIGGER_MANUAL,
        (struct trigger_config){.cooldown_usec = 3600 * USEC_PER_SEC, .last_usec = 5});
    add(&bench, "lost", TRIGGER_LOST_RECORDS, (struct trigger_config){0});
    bench_start(&bench);
    CHECK_INT(triggers_fire_manual(bench.triggers, "nobody", &operator, &trigger, &failure),
              -ENOENT);
    CHECK_STR(failure.name, ERROR_NO_TRIGGER);
    CHECK_INT(triggers_fire_manual(bench.triggers, "lost", &operator, &trigger, &failure),
              -EINVAL);
    CHECK_STR(failure.name, ERROR_INVALID);
    CHECK(strstr(failure.text, "'lost' has the condition lost-records"));
    CHECK_INT(triggers_fire_manual(bench.triggers, "hand", &operator, &trigger, &failure),
              -ENODATA);
    CHECK_STR(failure.name, ERROR_NO_RING);
    CHECK(document_has(&bench, 0, "\"state\":\"off\""));
    CHECK(!trigger);

    test_case("manual");
    triggers_set_ring(bench.triggers, true);
    CHECK(document_has(&bench, 0, "\"state\":\"armed\""));
    CHECK_INT(triggers_fire_manual(bench.triggers, "hand", &operator, &trigger, &failure), 0);
    CHECK(trigger && trigger == bench.trigger && trigger->state == TRIGGER_WRITING);
    CHECK_UINT(bench.asked, 1);
    CHECK_STR(bench.label, "hand");
    CHECK_UINT(bench.last_usec, 5);
    CHECK(bench.trigger->requester.is_set);
    CHECK_UINT(bench.trigger->requester.uid, 1000);
    CHECK_STR(bench.trigger->requester.comm, "op");
    CHECK_INT(triggers_fire_manual(bench.triggers, "hand", &operator, &trigger, &failure), 0);
    CHECK_UINT(bench.asked, 1);
    CHECK(document_has(&bench, 0, "\"busy\":1"));
    triggers_snapshot_done(bench.triggers, bench.trigger, "/var/lib/x.xentrace", NULL);
    CHECK(document_has(&bench, 0, "\"last_snapshot\":\"/var/lib/x.xentrace\""));
    CHECK(document_has(&bench, 0, "\"state\":\"cooling\""));
    CHECK_INT(triggers_fire_manual(bench.triggers, "hand", &operator, &trigger, &failure), 0);
    CHECK(document_has(&bench, 0, "\"last_suppressed_reason\":\"Fired on request.\""));
    bench_done(&bench);
}

static void test_crash(void)
{
    struct bench bench = {0};

    test_case("crash");
    add(&bench, "crash", TRIGGER_DOMAIN_CRASH, (struct trigger_config){0});
    add(&bench, "crash-later", TRIGGER_DOMAIN_CRASH,
        (struct trigger_config){.delay_usec = 30 * USEC_PER_MSEC});
    bench_start(&bench);
    CHECK_INT(domains.watches, 1);
    CHECK(!watch_is_active(triggers_watch_set(bench.triggers)));
    crash(3); /* nothing records */
    CHECK_UINT(bench.asked, 0);
    CHECK(document_has(&bench, 0, "\"fired\":0"));

    triggers_set_ring(bench.triggers, true);
    crash(3);
    CHECK_UINT(bench.asked, 1);
    CHECK_STR(bench.label, "crash");
    CHECK_STR(bench.trigger->last_reason, "Domain 3 (web) crashed.");
    CHECK(!bench.trigger->requester.is_set);
    CHECK(document_has(&bench, 1, "\"state\":\"delaying\""));

    test_case("delay");
    {
        uint64_t start = usec_now();

        run(&bench, 10 * USEC_PER_SEC);
        CHECK_UINT(bench.asked, 2);
        CHECK_STR(bench.label, "crash-later");
        CHECK(usec_now() - start >= 25 * USEC_PER_MSEC);
    }

    test_case("the ring ends while it is written");
    triggers_set_ring(bench.triggers, false);
    triggers_snapshot_done(bench.triggers, bench.trigger, "path", NULL);
    CHECK(document_has(&bench, 1, "\"state\":\"off\""));
    CHECK(document_has(&bench, 0, "\"state\":\"writing\""));

    test_case("a crash without a name");
    triggers_set_ring(bench.triggers, true);
    crash(4);
    CHECK(document_has(&bench, 1, "\"last_reason\":\"Domain 4 crashed.\""));
    CHECK(document_has(&bench, 0, "\"last_suppressed_reason\":\"Domain 4 crashed.\""));
    bench_done(&bench);
}

static void test_watches(void)
{
    struct bench bench = {0};
    struct trigger_config event = {0}, burst = {.count = 2, .within_usec = 1000};

    event_set_add_mask(&event.events, 0x00041000);
    event_set_add_mask(&burst.events, 0x00802000);
    add(&bench, "hand", TRIGGER_MANUAL, (struct trigger_config){0});
    add(&bench, "event", TRIGGER_EVENT, event);
    add(&bench, "crash", TRIGGER_DOMAIN_CRASH, (struct trigger_config){0});
    add(&bench, "burst", TRIGGER_EVENT, burst);
    add(&bench, "slow", TRIGGER_RUNNABLE_LATENCY,
        (struct trigger_config){.latency_usec = 50 * USEC_PER_MSEC});
    add(&bench, "lost", TRIGGER_LOST_RECORDS, (struct trigger_config){0});
    bench_start(&bench);
    triggers_set_ring(bench.triggers, true);

    test_case("an event");
    show_event(&bench, 0x00041001, 1000);
    CHECK(end_round(&bench));
    CHECK_UINT(bench.asked, 1);
    CHECK_STR(bench.label, "event");
    CHECK_STR(bench.trigger->last_reason, "Event 0x00041001 (dom0op) on CPU 2.");
    triggers_snapshot_done(bench.triggers, bench.trigger, "path", NULL);

    test_case("armed again at once when it may be written again");
    show_event(&bench, 0x00041002, 2000);
    CHECK(end_round(&bench));
    CHECK_UINT(bench.asked, 2);

    test_case("not armed again at once while it is written");
    show_event(&bench, 0x00041002, 3000);
    CHECK(!end_round(&bench));
    CHECK(document_has(&bench, 1, "\"busy\":0"));

    test_case("several, 2000 ticks a microsecond");
    show_event(&bench, 0x00802008, 1000000);
    show_event(&bench, 0x00802008, 3000001);
    CHECK(!end_round(&bench));
    show_event(&bench, 0x00802007, 5000001);
    CHECK(end_round(&bench));
    CHECK_STR(bench.label, "burst");
    CHECK_STR(bench.trigger->last_reason,
              "2 events within 1ms, one of them 0x00802007 (hw) on CPU 2.");

    test_case("a latency");
    show_change(&bench, 0x210, 3u << 16 | 1, 200000000);
    show_change(&bench, 0x100, 3u << 16 | 1, 299999999);
    show_change(&bench, 0x210, 3u << 16 | 2, 200000000);
    show_change(&bench, 0x100, 3u << 16 | 2, 346000000);
    CHECK(!end_round(&bench));
    CHECK(end_round(&bench));
    CHECK_STR(bench.label, "slow");
    CHECK_STR(bench.trigger->last_reason, "vCPU 2 of domain 3 (web) waited 73ms for CPU 2.");
    CHECK_UINT(bench.trigger->last_tsc, 346000000);

    test_case("lost records");
    {
        const struct lost_record lost = {.header = LOST_RECORD_HEADER, .count = 9};

        show(&bench, &lost);
        CHECK(end_round(&bench));
        CHECK_STR(bench.label, "lost");
        CHECK_STR(bench.trigger->last_reason, "Xen lost 9 records on CPU 2.");
    }

    test_case("armed again after a second, to count what is suppressed");
    run(&bench, 1200 * USEC_PER_MSEC);
    show_event(&bench, 0x00041002, 400000000);
    CHECK(end_round(&bench));
    CHECK(document_has(&bench, 1, "\"busy\":1"));
    bench_done(&bench);
}

/* --- Domains. --- */

struct match_case {
    const char *pattern;
    uint32_t domid;
    bool matches;
};

static const struct match_case match_cases[] = {
    {"", 6, true},
    {"web", 3, true},
    {"web", 5, false},
    {"w*", 3, true},
    {"?b", 5, true},
    {"[dw]*", 3, true},
    {"33333333-3333-3333-3333-333333333333", 3, true},
    {"33333333-3333-3333-3333-333333333333", 5, false},
    {"00000000-0000-0000-0000-000000000000", 5, false},
    {"*", 6, false},
};

static void test_matches(void)
{
    struct xen_domain domain = {.name = "", .uuid = "\xab\xcd\xef"};

    for (size_t i = 0; i < ARRAY_SIZE(match_cases); i++) {
        const struct match_case *c = &match_cases[i];

        test_case(c->pattern[0] ? c->pattern : "no pattern");
        CHECK(domain_matches(c->pattern, domain_names_find(NULL, c->domid)) == c->matches);
    }
    test_case("a UUID in capitals");
    CHECK(domain_matches("ABCDEF00-0000-0000-0000-000000000000", &domain));
    CHECK_STR(domain_of(&domain).uuid, "abcdef00-0000-0000-0000-000000000000");
    CHECK_STR(domain_of(&domain).name, "");
    test_case("whose budget it is");
    CHECK_STR(domain_of(&running[1]).uuid, "33333333-3333-3333-3333-333333333333");
    CHECK_STR(domain_of(&running[1]).name, "web");
    CHECK_STR(domain_of(&running[2]).uuid, "");
    CHECK_STR(domain_of(&running[2]).name, "db");
    CHECK_STR(domain_of(&running[3]).name, "(unknown)");
}

static void show_lost(struct bench *bench, uint16_t domid)
{
    const struct lost_record lost = {.header = LOST_RECORD_HEADER, .count = 9, .domid = domid};

    show(bench, &lost);
}

static void test_domains(void)
{
    struct trigger_config event = {.domain = "web", .max_per_domain = 10};
    struct bench bench = {0};

    event_set_add_mask(&event.events, 0x00041000);
    add(&bench, "crash", TRIGGER_DOMAIN_CRASH,
        (struct trigger_config){.domain = "w*", .max_per_domain = 1});
    add(&bench, "lost", TRIGGER_LOST_RECORDS, (struct trigger_config){.max_per_domain = 1});
    add(&bench, "lost-of", TRIGGER_LOST_RECORDS,
        (struct trigger_config){.domain = "db", .max_per_domain = 10});
    add(&bench, "event", TRIGGER_EVENT, event);
    bench_start(&bench);
    triggers_set_ring(bench.triggers, true);

    test_case("a crash of another domain");
    crash(5);
    crash(9);
    CHECK(document_has(&bench, 0, "\"fired\":0"));
    test_case("a crash of a domain that is meant, once a day");
    crash(3);
    CHECK_STR(bench.label, "crash");
    triggers_snapshot_done(bench.triggers, bench.trigger, "path", NULL);
    crash(3);
    CHECK_UINT(bench.asked, 1);
    CHECK(document_has(&bench, 0, "\"domain\":\"w*\",\"max_per_domain\":1"));
    CHECK(document_has(&bench, 0, "\"max_per_domain\":1}"));

    test_case("losses of one domain leave room for another's");
    show_lost(&bench, 3);
    CHECK(end_round(&bench));
    CHECK_STR(bench.label, "lost");
    triggers_snapshot_done(bench.triggers, bench.trigger, "path", NULL);
    show_lost(&bench, 3);
    CHECK(end_round(&bench)); /* it has had its part, and is muted */
    CHECK_UINT(bench.asked, 2);
    show_lost(&bench, 3);
    CHECK(!end_round(&bench));
    show_lost(&bench, 0);
    CHECK(end_round(&bench));
    CHECK_UINT(bench.asked, 3);
    CHECK_STR(bench.trigger->last_reason, "Xen lost 9 records on CPU 2.");
    triggers_snapshot_done(bench.triggers, bench.trigger, "path", NULL);

    test_case("... and are counted once a second");
    CHECK(document_has(&bench, 1, "\"max_per_domain\":1}"));
    run(&bench, 1200 * USEC_PER_MSEC);
    show_lost(&bench, 3);
    CHECK(end_round(&bench));
    CHECK(document_has(&bench, 1, "\"max_per_domain\":2}"));

    test_case("losses of a domain that is meant");
    CHECK(document_has(&bench, 2, "\"fired\":0"));
    show_lost(&bench, 5);
    CHECK(end_round(&bench));
    CHECK(document_has(&bench, 2, "\"fired\":1"));
    CHECK(document_has(&bench, 2, "Xen lost 9 records on CPU 2, where domain 5 (db) ran."));

    test_case("events of a domain that is meant");
    show_change(&bench, 0x100, 5u << 16, 1000);
    show_event(&bench, 0x00041001, 1001);
    (void)end_round(&bench);
    CHECK(document_has(&bench, 3, "\"fired\":0"));
    show_change(&bench, 0x100, 3u << 16, 1002);
    show_event(&bench, 0x00041001, 1003);
    CHECK(end_round(&bench));
    CHECK(document_has(&bench, 3, "Event 0x00041001 (dom0op) of domain 3 (web) on CPU 2."));
    bench_done(&bench);
}

/* A guest that is restarted after each crash, and crashes before anybody has looked at it. */
static void test_early_crashes(void)
{
    struct bench bench = {0};

    add(&bench, "crash", TRIGGER_DOMAIN_CRASH, (struct trigger_config){.max_per_domain = 1});
    bench_start(&bench);
    triggers_set_ring(bench.triggers, true);

    test_case("domains whose UUID only Xen has are known by it");
    for (uint32_t domid = 20; domid < 23; domid++) {
        const struct xen_domain guest = {.domid = domid, .uuid = "4444444444444444"};

        domains.crashed(domains.userdata, &guest);
        if (domid == 20)
            triggers_snapshot_done(bench.triggers, bench.trigger, "path", NULL);
    }
    CHECK_UINT(bench.asked, 1);
    CHECK(document_has(&bench, 0, "\"max_per_domain\":2}"));

    test_case("domains without a UUID and a name share one budget");
    crash(30);
    CHECK_UINT(bench.asked, 2);
    triggers_snapshot_done(bench.triggers, bench.trigger, "path", NULL);
    crash(31);
    crash(32);
    CHECK_UINT(bench.asked, 2);
    CHECK(document_has(&bench, 0, "\"max_per_domain\":4}"));

    test_case("... and leave the others theirs");
    crash(3);
    CHECK_UINT(bench.asked, 3);
    bench_done(&bench);
}

static void test_failing_at_once(void)
{
    struct bench bench = {.fail_at_once = true};

    test_case("a snapshot that fails at once");
    add(&bench, "a", TRIGGER_DOMAIN_CRASH, (struct trigger_config){0});
    add(&bench, "b", TRIGGER_DOMAIN_CRASH,
        (struct trigger_config){.delay_usec = 1, .cooldown_usec = 3600 * USEC_PER_SEC});
    bench_start(&bench);
    triggers_set_ring(bench.triggers, true);
    crash(1);
    CHECK_UINT(bench.asked, 1);
    CHECK(document_has(&bench, 0, "\"state\":\"retrying\""));
    CHECK(document_has(&bench, 0, "\"last_error\":\"The disk is full.\""));
    run(&bench, 10 * USEC_PER_SEC);
    CHECK_UINT(bench.asked, 2);
    CHECK(document_has(&bench, 1, "\"state\":\"retrying\""));

    test_case("it is tried again by itself");
    bench.fail_at_once = false;
    run(&bench, 10 * USEC_PER_SEC); /* both, or the first one */
    if (bench.asked < 4)
        run(&bench, 10 * USEC_PER_SEC);
    CHECK_UINT(bench.asked, 4);
    CHECK_STR(bench.label, "b");
    triggers_snapshot_done(bench.triggers, bench.trigger, "path", NULL);
    CHECK(document_has(&bench, 1, "\"state\":\"cooling\""));
    CHECK(document_has(&bench, 1, "\"last_error\":\"\""));
    bench_done(&bench);
}

/* --- Another configuration. --- */

static void reload(struct bench *bench)
{
    CHECK_INT(triggers_reload(bench->triggers, &bench->config), 0);
}

static void forget_all(struct bench *bench)
{
    bench->config.nr_triggers = 0;
}

static void test_reload(void)
{
    struct trigger_config event = {0};
    struct bench bench = {0};
    struct watch_set *set;

    test_case("a reload adds the first trigger");
    event_set_add_mask(&event.events, TRC_SCHED_MIN);
    bench_start(&bench);
    set = triggers_watch_set(bench.triggers);
    triggers_set_ring(bench.triggers, true);
    add(&bench, "event", TRIGGER_EVENT, event);
    reload(&bench);
    CHECK(triggers_watch_set(bench.triggers) == set);
    CHECK_INT(domains.watches, 1);
    CHECK(document_has(&bench, 0, "\"state\":\"armed\""));
    show_event(&bench, 0x00021001, 5);
    CHECK(end_round(&bench));
    CHECK_UINT(bench.asked, 1);

    test_case("counts and a snapshot that is being written stay");
    forget_all(&bench);
    add(&bench, "first", TRIGGER_LOST_RECORDS, (struct trigger_config){0});
    event.cooldown_usec = 3600 * USEC_PER_SEC;
    add(&bench, "event", TRIGGER_EVENT, event);
    reload(&bench);
    CHECK(document_has(&bench, 1, "\"name\":\"event\""));
    CHECK(document_has(&bench, 1, "\"state\":\"writing\""));
    CHECK(document_has(&bench, 1, "\"fired\":1"));
    triggers_snapshot_done(bench.triggers, bench.trigger, "/x", NULL);
    CHECK(document_has(&bench, 1, "\"state\":\"cooling\""));
    show_event(&bench, 0x00021001, 6);
    CHECK(end_round(&bench));
    CHECK(document_has(&bench, 1, "\"fired\":2"));

    bench_done(&bench);
}

static void test_reload_removes(void)
{
    struct bench bench = {0};
    struct failure failure = {0};
    const struct trigger *trigger;
    struct watch_set *set;

    test_case("one that has gone writes its snapshot to the end");
    bench_start(&bench);
    set = triggers_watch_set(bench.triggers);
    triggers_set_ring(bench.triggers, true);
    add(&bench, "hand", TRIGGER_MANUAL, (struct trigger_config){0});
    reload(&bench);
    CHECK_INT(triggers_fire_manual(bench.triggers, "hand", &operator, &trigger, &failure), 0);
    CHECK_UINT(bench.asked, 1);
    forget_all(&bench);
    reload(&bench);
    CHECK_UINT(triggers_count(bench.triggers), 0);
    CHECK(!watch_is_active(set));
    triggers_snapshot_done(bench.triggers, bench.trigger, "/y", NULL);

    test_case("one that comes back meanwhile is the same");
    add(&bench, "hand", TRIGGER_MANUAL, (struct trigger_config){0});
    reload(&bench);
    CHECK(document_has(&bench, 0, "\"fired\":0"));
    CHECK_INT(triggers_fire_manual(bench.triggers, "hand", &operator, &trigger, &failure), 0);
    forget_all(&bench);
    reload(&bench);
    add(&bench, "hand", TRIGGER_MANUAL, (struct trigger_config){0});
    reload(&bench);
    CHECK(document_has(&bench, 0, "\"state\":\"writing\""));
    triggers_snapshot_done(bench.triggers, bench.trigger, "/z", NULL);
    CHECK(document_has(&bench, 0, "\"last_snapshot\":\"/z\""));
    forget_all(&bench);
    add(&bench, "other", TRIGGER_MANUAL, (struct trigger_config){0});
    reload(&bench);
    CHECK_INT(triggers_fire_manual(bench.triggers, "hand", &operator, &trigger, &failure),
              -ENOENT);
    bench_done(&bench);
}

static void test_reload_retries(void)
{
    const uint64_t enough_usec = 1500 * USEC_PER_MSEC; /* it would be tried again after 1 s */
    struct bench bench = {0};
    struct failure failure = {0};
    const struct trigger *trigger;

    test_case("one that has gone does not try again");
    bench_start(&bench);
    triggers_set_ring(bench.triggers, true);
    add(&bench, "hand", TRIGGER_MANUAL, (struct trigger_config){0});
    reload(&bench);
    CHECK_INT(triggers_fire_manual(bench.triggers, "hand", &operator, &trigger, &failure), 0);
    forget_all(&bench);
    reload(&bench);
    last_line[0] = '\0';
    triggers_snapshot_done(bench.triggers, bench.trigger, NULL, "The disk is full.");
    CHECK(!strstr(last_line, "Trying again"));
    run(&bench, enough_usec);
    CHECK_UINT(bench.asked, 1);

    test_case("one that waits to try again goes at once");
    bench.fail_at_once = true;
    add(&bench, "hand", TRIGGER_MANUAL, (struct trigger_config){0});
    reload(&bench);
    CHECK_INT(triggers_fire_manual(bench.triggers, "hand", &operator, &trigger, &failure), 0);
    CHECK_UINT(bench.asked, 2);
    CHECK(strstr(last_line, "Trying again in 1s"));
    forget_all(&bench);
    reload(&bench);
    CHECK_UINT(triggers_count(bench.triggers), 0);
    run(&bench, enough_usec);
    CHECK_UINT(bench.asked, 2);

    test_case("one that stays tries again, for who asked");
    add(&bench, "hand", TRIGGER_MANUAL, (struct trigger_config){0});
    reload(&bench);
    CHECK_INT(triggers_fire_manual(bench.triggers, "hand", &operator, &trigger, &failure), 0);
    CHECK_UINT(bench.asked, 3);
    reload(&bench);
    bench.fail_at_once = false;
    run(&bench, 10 * USEC_PER_SEC);
    CHECK_UINT(bench.asked, 4);
    CHECK_UINT(bench.trigger->requester.uid, 1000);
    triggers_snapshot_done(bench.triggers, bench.trigger, "/x", NULL);
    bench_done(&bench);
}

/* What is watched for already goes on: a burst that has begun, and a watch that is not armed. */
static void test_reload_watches(void)
{
    struct trigger_config burst = {.count = 2, .within_usec = USEC_PER_SEC};
    struct bench bench = {0};

    test_case("a reload that changes no condition");
    event_set_add_mask(&burst.events, TRC_SCHED_MIN);
    add(&bench, "burst", TRIGGER_EVENT, burst);
    bench_start(&bench);
    triggers_set_ring(bench.triggers, true);
    show_event(&bench, 0x00021001, 5);
    CHECK(!end_round(&bench));
    bench.config.triggers[0].cooldown_usec = 7 * USEC_PER_SEC;
    add(&bench, "hand", TRIGGER_MANUAL, (struct trigger_config){0});
    reload(&bench);
    show_event(&bench, 0x00021001, 6);
    CHECK(end_round(&bench));
    CHECK_UINT(bench.asked, 1);
    CHECK(document_has(&bench, 0, "\"cooldown_usec\":7000000"));

    test_case("a reload that changes one");
    triggers_snapshot_done(bench.triggers, bench.trigger, "/z", NULL);
    bench.config.triggers[0].cooldown_usec = 0;
    bench.config.triggers[0].count = 3;
    reload(&bench);
    show_event(&bench, 0x00021001, 7);
    show_event(&bench, 0x00021001, 8);
    CHECK(!end_round(&bench));
    show_event(&bench, 0x00021001, 9);
    CHECK(end_round(&bench));
    CHECK_UINT(bench.asked, 2);
    triggers_snapshot_done(bench.triggers, bench.trigger, "/z", NULL);
    bench_done(&bench);
}

static void test_none(void)
{
    struct bench bench = {0};
    struct json_object *array;

    test_case("no triggers");
    bench_start(&bench);
    triggers_set_ring(bench.triggers, true);
    triggers_handle_watch(bench.triggers);
    CHECK(!watch_is_active(triggers_watch_set(bench.triggers)));
    array = document_of_triggers(bench.triggers);
    CHECK_UINT(json_object_array_length(array), 0);
    json_object_put(array);
    CHECK_INT(sd_event_run(bench.event, 0), 0);
    bench_done(&bench);
    CHECK(!triggers_free(NULL));
}

int main(void)
{
    test_manual();
    test_crash();
    test_watches();
    test_matches();
    test_domains();
    test_early_crashes();
    test_failing_at_once();
    test_reload();
    test_reload_removes();
    test_reload_retries();
    test_reload_watches();
    test_none();
    return test_end();
}

// SPDX-License-Identifier: GPL-2.0-or-later

#include "collector/watch.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <xen/trace.h>

#include "common/record.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define WINDOW_MAX 4096u

/* A window that is being built. */
struct window {
    uint32_t bytes;
    uint8_t data[WINDOW_MAX];
};

static void put_words(struct window *window, const void *words, uint32_t bytes)
{
    memcpy(window->data + window->bytes, words, bytes);
    window->bytes += bytes;
}

/* EXTRA words of 7s. TSC 0: none. */
static void put(struct window *window, uint32_t event, unsigned int extra, uint64_t tsc)
{
    uint32_t words[10] = {event | extra << TRACE_EXTRA_SHIFT | (tsc ? 1u << 31 : 0)};
    uint32_t n = 1;

    if (tsc) {
        words[n++] = (uint32_t)tsc;
        words[n++] = (uint32_t)(tsc >> 32);
    }
    while (extra-- > 0)
        words[n++] = 7;
    put_words(window, words, n * 4);
}

static void put_change(struct window *window, uint32_t states, uint16_t domid, uint16_t vcpu,
                       uint64_t tsc)
{
    const uint32_t words[4] = {
        0x80000000 | 1u << TRACE_EXTRA_SHIFT | TRC_SCHED_RUNSTATE_CHANGE | states,
        (uint32_t)tsc,
        (uint32_t)(tsc >> 32),
        (uint32_t)domid << 16 | vcpu,
    };

    put_words(window, words, sizeof(words));
}

#define WOKEN 0x210u
#define RUNS  0x100u

static void put_lost_of(struct window *window, uint16_t domid, uint32_t count, uint64_t first_tsc,
                        uint64_t tsc)
{
    const struct lost_record lost = {
        .header = LOST_RECORD_HEADER,
        .tsc = {(uint32_t)tsc, (uint32_t)(tsc >> 32)},
        .count = count,
        .domid = domid,
        .first_tsc = {(uint32_t)first_tsc, (uint32_t)(first_tsc >> 32)},
    };

    put_words(window, &lost, sizeof(lost));
}

static void put_lost(struct window *window, uint32_t count, uint64_t first_tsc, uint64_t tsc)
{
    put_lost_of(window, 0, count, first_tsc, tsc);
}

/* Shows the window to the set, and empties it. */
static void show(struct watch_set *set, unsigned int cpu, struct window *window)
{
    watch_window(set, cpu, window->data, window->bytes);
    window->bytes = 0;
}

static struct watch_config on_event(uint32_t mask, uint32_t count, uint64_t within)
{
    struct watch_config config = {.kind = WATCH_EVENT, .count = count, .within_tsc = within};

    event_set_add_mask(&config.events, mask);
    return config;
}

static struct watch_set *set_of(const struct watch_config *configs, size_t count)
{
    struct watch_set *set;

    if (watch_set_new(configs, count, &set) < 0)
        exit(EXIT_FAILURE);
    return set;
}

/* --- Events. --- */

struct event_case {
    const char *name;
    uint32_t mask;
    uint32_t event;
    bool matches;
};

static const struct event_case event_cases[] = {
    {"its class", 0x0002f000, 0x0002f123, true},
    {"its subclass", 0x00022000, 0x00022001, true},
    {"another subclass", 0x00022000, 0x00021001, false},
    {"one of its subclasses", 0x00023000, 0x00021001, true},
    {"another class", 0x0002f000, 0x00041001, false},
    {"one of two classes", 0x00061000, 0x00041002, true},
    {"what guests choose", 0x0800f000, 0x08001001, true},
    {"what guests choose, not asked for", 0x00fff000, 0x08001001, false},
    {"gen is never meant", 0x0003f000, 0x0001f003, false},
    {"filler is never meant", 0x0001f000, TRC_TRACE_WRAP_BUFFER, false},
    {"a runstate change", 0x00021000, 0x00021211, true},
};

static void test_events(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(event_cases); i++) {
        const struct event_case *c = &event_cases[i];
        const struct watch_config config = on_event(c->mask, 1, 0);
        struct watch_set *set = set_of(&config, 1);
        struct window window = {0};
        struct watch_hit hit;

        test_case(c->name);
        CHECK(!watch_take(set, 0, &hit));
        put(&window, 0x00100001, 2, 90);
        put(&window, c->event, 1, 100);
        put(&window, c->event, 1, 110);
        show(set, 3, &window);
        CHECK(watch_end_round(set, true) == c->matches);
        CHECK(!watch_end_round(set, true));
        if (CHECK(watch_take(set, 0, &hit) == c->matches) && c->matches) {
            CHECK_UINT(hit.cpu, 3);
            CHECK_UINT(hit.tsc, 100);
            CHECK_UINT(hit.event, c->event);
        }
        watch_set_free(set);
    }
}

static void test_no_tsc(void)
{
    const struct watch_config config = on_event(0x0008f000, 1, 0);
    struct watch_set *set = set_of(&config, 1);
    struct window window = {0};
    struct watch_hit hit;

    test_case("no TSC: that of the record before");
    put(&window, 0x00021001, 1, 90);
    put(&window, 0x00021002, 3, 0);
    put(&window, 0x00081001, 0, 0);
    show(set, 0, &window);
    CHECK(watch_take(set, 0, &hit));
    CHECK_UINT(hit.tsc, 90);

    test_case("no TSC: of the window before");
    watch_arm(set, 0);
    put(&window, 0x00081001, 0, 0);
    show(set, 1, &window);
    CHECK(watch_take(set, 0, &hit));
    CHECK_UINT(hit.tsc, 90);
    CHECK_UINT(hit.cpu, 1);

    test_case("a window without records");
    watch_arm(set, 0);
    show(set, 1, &window);
    CHECK(!watch_take(set, 0, &hit));
    watch_set_free(set);
}

/* Once it has come true, nothing more until it is armed, and then from the beginning. */
static void test_arming(void)
{
    const struct watch_config config = on_event(0x00041000, 3, 100);
    struct watch_set *set = set_of(&config, 1);
    struct window window = {0};
    struct watch_hit hit;

    test_case("counted over windows");
    put(&window, 0x00041001, 1, 1000);
    show(set, 0, &window);
    put(&window, 0x00041001, 1, 1100);
    show(set, 1, &window);
    CHECK(!watch_end_round(set, true));
    put(&window, 0x00041002, 1, 1050); /* CPU 0 comes again, and is behind */
    show(set, 0, &window);
    CHECK(watch_end_round(set, true));
    CHECK(watch_take(set, 0, &hit));
    CHECK_UINT(hit.tsc, 1050);
    CHECK_UINT(hit.event, 0x00041002);

    test_case("disarmed");
    for (uint64_t i = 0; i < 10; i++)
        put(&window, 0x00041001, 1, 1110 + i);
    show(set, 0, &window);
    CHECK(!watch_end_round(set, true));
    CHECK(watch_take(set, 0, &hit));
    CHECK_UINT(hit.tsc, 1050);

    test_case("armed again: nothing of before counts");
    watch_arm(set, 0);
    CHECK(!watch_take(set, 0, &hit));
    put(&window, 0x00041001, 1, 1120);
    put(&window, 0x00041001, 1, 1121);
    show(set, 0, &window);
    CHECK(!watch_end_round(set, true));
    put(&window, 0x00041001, 1, 1122);
    show(set, 0, &window);
    CHECK(watch_end_round(set, true));

    test_case("reset");
    watch_arm(set, 0);
    put(&window, 0x00041001, 1, 2000);
    put(&window, 0x00041001, 1, 2001);
    show(set, 0, &window);
    watch_reset(set);
    put(&window, 0x00041001, 1, 2002);
    show(set, 0, &window);
    CHECK(!watch_end_round(set, true));
    watch_set_free(set);
}

/* --- Lost records, latencies, and all of them together. --- */

static void test_lost(void)
{
    const struct watch_config config = {.kind = WATCH_LOST};
    struct watch_set *set = set_of(&config, 1);
    struct window window = {0};
    struct watch_hit hit;

    test_case("nothing lost");
    put(&window, TRC_TRACE_WRAP_BUFFER, 5, 0);
    put(&window, 0x0001f001, 3, 50); /* not of the size that Xen gives it */
    put(&window, 0x00021001, 1, 60);
    show(set, 0, &window);
    CHECK(!watch_end_round(set, true));

    test_case("lost");
    put(&window, TRC_TRACE_WRAP_BUFFER, 5, 0);
    put_lost(&window, 12345, 70, 80);
    put_lost(&window, 1, 85, 90);
    show(set, 7, &window);
    CHECK(watch_end_round(set, false));
    CHECK(watch_take(set, 0, &hit));
    CHECK_UINT(hit.lost, 12345);
    CHECK_UINT(hit.cpu, 7);
    CHECK_UINT(hit.tsc, 80);
    watch_set_free(set);
}

static void test_together(void)
{
    const struct watch_config configs[] = {
        {.kind = WATCH_RUNNABLE, .latency_tsc = 200},
        on_event(0x00021000, 1, 0),
        {.kind = WATCH_LOST},
        {.kind = WATCH_RUNNABLE, .latency_tsc = 50},
        on_event(0x00021000, 3, 1000),
    };
    struct watch_set *set = set_of(configs, ARRAY_SIZE(configs));
    struct window window = {0};
    struct watch_hit hit;

    test_case("two latencies");
    put_change(&window, WOKEN, 3, 1, 1000);
    put_change(&window, WOKEN, 4, 2, 1000);
    show(set, 0, &window);
    put_change(&window, RUNS, 3, 1, 1060);
    put_change(&window, RUNS, 4, 2, 1199);
    show(set, 5, &window);
    CHECK(watch_end_round(set, true)); /* the events */
    CHECK(watch_take(set, 1, &hit));
    CHECK_UINT(hit.event, 0x00021211);
    CHECK_UINT(hit.tsc, 1000);
    CHECK(watch_take(set, 4, &hit));
    CHECK_UINT(hit.event, 0x00021101);
    CHECK_UINT(hit.tsc, 1060);
    CHECK(!watch_take(set, 3, &hit));
    CHECK(watch_end_round(set, true));
    CHECK(!watch_take(set, 0, &hit));
    CHECK(!watch_take(set, 2, &hit));
    if (CHECK(watch_take(set, 3, &hit))) {
        CHECK_UINT(hit.domid, 4);
        CHECK_UINT(hit.vcpu, 2);
        CHECK_UINT(hit.waited_tsc, 199);
        CHECK_UINT(hit.cpu, 5);
        CHECK_UINT(hit.tsc, 1199);
    }

    test_case("the longer one, while the other is disarmed");
    put_change(&window, WOKEN, 3, 1, 2000);
    put_change(&window, RUNS, 3, 1, 2200);
    show(set, 1, &window);
    CHECK(!watch_end_round(set, true));
    CHECK(!watch_end_round(set, false));
    CHECK(watch_end_round(set, true));
    CHECK(watch_take(set, 0, &hit));
    CHECK_UINT(hit.waited_tsc, 200);
    CHECK(watch_take(set, 3, &hit));
    CHECK_UINT(hit.waited_tsc, 199);

    test_case("not across a loss");
    for (size_t i = 0; i < ARRAY_SIZE(configs); i++)
        watch_arm(set, i);
    put_change(&window, WOKEN, 3, 1, 3000);
    put_change(&window, RUNS, 3, 1, 3500);
    show(set, 1, &window);
    put_lost(&window, 2, 3100, 3110);
    show(set, 2, &window);
    CHECK(watch_end_round(set, true));
    CHECK(!watch_end_round(set, true));
    CHECK(watch_take(set, 2, &hit));
    CHECK(!watch_take(set, 0, &hit));
    CHECK(!watch_take(set, 3, &hit));
    watch_set_free(set);
}

/* A record that reaches beyond the window (which the walk rules out) is not touched. */
/* --- Domains. --- */

#define STOPS 0x010u /* running to runnable */

/*
 * What CPU 1's buffer shows, in words: r3 domain 3 runs there, w3 a vCPU of it is woken there, s3
 * it stops, e an event, l3 records were lost while it ran, x the sink has dropped some. And r3@2,
 * e@2 on CPU 2. Domain 3 is wanted, nobody else.
 */
struct domain_case {
    const char *name;
    const char *words;
    bool matches;
};

static const struct domain_case event_domain_cases[] = {
    {"an event of a domain that is wanted", "r3 e", true},
    {"of another", "r4 e", false},
    {"of nobody knows whom", "e", false},
    {"when another has run in between", "r3 s3 r4 e", false},
    {"when the idle domain has", "r3 s3 r32767 e", false},
    {"when it was stopped, and runs again", "r3 s3 r4 s4 r3 e", true},
    {"woken is not running", "r4 w3 e", false},
    {"on another CPU", "r3@2 e", false},
    {"on that CPU", "r3@2 e@2", true},
    {"after a loss", "r3 l3 e", false},
    {"after a loss, when it has begun to run", "l4 r3 e", true},
    {"after a gap", "r3 x e", false},
    {"both before and after another's", "r3 s3 r4 e s4 r3 e", true},
};

static void play_domains(struct watch_set *set, const char *text)
{
    char words[128], *rest = NULL;
    uint64_t tsc = 1000;

    (void)snprintf(words, sizeof(words), "%s", text);
    for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest), tsc += 10) {
        unsigned int cpu = strchr(w, '@') ? 2 : 1;
        uint16_t domid = (uint16_t)strtoul(w + 1, NULL, 10);
        struct window window = {0};

        if (w[0] == 'x')
            watch_reset(set);
        else if (w[0] == 'l')
            put_lost_of(&window, domid, 5, tsc, tsc);
        else if (w[0] == 'e')
            put(&window, 0x00041001, 1, tsc);
        else
            put_change(&window, w[0] == 'r' ? RUNS : w[0] == 'w' ? WOKEN : STOPS, domid, 0, tsc);
        show(set, cpu, &window);
    }
}

static void test_event_domains(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(event_domain_cases); i++) {
        const struct domain_case *c = &event_domain_cases[i];
        struct watch_config config = on_event(0x00041000, 1, 0);
        struct watch_set *set;
        struct watch_hit hit;

        test_case(c->name);
        config.by_domain = true;
        set = set_of(&config, 1);
        watch_want_domain(set, 0, 3, true);
        play_domains(set, c->words);
        CHECK(watch_end_round(set, true) == c->matches);
        if (CHECK(watch_take(set, 0, &hit) == c->matches) && c->matches)
            CHECK_UINT(hit.domid, 3);
        watch_set_free(set);
    }
}

static void test_domains(void)
{
    struct watch_config configs[] = {
        {.kind = WATCH_LOST, .by_domain = true, .wants_all = true},
        {.kind = WATCH_RUNNABLE, .latency_tsc = 200, .by_domain = true, .wants_all = true},
    };
    struct watch_set *set = set_of(configs, ARRAY_SIZE(configs));
    struct window window = {0};
    struct watch_hit hit;

    test_case("all domains are wanted, but one");
    watch_want_domain(set, 0, 7, false);
    watch_want_domain(set, 0, 70000, false); /* nobody has that id */
    put_lost_of(&window, 7, 5, 90, 100);
    show(set, 0, &window);
    CHECK(!watch_end_round(set, true));
    put_lost_of(&window, 6, 5, 190, 200);
    show(set, 0, &window);
    CHECK(watch_end_round(set, true));
    CHECK(watch_take(set, 0, &hit));
    CHECK_UINT(hit.domid, 6);

    test_case("and that one again");
    watch_want_domain(set, 0, 7, true);
    watch_arm(set, 0);
    put_lost_of(&window, 7, 5, 290, 300);
    show(set, 0, &window);
    CHECK(watch_end_round(set, true));
    CHECK(watch_take(set, 0, &hit));
    CHECK_UINT(hit.domid, 7);

    test_case("the longest wait of those that are wanted");
    watch_want_domain(set, 1, 4, false);
    put_change(&window, WOKEN, 3, 0, 1000);
    put_change(&window, WOKEN, 4, 0, 1000);
    put_change(&window, RUNS, 3, 0, 1300);
    put_change(&window, RUNS, 4, 0, 1900);
    show(set, 0, &window);
    (void)watch_end_round(set, true);
    CHECK(watch_end_round(set, true));
    CHECK(watch_take(set, 1, &hit));
    CHECK_UINT(hit.domid, 3);
    CHECK_UINT(hit.waited_tsc, 300);
    watch_set_free(set);
}

static void test_cut(void)
{
    const struct watch_config configs[] = {on_event(0x00021000, 1, 0), {.kind = WATCH_LOST}};
    struct watch_set *set = set_of(configs, ARRAY_SIZE(configs));
    struct window window = {0};
    struct watch_hit hit;

    test_case("cut");
    put_lost(&window, 1, 1, 2);
    for (uint32_t bytes = 0; bytes < LOST_RECORD_BYTES; bytes++)
        watch_window(set, 0, window.data, bytes);
    CHECK(!watch_take(set, 1, &hit));
    watch_set_free(set);
}

static void test_bad(void)
{
    const struct watch_config too_many[WATCH_MAX + 1] = {0};
    struct watch_config config = on_event(0x00021000, 0, 0);
    struct watch_set *set;

    test_case("bad");
    CHECK_INT(watch_set_new(&config, 1, &set), -EINVAL);
    config.count = WATCH_COUNT_MAX + 1;
    CHECK_INT(watch_set_new(&config, 1, &set), -EINVAL);
    config = (struct watch_config){.kind = WATCH_RUNNABLE};
    CHECK_INT(watch_set_new(&config, 1, &set), -EINVAL);
    CHECK_INT(watch_set_new(too_many, ARRAY_SIZE(too_many), &set), -EINVAL);
    CHECK(!watch_set_free(NULL));
    CHECK_INT(watch_set_new(NULL, 0, &set), 0);
    CHECK(!watch_end_round(set, true));
    watch_set_free(set);
}

/* --- Two threads. --- */

#define HITS 20000u

struct pair {
    struct watch_set *set;
    bool done;
};

/* Windows whose records all say the same, so that a hit that is not whole shows. */
static void *collect(void *context)
{
    struct pair *pair = context;

    for (uint64_t i = 1; !__atomic_load_n(&pair->done, __ATOMIC_RELAXED); i++) {
        struct window window = {0};

        put(&window, 0x00041000 | (uint32_t)(i % 0x800), 1, i << 12);
        show(pair->set, (unsigned int)(i % 0x800), &window);
        (void)watch_end_round(pair->set, true);
    }
    return NULL;
}

static void test_threads(void)
{
    const struct watch_config config = on_event(0x00041000, 1, 0);
    struct pair pair = {.set = set_of(&config, 1)};
    uint32_t wrong = 0, hits = 0;
    uint64_t last = 0;
    pthread_t thread;

    test_case("threads");
    if (pthread_create(&thread, NULL, collect, &pair) != 0)
        exit(EXIT_FAILURE);
    while (hits < HITS) {
        struct watch_hit hit;

        if (!watch_take(pair.set, 0, &hit))
            continue;
        wrong +=
            (hit.event & 0x7ff) != hit.cpu || (hit.tsc >> 12) % 0x800 != hit.cpu || hit.tsc <= last;
        last = hit.tsc;
        hits++;
        watch_arm(pair.set, 0);
    }
    __atomic_store_n(&pair.done, true, __ATOMIC_RELAXED);
    (void)pthread_join(thread, NULL);
    CHECK_UINT(wrong, 0);
    watch_set_free(pair.set);
}

/* --- What it costs: printed, for it depends on the machine. --- */

#define COST_ROUNDS 2000u

static double nsec_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void print_cost(const char *name, struct watch_set *set, bool changes)
{
    struct window window = {0};
    uint64_t tsc = 1000000;
    uint32_t records = 0;
    double nsec = 0;

    for (uint32_t round = 0; round < COST_ROUNDS; round++) {
        double start;

        window.bytes = 0;
        for (records = 0; window.bytes + 40 < WINDOW_MAX; records++, tsc += 1000) {
            if (changes)
                put_change(&window, records % 2 ? RUNS : WOKEN, 5, records / 2 % 8, tsc);
            else
                put(&window, 0x00081001, 2, tsc);
        }
        start = nsec_now();
        watch_window(set, 0, window.data, window.bytes);
        nsec += nsec_now() - start;
        (void)watch_end_round(set, true);
    }
    printf("# %s: %.1f ns a record\n", name, nsec / COST_ROUNDS / records);
}

static void test_cost(void)
{
    const struct watch_config configs[] = {
        on_event(0x00041000, 1, 0),
        {.kind = WATCH_RUNNABLE, .latency_tsc = 1000000},
    };
    struct watch_set *set = set_of(configs, ARRAY_SIZE(configs));
    struct watch_hit hit;

    test_case("cost");
    print_cost("an event and a latency, of records that are neither", set, false);
    print_cost("an event and a latency, of runstate changes", set, true);
    CHECK(!watch_take(set, 0, &hit));
    CHECK(!watch_take(set, 1, &hit));
    watch_set_free(set);
}

/* --- Other watches, while the set is lent. --- */

static bool comes_true(struct watch_set *set, uint32_t event)
{
    struct window window = {0};

    put(&window, event, 0, 100);
    show(set, 0, &window);
    return watch_end_round(set, true);
}

static void test_replacing(void)
{
    const struct watch_config before[] = {on_event(0x00021000, 1, 0)};
    const struct watch_config after[] = {on_event(0x00041000, 1, 0), on_event(0x00021000, 2, 50)};
    struct watch_set *set = set_of(before, 1);
    struct watch_hit hit;

    test_case("other watches");
    CHECK(watch_is_active(set));
    CHECK(comes_true(set, 0x00021001));
    CHECK_INT(watch_set_replace(set, after, 2), 0);
    CHECK(!watch_take(set, 0, &hit)); /* it was for the other one */
    CHECK(!comes_true(set, 0x00021001));
    CHECK(comes_true(set, 0x00041001));
    CHECK(watch_take(set, 0, &hit));
    CHECK_UINT(hit.event, 0x00041001);

    test_case("a burst begins with the new ones");
    CHECK_INT(watch_set_replace(set, after, 2), 0);
    CHECK(!comes_true(set, 0x00021001));
    CHECK(comes_true(set, 0x00021001));
    CHECK(watch_take(set, 1, &hit));

    test_case("replaced twice before the collector looks");
    CHECK_INT(watch_set_replace(set, before, 1), 0);
    CHECK_INT(watch_set_replace(set, after, 2), 0);
    watch_arm(set, 1);
    CHECK(comes_true(set, 0x00041001));

    test_case("nothing to look for");
    CHECK_INT(watch_set_replace(set, NULL, 0), 0);
    CHECK(!watch_is_active(set));
    CHECK(!comes_true(set, 0x00041001));
    CHECK(!watch_is_active(NULL));

    test_case("something again");
    CHECK_INT(watch_set_replace(set, before, 1), 0);
    CHECK(watch_is_active(set));
    CHECK(comes_true(set, 0x00021001));
    CHECK_INT(watch_set_replace(set, before, WATCH_MAX + 1), -EINVAL);
    CHECK(watch_take(set, 0, &hit));                /* nothing has changed */
    CHECK_INT(watch_set_replace(set, after, 2), 0); /* freed before the collector takes it */
    watch_set_free(set);
}

struct replacing {
    struct watch_set *set;
    bool is_over; /* atomic */
};

static void *replacing_collector(void *userdata)
{
    struct replacing *replacing = userdata;

    while (!__atomic_load_n(&replacing->is_over, __ATOMIC_RELAXED))
        (void)comes_true(replacing->set, 0x00021001);
    return NULL;
}

static void test_replacing_beside(void)
{
    const struct watch_config configs[] = {on_event(0x00021000, 1, 0), on_event(0x00041000, 1, 0)};
    struct replacing replacing = {.set = set_of(configs, 1)};
    struct watch_hit hit;
    unsigned int hits = 0;
    pthread_t thread;

    test_case("replaced beside the collector");
    if (pthread_create(&thread, NULL, replacing_collector, &replacing) != 0)
        exit(EXIT_FAILURE);
    for (unsigned int i = 0; i < 2000; i++) {
        CHECK_INT(watch_set_replace(replacing.set, configs, i % 3), 0);
        hits += i % 3 > 0 && watch_take(replacing.set, 0, &hit);
    }
    CHECK_INT(watch_set_replace(replacing.set, configs, 1), 0);
    while (!watch_take(replacing.set, 0, &hit))
        ;
    printf("# %u of 2000 came true at once\n", hits);
    __atomic_store_n(&replacing.is_over, true, __ATOMIC_RELAXED);
    (void)pthread_join(thread, NULL);
    watch_set_free(replacing.set);
}

int main(void)
{
    test_events();
    test_no_tsc();
    test_arming();
    test_lost();
    test_together();
    test_event_domains();
    test_domains();
    test_cut();
    test_bad();
    test_threads();
    test_replacing();
    test_replacing_beside();
    test_cost();
    return test_end();
}

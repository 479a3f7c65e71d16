// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Event lists: a table of what people type, and the proof, over every class and subclass there can
 * be, that the mask covers the set and that it is called exact when and only when it is.
 */

#include "common/event-set.h"

#include <errno.h>

#include <xen/trace.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define FIRST_EVENT 0x00010000u
#define LAST_EVENT  0x0fffffffu
#define EVENT_STEP  (1u << TRC_SUBCLS_SHIFT)

struct parse_case {
    const char *name;
    const char *list;
    int result;
    uint32_t mask;
    bool is_exact;
    const char *sentence; /* what it must contain */
};

static const struct parse_case parse_cases[] = {
    {"class", "sched", 0, 0x0002f000, true, NULL},
    {"subclass", "sched-min", 0, 0x00021000, true, NULL},
    {"two subclasses", "sched-min,sched-verbose", 0, 0x00029000, true, NULL},
    {"a class and its subclass", "sched-min,sched", 0, 0x0002f000, true, NULL},
    {"two classes", "sched,hvm", 0, 0x000af000, true, NULL},
    {"like subclasses", "sched-min,hvm-entryexit", 0, 0x000a1000, true, NULL},
    {"unlike subclasses", "sched-min,hvm-handler", 0, 0x000a3000, false, NULL},
    {"class with another's subclass", "sched,hw-irq", 0, 0x0082f000, false, NULL},
    {"all", "all", 0, 0x00fff000, true, NULL},
    {"guest", "guest", 0, 0x0800f000, true, NULL},
    {"all and guest", "all,guest", 0, 0x08fff000, true, NULL},
    {"case, blanks, underscores", " SCHED_Min , Hvm-EntryExit", 0, 0x000a1000, true, NULL},
    {"gen alone", "gen", 0, 0x0001f000, true, NULL},
    {"gen does not widen", "gen,sched-min", 0, 0x00031000, true, NULL},
    {"gen does not widen unlike ones", "gen,sched-min,hw-irq", 0, 0x00833000, false, NULL},
    {"dom0op-domops", "dom0op-domops", 0, 0x00041000, true, NULL},
    {"number", "0x21000", 0, 0x00021000, true, NULL},
    {"number in upper case", "0X0002F000", 0, 0x0002f000, true, NULL},
    {"decimal number", "135168", 0, 0x00021000, true, NULL},
    {"numbers are one mask", "0x20000,0x1000", 0, 0x00021000, true, NULL},
    {"a product of numbers", "0x21000,0x82000", 0, 0x000a3000, true, NULL},
    {"numbers and names are not", "0x21000,hvm-handler", 0, 0x000a3000, false, NULL},
    {"xentrace's all, as a number", "0x0ffff000", 0, 0x0ffff000, true, NULL},
    {"zero beside a mask", "0,0x2f000", 0, 0x0002f000, true, NULL},

    {"nothing", "", -EINVAL, 0, false, "empty item"},
    {"comma at the end", "sched,", -EINVAL, 0, false, "empty item"},
    {"unknown, near", "shed", -EINVAL, 0, false, "did you mean \"sched\"?"},
    {"as others call it", "vmexit", -EINVAL, 0, false, "did you mean \"hvm-entryexit\"?"},
    {"as others write it", "HVM_EXIT", -EINVAL, 0, false, "did you mean \"hvm-entryexit\"?"},
    {"a CPU", "sched,cpu", -EINVAL, 0, false, "\"hw-pm\""},
    {"unknown, near in upper case", "HVM_HANDLR", -EINVAL, 0, false, "mean \"hvm-handler\"?"},
    {"unknown, far", "network", -EINVAL, 0, false,
     "There are no events named \"network\"; \"xentracectl events\" lists"},
    {"unknown, long", "sched-min-sched-min-sched-min-sched-min-sched-min-sched-min", -EINVAL, 0,
     false, "\"sched-min-sched-min-sched-min-sched-min-sche...\""},
    {"unknown after good ones", "hvm,mem,foo", -EINVAL, 0, false, "\"foo\""},
    {"escape sequence", "\033[31m", -EINVAL, 0, false, "\"?[31m\""},
    {"single event", "0x21001", -EINVAL, 0, false,
     "0x00021001 names a single event; Xen selects classes and subclasses: use 0x00021000."},
    {"single event without subclass", "0x20001", -EINVAL, 0, false, "use 0x0002f000."},
    {"record header", "0xb0021001", -EINVAL, 0, false, "use 0x00021000."},
    {"low bits only", "0x1", -EINVAL, 0, false, "bits outside 0x0ffff000"},
    {"high bits only", "0xf0000000", -EINVAL, 0, false, "bits outside 0x0ffff000"},
    {"all bits", "0xffffffff", -EINVAL, 0, false, "use 0x0ffff000."},
    {"33 bits", "0x100021000", -EINVAL, 0, false, "\"0x100021000\" is not an event mask"},
    {"2^64 + a mask", "0x10000000000021000", -EINVAL, 0, false, "is not an event mask"},
    {"not a number", "0x2g000", -EINVAL, 0, false, "\"0x2g000\" is not an event mask"},
    {"hexadecimal without 0x", "2f000", -EINVAL, 0, false, "\"2f000\" is not an event mask"},
    {"0x alone", "0x", -EINVAL, 0, false, "\"0x\" is not an event mask"},
    {"class without subclass", "0x20000", -EINVAL, 0, false, "use 0x0002f000"},
    {"subclass without class", "0x1000", -EINVAL, 0, false, "such as 0x00021000"},
    {"zero", "0", -EINVAL, 0, false, "0x00000000 selects nothing"},
    {"half a number beside a name", "sched,0x80000", -EINVAL, 0, false, "use 0x0008f000"},
};

static void test_parse(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(parse_cases); i++) {
        const struct parse_case *c = &parse_cases[i];
        _cleanup_free_ char *error = NULL;
        struct event_set set = {{9}};

        test_case(c->name);
        if (!CHECK_INT(event_set_parse(c->list, &set, &error), c->result))
            continue;
        if (c->result < 0) {
            CHECK_UINT(set.subclasses[0], 9); /* written on success only */
            CHECK(error && error[strlen(error) - 1] == '.');
            if (!CHECK(error && strstr(error, c->sentence)))
                fprintf(stderr, "    %s\n", error ? error : "(null)");
            continue;
        }
        CHECK_STR(error, NULL);
        CHECK_UINT(event_set_xen_mask(&set), c->mask);
        CHECK_INT(event_set_is_exact(&set), c->is_exact);
    }
}

/* Xen's two tests of an event against the mask, each for itself; what is GEN passes without. */
static bool xen_lets_pass(uint32_t mask, uint32_t event)
{
    if (event & (1u << TRC_CLS_SHIFT))
        return true;
    if (((mask >> TRC_CLS_SHIFT) & (event >> TRC_CLS_SHIFT) & 0xfff) == 0)
        return false;
    return ((mask >> TRC_SUBCLS_SHIFT) & 0xf & ((event >> TRC_SUBCLS_SHIFT) & 0xf)) != 0;
}

/* SET against every class and subclass there can be, events of several classes too. */
static void check_set(const struct event_set *set)
{
    uint32_t mask = event_set_xen_mask(set);
    unsigned long missing = 0, extra = 0;

    for (uint32_t event = FIRST_EVENT; event <= LAST_EVENT; event += EVENT_STEP) {
        bool has = event_set_has(set, event), passes = xen_lets_pass(mask, event);

        missing += has && !passes;
        extra += passes && !has;
    }
    CHECK_UINT(missing, 0);
    CHECK_INT(event_set_is_exact(set), extra == 0);

    /* Smallest: without any one of its bits something is missing. GEN's own bits are for show. */
    for (unsigned int bit = TRC_SUBCLS_SHIFT; bit < TRC_CLS_SHIFT + EVENT_CLASSES; bit++) {
        uint32_t less = mask & ~(1u << bit);
        bool only_gen = (mask & 0x0ffe0000) == 0;

        if (less == mask || bit == TRC_CLS_SHIFT || only_gen)
            continue;
        missing = 0;
        for (uint32_t event = FIRST_EVENT; event <= LAST_EVENT && missing == 0; event += EVENT_STEP)
            missing += event_set_has(set, event) && !xen_lets_pass(less, event);
        if (!CHECK(missing > 0))
            fprintf(stderr, "    bit %u of 0x%08x is not needed\n", bit, mask);
    }
}

static void test_masks(void)
{
    uint64_t random = test_seed();
    size_t count;
    const struct event_name *names = event_names(&count);
    struct event_set set = {0};

    test_case("the empty set");
    CHECK_UINT(event_set_xen_mask(&set), 0);
    check_set(&set);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i; j < count; j++) {
            set = (struct event_set){0};
            event_set_add_mask(&set, names[i].mask);
            event_set_add_mask(&set, names[j].mask);
            test_case(names[i].name);
            check_set(&set);
        }
    }
    test_case("random set");
    for (unsigned int i = 0; i < 300; i++) {
        for (unsigned int j = 0; j < EVENT_CLASSES; j++)
            set.subclasses[j] = test_random(&random) % 3 ? 0 : test_random(&random) & 0xf;
        check_set(&set);
    }
    test_case("random set with like subclasses");
    for (unsigned int i = 0; i < 100; i++) {
        set = (struct event_set){0};
        event_set_add_mask(&set, (uint32_t)test_random(&random));
        check_set(&set);
        CHECK(event_set_is_exact(&set));
    }
}

/* Typing a name means its mask, and the union of two sets is what either has. */
static void test_names(void)
{
    size_t count;
    const struct event_name *names = event_names(&count);
    struct event_set all = event_set_all(), joined = {0};

    for (size_t i = 0; i < count; i++) {
        _cleanup_free_ char *error = NULL;
        struct event_set set;

        test_case(names[i].name);
        CHECK_INT(event_set_parse(names[i].name, &set, &error), 0);
        CHECK_UINT(event_set_xen_mask(&set), names[i].mask);
        CHECK(event_set_is_exact(&set));
        CHECK(names[i].meaning[0] != '\0');
        CHECK_INT(names[i].in_all, event_set_has(&all, names[i].mask));
        if (names[i].in_all)
            event_set_union(&joined, &set);
    }
    test_case("all is all that is in_all");
    CHECK(memcmp(&joined, &all, sizeof(all)) == 0);
    CHECK_UINT(event_set_xen_mask(&all), 0x00fff000);
    CHECK(!event_set_has(&all, TRC_GUEST | 1));
    CHECK(!event_set_has(&all, 0x0700f001)); /* classes that Xen has not */
}

static void test_events(void)
{
    struct event_set none = {0}, sched_min = {{[1] = 1}};

    test_case("events");
    CHECK(event_set_has(&sched_min, TRC_SCHED_RUNSTATE_CHANGE));
    CHECK(event_set_has(&sched_min, 0xb0021001)); /* a record's header */
    CHECK(!event_set_has(&sched_min, TRC_SCHED_WAKE));
    CHECK(!event_set_has(&sched_min, TRC_HVM_VMEXIT));
    CHECK(!event_set_has(&sched_min, 0x00020001)); /* no subclass: no mask lets it pass */
    CHECK(event_set_has(&none, TRC_LOST_RECORDS));
    CHECK(event_set_has(&none, TRC_TRACE_WRAP_BUFFER));

    test_case("names of classes");
    CHECK_STR(event_class_name(TRC_LOST_RECORDS), "gen");
    CHECK_STR(event_class_name(0xb0021001), "sched");
    CHECK_STR(event_class_name(TRC_DOM0_DOM_ADD), "dom0op");
    CHECK_STR(event_class_name(TRC_HVM_VMEXIT), "hvm");
    CHECK_STR(event_class_name(TRC_MEM_PAGE_GRANT_MAP), "mem");
    CHECK_STR(event_class_name(TRC_PV_HYPERCALL_V2), "pv");
    CHECK_STR(event_class_name(TRC_SHADOW_FIXUP), "shadow");
    CHECK_STR(event_class_name(TRC_HW_IRQ | 1), "hw");
    CHECK_STR(event_class_name(TRC_GUEST | 1), "guest");
    CHECK_STR(event_class_name(TRC_SCHED | TRC_HVM), "sched");
    CHECK_STR(event_class_name(0x01001001), "unknown");
    CHECK_STR(event_class_name(0xf0000001), "unknown");
}

/* Anything may be typed: no crash, and a sentence for each refusal. */
static void test_garbage(void)
{
    static const char letters[] = "schedhvm-_,, 0x0123456789abcdef\xff\033";
    uint64_t random = test_seed();

    test_case("garbage");
    for (unsigned int i = 0; i < 50000; i++) {
        _cleanup_free_ char *error = NULL;
        struct event_set set = {0};
        char text[40];
        size_t length = test_random(&random) % sizeof(text);
        int r;

        for (size_t j = 0; j < length; j++)
            text[j] = letters[test_random(&random) % (sizeof(letters) - 1)];
        text[length] = '\0';
        r = event_set_parse(text, &set, &error);
        if (r == 0 ? event_set_xen_mask(&set) == 0 || error : r != -EINVAL || !error) {
            fprintf(stderr, "\"%s\": %d, %s\n", text, r, error ? error : "(null)");
            CHECK(false);
        }
    }
}

int main(void)
{
    test_parse();
    test_names();
    test_events();
    test_masks();
    test_garbage();
    return test_end();
}

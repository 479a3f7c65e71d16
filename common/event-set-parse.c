// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Reads event lists. A number is a mask of Xen's and keeps that meaning, classes x subclasses: all
 * numbers of a list become one mask first, as they would be xentrace's one number. Names are joined
 * class by class. Most sentences here say what to type instead, because the one who reads them
 * copied a number out of <xen/trace.h>, where single events and masks look alike.
 */

#include "common/event-set.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <xen/trace.h>

#include "common/record.h"
#include "common/suggest.h"
#include "common/text.h"
#include "common/util.h"

#define CLASSES_MASK    0x0fff0000u
#define SUBCLASSES_MASK 0x0000f000u
#define CHOICE_MASK     (CLASSES_MASK | SUBCLASSES_MASK)

#define NAME_MAX_BYTES 32u /* more than the longest name, with its typing errors */

/* What has been read so far. */
struct event_list {
    struct event_set set; /* the names */
    uint32_t mask;        /* the numbers */
    bool has_number;
};

/* The names of these events in other tools, and in Xen's documentation. */
static const struct {
    const char *typed;
    const char *meant;
} synonyms[] = {
    {"hvm-exit", "hvm-entryexit"},
    {"hvm-entry", "hvm-entryexit"},
    {"hvm-vmexit", "hvm-entryexit"},
    {"vm-exit", "hvm-entryexit"},
    {"vmexit", "hvm-entryexit"},
    {"vmentry", "hvm-entryexit"},
    {"exit", "hvm-entryexit"},
    {"kvm-exit", "hvm-entryexit"},
    {"emulation", "hvm-emul"},
    {"scheduler", "sched"},
    {"runstate", "sched-min"},
    {"sched-switch", "sched-verbose"},
    {"context-switches", "sched-verbose"},
    {"memory", "mem"},
    {"grant", "mem"},
    {"hypercall", "pv-entry"},
    {"hypercalls", "pv-entry"},
    {"page-faults", "pv-entry"},
    {"domctl", "dom0op"},
    {"irq", "hw-irq"},
    {"irqs", "hw-irq"},
    {"interrupts", "hw-irq"},
    {"pm", "hw-pm"},
    {"power", "hw-pm"},
    {"cpufreq", "hw-pm"},
    {"cpuidle", "hw-pm"},
    {"everything", "all"},
    {"*", "all"},
};

static const char *find_synonym(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++) {
        if (strcmp(synonyms[i].typed, name) == 0)
            return synonyms[i].meant;
    }
    return NULL;
}

/* NAME is ITEM as names are written; "" if it is too long for any. */
static int refuse_name(const char *name, const struct text_item *item, char **ret_error)
{
    char quoted[TEXT_QUOTE_MAX];
    size_t count;
    const struct event_name *names = event_names(&count);
    const char *words[64];
    const char *nearest;

    count = min_u64(count, ARRAY_SIZE(words));
    for (size_t i = 0; i < count; i++)
        words[i] = names[i].name;
    if (strcmp(name, "cpu") == 0 || strcmp(name, "cpus") == 0)
        return text_refuse(-EINVAL, ret_error,
                           "There are no events named \"%s\". To select CPUs, use -c or cpus=; the "
                           "events for frequencies and idle states are \"hw-pm\".",
                           text_quote(quoted, item));
    nearest = find_synonym(name);
    if (!nearest)
        nearest = suggest_nearest(name, words, count);
    if (nearest)
        return text_refuse(-EINVAL, ret_error,
                           "There are no events named \"%s\"; did you mean \"%s\"? \"xentracectl "
                           "events\" lists all names.",
                           text_quote(quoted, item), nearest);
    return text_refuse(-EINVAL, ret_error,
                       "There are no events named \"%s\"; \"xentracectl events\" lists all names.",
                       text_quote(quoted, item));
}

/* The mask that a number was perhaps meant to be, or 0: a class without a subclass gets all. */
static uint32_t meant_mask(uint32_t number)
{
    uint32_t mask = number & CHOICE_MASK;

    if (!(mask & CLASSES_MASK))
        return 0;
    return mask & SUBCLASSES_MASK ? mask : mask | SUBCLASSES_MASK;
}

/* A number with bits outside CHOICE_MASK. */
static int refuse_bits(uint32_t number, char **ret_error)
{
    uint32_t mask = meant_mask(number);

    if (mask == 0)
        return text_refuse(-EINVAL, ret_error,
                           "0x%08" PRIx32 " has bits outside 0x%08x, where classes and "
                           "subclasses are; \"xentracectl events\" lists their masks.",
                           number, CHOICE_MASK);
    if (number != record_event(number))
        return text_refuse(-EINVAL, ret_error,
                           "0x%08" PRIx32 " has bits outside 0x%08x, where classes and "
                           "subclasses are: use 0x%08" PRIx32 ".",
                           number, CHOICE_MASK, mask);
    return text_refuse(-EINVAL, ret_error,
                       "0x%08" PRIx32 " names a single event; Xen selects classes and "
                       "subclasses: use 0x%08" PRIx32 ".",
                       number, mask);
}

/* The numbers of a list, all together, choose no event. */
static int refuse_nothing(uint32_t mask, char **ret_error)
{
    if (mask & CLASSES_MASK)
        return text_refuse(-EINVAL, ret_error,
                           "0x%08" PRIx32
                           " selects nothing, because it has no subclass: use 0x%08" PRIx32
                           ", which has all of them.",
                           mask, meant_mask(mask));
    if (mask & SUBCLASSES_MASK)
        return text_refuse(
            -EINVAL, ret_error,
            "0x%08" PRIx32
            " selects nothing, because it has no class: add one, such as 0x%08" PRIx32
            " for the scheduler.",
            mask, mask | (TRC_SCHED & CLASSES_MASK));
    return text_refuse(-EINVAL, ret_error,
                       "0x%08" PRIx32 " selects nothing; \"xentracectl events\" lists all "
                       "masks.",
                       mask);
}

static int add_number(struct event_list *list, const struct text_item *item, char **ret_error)
{
    bool is_hex = text_item_is_hex(item);
    unsigned int base = is_hex ? 16 : 10;
    char quoted[TEXT_QUOTE_MAX];
    uint64_t number = 0;

    for (size_t i = is_hex ? 2 : 0; i < item->length; i++) {
        unsigned int digit = text_hex_digit(item->begin[i]);

        number = number * base + digit;
        if (digit >= base || number > UINT32_MAX)
            return text_refuse(-EINVAL, ret_error,
                               "\"%s\" is not an event mask; a mask is 0x and up to 8 hexadecimal "
                               "digits, such as 0x%08x for the scheduler.",
                               text_quote(quoted, item), TRC_SCHED);
    }
    if (number & ~(uint64_t)CHOICE_MASK)
        return refuse_bits((uint32_t)number, ret_error);

    list->mask |= (uint32_t)number;
    list->has_number = true;
    return 0;
}

static int add_name(struct event_list *list, const struct text_item *item, char **ret_error)
{
    char name[NAME_MAX_BYTES] = "";
    size_t count;
    const struct event_name *names = event_names(&count);

    for (size_t i = 0; item->length < sizeof(name) && i < item->length; i++)
        name[i] = item->begin[i] == '_' ? '-' : text_to_lower(item->begin[i]);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i].name) == 0) {
            event_set_add_mask(&list->set, names[i].mask);
            return 0;
        }
    }
    return refuse_name(name, item, ret_error);
}

static int add_item(struct event_list *list, const struct text_item *item, char **ret_error)
{
    if (item->length == 0)
        return text_refuse(
            -EINVAL, ret_error,
            "The event list has an empty item; name the events, such as sched,hvm-entryexit, or "
            "\"all\". \"xentracectl events\" lists all names.");
    if (text_is_digit(item->begin[0]))
        return add_number(list, item, ret_error);
    return add_name(list, item, ret_error);
}

int event_set_parse(const char *list, struct event_set *ret_set, char **ret_error)
{
    struct event_list parsed = {0};
    struct text_item item;

    for (const char *rest = list; text_next_item(&rest, &item);) {
        int r = add_item(&parsed, &item, ret_error);

        if (r < 0)
            return r;
    }
    if (parsed.has_number && (!(parsed.mask & CLASSES_MASK) || !(parsed.mask & SUBCLASSES_MASK)))
        return refuse_nothing(parsed.mask, ret_error);

    event_set_add_mask(&parsed.set, parsed.mask);
    *ret_set = parsed.set;
    return 0;
}

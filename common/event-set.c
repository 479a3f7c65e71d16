// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Xen lets an event pass if one of its class bits is in the mask and, tested apart from that, one
 * of its subclass bits (xen/common/trace.c, __trace_var()). So a mask is a product, classes x
 * subclasses, while a set here has a nibble of subclasses for each class.
 *
 * Class GEN is what the trace buffers say about themselves (records lost, filler). Xen writes it
 * past the mask, and a file without it would hide losses: every set has it, and it never makes a
 * set inexact. So GEN's subclasses widen the mask only where GEN is all that was asked for.
 *
 * Names and numbers: <xen/trace.h>. The parser of lists is event-set-parse.c.
 */

#include "common/event-set.h"

#include <xen/trace.h>

#include "common/record.h"
#include "common/util.h"

#define GEN_CLASS      0u /* TRC_GEN's bit, as an index of subclasses[] */
#define ALL_SUBCLASSES 0xfu

/* The classes that Xen has and that are not a guest's: bits 16 to 23. */
#define ALL_MASK                                                                                   \
    (TRC_GEN | TRC_SCHED | TRC_DOM0OP | TRC_HVM | TRC_MEM | TRC_PV | TRC_SHADOW | TRC_HW)

static const struct event_name names[] = {
    {"gen", TRC_GEN, true, "lost records and filler; Xen always writes these"},
    {"sched", TRC_SCHED, true, "the scheduler: everything"},
    {"sched-min", TRC_SCHED_MIN, true, "runstate changes of vCPUs only"},
    {"sched-class", TRC_SCHED_CLASS, true, "decisions of the scheduler in use (credit2, rtds)"},
    {"sched-verbose", TRC_SCHED_VERBOSE, true, "context switches, wake-ups, blocking, timers"},
    {"dom0op", TRC_DOM0OP, true, "operations of the control domain: everything"},
    {"dom0op-domops", TRC_DOM0_DOMOPS, true, "domains created and destroyed"},
    {"hvm", TRC_HVM, true, "HVM and PVH guests: everything"},
    {"hvm-entryexit", TRC_HVM_ENTRYEXIT, true, "VM entries and exits, with their reasons"},
    {"hvm-handler", TRC_HVM_HANDLER, true, "handling of VM exits"},
    {"hvm-emul", TRC_HVM_EMUL, true, "devices that Xen emulates: timers, interrupt controllers"},
    {"mem", TRC_MEM, true, "memory: grants, p2m entries, populate-on-demand"},
    {"pv", TRC_PV, true, "PV guests: everything"},
    {"pv-entry", TRC_PV_ENTRY, true, "hypercalls, traps and page faults of PV guests"},
    {"pv-subcall", TRC_PV_SUBCALL, true, "the calls inside multicalls of PV guests"},
    {"shadow", TRC_SHADOW, true, "shadow page tables"},
    {"hw", TRC_HW, true, "the machine: everything"},
    {"hw-pm", TRC_HW_PM, true, "power management: idle states and frequencies"},
    {"hw-irq", TRC_HW_IRQ, true, "interrupts: vectors, moves, handlers"},
    {"guest", TRC_GUEST, false, "records that guests emit; xenalyze cannot read them"},
    {"all", ALL_MASK, true, "everything but guest"},
};

const struct event_name *event_names(size_t *ret_count)
{
    *ret_count = ARRAY_SIZE(names);
    return names;
}

static uint32_t class_bit(unsigned int class)
{
    return UINT32_C(1) << (TRC_CLS_SHIFT + class);
}

static unsigned int subclass_nibble(uint32_t event)
{
    return (event >> TRC_SUBCLS_SHIFT) & ALL_SUBCLASSES;
}

void event_set_add_mask(struct event_set *set, uint32_t mask)
{
    for (unsigned int i = 0; i < EVENT_CLASSES; i++) {
        if (mask & class_bit(i))
            set->subclasses[i] |= (uint8_t)subclass_nibble(mask);
    }
}

struct event_set event_set_all(void)
{
    struct event_set set = {0};

    event_set_add_mask(&set, ALL_MASK);
    return set;
}

bool event_set_has(const struct event_set *set, uint32_t event)
{
    unsigned int nibble = subclass_nibble(event);

    if (event & class_bit(GEN_CLASS))
        return true;
    for (unsigned int i = 0; i < EVENT_CLASSES; i++) {
        if ((event & class_bit(i)) && (set->subclasses[i] & nibble))
            return true;
    }
    return false;
}

uint32_t event_set_xen_mask(const struct event_set *set)
{
    uint32_t mask = 0, subclasses = 0;

    for (unsigned int i = 0; i < EVENT_CLASSES; i++) {
        if (set->subclasses[i] == 0)
            continue;
        mask |= class_bit(i);
        if (i != GEN_CLASS)
            subclasses |= set->subclasses[i];
    }
    if (subclasses == 0)
        subclasses = set->subclasses[GEN_CLASS];
    return mask | subclasses << TRC_SUBCLS_SHIFT;
}

bool event_set_is_exact(const struct event_set *set)
{
    unsigned int nibble = subclass_nibble(event_set_xen_mask(set));

    for (unsigned int i = 0; i < EVENT_CLASSES; i++) {
        if (i != GEN_CLASS && set->subclasses[i] != 0 && set->subclasses[i] != nibble)
            return false;
    }
    return true;
}

void event_set_union(struct event_set *set, const struct event_set *other)
{
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        set->subclasses[i] |= other->subclasses[i];
}

const char *event_class_name(uint32_t event)
{
    uint32_t classes = record_event(event) >> TRC_CLS_SHIFT << TRC_CLS_SHIFT;
    uint32_t lowest = classes & -classes;

    for (size_t i = 0; lowest && i < ARRAY_SIZE(names); i++) {
        if (names[i].mask == (lowest | ALL_SUBCLASSES << TRC_SUBCLS_SHIFT))
            return names[i].name;
    }
    return "unknown";
}

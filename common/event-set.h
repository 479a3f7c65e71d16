/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Sets of trace events, by class and subclass, as a user names them: "sched,hvm-entryexit".
 *
 * An event's number has a class in bits 16-27 and a subclass in bits 12-15 (<xen/trace.h>,
 * TRC_CLS_* and TRC_SUBCLS_*). Xen's own mask tests the two independently of each other, so one
 * mask cannot choose a different subclass for each class; a set here can, and event_set_xen_mask()
 * gives the smallest mask that covers it. Where event_set_is_exact() is false the records must be
 * filtered.
 *
 * Value types; nothing is owned; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_CLASSES 12u /* bits 16-27 */

struct event_set {
    uint8_t subclasses[EVENT_CLASSES]; /* [class bit - 16]: the nibble of subclasses, 0 to 15 */
};

/* A name that a user may type, for `xentracectl events`, completion and messages. */
struct event_name {
    const char *name;    /* "sched-min" */
    uint32_t mask;       /* 0x00021000 */
    bool in_all;         /* false for what guests choose to emit */
    const char *meaning; /* one line for people */
};

/* All names, classes first, each followed by its subclasses; *RET_COUNT entries, static. */
const struct event_name *event_names(size_t *ret_count);

/*
 * Parses LIST: names (in any case, '-' and '_' alike) and numbers (0x, or decimal), separated by
 * commas. Numbers are OR-ed with each other first (as xentrace's mask is one number) and then
 * joined to the names. "all" leaves guest-chosen events out. Returns 0; -EINVAL with one sentence
 * in *RET_ERROR (free it): an unknown name with the nearest one, an item with nothing in it, a
 * number with bits outside 0x0ffff000, numbers without a class or without a subclass. -ENOMEM.
 */
int event_set_parse(const char *list, struct event_set *ret_set, char **ret_error);

/* Everything except events that guests emit: the meaning of "all". */
struct event_set event_set_all(void);

/* Adds what MASK lets pass in Xen: each of its classes with each of its subclasses. */
void event_set_add_mask(struct event_set *set, uint32_t mask);

/*
 * Whether an event (a record's header or its event number) is in the set. GEN always is: Xen writes
 * it past the mask.
 */
bool event_set_has(const struct event_set *set, uint32_t event);

/*
 * The smallest mask for Xen that includes the whole set. GEN needs no mask: its class bit is
 * included if the set names it, its subclasses only if the set names nothing else.
 */
uint32_t event_set_xen_mask(const struct event_set *set);

/* Whether that mask lets pass nothing but the set. */
bool event_set_is_exact(const struct event_set *set);

/* Adds OTHER to SET. */
void event_set_union(struct event_set *set, const struct event_set *other);

/*
 * The name of the class of an event ("sched"), for statistics; "unknown" for none. Static. Events
 * with several class bits have the name of the lowest.
 */
const char *event_class_name(uint32_t event);

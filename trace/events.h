/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Xen's trace events: one table with the name, the class and the fields of each. docs/events.md is
 * made from it. Any thread.
 *
 * Source: <xen/trace.h>, and the calls of TRACE_*() and trace_var() in Xen 4.13 to 4.20.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_type {
    EVENT_NUMBER,  /* unsigned, decimal */
    EVENT_SIGNED,  /* two's complement */
    EVENT_HEX,     /* a mask, a value */
    EVENT_ADDRESS, /* virtual, physical, a frame number: hexadecimal */
    EVENT_VCPU,    /* domain << 16 | vCPU: "d1v2" */
    EVENT_DOMAIN,
    EVENT_CPU,
    EVENT_NSEC,
    EVENT_USEC,
    EVENT_TICKS,     /* of the TSC, its low bits */
    EVENT_REASON,    /* of a VM exit: its name needs the vendor */
    EVENT_HYPERCALL, /* a number, with its name */
    EVENT_FLAG,      /* 0 or 1 */
};

#define EVENT_FIELDS_MAX 8u

struct event_field {
    const char *name;     /* NULL: there are no more */
    uint8_t word;         /* the first of its words */
    uint8_t shift, width; /* in bits; more than 32: two words, the low one first */
    enum event_type type;
};

struct event_info {
    uint32_t event;
    const char *name;
    struct event_field fields[EVENT_FIELDS_MAX + 1];
};

/*
 * What EVENT is, as a record with NR_WORDS words has it: layouts differ by Xen's version, and so
 * does their length. NULL: it is unknown.
 */
const struct event_info *event_info_find(uint32_t event, unsigned int nr_words);

/* All of them, in ascending order. */
const struct event_info *event_info_all(size_t *ret_count);

/* The value of FIELD in the words at WORDS (unaligned); sign-extended if it is signed. False: the
 * record is too short for it. */
bool event_field_value(const struct event_field *field, const uint8_t *words, unsigned int nr_words,
                       uint64_t *ret_value);

/* "sched_op" of 29; NULL: there is none. */
const char *event_hypercall_name(uint64_t number);

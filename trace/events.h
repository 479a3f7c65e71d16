/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Xen's trace events: one table with the name and the fields of each, for Xen 4.13 to 4.22.
 * docs/events.md is made from it. Constant; any thread.
 *
 * Source: <xen/trace.h>, and the calls of trace(), TRACE() and their older forms in Xen.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_type {
    EVENT_NUMBER,  /* unsigned, decimal */
    EVENT_SIGNED,  /* two's complement */
    EVENT_HEX,     /* a mask, a value */
    EVENT_ADDRESS, /* virtual, physical, a frame number: hexadecimal */
    EVENT_VCPU,    /* domain << 16 | vCPU: "d1v2"; EVENT_NO_VCPU: "none" */
    EVENT_DOMAIN,
    EVENT_CPU,
    EVENT_NSEC,
    EVENT_USEC,
    EVENT_MHZ,
    EVENT_TICKS,     /* of the TSC; a field of 32 bits has its low ones */
    EVENT_REASON,    /* of a VM exit: its name needs the vendor */
    EVENT_HYPERCALL, /* a number, with its name */
    EVENT_SHUTDOWN,  /* why a domain shuts down: a number, with its name */
    EVENT_FLAG,      /* 0 or 1 */
    EVENT_ARGUMENT,  /* of a hypercall; the record says which of them it has: hexadecimal */
};

#define EVENT_NO_VCPU     UINT32_MAX
#define EVENT_FIELDS_MAX  7u
#define EVENT_NO_VERSIONS 0xffffu

/* A version of Xen, to compare: EVENT_XEN(4, 17). */
#define EVENT_XEN(major, minor) ((major) << 8 | (minor))

struct event_field {
    const char *name; /* NULL: there are no more */
    uint8_t word;     /* the first of its words */
    /* In bits. More than 32: two words, the low one first; of a vCPU the domain, then the vCPU. */
    uint8_t shift, width;
    enum event_type type;
};

/* An event as some versions of Xen write it. */
struct event_info {
    uint32_t event;
    uint16_t since, until; /* these versions do; 0: no limit; both EVENT_NO_VERSIONS: none does */
    uint8_t nr_words;      /* of a complete record */
    const char *name;      /* several events may share one, such as 32- and 64-bit forms */
    struct event_field fields[EVENT_FIELDS_MAX + 1];
};

/*
 * What EVENT (a record's header without its upper 4 bits) is. Layouts differ by version: the one
 * with NR_WORDS words is chosen, among these the one of version XEN (0: unknown), else the newest.
 * NULL: the event is unknown.
 */
const struct event_info *event_info_find(uint32_t event, unsigned int nr_words, unsigned int xen);

/* The first layout called NAME after AFTER (NULL: the first of all); NULL: no more. */
const struct event_info *event_info_find_name(const char *name, const struct event_info *after);

/* All of them, by event in ascending order; those of one event from the newest to the oldest. */
const struct event_info *event_info_all(size_t *ret_count);

/*
 * Guests emit 4096 events of their own (HVMOP_xentrace), which share one entry of the table.
 * EVENT_GUEST_NUMBER() is the guest's number.
 */
#define EVENT_IS_GUEST(event)     (((event) & ~UINT32_C(0xfff)) == 0x0800f000)
#define EVENT_GUEST_NUMBER(event) ((event) & 0xfff)

/*
 * The value of FIELD in the words at WORDS (unaligned); sign-extended if it is signed. False: the
 * record does not have it.
 */
bool event_field_value(const struct event_field *field, const uint8_t *words, unsigned int nr_words,
                       uint64_t *ret_value);

/* "sched_op" of 29, "reboot" of 1; NULL: there is none. */
const char *event_hypercall_name(uint64_t number);
const char *event_shutdown_name(uint64_t reason);

/* "signed", "vcpu"; its unit, "ns"; "": none. */
const char *event_type_name(enum event_type type);
const char *event_type_unit(enum event_type type);

/* "4.17.6" as EVENT_XEN(4, 17); 0: it is no version. */
unsigned int event_xen_parse(const char *version);

/* --- Faster, for many records. --- */

#define EVENT_CACHE_SLOTS 1024u

/* Layouts that were found before. Begins with zeroes; one thread. */
struct event_cache {
    struct {
        uint32_t key;
        const struct event_info *info;
    } slots[EVENT_CACHE_SLOTS];
};

/* As event_info_find(), from a record's HEADER. XEN is the same in all calls. */
const struct event_info *event_cache_find(struct event_cache *cache, uint32_t header,
                                          unsigned int xen);

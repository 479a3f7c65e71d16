/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A record as text: "runnable_to_running vcpu=d1v2". Made for dumping millions of them: nothing
 * allocates. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/events.h"

struct event_field;
struct merge_record;

/* Enough for any record, in either form. */
#define RECORD_TEXT_MAX 640u

#define RECORD_CACHE_SLOTS 512u
#define RECORD_NAME_MAX    40u
#define RECORD_LABEL_MAX   24u

/* What was found out about records before, and texts that are copied whole. Begins with zeroes. */
struct record_text_cache {
    struct record_text_slot {
        uint32_t key;
        const struct event_info *info;
        uint8_t name_length, label_lengths[EVENT_FIELDS_MAX];
        char name[RECORD_NAME_MAX];
        char labels[EVENT_FIELDS_MAX][RECORD_LABEL_MAX]; /* " vcpu=" */
    } slots[RECORD_CACHE_SLOTS];
    uint64_t khz, reciprocal; /* of the TSC; of its kHz */
};

struct record_text_style {
    bool is_svm;        /* of VM exits */
    unsigned int xen;   /* EVENT_XEN(); 0: unknown */
    uint64_t first_tsc; /* times are since then */
    uint64_t tsc_khz;
    /* Of this style, and one thread; NULL: slower. TEXTS is the faster one, and needs no CACHE. */
    struct event_cache *cache;
    struct record_text_cache *texts;
};

/*
 * "+0.001234567 CPU3 runnable_to_running vcpu=d1v2" and a newline, no terminating zero. An unknown
 * event is "0x00055123 word0=0x00000001". Returns its length.
 */
size_t record_text(char text[static RECORD_TEXT_MAX], const struct merge_record *record,
                   const struct record_text_style *style);

/*
 * The same as a line of JSON: {"tsc":...,"nsec":...,"cpu":3,"event":"0x00021101",
 * "name":"runnable_to_running","fields":{"vcpu":"d1v2"}}. Numbers are numbers.
 */
size_t record_json(char text[static RECORD_TEXT_MAX], const struct merge_record *record,
                   const struct record_text_style *style);

/* --- Parts of them. --- */

#define RECORD_VALUE_MAX 64u

/* What the record is; NULL: it is unknown. */
const struct event_info *record_info(const struct merge_record *record,
                                     const struct record_text_style *style);

/* Nanoseconds since style->first_tsc. */
uint64_t record_nsec(const struct merge_record *record, const struct record_text_style *style);

/*
 * Each writes at most RECORD_VALUE_MAX - 1 characters at P, without a terminating zero, and returns
 * where they end: a value; the record's name, "0x00055123" without one; "1.234567890" of
 * nanoseconds; a number; an event's number, "0x00021101".
 */
char *record_value_text(char *p, const struct event_field *field, uint64_t value,
                        const struct record_text_style *style);
char *record_value_json(char *p, const struct event_field *field, uint64_t value,
                        const struct record_text_style *style);
char *record_name_text(char *p, const struct merge_record *record,
                       const struct record_text_style *style);
char *record_seconds_text(char *p, uint64_t nsec);
char *record_number_text(char *p, uint64_t number);
char *record_event_text(char *p, uint32_t event);

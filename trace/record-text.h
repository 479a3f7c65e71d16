/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A record as text: "runnable_to_running vcpu=d1v2". Made for dumping millions of them: nothing
 * allocates. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_cache;
struct event_field;
struct event_info;
struct merge_record;

/* Enough for any record, in either form. */
#define RECORD_TEXT_MAX 640u

struct record_text_style {
    bool is_svm;        /* of VM exits */
    unsigned int xen;   /* EVENT_XEN(); 0: unknown */
    uint64_t first_tsc; /* times are since then */
    uint64_t tsc_khz;
    struct event_cache *cache; /* of XEN; NULL: slower */
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

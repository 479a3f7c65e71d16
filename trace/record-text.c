// SPDX-License-Identifier: GPL-2.0-or-later
/* printf() takes ten times as long; so digits are made here. */

#include "trace/record-text.h"

#include <string.h>

#include "common/record.h"
#include "trace/events.h"
#include "trace/exit-reasons.h"
#include "trace/merge.h"

/* --- Pieces. --- */

static char *put(char *p, const char *text)
{
    size_t length = strlen(text);

    memcpy(p, text, length);
    return p + length;
}

static char *put_number(char *p, uint64_t number)
{
    char digits[20];
    unsigned int count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *p++ = digits[--count];
    return p;
}

static char *put_hex(char *p, uint64_t number, unsigned int least_digits)
{
    unsigned int digits = number > 0 ? (67 - (unsigned int)__builtin_clzll(number)) / 4 : 1;

    if (digits < least_digits)
        digits = least_digits;
    *p++ = '0';
    *p++ = 'x';
    while (digits-- > 0)
        *p++ = "0123456789abcdef"[number >> (4 * digits) & 0xf];
    return p;
}

static char *put_signed(char *p, uint64_t number)
{
    if (number >> 63 == 0)
        return put_number(p, number);
    *p++ = '-';
    return put_number(p, -number);
}

static char *put_vcpu(char *p, uint32_t key)
{
    if (key == EVENT_NO_VCPU)
        return put(p, "none");
    *p++ = 'd';
    p = put_number(p, key >> 16);
    *p++ = 'v';
    return put_number(p, key & 0xffff);
}

/* Seconds with nine decimals. */
static char *put_seconds(char *p, uint64_t nsec)
{
    p = put_number(p, nsec / 1000000000);
    *p++ = '.';
    nsec %= 1000000000;
    for (uint64_t unit = 100000000; unit > 0; unit /= 10)
        *p++ = (char)('0' + nsec / unit % 10);
    return p;
}

static uint64_t nsec_of(uint64_t ticks, uint64_t tsc_khz)
{
    if (ticks <= UINT64_MAX / 1000000)
        return ticks * 1000000 / tsc_khz;
    return (uint64_t)((unsigned __int128)ticks * 1000000 / tsc_khz);
}

/* --- Values. --- */

static const char *name_of_value(const struct event_field *field, uint64_t value, bool is_svm,
                                 char buffer[static EXIT_REASON_TEXT_MAX])
{
    if (field->type == EVENT_REASON)
        return exit_reason_name(is_svm, (uint32_t)value, buffer);
    if (field->type == EVENT_HYPERCALL)
        return event_hypercall_name(value);
    if (field->type == EVENT_SHUTDOWN)
        return event_shutdown_name(value);
    return NULL;
}

static char *put_value(char *p, const struct event_field *field, uint64_t value, bool is_svm)
{
    char buffer[EXIT_REASON_TEXT_MAX];
    const char *name = name_of_value(field, value, is_svm, buffer);

    if (name)
        return put(p, name);
    switch (field->type) {
    case EVENT_SIGNED:
        return put_signed(p, value);
    case EVENT_HEX:
    case EVENT_ADDRESS:
    case EVENT_ARGUMENT:
        return put_hex(p, value, 1);
    case EVENT_VCPU:
        return put_vcpu(p, (uint32_t)value);
    case EVENT_NUMBER:
    case EVENT_DOMAIN:
    case EVENT_CPU:
    case EVENT_NSEC:
    case EVENT_USEC:
    case EVENT_MHZ:
    case EVENT_TICKS:
    case EVENT_REASON:
    case EVENT_HYPERCALL:
    case EVENT_SHUTDOWN:
    case EVENT_FLAG:
        break;
    }
    return put_number(p, value);
}

/* Of JSON: names and vCPUs are texts, all else is numbers. */
static char *put_json_value(char *p, const struct event_field *field, uint64_t value, bool is_svm)
{
    char buffer[EXIT_REASON_TEXT_MAX];
    const char *name = name_of_value(field, value, is_svm, buffer);

    if (!name && field->type != EVENT_VCPU)
        return field->type == EVENT_SIGNED ? put_signed(p, value) : put_number(p, value);
    *p++ = '"';
    p = name ? put(p, name) : put_vcpu(p, (uint32_t)value);
    *p++ = '"';
    return p;
}

/* --- Records. --- */

const struct event_info *record_info(const struct merge_record *record,
                                     const struct record_text_style *style)
{
    if (style->cache)
        return event_cache_find(style->cache, record->header, style->xen);
    return event_info_find(record_event(record->header), merge_words(record), style->xen);
}

uint64_t record_nsec(const struct merge_record *record, const struct record_text_style *style)
{
    return nsec_of(record->tsc - style->first_tsc, style->tsc_khz);
}

/* "vmexit", "guest:0x123" */
static char *put_name(char *p, const struct event_info *info, uint32_t event)
{
    p = put(p, info->name);
    if (!EVENT_IS_GUEST(event))
        return p;
    *p++ = ':';
    return put_hex(p, EVENT_GUEST_NUMBER(event), 3);
}

size_t record_text(char text[static RECORD_TEXT_MAX], const struct merge_record *record,
                   const struct record_text_style *style)
{
    unsigned int nr_words = merge_words(record);
    uint32_t event = record_event(record->header);
    const struct event_info *info = record_info(record, style);
    char *p = text;

    *p++ = '+';
    p = put_seconds(p, record_nsec(record, style));
    p = put(p, " CPU");
    p = put_number(p, record->cpu);
    *p++ = ' ';
    p = info ? put_name(p, info, event) : put_hex(p, event, 8);
    for (const struct event_field *field = info ? info->fields : NULL; field && field->name;
         field++) {
        uint64_t value;

        if (!event_field_value(field, record->words, nr_words, &value))
            continue;
        *p++ = ' ';
        p = put(p, field->name);
        *p++ = '=';
        p = put_value(p, field, value, style->is_svm);
    }
    for (unsigned int i = 0; !info && i < nr_words; i++) {
        p = put(p, " word");
        p = put_number(p, i);
        *p++ = '=';
        p = put_hex(p, merge_word(record, i), 8);
    }
    *p++ = '\n';
    return (size_t)(p - text);
}

size_t record_json(char text[static RECORD_TEXT_MAX], const struct merge_record *record,
                   const struct record_text_style *style)
{
    unsigned int nr_words = merge_words(record);
    uint32_t event = record_event(record->header);
    const struct event_info *info = record_info(record, style);
    const char *comma = "";
    char *p = text;

    p = put(p, "{\"tsc\":");
    p = put_number(p, record->tsc);
    p = put(p, ",\"nsec\":");
    p = put_number(p, record_nsec(record, style));
    p = put(p, ",\"cpu\":");
    p = put_number(p, record->cpu);
    p = put(p, ",\"event\":\"");
    p = put_hex(p, event, 8);
    *p++ = '"';
    if (info) {
        p = put(p, ",\"name\":\"");
        p = put_name(p, info, event);
        *p++ = '"';
    }
    p = put(p, ",\"fields\":{");
    for (const struct event_field *field = info ? info->fields : NULL; field && field->name;
         field++) {
        uint64_t value;

        if (!event_field_value(field, record->words, nr_words, &value))
            continue;
        p = put(p, comma);
        *p++ = '"';
        p = put(p, field->name);
        p = put(p, "\":");
        p = put_json_value(p, field, value, style->is_svm);
        comma = ",";
    }
    for (unsigned int i = 0; !info && i < nr_words; i++) {
        p = put(p, comma);
        p = put(p, "\"word");
        p = put_number(p, i);
        p = put(p, "\":");
        p = put_number(p, merge_word(record, i));
        comma = ",";
    }
    p = put(p, "}}\n");
    return (size_t)(p - text);
}

/* --- Parts. --- */

char *record_value_text(char *p, const struct event_field *field, uint64_t value,
                        const struct record_text_style *style)
{
    return put_value(p, field, value, style->is_svm);
}

char *record_value_json(char *p, const struct event_field *field, uint64_t value,
                        const struct record_text_style *style)
{
    return put_json_value(p, field, value, style->is_svm);
}

char *record_name_text(char *p, const struct merge_record *record,
                       const struct record_text_style *style)
{
    const struct event_info *info = record_info(record, style);
    uint32_t event = record_event(record->header);

    return info ? put_name(p, info, event) : put_hex(p, event, 8);
}

char *record_seconds_text(char *p, uint64_t nsec)
{
    return put_seconds(p, nsec);
}

char *record_number_text(char *p, uint64_t number)
{
    return put_number(p, number);
}

char *record_event_text(char *p, uint32_t event)
{
    return put_hex(p, event, 8);
}

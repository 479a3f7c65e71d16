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

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

static char *put_number(char *p, uint64_t number)
{
    char digits[20];
    unsigned int at = sizeof(digits);

    if (number < 10) {
        *p = (char)('0' + number);
        return p + 1;
    }
    while (number >= 100) {
        at -= 2;
        memcpy(digits + at, pairs + 2 * (number % 100), 2);
        number /= 100;
    }
    if (number >= 10) {
        at -= 2;
        memcpy(digits + at, pairs + 2 * number, 2);
    } else {
        digits[--at] = (char)('0' + number);
    }
    while (at < sizeof(digits))
        *p++ = digits[at++];
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
    uint32_t rest = (uint32_t)(nsec % 1000000000), high = rest / 10000, low = rest % 10000;

    p = put_number(p, nsec / 1000000000);
    *p++ = '.';
    *p++ = (char)('0' + high / 10000);
    memcpy(p, pairs + 2 * (high / 100 % 100), 2);
    memcpy(p + 2, pairs + 2 * (high % 100), 2);
    memcpy(p + 4, pairs + 2 * (low / 100), 2);
    memcpy(p + 6, pairs + 2 * (low % 100), 2);
    return p + 8;
}

/*
 * TICKS * 10^6 / TSC_KHZ. With a reciprocal, two multiplications do: its error makes the quotient
 * one too small at most.
 */
static uint64_t nsec_of(uint64_t ticks, const struct record_text_style *style)
{
    struct record_text_cache *cache = style->texts;
    uint64_t khz = style->tsc_khz, nsec;

    if (ticks > UINT64_MAX / 1000000)
        return (uint64_t)((unsigned __int128)ticks * 1000000 / khz);
    ticks *= 1000000;
    if (!cache || khz < 2)
        return ticks / khz;
    if (cache->khz != khz) {
        cache->khz = khz;
        cache->reciprocal = (uint64_t)(((unsigned __int128)1 << 64) / khz);
    }
    nsec = (uint64_t)((unsigned __int128)ticks * cache->reciprocal >> 64);
    return ticks - nsec * khz >= khz ? nsec + 1 : nsec;
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

static void fill_slot(struct record_text_slot *slot, uint32_t key, const struct event_info *info)
{
    *slot = (struct record_text_slot){.key = key, .info = info};
    if (!info)
        return;
    slot->name_length = (uint8_t)strlen(info->name);
    memcpy(slot->name, info->name, slot->name_length);
    for (size_t i = 0; info->fields[i].name; i++) {
        char *end = put(slot->labels[i] + 1, info->fields[i].name);

        slot->labels[i][0] = ' ';
        *end = '=';
        slot->label_lengths[i] = (uint8_t)(end + 1 - slot->labels[i]);
    }
}

static const struct record_text_slot *find_slot(const struct merge_record *record,
                                                const struct record_text_style *style)
{
    uint32_t key = record->header & 0x7fffffff; /* the event, and how many words there are */
    struct record_text_slot *slot =
        &style->texts->slots[(key ^ key >> 9 ^ key >> 20) % RECORD_CACHE_SLOTS];

    if (__builtin_expect(slot->key != key || key == 0, 0))
        fill_slot(slot, key, event_info_find(key & RECORD_EVENT_MASK, key >> 28, style->xen));
    return slot;
}

const struct event_info *record_info(const struct merge_record *record,
                                     const struct record_text_style *style)
{
    if (style->texts)
        return find_slot(record, style)->info;
    if (style->cache)
        return event_cache_find(style->cache, record->header, style->xen);
    return event_info_find(record_event(record->header), merge_words(record), style->xen);
}

uint64_t record_nsec(const struct merge_record *record, const struct record_text_style *style)
{
    return nsec_of(record->tsc - style->first_tsc, style);
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

/* After the CPU: with texts of a fixed size, of which the next one overwrites what is too much. */
static char *put_known(char *p, const struct record_text_slot *slot,
                       const struct merge_record *record, const struct record_text_style *style)
{
    const struct event_field *fields = slot->info->fields;
    unsigned int nr_words = merge_words(record);

    memcpy(p, slot->name, RECORD_NAME_MAX);
    p += slot->name_length;
    for (size_t i = 0; fields[i].name; i++) {
        uint64_t value;

        if (!event_field_value(&fields[i], record->words, nr_words, &value))
            continue;
        memcpy(p, slot->labels[i], RECORD_LABEL_MAX);
        p = put_value(p + slot->label_lengths[i], &fields[i], value, style->is_svm);
    }
    return p;
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
    if (style->texts && info && !EVENT_IS_GUEST(event)) {
        p = put_known(p, find_slot(record, style), record, style);
        *p++ = '\n';
        return (size_t)(p - text);
    }
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

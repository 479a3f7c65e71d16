// SPDX-License-Identifier: GPL-2.0-or-later
/* Source: the D-Bus specification, "Message Format". */

#include "daemon/control/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/util.h"

#define TYPE_MAX        4u /* SIGNAL */
#define MAJOR_VERSION   1u
#define FIELD_ALIGNMENT 8u
#define FIELD_UNIX_FDS  9u

/* Where a reader stands in a message. Nothing before `at` is read again, nothing from `end` on. */
struct cursor {
    const uint8_t *bytes_untrusted;
    size_t at;
    size_t end;
    bool is_big_endian;
};

static uint32_t load_u32(const uint8_t *bytes, bool is_big_endian)
{
    uint32_t value = 0;

    for (unsigned int i = 0; i < 4; i++)
        value |= (uint32_t)bytes[i] << 8 * (is_big_endian ? 3 - i : i);
    return value;
}

int wire_read_length(const uint8_t header_untrusted[static WIRE_HEADER_BYTES], size_t *ret_bytes)
{
    bool is_big_endian = header_untrusted[0] == 'B';
    uint64_t total;

    if (!is_big_endian && header_untrusted[0] != 'l')
        return -EBADMSG;
    if (header_untrusted[1] == 0 || header_untrusted[1] > TYPE_MAX ||
        header_untrusted[3] != MAJOR_VERSION)
        return -EBADMSG;
    if (load_u32(header_untrusted + 8, is_big_endian) == 0) /* the serial number */
        return -EBADMSG;
    total = WIRE_HEADER_BYTES;
    total += align_up(load_u32(header_untrusted + 12, is_big_endian), FIELD_ALIGNMENT);
    total += load_u32(header_untrusted + 4, is_big_endian);
    if (total > WIRE_MESSAGE_MAX)
        return -EMSGSIZE;
    *ret_bytes = (size_t)total;
    return 0;
}

static int cursor_skip(struct cursor *cursor, size_t bytes)
{
    if (bytes > cursor->end - cursor->at)
        return -EBADMSG;
    cursor->at += bytes;
    return 0;
}

static int cursor_align(struct cursor *cursor, size_t power_of_two)
{
    return cursor_skip(cursor, (size_t)align_up(cursor->at, power_of_two) - cursor->at);
}

static int cursor_read_u8(struct cursor *cursor, uint8_t *ret_value)
{
    int r = cursor_skip(cursor, 1);

    if (r < 0)
        return r;
    *ret_value = cursor->bytes_untrusted[cursor->at - 1];
    return 0;
}

static int cursor_read_u32(struct cursor *cursor, uint32_t *ret_value)
{
    int r;

    r = cursor_align(cursor, 4);
    if (r < 0)
        return r;
    r = cursor_skip(cursor, 4);
    if (r < 0)
        return r;
    *ret_value = load_u32(cursor->bytes_untrusted + cursor->at - 4, cursor->is_big_endian);
    return 0;
}

/* A variant's signature, of one character: all fields of the specification have such a type. */
static int cursor_read_type(struct cursor *cursor, uint8_t *ret_type)
{
    uint8_t length, type, end;
    int r;

    r = cursor_read_u8(cursor, &length);
    if (r < 0)
        return r;
    r = cursor_read_u8(cursor, &type);
    if (r < 0)
        return r;
    r = cursor_read_u8(cursor, &end);
    if (r < 0)
        return r;
    if (length != 1 || end != '\0')
        return -EBADMSG;
    *ret_type = type;
    return 0;
}

/* *RET_NUMBER is set for numbers only. */
static int cursor_read_value(struct cursor *cursor, uint8_t type, uint32_t *ret_number)
{
    uint8_t length;
    uint32_t number;
    int r;

    switch (type) {
    case 'u':
        return cursor_read_u32(cursor, ret_number);
    case 's':
    case 'o':
        r = cursor_read_u32(cursor, &number);
        if (r < 0)
            return r;
        return cursor_skip(cursor, (size_t)number + 1);
    case 'g':
        r = cursor_read_u8(cursor, &length);
        if (r < 0)
            return r;
        return cursor_skip(cursor, (size_t)length + 1);
    default:
        return -EBADMSG;
    }
}

/* *RET_AT: where the count is; 0 if there is none. */
static int find_count(const uint8_t *message_untrusted, size_t bytes, uint32_t *ret_count,
                      size_t *ret_at)
{
    bool is_big_endian = bytes > 0 && message_untrusted[0] == 'B', is_seen = false;
    struct cursor cursor = {.bytes_untrusted = message_untrusted,
                            .at = WIRE_HEADER_BYTES,
                            .is_big_endian = is_big_endian};
    uint32_t fields_bytes, count = 0, number = 0;
    uint8_t code, type;
    size_t at = 0;
    int r;

    if (bytes < WIRE_HEADER_BYTES)
        return -EBADMSG;
    fields_bytes = load_u32(message_untrusted + 12, is_big_endian);
    if (fields_bytes > bytes - WIRE_HEADER_BYTES)
        return -EBADMSG;
    cursor.end = WIRE_HEADER_BYTES + fields_bytes;
    while (cursor.at < cursor.end) {
        r = cursor_align(&cursor, FIELD_ALIGNMENT);
        if (r < 0)
            return r;
        r = cursor_read_u8(&cursor, &code);
        if (r < 0)
            return r;
        r = cursor_read_type(&cursor, &type);
        if (r < 0)
            return r;
        r = cursor_read_value(&cursor, type, &number);
        if (r < 0)
            return r;
        if (code != FIELD_UNIX_FDS)
            continue;
        if (type != 'u' || is_seen)
            return -EBADMSG;
        is_seen = true;
        count = number;
        at = cursor.at - sizeof(number);
    }
    *ret_count = count;
    *ret_at = at;
    return 0;
}

int wire_count_descriptors(const uint8_t *message_untrusted, size_t bytes, uint32_t *ret_count)
{
    size_t at;

    return find_count(message_untrusted, bytes, ret_count, &at);
}

void wire_clear_descriptors(uint8_t *message_untrusted, size_t bytes)
{
    uint32_t count;
    size_t at;

    if (find_count(message_untrusted, bytes, &count, &at) == 0 && at > 0)
        memset(message_untrusted + at, 0, sizeof(count));
}

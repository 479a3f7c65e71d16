/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Bytes on their way to a descriptor, which is borrowed. A caller reserves room, fills it and takes
 * as much of it as it needs. Errors stay: after one, nothing is written any more. One thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT_BUFFER_BYTES (256u * 1024u)

/* More than any record or interval of a text or row needs. */
#define EXPORT_ROW_MAX 8192u

struct export_buffer {
    int fd;
    int error; /* a negative errno of write(2) */
    size_t used;
    uint64_t written; /* bytes, without those that are still here */
    uint8_t bytes[EXPORT_BUFFER_BYTES];
};

/* Writes all that is here. 0 or a negative errno. */
int export_buffer_flush(struct export_buffer *buffer);

/* Room for BYTES, at most EXPORT_BUFFER_BYTES. */
static inline uint8_t *export_buffer_reserve(struct export_buffer *buffer, size_t bytes)
{
    if (sizeof(buffer->bytes) - buffer->used < bytes)
        (void)export_buffer_flush(buffer); /* the error stays */
    return buffer->bytes + buffer->used;
}

/* The reserved bytes are filled up to END. */
static inline void export_buffer_take(struct export_buffer *buffer, const uint8_t *end)
{
    buffer->used = (size_t)(end - buffer->bytes);
}

/* --- Pieces: each returns where it ends. --- */

static inline uint8_t *put_bytes(uint8_t *p, const void *bytes, size_t length)
{
    memcpy(p, bytes, length);
    return p + length;
}

static inline uint8_t *put_u8(uint8_t *p, uint8_t value)
{
    *p = value;
    return p + 1;
}

/* Little-endian, as all that Xen runs on is. */
static inline uint8_t *put_u16(uint8_t *p, uint16_t value)
{
    return put_bytes(p, &value, sizeof(value));
}

static inline uint8_t *put_u32(uint8_t *p, uint32_t value)
{
    return put_bytes(p, &value, sizeof(value));
}

static inline uint8_t *put_u64(uint8_t *p, uint64_t value)
{
    return put_bytes(p, &value, sizeof(value));
}

/* Seven bits in a byte, the low ones first: LEB128 and protobuf's varint. At most 10 bytes. */
static inline uint8_t *put_varint(uint8_t *p, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *p++ = (uint8_t)(value | 0x80);
    *p++ = (uint8_t)value;
    return p;
}

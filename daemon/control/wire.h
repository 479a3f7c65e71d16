/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * D-Bus messages as bytes: the length and the number of descriptors of a message. sd-bus handles
 * everything else. Pure functions; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#define WIRE_HEADER_BYTES 16u    /* from these the length follows */
#define WIRE_MESSAGE_MAX  65536u /* sd-bus itself would buffer 128 MiB */

/*
 * The length of the message that begins with HEADER. -EBADMSG: that is no D-Bus message; -EMSGSIZE:
 * it is longer than WIRE_MESSAGE_MAX.
 */
int wire_read_length(const uint8_t header_untrusted[static WIRE_HEADER_BYTES], size_t *ret_bytes);

/*
 * What the header field UNIX_FDS of the whole MESSAGE of BYTES says; 0 if there is none. -EBADMSG:
 * its header fields do not add up, or have a type that no field of the specification has.
 */
int wire_count_descriptors(const uint8_t *message_untrusted, size_t bytes, uint32_t *ret_count);

/* Makes MESSAGE, whose descriptors were counted, one that carries none. */
void wire_clear_descriptors(uint8_t *message_untrusted, size_t bytes);

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sd-bus sends its authentication as a whole, then waits for the answers, then makes its first
 * call. That is answered with an error whatever it is.
 *
 * Source: the D-Bus specification, "Authentication Protocol", "Message Format".
 */

#include "daemon/control/old-client.h"

#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BEGIN "BEGIN\r\n"
#define ERROR "org.xentraced.Error.InvalidArgument" /* which it knows: it prints the sentence */
#define SENTENCE                                                                                   \
    "This xentracectl is older than xentraced " PACKAGE_VERSION ". Nothing was done. Install the " \
    "xentracectl of the same version."

/* The fixed part of a message's header, and where the number of a call is in it. */
#define HEADER_BYTES 16u
#define SERIAL_AT    8u

struct writer {
    char *to;
    size_t bytes;
};

static void write_bytes(struct writer *writer, const void *from, size_t bytes)
{
    memcpy(writer->to + writer->bytes, from, bytes);
    writer->bytes += bytes;
}

static void write_number(struct writer *writer, uint32_t number)
{
    number = htole32(number);
    write_bytes(writer, &number, sizeof(number));
}

static void write_string(struct writer *writer, const char *text)
{
    write_number(writer, (uint32_t)strlen(text));
    write_bytes(writer, text, strlen(text) + 1);
}

static void align_8(struct writer *writer)
{
    while (writer->bytes % 8 > 0)
        writer->to[writer->bytes++] = '\0';
}

static size_t write_error(char *to, uint32_t call_serial)
{
    struct writer writer = {.to = to};
    uint32_t fields_bytes;

    write_bytes(&writer, "l\3\1\1", 4); /* little endian, an error, no reply, version 1 */
    write_number(&writer, (uint32_t)(sizeof(uint32_t) + strlen(SENTENCE) + 1));
    write_number(&writer, 1);
    write_number(&writer, 0); /* set below */
    write_bytes(&writer, "\4\1s", 4);
    write_string(&writer, ERROR);
    align_8(&writer);
    write_bytes(&writer, "\5\1u", 4);
    write_number(&writer, call_serial);
    write_bytes(&writer, "\10\1g\0\1s", 7); /* the signature of what follows */
    fields_bytes = htole32((uint32_t)(writer.bytes - HEADER_BYTES));
    memcpy(to + HEADER_BYTES - sizeof(fields_bytes), &fields_bytes, sizeof(fields_bytes));
    align_8(&writer);
    write_string(&writer, SENTENCE);
    return writer.bytes;
}

static size_t answer_authentication(const char *input, size_t bytes, char *answer)
{
    const char *passes = memmem(input, bytes, "NEGOTIATE_UNIX_FD", strlen("NEGOTIATE_UNIX_FD"))
                             ? "AGREE_UNIX_FD\r\n"
                             : "";

    return (size_t)snprintf(answer, OLD_CLIENT_ANSWER_MAX,
                            "DATA\r\nOK 0123456789abcdef0123456789abcdef\r\n%s", passes);
}

size_t old_client_continue(enum old_client_step *step, const char *input, size_t bytes,
                           char answer[static OLD_CLIENT_ANSWER_MAX])
{
    uint32_t serial;

    switch (*step) {
    case OLD_CLIENT_AUTHENTICATES:
        if (!memmem(input, bytes, BEGIN, strlen(BEGIN)))
            return 0;
        *step = OLD_CLIENT_CALLS;
        return answer_authentication(input, bytes, answer);
    case OLD_CLIENT_CALLS:
        if (bytes < HEADER_BYTES)
            return 0;
        *step = OLD_CLIENT_ANSWERED;
        memcpy(&serial, input + SERIAL_AT, sizeof(serial));
        return write_error(answer, le32toh(serial));
    case OLD_CLIENT_NONE:
    case OLD_CLIENT_ANSWERED:
        return 0;
    }
    return 0;
}

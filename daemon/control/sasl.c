// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sd-bus could do this, but then a client that never finishes would hold a bus object, and a client
 * that sends its first call together with BEGIN would wait (libsystemd 252 looks at the call with
 * the next readable event only).
 *
 * Source: the D-Bus specification, "Authentication Protocol".
 */

#include "daemon/control/sasl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"

void sasl_init(struct sasl *sasl, uid_t uid, bool passes_descriptors, const char *guid)
{
    *sasl = (struct sasl){.uid = uid, .passes_descriptors = passes_descriptors};
    (void)snprintf(sasl->guid, sizeof(sasl->guid), "%s", guid);
}

static void sasl_reply(char reply[static SASL_REPLY_MAX], const char *text, const char *argument)
{
    (void)snprintf(reply, SASL_REPLY_MAX, "%s%s\r\n", text, argument);
}

/* The rest of LINE after COMMAND and a space: NULL if LINE is another command, "" without a rest.
 */
static const char *argument_of(const char *line, const char *command)
{
    size_t length = strlen(command);

    if (strncmp(line, command, length) != 0)
        return NULL;
    if (line[length] == ' ')
        return line + length + 1;
    return line[length] == '\0' ? line + length : NULL;
}

static void sasl_reject(struct sasl *sasl, char reply[static SASL_REPLY_MAX])
{
    sasl->state = SASL_WAITS_FOR_AUTH;
    sasl_reply(reply, "REJECTED EXTERNAL", "");
}

/* IDENTITY: the UID in decimal, each character as two hexadecimal digits; "": whoever is there. */
static void sasl_identify(struct sasl *sasl, const char *identity,
                          char reply[static SASL_REPLY_MAX])
{
    char decimal[16], expected[2 * sizeof(decimal)] = "";

    (void)snprintf(decimal, sizeof(decimal), "%u", (unsigned int)sasl->uid);
    for (size_t i = 0; decimal[i]; i++) {
        expected[2 * i] = '3'; /* ASCII: '0' is 0x30 */
        expected[2 * i + 1] = decimal[i];
    }
    if (identity[0] && strcmp(identity, expected) != 0) {
        sasl_reject(sasl, reply);
        return;
    }
    sasl->state = SASL_WAITS_FOR_BEGIN;
    sasl_reply(reply, "OK ", sasl->guid);
}

static void sasl_feed_auth(struct sasl *sasl, const char *mechanism,
                           char reply[static SASL_REPLY_MAX])
{
    const char *identity = argument_of(mechanism, "EXTERNAL");

    if (!identity) {
        sasl_reject(sasl, reply);
    } else if (identity[0]) {
        sasl_identify(sasl, identity, reply);
    } else {
        sasl->state = SASL_WAITS_FOR_DATA;
        sasl_reply(reply, "DATA", "");
    }
}

static int sasl_begin(struct sasl *sasl, char reply[static SASL_REPLY_MAX])
{
    if (sasl->state != SASL_WAITS_FOR_BEGIN)
        return -EPROTO;
    sasl->state = SASL_BEGUN;
    reply[0] = '\0';
    return 0;
}

int sasl_feed(struct sasl *sasl, const char *line_untrusted, size_t length,
              char reply[static SASL_REPLY_MAX])
{
    char line[SASL_LINE_MAX];
    const char *argument;

    if (sasl->state == SASL_BEGUN || length >= sizeof(line) || ++sasl->nr_lines > SASL_LINES_MAX ||
        memchr(line_untrusted, '\0', length))
        return -EPROTO;
    memcpy(line, line_untrusted, length);
    line[length] = '\0';
    argument = argument_of(line, "BEGIN");
    if (argument)
        return sasl_begin(sasl, reply);
    argument = argument_of(line, "AUTH");
    if (argument && sasl->state == SASL_WAITS_FOR_AUTH) {
        sasl_feed_auth(sasl, argument, reply);
        return 0;
    }
    argument = argument_of(line, "DATA");
    if (argument && sasl->state == SASL_WAITS_FOR_DATA) {
        sasl_identify(sasl, argument, reply);
        return 0;
    }
    if (argument_of(line, "CANCEL") || argument_of(line, "ERROR")) {
        sasl_reject(sasl, reply);
        return 0;
    }
    if (argument_of(line, "NEGOTIATE_UNIX_FD") && sasl->state == SASL_WAITS_FOR_BEGIN &&
        sasl->passes_descriptors) {
        sasl_reply(reply, "AGREE_UNIX_FD", "");
        return 0;
    }
    sasl_reply(reply, "ERROR", "");
    return 0;
}

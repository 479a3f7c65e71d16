/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The server's side of D-Bus authentication, as lines: a state machine that does no I/O. It accepts
 * EXTERNAL for the one user that the kernel says is there. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SASL_LINE_MAX  256u /* with its "\r\n" */
#define SASL_LINES_MAX 16u  /* an honest client sends 4 */
#define SASL_GUID_MAX  33u
#define SASL_REPLY_MAX 64u

enum sasl_state {
    SASL_WAITS_FOR_AUTH,
    SASL_WAITS_FOR_DATA,
    SASL_WAITS_FOR_BEGIN,
    SASL_BEGUN,
};

struct sasl {
    enum sasl_state state;
    uid_t uid;
    bool passes_descriptors;
    unsigned int nr_lines;
    char guid[SASL_GUID_MAX];
};

/* GUID is the server's, 32 hexadecimal digits. */
void sasl_init(struct sasl *sasl, uid_t uid, bool passes_descriptors, const char *guid);

/*
 * The client's next LINE of LENGTH bytes, without its "\r\n". REPLY is what to send, with "\r\n";
 * it is empty after BEGIN, when messages follow (SASL_BEGUN). -EPROTO: the client is to be
 * disconnected.
 */
int sasl_feed(struct sasl *sasl, const char *line_untrusted, size_t length,
              char reply[static SASL_REPLY_MAX]);

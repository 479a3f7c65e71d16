/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Why a session ended: the name in documents, whether the session completed as requested, and the
 * sentence for users. Any thread.
 */

#include <stdbool.h>

enum end_reason {
    END_NONE,
    END_STOP,
    END_TIME,
    END_MAX_SIZE,
    END_RESERVE,
    END_DISK_FULL,
    END_OUTPUT_ERROR,
    END_OUTPUT_CLOSED,
    END_CLIENT_GONE,
    END_DAEMON_EXIT,
    END_XEN_ERROR,
    END_ABORT,
};

const char *end_reason_name(enum end_reason reason); /* "max-size" */
bool end_reason_is_ok(enum end_reason reason);
const char *end_reason_sentence(enum end_reason reason);

/* Of a write's negative errno. */
enum end_reason end_reason_of_write(int error);

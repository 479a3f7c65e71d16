/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An xentracectl of before Varlink speaks D-Bus. It is answered with one sentence: that it is older
 * than the daemon. Main thread.
 */

#include <stddef.h>

#define OLD_CLIENT_ANSWER_MAX 512u

/* How far its dialogue is. */
enum old_client_step {
    OLD_CLIENT_NONE, /* it is none */
    OLD_CLIENT_AUTHENTICATES,
    OLD_CLIENT_CALLS,
    OLD_CLIENT_ANSWERED,
};

/*
 * INPUT is all that the client has sent since its first byte, a NUL, or since the last *STEP. If
 * that is enough for the next step, goes there, and returns the length of ANSWER; else 0.
 */
size_t old_client_continue(enum old_client_step *step, const char *input, size_t bytes,
                           char answer[static OLD_CLIENT_ANSWER_MAX]);

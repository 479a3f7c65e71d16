/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The sidecar: the session's document as a file beside the capture. Complete at any time: written
 * when the session starts, and again when it has ended. Main thread.
 */

struct session;

/*
 * Writes the session's document as of now. Our own sidecar is replaced atomically; one that a
 * client opened is overwritten with a single write, for it is the client's directory. A session
 * without one: nothing. Returns 0 or a negative errno, the old content being still there.
 */
int sidecar_write(const struct session *session);

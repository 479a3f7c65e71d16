/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Opens what a user names as a trace, without waiting for ever: a directory of traces may hold
 * a FIFO, a socket or a device. Any thread.
 */

/*
 * The descriptor of PATH, for reading: of a file, or of a pipe, which may be a FIFO if a program
 * has it open for writing, or opens it within 2 s. Else a negative errno: -EISDIR, -ENOTSOCK (a
 * socket), -ENOTTY (a device), -ENXIO (a FIFO that no program writes to), or of open(2).
 */
int trace_open(const char *path);

/* What such an error means, as half a sentence: "it is a socket"; strerror(3)'s of others. */
const char *trace_open_problem(int error);

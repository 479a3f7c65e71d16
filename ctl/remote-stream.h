/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Records of another host, streamed into a file of this one. One thread.
 */

#include <stdbool.h>

struct ctl;

struct remote_stream_options {
    const char *host;
    char *const *words; /* what runs there, and writes to its standard output; NULL at the end */
    const char *output; /* as typed */
    bool force, quiet, is_bundle;
    char **command; /* runs here while it records; NULL: none */
};

/*
 * Runs it, and makes the file, its sidecar and the summary as if the daemon ran here. Returns the
 * exit code.
 */
int remote_stream(struct ctl *ctl, const struct remote_stream_options *options);

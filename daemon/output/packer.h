/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A thread that compresses what a sink records, and writes it to the sink's output. It is the
 * writer of a handoff (collector/handoff.h): neither the collector nor the main thread waits for
 * it, and it may wait for the disk.
 *
 * A frame begins with a round, and holds at least 1 MiB unless records are few; it is in the output
 * as a whole before its chunks go back. If the sink is behind, frames are stored nearly as they are
 * (pack_set_fast()), at the speed of memory. At the end comes the seek table.
 */

#include <stdbool.h>

struct handoff;

struct packer_config {
    int fd;                       /* lent; open for writing, without O_DIRECT. At 0, if a file */
    bool is_stream;               /* a pipe, a block device: written in order */
    void (*wake)(void *userdata); /* the collector: chunks go back. The packer's thread */
    void *userdata;
};

/*
 * Starts the thread, which lives as long as the handoff. Main thread. -ENOMEM, or the error of
 * eventfd(2) or pthread_create(3).
 */
int packer_new(const struct packer_config *config, struct handoff **ret_handoff);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the tests of xensim share: a Xen of their own and the simplest consumer there can be.
 */

#include "sim.h"
#include "tbuf.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct test_file {
    unsigned char *data;
    size_t bytes;
    size_t room;
};

/* A Xen with NR_CPUS CPUs whose buffers have PAGES pages (0: not allocated). Exits on failure. */
struct sim test_sim_new(uint32_t nr_cpus, uint32_t pages);
void test_sim_free(struct sim *sim);

/* tbuf_control(), in one line. */
int test_control(struct sim *sim, uint32_t command, uint32_t value);

/* Appends what is in CPU's buffer, at most BYTES of it, as one window; returns its size. */
uint32_t test_drain(struct sim *sim, uint32_t cpu, uint32_t bytes, struct test_file *file);

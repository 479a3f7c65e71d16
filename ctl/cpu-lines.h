/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Figures of physical CPUs over all running sessions. Sessions share Xen's buffers, and mostly the
 * same records, so the figures of a CPU are those of the session with the most records of it. One
 * thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ctl/doc.h"

struct cpu_line {
    unsigned int cpu;
    bool has_buffer;
    bool loses; /* it has lost records since the document before */
    uint64_t fill_percent;
    uint64_t records, lost; /* in all; lost ones include those that xentraced dropped */
    uint64_t records_per_second, lost_per_second;
};

struct cpu_lines {
    struct cpu_line *lines; /* by ascending CPUs */
    unsigned int count;
    bool has_rates;
    struct cpu_line sum;
};

/* BEFORE: ELAPSED_USEC earlier; NULL: there is none. LINES need cpu_lines_done(). -ENOMEM. */
int cpu_lines_read(struct cpu_lines *lines, struct json_object *status, struct json_object *before,
                   uint64_t elapsed_usec);
void cpu_lines_done(struct cpu_lines *lines);

#define _cleanup_cpu_lines_ _cleanup_(cpu_lines_done)

/* The session of BEFORE that is the same as SESSION; NULL: it was not there. Borrowed. */
struct json_object *cpu_lines_find_session(struct json_object *before, struct json_object *session);

/* How much a figure grows a second. */
uint64_t cpu_lines_per_second(uint64_t before, uint64_t now, uint64_t elapsed_usec);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A trace as a picture: a row for each CPU or vCPU, a column for each equal part of the time, and
 * in each cell the state that took most of it (docs/measures.md, "Timeline").
 *
 * One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/merge.h"
#include "trace/state.h"
#include "trace/subjects.h"

#define TIMELINE_COLUMNS_MAX 500u
#define TIMELINE_ROWS_MAX    4096u /* beyond, rows are omitted and counted */
#define TIMELINE_WAITERS     3u    /* that are kept of a cell */
#define TIMELINE_WAIT_PART   4u    /* a wait is shown where it takes this part of a column: 1/4 */

enum timeline_by {
    TIMELINE_BY_CPU,
    TIMELINE_BY_VCPU,
};

/* What a cell shows: an enum state_runstate (of a CPU: STATE_RUNNING or STATE_UNKNOWN), or */
#define TIMELINE_LOST   (STATE_UNKNOWN + 1u)
#define TIMELINE_STATES (TIMELINE_LOST + 1u)

struct timeline_cell {
    uint32_t key; /* of a CPU that is STATE_RUNNING: the vCPU, idle ones too */
    uint8_t state;
};

struct timeline_waiter {
    uint32_t key;
    uint64_t cycles; /* in this column */
};

/* The vCPUs that waited for a CPU during a column. */
struct timeline_waiters {
    struct timeline_waiter list[TIMELINE_WAITERS]; /* the longest first; ties by key */
    uint32_t nr;                                   /* there may be more than are kept */
};

struct timeline_row {
    uint32_t id;                      /* the CPU, or domain << 16 | vCPU */
    struct timeline_cell *cells;      /* [columns] */
    struct timeline_waiters *waiters; /* [columns], of a CPU; NULL: nobody waited */
    /* By state, within the time. Of a CPU, STATE_RUNNING is of domains other than idle, and
     * STATE_RUNNABLE the sum of the waits for it. */
    uint64_t cycles[TIMELINE_STATES];
    uint64_t idle_cycles; /* of a CPU */
    uint64_t quiet_since; /* of a CPU: it has been idle since, for all that is known; 0: it is not */
};

struct timeline_wait {
    uint32_t key, cpu;
    uint64_t from, to; /* may reach beyond the time */
    bool is_open;      /* it had not ended; CPU is where the vCPU ran before */
};

struct timeline {
    uint64_t from, until; /* as asked for */
    unsigned int columns; /* as asked for, or a column for each tick */
    enum timeline_by by;
    struct timeline_row *rows; /* by id */
    size_t nr_rows;
    size_t nr_omitted;
    struct timeline_wait longest; /* of the waits within the time; from == to: none */
    uint64_t lost;                /* records, of losses that begin within the time */
    unsigned int gaps;
};

struct timeline_options {
    uint64_t from, until; /* until > from */
    unsigned int columns; /* from 1 to TIMELINE_COLUMNS_MAX */
    enum timeline_by by;
    /*
     * Rows of CPUs on which a vCPU of these ran or waited within the time; of vCPUs that ran on a
     * CPU of these then. Cells show everything. NULL: all rows, but those of idle vCPUs.
     */
    const struct subjects *subjects;
};

/*
 * Reads MERGE, which should begin some time before FROM, so that runstates are known then, and ends
 * at UNTIL. 0; -ENOMEM, or what reading ended with.
 */
int timeline_new(struct merge *merge, const struct timeline_options *options,
                 struct timeline **ret_timeline);
struct timeline *timeline_free(struct timeline *timeline);

/* When column K begins; of K == columns: until. */
uint64_t timeline_column(const struct timeline *timeline, unsigned int k);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds CPUs of which Xen records nothing although it should: the CPU was offline and is back, or
 * tracing was disabled by somebody else. Works for events that a CPU makes whenever it begins or
 * ceases to be idle (TRC_SCHED_RUNSTATE_CHANGE): a CPU that was idle and busy in a time in which it
 * made no record is silent. One that was always idle, or always busy with one vCPU, had nothing to
 * record.
 *
 * Pure logic: the caller looks at the CPUs every few seconds, and has the time. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#define SILENCE_USEC      UINT64_C(60000000) /* without a record, at least */
#define SILENCE_BUSY_USEC UINT64_C(5000000)  /* of that, not idle, at least */
#define SILENCE_IDLE_USEC UINT64_C(100000)   /* of that, idle, at least */
#define SILENCE_CONFIRM_USEC                                                                       \
    UINT64_C(4000000) /* after that: records may be on their way for 2 s                           \
                       */

/* What there is to know of a CPU at some moment. */
struct silence_sample {
    bool is_expected; /* its records are asked for, and nothing that is known prevents them */
    bool has_waiting; /* there are records in its buffer */
    uint64_t drained_bytes;
    uint64_t idle_ns; /* since the boot; 0: it is offline */
};

struct silence_cpu {
    uint64_t drained_bytes; /* these three as of the first look since its last record */
    uint64_t idle_ns;
    uint64_t since_usec;
    uint64_t last_idle_ns;   /* as of the last look */
    uint64_t suspected_usec; /* 0: not silent for long enough */
};

struct silence {
    unsigned int nr_cpus;
    struct silence_cpu *cpus;
    uint64_t *idle_ns; /* [cpu]: room for the caller's next samples */
};

/* -ENOMEM. */
int silence_init(struct silence *silence, unsigned int nr_cpus);
/* Also of one that is all zeroes. */
void silence_done(struct silence *silence);

/* Nothing is traced at the moment, or not fetched: the next look is the first one. */
void silence_reset(struct silence *silence);

/* A look at CPU, at NOW_USEC (not 0). Returns whether it is silent. */
bool silence_look(struct silence *silence, unsigned int cpu, const struct silence_sample *sample,
                  uint64_t now_usec);

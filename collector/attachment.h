/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An attached sink. The first part is what a round needs (drain.c); the second is the sink's state,
 * which messages and rounds change (attachments.c). Collector thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/walk.h"
#include "common/cpu-set.h"

struct sink;

#define ATTACHMENTS_MAX 32u

/* Which records of a round a sink takes. */
enum drain_mode {
    DRAIN_RECORDS,      /* what its session asked for */
    DRAIN_LAST_RECORDS, /* the same, but records that it can never take are discarded */
    DRAIN_JOINING,      /* nothing yet; no other sink may leave records in place */
    DRAIN_LOSSES,       /* of `pending` CPUs, only a loss at the beginning of a window, once */
    DRAIN_NOTHING,
};

enum phase {
    PHASE_JOINING,  /* rounds until one takes everything: then ATTACHED, and FEEDING */
    PHASE_FEEDING,  /* records flow */
    PHASE_DRAINING, /* rounds until one takes everything: then DRAINED */
    PHASE_DRAINED,  /* no more records, only unreported losses, until the main thread decides */
    PHASE_SETTLING, /* waits a short time for those: then DRAINED */
    PHASE_CLOSING,  /* rounds until one takes everything: then FLUSHING */
    PHASE_FLUSHING, /* waits for the last writes: then CLOSED */
};

struct attachment {
    struct sink *sink;
    enum drain_mode mode;
    struct cpu_set pending;    /* of DRAIN_LOSSES: CPUs whose next window has not come yet */
    enum walk_passing passing; /* of its last piece: how to walk the next one */
    uint64_t joins_tsc;        /* older records are not the sink's; 0: all are */
    uint64_t joins_losses_tsc; /* losses that began earlier are not the sink's */
    struct cpu_set joining;    /* CPUs of which no record of the sink's has come since it joined */
    bool starved;  /* in the last round: records were left in place, for want of a chunk */
    bool at_limit; /* in the last round: the sink had reached its limit */

    enum phase phase;
    enum drain_mode drain_mode; /* while it drains */
    unsigned int rounds;        /* of this phase */
    bool limit_told;
    bool abandoned; /* by MESSAGE_ABORT: it waits for its last writes and takes no orders */
    bool settled;
    uint64_t settle_end_usec;
    uint32_t pins_wanted; /* a bit for each pin */
    unsigned int pin_rounds;
    struct sink *successor; /* takes the sink's place at the end of a round; NULL: none */
    bool succeeds_now;      /* ... of the next one, not when the sink is full */
};

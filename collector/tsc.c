// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each round gives a lower bound of the offset: the newest record's TSC less ours after the round.
 * It is too low by the record's age: microseconds where VIRQ_TBUF has called for the round, seconds
 * on a quiet host. If the round before has emptied the buffers, the record is not older than that
 * round, which gives an upper bound. The best bounds of many rounds are next to each other.
 *
 * What is believed:
 *
 * - The second highest lower bound of a span of time: one record with a TSC of its own moves
 *   nothing. Only the very first round of a process is believed alone.
 * - The best of the last TSC_SPANS spans, of at least SPAN_SAMPLES rounds each, so that an emulated
 *   TSC, which wanders, is followed, and a host that falls quiet does not lose what it has learned.
 * - Nothing below MIN_TICKS: that is the age of records in a PV dom0 (negative), or the difference
 *   between the clocks of two CPUs.
 * - Nothing above MAX_TICKS: such a record is garbage.
 *
 * A replayed trace whose clock is ahead of ours cannot be distinguished from a PVH dom0: its
 * records get the present time. One whose clock is behind ours teaches nothing.
 */

#include "collector/tsc.h"

#include "common/util.h"

#define MIN_TICKS    (INT64_C(1) << 27)  /* 50 ms, about; firmware alone takes longer to boot Xen */
#define MAX_TICKS    (INT64_C(1) << 56)  /* 8 months at 3.5 GHz */
#define SPAN_TICKS   (UINT64_C(1) << 33) /* 3 s, about */
#define SPAN_SAMPLES 64u

/* Written by the collector thread, read by any: relaxed, since each stands for itself. */
static uint64_t offset_ticks, uncertainty_ticks;

static void tsc_publish(uint64_t offset, uint64_t uncertainty)
{
    __atomic_store_n(&offset_ticks, offset, __ATOMIC_RELAXED);
    __atomic_store_n(&uncertainty_ticks, uncertainty, __ATOMIC_RELAXED);
}

void tsc_forget(void)
{
    tsc_publish(0, 0);
}

uint64_t tsc_offset(void)
{
    return __atomic_load_n(&offset_ticks, __ATOMIC_RELAXED);
}

uint64_t tsc_offset_uncertainty(void)
{
    return __atomic_load_n(&uncertainty_ticks, __ATOMIC_RELAXED);
}

/* The span that NOW_TSC belongs to. */
static struct tsc_span *learner_span(struct tsc_learner *learner, uint64_t now_tsc)
{
    struct tsc_span *span = &learner->spans[learner->current];

    if (span->samples >= SPAN_SAMPLES && now_tsc - span->begin_tsc >= SPAN_TICKS) {
        learner->current = (learner->current + 1) % TSC_SPANS;
        span = &learner->spans[learner->current];
        span->samples = 0;
    }
    if (span->samples == 0)
        *span = (struct tsc_span){
            .begin_tsc = now_tsc,
            .best = INT64_MIN,
            .second = INT64_MIN,
            .limit = INT64_MAX,
        };
    return span;
}

/* Returns whether it has changed what is known. */
static bool span_add(struct tsc_span *span, int64_t sample, int64_t limit)
{
    bool is_better = span->samples < 2 || sample > span->second || limit < span->limit;

    if (span->samples < UINT32_MAX)
        span->samples++;
    if (sample > span->best) {
        span->second = span->best;
        span->best = sample;
    } else if (sample > span->second) {
        span->second = sample;
    }
    if (limit < span->limit && limit >= span->second) /* else a record was dated back */
        span->limit = limit;
    return is_better;
}

/* The best bounds of all spans. The highest lower one of a span is not believed, but for ALONE. */
static void learner_publish(const struct tsc_learner *learner)
{
    int64_t lower = INT64_MIN, upper = INT64_MAX, alone = INT64_MIN;
    uint64_t uncertainty;

    for (unsigned int i = 0; i < TSC_SPANS; i++) {
        const struct tsc_span *span = &learner->spans[i];

        if (span->samples == 1)
            alone = span->best;
        if (span->samples >= 2 && span->second > lower)
            lower = span->second;
        if (span->samples && span->limit < upper)
            upper = span->limit;
    }
    if (lower == INT64_MIN)
        lower = alone;
    if (lower < MIN_TICKS) {
        tsc_publish(0, 0);
        return;
    }
    if (upper == INT64_MAX)
        uncertainty = (uint64_t)lower; /* it may be anything yet */
    else                               /* they cross where the TSC wanders */
        uncertainty = (uint64_t)(upper > lower ? upper - lower : lower - upper);
    tsc_publish((uint64_t)lower, uncertainty);
}

void tsc_learn(struct tsc_learner *learner, const struct tsc_round *round)
{
    int64_t sample = (int64_t)(round->newest_tsc - round->end_tsc);
    uint64_t emptied_tsc = learner->emptied_tsc;
    int64_t limit = INT64_MAX;

    learner->emptied_tsc = round->is_even ? round->begin_tsc : 0;
    if (round->newest_tsc == 0 || sample >= MAX_TICKS || sample <= -MAX_TICKS)
        return;
    if (emptied_tsc)
        limit = sample + (int64_t)(round->end_tsc - emptied_tsc);
    if (span_add(learner_span(learner, round->end_tsc), sample, limit))
        learner_publish(learner);
}

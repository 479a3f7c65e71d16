// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each second overlaps the one before. A CPU's records have ascending effective times, so it is
 * enough to know, for each CPU, the time of the last record that was passed on, and how many had
 * that time. A record without a TSC at the head of a CPU's stream has the time of a later one; it
 * belongs to one that was passed on, since windows are older at their head.
 */

#include "ctl/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/units.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/second.h"
#include "ctl/str.h"
#include "trace/merge.h"
#include "trace/source.h"

/* Less is within the accuracy of the times. */
#define GAP_LEAST_USEC USEC_PER_MSEC

struct follow_cpu {
    bool is_known;  /* a record of it was passed on */
    uint64_t tsc;   /* of the last one */
    uint64_t count; /* of those at that time */

    /* In this second. */
    bool has_tsc;      /* some record had one */
    uint64_t nr_equal; /* at `tsc`, so far */
};

struct follow {
    const struct follow_sink *sink;
    struct follow_cpu *cpus; /* [SOURCE_CPUS_MAX] */
    bool has_begun;
    uint64_t asked_usec; /* when the last second was asked for, as the daemon says; 0: none was */
};

static bool is_new(struct follow_cpu *cpu, const struct merge_record *record)
{
    cpu->has_tsc |= record->header >> 31;
    if (cpu->is_known && (!cpu->has_tsc || record->tsc < cpu->tsc))
        return false;
    if (cpu->is_known && record->tsc == cpu->tsc && ++cpu->nr_equal <= cpu->count)
        return false;
    cpu->count = cpu->is_known && record->tsc == cpu->tsc ? cpu->count + 1 : 1;
    cpu->nr_equal = cpu->count;
    cpu->tsc = record->tsc;
    cpu->is_known = true;
    return true;
}

/* 1: continues; 0: the sink has ended. */
static int pass_on(struct follow *follow, struct merge *merge)
{
    struct merge_record record;
    int item;

    while ((item = merge_next(merge, &record)) != MERGE_END) {
        if (item != MERGE_RECORD || !is_new(&follow->cpus[record.cpu], &record))
            continue;
        if (!follow->sink->record(follow->sink->context, &record))
            return 0;
    }
    if (merge->error < 0)
        return merge->error;
    return follow->sink->flush(follow->sink->context);
}

static int pass_second(struct follow *follow, const struct second *second, char **ret_error)
{
    struct source *source = NULL;
    struct merge merge;
    int r;

    for (size_t i = 0; i < SOURCE_CPUS_MAX; i++) {
        follow->cpus[i].has_tsc = false;
        follow->cpus[i].nr_equal = 0;
    }
    r = follow->has_begun ? 0 : follow->sink->begin(follow->sink->context, second->doc, ret_error);
    if (r < 0)
        return r;
    follow->has_begun = true;
    r = source_new_memory(second->data, second->bytes, &source);
    if (r < 0)
        return r;
    r = merge_init(&merge, source, MERGE_ALL);
    if (r >= 0) {
        r = pass_on(follow, &merge);
        merge_done(&merge);
    }
    source_free(source);
    return r;
}

/* Each second should reach back to the one before. */
static void report_gap(struct follow *follow, struct json_object *doc)
{
    uint64_t asked = doc_number(doc, "ended.realtime_ns") / NSEC_PER_USEC -
                     doc_number(doc, "snapshot.write_usec");
    uint64_t held = doc_number(doc, "snapshot.held_usec");
    uint64_t since = asked > follow->asked_usec ? asked - follow->asked_usec : 0;

    if (follow->asked_usec && since > held + GAP_LEAST_USEC)
        ctl_warning("The records of %" PRIu64 " ms are not shown: they were read too late.",
                    (since - held) / USEC_PER_MSEC);
    follow->asked_usec = asked;
}

/* 1: continues; 0: the sink has ended. */
static int take_and_pass(struct follow *follow, struct second *second, char **ret_error)
{
    int r = second_next(second, SECOND_INTERVAL_USEC + SECOND_ANSWER_USEC, ret_error);

    if (r == -EFBIG) { /* the next one is asked for less: what is missing is reported then */
        free(*ret_error);
        *ret_error = NULL;
        return 1;
    }
    if (r < 0)
        return r;
    report_gap(follow, second->doc);
    return second->bytes > 0 ? pass_second(follow, second, ret_error) : 1;
}

int follow_run(struct client *client, const struct follow_sink *sink, char **ret_error)
{
    struct follow follow = {.sink = sink};
    _cleanup_second_ struct second second;
    int r;

    second_init(&second, client, SECOND_LEAST_USEC);
    follow.cpus = calloc(SOURCE_CPUS_MAX, sizeof(*follow.cpus));
    if (!follow.cpus)
        return -ENOMEM;
    do
        r = take_and_pass(&follow, &second, ret_error);
    while (r > 0);
    free(follow.cpus);
    return r;
}

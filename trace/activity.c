// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Only the state looks at each record. Events are not counted, and no interval is observed: these
 * two take most of the time of measures.c.
 */

#include "trace/activity.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

static void note_error(struct activity *activity, int r)
{
    if (r < 0 && activity->error == 0)
        activity->error = r;
}

static struct activity_vcpu *observe(struct activity *activity, struct state_vcpu *vcpu)
{
    if (!vcpu->observed)
        vcpu->observed = calloc(1, sizeof(struct activity_vcpu));
    if (!vcpu->observed)
        note_error(activity, -ENOMEM);
    return vcpu->observed;
}

static void on_wait(void *context, const struct state_wait_end *wait)
{
    struct activity *activity = context;
    struct activity_vcpu *vcpu = observe(activity, wait->vcpu);

    if (!vcpu)
        return;
    vcpu->wakes += wait->wait == STATE_WAKE;
    note_error(activity, sample_add(&vcpu->waits, &activity->budget, wait->to - wait->from));
}

static void on_left(void *context, struct state_vcpu *left, uint32_t reason)
{
    struct activity_vcpu *vcpu = left ? observe(context, left) : NULL;

    (void)reason;
    if (vcpu)
        vcpu->exits++;
}

static void note_new_cpus(struct activity *activity)
{
    note_error(activity, state_grow(&activity->state, merge_streams(activity->merge)));
}

static bool pass_record(void *context, uint32_t header)
{
    struct activity *activity = context;

    activity->records++;
    return activity->records > 1 && !state_wants(record_event(header));
}

static int read_record(void *context, const struct merge_record *record)
{
    struct activity *activity = context;

    if (__builtin_expect(record->stream >= activity->state.nr_cpus, 0))
        note_new_cpus(activity);
    if (activity->records == 1)
        activity->first_tsc = record->tsc;
    if (activity->error == 0)
        state_record(&activity->state, record);
    return activity->error;
}

static int read_blind(void *context, const struct merge_record *record)
{
    struct activity *activity = context;

    if (record->stream >= activity->state.nr_cpus)
        note_new_cpus(activity);
    if (activity->error < 0)
        return activity->error;
    state_begin_blind(&activity->state, record);
    activity->gaps++;
    activity->lost += merge_word(record, 0);
    return 0;
}

static const struct merge_reader reader = {
    .pass = pass_record,
    .record = read_record,
    .blind = read_blind,
};

static void activity_read(struct activity *activity)
{
    note_new_cpus(activity);
    if (activity->error == 0)
        (void)merge_read_all(activity->merge, reader, activity);
    activity->last_tsc = activity->merge->last_tsc;
    activity->records += merge_wraps(activity->merge);
    note_error(activity, activity->state.error);
    note_error(activity, activity->merge->error);
}

int activity_new(struct merge *merge, struct activity **ret_activity)
{
    _cleanup_activity_ struct activity *activity = calloc(1, sizeof(*activity));
    int r;

    if (!activity)
        return -ENOMEM;
    activity->merge = merge;
    activity->budget.left = SAMPLE_VALUES;
    activity->observer = (struct state_observer){
        .context = activity,
        .wait = on_wait,
        .left = on_left,
    };
    r = state_init(&activity->state, &activity->observer);
    if (r < 0)
        return r;
    activity_read(activity);
    if (activity->error < 0)
        return activity->error;
    *ret_activity = TAKE_PTR(activity);
    return 0;
}

struct activity *activity_free(struct activity *activity)
{
    if (!activity)
        return NULL;
    for (unsigned int i = 0; i < activity->state.nr_vcpus; i++) {
        struct activity_vcpu *vcpu = activity_of(activity->state.vcpus[i]);

        if (vcpu)
            sample_done(&vcpu->waits);
        free(vcpu);
    }
    state_done(&activity->state);
    free(activity);
    return NULL;
}

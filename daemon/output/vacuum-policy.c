// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The order: what is too old; then, while more is used or less is free than the limits say, the
 * oldest that users asked for; then the oldest of the others; then, if that was not enough, the
 * oldest of the protected ones. A list of some thousand files at most, looked through once for each
 * that goes: sorting it would be more code.
 *
 * How much is free depends on all who write to the disk. Somebody who fills it could have all
 * traces removed, each for space that is gone again at once. So what is removed for free space is
 * bounded by what the traces themselves have grown by since enough was free: new ones make room for
 * themselves, and the rest stays.
 *
 * Nor do others go instead of a file that is spared because a process has it open: somebody who
 * reads all that is old would have all that is new removed.
 */

#include "daemon/output/vacuum-policy.h"

#include "common/units.h"
#include "common/util.h"

enum vacuum_class vacuum_class_of_snapshot(bool is_of_user, bool is_triggered, uint64_t time_ns,
                                           uint64_t now_ns)
{
    bool is_recent = time_ns > now_ns || now_ns - time_ns < VACUUM_PROTECTED_USEC * NSEC_PER_USEC;

    if (is_of_user)
        return VACUUM_FIRST;
    return is_triggered && is_recent ? VACUUM_LAST : VACUUM_ANY;
}

struct plan {
    struct vacuum_file *files;
    size_t count;
    const struct vacuum_limits *limits;
    struct vacuum_use used;
    uint64_t free_bytes;
    const struct vacuum_file *newest[2]; /* of triggers, of root: not for keep_free_bytes */
    struct vacuum_outcome outcome;
};

static uint64_t excess(uint64_t bytes, uint64_t base)
{
    return bytes > base ? bytes - base : 0;
}

static uint64_t *plan_bytes_of(struct plan *plan, const struct vacuum_file *file)
{
    return file->vacuum_class == VACUUM_FIRST ? &plan->used.user_bytes : &plan->used.other_bytes;
}

static void plan_take(struct plan *plan, struct vacuum_file *file, enum vacuum_reason reason)
{
    file->is_chosen = true;
    file->goes = !file->is_spared;
    file->reason = reason;
    *plan_bytes_of(plan, file) -= file->bytes;
    plan->free_bytes += file->is_open ? 0 : file->bytes;
    if (!file->goes)
        return;
    plan->outcome.files++;
    plan->outcome.bytes += file->bytes;
}

static bool is_later(const struct vacuum_file *file, const struct vacuum_file *than)
{
    return !than || file->time_ns > than->time_ns;
}

static void plan_note_newest(struct plan *plan, const struct vacuum_file *file)
{
    if (file->is_of_trigger && is_later(file, plan->newest[0]))
        plan->newest[0] = file;
    if (file->is_of_root && is_later(file, plan->newest[1]))
        plan->newest[1] = file;
}

static struct vacuum_file *plan_find_oldest(const struct plan *plan, enum vacuum_class wanted,
                                            bool spares_newest)
{
    struct vacuum_file *oldest = NULL;

    for (size_t i = 0; i < plan->count; i++) {
        struct vacuum_file *file = &plan->files[i];

        if (file->vacuum_class != wanted || file->is_in_use || file->is_chosen)
            continue;
        if (spares_newest && (file == plan->newest[0] || file == plan->newest[1]))
            continue;
        if (!oldest || file->time_ns < oldest->time_ns)
            oldest = file;
    }
    return oldest;
}

/* Users' files that stay do not count for the others. */
static bool plan_fits(const struct plan *plan, enum vacuum_class wanted)
{
    uint64_t bytes = plan->used.other_bytes;

    if (wanted == VACUUM_FIRST)
        bytes += plan->used.user_bytes;
    return !plan->limits->max_use_bytes || bytes <= plan->limits->max_use_bytes;
}

static uint64_t plan_missing_bytes(const struct plan *plan)
{
    return excess(plan->limits->keep_free_bytes, plan->free_bytes);
}

static bool plan_is_enough(const struct plan *plan, enum vacuum_class wanted)
{
    return plan_fits(plan, wanted) && !plan_missing_bytes(plan);
}

/* What is xentraced's own of what is missing: growth that was removed already does not count. */
static uint64_t plan_growth_bytes(const struct plan *plan, enum vacuum_class wanted)
{
    const struct vacuum_use *base = &plan->limits->base;
    uint64_t all = excess(plan->used.user_bytes + plan->used.other_bytes,
                          base->user_bytes + base->other_bytes);

    return wanted == VACUUM_FIRST ? all
                                  : min_u64(all, excess(plan->used.other_bytes, base->other_bytes));
}

static bool plan_may_free(const struct plan *plan, const struct vacuum_file *file)
{
    uint64_t growth = plan_growth_bytes(plan, file->vacuum_class);

    if (!growth)
        return false;
    return file->bytes <= growth || (!file->is_open && file->bytes >= plan_missing_bytes(plan));
}

static void plan_take_old(struct plan *plan, uint64_t now_ns)
{
    uint64_t age_ns = plan->limits->max_age_usec * NSEC_PER_USEC;

    for (size_t i = 0; i < plan->count && age_ns; i++) {
        struct vacuum_file *file = &plan->files[i];

        if ((file->vacuum_class == VACUUM_ANY || file->vacuum_class == VACUUM_FIRST) &&
            !file->is_in_use && now_ns > file->time_ns && now_ns - file->time_ns > age_ns)
            plan_take(plan, file, VACUUM_TOO_OLD);
    }
}

/* Takes the oldest of the class WANTED, as many as needed. Returns whether the next class may go.
 */
static bool plan_take_oldest(struct plan *plan, enum vacuum_class wanted)
{
    while (!plan_is_enough(plan, wanted)) {
        bool fits = plan_fits(plan, wanted);
        struct vacuum_file *file = plan_find_oldest(plan, wanted, fits);

        if (!file)
            return true;
        if (fits && !plan_may_free(plan, file))
            return false;
        plan_take(plan, file, fits ? VACUUM_KEEP_FREE : VACUUM_MAX_USE);
    }
    return false;
}

struct vacuum_outcome vacuum_choose(struct vacuum_file *files, size_t count,
                                    const struct vacuum_limits *limits, uint64_t free_bytes,
                                    uint64_t now_ns)
{
    static const enum vacuum_class order[] = {VACUUM_FIRST, VACUUM_ANY, VACUUM_LAST};
    struct plan plan = {.files = files, .count = count, .limits = limits, .free_bytes = free_bytes};
    size_t step = 0;

    for (size_t i = 0; i < count; i++) {
        files[i].is_chosen = files[i].goes = false;
        if (files[i].vacuum_class == VACUUM_NEVER)
            continue;
        *plan_bytes_of(&plan, &files[i]) += files[i].bytes;
        plan_note_newest(&plan, &files[i]);
    }
    plan_take_old(&plan, now_ns);
    while (plan_take_oldest(&plan, order[step]) && step + 1 < ARRAY_SIZE(order))
        step++;
    plan.outcome.is_enough = plan_is_enough(&plan, order[step]);
    for (size_t i = 0; i < count && plan_missing_bytes(&plan); i++)
        plan.outcome.is_of_others |= files[i].vacuum_class != VACUUM_NEVER && !files[i].is_chosen;
    plan.outcome.left = plan.used;
    return plan.outcome;
}

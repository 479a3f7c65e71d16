// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The order: what is too old; then, while more is used or less is free than the limits say, the
 * oldest that users asked for; then the oldest of the others; then, if that was not enough, the
 * oldest of the protected ones. A list of some thousand
 * files at most, looked through once for each that goes: sorting it would be more code.
 */

#include "daemon/output/vacuum-policy.h"

#include "common/units.h"

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
    uint64_t used_bytes;
    uint64_t free_bytes;
    struct vacuum_outcome outcome;
};

static void plan_take(struct plan *plan, struct vacuum_file *file, enum vacuum_reason reason)
{
    file->goes = true;
    file->reason = reason;
    plan->used_bytes -= file->bytes;
    plan->free_bytes += file->bytes;
    plan->outcome.files++;
    plan->outcome.bytes += file->bytes;
}

static struct vacuum_file *plan_find_oldest(const struct plan *plan, enum vacuum_class wanted)
{
    struct vacuum_file *oldest = NULL;

    for (size_t i = 0; i < plan->count; i++) {
        struct vacuum_file *file = &plan->files[i];

        if (file->vacuum_class != wanted || file->is_open || file->goes)
            continue;
        if (!oldest || file->time_ns < oldest->time_ns)
            oldest = file;
    }
    return oldest;
}

static bool plan_fits(const struct plan *plan, const struct vacuum_limits *limits)
{
    return !limits->max_use_bytes || plan->used_bytes <= limits->max_use_bytes;
}

static bool plan_is_enough(const struct plan *plan, const struct vacuum_limits *limits)
{
    return plan_fits(plan, limits) &&
           (!limits->keep_free_bytes || plan->free_bytes >= limits->keep_free_bytes);
}

static void plan_take_old(struct plan *plan, const struct vacuum_limits *limits, uint64_t now_ns)
{
    uint64_t age_ns = limits->max_age_usec * NSEC_PER_USEC;

    for (size_t i = 0; i < plan->count && limits->max_age_usec; i++) {
        struct vacuum_file *file = &plan->files[i];

        if ((file->vacuum_class == VACUUM_ANY || file->vacuum_class == VACUUM_FIRST) &&
            !file->is_open && now_ns > file->time_ns && now_ns - file->time_ns > age_ns)
            plan_take(plan, file, VACUUM_TOO_OLD);
    }
}

/* The oldest of the class WANTED, as many as it takes. */
static void plan_take_oldest(struct plan *plan, const struct vacuum_limits *limits,
                             enum vacuum_class wanted)
{
    struct vacuum_file *file;

    while (!plan_is_enough(plan, limits) && (file = plan_find_oldest(plan, wanted)))
        plan_take(plan, file, plan_fits(plan, limits) ? VACUUM_KEEP_FREE : VACUUM_MAX_USE);
}

/* Those of users that stay do not count any more. */
static void plan_pass_over(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->files[i].vacuum_class == VACUUM_FIRST && !plan->files[i].goes)
            plan->used_bytes -= plan->files[i].bytes;
}

struct vacuum_outcome vacuum_choose(struct vacuum_file *files, size_t count,
                                    const struct vacuum_limits *limits, uint64_t free_bytes,
                                    uint64_t now_ns)
{
    struct plan plan = {.files = files, .count = count, .free_bytes = free_bytes};

    for (size_t i = 0; i < count; i++) {
        files[i].goes = false;
        if (files[i].vacuum_class != VACUUM_NEVER)
            plan.used_bytes += files[i].bytes;
    }
    plan_take_old(&plan, limits, now_ns);
    plan_take_oldest(&plan, limits, VACUUM_FIRST);
    if (!plan_is_enough(&plan, limits)) {
        plan_pass_over(&plan);
        plan_take_oldest(&plan, limits, VACUUM_ANY);
        plan_take_oldest(&plan, limits, VACUUM_LAST);
    }
    plan.outcome.is_enough = plan_is_enough(&plan, limits);
    return plan.outcome;
}

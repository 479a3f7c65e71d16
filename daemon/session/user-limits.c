// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A snapshot that is written to a slow disk holds the ring's memory, and the ring borrows for the
 * records that come meanwhile. The memory that can be borrowed also has to last for a trigger's
 * snapshot on the same disk. So the memory is looked at four times a second while users' snapshots
 * are under way: at 100 MB/s, 25 MB are borrowed in between.
 */

#include "daemon/session/user-limits.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <systemd/sd-event.h>

#include "collector/grower.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/name.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/session/budget.h"
#include "daemon/session/usage-file.h"

/* Files of an earlier daemon may have been written before the host was booted. */
#define BUDGET_BEGIN_USEC (2 * 24 * 3600 * USEC_PER_SEC)

#define LOOK_USEC       (250 * USEC_PER_MSEC)
#define LIVE_MAX_USEC   USEC_PER_SEC
#define LIVE_TIME_USEC  (10 * USEC_PER_SEC) /* for all of it: the records are no news by then */
#define USER_NUMBER_MAX (NAME_NUMBER_MAX / 100)

struct user_limits {
    struct sd_event *event;
    struct grower *grower;
    struct budget *budget;
    struct usage_file *file;
    bool is_loaded; /* what is in that file is in the budget */
    struct limits_config config;
    struct sd_event_source *timer; /* while there are any: */
    struct snapshot *snapshots[BUDGET_PLACES];
    uint64_t begin_usec[BUDGET_PLACES];
};

static uint64_t user_limits_now_usec(const struct user_limits *limits)
{
    uint64_t usec = 0;

    (void)sd_event_now(limits->event, CLOCK_MONOTONIC, &usec); /* the clock exists */
    return usec;
}

static uint64_t user_limits_budget_usec(const struct user_limits *limits)
{
    return BUDGET_BEGIN_USEC + user_limits_now_usec(limits);
}

/* --- Across a restart. --- */

static uint64_t realtime_usec(void)
{
    return clock_pair_now().realtime_ns / NSEC_PER_USEC;
}

/* Without memory, the next change is saved. */
static void user_limits_save(struct user_limits *limits)
{
    void *bytes;
    ssize_t length;

    if (!limits->is_loaded)
        return;
    length = budget_save(limits->budget, user_limits_budget_usec(limits), realtime_usec(), &bytes);
    if (length >= 0)
        usage_file_write(limits->file, bytes, (size_t)length);
}

static void user_limits_handle_loaded(void *userdata, const void *bytes_untrusted, size_t length)
{
    struct user_limits *limits = userdata;
    int r = 0;

    if (length > 0)
        r = budget_load(limits->budget, bytes_untrusted, length, user_limits_budget_usec(limits),
                        realtime_usec());
    if (r < 0)
        log_warning("%s in the state directory is damaged or from another version: what users have "
                    "used of their limits counts from now on.",
                    USAGE_FILE);
    limits->is_loaded = true;
}

/* --- Memory. --- */

static bool memory_is_scarce(const struct user_limits *limits)
{
    return grower_used_bytes(limits->grower) > grower_budget_bytes(limits->grower) / 2;
}

static int refuse_memory(struct failure *failure)
{
    return failure_set(failure, -EDQUOT, ERROR_LIMIT,
                       "A disk is slow: half of the memory for borrowing (pool-max= in [daemon]) "
                       "is in use, and the rest is kept for triggers and root. Try again when "
                       "xentracectl status shows no output waiting for a disk.");
}

static bool is_too_slow(const struct user_limits *limits, size_t i, uint64_t now_usec)
{
    return limits->snapshots[i]->limits.is_live &&
           now_usec >= limits->begin_usec[i] + LIVE_TIME_USEC;
}

static int user_limits_handle_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct user_limits *limits = userdata;
    struct failure failure;

    for (size_t i = 0; i < BUDGET_PLACES; i++) {
        if (!limits->snapshots[i])
            continue;
        if (is_too_slow(limits, i, usec))
            (void)failure_set(&failure, -EDQUOT, ERROR_LIMIT,
                              "The newest second was not read within 10 s. Read faster, or record "
                              "fewer events.");
        else if (memory_is_scarce(limits))
            (void)refuse_memory(&failure);
        else
            continue;
        snapshot_give_up(limits->snapshots[i], &failure);
    }
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time_relative(source, LOOK_USEC);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

/* The timer runs while there is a snapshot to look after. */
static void user_limits_set_timer(struct user_limits *limits)
{
    bool is_needed = false;

    for (size_t i = 0; i < BUDGET_PLACES; i++)
        is_needed = is_needed || limits->snapshots[i];
    if (is_needed)
        (void)sd_event_source_set_time_relative(limits->timer, LOOK_USEC);
    (void)sd_event_source_set_enabled(limits->timer, is_needed ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* --- Requests. --- */

/* Asks neither a file system, which may not answer, nor the pipe, whose lock its user may hold. */
static bool is_pipe(int fd)
{
    struct statx status;

    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) == 0 &&
           S_ISFIFO(status.stx_mode);
}

bool user_limits_is_live(const struct snapshot_options *options)
{
    return options->has_output && options->sidecar_fd < 0 && options->span.last_usec > 0 &&
           options->span.last_usec <= LIVE_MAX_USEC && is_pipe(options->output_fd);
}

static enum budget_kind kind_of(const struct snapshot_options *options)
{
    if (!options->has_output)
        return BUDGET_FILE;
    return user_limits_is_live(options) ? BUDGET_LIVE : BUDGET_OUTPUT;
}

static int check_permitted(const struct snapshot_options *options, enum budget_kind kind,
                           struct failure *failure)
{
    if (kind != BUDGET_OUTPUT || options->user.may_pass_outputs)
        return 0;
    return failure_set(failure, -EPERM, ERROR_NOT_PERMITTED,
                       "Only root and members of the group set by control-group= may write to "
                       "files of their own. Omit -o, or read the newest second from a pipe: "
                       "xentracectl snapshot --last 1s -o - | ...");
}

/* No name that root's captures and segments have, or may want. */
static int take_name(struct snapshot_options *options, char name[static SESSION_NAME_MAX + 1],
                     struct failure *failure)
{
    const char *prefix = NAME_USER_SNAPSHOT_PREFIX;
    int r;

    if (options->has_output || !options->name || !options->name[0])
        return 0;
    r = name_check(options->name, failure);
    if (r < 0)
        return r;
    if (strncmp(options->name, NAME_USER_SNAPSHOT_PREFIX, strlen(NAME_USER_SNAPSHOT_PREFIX)) == 0)
        prefix = "";
    if (strlen(prefix) + strlen(options->name) > SESSION_NAME_MAX)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "'%s' is too long: names given by users other than root begin with "
                           "'%s', and have at most %u characters in all.",
                           options->name, prefix, SESSION_NAME_MAX);
    (void)snprintf(name, SESSION_NAME_MAX + 1, "%s%.*s", prefix,
                   (int)(SESSION_NAME_MAX - strlen(prefix)), options->name);
    options->name = name;
    return 0;
}

static int admit_limited(struct user_limits *limits, struct snapshot_options *options,
                         char name[static SESSION_NAME_MAX + 1], struct failure *failure)
{
    enum budget_kind kind = kind_of(options);
    int r;

    r = check_permitted(options, kind, failure);
    if (r < 0)
        return r;
    r = take_name(options, name, failure);
    if (r < 0)
        return r;
    if (memory_is_scarce(limits))
        return refuse_memory(failure);
    r = budget_begin(limits->budget, options->user.person, kind, user_limits_budget_usec(limits),
                     &options->limits.grant, failure);
    if (r < 0)
        return r;
    options->limits.budget = limits->budget;
    options->limits.number_max = USER_NUMBER_MAX;
    if (kind == BUDGET_FILE)
        options->reserve_bytes += limits->config.keep_for_triggers_bytes;
    return 0;
}

int user_limits_admit(struct user_limits *limits, struct snapshot_options *options,
                      char name[static SESSION_NAME_MAX + 1], struct failure *failure)
{
    options->limits = (struct snapshot_limits){.is_live = user_limits_is_live(options)};
    return options->user.is_limited ? admit_limited(limits, options, name, failure) : 0;
}

uint64_t user_limits_keep_bytes(const struct user_limits *limits)
{
    return limits->config.keep_for_triggers_bytes;
}

/* --- Those that are under way. --- */

void user_limits_begin(struct user_limits *limits, const struct snapshot_options *options,
                       struct snapshot *snapshot)
{
    size_t i = 0;

    if (!options->limits.grant.is_taken)
        return;
    if (!snapshot) {
        budget_end(limits->budget, &options->limits.grant, false, 0);
        return;
    }
    while (i < BUDGET_PLACES && limits->snapshots[i])
        i++;
    assert(i < BUDGET_PLACES); /* the budget has no more */
    limits->snapshots[i] = snapshot;
    limits->begin_usec[i] = user_limits_now_usec(limits);
    if (options->limits.grant.kind == BUDGET_FILE)
        user_limits_save(limits);
    user_limits_set_timer(limits);
}

void user_limits_end(struct user_limits *limits, struct snapshot *snapshot)
{
    if (!snapshot->limits.grant.is_taken)
        return;
    for (size_t i = 0; i < BUDGET_PLACES; i++)
        if (limits->snapshots[i] == snapshot)
            limits->snapshots[i] = NULL;
    budget_end(limits->budget, &snapshot->limits.grant, !snapshot->failure.name,
               snapshot->plan.bytes);
    if (snapshot->limits.grant.kind == BUDGET_FILE)
        user_limits_save(limits);
    user_limits_set_timer(limits);
}

/* --- Construction. --- */

static int user_limits_set_up(struct user_limits *limits, struct workers *workers, int state_dir_fd)
{
    int r;

    r = budget_new(&limits->config, &limits->budget);
    if (r < 0)
        return r;
    r = usage_file_new(workers, state_dir_fd, BUDGET_SAVED_MAX_BYTES, user_limits_handle_loaded,
                       limits, &limits->file);
    if (r < 0)
        return r;
    r = sd_event_add_time_relative(limits->event, &limits->timer, CLOCK_MONOTONIC, LOOK_USEC,
                                   USEC_PER_MSEC, user_limits_handle_timer, limits);
    if (r < 0)
        return r;
    return sd_event_source_set_enabled(limits->timer, SD_EVENT_OFF);
}

int user_limits_new(struct sd_event *event, struct workers *workers, int state_dir_fd,
                    const struct config *config, struct grower *grower,
                    struct user_limits **ret_limits)
{
    struct user_limits *limits = calloc(1, sizeof(*limits));
    int r;

    if (!limits)
        return -ENOMEM;
    limits->event = event;
    limits->grower = grower;
    limits->config = config_limits(config);
    r = user_limits_set_up(limits, workers, state_dir_fd);
    if (r < 0) {
        user_limits_free(limits);
        return r;
    }
    *ret_limits = limits;
    return 0;
}

void user_limits_set_config(struct user_limits *limits, const struct config *config)
{
    limits->config = config_limits(config);
    budget_set_limits(limits->budget, &limits->config);
}

struct user_limits *user_limits_free(struct user_limits *limits)
{
    if (!limits)
        return NULL;
    sd_event_source_disable_unref(limits->timer);
    usage_file_free(limits->file);
    budget_free(limits->budget);
    free(limits);
    return NULL;
}

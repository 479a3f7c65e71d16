// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A client that leaks is disconnected with its first such message. All users but root together can
 * cost LEAKS_USERS_MAX times LEAKS_OF_USER_MAX, and what connections that were open before can
 * pass: 200 of the 1024 that systemd gives by default.
 */

#include "daemon/control/leaks.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <systemd/sd-event.h>

#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/manager.h"

#define RESTART_PART 16u /* of RLIMIT_NOFILE */
#define CHECK_USEC   (5 * USEC_PER_SEC)

struct leaker {
    uid_t uid;
    uint64_t count;
};

struct leaks {
    struct manager *manager;
    struct sd_event_source *source; /* while the daemon is to be restarted */
    uint64_t count;
    uint64_t restart_count; /* that many are reason enough for a restart */
    struct leaker users[LEAKS_USERS_MAX];
    size_t nr_users;
};

int leaks_new(struct manager *manager, struct leaks **ret_leaks)
{
    struct rlimit limit = {.rlim_cur = 1024};
    struct leaks *leaks = calloc(1, sizeof(*leaks));

    if (!leaks)
        return -ENOMEM;
    (void)getrlimit(RLIMIT_NOFILE, &limit); /* cannot fail */
    leaks->manager = manager;
    leaks->restart_count = limit.rlim_cur / RESTART_PART;
    *ret_leaks = leaks;
    return 0;
}

struct leaks *leaks_free(struct leaks *leaks)
{
    if (!leaks)
        return NULL;
    sd_event_source_disable_unref(leaks->source);
    free(leaks);
    return NULL;
}

bool leaks_permit(const struct leaks *leaks, uid_t uid)
{
    if (uid == 0)
        return true;
    for (size_t i = 0; i < leaks->nr_users; i++)
        if (leaks->users[i].uid == uid)
            return leaks->users[i].count < LEAKS_OF_USER_MAX;
    return leaks->nr_users < LEAKS_USERS_MAX;
}

static void leaks_count(struct leaks *leaks, uid_t uid, unsigned int count)
{
    size_t i = 0;

    leaks->count += count;
    while (i < leaks->nr_users && leaks->users[i].uid != uid)
        i++;
    if (i == LEAKS_USERS_MAX)
        return; /* it may pass nothing already */
    if (i == leaks->nr_users)
        leaks->users[leaks->nr_users++] = (struct leaker){.uid = uid};
    leaks->users[i].count += count;
}

static int leaks_handle_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct leaks *leaks = userdata;

    if (manager_restart_if_idle(leaks->manager)) {
        log_warning("Restarting: malformed messages have leaked %llu descriptors. The flight "
                    "recorder continues.",
                    (unsigned long long)leaks->count);
        return 0;
    }
    (void)sd_event_source_set_time(source, usec + CHECK_USEC); /* as valid as the one before */
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void leaks_note(struct leaks *leaks, uid_t uid, unsigned int count)
{
    bool was_permitted = leaks_permit(leaks, uid);

    leaks_count(leaks, uid, count);
    if (was_permitted && !leaks_permit(leaks, uid))
        log_warning("Malformed messages of UID %u have leaked %u descriptors: this user may not "
                    "pass outputs until xentraced is restarted.",
                    (unsigned int)uid, LEAKS_OF_USER_MAX);
    if (leaks->source || leaks->count < leaks->restart_count)
        return;
    /* Without memory for a timer, the next leak tries again. */
    (void)sd_event_add_time_relative(leaks->manager->event, &leaks->source, CLOCK_MONOTONIC, 0,
                                     USEC_PER_MSEC, leaks_handle_time, leaks);
}

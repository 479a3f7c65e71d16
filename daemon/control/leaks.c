// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The limits are parts of RLIMIT_NOFILE, of which systemd's default is 1024 (soft). A client that
 * leaks is disconnected with its first such message, so that these take tens of connections.
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

#define RESTART_PART  16u /* of RLIMIT_NOFILE */
#define TOO_MANY_PART 4u
#define CHECK_USEC    (5 * USEC_PER_SEC)

struct leaks {
    struct manager *manager;
    struct sd_event_source *source; /* while the daemon is to be restarted */
    uint64_t count;
    uint64_t limit; /* RLIMIT_NOFILE */
};

int leaks_new(struct manager *manager, struct leaks **ret_leaks)
{
    struct rlimit limit = {.rlim_cur = 1024};
    struct leaks *leaks = calloc(1, sizeof(*leaks));

    if (!leaks)
        return -ENOMEM;
    (void)getrlimit(RLIMIT_NOFILE, &limit); /* cannot fail */
    leaks->manager = manager;
    leaks->limit = limit.rlim_cur;
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

bool leaks_are_too_many(const struct leaks *leaks)
{
    return leaks->count >= leaks->limit / TOO_MANY_PART;
}

static int leaks_handle_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct leaks *leaks = userdata;

    if (manager_restart_if_idle(leaks->manager)) {
        log_warning("Restarting: malformed messages have cost %llu descriptors. The flight "
                    "recorder continues.",
                    (unsigned long long)leaks->count);
        return 0;
    }
    (void)sd_event_source_set_time(source, usec + CHECK_USEC); /* as valid as the one before */
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void leaks_note(struct leaks *leaks, unsigned int count)
{
    bool was_too_many = leaks_are_too_many(leaks);

    leaks->count += count;
    if (!was_too_many && leaks_are_too_many(leaks))
        log_warning("Malformed messages have cost %llu descriptors: only root may pass outputs "
                    "until xentraced is restarted. `systemctl restart xentraced` does that; it "
                    "ends running captures.",
                    (unsigned long long)leaks->count);
    if (leaks->source || leaks->count < leaks->limit / RESTART_PART)
        return;
    /* Without memory for a timer, the next leak tries again. */
    (void)sd_event_add_time_relative(leaks->manager->event, &leaks->source, CLOCK_MONOTONIC, 0,
                                     USEC_PER_MSEC, leaks_handle_time, leaks);
}

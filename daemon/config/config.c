// SPDX-License-Identifier: GPL-2.0-or-later
/* The words of the configuration that stand for something else, and what `auto` means. */

#include "daemon/config/config.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "common/util.h"

const char *trigger_condition_name(enum trigger_condition condition)
{
    switch (condition) {
    case TRIGGER_NEVER:
        break;
    case TRIGGER_EVENT:
        return "event";
    case TRIGGER_RUNNABLE_LATENCY:
        return "runnable-latency";
    case TRIGGER_DOMAIN_CRASH:
        return "domain-crash";
    case TRIGGER_LOST_RECORDS:
        return "lost-records";
    case TRIGGER_MANUAL:
        return "manual";
    }
    return "";
}

int config_read_log_level(const char *name, int *ret_level)
{
    /* As systemd.exec(5) calls them, LogLevelMax=. */
    static const struct {
        const char *name;
        int level;
    } levels[] = {
        {"err", LOG_ERR},   {"warning", LOG_WARNING}, {"notice", LOG_NOTICE},
        {"info", LOG_INFO}, {"debug", LOG_DEBUG},
    };

    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        if (strcmp(name, levels[i].name) == 0) {
            *ret_level = levels[i].level;
            return 0;
        }
    }
    return -EINVAL;
}

struct limits_config config_limits(const struct config *config)
{
    uint64_t memory_bytes = config->recorder.memory_bytes;
    struct limits_config limits = config->limits;

    if (limits.snapshot_bytes_per_day == LIMITS_AUTO)
        limits.snapshot_bytes_per_day = max_u64(16 * memory_bytes, UINT64_C(1) << 30);
    if (limits.keep_for_triggers_bytes == LIMITS_AUTO)
        limits.keep_for_triggers_bytes = 4 * memory_bytes;
    return limits;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl monitor: a live picture. */

#include <errno.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/monitor-loop.h"
#include "ctl/str.h"

struct options {
    uint64_t interval_usec;
    bool utc;
};

static const struct args_option monitor_options[] = {
    {"interval", 'n', "TIME", ARGS_DURATION, offsetof(struct options, interval_usec), USEC_PER_SEC,
     .help = "time between updates (default 1s)"},
    {"utc", .offset = offsetof(struct options, utc), .help = "show times in UTC"},
    {},
};

static int cmd_monitor(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {.interval_usec = USEC_PER_SEC};
    char *error = NULL;
    int r;

    r = args_parse(ctl, monitor_options, argc, argv, 0, &options, NULL, &error);
    if (r == 0 && ctl->json)
        r = str_refuse(-EINVAL, &error,
                       "monitor has no JSON output. Use: xentracectl status --json");
    if (r == 0 && options.interval_usec < MONITOR_INTERVAL_MIN_USEC)
        r = str_refuse(-EINVAL, &error, "--interval must be 100ms or more.");
    if (r < 0)
        return args_exit(&verb_monitor, r, error);
    if (options.utc)
        str_use_utc();
    return monitor_loop(ctl, &(struct monitor_view){0}, options.interval_usec);
}

const struct verb verb_monitor = {
    .name = "monitor",
    .run = cmd_monitor,
    .words = "",
    .summary = "show a live view of CPUs, captures and triggers",
    .help = "Shows rates, the fill of each CPU's buffer, losses, the disk, captures and\n"
            "triggers, and updates them every second. 2 shows\n"
            "domains and vCPUs, as top does. q quits, h shows all keys.\n",
    .options = monitor_options,
    .remote = VERB_LIVE,
};

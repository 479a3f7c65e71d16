// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `xensim domain`: domains that come, shut down and go, as a toolstack and the guests would have
 * it.
 */

#include "commands.h"
#include "control.h"
#include "domains.h"
#include "parse.h"

#include <errno.h>
#include <string.h>

#include <xen/xen.h>
#include <xen/sched.h>

static const char *const reasons[] = {
    [SHUTDOWN_poweroff] = "poweroff", [SHUTDOWN_reboot] = "reboot",
    [SHUTDOWN_suspend] = "suspend",   [SHUTDOWN_crash] = "crash",
    [SHUTDOWN_watchdog] = "watchdog", [SHUTDOWN_soft_reset] = "soft-reset",
};

static int usage(void)
{
    (void)fputs("usage: xensim domain list | add ID NAME | crash ID | remove ID |\n"
                "       xensim domain starve ID BY MSEC\n"
                "       xensim domain shutdown ID "
                "[poweroff|reboot|suspend|crash|watchdog|soft-reset]\n",
                stderr);
    return 2;
}

static int list(struct sim *sim)
{
    struct sim_domain domains[SIM_MAX_DOMAINS];
    uint32_t n = domains_list(sim, domains);

    (void)fputc('[', stdout);
    for (uint32_t i = 0; i < n; i++)
        (void)printf("%s\n{\"domid\":%u,\"name\":\"%s\",\"vcpus\":%u,\"state\":\"%s\"}",
                     i ? "," : "", domains[i].domid, domains[i].name, domains[i].vcpus,
                     domains[i].has_shut_down ? reasons[domains[i].reason] : "running");
    (void)printf("]\n");
    return 0;
}

static int find_reason(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (strcmp(reasons[i], name) == 0)
            return (int)i;
    return -EINVAL;
}

/* -EINVAL: wrong usage. */
static int change(struct sim *sim, int argc, char **argv)
{
    const char *what = argv[1];
    uint64_t domid, by, msec;
    int reason;

    if (argc < 3 || parse_u64(argv[2], DOMID_FIRST_RESERVED - 1, &domid) < 0)
        return -EINVAL;
    if (strcmp(what, "add") == 0 && argc == 4)
        return domains_add(sim, (uint32_t)domid, argv[3]);
    if (strcmp(what, "shutdown") == 0 && argc <= 4) {
        reason = argc == 4 ? find_reason(argv[3]) : SHUTDOWN_poweroff;
        return reason < 0 ? reason : domains_shut_down(sim, (uint32_t)domid, (uint32_t)reason);
    }
    if (strcmp(what, "starve") == 0 && argc == 5 &&
        parse_u64(argv[3], DOMID_FIRST_RESERVED - 1, &by) == 0 &&
        parse_u64(argv[4], 60000, &msec) == 0)
        return domains_starve(sim, (uint32_t)domid, (uint32_t)by, (uint32_t)msec);
    if (strcmp(what, "crash") == 0 && argc == 3)
        return domains_shut_down(sim, (uint32_t)domid, SHUTDOWN_crash);
    if (strcmp(what, "remove") == 0 && argc == 3)
        return domains_remove(sim, (uint32_t)domid);
    return -EINVAL;
}

static const char *explain(int error)
{
    switch (error) {
    case -ESRCH:
        return "there is no such domain";
    case -EEXIST:
        return "there is one already";
    case -EALREADY:
        return "it has shut down already";
    default:
        return strerror(-error);
    }
}

int command_domain(int argc, char **argv)
{
    struct sim sim;
    int r;

    if (argc < 2)
        return usage();
    if (control_attach(&sim) < 0)
        return 1;
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        r = list(&sim);
    else
        r = change(&sim, argc, argv);
    sim_done(&sim);
    if (r == -EINVAL)
        return usage();
    if (r < 0)
        (void)fprintf(stderr, "xensim: domain %s %s: %s\n", argv[1], argv[2], explain(r));
    return r < 0 ? 1 : 0;
}

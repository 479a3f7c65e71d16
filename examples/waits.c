// SPDX-License-Identifier: GPL-2.0-or-later
/* Waits of at least 1 ms: who, for how long, since when. cc waits.c $(pkg-config --cflags --libs
 * libxentrace) */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xentrace.h>

static int print_wait(void *context, const struct xentrace_interval *interval)
{
    struct xentrace *trace = context;
    uint64_t from = interval->from_tsc,
             nsec = xentrace_ticks_to_nsec(trace, interval->to_tsc - from);
    const char *name = xentrace_domain_label(trace, interval->domid, from);

    if (interval->wait == XENTRACE_NO_WAIT || nsec < 1000000)
        return 0;
    printf("%s d%" PRIu32 "v%" PRIu32 " waited %" PRIu64 " us from +%" PRIu64 " us on\n",
           name ? name : "-", interval->domid, interval->vcpu, nsec / 1000,
           xentrace_ticks_to_nsec(trace, from - xentrace_first_tsc(trace)) / 1000);
    return 0;
}

int main(int argc, char **argv)
{
    struct xentrace_observer observer = {.size = sizeof(observer), .interval = print_wait};
    struct xentrace *trace = NULL;
    int r = argc == 2 ? xentrace_open(argv[1], NULL, &trace) : -22;

    observer.context = trace;
    if (r == 0)
        r = xentrace_observe(trace, &observer);
    if (r == 0)
        r = xentrace_run(trace, 0);
    if (r < 0)
        fprintf(stderr, "%s: %s\n", argc == 2 ? argv[1] : "usage: waits FILE", strerror(-r));
    xentrace_close(trace);
    return r < 0;
}

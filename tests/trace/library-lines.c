// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What test-library compares with the client's output: library-lines records|intervals|measures
 * FILE [FROM UNTIL], through the shared library. FILE - is standard input.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/xentrace.h"

static int print_records(struct xentrace *trace)
{
    const struct xentrace_record *record;
    int r;

    while ((r = xentrace_next(trace, &record)) > 0)
        puts(xentrace_json(trace));
    return r;
}

static int print_interval(void *context, const struct xentrace_interval *interval)
{
    static const char *const runstates[] = {"running", "runnable", "blocked", "offline"};
    static const char *const waits[] = {"", "wake", "preempt", "other"};

    (void)context;
    printf("{\"vcpu\":\"d%" PRIu32 "v%" PRIu32 "\",\"state\":\"%s\",", interval->domid,
           interval->vcpu, runstates[interval->runstate]);
    if (interval->cpu != XENTRACE_NO_CPU)
        printf("\"cpu\":%" PRIu32 ",", interval->cpu);
    if (interval->wait != XENTRACE_NO_WAIT)
        printf("\"wait\":\"%s\",", waits[interval->wait]);
    printf("%s\"from_tsc\":%" PRIu64 ",\"to_tsc\":%" PRIu64 "}\n",
           interval->ends_in_loss ? "\"lost\":true," : "", interval->from_tsc, interval->to_tsc);
    return 0;
}

static int print_cpu_interval(void *context, const struct xentrace_cpu_interval *interval)
{
    static const char *const kinds[] = {"c_state", "mhz", "irq"};

    (void)context;
    printf("{\"cpu\":%" PRIu32 ",\"%s\":%" PRIu32 ",%s%s\"from_tsc\":%" PRIu64
           ",\"to_tsc\":%" PRIu64 "}\n",
           interval->cpu, kinds[interval->kind], interval->value,
           interval->is_complete ? "" : "\"incomplete\":true,",
           interval->ends_in_loss ? "\"lost\":true," : "", interval->from_tsc, interval->to_tsc);
    return 0;
}

static int print_intervals(struct xentrace *trace)
{
    const struct xentrace_observer observer = {
        .size = sizeof(observer), .interval = print_interval, .cpu_interval = print_cpu_interval};
    int r = xentrace_observe(trace, &observer);

    while (r >= 0 && (r = xentrace_run(trace, 1000)) > 0)
        ;
    return r;
}

static int print_measures(struct xentrace *trace)
{
    char *json = NULL;
    int r = xentrace_measures(trace, &json);

    if (r == 0)
        puts(json);
    free(json);
    return r;
}

int main(int argc, char **argv)
{
    struct xentrace *trace = NULL;
    int r;

    if (argc != 3 && argc != 5)
        return 2;
    r = strcmp(argv[2], "-") == 0 ? xentrace_open_fd(0, NULL, &trace)
                                  : xentrace_open(argv[2], NULL, &trace);
    if (r == 0 && argc == 5)
        r = xentrace_select(trace, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    if (r == 0)
        r = strcmp(argv[1], "records") == 0     ? print_records(trace)
            : strcmp(argv[1], "intervals") == 0 ? print_intervals(trace)
                                                : print_measures(trace);
    if (r < 0)
        fprintf(stderr, "%s: %s\n", argv[2], strerror(-r));
    xentrace_close(trace);
    return r < 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `xensim event`: one record, or a burst of them, of any event on any CPU, at the moment that the
 * test chooses. Masks, losses and the interrupt are Xen's, as for every record.
 */

#include "commands.h"
#include "control.h"
#include "parse.h"
#include "tbuf.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>

#include "common/record.h"

static const char event_usage[] =
    "usage: xensim event [OPTION]... CPU EVENT [WORD]...      up to 7 words\n"
    "  --times N     so many of it (1)\n"
    "  --ago USEC    its TSC is that old\n"
    "  --tsc TICKS   its TSC\n"
    "  --no-tsc      it has none\n";

struct event_options {
    uint64_t times;
    uint64_t ago_usec;
    uint64_t tsc;
    bool no_tsc;
    uint32_t cpu;
    uint32_t event;
    uint32_t nr_words;
    uint32_t words[TRACE_EXTRA_MAX];
};

static int parse_record(int argc, char **argv, struct event_options *o)
{
    uint64_t value;

    if (argc < 2 || argc > 2 + TRACE_EXTRA_MAX)
        return -EINVAL;
    if (parse_u64(argv[0], SIM_MAX_CPUS - 1, &value) < 0)
        return -EINVAL;
    o->cpu = (uint32_t)value;
    if (parse_u64(argv[1], RECORD_EVENT_MASK, &value) < 0)
        return -EINVAL;
    o->event = (uint32_t)value;
    for (int i = 2; i < argc; i++) {
        if (parse_u64(argv[i], UINT32_MAX, &value) < 0)
            return -EINVAL;
        o->words[o->nr_words++] = (uint32_t)value;
    }
    return 0;
}

static int parse_arguments(int argc, char **argv, struct event_options *o)
{
    static const struct option options[] = {
        {"times", required_argument, NULL, 'n'},
        {"ago", required_argument, NULL, 'a'},
        {"tsc", required_argument, NULL, 't'},
        {"no-tsc", no_argument, NULL, 'x'},
        {NULL, 0, NULL, 0},
    };
    int option, r = 0;

    while (r == 0 && (option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        switch (option) {
        case 'n':
            r = parse_u64(optarg, UINT64_MAX, &o->times);
            break;
        case 'a':
            r = parse_u64(optarg, 3600000000u, &o->ago_usec);
            break;
        case 't':
            r = parse_u64(optarg, UINT64_MAX, &o->tsc);
            break;
        case 'x':
            o->no_tsc = true;
            break;
        default:
            r = -EINVAL;
        }
    }
    return r < 0 ? r : parse_record(argc - optind, argv + optind, o);
}

static uint64_t insert(struct sim *sim, const struct event_options *o)
{
    uint64_t ago = o->ago_usec * sim->shared->cpu_khz / 1000, inserted = 0;
    struct tbuf_event e = {
        .event = o->event | (o->no_tsc ? 0 : (uint32_t)TRC_HD_CYCLE_FLAG),
        .extra_words = o->nr_words,
        .extra = o->words,
        .tsc = o->tsc,
    };

    sim_lock(&sim->shared->cpus[o->cpu].lock);
    for (uint64_t i = 0; i < o->times; i++) {
        if (!o->tsc)
            e.tsc = sim_tsc() - ago;
        inserted += tbuf_insert(sim, o->cpu, &e) == TBUF_INSERTED;
    }
    sim_unlock(&sim->shared->cpus[o->cpu].lock);
    return inserted;
}

int command_event(int argc, char **argv)
{
    struct event_options o = {.times = 1};
    struct sim sim;
    int r = parse_arguments(argc, argv, &o);

    if (r == 0 && control_attach(&sim) < 0)
        return 1;
    if (r == 0) {
        if (o.cpu < sim.shared->nr_cpus)
            (void)printf("%" PRIu64 "\n", insert(&sim, &o));
        else
            r = -EINVAL;
        sim_done(&sim);
    }
    if (r < 0)
        (void)fputs(event_usage, stderr);
    return r < 0 ? 2 : 0;
}

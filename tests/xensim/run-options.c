// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Options of `xensim run`: one table, one usage text, one parser for the producer's and one for the
 * machine's. Option letters are none: all are long, since these lines stand in tests.
 */

#include "run-options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "numbered.h"

static const char usage[] =
    "usage: xensim run [OPTION]... -- COMMAND [ARGUMENT]...\n"
    "  --cpus N             possible CPUs, 1-16383 (8)\n"
    "  --offline LIST       CPUs that are not online when the buffers are allocated\n"
    "  --pages N            memory for N pages per CPU, more is ENOMEM (Xen's own limit only)\n"
    "  --preset-pages N     as booted with tbuf_size=N: buffers are there, tracing is on\n"
    "  --preset-mask M      as booted with tevt_mask=M\n"
    "  --workload W         numbered (default), sched, replay, none\n"
    "  --rate BYTES         a second over all CPUs: 512K, 50M, 1G, max, 0 (10M; sched, replay: "
    "own)\n"
    "  --events LIST        numbered: up to 32 event numbers in place of the 12 built-in ones\n"
    "  --replay FILE        a trace, also .zst; implies --workload replay\n"
    "  --speed X            replay: times as fast (1)\n"
    "  --loops N            replay: N times, then nothing (for ever)\n"
    "  --tsc exact|moved|now, --tsc-exact  replay: the file's TSCs, moved to now (default), the "
    "clock\n"
    "  --tsc-offset S       Xen's clock is ahead of rdtsc by so much, as in a PVH dom0 (0)\n"
    "  --seed N             sched: another course of events (0)\n"
    "  --truth FILE         sched: what happened, as JSON\n"
    "  --tick USEC          the producer's step (200)\n"
    "  --burst USEC         produce for so long of each second only\n"
    "  --duration S         produce for S seconds of tracing only\n"
    "  --paused             start paused; see `xensim resume`\n"
    "  --fault F            no-xen, not-root, not-dom0, version-mismatch, no-tbuf, flask,\n"
    "                       no-memory[=TIMES], virq-taken, virq-busy, virq-drop, no-evtchn,\n"
    "                       map-denied, no-xenstore, xenstore-hangs; may be repeated\n"
    "  --report FILE        the producer's counts as JSON\n"
    "  --quiet              no report on stderr\n";

enum {
    OPT_CPUS = 256,
    OPT_OFFLINE,
    OPT_PAGES,
    OPT_PRESET_PAGES,
    OPT_PRESET_MASK,
    OPT_WORKLOAD,
    OPT_RATE,
    OPT_EVENTS,
    OPT_REPLAY,
    OPT_SPEED,
    OPT_LOOPS,
    OPT_TSC,
    OPT_TSC_EXACT,
    OPT_TSC_OFFSET,
    OPT_TICK,
    OPT_BURST,
    OPT_DURATION,
    OPT_PAUSED,
    OPT_FAULT,
    OPT_REPORT,
    OPT_SEED,
    OPT_TRUTH,
    OPT_QUIET,
};

static const struct option long_options[] = {
    {"cpus", required_argument, NULL, OPT_CPUS},
    {"offline", required_argument, NULL, OPT_OFFLINE},
    {"pages", required_argument, NULL, OPT_PAGES},
    {"preset-pages", required_argument, NULL, OPT_PRESET_PAGES},
    {"preset-mask", required_argument, NULL, OPT_PRESET_MASK},
    {"workload", required_argument, NULL, OPT_WORKLOAD},
    {"rate", required_argument, NULL, OPT_RATE},
    {"events", required_argument, NULL, OPT_EVENTS},
    {"replay", required_argument, NULL, OPT_REPLAY},
    {"speed", required_argument, NULL, OPT_SPEED},
    {"loops", required_argument, NULL, OPT_LOOPS},
    {"tsc", required_argument, NULL, OPT_TSC},
    {"tsc-exact", no_argument, NULL, OPT_TSC_EXACT},
    {"tsc-offset", required_argument, NULL, OPT_TSC_OFFSET},
    {"tick", required_argument, NULL, OPT_TICK},
    {"burst", required_argument, NULL, OPT_BURST},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"paused", no_argument, NULL, OPT_PAUSED},
    {"fault", required_argument, NULL, OPT_FAULT},
    {"report", required_argument, NULL, OPT_REPORT},
    {"seed", required_argument, NULL, OPT_SEED},
    {"truth", required_argument, NULL, OPT_TRUTH},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {NULL, 0, NULL, 0},
};

static int parse_u32(const char *text, uint64_t most, uint32_t *ret)
{
    uint64_t value;
    int r = parse_u64(text, most, &value);

    if (r == 0)
        *ret = (uint32_t)value;
    return r;
}

static int parse_fault(const char *text, struct run_options *o)
{
    _cleanup_free_ char *name = strdup(text);
    char *times = name ? strchr(name, '=') : NULL;
    uint32_t fault;

    if (!name)
        return -ENOMEM;
    if (times) {
        *times++ = '\0';
        if (parse_u32(times, UINT32_MAX - 1, &o->fault_hits) < 0)
            return -EINVAL;
    }
    fault = sim_fault_parse(name);
    o->faults |= fault;
    return fault ? 0 : -EINVAL;
}

static int parse_tsc(const char *text, enum workload_tsc *ret)
{
    if (strcmp(text, "exact") == 0)
        *ret = WORKLOAD_TSC_EXACT;
    else if (strcmp(text, "moved") == 0)
        *ret = WORKLOAD_TSC_MOVED;
    else if (strcmp(text, "now") == 0)
        *ret = WORKLOAD_TSC_NOW;
    else
        return -EINVAL;
    return 0;
}

static int parse_workload(const char *text, struct producer_options *p)
{
    p->workload = workload_find(text);
    return p->workload || strcmp(text, "none") == 0 ? 0 : -EINVAL;
}

static int parse_rate(const char *text, struct workload_options *w)
{
    w->rate_max = strcmp(text, "max") == 0;
    return w->rate_max ? 0 : parse_bytes(text, &w->rate_bytes);
}

/* Options of the producer; 1 if OPTION is none of them. */
static int parse_producer_option(int option, struct producer_options *p)
{
    switch (option) {
    case OPT_WORKLOAD:
        return parse_workload(optarg, p);
    case OPT_RATE:
        return parse_rate(optarg, &p->options);
    case OPT_REPLAY:
        p->workload = &workload_replay;
        p->options.replay_file = optarg;
        return 0;
    case OPT_SPEED:
        return parse_seconds(optarg, &p->options.replay_speed);
    case OPT_LOOPS:
        return parse_u64(optarg, UINT64_MAX, &p->options.replay_loops);
    case OPT_TSC:
        return parse_tsc(optarg, &p->options.tsc);
    case OPT_TSC_EXACT:
        return parse_tsc("exact", &p->options.tsc);
    case OPT_TICK:
        return parse_u64(optarg, 100000, &p->tick_usec);
    case OPT_BURST:
        return parse_u64(optarg, 1000000, &p->burst_usec);
    case OPT_DURATION:
        return parse_seconds(optarg, &p->duration_sec);
    case OPT_REPORT:
        p->report_file = optarg;
        return 0;
    case OPT_SEED:
        return parse_u64(optarg, UINT64_MAX - 1, &p->options.seed);
    case OPT_TRUTH:
        p->options.truth_file = optarg;
        return 0;
    case OPT_QUIET:
        p->quiet = true;
        return 0;
    default:
        return 1;
    }
}

static int parse_option(int option, struct run_options *o)
{
    switch (option) {
    case OPT_CPUS:
        return parse_u32(optarg, SIM_MAX_CPUS, &o->cpus);
    case OPT_OFFLINE:
        return parse_cpus(optarg, &o->offline);
    case OPT_PAGES:
        return parse_u32(optarg, UINT16_MAX, &o->max_pages);
    case OPT_PRESET_PAGES:
        return parse_u32(optarg, UINT16_MAX, &o->preset_pages);
    case OPT_PRESET_MASK:
        return parse_u32(optarg, UINT32_MAX, &o->preset_mask);
    case OPT_TSC_OFFSET:
        return parse_seconds(optarg, &o->tsc_offset_sec);
    case OPT_EVENTS:
        return parse_u32_list(optarg, o->kinds, SIM_MAX_KINDS, &o->nr_kinds);
    case OPT_PAUSED:
        o->paused = true;
        return 0;
    case OPT_FAULT:
        return parse_fault(optarg, o);
    default:
        return parse_producer_option(option, &o->producer);
    }
}

static int parse_arguments(int argc, char **argv, struct run_options *o)
{
    int option;
    bool has_rate = false;

    while ((option = getopt_long(argc, argv, "+", long_options, NULL)) != -1) {
        if (option == '?' || parse_option(option, o) != 0) {
            if (option != '?')
                (void)fprintf(stderr, "xensim: '%s' is not a value for %s\n", optarg ? optarg : "",
                              argv[optind - 2]);
            return -EINVAL;
        }
        has_rate |= option == OPT_RATE;
    }
    if (optind >= argc || o->cpus == 0 || o->producer.tick_usec == 0)
        return -EINVAL;
    if (o->producer.options.truth_file && o->producer.workload != &workload_sched) {
        (void)fputs("xensim: --truth needs --workload sched\n", stderr);
        return -EINVAL;
    }
    if (!has_rate && o->producer.workload == &workload_numbered)
        o->producer.options.rate_bytes = 10u << 20;
    else if (has_rate && !o->producer.options.rate_max && o->producer.options.rate_bytes == 0)
        o->producer.workload = NULL;
    o->command = argv + optind;
    return 0;
}

int run_options_parse(int argc, char **argv, struct run_options *ret_options)
{
    struct run_options o = {
        .producer = {.workload = &workload_numbered, .tick_usec = 200, .options.replay_speed = 1},
        .cpus = 8,
        .fault_hits = UINT32_MAX,
        .nr_kinds = numbered_default_kinds_count,
    };

    memcpy(o.kinds, numbered_default_kinds, numbered_default_kinds_count * sizeof(o.kinds[0]));
    if (parse_arguments(argc, argv, &o) < 0) {
        (void)fputs(usage, stderr);
        return -EINVAL;
    }
    *ret_options = o;
    return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `xensim rules`: is a trace one that every reader of Xen's traces reads? Any trace, whatever made
 * its records; docs/xensim.md says which rules there are and why.
 */

#include "commands.h"
#include "parse.h"
#include "rounds.h"
#include "walk.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "common/record.h"

#define MOST_LINES 20u /* of one rule; the rest is counted */
#define NO_LIMIT   UINT64_MAX

enum rule {
    RULE_FORM, /* the walk's own, which have names of their own */
    RULE_CPU,
    RULE_RECORD,
    RULE_CLASS,
    RULE_TSC,
    RULE_OVERLAP,
    RULE_LATE,
    RULE_LOST,
    RULE_START,
    _RULE_N,
};

struct cpu_state {
    uint64_t last_tsc;
    uint64_t first_tsc;    /* of the first file */
    size_t first_window;   /* where it begins */
    uint64_t earlier_tsc;  /* the last of the files before this one */
    bool seen;             /* a record with a TSC */
    bool begins_late_told; /* of this window */
};

struct rules {
    bool joined;
    bool guest;
    uint64_t slack;
    uint64_t even_start;
    const char *path;
    uint64_t windows;
    uint64_t nr_rounds;
    uint64_t violations;
    uint64_t told[_RULE_N];
    struct rounds rounds;
    struct cpu_state cpus[SIM_MAX_CPUS];
};

static _printf_(5, 6) void violation(struct rules *v, enum rule rule, const char *name,
                                     size_t offset, const char *format, ...)
{
    va_list arguments;

    v->violations++;
    if (v->told[rule]++ >= MOST_LINES)
        return;
    (void)fprintf(stderr, "%s: offset %zu: %s: ", v->path, offset, name);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
}

/* What the record's header alone tells. */
static void check_class(struct rules *v, uint32_t cpu, size_t offset, uint32_t header)
{
    uint32_t event = record_event(header);

    if (event >> TRC_CLS_SHIFT == 0)
        violation(v, RULE_CLASS, "class", offset,
                  "CPU %u: header 0x%08x has no class: it is no record", cpu, header);
    else if ((event & TRC_GUEST) >> TRC_CLS_SHIFT && !v->guest)
        violation(v, RULE_CLASS, "class", offset,
                  "CPU %u: event 0x%08x is a guest's: xenalyze dies on it", cpu, event);
    else if (event == TRC_LOST_RECORDS && header != LOST_RECORD_HEADER)
        violation(v, RULE_LOST, "lost", offset,
                  "CPU %u: a lost_records record with the header 0x%08x", cpu, header);
}

static void check_lost(struct rules *v, uint32_t cpu, size_t offset, const uint32_t *record)
{
    struct lost_record lost;
    uint64_t tsc = record_tsc(record), first;

    memcpy(&lost, record, sizeof(lost));
    first = (uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0];
    if (lost.count == 0)
        violation(v, RULE_LOST, "lost", offset, "CPU %u: a lost_records record that tells of 0",
                  cpu);
    if (first >= tsc)
        violation(v, RULE_LOST, "lost", offset,
                  "CPU %u: a lost_records record (TSC %" PRIu64
                  ") that is not after its first loss (TSC %" PRIu64 ")",
                  cpu, tsc, first);
    if (v->cpus[cpu].seen && first < v->cpus[cpu].last_tsc)
        violation(v, RULE_LOST, "lost", offset,
                  "CPU %u: the first loss (TSC %" PRIu64
                  ") is before a record that was not lost (TSC %" PRIu64 ")",
                  cpu, first, v->cpus[cpu].last_tsc);
}

static void check_tsc(struct rules *v, const struct walk_window *w, size_t offset, uint64_t tsc)
{
    struct cpu_state *c = &v->cpus[w->cpu];

    if (!c->seen) {
        c->first_tsc = tsc;
        c->first_window = w->offset;
    } else if (c->earlier_tsc && tsc <= c->earlier_tsc) {
        violation(v, RULE_OVERLAP, "overlap", offset,
                  "CPU %u: TSC %" PRIu64 " is not above the last of the file before, %" PRIu64,
                  w->cpu, tsc, c->earlier_tsc);
    } else if (tsc < c->last_tsc) {
        violation(v, RULE_TSC, "tsc", offset,
                  "CPU %u: the TSC goes back from %" PRIu64 " to %" PRIu64, w->cpu, c->last_tsc,
                  tsc);
    }
    c->seen = true;
    c->last_tsc = tsc;
}

/* A record of time: not a lost_records, which tells of what was before. */
static void check_late(struct rules *v, const struct walk_window *w, uint64_t tsc)
{
    struct cpu_state *c = &v->cpus[w->cpu];
    uint64_t not_before = v->rounds.not_before[w->cpu];

    if (c->begins_late_told || tsc + v->slack >= not_before)
        return;
    c->begins_late_told = true;
    violation(v, RULE_LATE, "late", w->offset,
              "CPU %u: records (TSC %" PRIu64
              ") that should have been in a window further up: it had none where the others were "
              "at TSC %" PRIu64,
              w->cpu, tsc, not_before);
}

static void check_window(struct rules *v, const struct walk_window *w)
{
    uint32_t offset = 0, bytes, record[RECORD_MAX_BYTES / 4];
    uint64_t highest = 0;
    int r;

    v->cpus[w->cpu].begins_late_told = false;
    for (uint32_t at = 0; (r = walk_record(w, &offset, record, &bytes)) > 0; at = offset) {
        size_t file_offset = w->offset + WINDOW_HEADER_BYTES + at;

        if (record_is_wrap(record[0]))
            continue;
        check_class(v, w->cpu, file_offset, record[0]);
        if (!record_has_tsc(record[0]))
            continue;
        if (record_is_lost(record[0]))
            check_lost(v, w->cpu, file_offset, record);
        else
            check_late(v, w, record_tsc(record));
        check_tsc(v, w, file_offset, record_tsc(record));
        highest = max_u64(highest, record_tsc(record));
    }
    if (r < 0)
        violation(v, RULE_RECORD, "record", w->offset + WINDOW_HEADER_BYTES + offset,
                  "CPU %u: the window ends inside a record, or has a cpu_change inside", w->cpu);
    rounds_leave_window(&v->rounds, highest);
}

/* The first records of the CPUs of the first file: a trace that begins at one moment. */
static void check_start(struct rules *v)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t cpu = 0; cpu < SIM_MAX_CPUS; cpu++)
        if (v->cpus[cpu].seen)
            first = min_u64(first, v->cpus[cpu].first_tsc);
    for (uint32_t cpu = 0; cpu < SIM_MAX_CPUS; cpu++)
        if (v->cpus[cpu].seen && v->cpus[cpu].first_tsc - first > v->even_start)
            violation(v, RULE_START, "start", v->cpus[cpu].first_window,
                      "CPU %u begins %" PRIu64 " ticks after the first CPU", cpu,
                      v->cpus[cpu].first_tsc - first);
}

static void begin_file(struct rules *v, const char *path)
{
    v->path = path;
    if (v->joined) {
        for (uint32_t cpu = 0; cpu < SIM_MAX_CPUS; cpu++)
            v->cpus[cpu].earlier_tsc = v->cpus[cpu].seen ? v->cpus[cpu].last_tsc : 0;
        rounds_begin_file(&v->rounds);
        return;
    }
    v->nr_rounds += v->rounds.count;
    memset(&v->rounds, 0, sizeof(v->rounds));
    memset(v->cpus, 0, sizeof(v->cpus));
}

static int check_file(struct rules *v, const char *path, bool is_first)
{
    struct walk_file file;
    struct walk_window w;
    int r = walk_open(path, &file);

    if (r < 0) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(-r));
        return r;
    }
    begin_file(v, path);
    while ((r = walk_next(&file, &w)) > 0) {
        v->windows++;
        if (w.cpu >= SIM_MAX_CPUS) {
            violation(v, RULE_CPU, "cpu", w.offset, "CPU %u does not exist", w.cpu);
        } else if (w.bytes) {
            rounds_enter_window(&v->rounds, w.cpu);
            check_window(v, &w);
        }
    }
    if (r < 0)
        violation(v, RULE_FORM, file.rule, file.offset, "%s", file.error);
    if (v->even_start != NO_LIMIT && (is_first || !v->joined))
        check_start(v);
    walk_close(&file);
    return 0;
}

static const char rules_usage[] =
    "usage: xensim rules [OPTION]... FILE...\n"
    "  --joined           the files are one trace, in this order\n"
    "  --even-start TICKS all CPUs begin within so many ticks of the TSC\n"
    "  --slack TICKS      a record may be that much older than its place says (0)\n"
    "  --guest            records of the class guest are wanted\n";

static int parse_arguments(int argc, char **argv, struct rules *v)
{
    static const struct option options[] = {
        {"joined", no_argument, NULL, 'j'},
        {"even-start", required_argument, NULL, 'e'},
        {"slack", required_argument, NULL, 's'},
        {"guest", no_argument, NULL, 'g'},
        {NULL, 0, NULL, 0},
    };
    int option, r = 0;

    v->even_start = NO_LIMIT;
    while (r == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'j':
            v->joined = true;
            break;
        case 'e':
            r = parse_u64(optarg, NO_LIMIT - 1, &v->even_start);
            break;
        case 's':
            r = parse_u64(optarg, INT64_MAX, &v->slack);
            break;
        case 'g':
            v->guest = true;
            break;
        default:
            r = -EINVAL;
        }
    }
    return r == 0 && optind < argc ? 0 : -EINVAL;
}

int command_rules(int argc, char **argv)
{
    struct rules *v = calloc(1, sizeof(*v));
    int r = 0;

    if (!v)
        return 1;
    if (parse_arguments(argc, argv, v) < 0) {
        (void)fputs(rules_usage, stderr);
        free(v);
        return 2;
    }
    for (int i = optind; i < argc && r == 0; i++)
        r = check_file(v, argv[i], i == optind);
    if (r == 0)
        (void)printf("{\"files\":%d,\"windows\":%" PRIu64 ",\"rounds\":%" PRIu64
                     ",\"violations\":%" PRIu64 "}\n",
                     argc - optind, v->windows, v->nr_rounds + v->rounds.count, v->violations);
    r = r < 0 || v->violations ? 1 : 0;
    free(v);
    return r;
}

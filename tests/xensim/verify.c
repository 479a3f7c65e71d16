/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `xensim verify`: proves a capture of the workload `numbered` complete.
 *
 * Every attempted record has taken a number, so per CPU: the next record's number is the last one's
 * plus 1 plus exactly what the lost_records records between them tell. With --kinds the capture was
 * filtered after Xen: then only the numbers per event are without gaps, and what is told is an
 * upper bound of what they may miss.
 *
 * Rounds: CPUs ascend within a round. A window whose CPU is not above the one before starts the
 * next round. That alone cannot tell a round that was split in two, but time can: when CPU c was
 * drained, all lower CPUs of that round had been before, so what c has in the next round cannot be
 * older than what they had in this one. (Exact, since one producer makes all records in the order
 * of time.)
 */

#include "commands.h"
#include "numbered.h"
#include "parse.h"
#include "walk.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "common/record.h"

#define MAX_FILTERS 64u

struct kind_state {
    uint32_t event;
    uint32_t next;
    uint64_t records;
    bool lost_since; /* a loss was told since the last record of this kind */
};

struct cpu_state {
    bool seen;
    bool any;
    uint64_t first;
    uint64_t next;
    uint64_t told_now; /* told since the last record */
    uint64_t told;
    uint64_t missed; /* with --kinds: gaps of the kinds' numbers */
    uint64_t records;
    uint64_t last_tsc;
    uint64_t not_before; /* TSC that a new window of this CPU cannot begin before */
    uint32_t nr_kinds;
    struct kind_state kinds[SIM_MAX_KINDS];
};

struct verify {
    struct walk_file file;
    const char *path;
    struct cpu_state *cpus; /* SIM_MAX_CPUS */
    struct parse_cpus only;
    bool has_only;
    bool warn_rounds;
    bool from_start;
    uint32_t nr_filters;
    uint32_t filters[MAX_FILTERS];
    uint64_t filter_records[MAX_FILTERS];
    const char *report;
    /* rounds */
    uint32_t last_cpu;
    uint64_t highest_tsc; /* of this round's windows so far */
    uint64_t windows;
    uint64_t rounds;
    uint64_t split_rounds;
    uint64_t wraps;
};

static _printf_(3, 4) int violation(const struct verify *v, size_t offset, const char *format, ...)
{
    va_list arguments;

    (void)fprintf(stderr, "%s: offset %zu: ", v->path, offset);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    return -EBADMSG;
}

/* The filter that lets EVENT pass, or -1. A filter without an event number is a class's mask. */
static int find_filter(const struct verify *v, uint32_t event)
{
    for (uint32_t i = 0; i < v->nr_filters; i++) {
        uint32_t f = v->filters[i];
        bool is_mask = (f & 0xfff) == 0;

        if (is_mask ? ((f & event) >> 16 && (f >> 12 & event >> 12 & 0xf)) : f == event)
            return (int)i;
    }
    return -1;
}

static struct kind_state *find_kind(struct cpu_state *c, uint32_t event)
{
    for (uint32_t i = 0; i < c->nr_kinds; i++)
        if (c->kinds[i].event == event)
            return &c->kinds[i];
    if (c->nr_kinds == SIM_MAX_KINDS)
        return NULL;
    c->kinds[c->nr_kinds].event = event;
    return &c->kinds[c->nr_kinds++];
}

static int check_number(struct verify *v, struct cpu_state *c, size_t offset,
                        const struct numbered_record *r)
{
    uint64_t expected = c->next + c->told_now;

    if (!c->any) {
        c->first = r->number;
        if (v->from_start && r->number != c->told_now)
            return violation(v, offset,
                             "CPU %u: begins with number %" PRIu64
                             ", not with 0 (told lost: %" PRIu64 ")",
                             r->cpu, r->number, c->told_now);
    } else if (r->number != expected) {
        return violation(v, offset,
                         "CPU %u: number %" PRIu64 " expected (%" PRIu64 " + %" PRIu64
                         " told lost), found %" PRIu64,
                         r->cpu, expected, c->next, c->told_now, r->number);
    }
    return 0;
}

/* The numbers per kind: without a gap where nothing was lost. */
static int check_kind(struct verify *v, struct cpu_state *c, size_t offset, uint32_t event,
                      const struct numbered_record *r)
{
    struct kind_state *k = find_kind(c, event);

    if (!k)
        return violation(v, offset, "CPU %u: more than %u kinds of events", r->cpu, SIM_MAX_KINDS);
    if (k->records && r->kind_number < k->next)
        return violation(v, offset, "CPU %u: event 0x%08x: number %u expected, found %u", r->cpu,
                         event, k->next, r->kind_number);
    if (k->records && r->kind_number > k->next) {
        c->missed += r->kind_number - k->next;
        if (!k->lost_since || c->missed > c->told)
            return violation(v, offset,
                             "CPU %u: event 0x%08x: number %u expected, found %u; %" PRIu64
                             " missed, %" PRIu64 " told lost",
                             r->cpu, event, k->next, r->kind_number, c->missed, c->told);
    }
    k->next = r->kind_number + 1;
    k->records++;
    k->lost_since = false;
    return 0;
}

static int check_filter(struct verify *v, size_t offset, uint32_t event, uint32_t cpu)
{
    int filter = find_filter(v, event);

    if (filter < 0)
        return violation(v, offset, "CPU %u: event 0x%08x was not asked for", cpu, event);
    v->filter_records[filter]++;
    return 0;
}

static int check_record(struct verify *v, uint32_t cpu, size_t offset, const uint32_t *record)
{
    struct cpu_state *c = &v->cpus[cpu];
    uint32_t event = record_event(record[0]);
    struct numbered_record r;
    int result;

    if (numbered_parse(record, &r) < 0)
        return violation(v, offset, "CPU %u: header 0x%08x is no numbered record", cpu, record[0]);
    if (r.cpu != cpu)
        return violation(v, offset, "CPU %u: a record of CPU %u", cpu, r.cpu);
    if (record_tsc(record) < c->last_tsc)
        return violation(v, offset, "CPU %u: number %" PRIu64 ": its TSC goes back", cpu, r.number);
    result = v->nr_filters ? check_filter(v, offset, event, cpu) : check_number(v, c, offset, &r);
    if (result == 0)
        result = check_kind(v, c, offset, event, &r);
    if (result < 0)
        return result;
    if (!c->any)
        c->first = r.number;
    c->any = true;
    c->next = r.number + 1;
    c->told_now = 0;
    c->records++;
    c->last_tsc = record_tsc(record);
    return 0;
}

static int check_lost(struct verify *v, uint32_t cpu, size_t offset, const uint32_t *record)
{
    struct cpu_state *c = &v->cpus[cpu];
    struct lost_record lost;

    memcpy(&lost, record, sizeof(lost));
    if (lost.count == 0)
        return violation(v, offset, "CPU %u: a lost_records record that tells of 0", cpu);
    if (((uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0]) > record_tsc(record))
        return violation(v, offset, "CPU %u: a lost_records record before its first loss", cpu);
    c->told_now += lost.count;
    c->told += lost.count;
    for (uint32_t i = 0; i < c->nr_kinds; i++)
        c->kinds[i].lost_since = true;
    return 0;
}

/* Starts a round if it must; tells the TSC that nothing in this window may be older than. */
static void enter_window(struct verify *v, const struct walk_window *w)
{
    struct cpu_state *c = &v->cpus[w->cpu];

    if (v->windows == 0 || w->cpu <= v->last_cpu) {
        v->rounds++;
        /* What the last round had tells when its higher CPUs were drained, at the earliest. */
        for (uint32_t i = 0, reached = 0; i < SIM_MAX_CPUS && v->windows; i++) {
            reached |= i > v->last_cpu;
            if (reached && v->cpus[i].not_before < v->highest_tsc)
                v->cpus[i].not_before = v->highest_tsc;
        }
        v->highest_tsc = 0;
    } else {
        for (uint32_t i = v->last_cpu + 1; i < w->cpu; i++)
            if (v->cpus[i].not_before < v->highest_tsc)
                v->cpus[i].not_before = v->highest_tsc;
    }
    c->seen = true;
    v->last_cpu = w->cpu;
    v->windows++;
}

static int check_round(struct verify *v, const struct walk_window *w, uint64_t first_tsc)
{
    if (first_tsc >= v->cpus[w->cpu].not_before)
        return 0;
    v->split_rounds++;
    if (v->warn_rounds)
        return 0;
    return violation(v, w->offset,
                     "CPU %u: round %" PRIu64 " has records (TSC %" PRIu64
                     ") that the round before should have had (drained after TSC %" PRIu64 ")",
                     w->cpu, v->rounds, first_tsc, v->cpus[w->cpu].not_before);
}

static int check_window(struct verify *v, const struct walk_window *w)
{
    uint64_t first_tsc = 0, before = v->highest_tsc;
    uint32_t offset = 0, bytes, record[RECORD_MAX_BYTES / 4];
    int r;

    for (uint32_t at = 0; (r = walk_record(w, &offset, record, &bytes)) > 0; at = offset) {
        size_t file_offset = w->offset + WINDOW_HEADER_BYTES + at;
        int result = 0;

        if (record_is_wrap(record[0]))
            v->wraps++;
        else if (record_is_lost(record[0]))
            result = check_lost(v, w->cpu, file_offset, record);
        else
            result = check_record(v, w->cpu, file_offset, record);
        if (result == 0 && !first_tsc && record_has_tsc(record[0])) {
            first_tsc = record_tsc(record);
            result = check_round(v, w, first_tsc);
        }
        if (result < 0)
            return result;
    }
    if (r < 0)
        return violation(v, w->offset + WINDOW_HEADER_BYTES + offset,
                         "CPU %u: a record is not whole, or a cpu_change inside a window", w->cpu);
    v->highest_tsc = max_u64(before, v->cpus[w->cpu].last_tsc);
    return 0;
}

static int check_windows(struct verify *v)
{
    struct walk_window w;
    int r;

    while ((r = walk_next(&v->file, &w)) > 0) {
        if (w.cpu >= SIM_MAX_CPUS)
            return violation(v, w.offset, "CPU %u does not exist", w.cpu);
        if (v->has_only && !parse_cpus_has(&v->only, w.cpu))
            return violation(v, w.offset, "CPU %u was not asked for", w.cpu);
        if (w.bytes == 0)
            continue;
        enter_window(v, &w);
        r = check_window(v, &w);
        if (r < 0)
            return r;
    }
    return r < 0 ? violation(v, v->file.offset, "%s", v->file.error) : 0;
}

/* What must be in the file and is not. */
static int check_presence(const struct verify *v)
{
    for (uint32_t cpu = 0; v->has_only && cpu < SIM_MAX_CPUS; cpu++)
        if (parse_cpus_has(&v->only, cpu) && !v->cpus[cpu].any)
            return violation(v, v->file.bytes, "CPU %u has no record", cpu);
    for (uint32_t i = 0; i < v->nr_filters; i++)
        if (!v->filter_records[i])
            return violation(v, v->file.bytes, "no record of 0x%08x", v->filters[i]);
    return 0;
}

static uint64_t find_field(const char *text, const char *name)
{
    char key[64];
    const char *p;

    (void)snprintf(key, sizeof(key), "\"%s\":", name);
    p = strstr(text, key);
    return p ? strtoull(p + strlen(key), NULL, 10) : UINT64_MAX;
}

/* The producer's report: nothing it made after the last record may be missing untold. */
static int check_report(const struct verify *v)
{
    _cleanup_file_ FILE *f = fopen(v->report, "re");
    char line[1024];

    if (!f)
        return violation(v, 0, "cannot read %s: %s", v->report, strerror(errno));
    while (fgets(line, sizeof(line), f)) {
        uint64_t cpu, next, untold;
        const struct cpu_state *c;

        if (strncmp(line, "{\"cpu\":", 7) != 0)
            continue;
        cpu = find_field(line, "cpu");
        if (cpu >= SIM_MAX_CPUS)
            return violation(v, 0, "%s is no report", v->report);
        c = &v->cpus[cpu];
        next = find_field(line, "next_number");
        untold = find_field(line, "vanished") + find_field(line, "pending");
        if (c->next + c->told_now + untold != next)
            return violation(v, v->file.bytes,
                             "CPU %" PRIu64 ": ends before number %" PRIu64 ", %" PRIu64
                             " were made and %" PRIu64 " of them lost untold",
                             cpu, c->next + c->told_now, next, untold);
    }
    return 0;
}

static void print_summary(const struct verify *v)
{
    uint64_t records = 0, told = 0;

    for (uint32_t cpu = 0; cpu < SIM_MAX_CPUS; cpu++) {
        const struct cpu_state *c = &v->cpus[cpu];

        if (!c->seen)
            continue;
        (void)printf("{\"cpu\":%u,\"records\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"first\":%" PRIu64
                     ",\"next\":%" PRIu64 ",\"kinds\":%u}\n",
                     cpu, c->records, c->told, c->first, c->next, c->nr_kinds);
        records += c->records;
        told += c->told;
    }
    (void)printf("{\"file\":\"%s\",\"ok\":true,\"bytes\":%zu,\"windows\":%" PRIu64
                 ",\"rounds\":%" PRIu64 ",\"split_rounds\":%" PRIu64 ",\"wraps\":%" PRIu64
                 ",\"records\":%" PRIu64 ",\"lost\":%" PRIu64 "}\n",
                 v->path, v->file.bytes, v->windows, v->rounds, v->split_rounds, v->wraps, records,
                 told);
}

static const char verify_usage[] =
    "usage: xensim verify [OPTION]... FILE\n"
    "  --cpus LIST       these CPUs, all of them and no other, must be in the file\n"
    "  --kinds LIST      filtered after Xen to these events (0x00021f01) or classes (0x00021000):\n"
    "                    complete for each of them, and no other is in the file\n"
    "  --from-start      every CPU begins with number 0, or tells what is lost before\n"
    "  --report FILE     of xensim run: the file has everything up to the end of the run\n"
    "  --warn-rounds     only count rounds that were split, and do not fail\n";

static int parse_arguments(int argc, char **argv, struct verify *v)
{
    static const struct option options[] = {
        {"cpus", required_argument, NULL, 'c'},  {"kinds", required_argument, NULL, 'k'},
        {"from-start", no_argument, NULL, 's'},  {"report", required_argument, NULL, 'r'},
        {"warn-rounds", no_argument, NULL, 'w'}, {NULL, 0, NULL, 0},
    };
    int option, r = 0;

    while (r == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            v->has_only = true;
            r = parse_cpus(optarg, &v->only);
            break;
        case 'k':
            r = parse_u32_list(optarg, v->filters, MAX_FILTERS, &v->nr_filters);
            break;
        case 's':
            v->from_start = true;
            break;
        case 'r':
            v->report = optarg;
            break;
        case 'w':
            v->warn_rounds = true;
            break;
        default:
            r = -EINVAL;
        }
    }
    if (r == 0 && optind != argc - 1)
        r = -EINVAL;
    if (r == 0)
        v->path = argv[optind];
    return r;
}

int command_verify(int argc, char **argv)
{
    struct verify v = {0};
    int r;

    if (parse_arguments(argc, argv, &v) < 0) {
        (void)fputs(verify_usage, stderr);
        return 2;
    }
    v.cpus = calloc(SIM_MAX_CPUS, sizeof(*v.cpus));
    if (!v.cpus)
        return 1;
    r = walk_open(v.path, &v.file);
    if (r < 0) {
        (void)fprintf(stderr, "%s: %s\n", v.path, strerror(-r));
    } else {
        r = check_windows(&v);
        if (r == 0)
            r = check_presence(&v);
        if (r == 0 && v.report)
            r = check_report(&v);
        if (r == 0)
            print_summary(&v);
        walk_close(&v.file);
    }
    free(v.cpus);
    return r < 0 ? 1 : 0;
}

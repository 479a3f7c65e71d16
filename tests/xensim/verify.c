// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `xensim verify`: proves a capture of the workload `numbered` complete.
 *
 * Every attempted record has taken a number, so per CPU: the next record's number is the last one's
 * plus 1 plus exactly what the lost_records records between them tell. With --kinds the capture was
 * filtered after Xen: then only the numbers per event are without gaps, and what is told is an
 * upper bound of what they may miss.
 *
 * Several files are one trace, in their order: the segments of a capture, snapshots one after the
 * other. Rounds: see rounds.h.
 */

#include "commands.h"
#include "numbered.h"
#include "verify.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "common/record.h"

int verify_violation(const struct verify *v, size_t offset, const char *format, ...)
{
    va_list arguments;

    (void)fprintf(stderr, "%s: offset %zu: ", v->path, offset);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    return -EBADMSG;
}

static bool is_ignored(const struct verify *v, uint32_t event)
{
    for (uint32_t i = 0; i < v->nr_ignored; i++)
        if (v->ignored[i] == event)
            return true;
    return false;
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

static struct verify_kind *find_kind(struct verify_cpu *c, uint32_t event)
{
    for (uint32_t i = 0; i < c->nr_kinds; i++)
        if (c->kinds[i].event == event)
            return &c->kinds[i];
    if (c->nr_kinds == SIM_MAX_KINDS)
        return NULL;
    c->kinds[c->nr_kinds] = (struct verify_kind){.event = event};
    return &c->kinds[c->nr_kinds++];
}

static int check_number(struct verify *v, struct verify_cpu *c, size_t offset,
                        const struct numbered_record *r)
{
    uint64_t expected = c->next + c->told_now;

    if (!c->any) {
        if (c->any_earlier && r->number > c->earlier + c->told_now)
            return verify_violation(v, offset,
                                    "CPU %u: begins with number %" PRIu64
                                    ", the file before ends with %" PRIu64 " (told lost: %" PRIu64
                                    ")",
                                    r->cpu, r->number, c->earlier - 1, c->told_now);
        if (v->from_start && !c->any_earlier && r->number != c->told_now)
            return verify_violation(v, offset,
                                    "CPU %u: begins with number %" PRIu64
                                    ", not with 0 (told lost: %" PRIu64 ")",
                                    r->cpu, r->number, c->told_now);
    } else if (r->number != expected) {
        return verify_violation(v, offset,
                                "CPU %u: number %" PRIu64 " expected (%" PRIu64 " + %" PRIu64
                                " told lost), found %" PRIu64,
                                r->cpu, expected, c->next, c->told_now, r->number);
    }
    return 0;
}

/* The numbers per kind: without a gap where nothing was lost. */
static int check_kind(struct verify *v, struct verify_cpu *c, size_t offset, uint32_t event,
                      const struct numbered_record *r)
{
    struct verify_kind *k = find_kind(c, event);

    if (!k)
        return verify_violation(v, offset, "CPU %u: more than %u kinds of events", r->cpu,
                                SIM_MAX_KINDS);
    if (k->records && r->kind_number < k->next)
        return verify_violation(v, offset, "CPU %u: event 0x%08x: number %u expected, found %u",
                                r->cpu, event, k->next, r->kind_number);
    if (k->records && r->kind_number > k->next) {
        c->missed += r->kind_number - k->next;
        if (!k->lost_since || c->missed > c->told)
            return verify_violation(v, offset,
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
        return verify_violation(v, offset, "CPU %u: event 0x%08x was not asked for", cpu, event);
    v->filter_records[filter]++;
    return 0;
}

static void count_record(struct verify_account *a, const struct numbered_record *r, uint64_t tsc)
{
    struct verify_span *s = &a->cpus[r->cpu];

    if (s->records == 0) {
        s->first = r->number;
        s->first_tsc = tsc;
    }
    s->last = r->number;
    s->last_tsc = tsc;
    s->records++;
    a->records++;
}

static int check_record(struct verify *v, uint32_t cpu, size_t offset, const uint32_t *record)
{
    struct verify_cpu *c = &v->cpus[cpu];
    uint32_t event = record_event(record[0]);
    struct numbered_record r;
    int result;

    if (numbered_parse(record, &r) < 0)
        return verify_violation(v, offset, "CPU %u: header 0x%08x is no numbered record", cpu,
                                record[0]);
    if (r.cpu != cpu)
        return verify_violation(v, offset, "CPU %u: a record of CPU %u", cpu, r.cpu);
    if (record_tsc(record) < c->last_tsc)
        return verify_violation(v, offset, "CPU %u: number %" PRIu64 ": its TSC goes back", cpu,
                                r.number);
    result = v->nr_filters ? check_filter(v, offset, event, cpu) : check_number(v, c, offset, &r);
    if (result == 0)
        result = check_kind(v, c, offset, event, &r);
    if (result < 0)
        return result;
    if (!c->begun)
        c->begin = r.number - c->told_now;
    c->begun = true;
    c->any = true;
    c->next = r.number + 1;
    c->told_now = 0;
    c->last_tsc = record_tsc(record);
    count_record(&v->now, &r, c->last_tsc);
    count_record(&v->total, &r, c->last_tsc);
    return 0;
}

static void count_lost(struct verify_account *a, uint32_t cpu, uint32_t count)
{
    a->cpus[cpu].lost += count;
    a->lost += count;
}

static int check_lost(struct verify *v, uint32_t cpu, size_t offset, const uint32_t *record)
{
    struct verify_cpu *c = &v->cpus[cpu];
    struct lost_record lost;

    memcpy(&lost, record, sizeof(lost));
    if (lost.count == 0)
        return verify_violation(v, offset, "CPU %u: a lost_records record that tells of 0", cpu);
    if (((uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0]) > record_tsc(record))
        return verify_violation(v, offset, "CPU %u: a lost_records record before its first loss",
                                cpu);
    c->told_now += lost.count;
    c->told += lost.count;
    count_lost(&v->now, cpu, lost.count);
    count_lost(&v->total, cpu, lost.count);
    for (uint32_t i = 0; i < c->nr_kinds; i++)
        c->kinds[i].lost_since = true;
    return 0;
}

static int check_round(struct verify *v, const struct walk_window *w, uint64_t tsc)
{
    uint64_t not_before = v->rounds.not_before[w->cpu];

    if (tsc >= not_before)
        return 0;
    v->now.split_rounds++;
    v->total.split_rounds++;
    if (v->warn_rounds)
        return 0;
    return verify_violation(v, w->offset,
                            "CPU %u: round %" PRIu64 " has records (TSC %" PRIu64
                            ") that a round before should have had (drained after TSC %" PRIu64 ")",
                            w->cpu, v->rounds.count, tsc, not_before);
}

static void enter_window(struct verify *v, const struct walk_window *w)
{
    uint64_t rounds = v->rounds.count;

    rounds_enter_window(&v->rounds, w->cpu);
    v->now.rounds += v->rounds.count - rounds;
    v->now.windows++;
    v->total.windows++;
    v->now.cpus[w->cpu].seen = true;
    v->total.cpus[w->cpu].seen = true;
}

/* Does its TSC tell when it came into the buffer? */
static bool is_timed(uint32_t header)
{
    return record_has_tsc(header) && !record_is_wrap(header) && !record_is_lost(header);
}

static int check_window(struct verify *v, const struct walk_window *w)
{
    uint64_t highest_tsc = 0;
    bool timed = false; /* the first record of time was seen */
    uint32_t offset = 0, bytes, record[RECORD_MAX_BYTES / 4];
    int r;

    for (uint32_t at = 0; (r = walk_record(w, &offset, record, &bytes)) > 0; at = offset) {
        size_t file_offset = w->offset + WINDOW_HEADER_BYTES + at;
        int result = 0;

        if (record_is_wrap(record[0]))
            v->now.wraps++;
        else if (record_is_lost(record[0]))
            result = check_lost(v, w->cpu, file_offset, record);
        else if (!is_ignored(v, record_event(record[0])))
            result = check_record(v, w->cpu, file_offset, record);
        if (result == 0 && !timed && is_timed(record[0])) {
            timed = true;
            result = check_round(v, w, record_tsc(record));
        }
        if (result < 0)
            return result;
        if (!record_is_wrap(record[0]) && record_has_tsc(record[0]))
            highest_tsc = record_tsc(record);
    }
    if (r < 0)
        return verify_violation(v, w->offset + WINDOW_HEADER_BYTES + offset,
                                "CPU %u: a record is not whole, or a cpu_change inside a window",
                                w->cpu);
    rounds_leave_window(&v->rounds, highest_tsc);
    return 0;
}

static int check_windows(struct verify *v)
{
    struct walk_window w;
    int r;

    while ((r = walk_next(&v->file, &w)) > 0) {
        if (w.cpu >= SIM_MAX_CPUS)
            return verify_violation(v, w.offset, "CPU %u does not exist", w.cpu);
        if (v->has_only && !parse_cpus_has(&v->only, w.cpu))
            return verify_violation(v, w.offset, "CPU %u was not asked for", w.cpu);
        if (w.bytes == 0)
            continue;
        enter_window(v, &w);
        r = check_window(v, &w);
        if (r < 0)
            return r;
    }
    return r < 0 ? verify_violation(v, v->file.offset, "%s", v->file.error) : 0;
}

/* What must be in the file and is not. */
static int check_presence(const struct verify *v)
{
    for (uint32_t cpu = 0; v->has_only && cpu < SIM_MAX_CPUS; cpu++)
        if (parse_cpus_has(&v->only, cpu) && !v->cpus[cpu].any)
            return verify_violation(v, v->file.bytes, "CPU %u has no record", cpu);
    for (uint32_t i = 0; i < v->nr_filters; i++)
        if (!v->filter_records[i])
            return verify_violation(v, v->file.bytes, "no record of 0x%08x", v->filters[i]);
    return 0;
}

static const char verify_usage[] =
    "usage: xensim verify [OPTION]... FILE...       several files are one trace, in this order\n"
    "  --overlap         a file may begin with what the one before has too, as snapshots do\n"
    "  --cpus LIST       these CPUs, all of them and no other, must be in the file\n"
    "  --kinds LIST      filtered after Xen to these events (0x00021f01) or classes (0x00021000):\n"
    "                    complete for each of them, and no other is in the file\n"
    "  --ignore LIST     events that `xensim event` inserted among the numbered ones\n"
    "  --from-start      every CPU begins with number 0, or tells what is lost before\n"
    "  --report FILE     of xensim run, or of xensim stat while the producer was paused: the file\n"
    "                    has everything up to then\n"
    "  --beside FILE     FILE has all records of that time and some from before; for these two:\n"
    "  --complete-from TSC   no record from then on is missing, but for what is told\n"
    "  --one-start       there is a TSC at which all CPUs begin\n"
    "  --json FILE       writes counts, first and last numbers and TSCs, per file and CPU\n"
    "  --warn-rounds     only count rounds that were split, and do not fail\n";

static int parse_arguments(int argc, char **argv, struct verify *v)
{
    static const struct option options[] = {
        {"cpus", required_argument, NULL, 'c'},   {"ignore", required_argument, NULL, 'i'},
        {"kinds", required_argument, NULL, 'k'},  {"from-start", no_argument, NULL, 's'},
        {"overlap", no_argument, NULL, 'o'},      {"beside", required_argument, NULL, 'b'},
        {"one-start", no_argument, NULL, '1'},    {"complete-from", required_argument, NULL, 'f'},
        {"report", required_argument, NULL, 'r'}, {"warn-rounds", no_argument, NULL, 'w'},
        {"json", required_argument, NULL, 'j'},   {NULL, 0, NULL, 0},
    };
    int option, r = 0;

    while (r == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            v->has_only = true;
            r = parse_cpus(optarg, &v->only);
            break;
        case 'k':
            r = parse_u32_list(optarg, v->filters, VERIFY_MOST_FILTERS, &v->nr_filters);
            break;
        case 'i':
            r = parse_u32_list(optarg, v->ignored, VERIFY_MOST_FILTERS, &v->nr_ignored);
            break;
        case 's':
            v->from_start = true;
            break;
        case 'r':
            v->report = optarg;
            break;
        case 'b':
            v->beside = optarg;
            break;
        case '1':
            v->one_start = true;
            break;
        case 'f':
            v->complete_from = strtoull(optarg, NULL, 0);
            r = v->complete_from ? 0 : -EINVAL;
            break;
        case 'o':
            v->overlap = true;
            break;
        case 'j':
            v->json = optarg;
            break;
        case 'w':
            v->warn_rounds = true;
            break;
        default:
            r = -EINVAL;
        }
    }
    if (!v->beside && (v->one_start || v->complete_from))
        r = -EINVAL;
    return r == 0 && optind < argc ? 0 : -EINVAL;
}

/* Each file is a trace of its own; nothing may be missing between them. */
static void begin_overlapping(struct verify *v)
{
    for (uint32_t cpu = 0; cpu < SIM_MAX_CPUS; cpu++) {
        struct verify_cpu *c = &v->cpus[cpu];

        if (c->any)
            c->earlier = c->next + c->told_now;
        c->any_earlier = c->any_earlier || c->any;
        c->any = false;
        c->told_now = 0;
        c->last_tsc = 0;
        c->nr_kinds = 0;
    }
    memset(&v->rounds, 0, sizeof(v->rounds));
}

static int check_file(struct verify *v, const char *path)
{
    int r = walk_open(path, &v->file);

    v->path = path;
    if (r < 0)
        return r;
    memset(&v->now, 0, sizeof(v->now));
    v->now.bytes = v->file.bytes;
    rounds_begin_file(&v->rounds);
    if (v->overlap)
        begin_overlapping(v);
    r = check_windows(v);
    v->total.bytes += v->now.bytes;
    v->total.rounds += v->now.rounds;
    v->total.wraps += v->now.wraps;
    walk_close(&v->file);
    return r;
}

static int check_files(struct verify *v, char **paths, FILE *json)
{
    int r = 0;

    if (json)
        verify_report_begin_json(json);
    for (int i = 0; paths[i] && r == 0; i++) {
        r = check_file(v, paths[i]);
        if (r == 0 && json)
            verify_report_add_json(json, v, i == 0);
    }
    if (r == 0)
        r = check_presence(v);
    if (r == 0 && v->report)
        r = verify_report_check(v);
    if (r == 0 && v->beside)
        r = verify_beside_check(v);
    if (r == 0 && json)
        verify_report_end_json(json, v);
    if (r == 0)
        verify_report_print(v, paths[0]);
    return r;
}

static int verify(struct verify *v, char **paths)
{
    FILE *json = v->json ? fopen(v->json, "we") : NULL;
    int r = v->json && !json ? -errno : 0;

    if (r == 0)
        r = check_files(v, paths, json);
    if (r == 0 && json && ferror(json))
        r = -EIO;
    if (json && fclose(json) != 0 && r == 0)
        r = -errno;
    return r;
}

int command_verify(int argc, char **argv)
{
    struct verify *v = calloc(1, sizeof(*v));
    int r;

    if (!v)
        return 1;
    if (parse_arguments(argc, argv, v) < 0) {
        (void)fputs(verify_usage, stderr);
        free(v);
        return 2;
    }
    r = verify(v, argv + optind);
    if (r < 0 && r != -EBADMSG) /* that was told with its place */
        (void)fprintf(stderr, "xensim: %s: %s\n", v->path ? v->path : v->json, strerror(-r));
    free(v);
    return r < 0 ? 1 : 0;
}

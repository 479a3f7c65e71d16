// SPDX-License-Identifier: GPL-2.0-or-later
#include "verify.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static uint64_t find_field(const char *text, const char *name)
{
    char key[64];
    const char *p;

    (void)snprintf(key, sizeof(key), "\"%s\":", name);
    p = strstr(text, key);
    return p ? strtoull(p + strlen(key), NULL, 10) : UINT64_MAX;
}

/* `xensim stat` has other losses under `pending_lost`, the report of a run under `pending`. */
static int check_report_line(const struct verify *v, const char *line)
{
    uint64_t cpu = find_field(line, "cpu"), next = find_field(line, "next_number");
    uint64_t pending = find_field(line, "pending");
    const struct verify_cpu *c;
    uint64_t untold;

    if (cpu >= SIM_MAX_CPUS || next == UINT64_MAX)
        return verify_violation(v, 0, "%s is no report", v->report);
    if (v->has_only && !parse_cpus_has(&v->only, (uint32_t)cpu))
        return 0;
    if (pending == UINT64_MAX)
        pending = find_field(line, "pending_lost");
    c = &v->cpus[cpu];
    untold = find_field(line, "vanished") + pending;
    if (c->next + c->told_now + untold != next)
        return verify_violation(v, v->file.bytes,
                                "CPU %" PRIu64 ": ends before number %" PRIu64 ", %" PRIu64
                                " were made and %" PRIu64 " of them lost untold",
                                cpu, c->next + c->told_now, next, untold);
    return 0;
}

int verify_report_check(const struct verify *v)
{
    _cleanup_file_ FILE *f = fopen(v->report, "re");
    char line[1024];
    int r = 0;

    if (!f)
        return verify_violation(v, 0, "cannot read %s: %s", v->report, strerror(errno));
    while (r == 0 && fgets(line, sizeof(line), f))
        if (strncmp(line, "{\"cpu\":", 7) == 0)
            r = check_report_line(v, line);
    return r;
}

void verify_report_print(const struct verify *v, const char *path)
{
    const struct verify_account *a = &v->total;

    for (uint32_t cpu = 0; cpu < SIM_MAX_CPUS; cpu++) {
        const struct verify_span *s = &a->cpus[cpu];

        if (s->seen)
            (void)printf("{\"cpu\":%u,\"records\":%" PRIu64 ",\"lost\":%" PRIu64
                         ",\"first\":%" PRIu64 ",\"next\":%" PRIu64 ",\"kinds\":%u}\n",
                         cpu, s->records, s->lost, s->first, v->cpus[cpu].next,
                         v->cpus[cpu].nr_kinds);
    }
    (void)printf("{\"file\":\"%s\",\"ok\":true,\"bytes\":%" PRIu64 ",\"windows\":%" PRIu64
                 ",\"rounds\":%" PRIu64 ",\"split_rounds\":%" PRIu64 ",\"wraps\":%" PRIu64
                 ",\"records\":%" PRIu64 ",\"lost\":%" PRIu64 "}\n",
                 path, a->bytes, a->windows, a->rounds, a->split_rounds, a->wraps, a->records,
                 a->lost);
}

static void write_string(FILE *f, const char *text)
{
    (void)fputc('"', f);
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            (void)fputc('\\', f);
        (void)fputc(*p, f);
    }
    (void)fputc('"', f);
}

static void write_span(FILE *f, uint32_t cpu, const struct verify_span *s)
{
    (void)fprintf(f, "\"%u\":{\"records\":%" PRIu64 ",\"lost\":%" PRIu64, cpu, s->records, s->lost);
    if (s->records)
        (void)fprintf(f,
                      ",\"first\":%" PRIu64 ",\"last\":%" PRIu64 ",\"first_tsc\":%" PRIu64
                      ",\"last_tsc\":%" PRIu64,
                      s->first, s->last, s->first_tsc, s->last_tsc);
    (void)fputc('}', f);
}

static void write_account(FILE *f, const struct verify_account *a)
{
    const char *comma = "\n";

    (void)fprintf(f,
                  "\"bytes\":%" PRIu64 ",\"windows\":%" PRIu64 ",\"rounds\":%" PRIu64
                  ",\"split_rounds\":%" PRIu64 ",\"wraps\":%" PRIu64 ",\"records\":%" PRIu64
                  ",\"lost\":%" PRIu64 ",\"cpus\":{",
                  a->bytes, a->windows, a->rounds, a->split_rounds, a->wraps, a->records, a->lost);
    for (uint32_t cpu = 0; cpu < SIM_MAX_CPUS; cpu++) {
        if (!a->cpus[cpu].seen)
            continue;
        (void)fputs(comma, f);
        write_span(f, cpu, &a->cpus[cpu]);
        comma = ",\n";
    }
    (void)fputs("}", f);
}

void verify_report_begin_json(FILE *f)
{
    (void)fputs("{\"files\":[", f);
}

void verify_report_add_json(FILE *f, const struct verify *v, bool is_first)
{
    (void)fputs(is_first ? "\n{\"path\":" : ",\n{\"path\":", f);
    write_string(f, v->path);
    (void)fputc(',', f);
    write_account(f, &v->now);
    (void)fputc('}', f);
}

void verify_report_end_json(FILE *f, const struct verify *v)
{
    (void)fputs("],\n\"total\":{", f);
    write_account(f, &v->total);
    (void)fputs("}}\n", f);
}

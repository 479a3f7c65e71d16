// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/cpu-lines.h"

#include <errno.h>
#include <string.h>

#include "common/cpu-set.h"
#include "common/units.h"

uint64_t cpu_lines_per_second(uint64_t before, uint64_t now, uint64_t elapsed_usec)
{
    if (!elapsed_usec || now <= before)
        return 0;
    return (uint64_t)((unsigned __int128)(now - before) * USEC_PER_SEC / elapsed_usec);
}

/* A session of the same name may have ended, and another one begun. */
struct json_object *cpu_lines_find_session(struct json_object *before, struct json_object *session)
{
    struct json_object *sessions = doc_array(before, "sessions");

    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *other = doc_at(sessions, i);

        if (strcmp(doc_text(other, "name", ""), doc_text(session, "name", "")) == 0 &&
            doc_number(other, "started.realtime_ns") == doc_number(session, "started.realtime_ns"))
            return other;
    }
    return NULL;
}

/* A document is mostly as the one before it. */
static struct json_object *find_cpu(struct json_object *cpus, size_t i, uint64_t cpu)
{
    struct json_object *found = i < doc_length(cpus) ? doc_at(cpus, i) : NULL;

    return found && doc_number(found, "cpu") == cpu ? found : NULL;
}

static uint64_t lost_of(struct json_object *cpu)
{
    return doc_number(cpu, "lost") + doc_number(cpu, "dropped");
}

static uint64_t records_of(struct json_object *cpu)
{
    return doc_number(cpu, "delivered") + doc_number(cpu, "evicted");
}

static void merge(struct cpu_line *line, struct json_object *cpu, struct json_object *before,
                  uint64_t elapsed_usec)
{
    uint64_t records = records_of(cpu), lost = lost_of(cpu);

    line->fill_percent = max_u64(line->fill_percent, min_u64(doc_number(cpu, "fill_percent"), 100));
    line->records = max_u64(line->records, records);
    line->lost = max_u64(line->lost, lost);
    if (!before)
        return;
    line->records_per_second = max_u64(
        line->records_per_second, cpu_lines_per_second(records_of(before), records, elapsed_usec));
    line->lost_per_second =
        max_u64(line->lost_per_second, cpu_lines_per_second(lost_of(before), lost, elapsed_usec));
    line->loses = line->loses || lost > lost_of(before);
}

/* LINES has a place for each possible CPU; SEEN has those that are used. */
static void read_session(struct cpu_lines *lines, struct cpu_set *seen, struct json_object *session,
                         struct json_object *before, uint64_t elapsed_usec)
{
    struct json_object *cpus = doc_array(session, "ledger.cpus");
    struct json_object *cpus_before = doc_array(before, "ledger.cpus");
    _cleanup_free_ char *error = NULL;
    struct cpu_set buffers = {0};

    if (cpu_set_parse(doc_text(session, "buffers.cpus", "all"), CPU_SET_MAX, &buffers, &error) < 0)
        buffers = (struct cpu_set){0};
    for (size_t i = 0; i < doc_length(cpus); i++) {
        struct json_object *cpu = doc_at(cpus, i);
        uint64_t number = doc_number(cpu, "cpu");

        if (!doc_find(cpu, "cpu") || number >= CPU_SET_MAX)
            continue;
        cpu_set_add(seen, (unsigned int)number);
        lines->lines[number].has_buffer = cpu_set_has(&buffers, (unsigned int)number);
        merge(&lines->lines[number], cpu, find_cpu(cpus_before, i, number), elapsed_usec);
    }
}

static void add_up(struct cpu_lines *lines)
{
    struct cpu_line *sum = &lines->sum;

    for (unsigned int i = 0; i < lines->count; i++) {
        const struct cpu_line *line = &lines->lines[i];

        sum->fill_percent = max_u64(sum->fill_percent, line->fill_percent);
        sum->records += line->records;
        sum->lost += line->lost;
        sum->records_per_second += line->records_per_second;
        sum->lost_per_second += line->lost_per_second;
        sum->loses = sum->loses || line->loses;
    }
}

int cpu_lines_read(struct cpu_lines *lines, struct json_object *status, struct json_object *before,
                   uint64_t elapsed_usec)
{
    struct json_object *sessions = doc_array(status, "sessions");
    struct cpu_set seen = {0};

    *lines = (struct cpu_lines){.has_rates = before && elapsed_usec};
    lines->lines = calloc(CPU_SET_MAX, sizeof(*lines->lines));
    if (!lines->lines)
        return -ENOMEM;
    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);

        if (!doc_session_has_ended(session))
            read_session(lines, &seen, session, cpu_lines_find_session(before, session),
                         elapsed_usec);
    }
    for (unsigned int cpu = 0; cpu < CPU_SET_MAX; cpu++) {
        if (!cpu_set_has(&seen, cpu))
            continue;
        lines->lines[lines->count] = lines->lines[cpu];
        lines->lines[lines->count++].cpu = cpu;
    }
    add_up(lines);
    return 0;
}

void cpu_lines_done(struct cpu_lines *lines)
{
    free(lines->lines);
    *lines = (struct cpu_lines){0};
}

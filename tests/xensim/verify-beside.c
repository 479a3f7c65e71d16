// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `xensim verify --beside`: where a capture begins, held against another one of the same time that
 * has all records. Only that one knows the TSCs of what came before the beginning.
 */
#include "verify.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/record.h"
#include "numbered.h"

/* What the other one has of a CPU. */
struct beside_cpu {
    bool seen;
    uint64_t first_tsc;
    uint64_t before_tsc; /* of the last record before the capture begins; 0: there is none */
    bool has_begin;
    uint64_t begin_tsc; /* of the record that the capture begins with, or the next */
    bool has_complete;
    uint64_t complete; /* the number of the first that is not older than --complete-from */
};

static void note_record(const struct verify *v, struct beside_cpu *cpu,
                        const struct numbered_record *r, uint64_t tsc)
{
    const struct verify_cpu *capture = &v->cpus[r->cpu];

    if (!cpu->seen)
        cpu->first_tsc = tsc;
    cpu->seen = true;
    if (capture->begun && r->number < capture->begin)
        cpu->before_tsc = tsc;
    if (capture->begun && r->number >= capture->begin && !cpu->has_begin) {
        cpu->has_begin = true;
        cpu->begin_tsc = tsc;
    }
    if (v->complete_from && tsc >= v->complete_from && !cpu->has_complete) {
        cpu->has_complete = true;
        cpu->complete = r->number;
    }
}

static int read_beside(const struct verify *v, struct walk_file *file, struct beside_cpu *cpus)
{
    struct walk_window w;
    int r;

    while ((r = walk_next(file, &w)) > 0) {
        uint32_t offset = 0, bytes, record[RECORD_MAX_BYTES / 4];
        struct numbered_record numbered;

        while (w.cpu < SIM_MAX_CPUS && walk_record(&w, &offset, record, &bytes) > 0)
            if (record_has_tsc(record[0]) && numbered_parse(record, &numbered) == 0 &&
                numbered.cpu == w.cpu)
                note_record(v, &cpus[w.cpu], &numbered, record_tsc(record));
    }
    return r;
}

static int check_complete(const struct verify *v, uint32_t cpu, const struct beside_cpu *beside)
{
    const struct verify_cpu *capture = &v->cpus[cpu];

    if (beside->first_tsc >= v->complete_from)
        return verify_violation(v, 0, "CPU %u: %s begins only at TSC %" PRIu64, cpu, v->beside,
                                beside->first_tsc);
    if (beside->has_complete && (!capture->begun || capture->begin > beside->complete))
        return verify_violation(v, 0,
                                "CPU %u: begins with number %" PRIu64 ", not complete from TSC "
                                "%" PRIu64 " on, which is number %" PRIu64,
                                cpu, capture->begun ? capture->begin : 0, v->complete_from,
                                beside->complete);
    return 0;
}

/* There must be a TSC at which all of its CPUs begin. */
static int check_one_start(const struct verify *v, const struct beside_cpu *cpus)
{
    uint64_t after_tsc = 0, until_tsc = UINT64_MAX;
    uint32_t after_cpu = 0, until_cpu = 0;

    for (uint32_t cpu = 0; cpu < SIM_MAX_CPUS; cpu++) {
        if (!v->cpus[cpu].begun)
            continue;
        if (cpus[cpu].before_tsc == 0 || !cpus[cpu].has_begin)
            return verify_violation(v, 0, "CPU %u: %s has not what comes before", cpu, v->beside);
        if (cpus[cpu].before_tsc > after_tsc) {
            after_tsc = cpus[cpu].before_tsc;
            after_cpu = cpu;
        }
        if (cpus[cpu].begin_tsc < until_tsc) {
            until_tsc = cpus[cpu].begin_tsc;
            until_cpu = cpu;
        }
    }
    if (after_tsc < until_tsc)
        return 0;
    return verify_violation(v, 0,
                            "CPU %u has a record of TSC %" PRIu64
                            ", CPU %u misses one of TSC %" PRIu64 ": no one start",
                            until_cpu, until_tsc, after_cpu, after_tsc);
}

int verify_beside_check(const struct verify *v)
{
    struct beside_cpu *cpus = calloc(SIM_MAX_CPUS, sizeof(*cpus));
    struct walk_file file;
    int r;

    if (!cpus)
        return -ENOMEM;
    r = walk_open(v->beside, &file);
    if (r >= 0) {
        r = read_beside(v, &file, cpus);
        walk_close(&file);
    }
    if (r < 0)
        r = verify_violation(v, 0, "cannot read %s", v->beside);
    for (uint32_t cpu = 0; r == 0 && v->complete_from && cpu < SIM_MAX_CPUS; cpu++)
        if (cpus[cpu].seen && (!v->has_only || parse_cpus_has(&v->only, cpu)))
            r = check_complete(v, cpu, &cpus[cpu]);
    if (r == 0 && v->one_start)
        r = check_one_start(v, cpus);
    free(cpus);
    return r;
}

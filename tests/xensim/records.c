// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `xensim records`: what is in a file per CPU, however it was cut into windows. Lost and wrap
 * records are left out: they depend on when the consumer came by. Two captures of the same
 * deterministic replay print the same lines.
 */

#include "commands.h"
#include "sim.h"
#include "walk.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/record.h"

struct cpu_records {
    uint64_t count;
    uint64_t bytes;
    uint64_t hash;
};

struct options {
    bool verbose;
    bool without_tsc;
    const char *path;
};

/* FNV-1a, by words: it tells files apart, it need not resist anybody. */
static uint64_t add_to_hash(uint64_t hash, const uint32_t *words, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        hash = (hash ^ words[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void dump(uint32_t cpu, const uint32_t *record, uint32_t words)
{
    (void)printf("%u", cpu);
    for (uint32_t i = 0; i < words; i++)
        (void)printf(" %08x", record[i]);
    (void)putchar('\n');
}

static int add_window(const struct walk_window *w, const struct options *o, struct cpu_records *cpu)
{
    uint32_t offset = 0, bytes, record[RECORD_MAX_BYTES / 4];
    int r;

    while ((r = walk_record(w, &offset, record, &bytes)) > 0) {
        if (record_is_wrap(record[0]) || record_is_lost(record[0]))
            continue;
        if (o->without_tsc && record_has_tsc(record[0]))
            record[1] = record[2] = 0;
        if (o->verbose)
            dump(w->cpu, record, bytes / 4);
        cpu->hash = add_to_hash(cpu->hash, record, bytes / 4);
        cpu->count++;
        cpu->bytes += bytes;
    }
    return r;
}

static int print_records(struct walk_file *file, const struct options *o, struct cpu_records *cpus)
{
    struct walk_window w;
    int r;

    while ((r = walk_next(file, &w)) > 0) {
        if (w.cpu >= SIM_MAX_CPUS || add_window(&w, o, &cpus[w.cpu]) < 0) {
            (void)fprintf(stderr, "%s: the window at offset %zu is damaged\n", o->path, w.offset);
            return -EBADMSG;
        }
    }
    if (r < 0) {
        (void)fprintf(stderr, "%s: offset %zu: %s\n", o->path, file->offset, file->error);
        return r;
    }
    for (uint32_t cpu = 0; cpu < SIM_MAX_CPUS; cpu++)
        if (cpus[cpu].count)
            (void)printf("cpu %u records %" PRIu64 " bytes %" PRIu64 " hash %016" PRIx64 "\n", cpu,
                         cpus[cpu].count, cpus[cpu].bytes, cpus[cpu].hash);
    return 0;
}

int command_records(int argc, char **argv)
{
    struct options o = {0};
    struct walk_file file;
    struct cpu_records *cpus;
    int r;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            o.verbose = true;
        else if (strcmp(argv[i], "--no-tsc") == 0)
            o.without_tsc = true;
        else
            o.path = argv[i];
    }
    if (!o.path) {
        (void)fputs("usage: xensim records [-v] [--no-tsc] FILE\n", stderr);
        return 2;
    }
    r = walk_open(o.path, &file);
    if (r < 0) {
        (void)fprintf(stderr, "%s: %s\n", o.path, strerror(-r));
        return 1;
    }
    cpus = calloc(SIM_MAX_CPUS, sizeof(*cpus));
    r = cpus ? print_records(&file, &o, cpus) : -ENOMEM;
    free(cpus);
    walk_close(&file);
    return r < 0 ? 1 : 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The producer's report: what every consumer's ledger is compared with.
 */

#include "producer.h"

#include <errno.h>
#include <inttypes.h>

static void add(struct sim_counts *sum, uint64_t *pending, const struct sim_cpu *c)
{
    sum->attempted += c->counts.attempted;
    sum->inserted += c->counts.inserted;
    sum->inserted_bytes += c->counts.inserted_bytes;
    sum->lost += c->counts.lost;
    sum->told += c->counts.told;
    sum->vanished += c->counts.vanished;
    sum->lost_records += c->counts.lost_records;
    sum->wrap_records += c->counts.wrap_records;
    *pending += c->lost_records;
}

static void write_counts(FILE *f, const struct sim_counts *n, uint64_t pending)
{
    (void)fprintf(f,
                  "\"attempted\":%" PRIu64 ",\"inserted\":%" PRIu64 ",\"inserted_bytes\":%" PRIu64
                  ",\"lost\":%" PRIu64 ",\"told\":%" PRIu64 ",\"vanished\":%" PRIu64
                  ",\"pending\":%" PRIu64 ",\"lost_records\":%" PRIu64 ",\"wrap_records\":%" PRIu64,
                  n->attempted, n->inserted, n->inserted_bytes, n->lost, n->told, n->vanished,
                  pending, n->lost_records, n->wrap_records);
}

static double achieved(const struct producer_summary *m)
{
    return m->active_sec > 0 ? (double)m->generated_bytes / m->active_sec : 0;
}

static void write_json(FILE *f, const struct sim *sim, const struct producer_summary *m)
{
    const struct sim_shared *s = sim->shared;
    struct sim_counts sum = {0};
    uint64_t pending = 0;

    (void)fprintf(f, "{\"workload\":\"%s\",\"cpus\":[", m->workload);
    for (uint32_t i = 0; i < s->nr_cpus; i++) {
        const struct sim_cpu *c = &s->cpus[i];

        (void)fprintf(f, "%s\n{\"cpu\":%u,\"buffer\":%s,", i ? "," : "", i,
                      c->has_buffer ? "true" : "false");
        write_counts(f, &c->counts, c->lost_records);
        (void)fprintf(f, ",\"next_number\":%" PRIu64 "}", c->next_number);
        add(&sum, &pending, c);
    }
    (void)fprintf(f, "],\n\"total\":{");
    write_counts(f, &sum, pending);
    (void)fprintf(f,
                  "},\n\"generated_bytes\":%" PRIu64 ",\"rate_asked\":%.0f,\"rate_achieved\":%.0f,"
                  "\"active_seconds\":%.6f,\"skipped_seconds\":%.6f,\"cpu_seconds\":%.6f,\n"
                  "\"virqs_raised\":%" PRIu64 ",\"virqs_delivered\":%" PRIu64
                  ",\"virqs_unbound\":%" PRIu64 "}\n",
                  m->generated_bytes, m->rate_asked, achieved(m), m->active_sec, m->skipped_sec,
                  m->cpu_sec, s->virqs_raised, s->virqs_delivered, s->virqs_unbound);
}

static void print_line(const char *name, const struct sim_counts *n, uint64_t pending)
{
    (void)fprintf(stderr,
                  "xensim: %-6s %12" PRIu64 " attempted %12" PRIu64 " inserted %10" PRIu64
                  " lost %8" PRIu64 " vanished %6" PRIu64 " pending\n",
                  name, n->attempted, n->inserted, n->lost, n->vanished, pending);
}

static void print_report(const struct sim *sim, const struct producer_summary *m)
{
    const struct sim_shared *s = sim->shared;
    struct sim_counts sum = {0};
    uint64_t pending = 0;

    for (uint32_t i = 0; i < s->nr_cpus; i++) {
        const struct sim_cpu *c = &s->cpus[i];
        char name[16];

        (void)snprintf(name, sizeof(name), "CPU %u", i);
        if (c->counts.attempted)
            print_line(name, &c->counts, c->lost_records);
        add(&sum, &pending, c);
    }
    print_line("all", &sum, pending);
    (void)fprintf(
        stderr,
        "xensim: %s: %.1f MiB in %.3f s (%.3f s of it skipped): %.2f MiB/s of %.2f asked; "
        "%.3f s CPU; VIRQ_TBUF %" PRIu64 " raised, %" PRIu64 " delivered\n",
        m->workload, (double)m->generated_bytes / 1048576, m->active_sec, m->skipped_sec,
        achieved(m) / 1048576, m->rate_asked / 1048576, m->cpu_sec, s->virqs_raised,
        s->virqs_delivered);
}

int report_write(const struct sim *sim, const struct producer_summary *summary, const char *file,
                 bool quiet)
{
    FILE *f;

    if (!quiet)
        print_report(sim, summary);
    if (!file)
        return 0;
    f = fopen(file, "we");
    if (!f)
        return -errno;
    write_json(f, sim, summary);
    return fclose(f) == 0 ? 0 : -errno;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands that tests call inside `xensim run`: looking at the hypervisor's variables, stopping
 * the producer at the right moment, and breaking what a consumer must survive.
 */

#include "commands.h"
#include "control.h"
#include "domains.h"
#include "numbered.h"
#include "parse.h"
#include "tbuf.h"
#include "virq.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/record.h"

int control_attach(struct sim *sim)
{
    int r = sim_attach(sim);

    if (r < 0)
        (void)fprintf(stderr, "xensim: this is not inside `xensim run`: %s\n", strerror(-r));
    else
        (void)signal(SIGPIPE, SIG_IGN); /* a consumer may go while an interrupt is on its way */
    return r;
}

static void print_cpu(const struct sim *sim, uint32_t cpu)
{
    const struct sim_cpu *c = &sim->shared->cpus[cpu];
    const struct t_buf *buf = tbuf_of_cpu(sim, cpu);

    (void)printf("%s\n{\"cpu\":%u,\"online\":%s,\"buffer\":%s,\"cons\":%u,\"prod\":%u,"
                 "\"pending_lost\":%" PRIu64 ",\"attempted\":%" PRIu64 ",\"inserted\":%" PRIu64
                 ",\"lost\":%" PRIu64 ",\"vanished\":%" PRIu64 ",\"next_number\":%" PRIu64 "}",
                 cpu ? "," : "", cpu, c->online ? "true" : "false",
                 c->has_buffer ? "true" : "false", buf ? buf->cons : 0, buf ? buf->prod : 0,
                 c->lost_records, c->counts.attempted, c->counts.inserted, c->counts.lost,
                 c->counts.vanished, c->next_number);
}

/* The mask as a hexadecimal number, highest CPUs first. */
static void print_cpu_mask(const struct sim_shared *s)
{
    uint32_t words = (s->nr_cpus + 63) / 64;

    (void)printf("\"cpu_mask\":\"0x");
    for (uint32_t i = words; i-- > 0;) {
        uint64_t word = s->tb_cpu_mask[i];

        if (i == words - 1 && s->nr_cpus % 64)
            word &= (UINT64_C(1) << (s->nr_cpus % 64)) - 1;
        (void)printf(i == words - 1 ? "%" PRIx64 : "%016" PRIx64, word);
    }
    (void)printf("\"");
}

int command_stat(int argc, char **argv)
{
    const struct sim_shared *s;
    struct timespec now;
    struct sim sim;

    (void)argv;
    if (argc != 1 || control_attach(&sim) < 0)
        return argc != 1 ? 2 : 1;
    s = sim.shared;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    (void)printf("{\"realtime_ns\":%lld%09ld,\"tsc\":%" PRIu64
                 ",\"enabled\":%s,\"event_mask\":\"0x%08x\",",
                 (long long)now.tv_sec, now.tv_nsec, sim_tsc(),
                 tbuf_is_enabled(&sim) ? "true" : "false", s->tb_event_mask);
    print_cpu_mask(s);
    (void)printf(",\"pages\":%u,\"data_size\":%u,\"cpu_khz\":%u,\"paused\":%s,\"finished\":%s,"
                 "\"bogus_cpu\":%d,\"virq_bound\":%s,\"virqs_raised\":%" PRIu64
                 ",\"virqs_delivered\":%" PRIu64
                 ",\"producer_pid\":%u,\"faults\":\"0x%x\",\"cpus\":[",
                 s->opt_tbuf_size, s->data_size, s->cpu_khz, s->paused ? "true" : "false",
                 s->producer_finished ? "true" : "false", (int)s->bogus_cpu - 1,
                 virq_is_bound(&sim) ? "true" : "false", s->virqs_raised, s->virqs_delivered,
                 s->producer_pid, s->faults);
    for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++)
        print_cpu(&sim, cpu);
    (void)printf("]}\n");
    sim_done(&sim);
    return 0;
}

/* Waits up to SECONDS until *FLAG is set. */
static int wait_for_flag(const uint32_t *flag, unsigned int seconds)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (unsigned int i = 0; i < seconds * 1000; i++) {
        if (__atomic_load_n(flag, __ATOMIC_ACQUIRE))
            return 0;
        (void)nanosleep(&pause, NULL);
    }
    return -ETIMEDOUT;
}

static int set_paused(int argc, uint32_t paused)
{
    struct sim sim;
    int r = 0;

    if (argc != 1)
        return 2;
    if (control_attach(&sim) < 0)
        return 1;
    __atomic_store_n(&sim.shared->paused, paused, __ATOMIC_RELEASE);
    sim_wake(&sim);
    if (paused)
        r = wait_for_flag(&sim.shared->producer_idle, 5);
    sim_done(&sim);
    return r < 0 ? 1 : 0;
}

int command_pause(int argc, char **argv)
{
    (void)argv;
    return set_paused(argc, 1);
}

int command_resume(int argc, char **argv)
{
    (void)argv;
    return set_paused(argc, 0);
}

int command_wait(int argc, char **argv)
{
    uint64_t seconds = 60;
    struct sim sim;
    int r;

    if (argc > 2 || (argc == 2 && parse_u64(argv[1], 86400, &seconds) < 0))
        return 2;
    if (control_attach(&sim) < 0)
        return 1;
    r = wait_for_flag(&sim.shared->producer_finished, (unsigned int)seconds);
    sim_done(&sim);
    return r < 0 ? 1 : 0;
}

static int parse_cpu(const struct sim *sim, const char *text, uint32_t *ret)
{
    uint64_t cpu;

    if (parse_u64(text, sim->shared->nr_cpus - 1, &cpu) < 0)
        return -EINVAL;
    *ret = (uint32_t)cpu;
    return 0;
}

int command_insert(int argc, char **argv)
{
    uint64_t count, bytes = 0, inserted = 0;
    struct sim sim;
    uint32_t cpu;

    if (argc != 3 || parse_u64(argv[2], UINT64_MAX, &count) < 0)
        return 2;
    if (control_attach(&sim) < 0)
        return 1;
    if (parse_cpu(&sim, argv[1], &cpu) < 0)
        return 2;
    sim_lock(&sim.shared->cpus[cpu].lock);
    while (count-- > 0)
        inserted += numbered_insert(&sim, cpu, &bytes) == TBUF_INSERTED;
    sim_unlock(&sim.shared->cpus[cpu].lock);
    (void)printf("%" PRIu64 "\n", inserted);
    sim_done(&sim);
    return 0;
}

/* A header that claims more words than there are, published. */
static void poke_bogus_record(struct sim *sim, uint32_t cpu, struct t_buf *buf)
{
    uint32_t data_size = sim->shared->data_size;
    uint32_t prod = buf->prod;
    uint32_t header = 0x00021f01u | 7u << TRACE_EXTRA_SHIFT | (uint32_t)TRC_HD_CYCLE_FLAG;

    memcpy(tbuf_byte(sim, cpu, prod % data_size + (uint32_t)sizeof(*buf)), &header, sizeof(header));
    prod += 4;
    /* Pairs with the consumer's acquire, like the producer's. */
    __atomic_store_n(&buf->prod, prod == 2 * data_size ? 0 : prod, __ATOMIC_RELEASE);
}

static int poke(struct sim *sim, const char *what, uint32_t cpu)
{
    struct t_buf *buf = tbuf_of_cpu(sim, cpu);

    if (strcmp(what, "virq") == 0) {
        virq_raise(sim);
        return 0;
    }
    if (!buf)
        return -ENXIO;
    if (strcmp(what, "bogus-prod") == 0)
        __atomic_store_n(&buf->prod, 2 * sim->shared->data_size + 4, __ATOMIC_RELEASE);
    else if (strcmp(what, "unaligned-prod") == 0)
        __atomic_store_n(&buf->prod, buf->prod | 2, __ATOMIC_RELEASE);
    else if (strcmp(what, "far-prod") == 0) /* more than a buffer's distance */
        __atomic_store_n(&buf->prod,
                         (buf->cons + sim->shared->data_size + 4) % (2 * sim->shared->data_size),
                         __ATOMIC_RELEASE);
    else if (strcmp(what, "bogus-cons") == 0)
        __atomic_store_n(&buf->cons, 2 * sim->shared->data_size + 4, __ATOMIC_RELEASE);
    else if (strcmp(what, "bogus-record") == 0)
        poke_bogus_record(sim, cpu, buf);
    else if (strcmp(what, "offline") == 0) /* a CPU that comes back has no buffer any more */
        sim->shared->cpus[cpu].has_buffer = 0;
    else
        return -EINVAL;
    return 0;
}

int command_poke(int argc, char **argv)
{
    struct sim sim;
    uint32_t cpu;
    int r;

    if (argc != 3) {
        (void)fputs("usage: xensim poke bogus-prod|unaligned-prod|far-prod|bogus-cons|bogus-record|"
                    "offline|virq CPU\n",
                    stderr);
        return 2;
    }
    if (control_attach(&sim) < 0)
        return 1;
    r = parse_cpu(&sim, argv[2], &cpu);
    if (r == 0) {
        sim_lock(&sim.shared->cpus[cpu].lock);
        r = poke(&sim, argv[1], cpu);
        sim_unlock(&sim.shared->cpus[cpu].lock);
    }
    if (r < 0)
        (void)fprintf(stderr, "xensim: poke %s %s: %s\n", argv[1], argv[2], strerror(-r));
    sim_done(&sim);
    return r < 0 ? 1 : 0;
}

int command_fault(int argc, char **argv)
{
    uint32_t fault = argc == 3 ? sim_fault_parse(argv[1]) : 0;
    struct sim sim;

    if (!fault || (strcmp(argv[2], "on") != 0 && strcmp(argv[2], "off") != 0)) {
        (void)fputs("usage: xensim fault NAME on|off\n", stderr);
        return 2;
    }
    if (control_attach(&sim) < 0)
        return 1;
    if (strcmp(argv[2], "on") == 0)
        __atomic_or_fetch(&sim.shared->faults, fault, __ATOMIC_RELAXED);
    else
        __atomic_and_fetch(&sim.shared->faults, ~fault, __ATOMIC_RELAXED);
    if (!sim_has_fault(&sim, SIM_FAULT_XENSTORE_HANGS))
        domains_fire_held(&sim);
    sim_done(&sim);
    return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The simulated hypervisor against the rules of Xen's trace buffers.
 */

#include "test-drain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "common/record.h"
#include "numbered.h"
#include "virq.h"

#define SCHED_EVENT ((uint32_t)(0x00021f01u | TRC_HD_CYCLE_FLAG))

static enum tbuf_result insert(struct sim *sim, uint32_t cpu, uint32_t words)
{
    const struct tbuf_event e = {.event = SCHED_EVENT, .extra_words = words, .tsc = 1000};

    return tbuf_insert(sim, cpu, &e);
}

/* All that is there is read, and forgotten. */
static void consume(struct sim *sim, uint32_t cpu)
{
    struct t_buf *buf = tbuf_of_cpu(sim, cpu);

    buf->cons = buf->prod;
}

static uint32_t word_at(const struct sim *sim, uint32_t offset)
{
    uint32_t word;

    memcpy(&word, tbuf_byte(sim, 0, offset + (uint32_t)sizeof(struct t_buf)), sizeof(word));
    return word;
}

static void test_set_size(void)
{
    struct sim sim = test_sim_new(16, 0);
    struct xen_sysctl_tbuf_op info = {.cmd = XEN_SYSCTL_TBUFOP_get_info};

    CHECK(tbuf_control(&sim, &info) == 0 && info.buffer_mfn == 0 && info.size == 0);
    CHECK(info.evt_mask == TRC_ALL);
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_enable, 0) == -EINVAL);
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_set_size, 0) == -EINVAL);
    sim.shared->faults = 1u << SIM_FAULT_NO_MEMORY;
    sim.shared->fault_hits = 1;
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_set_size, 32) == -ENOMEM);
    CHECK(!tbuf_is_enabled(&sim));
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_set_size, 5000) == 0);
    CHECK(tbuf_is_enabled(&sim)); /* set_size itself turns tracing on */
    CHECK(sim_t_info(&sim)->tbuf_size == 4360);
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_set_size, 5000) == -EINVAL);
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_set_size, 4360) == -EBUSY);
    CHECK(tbuf_control(&sim, &info) == 0 && info.buffer_mfn && info.size == 69 * PAGE_BYTES);
    CHECK(test_control(&sim, 77, 0) == -EINVAL);
    test_sim_free(&sim);
}

static void test_limits(void)
{
    static const struct {
        uint32_t cpus, pages;
    } limits[] = {{256, 256}, {64, 1038}, {16, 4360}, {1, 65535}, {4095, 15}, {16383, 3}};

    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        struct sim sim = test_sim_new(limits[i].cpus, 65535);

        CHECK(sim_t_info(&sim)->tbuf_size == limits[i].pages);
        CHECK(tbuf_of_cpu(&sim, limits[i].cpus - 1));
        test_sim_free(&sim);
    }
}

static void test_offline_and_pages(void)
{
    struct sim sim = test_sim_new(4, 0);
    const uint32_t *list;

    sim.shared->cpus[2].online = 0;
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_set_size, 32) == 0);
    CHECK(sim_t_info(&sim)->mfn_offset[1] && !sim_t_info(&sim)->mfn_offset[2]);
    CHECK(insert(&sim, 1, 3) == TBUF_INSERTED && insert(&sim, 2, 3) == TBUF_FILTERED);
    list = (const uint32_t *)sim_t_info(&sim) + sim_t_info(&sim)->mfn_offset[3];
    for (uint32_t i = 1; i < 32; i++)
        CHECK(list[i] != list[i - 1] + 1);
    test_sim_free(&sim);
}

/* 1 page: 4088 bytes of data are 146 records of 28 bytes. */
static void test_exact_end(void)
{
    struct sim sim = test_sim_new(1, 1);
    struct t_buf *buf = tbuf_of_cpu(&sim, 0);

    for (int i = 0; i < 146; i++)
        CHECK(insert(&sim, 0, 4) == TBUF_INSERTED);
    CHECK(buf->prod == 4088 && buf->cons == 0); /* full */
    CHECK(insert(&sim, 0, 4) == TBUF_LOST);
    consume(&sim, 0);
    sim.shared->cpus[0].lost_records = 0;
    for (int i = 0; i < 146; i++)
        CHECK(insert(&sim, 0, 4) == TBUF_INSERTED);
    CHECK(buf->prod == 0); /* 2 * data_size is 0 */
    CHECK(sim.shared->cpus[0].counts.wrap_records == 0);
    test_sim_free(&sim);
}

/* LEFT bytes before the end are filled by one wrap record when 40 bytes do not fit there. */
static void test_wrap_record(uint32_t left, uint32_t header)
{
    struct sim sim = test_sim_new(1, 1);
    struct t_buf *buf = tbuf_of_cpu(&sim, 0);

    buf->prod = buf->cons = 4088 - left;
    CHECK(insert(&sim, 0, 7) == TBUF_INSERTED);
    CHECK(word_at(&sim, 4088 - left) == header);
    CHECK(record_bytes(header) == left);
    CHECK(buf->prod == 4088 + 40 && word_at(&sim, 0) == (SCHED_EVENT | 7u << 28));
    test_sim_free(&sim);
}

static void test_lost(void)
{
    struct sim sim = test_sim_new(1, 1);
    struct t_buf *buf = tbuf_of_cpu(&sim, 0);

    while (insert(&sim, 0, 4) == TBUF_INSERTED)
        ;
    CHECK(insert(&sim, 0, 0) == TBUF_LOST && sim.shared->cpus[0].lost_records == 2);
    /* Room for the lost record alone is not enough. */
    buf->cons = 28;
    CHECK(insert(&sim, 0, 0) == TBUF_LOST);
    buf->cons = 28 + 12;
    CHECK(insert(&sim, 0, 0) == TBUF_INSERTED && sim.shared->cpus[0].lost_records == 0);
    CHECK(word_at(&sim, 0) == LOST_RECORD_HEADER && word_at(&sim, 12) == 3);
    CHECK(word_at(&sim, 20) == 1000 && word_at(&sim, 28) == SCHED_EVENT);
    CHECK(sim.shared->cpus[0].counts.lost == 3 && sim.shared->cpus[0].counts.told == 3);
    test_sim_free(&sim);
}

/* PROD before the end: where do the wrap record, the lost record and the record go? */
static void test_lost_and_wrap(uint32_t left, uint32_t lost_at, uint32_t record_at, uint32_t wraps)
{
    struct sim sim = test_sim_new(1, 1);
    struct t_buf *buf = tbuf_of_cpu(&sim, 0);

    buf->prod = buf->cons = 4088 - left;
    sim.shared->cpus[0].lost_records = 5;
    CHECK(insert(&sim, 0, 4) == TBUF_INSERTED);
    CHECK(word_at(&sim, lost_at) == LOST_RECORD_HEADER && word_at(&sim, lost_at + 12) == 5);
    CHECK(word_at(&sim, record_at) == (SCHED_EVENT | 4u << 28));
    CHECK(sim.shared->cpus[0].counts.wrap_records == wraps);
    CHECK(buf->prod == 4088 + record_at + 28);
    test_sim_free(&sim);
}

static void test_virq(void)
{
    struct sim sim = test_sim_new(1, 1);
    const uint64_t *raised = &sim.shared->virqs_raised;

    for (int i = 0; i < 72; i++)
        CHECK(insert(&sim, 0, 4) == TBUF_INSERTED);
    CHECK(*raised == 0);
    CHECK(insert(&sim, 0, 4) == TBUF_INSERTED && *raised == 1); /* 73 * 28 = 2044, the half */
    while (insert(&sim, 0, 4) == TBUF_INSERTED)
        ;
    CHECK(*raised == 1);
    consume(&sim, 0);
    while (insert(&sim, 0, 4) == TBUF_INSERTED)
        ;
    CHECK(*raised == 2);
    test_sim_free(&sim);
}

/* Until it is killed. What is delivered need not be read: the FIFO has room for all. */
static _Noreturn void unmask_for_ever(struct sim *sim, int handle, uint32_t port)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed CHECK() leaves nobody behind */
    for (;;)
        (void)virq_unmask(sim, handle, port);
}

/* Wherever in a call a consumer is stopped, the CPUs go on, and it gets every VIRQ afterwards. */
static void test_stopped_consumer(void)
{
    struct sim sim = test_sim_new(1, 1);
    const struct sim_shared *s = sim.shared;
    const struct timespec while_it_runs = {.tv_nsec = 100000};
    int fd = virq_open_handle(&sim, O_NONBLOCK), handle = virq_handle_of_fd(&sim, fd);
    int port = virq_bind(&sim, handle);
    pid_t consumer = fork();

    CHECK(fd >= 0 && handle >= 0 && port > 0 && consumer >= 0);
    if (consumer == 0)
        unmask_for_ever(&sim, handle, (uint32_t)port);
    (void)alarm(20); /* kills who waits for ever */
    for (uint64_t i = 1; i <= 200; i++) {
        CHECK(kill(consumer, SIGSTOP) == 0 && waitpid(consumer, NULL, WUNTRACED) == consumer);
        while (insert(&sim, 0, 4) == TBUF_INSERTED)
            ;
        CHECK(s->virqs_raised == i);
        consume(&sim, 0);
        CHECK(kill(consumer, SIGCONT) == 0);
        do
            (void)nanosleep(&while_it_runs, NULL);
        while (__atomic_load_n(&s->virqs_delivered, __ATOMIC_RELAXED) < i);
    }
    (void)alarm(0);
    CHECK(kill(consumer, SIGKILL) == 0 && waitpid(consumer, NULL, 0) == consumer);
    fd_close(&fd);
    test_sim_free(&sim);
}

static bool alike(const struct sim *a, const struct sim *b)
{
    const struct sim_counts *x = &a->shared->cpus[0].counts, *y = &b->shared->cpus[0].counts;

    return memcmp(x, y, sizeof(*x)) == 0 && tbuf_of_cpu(a, 0)->prod == tbuf_of_cpu(b, 0)->prod &&
           a->shared->virqs_raised == b->shared->virqs_raised;
}

/*
 * Records in runs are as if they had been inserted one by one, losses and interrupts included, and
 * those of a class (mem) that a mask holds back.
 */
static void test_runs(uint32_t pages, unsigned int seed)
{
    struct sim one = test_sim_new(1, pages), runs = test_sim_new(1, pages);

    one.shared->tb_event_mask = runs.shared->tb_event_mask = 0x00eff000;
    for (unsigned int i = 0; i < 2000; i++) {
        uint64_t target = (uint64_t)rand_r(&seed) % (pages * PAGE_BYTES), bytes = 0, run_bytes = 0;

        while (bytes < target)
            CHECK(numbered_insert(&one, 0, &bytes) != TBUF_DISABLED);
        do
            numbered_insert_run(&runs, 0, target, &run_bytes);
        while (run_bytes < target && numbered_insert(&runs, 0, &run_bytes) != TBUF_DISABLED);
        CHECK(bytes == run_bytes && alike(&one, &runs));
        if (rand_r(&seed) % 2) {
            consume(&one, 0);
            consume(&runs, 0);
        }
    }
    CHECK(runs.shared->cpus[0].counts.lost > 0 && runs.shared->cpus[0].counts.wrap_records > 0);
    test_sim_free(&one);
    test_sim_free(&runs);
}

static void test_disable(void)
{
    struct sim sim = test_sim_new(1, 1);

    while (insert(&sim, 0, 4) == TBUF_INSERTED)
        ;
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_disable, 0) == 0);
    CHECK(insert(&sim, 0, 4) == TBUF_DISABLED);
    CHECK(sim.shared->cpus[0].counts.vanished == 1);
    consume(&sim, 0);
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_enable, 0) == 0);
    CHECK(insert(&sim, 0, 4) == TBUF_INSERTED);
    CHECK(word_at(&sim, 0) == (SCHED_EVENT | 4u << 28)); /* nothing is told */
    test_sim_free(&sim);
}

static void test_bogus(uint32_t cons, uint32_t prod)
{
    struct sim sim = test_sim_new(2, 1);

    tbuf_of_cpu(&sim, 1)->cons = cons;
    tbuf_of_cpu(&sim, 1)->prod = prod;
    CHECK(insert(&sim, 0, 4) == TBUF_INSERTED);
    CHECK(insert(&sim, 1, 4) == TBUF_DISABLED && sim.shared->bogus_cpu == 2);
    CHECK(insert(&sim, 0, 4) == TBUF_DISABLED); /* for everybody */
    test_sim_free(&sim);
}

static void test_masks(void)
{
    static const struct {
        uint32_t mask, event;
        bool passes;
    } cases[] = {
        {TRC_ALL, 0x00021f01, true},     {TRC_SCHED, 0x00021f01, true},
        {TRC_SCHED, 0x0010ff03, false},  {0x00021000, 0x00028f02, false},
        {0x00021000, 0x0010ff03, false}, {0x00121000, 0x0010ff03, true}, /* the nibbles meet */
        {0x00121000, 0x00028f02, false}, {0, 0x00021f01, false},
    };
    struct sim sim = test_sim_new(4, 1);
    uint8_t bytes[] = {0x04, 0xff}; /* wider than the host is */
    struct xen_sysctl_tbuf_op op = {.cmd = XEN_SYSCTL_TBUFOP_set_cpu_mask};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_set_evt_mask, cases[i].mask) == 0);
        CHECK(tbuf_passes(&sim, 0, (uint32_t)(cases[i].event | TRC_HD_CYCLE_FLAG)) ==
              cases[i].passes);
    }
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_set_evt_mask, TRC_ALL) == 0);
    op.cpu_mask.bitmap.p = bytes;
    op.cpu_mask.nr_bits = 16;
    CHECK(tbuf_control(&sim, &op) == 0);
    for (uint32_t cpu = 0; cpu < 4; cpu++)
        CHECK(insert(&sim, cpu, 3) == (cpu == 2 ? TBUF_INSERTED : TBUF_FILTERED));
    test_sim_free(&sim);
}

/* Records of all sizes, a consumer that comes when it likes: nothing is missing untold. */
static void test_random(uint32_t pages)
{
    struct sim sim = test_sim_new(1, pages);
    struct test_file file = {0};
    uint64_t numbers = 0, expected = 0, told = 0;

    srandom(pages);
    for (int i = 0; i < 200000; i++) {
        uint32_t extra[7] = {(uint32_t)numbers};
        struct tbuf_event e = {.event = 0x00021f01, .extra = extra};

        e.extra_words = 1 + (uint32_t)random() % 7;
        if (random() % 4)
            e.event = SCHED_EVENT;
        numbers++;
        CHECK(tbuf_insert(&sim, 0, &e) != TBUF_DISABLED);
        if (random() % 500 == 0)
            (void)test_drain(&sim, 0, (uint32_t)random() % (pages * 6000), &file);
    }
    for (size_t at = 0; at < file.bytes;) {
        uint32_t record[10];

        memcpy(record, file.data + at, 4);
        memcpy(record, file.data + at, record_bytes(record[0]));
        at += record_bytes(record[0]);
        if (record_is_lost(record[0])) {
            told += record[3];
        } else if (record_event(record[0]) == (SCHED_EVENT & RECORD_EVENT_MASK)) {
            uint32_t number = record[record_has_tsc(record[0]) ? 3 : 1];

            CHECK(number == expected + told);
            expected = number + 1;
            told = 0;
        } else {
            CHECK(record_is_wrap(record[0]) || record[0] == WINDOW_HEADER);
        }
    }
    CHECK(sim.shared->cpus[0].counts.told > 0 && sim.shared->cpus[0].counts.wrap_records > 0);
    CHECK(sim.shared->cpus[0].counts.attempted == numbers);
    free(file.data);
    test_sim_free(&sim);
}

int main(void)
{
    test_set_size();
    test_limits();
    test_offline_and_pages();
    test_exact_end();
    test_wrap_record(4, 0x0001f002);
    test_wrap_record(8, 0x1001f002);
    test_wrap_record(32, 0x7001f002);
    test_wrap_record(36, 0xe001f002); /* 8 words are too many: a TSC and 6 */
    test_lost();
    test_lost_and_wrap(24, 0, 28, 1);        /* wrap, lost, record */
    test_lost_and_wrap(28, 4060, 0, 0);      /* lost ends exactly at the end */
    test_lost_and_wrap(28 + 12, 4048, 0, 1); /* lost, wrap, record */
    test_virq();
    test_stopped_consumer();
    test_runs(1, 1);
    test_runs(7, 2);
    test_disable();
    test_bogus(2 * 4088, 0);
    test_bogus(0, 2 * 4088);
    test_bogus(2, 0);
    test_bogus(0, 1);
    test_masks();
    test_random(1);
    test_random(2);
    test_random(5);
    return 0;
}

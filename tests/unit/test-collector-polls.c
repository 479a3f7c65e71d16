// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The collector's polls end, and the submission queue has no room for new ones, again and again:
 * its thread lives on, tries again every 10 ms, and is not busy meanwhile. The linker has
 * collector.c call what stands here in place of uring_poll() and uring_wait(): --wrap in local.mk.
 */

#include "collector/uring.h"
#include "tests/unit/collector-rig.h"

#define TAG_VIRQ    UINT64_C(1) /* collector.c's */
#define TAG_MAILBOX UINT64_C(2)
#define REFUSALS    5u

static unsigned int ends;     /* atomic: polls that are to end */
static unsigned int refusals; /* atomic: times that a poll is still to be refused */
static unsigned int refused;  /* atomic: times that one was */

int __real_uring_poll(struct uring *uring, int fd, uint64_t tag);
int __wrap_uring_poll(struct uring *uring, int fd, uint64_t tag);
int __real_uring_wait(struct uring *uring, uint64_t timeout_usec, struct uring_event *ret_events,
                      unsigned int max);
int __wrap_uring_wait(struct uring *uring, uint64_t timeout_usec, struct uring_event *ret_events,
                      unsigned int max);

int __wrap_uring_poll(struct uring *uring, int fd, uint64_t tag)
{
    if (__atomic_load_n(&refusals, __ATOMIC_ACQUIRE) == 0)
        return __real_uring_poll(uring, fd, tag);
    __atomic_fetch_sub(&refusals, 1, __ATOMIC_ACQ_REL);
    __atomic_fetch_add(&refused, 1, __ATOMIC_ACQ_REL);
    return -EBUSY;
}

int __wrap_uring_wait(struct uring *uring, uint64_t timeout_usec, struct uring_event *ret_events,
                      unsigned int max)
{
    if (__atomic_exchange_n(&ends, 0, __ATOMIC_ACQ_REL) > 0) {
        (void)uring_cancel(uring, TAG_VIRQ);
        (void)uring_cancel(uring, TAG_MAILBOX);
    }
    return __real_uring_wait(uring, timeout_usec, ret_events, max);
}

static uint64_t wakeups(const struct bench *bench)
{
    struct collector_stats stats;

    collector_read_stats(bench->collector, &stats);
    return stats.wakeups;
}

static void test_refused_polls(void)
{
    uint64_t before, turns;
    struct bench bench;
    struct span span;

    test_case("refused polls");
    bench_init(&bench, SMALL_PAGES);
    (void)add_sink(&bench, config_of(USEC_PER_SEC), NULL);
    attach(&bench, 0);
    before = wakeups(&bench);
    __atomic_store_n(&refusals, REFUSALS, __ATOMIC_RELEASE);
    __atomic_store_n(&ends, 1, __ATOMIC_RELEASE);
    tell(&bench, 0, MESSAGE_GRANT, false, INT64_MAX); /* wakes it */
    while (__atomic_load_n(&refusals, __ATOMIC_ACQUIRE) > 0)
        (void)usleep(1000);
    CHECK_UINT(__atomic_load_n(&refused, __ATOMIC_ACQUIRE), REFUSALS);
    turns = wakeups(&bench) - before;
    CHECK(turns >= REFUSALS / 2); /* both polls are refused in one turn */
    CHECK(turns <= 4 * REFUSALS);

    /* And both work again: the sink's own timer is long. */
    for (unsigned int i = 0; i < 1000; i++)
        while (!put_record(&bench, 0))
            (void)usleep(50);
    close_sink(&bench, 0, true);
    span = span_of_file(&bench, 0);
    CHECK_UINT(span.next[0], 1000);
    CHECK_UINT(bench.seen[0][MESSAGE_DIED], 0);
    bench_done(&bench);
}

int main(void)
{
    if (!bench_is_possible())
        return TEST_SKIPPED;
    test_refused_polls();
    return test_end();
}

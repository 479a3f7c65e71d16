// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What pool and rings rely on: what is wanted comes, touched, as far as the budget goes; what is
 * released goes back to the kernel and may be had by others; and the collector waits for none of
 * it.
 */

#include "collector/extent.h"

#include <sys/mman.h>
#include <unistd.h>

#include "collector/grower.h"
#include "collector/memory.h"
#include "common/meminfo.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define STEP_BYTES (1u << 20)
#define STEPS      4u
#define WAIT_MSEC  10000u /* for lack of progress */

/* Of dom0, in place of common/meminfo.c. */
static uint64_t available_bytes = UINT64_C(1) << 40;

uint64_t meminfo_bytes(const char *key)
{
    return strcmp(key, "MemAvailable") == 0 ? __atomic_load_n(&available_bytes, __ATOMIC_RELAXED)
                                            : STEP_BYTES;
}

struct rig {
    struct grower *grower;
    void *base;
    struct extent *extent;
};

static bool set_up(struct rig *rig, uint64_t budget_bytes, int memfd)
{
    return CHECK_INT(grower_new(budget_bytes, &rig->grower), 0) &&
           CHECK_INT(memory_map(memfd, STEPS * STEP_BYTES, 0, &rig->base), 0) &&
           CHECK_INT(extent_new(rig->base, STEP_BYTES, STEPS, memfd >= 0, &rig->extent), 0);
}

static void tear_down(struct rig *rig)
{
    grower_remove(rig->grower, rig->extent);
    CHECK_UINT(grower_used_bytes(rig->grower), 0);
    extent_free(rig->extent);
    grower_free(rig->grower);
    memory_unmap(rig->base, STEPS * STEP_BYTES);
}

static unsigned int resident_pages(const struct rig *rig, unsigned int step)
{
    unsigned char pages[STEP_BYTES / PAGE_BYTES];
    unsigned int count = 0;

    CHECK_INT(mincore((uint8_t *)rig->base + (size_t)step * STEP_BYTES, STEP_BYTES, pages), 0);
    for (unsigned int i = 0; i < ARRAY_SIZE(pages); i++)
        count += pages[i] & 1;
    return count;
}

static int take(struct rig *rig)
{
    for (unsigned int i = 0; i < WAIT_MSEC; i++) {
        int step = extent_take(rig->extent);

        if (step >= 0)
            return step;
        (void)usleep(1000);
    }
    return -1;
}

static bool await_bytes(const struct rig *rig, uint64_t bytes)
{
    for (unsigned int i = 0; i < WAIT_MSEC && extent_bytes(rig->extent) != bytes; i++)
        (void)usleep(1000);
    return CHECK_UINT(extent_bytes(rig->extent), bytes);
}

static void test_round_trip(int memfd, const char *name)
{
    struct rig rig;
    int first, second;
    char *data;

    test_case(name);
    if (!set_up(&rig, STEPS * STEP_BYTES, memfd))
        return;
    grower_add(rig.grower, rig.extent);
    CHECK_INT(extent_take(rig.extent), -1);
    CHECK_UINT(resident_pages(&rig, 0), 0);
    extent_want(rig.extent, 2);
    first = take(&rig);
    second = take(&rig);
    CHECK(first >= 0 && second >= 0 && first != second);
    CHECK_INT(extent_take(rig.extent), -1);
    CHECK_UINT(resident_pages(&rig, (unsigned int)first), STEP_BYTES / PAGE_BYTES);
    CHECK_UINT(grower_used_bytes(rig.grower), 2 * STEP_BYTES);
    data = (char *)rig.base + (size_t)first * STEP_BYTES;
    *data = 1;

    extent_want(rig.extent, 1);
    extent_give(rig.extent, (unsigned int)first);
    await_bytes(&rig, STEP_BYTES);
    CHECK_INT(*data, 0); /* it was given back */
    tear_down(&rig);
}

static void test_offer_is_withdrawn(void)
{
    struct rig rig;

    test_case("what was wanted and never taken goes back when it is not wanted any more");
    if (!set_up(&rig, STEPS * STEP_BYTES, -1))
        return;
    grower_add(rig.grower, rig.extent);
    extent_want(rig.extent, 3);
    await_bytes(&rig, UINT64_C(3) * STEP_BYTES);
    extent_want(rig.extent, 0);
    await_bytes(&rig, 0);
    CHECK_INT(extent_take(rig.extent), -1);
    tear_down(&rig);
}

static void test_offer_before_one_in_use(void)
{
    struct rig rig;

    test_case("an offer for which there is no want goes back, whatever else is in use");
    if (!set_up(&rig, STEPS * STEP_BYTES, -1))
        return;
    grower_add(rig.grower, rig.extent);
    extent_want(rig.extent, 3);
    CHECK_INT(take(&rig), 0);
    CHECK_INT(take(&rig), 1);
    await_bytes(&rig, UINT64_C(3) * STEP_BYTES);
    extent_give(rig.extent, 0);
    await_bytes(&rig, UINT64_C(3) * STEP_BYTES); /* it comes again, as an offer before step 1 */
    extent_want(rig.extent, 1);
    await_bytes(&rig, STEP_BYTES);
    CHECK_INT(extent_take(rig.extent), -1);
    tear_down(&rig);
}

static void test_budget(void)
{
    struct extent *other;
    struct rig rig;
    void *base;

    test_case("one budget: what is given back may be had by the other");
    if (!set_up(&rig, UINT64_C(2) * STEP_BYTES, -1) ||
        !CHECK_INT(memory_map(-1, STEPS * STEP_BYTES, 0, &base), 0) ||
        !CHECK_INT(extent_new(base, STEP_BYTES, STEPS, false, &other), 0))
        return;
    grower_add(rig.grower, rig.extent);
    grower_add(rig.grower, other);
    extent_want(rig.extent, 2);
    CHECK(take(&rig) >= 0 && take(&rig) >= 0);
    extent_want(other, 1);
    for (unsigned int i = 0; i < WAIT_MSEC && !extent_is_refused(other); i++)
        (void)usleep(1000);
    CHECK(extent_is_refused(other));
    CHECK_INT(extent_take(other), -1);

    extent_want(rig.extent, 1);
    extent_give(rig.extent, 1);
    for (unsigned int i = 0; i < WAIT_MSEC && extent_bytes(other) == 0; i++)
        (void)usleep(1000);
    CHECK_INT(extent_take(other), 0);
    CHECK_UINT(grower_used_bytes(rig.grower), UINT64_C(2) * STEP_BYTES);
    grower_remove(rig.grower, other);
    extent_free(other);
    memory_unmap(base, STEPS * STEP_BYTES);
    tear_down(&rig);
}

static bool await_refusal(const struct rig *rig)
{
    for (unsigned int i = 0; i < WAIT_MSEC && !extent_is_refused(rig->extent); i++)
        (void)usleep(1000);
    return CHECK(extent_is_refused(rig->extent));
}

static void test_scarce(void)
{
    struct rig rig;

    test_case("what dom0 could not spare comes when it can, without being asked for again");
    if (!set_up(&rig, STEPS * STEP_BYTES, -1))
        return;
    grower_add(rig.grower, rig.extent);
    __atomic_store_n(&available_bytes, STEP_BYTES, __ATOMIC_RELAXED);
    extent_want(rig.extent, 2);
    await_refusal(&rig);
    CHECK_INT(extent_take(rig.extent), -1);
    __atomic_store_n(&available_bytes, UINT64_C(1) << 40, __ATOMIC_RELAXED);
    CHECK_INT(take(&rig), 0);
    CHECK_INT(take(&rig), 1);
    tear_down(&rig);
}

static void test_adopted(void)
{
    struct rig rig;

    test_case("steps that another process left count, and may be given back");
    if (!set_up(&rig, STEP_BYTES, -1))
        return;
    extent_adopt(rig.extent, 1);
    extent_adopt(rig.extent, 3);
    grower_add(rig.grower, rig.extent);
    CHECK_UINT(grower_used_bytes(rig.grower), UINT64_C(2) * STEP_BYTES);
    CHECK_INT(extent_take(rig.extent), -1);
    extent_want(rig.extent, 1);
    extent_give(rig.extent, 3);
    await_bytes(&rig, STEP_BYTES);
    tear_down(&rig);
}

int main(void)
{
    int memfd = memfd_create("test-extent", MFD_CLOEXEC);

    test_round_trip(-1, "a step comes, touched, and goes back");
    if (CHECK(memfd >= 0) && CHECK_INT(ftruncate(memfd, STEPS * STEP_BYTES), 0))
        test_round_trip(memfd, "a step of a memfd comes, touched, and is punched out again");
    fd_close(&memfd);
    test_offer_is_withdrawn();
    test_offer_before_one_in_use();
    test_budget();
    test_scarce();
    test_adopted();
    return test_end();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An account over lives of its daemon. A life ends without a word: the account is mapped anew,
 * while the old mapping is still there, as after SIGKILL.
 */

#include "collector/account.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define CPUS 3u

static struct {
    int fd;
    struct account *account;
    uint32_t cons[CPUS]; /* as Xen has it */
} rig;

static void begin(const char *name)
{
    test_case(name);
    if (rig.fd > 0)
        close(rig.fd);
    account_free(rig.account);
    memset(&rig, 0, sizeof(rig));
    rig.fd = memfd_create("account", MFD_CLOEXEC);
    if (account_map(rig.fd, CPUS, true, &rig.account) < 0)
        exit(EXIT_FAILURE);
}

/* PUBLISHED: it was killed only after the window's space was given back. */
static void take(unsigned int cpu, uint64_t produced, uint64_t lost, bool published)
{
    uint32_t to = rig.cons[cpu] + 100;

    account_enter(rig.account, cpu, rig.cons[cpu], to, produced, lost);
    if (published)
        rig.cons[cpu] = to;
}

static void next_life(void)
{
    struct account *next = NULL;

    if (!CHECK_INT(account_map(rig.fd, CPUS, false, &next), 0))
        exit(EXIT_FAILURE);
    account_free(rig.account);
    rig.account = next;
    CHECK(!account_is_settled(next));
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        account_settle_cpu(next, cpu, rig.cons[cpu]);
    account_settle(next);
    CHECK(account_is_settled(next));
}

static void check(unsigned int cpu, uint64_t produced, uint64_t lost)
{
    struct account_sum sum = account_base(rig.account, cpu);

    CHECK_UINT(sum.produced, produced);
    CHECK_UINT(sum.lost, lost);
}

int main(void)
{
    struct account *other = NULL;

    begin("a new one");
    CHECK(account_is_settled(rig.account));
    check(0, 0, 0);

    begin("what was taken is there in the next life");
    take(0, 10, 0, true);
    take(0, 5, 2, true);
    take(2, 7, 7, true);
    next_life();
    check(0, 15, 2);
    check(1, 0, 0);
    check(2, 7, 7);

    begin("a window that was not given back comes again");
    take(0, 10, 1, true);
    take(0, 5, 2, false);
    next_life();
    check(0, 10, 1);
    take(0, 5, 2, true);
    next_life();
    check(0, 15, 3);

    begin("one without a record of its own moves on, too");
    take(1, 10, 0, true);
    take(1, 0, 0, false);
    next_life();
    check(1, 10, 0);

    begin("settled twice: once");
    take(1, 10, 0, true);
    take(1, 3, 0, false);
    next_life();
    next_life();
    check(1, 10, 0);

    begin("what is taken later does not change the base");
    take(0, 10, 0, true);
    next_life();
    take(0, 10, 0, true);
    check(0, 10, 0);
    account_settle(rig.account);
    check(0, 10, 0);

    begin("not an account");
    CHECK_INT(account_map(rig.fd, CPUS + 1000, false, &other), -EBADMSG);
    CHECK_INT(ftruncate(rig.fd, 100), 0);
    CHECK_INT(account_map(rig.fd, CPUS, false, &other), -EBADMSG);
    CHECK_INT(ftruncate(rig.fd, 0), 0);
    CHECK_INT(ftruncate(rig.fd, 4096), 0);
    CHECK_INT(account_map(rig.fd, CPUS, false, &other), -EBADMSG);
    account_free(rig.account);
    return test_end();
}

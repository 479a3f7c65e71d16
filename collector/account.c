// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each CPU has two lines, and a number that selects the valid one: a new line is written to the
 * other place, and then the number is changed with one store. A process that is killed at any time
 * thus leaves a complete line. Only the compiler must not reorder the stores; the CPU's order does
 * not matter, because the lines are read after the process has ended.
 */

#include "collector/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/memory.h"
#include "common/util.h"

#define MAGIC UINT64_C(0x3174636361637278) /* "xrcacct1" */

struct line {
    struct account_sum sum;
    struct account_sum last; /* of the last window: what it added */
    uint32_t cons_from;      /* and where that was */
    uint32_t cons_to;
};

struct cpu_account {
    uint64_t sequence; /* its lowest bit: the line that counts */
    struct line lines[2];
};

struct head {
    uint64_t magic;
    uint64_t nr_cpus;
    struct cpu_account cpus[];
};

struct account {
    struct head *head;
    uint64_t bytes;
    unsigned int nr_cpus;
    struct account_sum *base;
    bool is_settled;
};

static uint64_t account_bytes(unsigned int nr_cpus)
{
    return align_up(sizeof(struct head) + nr_cpus * sizeof(struct cpu_account), PAGE_BYTES);
}

static int check_file(int fd, uint64_t bytes)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) && (uint64_t)st.st_size == bytes ? 0 : -EBADMSG;
}

static int account_map_file(struct account *account, int fd, bool is_new)
{
    struct head *head;
    int r;

    if (is_new && (ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)account->bytes) < 0))
        return -errno;
    r = check_file(fd, account->bytes);
    if (r < 0)
        return r;
    r = -posix_fallocate(fd, 0, (off_t)account->bytes); /* a page without space would be a SIGBUS */
    if (r < 0)
        return r;
    head = mmap(NULL, account->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (head == MAP_FAILED)
        return -errno;
    account->head = head;
    (void)memory_lock(head, account->bytes); /* memory_is_locked() reports it */
    if (is_new) {
        memset(head, 0, account->bytes);
        *head = (struct head){.magic = MAGIC, .nr_cpus = account->nr_cpus};
    }
    return head->magic == MAGIC && head->nr_cpus == account->nr_cpus ? 0 : -EBADMSG;
}

int account_map(int fd, unsigned int nr_cpus, bool is_new, struct account **ret_account)
{
    struct account *account = calloc(1, sizeof(*account));
    int r;

    if (!account)
        return -ENOMEM;
    account->nr_cpus = nr_cpus;
    account->bytes = account_bytes(nr_cpus);
    account->base = calloc(nr_cpus, sizeof(*account->base));
    r = account->base ? account_map_file(account, fd, is_new) : -ENOMEM;
    if (r < 0) {
        account_free(account);
        return r;
    }
    account->is_settled = is_new;
    *ret_account = account;
    return 0;
}

struct account *account_free(struct account *account)
{
    if (!account)
        return NULL;
    if (account->head)
        (void)munmap(account->head, account->bytes);
    free(account->base);
    free(account);
    return NULL;
}

bool account_is_settled(const struct account *account)
{
    return __atomic_load_n(&account->is_settled, __ATOMIC_ACQUIRE); /* account_settle() */
}

struct account_sum account_base(const struct account *account, unsigned int cpu)
{
    return account->base[cpu];
}

static const struct line *line_of(const struct cpu_account *cpu)
{
    return &cpu->lines[cpu->sequence & 1];
}

static void replace_line(struct cpu_account *cpu, const struct line *line)
{
    cpu->lines[(cpu->sequence + 1) & 1] = *line;
    __asm__ volatile("" ::: "memory"); /* the line before the number */
    __atomic_store_n(&cpu->sequence, cpu->sequence + 1, __ATOMIC_RELEASE);
}

void account_settle_cpu(struct account *account, unsigned int cpu, uint32_t cons)
{
    struct line line = *line_of(&account->head->cpus[cpu]);

    if (line.cons_from == cons && line.cons_to != cons) {
        line.sum.produced -= min_u64(line.last.produced, line.sum.produced);
        line.sum.lost -= min_u64(line.last.lost, line.sum.lost);
    }
    line.last = (struct account_sum){0};
    line.cons_from = line.cons_to = cons;
    replace_line(&account->head->cpus[cpu], &line);
}

void account_settle(struct account *account)
{
    if (account->is_settled)
        return;
    for (unsigned int cpu = 0; cpu < account->nr_cpus; cpu++)
        account->base[cpu] = line_of(&account->head->cpus[cpu])->sum;
    __atomic_store_n(&account->is_settled, true, __ATOMIC_RELEASE); /* account_is_settled() */
}

void account_enter(struct account *account, unsigned int cpu, uint32_t cons_from, uint32_t cons_to,
                   uint64_t produced, uint64_t lost)
{
    const struct line *before = line_of(&account->head->cpus[cpu]);
    const struct line line = {
        .sum = {.produced = before->sum.produced + produced, .lost = before->sum.lost + lost},
        .last = {.produced = produced, .lost = lost},
        .cons_from = cons_from,
        .cons_to = cons_to,
    };

    replace_line(&account->head->cpus[cpu], &line);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How many records a capture has taken from Xen, per CPU, in a file that outlives the process. What
 * reached the disk is in the capture's files; the rest of what is in the account was in the memory
 * of a daemon that was killed, and is the exact number of records that the capture has dropped.
 *
 * The main thread maps it; the collector thread writes it, one line for each window, before it
 * gives the window's space back to Xen. A process may be killed between the two: account_settle()
 * finds out whether it was, before the next one takes anything.
 */

#include <stdbool.h>
#include <stdint.h>

struct account;

/* Sums of all windows that were taken. */
struct account_sum {
    uint64_t produced; /* as in struct ledger */
    uint64_t lost;
};

/*
 * Maps the account in FD, which is borrowed. IS_NEW: makes it, of nothing. Returns 0, -EBADMSG (it
 * is none, or of a host with another number of CPUs), -ENOMEM or the error of mmap(2).
 */
int account_map(int fd, unsigned int nr_cpus, bool is_new, struct account **ret_account);
/* Takes NULL; returns NULL. */
struct account *account_free(struct account *account);

/* What was there when it was settled: before that, nothing is known. Any thread. */
bool account_is_settled(const struct account *account);
struct account_sum account_base(const struct account *account, unsigned int cpu);

/* --- Collector thread. --- */

/* CPU's consumer stands at CONS: a window that was entered, but not consumed, will come again. */
void account_settle_cpu(struct account *account, unsigned int cpu, uint32_t cons);
/* All CPUs were: from here on it is written. */
void account_settle(struct account *account);

/* A window of CPU was taken. */
void account_enter(struct account *account, unsigned int cpu, uint32_t cons_from, uint32_t cons_to,
                   uint64_t produced, uint64_t lost);

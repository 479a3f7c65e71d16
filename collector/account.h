/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How many records a capture has taken from Xen, per CPU, in a file that outlives the process. The
 * capture's files show how many of these reached the disk. If a daemon was killed, the difference
 * is the exact number of records that the capture has dropped.
 *
 * The main thread maps the file. The collector thread writes one line for each window, before it
 * returns the window's space to Xen. If the process is killed between these two steps,
 * account_settle() detects this before the next process reads any records.
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
 * Maps the account in FD, which is borrowed. IS_NEW: creates an empty account. Returns 0; -EBADMSG:
 * FD is not an account, or is from a host with another number of CPUs; -ENOMEM, or the error of
 * mmap(2).
 */
int account_map(int fd, unsigned int nr_cpus, bool is_new, struct account **ret_account);
/* Takes NULL; returns NULL. */
struct account *account_free(struct account *account);

/* The content at the time of account_settle(); unknown before that. Any thread. */
bool account_is_settled(const struct account *account);
struct account_sum account_base(const struct account *account, unsigned int cpu);

/* --- Collector thread. --- */

/* The consumer of CPU is at CONS: a window that was entered but not consumed will be read again. */
void account_settle_cpu(struct account *account, unsigned int cpu, uint32_t cons);
/* All CPUs are settled: the account may be written from now on. */
void account_settle(struct account *account);

/* A window of CPU was taken. */
void account_enter(struct account *account, unsigned int cpu, uint32_t cons_from, uint32_t cons_to,
                   uint64_t produced, uint64_t lost);

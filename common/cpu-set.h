/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Sets of physical CPUs, as a user lists them: "0-7", "0,2,4-", "all", "0xff00".
 *
 * Value type with room for every CPU Xen can have; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_SET_MAX 16384u /* Xen 4.19 and later: NR_CPUS <= 16383 (xen/arch/Kconfig) */

struct cpu_set {
    uint64_t bits[CPU_SET_MAX / 64];
};

static inline void cpu_set_add(struct cpu_set *set, unsigned int cpu)
{
    set->bits[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

static inline void cpu_set_remove(struct cpu_set *set, unsigned int cpu)
{
    set->bits[cpu / 64] &= ~(UINT64_C(1) << (cpu % 64));
}

static inline bool cpu_set_has(const struct cpu_set *set, unsigned int cpu)
{
    return cpu < CPU_SET_MAX && (set->bits[cpu / 64] >> (cpu % 64) & 1);
}

/* How many CPUs are in the set. */
unsigned int cpu_set_count(const struct cpu_set *set);

/*
 * Parses TEXT for a host whose CPUs are numbered 0 to NR_CPUS-1 (1 to CPU_SET_MAX of them): "all",
 * a comma-separated list of numbers, ranges "a-b" and open ranges "a-" and "-b", or a hexadecimal
 * mask "0x..." of any length. "0-0" is CPU 0. Pass CPU_SET_MAX to check no more than the syntax.
 * The set is never empty. Returns 0; -EINVAL (not a list), -ERANGE (a CPU that the host has not:
 * the sentence names the highest), each with one sentence in *RET_ERROR (free it); -ENOMEM.
 */
int cpu_set_parse(const char *text, unsigned int nr_cpus, struct cpu_set *ret_set,
                  char **ret_error);

/* The set as "0-7,9", "" if empty. Returns 0 or -ENOMEM; free *RET_TEXT. */
int cpu_set_format(const struct cpu_set *set, char **ret_text);

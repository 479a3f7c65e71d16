/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Numbers of xensim's command line. Deliberately not common/'s parsers: what tests the daemon does
 * not lean on it. All return 0 or -EINVAL.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sim.h"

struct parse_cpus {
    uint64_t bits[(SIM_MAX_CPUS + 63) / 64];
};

/* Decimal or 0x, up to MOST. */
int parse_u64(const char *text, uint64_t most, uint64_t *ret_value);

/* "50M", "1.5G", "4096": K, M, G are powers of 1024. */
int parse_bytes(const char *text, uint64_t *ret_bytes);

/* Seconds, as "2", "0.5". */
int parse_seconds(const char *text, double *ret_seconds);

/* "0-3,7". */
int parse_cpus(const char *text, struct parse_cpus *ret_cpus);

/* Comma-separated numbers, at most MOST of them; returns how many in *RET_COUNT. */
int parse_u32_list(const char *text, uint32_t *values, uint32_t most, uint32_t *ret_count);

static inline bool parse_cpus_has(const struct parse_cpus *cpus, uint32_t cpu)
{
    return cpu < SIM_MAX_CPUS && (cpus->bits[cpu / 64] >> (cpu % 64) & 1);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The command line of `xensim run`.
 */

#include "parse.h"
#include "producer.h"

struct run_options {
    struct producer_options producer;
    uint32_t cpus;
    double tsc_offset_sec;
    uint32_t max_pages;
    uint32_t preset_pages;
    uint32_t preset_mask;
    uint32_t faults;
    uint32_t fault_hits;
    uint32_t nr_kinds;
    uint32_t kinds[SIM_MAX_KINDS];
    struct parse_cpus offline;
    bool paused;
    char *const *command;
};

/* 0, or -EINVAL after sentences on stderr. What is returned points into ARGV. */
int run_options_parse(int argc, char **argv, struct run_options *ret_options);

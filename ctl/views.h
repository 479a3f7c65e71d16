/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The views of `report --view`: a table of their names, the measures that each needs, and the
 * function that prints it. docs/measures.md defines the numbers. Any thread that owns what it is
 * given.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/color.h"
#include "ctl/input.h"
#include "trace/measures.h"

struct table;

/* What a view prints from, and where. */
struct view_output {
    FILE *file;
    int width;         /* of the lines; 0: any */
    unsigned int rows; /* of the list of domains; 0: all */
    const struct palette *palette;
    const struct input *input;
    struct measures *measures;
};

struct view {
    const char *name;
    unsigned int parts; /* of enum measures_part and enum details_part */
    void (*print)(const struct view_output *output);
};

/* NULL: there is none of that name. */
const struct view *view_find(const char *name);
/* The I-th, for lists of them; NULL: there are no more. */
const struct view *view_at(size_t i);

/* --- For the views. --- */

#define VIEW_ROWS_MAX 100u /* of a table; --json has all */

/* CYCLES as a part of the whole span, in percent. */
double view_share(const struct view_output *output, uint64_t cycles);
/* COUNT a second, and CYCLES as so many each; 0 if there is none. */
double view_rate(const struct view_output *output, uint64_t count);
uint64_t view_mean(uint64_t cycles, uint64_t count);

/* Next cells: a count a second, a length of time, a vCPU ("unknown"), a domain. */
void view_add_rate(struct table *table, const struct view_output *output, uint64_t count);
void view_add_span(struct table *table, const struct view_output *output, uint64_t cycles);
void view_add_vcpu(struct table *table, const struct view_output *output, uint32_t key);
void view_add_domain(struct table *table, const struct view_output *output, uint32_t domid);

/* A list of tallies, the first VIEW_ROWS_MAX of which are shown. */
struct view_list {
    const char *title; /* "Exits"; NULL: none */
    const char *none;  /* a sentence, if it is empty; NULL: then nothing is printed */
    const char *columns;
    void (*add_row)(struct table *table, const struct view_output *output,
                    const struct tally *tally);
};

/* Those of KIND, sorted by time, then by number. */
void view_print_kind(const struct view_output *output, const struct view_list *list,
                     enum tally_kind kind);
/* The same for NR tallies, which it sorts. */
void view_print_tallies(const struct view_output *output, const struct view_list *list,
                        struct tally *tallies, size_t nr);

/* Those of KIND, whose subjects are vCPUs, as sums by domain; free it. NULL: no memory. */
struct tally *view_by_domain(const struct view_output *output, enum tally_kind kind,
                             size_t *ret_count);

/* The COUNT longest waits of all kinds, as a table. */
void view_print_longest(const struct view_output *output, unsigned int count);

/* --- The views. --- */

void view_print_domains(const struct view_output *output);
void view_print_vcpus(const struct view_output *output);
void view_print_cpus(const struct view_output *output);
void view_print_latency(const struct view_output *output);
void view_print_waits(const struct view_output *output);
void view_print_preemption(const struct view_output *output);
void view_print_migrations(const struct view_output *output);
void view_print_scheduler(const struct view_output *output);
void view_print_exits(const struct view_output *output);
void view_print_mmio(const struct view_output *output);
void view_print_interrupts(const struct view_output *output);
void view_print_power(const struct view_output *output);
void view_print_memory(const struct view_output *output);
void view_print_losses(const struct view_output *output);
void view_print_findings(const struct view_output *output);

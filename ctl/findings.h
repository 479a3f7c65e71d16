/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The findings of a trace: a sentence, with its numbers, for each measure that exceeds a limit. The
 * limits are in docs/measures.md. Any thread that owns what it is given.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/color.h"

struct input;
struct measures;

/* The sentence if there is none; ctl/last-report.c looks for its beginning. */
#define FINDINGS_NONE "Nothing stands out: no long wait, no overcommitted CPU, no gap."

struct finding {
    const char *kind; /* "wait", "overcommitted", ...: docs/measures.md */
    char *text;
    const char *view; /* the one that shows more of it; NULL: that of its kind */
    double weight;    /* findings of a kind: the heaviest first */
    bool has_vcpu;    /* it is about what happened to a vCPU at a time: */
    uint32_t vcpu;    /* domain << 16 | vCPU */
    uint64_t tsc;
};

struct findings;

/* The findings, by importance. 0 or -ENOMEM. */
int findings_new(const struct input *input, const struct measures *measures,
                 struct findings **ret_findings);
/* Takes NULL; returns NULL. */
struct findings *findings_free(struct findings *findings);

size_t findings_count(const struct findings *findings);
const struct finding *findings_at(const struct findings *findings, size_t i);

/*
 * The command that shows more of the I-th: "xentracectl why d5v2 --at +1.5s FILE". Free it. NULL:
 * the trace is not in a file, or no memory.
 */
char *findings_command(const struct findings *findings, size_t i);

/*
 * Prints the I-th in lines of at most WIDTH columns (0: any number): in red if something was lost,
 * stopped or waited, else in yellow, by PALETTE. Below it stands its command,
 * which is never divided: it is to be copied. How many lines that takes.
 */
void findings_print(const struct findings *findings, size_t i, FILE *file, unsigned int width,
                    const struct palette *palette);
unsigned int findings_lines(const struct findings *findings, size_t i, unsigned int width);

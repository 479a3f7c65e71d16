/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The trace that a command reads: its file or standard input, its sidecar, and what follows from
 * the two: times for people, names. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/util.h"
#include "trace/merge.h"

struct sidecar;
struct source;

struct input {
    char *path;          /* "-": standard input */
    char *sidecar_path;  /* NULL: there is none to look for */
    struct source *source;
    struct sidecar *sidecar;
    uint64_t tsc_khz;    /* never 0 */
    bool khz_is_assumed; /* neither the sidecar nor the user says it */
    struct merge merge;
    bool has_merge;
};

struct input_options {
    const char *path;
    uint64_t tsc_khz;       /* 0: the sidecar's */
    struct merge_part part; /* of it */
};

/* The frequency that is assumed if nobody says it: xenalyze's. */
#define INPUT_ASSUMED_KHZ UINT64_C(2400000)

/*
 * Opens the trace. Returns 0; a negative errno with a sentence in *RET_ERROR (free it); -ENOMEM. One
 * without a record is an error.
 */
int input_open(const struct input_options *options, struct input **ret_input, char **ret_error);

/*
 * A sentence to be freed if the file at PATH is a sidecar, which names its trace; NULL: it is none,
 * or no memory.
 */
char *input_explain_sidecar(const char *path);
/* Takes NULL; returns NULL. */
struct input *input_free(struct input *input);

static inline void input_freep(struct input **input)
{
    *input = input_free(*input);
}

#define _cleanup_input_ _cleanup_(input_freep)

/* Ticks as nanoseconds, cut off. */
uint64_t input_nsec(const struct input *input, uint64_t ticks);

#define INPUT_TEXT_MAX 96u

/*
 * When TSC was: "02:51:00.189" by the wall clock, if it is known, else "+3.512s" since FIRST_TSC.
 * Returns BUFFER.
 */
const char *input_when(const struct input *input, char buffer[static INPUT_TEXT_MAX], uint64_t tsc,
                       uint64_t first_tsc);
/* A length of time: "64.7ms", "412us". Returns BUFFER. */
const char *input_span(const struct input *input, char buffer[static INPUT_TEXT_MAX],
                       uint64_t ticks);
/* The same of nanoseconds. */
const char *input_span_nsec(char buffer[static INPUT_TEXT_MAX], uint64_t nsec);
/* A domain: "web", "d5" if it has no name, "idle". Returns BUFFER. */
const char *input_domain(const struct input *input, char buffer[static INPUT_TEXT_MAX],
                         uint32_t domid, uint64_t tsc);
/* A vCPU by domain << 16 | vCPU: "web v2". Returns BUFFER. */
const char *input_vcpu(const struct input *input, char buffer[static INPUT_TEXT_MAX], uint32_t key,
                       uint64_t tsc);

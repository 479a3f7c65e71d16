/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The trace that a command reads: its file or standard input, its sidecar, and what follows from
 * the two: times for people, names. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/util.h"
#include "ctl/reading.h"
#include "trace/merge.h"

struct sidecar;
struct source;
struct subjects;

struct input {
    char *path;         /* "-": standard input */
    char *name;         /* the path, as it is printed */
    bool is_now;        /* it is what the flight recorder holds */
    char *sidecar_path; /* NULL: there is none to look for */
    struct source *source;
    uint64_t begin; /* of its first window: where standard input stood */
    struct sidecar *sidecar;
    uint64_t tsc_khz;    /* never 0 */
    bool khz_is_assumed; /* neither the sidecar nor the user says it */
    struct merge merge;
    struct reading reading;    /* shows how far it is */
    bool has_merge;            /* it has begun */
    struct merge_part part;    /* what is read; input_begin() */
    struct subjects *subjects; /* what the answer is about; NULL: all */
    char *shown;               /* the same for people: "domain web, CPU 3" */
    uint64_t origin_tsc; /* where the trace begins, if a part of it was selected; 0: not known */
};

struct input_options {
    const char *path;
    uint64_t tsc_khz; /* 0: the sidecar's */
    bool keep;   /* a pipe, or a compressed file without a seek table, in a temporary file: its end
                  * must   be known, or it is read again */
    bool is_now; /* it is of now_take(), and PATH for hints: */
    int trace_fd, sidecar_fd; /* the first is taken */
};

/* The frequency that is assumed if nobody says it: xenalyze's. */
#define INPUT_ASSUMED_KHZ UINT64_C(2400000)

/*
 * Opens the trace and its sidecar; for commands: selection_open(). Returns 0; a negative errno with
 * a sentence in *RET_ERROR (free it); -ENOMEM.
 */
int input_open(const struct input_options *options, struct input **ret_input, char **ret_error);

/*
 * When its first item is, and its last; *RET_LAST is 0 if it is a pipe, which has begun by then.
 * False: no record has a time.
 */
bool input_find_span(struct input *input, uint64_t *ret_first, uint64_t *ret_last);
/*
 * Begins to read PART (input.merge). A trace without a record is an error. Returns as input_open().
 * What is no pipe, or was kept, may be begun again.
 */
int input_begin(struct input *input, struct merge_part part, char **ret_error);

/* The name of the file for people: "standard input" for "-". */
const char *input_name(const struct input *input);

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

/*
 * Reading INPUT ended with the negative errno R: makes a sentence of it, unless it is -ENOMEM.
 * AFTER is "", or " Nothing was written.". Returns R.
 */
int input_refuse(const struct input *input, int r, const char *after, char **ret_error);

/*
 * A trace could not be read: prints ERROR, which is freed, or without one what the negative errno R
 * means. Returns CTL_FAILURE.
 */
int input_fail(char *error, int r);

uint64_t input_ticks(const struct input *input, uint64_t usec);
/* Ticks as nanoseconds, cut off. */
uint64_t input_nsec(const struct input *input, uint64_t ticks);

#define INPUT_TEXT_MAX 96u

/*
 * When TSC was: "02:51:00.189" by the wall clock, if it is known, else "+3.512s" since FIRST_TSC,
 * or since the beginning of the trace if only a part of it was selected. Returns BUFFER.
 */
const char *input_when(const struct input *input, char buffer[static INPUT_TEXT_MAX], uint64_t tsc,
                       uint64_t first_tsc);
/* The same to the microsecond: "02:51:00.189123". */
const char *input_when_usec(const struct input *input, char buffer[static INPUT_TEXT_MAX],
                            uint64_t tsc, uint64_t first_tsc);
/* A length of time: "64.7ms", "412us". Returns BUFFER. */
const char *input_span(const struct input *input, char buffer[static INPUT_TEXT_MAX],
                       uint64_t ticks);
/* The same of nanoseconds. */
const char *input_span_nsec(char buffer[static INPUT_TEXT_MAX], uint64_t nsec);
/* A domain: "web", "d5" if it has no name, "idle". Returns BUFFER. */
const char *input_domain(const struct input *input, char buffer[static INPUT_TEXT_MAX],
                         uint32_t domid, uint64_t tsc);
/* A vCPU by domain << 16 | vCPU: "web v2", as Xen prints it ("d5v2") if the domain has no name,
 * "idle". Returns BUFFER. */
const char *input_vcpu(const struct input *input, char buffer[static INPUT_TEXT_MAX], uint32_t key,
                       uint64_t tsc);

/* Lines of a head, if there is something to say: why and when the snapshot was taken ... */
void input_print_cause(FILE *file, const struct input *input, uint64_t first_tsc);
/* ... the times are guesses, and how to learn better ones. */
void input_print_assumed(FILE *file, const struct input *input);

/*
 * For commands that are shown, quoted for a shell; to be freed. NULL: standard input, or no memory.
 * The trace, as it was named; a vCPU as why takes it: "web.1", or "d2v1" if the name does not lead
 * to it.
 */
char *input_argument(const struct input *input);
char *input_vcpu_argument(const struct input *input, uint32_t key, uint64_t tsc);

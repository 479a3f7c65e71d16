/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What domains and vCPUs did in the newest second: figures, sorted and selected, as a picture, a
 * table or a document. docs/measures.md defines the figures.
 *
 * No daemon, no terminal. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/color.h"
#include "ctl/doc.h"

struct args_list;
struct frame;

#define TOP_WHOLE_DOMAIN UINT32_MAX

/* A domain or a vCPU. Times are in ticks of the TSC. */
struct top_row {
    uint32_t domid;
    uint32_t vcpu; /* TOP_WHOLE_DOMAIN: of all its vCPUs */
    unsigned int nr_vcpus;
    const char *name, *uuid; /* "": unknown */
    uint64_t running, runnable;
    uint64_t waits, p99, most; /* of waits */
    uint64_t wakes, exits, migrations;
    uint64_t waits_since; /* of a vCPU that is waiting at the end: for how long; else 0 */
    uint64_t open;        /* what of that is in this second; of a domain, the sum */
};

/* Read only. */
struct top {
    struct json_object *doc; /* of the snapshot: its names */
    uint64_t khz;            /* never 0 */
    bool khz_is_assumed;
    uint64_t first_tsc, last_tsc;
    uint64_t records, bytes, gaps, lost;
    struct top_row *domains, *vcpus; /* by number */
    size_t nr_domains, nr_vcpus;
    struct top_cpu {
        uint32_t cpu;
        uint64_t busy, idle;
    } * cpus; /* by number */
    size_t nr_cpus;
    uint64_t busy; /* of all CPUs */
    bool has_exits;
};

/*
 * The figures of the trace of BYTES at DATA, which is not needed afterwards; DOC is its snapshot
 * document, made printable. 0; -ENODATA: no record; -ENOMEM.
 */
int top_new(const void *data, size_t bytes, struct json_object *doc, struct top **ret_top);
/*
 * BEFORE is of the second before (NULL: unknown): a vCPU that was waiting at its end and has no
 * record since is waiting still, and has a row in TOP, too. 0 or -ENOMEM.
 */
int top_follow(struct top *top, const struct top *before);
/* Takes NULL; returns NULL. */
struct top *top_free(struct top *top);

static inline void top_freep(struct top **top)
{
    *top = top_free(*top);
}

#define _cleanup_top_ _cleanup_(top_freep)

#define TOP_FILTER_MAX 32u

enum top_sort {
    TOP_CPU,
    TOP_WAIT,
    TOP_P99,
    TOP_MAX,
    TOP_WAKES,
    TOP_EXITS,
    TOP_MIGRATIONS,
    TOP_NAME,
    TOP_VCPU,
};
#define TOP_NR_SORTS 9u
#define TOP_SORTS    "cpu wait p99 max wakes exits migrations name vcpu" /* in that order */

/* What is shown, and how. Zero: domains, by CPU time. */
struct top_view {
    bool of_vcpus;
    enum top_sort sort;
    bool reverse;
    const struct args_list *domains; /* only of these: names, numbers, UUIDs; borrowed. NULL: all */
    bool has_domid;                  /* only of this one */
    uint32_t domid;
    char filter[TOP_FILTER_MAX + 1]; /* only of domains with that in their name; "": all */

    bool is_typing;       /* keys go to the filter */
    unsigned int row;     /* the one that is selected */
    uint64_t selected;    /* ... as it was drawn: domid << 32 | vcpu */
    bool is_kept;         /* it stays selected, wherever it is sorted to */
    unsigned int nr_rows; /* as drawn; and those that fit */
    unsigned int a_page;
};

/* The one called NAME, a word of TOP_SORTS. */
enum top_sort top_sort_of(const char *name);

/* The rest of FRAME but its last row. TOP may be NULL. */
void top_draw(struct frame *frame, const struct top *top, struct top_view *view,
              const struct palette *palette);
/* A key was pressed. Returns whether it was one of these. */
bool top_press(struct top_view *view, int key);
/* Lines of help for the keys; NULL at the end. Static. */
const char *const *top_help(void);

void top_print(FILE *file, const struct top *top, const struct top_view *view);
/* To be freed with doc_free(); NULL: no memory. */
struct json_object *top_document(const struct top *top, const struct top_view *view);

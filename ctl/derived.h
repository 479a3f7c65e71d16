/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The sidecar of a trace that was made from another one, by `cut` or `repair`
 * (docs/file-format.md): a snapshot's, with the facts of the original's that apply to it.
 */

#include <stdint.h>

#include "ctl/doc.h"

struct output;
struct sidecar;

/* The new trace. */
struct derived {
    const char *cause;   /* "cut", "repair" */
    const char *from;    /* the path of the original, as typed */
    const char *message; /* a sentence about it */
    uint64_t tsc_khz;    /* 0: the original's sidecar has it, or nobody knows */
    uint64_t bytes, records, lost;
    uint64_t first_tsc, last_tsc; /* of its records */
    uint64_t complete_from_tsc;   /* as the original's, if that is later; 0: the original's */
};

/*
 * ORIGINAL is the original's sidecar, and CLOCK the same, read: both are borrowed; ORIGINAL may be
 * NULL. OUTPUT is where the new trace is. The caller may add to the document. Never fails: without
 * memory, keys are left out.
 */
struct json_object *derived_doc(struct json_object *original, const struct sidecar *clock,
                                const struct derived *derived, const struct output *output);

/*
 * Writes DOC as the sidecar of OUTPUT, if it has one, and lets both files stand. An error has a
 * sentence in *RET_ERROR (free it).
 */
int derived_keep(struct output *output, struct json_object *doc, char **ret_error);

/* The document at the original's sidecar path; NULL: none, or it is no sidecar. */
struct json_object *derived_read_original(const char *sidecar_path);

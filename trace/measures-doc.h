/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The object `measures` of `report --json`: docs/measures.md. Only the parts that were computed are
 * there. Any thread.
 */

#include <json-c/json.h>

struct measures;

/* 14 KB of json-c's memory each: more than any host has, and less than a stranger's trace may. */
#define MEASURES_DOC_MOST 16384u

/*
 * Adds it to DOC. Of more than MEASURES_DOC_MOST vCPUs or domains it has those that ran and waited
 * longest, and `trimmed`. Without memory keys are left out. Takes the waits from the vCPUs.
 */
void measures_doc_add(struct json_object *doc, struct measures *measures);

/* How many there are, though `most` of them are in the document: those that ran and waited longest.
 */
struct measures_doc_limit {
    size_t most;
    size_t nr_vcpus, nr_domains;
};

/* As measures_doc_add(), with a limit. */
void measures_doc_add_most(struct json_object *doc, struct measures *measures,
                           struct measures_doc_limit *limit);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The object `measures` of `report --json`: docs/measures.md. Any thread.
 */

#include <json-c/json.h>

struct measures;

/* Adds it to DOC. Without memory keys are left out. */
void measures_doc_add(struct json_object *doc, const struct measures *measures);

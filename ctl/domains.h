/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who was who: the domains of a session or snapshot document, for people.
 */

#include <stdio.h>

struct json_object;

/* How many there are and which names are missing, then a line for each. Nothing for older
 * documents. */
void domains_print(FILE *file, struct json_object *doc);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The flight recorder as the daemon describes it beside its session: stopped on request, or why
 * else it does not run. docs/control-protocol.md has the object's keys.
 */

#include <json-c/json.h>
#include <stdio.h>

/*
 * One line, if the recorder does not run: who stopped it, when, and how it is started. RECORDER
 * (may be NULL: an older daemon) is printable.
 */
void recorder_print(FILE *file, struct json_object *recorder);

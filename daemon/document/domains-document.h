/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who was who, as JSON: docs/control-protocol.md. Main thread.
 */

#include <stdint.h>

struct domain_names;
struct domains;
struct json_object;

/*
 * Puts "domains", those that were there at FROM_NS or later, and "domain_names" into DOCUMENT.
 * Those that run are still there at UNTIL_NS.
 */
void domains_put(struct json_object *document, const struct domains *domains,
                 const struct domain_names *names, uint64_t from_ns, uint64_t until_ns);

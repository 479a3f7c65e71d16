// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/domains.h"

#include <inttypes.h>
#include <string.h>

#include "ctl/doc.h"
#include "ctl/str.h"
#include "ctl/table.h"

#define ROWS_MAX 40u /* more are for programs */

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

static void print_rows(FILE *file, struct json_object *domains)
{
    _cleanup_table_ struct table *table = NULL;
    size_t rows = doc_length(domains);

    if (table_new(">DOMID NAME UUID FROM TO", &table) < 0)
        return;
    for (size_t i = 0; i < rows && i < ROWS_MAX; i++) {
        struct json_object *domain = doc_at(domains, i);
        char from[STR_TIME_MAX], to[STR_TIME_MAX];

        table_add(table, "%" PRIu64, doc_number(domain, "domid"));
        table_add(table, "%s", or_dash(doc_text(domain, "name", "")));
        table_add(table, "%s", or_dash(doc_text(domain, "uuid", "")));
        table_add(table, "%s", str_time(from, doc_number(domain, "first_seen_ns")));
        table_add(table, "%s", str_time(to, doc_number(domain, "last_seen_ns")));
    }
    table_print(table, file, 4, 0);
    if (rows > ROWS_MAX)
        (void)fprintf(file, "    ... and %zu more; all of them: xentracectl info --json\n",
                      rows - ROWS_MAX);
}

void domains_print(FILE *file, struct json_object *doc)
{
    struct json_object *domains = doc_array(doc, "domains");
    const char *names = doc_text(doc, "domain_names", "");
    const char *missing = "";

    if (!doc_length(domains))
        return;
    if (strcmp(names, "unavailable") == 0)
        missing = "; names are missing: xenstored was not reached";
    else if (strcmp(names, "incomplete") == 0)
        missing = "; xenstored had no name for some";
    table_print_field(file, "Domains", "%zu%s", doc_length(domains), missing);
    print_rows(file, domains);
}

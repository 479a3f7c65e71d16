// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/files.h"

#include <inttypes.h>

#include "common/units.h"
#include "ctl/str.h"
#include "ctl/table.h"

#define FORMAT "xentraced-files"

/* --- Calls. --- */

static void add_limit(struct json_object *parameters, const char *key, uint64_t limit)
{
    if (limit)
        doc_add_number(parameters, key, limit);
}

/* PARAMETERS NULL: none. */
static int ask(const char *socket, const char *method, struct json_object *parameters,
               struct json_object **ret_files, char **ret_error)
{
    _cleanup_client_ struct client *client = NULL;
    int r;

    r = client_new(socket, &client, ret_error);
    if (r < 0)
        return r;
    return client_call(client,
                       &(struct client_call){.method = method,
                                             .parameters = parameters,
                                             .answer = REPLY_FILES,
                                             .format = FORMAT,
                                             .timeout_usec = CLIENT_LONG_TIMEOUT_USEC},
                       ret_files, ret_error);
}

int files_list(const char *socket, struct json_object **ret_files, char **ret_error)
{
    return ask(socket, PROTOCOL_FILES, NULL, ret_files, ret_error);
}

int files_vacuum(const char *socket, const struct files_limits *limits,
                 struct json_object **ret_files, char **ret_error)
{
    _cleanup_doc_ struct json_object *parameters = json_object_new_object();

    add_limit(parameters, FIELD_MAX_USE, limits->max_use_bytes);
    add_limit(parameters, FIELD_KEEP_FREE, limits->keep_free_bytes);
    add_limit(parameters, FIELD_MAX_AGE, limits->max_age_usec);
    if (limits->dry_run)
        doc_add_flag(parameters, FIELD_DRY_RUN, true);
    return ask(socket, PROTOCOL_VACUUM, parameters, ret_files, ret_error);
}

int files_remove(const char *socket, char *const *names, struct json_object **ret_files,
                 char **ret_error)
{
    _cleanup_doc_ struct json_object *parameters = json_object_new_object();
    struct json_object *array = doc_add_array(parameters, FIELD_NAMES);

    for (; *names; names++)
        doc_append_text(array, *names);
    return ask(socket, PROTOCOL_REMOVE, parameters, ret_files, ret_error);
}

/* --- Pictures. --- */

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

/* "trigger crash", "request", "start". */
static void add_cause(struct table *table, struct json_object *entry)
{
    const char *label = doc_text(entry, "label", "");

    table_add(table, "%s%s%s", or_dash(doc_text(entry, "cause", "")), *label ? " " : "", label);
}

/* Whether vacuum may remove it. */
static const char *describe_use(struct json_object *entry)
{
    if (doc_flag(entry, "open"))
        return "open";
    if (!doc_flag(entry, "removable"))
        return "kept";
    if (doc_flag(entry, "first"))
        return "first";
    return doc_flag(entry, "protected") ? "last" : "yes";
}

static void print_table(FILE *file, struct json_object *files, bool only_removed, int width)
{
    struct json_object *list = doc_array(files, "files");
    _cleanup_table_ struct table *table = NULL;

    if (table_new(only_removed ? "~NAME ?KIND >SIZE TIME ?~CAUSE ~DOMAIN"
                               : "~NAME ?KIND >SIZE TIME ?~CAUSE ~DOMAIN VACUUM",
                  &table) < 0)
        return;
    for (size_t i = 0; i < doc_length(list); i++) {
        struct json_object *entry = doc_at(list, i);
        char size[UNITS_TEXT_MAX], time[STR_TIME_MAX];

        if (only_removed && !doc_flag(entry, "removed"))
            continue;
        table_add(table, "%s", doc_text(entry, "name", "-"));
        table_add(table, "%s", doc_text(entry, "kind", "-"));
        table_add(table, "%s", size_format(size, doc_number(entry, "bytes")));
        table_add(table, "%s", str_time(time, doc_number(entry, "time_ns")));
        add_cause(table, entry);
        table_add(table, "%s", or_dash(doc_text(entry, "domain", "")));
        if (!only_removed)
            table_add(table, "%s", describe_use(entry));
    }
    table_print(table, file, 0, width);
}

/* Why traces stay although too little is free. */
static void print_short(FILE *file, struct json_object *files)
{
    if (doc_number(files, "disk.free_bytes") < doc_number(files, "limits.keep_free_bytes"))
        (void)fputs("Less than keep-free= is free: traces are removed for it only as far as they "
                    "have grown.\n",
                    file);
}

static void print_sums(FILE *file, struct json_object *files)
{
    uint64_t max_use = doc_number(files, "limits.max_use_bytes");
    uint64_t keep_free = doc_number(files, "limits.keep_free_bytes");
    uint64_t age = doc_number(files, "limits.max_age_usec");
    char bytes[UNITS_TEXT_MAX], removable[UNITS_TEXT_MAX], left[UNITS_TEXT_MAX];
    char limit[UNITS_TEXT_MAX];

    if (doc_number(files, "disk.held_bytes"))
        (void)fprintf(file, "\n%s more are removed, but still open in other processes",
                      size_format(bytes, doc_number(files, "disk.held_bytes")));
    (void)fprintf(file, "\n%s in %s, %s of it removable; %s free on the disk\n",
                  size_format(bytes, doc_number(files, "bytes")),
                  doc_text(files, "state_dir", "an unknown directory"),
                  size_format(removable, doc_number(files, "removable_bytes")),
                  size_format(left, doc_number(files, "disk.free_bytes")));
    (void)fprintf(file, "Limits: max-use=%s", max_use ? size_format(limit, max_use) : "none");
    (void)fprintf(file, " keep-free=%s", keep_free ? size_format(limit, keep_free) : "none");
    (void)fprintf(file, " max-file-age=%s\n", age ? duration_format(limit, age) : "none");
    print_short(file, files);
}

void files_print(FILE *file, struct json_object *files, int width)
{
    if (doc_length(doc_array(files, "files")))
        print_table(file, files, false, width);
    else
        (void)fprintf(file, "There is no trace in %s.\n",
                      doc_text(files, "state_dir", "the state directory"));
    print_sums(file, files);
}

void files_print_removed(FILE *file, struct json_object *files, int width)
{
    bool dry_run = doc_flag(files, "dry_run");
    uint64_t count = doc_number(files, "removed");
    char bytes[UNITS_TEXT_MAX];

    if (count)
        print_table(file, files, true, width);
    (void)fprintf(file, "%s%" PRIu64 " trace%s, %s%s.\n", dry_run ? "Would remove " : "Removed ",
                  count, count == 1 ? "" : "s",
                  size_format(bytes, doc_number(files, "removed_bytes")),
                  dry_run ? ". This was a dry run: all traces are still there" : "");
}

// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/document/reload-document.h"

#include "daemon/base/json-put.h"
#include "daemon/config/config-keys.h"
#include "daemon/config/config-merge.h"
#include "daemon/config/config-reading.h"
#include "daemon/config/config-triggers.h"

static const char *change_name(enum config_change_kind kind)
{
    switch (kind) {
    case CONFIG_CHANGED:
        return "changed";
    case CONFIG_ADDED:
        return "added";
    case CONFIG_REMOVED:
        return "removed";
    }
    return "";
}

static json *document_of_change(const struct config_change *change)
{
    json *object = json_object_new_object();

    json_put_text(object, "change", change_name(change->kind));
    json_put_text(object, "section", change->title);
    json_put_text(object, "key", change->key ? change->key->name : "");
    json_put_text(object, "value", change->value);
    json_put_text(object, "origin", change->origin);
    json_put_bool(object, "applied", change->is_applied);
    return object;
}

static void add_text(json *array, char *text)
{
    if (text)
        (void)json_object_array_add(array, json_object_new_string(text));
    free(text);
}

/* Triggers that wait for what events= of the file records, but not the recorder that runs. */
static void add_unrecorded(json *warnings, const struct config *merged)
{
    for (size_t i = 0; i < merged->nr_triggers && merged->recorder.enabled; i++) {
        const char *missing;
        char *text;

        if (config_records_for(merged, &merged->triggers[i], &missing))
            continue;
        if (asprintf(&text,
                     "The trigger '%s' cannot fire before xentraced is restarted: the flight "
                     "recorder does not record %s yet.",
                     merged->triggers[i].name, missing) >= 0)
            add_text(warnings, text);
    }
}

struct json_object *document_of_reload(const struct config_reading *reading,
                                       const struct config *merged,
                                       const struct config_changes *changes)
{
    json *object = json_object_new_object();
    json *files = json_object_new_array(), *array = json_object_new_array();
    json *warnings = json_object_new_array();

    for (size_t i = 0; i < reading->nr_files; i++)
        (void)json_object_array_add(files, json_object_new_string(reading->files[i]));
    for (size_t i = 0; i < changes->count; i++)
        (void)json_object_array_add(array, document_of_change(&changes->items[i]));
    for (size_t i = 0; i < reading->nr_problems; i++)
        add_text(warnings, config_describe_problem(&reading->problems[i]));
    add_unrecorded(warnings, merged);
    json_put_text(object, "format", "xentraced-reload");
    json_put_count(object, "version", 1);
    json_put(object, "files", files);
    json_put(object, "changes", array);
    json_put(object, "warnings", warnings);
    return object;
}

// SPDX-License-Identifier: GPL-2.0-or-later

#include "tests/ctl/fake-files.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "common/protocol.h"
#include "common/util.h"
#include "tests/ctl/fake-options.h"

#define MIB UINT64_C(1048576)

static const struct {
    const char *name, *kind, *cause, *label, *domain;
    uint64_t mib;
    bool open, removable, protected;
} files[] = {
    {"snapshot-20261121-060512", "snapshot", "request", "", "", 40, false, true, false},
    {"snapshot-crash-20261122", "snapshot", "trigger", "crash", "web", 64, false, true, true},
    {"nightly.00007", "segment", "configured", "", "", 100, true, true, false},
    {"mine", "capture", "start", "", "", 300, false, false, false},
};

struct limits {
    uint64_t max_use, keep_free, age;
    int dry_run;
};

static void add_text(struct json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, json_object_new_string(text));
}

static void add_number(struct json_object *object, const char *key, uint64_t number)
{
    json_object_object_add(object, key, json_object_new_uint64(number));
}

static void add_flag(struct json_object *object, const char *key, bool flag)
{
    json_object_object_add(object, key, json_object_new_boolean(flag));
}

static struct json_object *file_document(size_t i, bool removed)
{
    struct json_object *object = json_object_new_object();

    add_text(object, "name", files[i].name);
    add_text(object, "kind", files[i].kind);
    add_number(object, "bytes", files[i].mib * MIB);
    add_number(object, "time_ns", UINT64_C(1795241112123456789));
    add_text(object, "cause", files[i].cause);
    add_text(object, "label", files[i].label);
    add_text(object, "domain", files[i].domain);
    add_flag(object, "open", files[i].open);
    add_flag(object, "removable", files[i].removable);
    add_flag(object, "protected", files[i].protected);
    add_flag(object, "removed", removed);
    return object;
}

/* REMOVED: a bit for each. */
static int answer(sd_bus_message *message, const struct limits *given, unsigned int removed)
{
    struct json_object *doc = json_object_new_object(), *list = json_object_new_array();
    struct json_object *limits = json_object_new_object(), *disk = json_object_new_object();
    uint64_t bytes = 0;
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        json_object_array_add(list, file_document(i, removed >> i & 1));
        bytes += removed >> i & 1 ? files[i].mib * MIB : 0;
    }
    add_text(doc, "format", "xentraced-files");
    add_number(doc, "version", 1);
    add_text(doc, "state_dir", "/fake/state");
    add_number(disk, "free_bytes", 5 * 1024 * MIB);
    json_object_object_add(doc, "disk", disk);
    add_number(limits, "max_use_bytes", given->max_use);
    add_number(limits, "keep_free_bytes", given->keep_free);
    add_number(limits, "max_age_usec", given->age);
    json_object_object_add(doc, "limits", limits);
    add_number(doc, "bytes", 504 * MIB);
    add_number(doc, "removable_bytes", 204 * MIB);
    add_flag(doc, "dry_run", given->dry_run);
    add_number(doc, "removed", (uint64_t)__builtin_popcount(removed));
    add_number(doc, "removed_bytes", bytes);
    json_object_object_add(doc, "files", list);
    r = sd_bus_reply_method_return(message, "s", json_object_to_json_string(doc));
    json_object_put(doc);
    return r;
}

static int take_limit(void *context, sd_bus_message *message, const char *key)
{
    struct limits *limits = context;

    if (strcmp(key, OPTION_MAX_USE) == 0)
        return sd_bus_message_read(message, "v", "t", &limits->max_use);
    if (strcmp(key, OPTION_KEEP_FREE) == 0)
        return sd_bus_message_read(message, "v", "t", &limits->keep_free);
    if (strcmp(key, OPTION_FILE_AGE) == 0)
        return sd_bus_message_read(message, "v", "t", &limits->age);
    if (strcmp(key, OPTION_DRY_RUN) == 0)
        return sd_bus_message_read(message, "v", "b", &limits->dry_run);
    return -EINVAL;
}

static int handle_remove(sd_bus_message *message)
{
    const struct limits none = {};
    unsigned int removed = 0;
    char **names = NULL;
    int r = sd_bus_message_read_strv(message, &names);

    for (size_t n = 0; r >= 0 && names && names[n]; n++)
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
            if (strcmp(names[n], files[i].name) == 0)
                removed |= 1u << i;
    if (names && names[0] && strcmp(names[0], "nightly") == 0)
        r = sd_bus_reply_method_errorf(message, ERROR_BUSY,
                                       "'nightly' is running. To end it: xentracectl stop nightly");
    else
        r = answer(message, &none, removed);
    for (size_t n = 0; names && names[n]; n++)
        free(names[n]);
    free(names);
    return r;
}

int fake_files_handle(sd_bus_message *message)
{
    struct limits limits = {};

    if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_REMOVE))
        return handle_remove(message);
    if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_FILES)) {
        limits = (struct limits){.max_use = 1024 * MIB, .keep_free = 2048 * MIB};
        return answer(message, &limits, 0);
    }
    if (!sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_VACUUM))
        return 0;
    if (fake_read_options(message, take_limit, &limits) < 0)
        return sd_bus_reply_method_errno(message, -EINVAL, NULL);
    return answer(message, &limits, limits.max_use || limits.keep_free || limits.age ? 3 : 0);
}

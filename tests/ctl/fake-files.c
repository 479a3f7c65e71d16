// SPDX-License-Identifier: GPL-2.0-or-later

#include "tests/ctl/fake-files.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "common/doc-make.h"
#include "common/protocol.h"
#include "common/util.h"

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
static void answer(const struct fake_call *call, const struct limits *given, unsigned int removed)
{
    struct json_object *doc = json_object_new_object(), *list = json_object_new_array();
    struct json_object *limits = json_object_new_object(), *disk = json_object_new_object();
    uint64_t bytes = 0;

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
    fake_reply_document(call->peer, REPLY_FILES, doc, false);
}

static void handle_remove(const struct fake_call *call)
{
    struct json_object *names = doc_find(call->parameters, FIELD_NAMES);
    const struct limits none = {};
    unsigned int removed = 0;

    for (size_t n = 0; n < json_object_array_length(names); n++) {
        const char *name = json_object_get_string(json_object_array_get_idx(names, n));

        if (strcmp(name, "nightly") == 0) {
            fake_error(call->peer, ERROR_PREFIX "Busy", "'nightly' is running.",
                       "To end it: xentracectl stop nightly");
            return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
            if (strcmp(name, files[i].name) == 0)
                removed |= 1u << i;
    }
    answer(call, &none, removed);
}

bool fake_files_handle(const struct fake_call *call)
{
    struct limits limits = {};

    if (strcmp(call->method, PROTOCOL_REMOVE) == 0) {
        handle_remove(call);
    } else if (strcmp(call->method, PROTOCOL_FILES) == 0) {
        limits = (struct limits){.max_use = 1024 * MIB, .keep_free = 2048 * MIB};
        answer(call, &limits, 0);
    } else if (strcmp(call->method, PROTOCOL_VACUUM) == 0) {
        limits.max_use = fake_number(call, FIELD_MAX_USE);
        limits.keep_free = fake_number(call, FIELD_KEEP_FREE);
        limits.age = fake_number(call, FIELD_MAX_AGE);
        limits.dry_run = fake_flag(call, FIELD_DRY_RUN);
        answer(call, &limits, limits.max_use || limits.keep_free || limits.age ? 3 : 0);
    } else {
        return false;
    }
    return true;
}

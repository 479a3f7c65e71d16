// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/document/files-document.h"

#include <string.h>

#include <json-c/json.h>

#include "daemon/base/json-put.h"
#include "daemon/output/vacuum.h"

static const char *kind_name(enum state_file_kind kind)
{
    switch (kind) {
    case STATE_FILE_UNKNOWN:
        return "unknown";
    case STATE_FILE_CAPTURE:
        return "capture";
    case STATE_FILE_SEGMENT:
        return "segment";
    case STATE_FILE_SNAPSHOT:
        return "snapshot";
    }
    return "unknown";
}

static json *file_document(const struct state_file *file, const struct vacuum_file *plan)
{
    json *object = json_object_new_object();

    json_put_text(object, "name", file->name);
    json_put_text(object, "kind", kind_name(file->kind));
    json_put_count(object, "bytes", file->bytes);
    json_put_count(object, "time_ns", file->time_ns);
    json_put_text(object, "cause", file->cause);
    json_put_text(object, "label", file->label);
    json_put_text(object, "session", file->session);
    json_put_text(object, "domain", file->domain);
    json_put_bool(object, "open", file->is_open || file->is_in_use);
    json_put_bool(object, "removable", plan->vacuum_class != VACUUM_NEVER);
    json_put_bool(object, "first", plan->vacuum_class == VACUUM_FIRST);
    json_put_bool(object, "protected", plan->vacuum_class == VACUUM_LAST);
    json_put_bool(object, "removed", plan->goes);
    return object;
}

json *document_of_disk(const struct vacuum_disk *disk)
{
    json *object = json_object_new_object();

    json_put_count(object, "free_bytes", disk->free_bytes);
    json_put_count(object, "keep_free_bytes", disk->keep_free_bytes);
    json_put_bool(object, "filled_by_others", disk->is_of_others);
    json_put_text(object, "error", disk->error ? strerror(-disk->error) : "");
    json_put_count(object, "held_bytes", disk->held.bytes);
    json_put_count(object, "held_files", disk->held.files);
    return object;
}

json *document_of_files(const char *state_dir, const struct vacuum_result *result)
{
    json *document = json_object_new_object(), *limits = json_object_new_object();
    json *disk = json_object_new_object(), *list = json_object_new_array();
    uint64_t bytes = 0, removable_bytes = 0;

    for (size_t i = 0; i < result->files->count; i++) {
        const struct state_file *file = &result->files->files[i];

        bytes += file->bytes;
        if (result->plan[i].vacuum_class != VACUUM_NEVER)
            removable_bytes += file->bytes;
        (void)json_object_array_add(list, file_document(file, &result->plan[i]));
    }
    json_put_text(document, "format", "xentraced-files");
    json_put_count(document, "version", 1);
    json_put_text(document, "state_dir", state_dir);
    json_put_count(disk, "total_bytes", result->files->total_bytes);
    json_put_count(disk, "free_bytes", result->files->free_bytes);
    json_put(document, "disk", disk);
    json_put_count(limits, "max_use_bytes", result->limits.max_use_bytes);
    json_put_count(limits, "keep_free_bytes", result->limits.keep_free_bytes);
    json_put_count(limits, "max_age_usec", result->limits.max_age_usec);
    json_put(document, "limits", limits);
    json_put_count(document, "bytes", bytes);
    json_put_count(document, "removable_bytes", removable_bytes);
    json_put_count(disk, "held_bytes", result->held.bytes);
    json_put_count(disk, "held_files", result->held.files);
    json_put_bool(document, "dry_run", result->dry_run);
    json_put_count(document, "removed", result->outcome.files);
    json_put_count(document, "removed_bytes", result->outcome.bytes);
    json_put(document, "files", list);
    return document;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* struct info as JSON: the format is described in xentracectl(1), keys are only ever added. */

#include "ctl/info.h"

#include "ctl/session.h"
#include "ctl/str.h"

#include "common/units.h"

static const char *damage_kind(enum trace_file_damage damage)
{
    switch (damage) {
    case TRACE_FILE_SOUND:
        return NULL;
    case TRACE_FILE_EMPTY:
        return "empty";
    case TRACE_FILE_NOT_A_TRACE:
        return "not-a-trace";
    case TRACE_FILE_TORN_WINDOW:
        return "torn-window";
    case TRACE_FILE_ZEROES:
        return "zeroes";
    case TRACE_FILE_NO_WINDOW:
        return "no-window";
    case TRACE_FILE_NESTED_WINDOW:
        return "nested-window";
    case TRACE_FILE_RECORD_OVERLAP:
        return "record-overlap";
    }
    return "unknown";
}

static void add_counts(struct json_object *object, const struct trace_file_summary *summary)
{
    doc_add_number(object, "bytes", summary->bytes);
    doc_add_number(object, "sound_bytes", summary->sound_bytes);
    doc_add_number(object, "windows", summary->windows);
    doc_add_number(object, "rounds", summary->rounds);
    doc_add_number(object, "records", summary->records);
    doc_add_number(object, "lost", summary->lost);
    doc_add_number(object, "first_tsc", summary->first_tsc);
    doc_add_number(object, "last_tsc", summary->last_tsc);
}

static void add_classes(struct json_object *object, const struct trace_file_summary *summary)
{
    struct json_object *classes = doc_add_object(object, "classes");

    for (unsigned int i = 0; i < EVENT_CLASSES; i++) {
        if (summary->class_records[i])
            doc_add_number(classes, event_class_name(UINT32_C(1) << (16 + i)),
                           summary->class_records[i]);
    }
}

static void add_cpus(struct json_object *object, const struct trace_file_summary *summary)
{
    struct json_object *cpus = doc_add_array(object, "cpus");

    for (unsigned int i = 0; i < summary->nr_cpus; i++) {
        const struct trace_file_cpu *cpu = &summary->cpus[i];
        struct json_object *entry;

        if (!cpu->present)
            continue;
        entry = doc_append_object(cpus);
        doc_add_number(entry, "cpu", i);
        doc_add_number(entry, "windows", cpu->windows);
        doc_add_number(entry, "bytes", cpu->bytes);
        doc_add_number(entry, "records", cpu->records);
        doc_add_number(entry, "lost", cpu->lost);
        doc_add_number(entry, "first_tsc", cpu->first_tsc);
        doc_add_number(entry, "last_tsc", cpu->last_tsc);
    }
}

static void add_sidecar(struct json_object *object, const struct info *info)
{
    struct json_object *sidecar;

    if (!info->sidecar && !info->sidecar_error)
        return;
    sidecar = doc_add_object(object, "sidecar");
    doc_add_text(sidecar, "path", info->sidecar_path);
    if (info->sidecar_error)
        doc_add_text(sidecar, "error", info->sidecar_error);
    if (!info->sidecar)
        return;
    doc_add_flag(sidecar, "running", info_is_running(info));
    doc_add_flag(sidecar, "incomplete", info_is_short(info));
    doc_add_document(sidecar, "session", info->sidecar);
}

void info_add_json(struct json_object *array, const struct info *info)
{
    struct json_object *object = doc_append_object(array);
    const struct trace_file_summary *summary = info->summary;
    uint64_t khz = info_tsc_khz(info);

    doc_add_text(object, "path", info->path);
    doc_add_flag(object, "sound", info_is_sound(info));
    if (!summary) {
        doc_add_text(object, "error", info->error);
        return;
    }
    if (summary->damage != TRACE_FILE_SOUND) {
        struct json_object *damage = doc_add_object(object, "damage");

        doc_add_text(damage, "kind", damage_kind(summary->damage));
        doc_add_text(damage, "text", trace_file_damage_text(summary->damage));
        doc_add_number(damage, "offset", summary->damage_offset);
    }
    add_counts(object, summary);
    if (khz) {
        doc_add_number(object, "tsc_khz", khz);
        doc_add_number(object, "span_usec",
                       str_ticks_usec(summary->last_tsc - summary->first_tsc, khz));
    }
    add_classes(object, summary);
    add_cpus(object, summary);
    add_sidecar(object, info);
}

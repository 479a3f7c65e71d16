// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/timeline-doc.h"

#include <inttypes.h>
#include <stdio.h>

#include "ctl/doc.h"
#include "ctl/input.h"
#include "ctl/selection.h"
#include "trace/sidecar.h"
#include "trace/timeline.h"

struct name {
    char text[32];
};

static struct name vcpu_name(uint32_t key)
{
    struct name name;

    (void)snprintf(name.text, sizeof(name.text), "d%" PRIu32 "v%" PRIu32, key >> 16, key & 0xffff);
    return name;
}

static const char *state_name(unsigned int state)
{
    return state == TIMELINE_LOST ? "lost" : state_runstate_name((enum state_runstate)state);
}

static void add_cpu(struct json_object *doc, const struct timeline *timeline,
                    const struct timeline_row *row)
{
    struct json_object *cycles = doc_add_object(doc, "cycles"), *cells, *list;

    doc_add_number(doc, "cpu", row->id);
    doc_add_number(cycles, "busy", row->cycles[STATE_RUNNING]);
    doc_add_number(cycles, "idle", row->idle_cycles);
    doc_add_number(cycles, "lost", row->cycles[TIMELINE_LOST]);
    doc_add_number(cycles, "waits", row->cycles[STATE_RUNNABLE]);
    cells = doc_add_array(doc, "cells");
    for (unsigned int k = 0; k < timeline->columns; k++)
        doc_append_text(cells, row->cells[k].state == STATE_RUNNING
                                   ? vcpu_name(row->cells[k].key).text
                                   : state_name(row->cells[k].state));
    list = doc_add_array(doc, "waiting");
    for (unsigned int k = 0; row->waiters && k < timeline->columns; k++) {
        const struct timeline_waiters *waiters = &row->waiters[k];
        struct json_object *entry;

        if (waiters->nr == 0)
            continue;
        entry = doc_append_object(list);
        doc_add_number(entry, "column", k);
        doc_add_number(entry, "vcpus", waiters->nr);
        cells = doc_add_object(entry, "longest");
        for (unsigned int i = 0; i < waiters->nr && i < TIMELINE_WAITERS; i++)
            doc_add_number(cells, vcpu_name(waiters->list[i].key).text, waiters->list[i].cycles);
    }
}

static void add_vcpu(struct json_object *doc, const struct input *input,
                     const struct timeline *timeline, const struct timeline_row *row)
{
    struct json_object *cycles = doc_add_object(doc, "cycles"), *cells;

    doc_add_text(doc, "vcpu", vcpu_name(row->id).text);
    doc_add_text(doc, "domain",
                 sidecar_domain_name(input->sidecar, row->id >> 16,
                                     sidecar_realtime_nsec(input->sidecar, timeline->until - 1)));
    for (unsigned int i = 0; i < TIMELINE_STATES; i++)
        if (i != STATE_UNKNOWN)
            doc_add_number(cycles, state_name(i), row->cycles[i]);
    cells = doc_add_array(doc, "cells");
    for (unsigned int k = 0; k < timeline->columns; k++)
        doc_append_text(cells, state_name(row->cells[k].state));
}

static void add_longest(struct json_object *doc, const struct timeline_wait *wait)
{
    struct json_object *longest;

    if (wait->from == wait->to)
        return;
    longest = doc_add_object(doc, "longest_wait");
    doc_add_text(longest, "vcpu", vcpu_name(wait->key).text);
    doc_add_number(longest, "cpu", wait->cpu);
    doc_add_number(longest, "from_tsc", wait->from);
    doc_add_number(longest, "to_tsc", wait->to);
    doc_add_flag(longest, "open", wait->is_open);
}

void timeline_doc_add(struct json_object *doc, const struct input *input,
                      const struct timeline *timeline)
{
    struct json_object *rows, *lost;

    selection_doc_add(doc, input);
    doc_add_text(doc, "by", timeline->by == TIMELINE_BY_CPU ? "cpu" : "vcpu");
    doc_add_number(doc, "tsc_khz", input->tsc_khz);
    doc_add_number(doc, "from_tsc", timeline->from);
    doc_add_number(doc, "until_tsc", timeline->until);
    doc_add_number(doc, "columns", timeline->columns);
    doc_add_number(doc, "omitted", timeline->nr_omitted);
    lost = doc_add_object(doc, "lost");
    doc_add_number(lost, "records", timeline->lost);
    doc_add_number(lost, "gaps", timeline->gaps);
    add_longest(doc, &timeline->longest);
    rows = doc_add_array(doc, "rows");
    for (size_t i = 0; i < timeline->nr_rows; i++) {
        struct json_object *row = doc_append_object(rows);

        if (timeline->by == TIMELINE_BY_CPU)
            add_cpu(row, timeline, &timeline->rows[i]);
        else
            add_vcpu(row, input, timeline, &timeline->rows[i]);
    }
}

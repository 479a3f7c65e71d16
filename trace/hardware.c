// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace/hardware.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

void hardware_init(struct hardware *hardware, hardware_fn fn, void *context)
{
    *hardware = (struct hardware){.fn = fn, .context = context};
}

void hardware_done(struct hardware *hardware)
{
    free(hardware->cpus);
    *hardware = (struct hardware){0};
}

int hardware_grow(struct hardware *hardware, unsigned int nr)
{
    struct hardware_cpu *cpus;

    if (nr <= hardware->nr_cpus)
        return 0;
    cpus = reallocarray(hardware->cpus, nr, sizeof(*cpus));
    if (!cpus)
        return -ENOMEM;
    hardware->cpus = cpus;
    for (; hardware->nr_cpus < nr; hardware->nr_cpus++)
        cpus[hardware->nr_cpus] = (struct hardware_cpu){0};
    return 0;
}

/* --- Idle states and frequencies: from one record to another one. --- */

enum ending {
    COMPLETE,
    INCOMPLETE, /* the record that ended it is missing */
    LOSS,
};

static void end_interval(struct hardware *hardware, const struct merge_record *record,
                         struct hardware_interval interval, enum ending ending)
{
    interval.stream = record->stream;
    interval.cpu = record->cpu;
    interval.to = record->tsc;
    interval.cycles = interval.to - interval.from;
    interval.is_incomplete = ending != COMPLETE;
    interval.ends_in_loss = ending == LOSS;
    hardware->fn(hardware->context, &interval);
}

static void end_idle(struct hardware *hardware, const struct merge_record *record,
                     enum ending ending)
{
    struct hardware_cpu *cpu = &hardware->cpus[record->stream];

    if (!cpu->is_idle)
        return;
    cpu->is_idle = false;
    end_interval(hardware, record,
                 (struct hardware_interval){
                     .kind = HARDWARE_IDLE, .value = cpu->c_state, .from = cpu->idle_since},
                 ending);
}

static void begin_idle(struct hardware *hardware, const struct merge_record *record)
{
    struct hardware_cpu *cpu = &hardware->cpus[record->stream];

    end_idle(hardware, record, INCOMPLETE);
    cpu->is_idle = true;
    cpu->c_state = merge_word(record, 0);
    cpu->idle_since = record->tsc;
}

static void end_frequency(struct hardware *hardware, const struct merge_record *record,
                          enum ending ending)
{
    struct hardware_cpu *cpu = &hardware->cpus[record->stream];
    const struct hardware_interval interval = {
        .kind = HARDWARE_FREQUENCY, .value = cpu->mhz, .from = cpu->mhz_since};

    if (cpu->mhz == 0)
        return;
    cpu->mhz = 0;
    end_interval(hardware, record, interval, ending);
}

static void change_frequency(struct hardware *hardware, const struct merge_record *record)
{
    struct hardware_cpu *cpu = &hardware->cpus[record->stream];

    end_frequency(hardware, record, cpu->mhz == merge_word(record, 0) ? COMPLETE : INCOMPLETE);
    cpu->mhz = merge_word(record, 1);
    cpu->mhz_since = record->tsc;
}

/* --- Interrupts: one record has both ends. --- */

static void note_interrupt(struct hardware *hardware, const struct merge_record *record)
{
    struct hardware_interval interval = {
        .kind = HARDWARE_INTERRUPT,
        .stream = record->stream,
        .cpu = record->cpu,
        .value = merge_word(record, 0),
        .from = record->tsc,
        .to = record->tsc,
    };

    if (merge_words(record) > 2) {
        /* The low halves of the TSC at its begin and end, shortly before the record. */
        interval.cycles = (uint32_t)(merge_word(record, 2) - merge_word(record, 1));
        interval.to -= min_u64((uint32_t)record->tsc - merge_word(record, 2), interval.to);
        interval.from = interval.to - min_u64(interval.cycles, interval.to);
    } else {
        interval.is_incomplete = true;
    }
    hardware->fn(hardware->context, &interval);
}

/* --- All. --- */

void hardware_begin_blind(struct hardware *hardware, const struct merge_record *record)
{
    end_idle(hardware, record, LOSS);
    end_frequency(hardware, record, LOSS);
}

void hardware_record(struct hardware *hardware, const struct merge_record *record, uint32_t event)
{
    unsigned int nr_words = merge_words(record);

    if (event == TRC_HW_IRQ_HANDLED && nr_words > 0)
        note_interrupt(hardware, record);
    else if (event == TRC_PM_IDLE_ENTRY && nr_words > 0)
        begin_idle(hardware, record);
    else if (event == TRC_PM_IDLE_EXIT)
        end_idle(hardware, record, COMPLETE);
    else if (event == TRC_PM_FREQ_CHANGE && nr_words > 1)
        change_frequency(hardware, record);
}

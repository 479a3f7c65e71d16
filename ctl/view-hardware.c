// SPDX-License-Identifier: GPL-2.0-or-later
/* What CPUs did: interrupts, idle states, frequencies; and where their records are missing. */

#include <inttypes.h>

#include "common/util.h"
#include "ctl/table.h"
#include "ctl/views.h"

/* --- Interrupts. --- */

static void add_interrupt(struct table *table, const struct view_output *output,
                          const struct tally *tally)
{
    table_add(table, "%" PRIu32, tally->who);
    table_add(table, "%" PRIu64, tally->what);
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
    view_add_span(table, output, tally->cycles);
    view_add_span(table, output, view_mean(tally->cycles, tally->timed));
    view_add_span(table, output, tally->most);
}

static void add_vector(struct table *table, const struct view_output *output,
                       const struct tally *tally)
{
    view_add_vcpu(table, output, tally->who);
    table_add(table, "0x%" PRIx64, tally->what);
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
}

void view_print_interrupts(const struct view_output *output)
{
    static const struct view_list handled = {
        .title = "Handled by CPUs",
        .none = "The trace has no interrupts that a CPU handled (class hw).",
        .columns = ">CPU >IRQ >COUNT >PER-SECOND >TIME >MEAN >MAX",
        .add_row = add_interrupt,
    };
    static const struct view_list injected = {
        .title = "Given to vCPUs",
        .columns = "~VCPU >VECTOR >COUNT >PER-SECOND",
        .add_row = add_vector,
    };
    static const struct view_list external = {
        .title = "Arrived while a vCPU ran",
        .columns = "~VCPU >VECTOR >COUNT >PER-SECOND",
        .add_row = add_vector,
    };

    view_print_kind(output, &handled, TALLY_INTERRUPT);
    view_print_kind(output, &injected, TALLY_INJECTED);
    view_print_kind(output, &external, TALLY_EXTERNAL);
}

/* --- Power. --- */

static void add_times(struct table *table, const struct view_output *output,
                      const struct tally *tally)
{
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
    table_add(table, "%.1f%%", view_share(output, tally->cycles));
    view_add_span(table, output, view_mean(tally->cycles, tally->timed));
    view_add_span(table, output, tally->most);
}

static void add_c_state(struct table *table, const struct view_output *output,
                        const struct tally *tally)
{
    table_add(table, "%" PRIu32, tally->who);
    table_add(table, "C%" PRIu64, tally->what);
    add_times(table, output, tally);
}

static void add_frequency(struct table *table, const struct view_output *output,
                          const struct tally *tally)
{
    table_add(table, "%" PRIu32, tally->who);
    table_add(table, "%" PRIu64 " MHz", tally->what);
    add_times(table, output, tally);
}

void view_print_power(const struct view_output *output)
{
    static const struct view_list c_states = {
        .title = "Idle states",
        .none = "The trace has no complete time in an idle state (class hw).",
        .columns = ">CPU >STATE >COUNT >PER-SECOND >TIME >MEAN >MAX",
        .add_row = add_c_state,
    };
    static const struct view_list frequencies = {
        .title = "Frequencies",
        .none = "The trace has no complete time between two changes of a frequency.",
        .columns = ">CPU >FREQUENCY >COUNT >PER-SECOND >TIME >MEAN >MAX",
        .add_row = add_frequency,
    };
    const struct details *details = &output->measures->details;
    uint64_t incomplete = 0;

    view_print_kind(output, &c_states, TALLY_C_STATE);
    for (unsigned int i = 0; i < details->nr_cpus; i++)
        if (measures_shows_cpu(output->measures, merge_cpu_of(output->measures->merge, i)))
            incomplete += details->cpus[i].incomplete;
    if (incomplete > 0)
        (void)fprintf(output->file,
                      "The ends of %" PRIu64 " more are missing: they are in no number.\n",
                      incomplete);
    view_print_kind(output, &frequencies, TALLY_FREQUENCY);
}

/* --- Losses. --- */

void view_print_losses(const struct view_output *output)
{
    const struct measures *measures = output->measures;
    _cleanup_table_ struct table *table = NULL;

    if (measures->nr_losses == 0) {
        (void)fputs("\nNo records were lost.\n", output->file);
        return;
    }
    if (table_new(">CPU SINCE >TIME >OF-TRACE >RECORDS", &table) < 0)
        return;
    for (size_t i = 0; i < measures->nr_losses; i++) {
        const struct measures_loss *loss = &measures->losses[i];
        uint64_t cycles = loss->to_tsc > loss->from_tsc ? loss->to_tsc - loss->from_tsc : 0;
        char when[INPUT_TEXT_MAX];

        if (!subjects_has_cpu(measures->subjects, loss->cpu))
            continue;
        table_add(table, "%" PRIu32, loss->cpu);
        table_add(table, "%s",
                  input_when(output->input, when, loss->from_tsc, measures->first_tsc));
        view_add_span(table, output, cycles);
        table_add(table, "%.1f%%", view_share(output, cycles));
        if (loss->count > 0)
            table_add_count(table, loss->count);
        else
            table_add(table, "unknown");
    }
    (void)fputc('\n', output->file);
    table_print(table, output->file, 0, output->width);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "ctl/findings.h"
#include "ctl/input.h"
#include "ctl/views.h"
#include "trace/measures.h"
#include "trace/sidecar.h"
#include "trace/source.h"

#define CPUS_SHOWN  8u
#define WAITS_SHOWN 3u

/* --- Quality. --- */

/* "12 lost in 3 gaps"; a count of 0 is unknown: docs/file-format.md. */
static void print_losses(FILE *file, const struct measures *measures)
{
    size_t unknown = 0;

    for (size_t i = 0; i < measures->nr_losses; i++)
        unknown += measures->losses[i].count == 0;
    if (measures->nr_losses == 0)
        return;
    if (measures->lost == 0)
        (void)fputs("; an unknown number", file);
    else
        (void)fprintf(file, "; %s%" PRIu64, unknown > 0 ? "at least " : "", measures->lost);
    (void)fprintf(file, " lost in %zu gap%s", measures->nr_losses,
                  measures->nr_losses == 1 ? "" : "s");
}

/* The classes of events that are there: bits 16 to 27 of an event. Source: <xen/trace.h>. */
static void print_classes(FILE *file, const struct measures *measures)
{
    static const char *const names[] = {
        [1] = "sched", [2] = "dom0op", [3] = "hvm", [4] = "mem",
        [5] = "pv",    [6] = "shadow", [7] = "hw",  [11] = "guest",
    };
    uint32_t classes = 0;
    size_t nr = 0;
    struct count *counts = counts_sorted(&measures->events, &nr);
    const char *separator = "  Events: ";

    for (size_t i = 0; counts && i < nr; i++)
        classes |= counts[i].number >> 16;
    free(counts);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!names[i] || !(classes & (1u << i)))
            continue;
        (void)fprintf(file, "%s%s", separator, names[i]);
        separator = ", ";
    }
    if (!(classes & (1u << 1)))
        (void)fprintf(file, "%sno sched: who ran and who waited is unknown", separator);
    (void)fputs(".\n", file);
}

void report_print_quality(FILE *file, const struct input *input, const struct measures *measures)
{
    struct source_damage damage = source_damage(input->source);
    char span[INPUT_TEXT_MAX], from[INPUT_TEXT_MAX];

    (void)fprintf(file, "%s: %s from %s, %u CPUs, %" PRIu64 " records", input_name(input),
                  input_span(input, span, measures_span(measures)),
                  input_when(input, from, measures->first_tsc, measures->first_tsc),
                  merge_streams(&input->merge), measures->records);
    print_losses(file, measures);
    (void)fputs(".\n", file);
    print_classes(file, measures);
    if (measures->nr_losses > 0)
        (void)fputs("  Records are missing: waits and runs that a gap cut are not counted.\n",
                    file);
    if (measures->state.mismatches > 0)
        (void)fprintf(file, "  %" PRIu64 " runstate records contradict those before them.\n",
                      measures->state.mismatches);
    if (input->khz_is_assumed)
        (void)fprintf(file,
                      "  The TSC frequency is unknown and is assumed to be %" PRIu64
                      " MHz. All times depend on it.\n",
                      input->tsc_khz / 1000);
    if (damage.is_damaged)
        (void)fprintf(file,
                      "  The file is damaged at offset %" PRIu64
                      ": later records are not in this report. To read them: "
                      "xentracectl repair FILE\n",
                      damage.offset);
}

/* --- CPUs. --- */

static void print_cpus(FILE *file, const struct measures *measures)
{
    unsigned int nr = measures->state.nr_cpus;
    uint64_t span = max_u64(measures_span(measures), 1), before = UINT64_MAX;
    unsigned int shown = 0;

    (void)fputs("\nBusiest CPUs:", file);
    while (shown < nr && shown < CPUS_SHOWN) {
        uint64_t most = 0;

        for (unsigned int i = 0; i < nr; i++)
            if (measures->state.cpus[i].busy_cycles < before)
                most = max_u64(most, measures->state.cpus[i].busy_cycles);
        for (unsigned int i = 0; i < nr && shown < CPUS_SHOWN; i++)
            if (measures->state.cpus[i].busy_cycles == most && ++shown)
                (void)fprintf(file, "%s %" PRIu32 " %.0f%%", shown > 1 ? "," : "",
                              merge_cpu_of(measures->merge, i),
                              100.0 * (double)most / (double)span);
        if (most == 0)
            break;
        before = most;
    }
    (void)fputc('\n', file);
}

/* Each command once. */
static void print_commands(FILE *file, const struct findings *findings)
{
    size_t count = findings_count(findings);
    char **commands = calloc(count + 1, sizeof(char *));
    size_t nr = 0;

    for (size_t i = 0; commands && i < count; i++) {
        char *command = findings_command(findings, i);
        bool is_new = command;

        for (size_t j = 0; j < nr && is_new; j++)
            is_new = strcmp(commands[j], command) != 0;
        if (!is_new) {
            free(command);
            continue;
        }
        (void)fprintf(file, "%s  %s\n", nr == 0 ? "More:\n" : "", command);
        commands[nr++] = command;
    }
    for (size_t i = 0; i < nr; i++)
        free(commands[i]);
    free(commands);
}

static void print_findings(FILE *file, const struct findings *findings)
{
    size_t count = findings_count(findings);

    (void)fputs(count > 0 ? "\nFindings:\n" : "\nNothing stands out.\n", file);
    for (size_t i = 0; i < count; i++)
        (void)fprintf(file, "  %s\n", findings_at(findings, i)->text);
    print_commands(file, findings);
}

void report_print(FILE *file, int width, const struct input *input, struct measures *measures,
                  const struct findings *findings)
{
    const struct view_output output = {
        .file = file,
        .width = width,
        .input = input,
        .measures = measures,
    };

    report_print_quality(file, input, measures);
    view_print_domains(&output);
    print_cpus(file, measures);
    view_print_longest(&output, WAITS_SHOWN);
    print_findings(file, findings);
}

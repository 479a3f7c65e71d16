// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "ctl/findings.h"
#include "ctl/input.h"
#include "ctl/number.h"
#include "ctl/str.h"
#include "ctl/views.h"
#include "ctl/wrap.h"
#include "trace/measures.h"
#include "trace/sidecar.h"
#include "trace/source.h"

#define CPUS_SHOWN    8u
#define WAITS_SHOWN   3u
#define DOMAINS_SHOWN 4u /* on a small terminal */
#define MORE_FORMAT   "  %zu more: xentracectl report --view findings %s\n"
/* On a large terminal there is room for more. */
#define LARGE_ROWS    40u
#define LARGE_CPUS    8u
#define LARGE_DOMAINS 8u
#define LARGE_WAITS   10u

/* --- Quality. --- */

/* "12 lost in 3 gaps"; a count of 0 is unknown: docs/file-format.md. */
static void print_losses(FILE *file, const struct measures *measures)
{
    size_t unknown = 0;
    char count[NUMBER_MAX];

    for (size_t i = 0; i < measures->nr_losses; i++)
        unknown += measures->losses[i].count == 0;
    if (measures->nr_losses == 0) {
        (void)fputs(", none lost", file);
        return;
    }
    if (measures->lost == 0)
        (void)fputs("; an unknown number", file);
    else
        (void)fprintf(file, "; %s%s", unknown > 0 ? "at least " : "",
                      number_format(count, measures->lost));
    (void)fprintf(file, " lost in %zu gap%s", measures->nr_losses,
                  measures->nr_losses == 1 ? "" : "s");
}

/* The lines of TEXT, which is changed. */
static void print_wrapped(FILE *file, char *text, unsigned int width)
{
    char *state = NULL;

    for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        unsigned int indent = (unsigned int)strspn(line, " ");

        (void)wrap_print(file, line + indent, width, indent, indent + 2);
    }
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

/* "from 2026-11-27 02:50:57.123 to 02:51:02.123"; without a clock, "from +0.000s". */
static void print_times(FILE *file, const struct input *input, const struct measures *measures)
{
    char when[INPUT_TEXT_MAX], date[STR_TIME_MAX] = "";
    uint64_t nsec = sidecar_realtime_nsec(input->sidecar, measures->first_tsc);

    if (nsec > 0)
        (void)str_time(date, nsec);
    if (strchr(date, ' '))
        strchr(date, ' ')[1] = '\0'; /* the time is the next word, to the millisecond */
    (void)fprintf(file, "from %s%s", date,
                  input_when(input, when, measures->first_tsc, measures->first_tsc));
    if (nsec > 0)
        (void)fprintf(file, " to %s",
                      input_when(input, when, measures->last_tsc, measures->first_tsc));
}

/* As print_classes() and the like: a line of what is there, as one knows it from `info`. */
static void print_extent(FILE *file, const struct input *input, const struct measures *measures)
{
    char span[INPUT_TEXT_MAX], records[NUMBER_MAX];

    (void)fprintf(file, "%s: %s ", input_name(input),
                  input_span(input, span, measures_span(measures)));
    print_times(file, input, measures);
    (void)fprintf(file, ", %u CPU%s, %s records", merge_streams(&input->merge),
                  merge_streams(&input->merge) == 1 ? "" : "s",
                  number_format(records, measures->records));
    print_losses(file, measures);
    (void)fputs(".\n", file);
}

void report_print_quality(FILE *file, const struct input *input, const struct measures *measures,
                          unsigned int width)
{
    struct source_damage damage = source_damage(input->source);
    _cleanup_free_ char *text = NULL;
    char count[NUMBER_MAX];
    size_t bytes;
    FILE *lines = open_memstream(&text, &bytes);

    if (!lines)
        return;
    print_extent(lines, input, measures);
    input_print_cause(lines, input, measures->first_tsc);
    print_classes(lines, measures);
    if (input->shown)
        (void)fprintf(lines, "  Shown: %s.\n", input->shown);
    if (measures->nr_losses > 0)
        (void)fputs("  A wait or a run into which a gap falls is not counted.\n", lines);
    if (measures->state.mismatches > 0)
        (void)fprintf(
            lines,
            "  %s time%s a vCPU's record did not fit the one before it: what the vCPU did in "
            "between is not counted.\n",
            number_format(count, measures->state.mismatches),
            measures->state.mismatches == 1 ? "" : "s");
    input_print_assumed(lines, input);
    if (damage.is_damaged)
        (void)fprintf(lines,
                      "  The file is damaged at offset %" PRIu64
                      ": later records are not in this report. To read them: "
                      "xentracectl repair FILE\n",
                      damage.offset);
    if (fclose(lines) == 0)
        print_wrapped(file, text, width);
}

/* --- CPUs. --- */

static bool is_shown(const struct measures *measures, uint32_t stream)
{
    return measures_shows_cpu(measures, merge_cpu_of(measures->merge, stream));
}

static void print_cpus(FILE *file, const struct measures *measures)
{
    unsigned int nr = measures->state.nr_cpus;
    uint64_t span = max_u64(measures_span(measures), 1), before = UINT64_MAX;
    unsigned int shown = 0;

    (void)fputs("\nBusiest CPUs: ", file);
    while (shown < nr && shown < CPUS_SHOWN) {
        uint64_t most = 0;

        for (unsigned int i = 0; i < nr; i++)
            if (measures->state.cpus[i].busy_cycles < before && is_shown(measures, i))
                most = max_u64(most, measures->state.cpus[i].busy_cycles);
        for (unsigned int i = 0; i < nr && shown < CPUS_SHOWN; i++)
            if (measures->state.cpus[i].busy_cycles == most && is_shown(measures, i) && ++shown)
                (void)fprintf(file, "%sCPU %" PRIu32 " %.0f%%", shown > 1 ? ", " : "",
                              merge_cpu_of(measures->merge, i),
                              100.0 * (double)most / (double)span);
        if (most == 0)
            break;
        before = most;
    }
    (void)fputc('\n', file);
}

/* --- Findings. --- */

/* Of its kind, findings before number I. */
static size_t count_before(const struct findings *findings, size_t i)
{
    size_t count = 0;

    for (size_t j = 0; j < i; j++)
        count += strcmp(findings_at(findings, j)->kind, findings_at(findings, i)->kind) == 0;
    return count;
}

/*
 * Which findings fit into LINES: the first of each kind, then the second ones, and so on. Returns
 * how many are left out.
 */
static size_t choose_findings(const struct report_page *page, const struct findings *findings,
                              unsigned int lines, char *chosen)
{
    size_t count = findings_count(findings), left = count;
    bool is_full = false;

    for (size_t turn = 0; turn < count && !is_full; turn++) {
        for (size_t i = 0; i < count && !is_full; i++) {
            unsigned int needed = findings_lines(findings, i, page->width);

            if (count_before(findings, i) != turn)
                continue;
            is_full = needed > lines && left < count; /* there is one in any case */
            if (is_full)
                break;
            chosen[i] = 1;
            lines -= needed < lines ? needed : lines;
            left--;
        }
    }
    return left;
}

static void print_findings(FILE *file, const struct report_page *page, const struct input *input,
                           const struct findings *findings, unsigned int lines)
{
    size_t count = findings_count(findings), left = 0;
    _cleanup_free_ char *chosen = calloc(count + 1, 1), *path = input_argument(input);

    if (!chosen)
        return;
    if (page->rows > 0)
        left = choose_findings(page, findings, lines, chosen);
    (void)fputs(count > 0 ? "\nFindings:\n" : "\n" FINDINGS_NONE "\n", file);
    for (size_t i = 0; i < count; i++)
        if (page->rows == 0 || chosen[i])
            findings_print(findings, i, file, page->width, page->palette);
    if (left > 0)
        (void)fprintf(file, MORE_FORMAT, left, path ? path : "-");
}

/* --- All. --- */

static unsigned int count_text_lines(const char *text, unsigned int width)
{
    unsigned int lines = 0;

    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");

        lines += width > 0 ? (unsigned int)(length + width - 1) / width : 1;
        lines += length == 0 && width > 0;
        line += length;
        line += *line == '\n';
    }
    return lines;
}

/* The tables, as many rows as ROWS lines of a terminal have room for beside the findings. */
static void print_tables(const struct report_page *page, const struct view_output *output)
{
    const struct measures *measures = output->measures;
    bool is_large = page->rows >= LARGE_ROWS;

    view_print_domains(output);
    if (is_large && measures->state.nr_cpus <= LARGE_CPUS)
        view_print_cpus(output);
    else
        print_cpus(output->file, measures);
    if (page->rows == 0 || is_large)
        view_print_longest(output, is_large ? LARGE_WAITS : WAITS_SHOWN);
}

static char *format_tables(const struct report_page *page, struct view_output output)
{
    char *text = NULL;
    size_t bytes;

    output.file = open_memstream(&text, &bytes);
    if (!output.file)
        return NULL;
    print_tables(page, &output);
    if (fclose(output.file) == 0)
        return text;
    free(text);
    return NULL;
}

void report_print(FILE *file, const struct report_page *page, const struct input *input,
                  struct measures *measures, const struct findings *findings)
{
    const struct view_output output = {
        .width = (int)page->width,
        .palette = page->palette,
        .rows = page->rows == 0            ? 0
                : page->rows >= LARGE_ROWS ? LARGE_DOMAINS
                                           : DOMAINS_SHOWN,
        .input = input,
        .measures = measures,
    };
    _cleanup_free_ char *tables = format_tables(page, output), *head = NULL, *more = NULL;
    unsigned int used;
    size_t bytes;
    FILE *memory = open_memstream(&head, &bytes);

    if (!memory || !tables)
        return;
    report_print_quality(memory, input, measures, page->width);
    if (fclose(memory) != 0)
        return;
    (void)fputs(head, file);
    more = str_format(MORE_FORMAT, findings_count(findings), input_name(input));
    /* "Findings:" after a blank line, and the prompt */
    used = count_text_lines(head, page->width) + count_text_lines(tables, page->width) +
           count_text_lines(more ? more : "", page->width) + 3;
    print_findings(file, page, input, findings, page->rows > used ? page->rows - used : 0);
    (void)fputs(tables, file);
}

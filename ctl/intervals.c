// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/intervals.h"

#include <inttypes.h>

#include "ctl/input.h"
#include "trace/hardware.h"
#include "trace/state.h"
#include "trace/subjects.h"

struct printer {
    FILE *file;
    struct input *input;
    uint64_t first_tsc;
};

/* Idle vCPUs are runnable without waiting. */
static bool is_wait(const struct state_interval *interval)
{
    uint32_t domid = interval->vcpu->key >> 16;

    return interval->runstate == STATE_RUNNABLE && domid != STATE_DOMAIN_IDLE &&
           domid != STATE_DOMAIN_DEFAULT;
}

/* On CPUs that were selected, it is what happened there. */
static bool is_shown(const struct printer *printer, const struct state_interval *interval)
{
    const struct subjects *subjects = printer->input->subjects;

    if (!subjects)
        return true;
    return subjects_has_vcpu(subjects, interval->vcpu->key) &&
           (!subjects->of_cpus ||
            (interval->runstate == STATE_RUNNING &&
             subjects_has_cpu(subjects, merge_cpu_of(&printer->input->merge, interval->stream))));
}

static bool is_shown_of_cpu(const struct printer *printer, const struct hardware_interval *interval)
{
    const struct subjects *subjects = printer->input->subjects;

    return !subjects_are_vcpus(subjects) && subjects_has_cpu(subjects, interval->cpu);
}

static void print_json(void *context, const struct state_interval *interval)
{
    struct printer *printer = context;
    uint32_t key = interval->vcpu->key;

    if (!is_shown(printer, interval))
        return;
    (void)fprintf(printer->file, "{\"vcpu\":\"d%" PRIu32 "v%" PRIu32 "\",\"state\":\"%s\",",
                  key >> 16, key & 0xffff, state_runstate_name(interval->runstate));
    if (interval->runstate == STATE_RUNNING)
        (void)fprintf(printer->file, "\"cpu\":%" PRIu32 ",",
                      merge_cpu_of(&printer->input->merge, interval->stream));
    if (is_wait(interval))
        (void)fprintf(printer->file, "\"wait\":\"%s\",", state_wait_name(interval->wait));
    if (interval->ends_in_loss)
        (void)fputs("\"lost\":true,", printer->file);
    (void)fprintf(printer->file, "\"from_tsc\":%" PRIu64 ",\"to_tsc\":%" PRIu64 "}\n",
                  interval->from, interval->to);
}

static void print_text(void *context, const struct state_interval *interval)
{
    struct printer *printer = context;
    char when[INPUT_TEXT_MAX], vcpu[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];

    if (!is_shown(printer, interval))
        return;
    (void)fprintf(printer->file, "%-14s %-20s %-8s %9s",
                  input_when(printer->input, when, interval->from, printer->first_tsc),
                  input_vcpu(printer->input, vcpu, interval->vcpu->key, interval->from),
                  state_runstate_name(interval->runstate),
                  input_span(printer->input, span, interval->to - interval->from));
    if (interval->runstate == STATE_RUNNING)
        (void)fprintf(printer->file, "  CPU %" PRIu32,
                      merge_cpu_of(&printer->input->merge, interval->stream));
    if (is_wait(interval))
        (void)fprintf(printer->file, "  %s", state_wait_name(interval->wait));
    (void)fputs(interval->ends_in_loss ? "  records lost\n" : "\n", printer->file);
}

/* --- What is not a vCPU's. --- */

static void print_json_of_cpu(void *context, const struct hardware_interval *interval)
{
    static const char *const names[] = {
        [HARDWARE_IDLE] = "c_state",
        [HARDWARE_FREQUENCY] = "mhz",
        [HARDWARE_INTERRUPT] = "irq",
    };
    struct printer *printer = context;

    if (!is_shown_of_cpu(printer, interval))
        return;
    (void)fprintf(printer->file, "{\"cpu\":%" PRIu32 ",\"%s\":%" PRIu32 ",", interval->cpu,
                  names[interval->kind], interval->value);
    if (interval->is_incomplete)
        (void)fputs("\"incomplete\":true,", printer->file);
    if (interval->ends_in_loss)
        (void)fputs("\"lost\":true,", printer->file);
    (void)fprintf(printer->file, "\"from_tsc\":%" PRIu64 ",\"to_tsc\":%" PRIu64 "}\n",
                  interval->from, interval->to);
}

static void print_text_of_cpu(void *context, const struct hardware_interval *interval)
{
    static const char *const before[] = {"C", "", "IRQ "}, *const after[] = {"", " MHz", ""};
    struct printer *printer = context;
    char when[INPUT_TEXT_MAX], cpu[INPUT_TEXT_MAX], what[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];

    if (!is_shown_of_cpu(printer, interval))
        return;
    (void)snprintf(cpu, sizeof(cpu), "CPU %" PRIu32, interval->cpu);
    (void)snprintf(what, sizeof(what), "%s%" PRIu32 "%s", before[interval->kind], interval->value,
                   after[interval->kind]);
    (void)fprintf(printer->file, "%-14s %-20s %-8s %9s%s%s\n",
                  input_when(printer->input, when, interval->from, printer->first_tsc), cpu, what,
                  input_span(printer->input, span, interval->to - interval->from),
                  interval->is_incomplete && !interval->ends_in_loss ? "  end unknown" : "",
                  interval->ends_in_loss ? "  records lost" : "");
}

/* --- The loop. --- */

static void note_blind(struct state *state, struct hardware *hardware,
                       const struct merge_record *record)
{
    state_begin_blind(state, record);
    hardware_begin_blind(hardware, record);
}

static int read_all(struct printer *printer, struct state *state, struct hardware *hardware)
{
    struct merge *merge = &printer->input->merge;
    struct merge_record record;
    bool has_begun = false;
    int item, r;

    while ((item = merge_next(merge, &record)) != MERGE_END && !ferror(printer->file)) {
        r = state_grow(state, merge_streams(merge));
        if (r == 0)
            r = hardware_grow(hardware, merge_streams(merge));
        if (r < 0)
            return r;
        if (item == MERGE_BLIND) {
            note_blind(state, hardware, &record);
            continue;
        }
        if (!has_begun)
            printer->first_tsc = record.tsc;
        has_begun = true;
        state_record(state, &record);
        hardware_record(hardware, &record, record_event(record.header));
        if (state->error < 0)
            return state->error;
    }
    return merge->error;
}

int intervals_print(FILE *file, struct input *input, bool as_json)
{
    struct printer printer = {.file = file, .input = input};
    const struct state_observer observer = {
        .context = &printer,
        .interval = as_json ? print_json : print_text,
    };
    struct hardware hardware;
    struct state state;
    int r;

    hardware_init(&hardware, as_json ? print_json_of_cpu : print_text_of_cpu, &printer);
    r = state_init(&state, &observer);
    if (r == 0)
        r = read_all(&printer, &state, &hardware);
    state_done(&state);
    hardware_done(&hardware);
    (void)fflush(file); /* an error stays with it */
    return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/intervals.h"

#include <inttypes.h>

#include "ctl/input.h"
#include "trace/state.h"

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

static void print_json(void *context, const struct state_interval *interval)
{
    struct printer *printer = context;
    uint32_t key = interval->vcpu->key;

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

static int read_all(struct printer *printer, struct state *state)
{
    struct merge *merge = &printer->input->merge;
    struct merge_record record;
    bool has_begun = false;
    int item, r;

    while ((item = merge_next(merge, &record)) != MERGE_END && !ferror(printer->file)) {
        r = state_grow(state, merge_streams(merge));
        if (r < 0)
            return r;
        if (item == MERGE_BLIND) {
            state_begin_blind(state, &record);
            continue;
        }
        if (!has_begun)
            printer->first_tsc = record.tsc;
        has_begun = true;
        state_record(state, &record);
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
    struct state state;
    int r;

    r = state_init(&state, &observer);
    if (r == 0)
        r = read_all(&printer, &state);
    state_done(&state);
    (void)fflush(file); /* an error stays with it */
    return r;
}

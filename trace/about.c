// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Streams of several traces, as `dump --follow` has one for each second, are numbered differently.
 * So CPUs are known by their own numbers here. A loss is noted with its report: the CPU has no
 * records in between.
 */

#include "trace/about.h"

#include <errno.h>
#include <stdlib.h>

#include "common/record.h"
#include "trace/events.h"
#include "trace/merge.h"
#include "trace/record-text.h"
#include "trace/state.h"
#include "trace/subjects.h"

struct about {
    const struct subjects *subjects;
    struct state_observer observer; /* of nothing */
    struct state state;
};

int about_new(const struct subjects *subjects, struct about **ret_about)
{
    struct about *about = calloc(1, sizeof(*about));
    int r;

    if (!about)
        return -ENOMEM;
    about->subjects = subjects;
    r = state_init(&about->state, &about->observer);
    if (r < 0) {
        free(about);
        return r;
    }
    *ret_about = about;
    return 0;
}

struct about *about_free(struct about *about)
{
    if (!about)
        return NULL;
    state_done(&about->state);
    free(about);
    return NULL;
}

static int follow(struct about *about, const struct merge_record *record)
{
    struct merge_record on_cpu = *record;
    int r;

    if (record->cpu >= about->state.nr_cpus) {
        r = state_grow(&about->state, record->cpu + 1);
        if (r < 0)
            return r;
    }
    on_cpu.stream = record->cpu;
    if (record_is_lost(record->header))
        state_begin_blind(&about->state, &on_cpu);
    state_record(&about->state, &on_cpu);
    return about->state.error;
}

/* Whether the record is about what MATCHES has: who runs there, or one of its fields. */
struct question {
    bool (*matches_vcpu)(const struct subjects *subjects, uint32_t key);
    bool (*matches_domain)(const struct subjects *subjects, uint32_t domid); /* NULL: none does */
};

static bool matches_domain_of(const struct subjects *subjects, uint32_t key)
{
    return subjects_has_domain(subjects, key >> 16);
}

static bool has_field(const struct about *about, const struct question *question,
                      const struct merge_record *record, const struct record_text_style *style)
{
    const struct event_info *info = record_info(record, style);

    for (const struct event_field *field = info ? info->fields : NULL; field && field->name;
         field++) {
        uint64_t value;

        if ((field->type != EVENT_VCPU && field->type != EVENT_DOMAIN) ||
            !event_field_value(field, record->words, merge_words(record), &value))
            continue;
        if (field->type == EVENT_VCPU && value != EVENT_NO_VCPU &&
            question->matches_vcpu(about->subjects, (uint32_t)value))
            return true;
        if (field->type == EVENT_DOMAIN && question->matches_domain &&
            question->matches_domain(about->subjects, (uint32_t)value))
            return true;
    }
    return false;
}

static bool answer(const struct about *about, const struct question *question,
                   const struct merge_record *record, const struct record_text_style *style)
{
    const struct state_vcpu *running = about->state.cpus[record->cpu].running;

    return (running && question->matches_vcpu(about->subjects, running->key)) ||
           has_field(about, question, record, style);
}

int about_record(struct about *about, const struct merge_record *record,
                 const struct record_text_style *style, bool *ret_is_about)
{
    static const struct question of_domain = {matches_domain_of, subjects_has_domain};
    static const struct question of_vcpu = {subjects_lists_vcpu, NULL};
    const struct subjects *subjects = about->subjects;
    int r = subjects_are_vcpus(subjects) ? follow(about, record) : 0;

    if (r < 0)
        return r;
    *ret_is_about = subjects_has_cpu(subjects, record->cpu) &&
                    (!subjects->of_domains || answer(about, &of_domain, record, style)) &&
                    (!subjects->of_vcpus || answer(about, &of_vcpu, record, style));
    return 0;
}

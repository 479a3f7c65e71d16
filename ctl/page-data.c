// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The report itself is the document of `report --json`, so that a page shows no number that is not
 * there. Of a trace that has too many addresses, vCPUs or losses for a page, the largest are kept.
 */

#include "ctl/page-data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "common/util.h"
#include "ctl/derived.h"
#include "ctl/doc.h"
#include "ctl/findings.h"
#include "ctl/input.h"
#include "ctl/page-stories.h"
#include "ctl/page-timeline.h"
#include "ctl/page-trim.h"
#include "ctl/page-waits.h"
#include "ctl/report.h"
#include "ctl/selection.h"
#include "trace/measures-doc.h"
#include "trace/measures.h"
#include "trace/sidecar.h"

#define PLACES_MAX       64u
#define STORIES_MAX      24u
#define REPORT_BYTES_MAX (1024u * 1024)
#define ENTRIES_MAX      4096u /* vCPUs, and domains: page_trim() keeps no more */
#define NAMES_MAX        4096u
#define CLOCK_MAX        1024u /* pairs; the daemon keeps 128 */

/* --- Facts. --- */

/* The first lines of the report, as a list. */
static void add_quality(struct json_object *doc, const struct input *input,
                        const struct measures *measures)
{
    struct json_object *lines = doc_add_array(doc, "quality");
    _cleanup_free_ char *text = NULL;
    char *state = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    if (!file)
        return;
    report_print_quality(file, input, measures, 0);
    if (fclose(file) != 0)
        return;
    for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
        doc_append_text(lines, line + strspn(line, " "));
}

/* A clock that was set back is less than at the beginning. */
static void add_pair(struct json_object *list, uint64_t ticks, uint64_t nsec, uint64_t first_nsec)
{
    struct json_object *pair = json_object_new_array_ext(2);

    (void)json_object_array_add(pair, json_object_new_uint64(ticks));
    (void)json_object_array_add(pair, json_object_new_int64((int64_t)(nsec - first_nsec)));
    (void)json_object_array_add(list, pair);
}

/* By which sidecar_realtime_nsec() dates what is in the trace. */
static void add_clock_pairs(struct json_object *doc, const struct input *input,
                            const struct measures *measures, uint64_t first_nsec)
{
    struct json_object *list = doc_add_array(doc, "clock");
    uint64_t tsc, nsec, first = measures->first_tsc, last = measures->last_tsc;

    add_pair(list, 0, first_nsec, first_nsec);
    for (size_t i = 0, nr = 0; nr < CLOCK_MAX && sidecar_clock_at(input->sidecar, i, &tsc, &nsec);
         i++) {
        if (tsc <= first || tsc > last)
            continue;
        add_pair(list, tsc - first, nsec, first_nsec);
        nr++;
    }
    add_pair(list, last - first, sidecar_realtime_nsec(input->sidecar, last), first_nsec);
}

/* The wall clock at the beginning, how it went on, and how far local time was ahead of UTC. */
static void add_clock(struct json_object *doc, const struct input *input,
                      const struct measures *measures)
{
    uint64_t nsec = sidecar_realtime_nsec(input->sidecar, measures->first_tsc);
    time_t seconds = (time_t)(nsec / NSEC_PER_SEC);
    struct tm local;

    if (nsec == 0 || !localtime_r(&seconds, &local))
        return;
    doc_add_number(doc, "realtime_nsec", nsec);
    (void)json_object_object_add(doc, "utc_offset_sec", json_object_new_int64(local.tm_gmtoff));
    add_clock_pairs(doc, input, measures, nsec);
}

/* Where in the trace its cause is, or was noticed: at its end, if its last record was earlier. */
static void add_cause_time(struct json_object *trace, const struct input *input,
                           const struct measures *measures)
{
    uint64_t nsec = sidecar_reason_nsec(input->sidecar), tsc = sidecar_reason_tsc(input->sidecar);

    if ((tsc || (nsec && sidecar_find_tsc(input->sidecar, nsec, &tsc))) &&
        tsc >= measures->first_tsc)
        doc_add_number(trace, "cause_at",
                       min_u64(tsc - measures->first_tsc, measures_span(measures)));
}

static void add_facts(struct json_object *doc, const struct input *input,
                      const struct measures *measures)
{
    struct json_object *trace = doc_add_object(doc, "trace"), *ledger, *sidecar;
    _cleanup_free_ char *argument = input_argument(input);

    doc_add_text(trace, "name", input_name(input));
    doc_add_text(trace, "argument", argument); /* of commands; null: a pipe */
    doc_add_text(trace, "hostname", sidecar_hostname(input->sidecar));
    doc_add_text(trace, "xen_version", sidecar_xen_version(input->sidecar));
    doc_add_text(trace, "scheduler", sidecar_scheduler(input->sidecar));
    doc_add_text(trace, "cause", sidecar_reason(input->sidecar));
    add_cause_time(trace, input, measures);
    doc_add_text(trace, "findings_none", FINDINGS_NONE);
    doc_add_number(trace, "tsc_khz", input->tsc_khz);
    doc_add_flag(trace, "tsc_khz_is_assumed", input->khz_is_assumed);
    /* Of the trace, whose part this may be: times in commands count from there. */
    doc_add_number(trace, "offset",
                   input->origin_tsc ? measures->first_tsc - input->origin_tsc : 0);
    add_clock(trace, input, measures);
    add_quality(trace, input, measures);
    sidecar = input->sidecar_path ? derived_read_original(input->sidecar_path) : NULL;
    ledger = sidecar ? doc_find(sidecar, "ledger") : NULL;
    if (ledger)
        doc_add_document(trace, "ledger", ledger);
    (void)doc_free(sidecar);
}

void page_data_add_trace(struct json_object *doc, const struct input *input,
                         const struct measures *measures)
{
    add_facts(doc, input, measures);
    page_waits_add(doc, input, measures);
}

static void add_names(struct json_object *doc, const struct input *input,
                      const struct measures *measures)
{
    struct json_object *names = doc_add_object(doc, "names");
    _cleanup_free_ char *seen = calloc(MEASURES_DOMAINS, 1);
    unsigned int nr = 0;

    for (unsigned int i = 0; seen && i < measures->state.nr_vcpus && nr < NAMES_MAX; i++) {
        uint32_t domid = measures->state.vcpus[i]->key >> 16;
        const char *name = sidecar_domain_label(
            input->sidecar, domid, sidecar_realtime_nsec(input->sidecar, measures->last_tsc));
        char key[16];

        (void)snprintf(key, sizeof(key), "d%" PRIu32, domid);
        if (name && !seen[domid]) {
            doc_add_text(names, key, name);
            nr++;
        }
        seen[domid] = 1;
    }
}

/* --- Findings and places. --- */

void page_data_add_findings(struct json_object *doc, const struct findings *findings)
{
    struct json_object *list = doc_add_array(doc, "findings");

    for (size_t i = 0; i < findings_count(findings); i++) {
        struct json_object *entry = doc_append_object(list);
        char *command = findings_command(findings, i);

        doc_add_text(entry, "kind", findings_at(findings, i)->kind);
        doc_add_text(entry, "text", findings_at(findings, i)->text);
        if (command)
            doc_add_text(entry, "command", command);
        free(command);
    }
}

/* The wait of KEY that begins at TSC, of the longest ones; or one that is not over; 0: none. */
static uint64_t cycles_of_wait(const struct measures *measures, uint32_t key, uint64_t tsc)
{
    const struct state_vcpu *vcpu = state_find(&measures->state, key);

    for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
        unsigned int nr;
        const struct worst_wait *waits = worst_of(measures->worst, kind, &nr);

        for (unsigned int i = 0; i < nr; i++)
            if (waits[i].key == key && waits[i].from_tsc == tsc)
                return waits[i].cycles;
    }
    return vcpu && vcpu->runstate == STATE_RUNNABLE && vcpu->since == tsc ? measures->last_tsc - tsc
                                                                          : 0;
}

/* The place of a finding, if it has one: when it is, and for how long. */
static bool find_place(const struct measures *measures, const struct finding *finding,
                       struct page_place *ret_place)
{
    const struct measures_loss *longest = NULL;

    if (finding->has_vcpu) {
        *ret_place = (struct page_place){finding->tsc,
                                         cycles_of_wait(measures, finding->vcpu, finding->tsc)};
        return finding->tsc >= measures->first_tsc;
    }
    for (size_t i = 0; strcmp(finding->kind, "lost") == 0 && i < measures->nr_losses; i++) {
        const struct measures_loss *loss = &measures->losses[i];

        if (!longest || loss->to_tsc - loss->from_tsc > longest->to_tsc - longest->from_tsc)
            longest = loss;
    }
    if (!longest || longest->from_tsc < measures->first_tsc)
        return false;
    *ret_place = (struct page_place){longest->from_tsc, longest->to_tsc - longest->from_tsc};
    return true;
}

static size_t add_places(struct json_object *doc, const struct measures *measures,
                         const struct findings *findings, struct page_place *places)
{
    struct json_object *list = doc_add_array(doc, "places");
    size_t nr = 0;

    for (size_t i = 0; i < findings_count(findings) && nr < PLACES_MAX; i++) {
        const struct finding *finding = findings_at(findings, i);
        struct json_object *entry;
        char vcpu[32];

        if (!find_place(measures, finding, &places[nr]))
            continue;
        (void)snprintf(vcpu, sizeof(vcpu), "d%" PRIu32 "v%" PRIu32, finding->vcpu >> 16,
                       finding->vcpu & 0xffff);
        entry = doc_append_object(list);
        doc_add_number(entry, "finding", i);
        doc_add_text(entry, "vcpu", finding->has_vcpu ? vcpu : NULL);
        doc_add_number(entry, "at", places[nr].tsc - measures->first_tsc);
        doc_add_number(entry, "cycles", places[nr].cycles);
        nr++;
    }
    return nr;
}

/* Then the longest waits, which are listed. */
static size_t add_worst(const struct measures *measures, struct page_place *places, size_t nr)
{
    for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
        unsigned int count;
        const struct worst_wait *waits = worst_of(measures->worst, kind, &count);

        for (unsigned int i = 0; i < count && nr < PLACES_MAX; i++)
            places[nr++] = (struct page_place){waits[i].from_tsc, waits[i].cycles};
    }
    return nr;
}

/* The longest of all kinds first. What is read for them is not more than twice the trace. */
static size_t choose_stories(const struct measures *measures, struct page_wait *waits)
{
    uint64_t left = 2 * measures_span(measures);
    size_t nr = 0;

    for (unsigned int i = 0; i < WORST_MAX; i++) {
        for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
            unsigned int count;
            const struct worst_wait *worst = worst_of(measures->worst, kind, &count);

            if (i >= count || nr == STORIES_MAX || worst[i].cycles > left)
                continue;
            left -= worst[i].cycles;
            waits[nr++] = (struct page_wait){worst[i].key, worst[i].from_tsc, worst[i].cycles};
        }
    }
    return nr;
}

/* --- All. --- */

/* As `report --json` prints it: of a trace with very many vCPUs, without most of them. */
static void add_report(struct json_object *doc, const struct input *input,
                       struct measures *measures, const struct findings *findings)
{
    struct json_object *report = doc_new("xentraced-report"),
                       *trimmed = doc_add_array(doc, "trimmed");
    struct measures_doc_limit limit = {.most = ENTRIES_MAX};

    selection_doc_add(report, input);
    page_data_add_findings(report, findings);
    measures_doc_add_most(report, measures, &limit);
    if (limit.nr_vcpus > limit.most)
        page_trim_note(trimmed, "measures.vcpus", limit.most, limit.nr_vcpus);
    if (limit.nr_domains > limit.most)
        page_trim_note(trimmed, "measures.domains", limit.most, limit.nr_domains);
    page_trim(report, REPORT_BYTES_MAX, trimmed);
    (void)json_object_object_add(doc, "report", report);
}

int page_data_new(struct input *input, struct measures *measures, const struct findings *findings,
                  struct json_object **ret_doc, char **ret_error)
{
    struct page_place places[PLACES_MAX];
    struct page_wait waits[STORIES_MAX];
    uint64_t first_tsc = measures->first_tsc;
    bool is_svm = measures->is_svm;
    struct page_timeline *timeline;
    _cleanup_doc_ struct json_object *doc = doc_new("xentraced-page");
    size_t nr, nr_waits;
    int r;

    if (!doc)
        return -ENOMEM;
    nr_waits = choose_stories(measures, waits);
    page_data_add_trace(doc, input, measures);
    add_names(doc, input, measures);
    nr = add_places(doc, measures, findings, places);
    nr = add_worst(measures, places, nr);
    r = page_timeline_new(input, measures, places, nr, &timeline);
    if (r < 0)
        return r;
    add_report(doc, input, measures, findings);
    r = page_timeline_read(timeline, input, doc, ret_error);
    page_timeline_free(timeline);
    if (r == 0)
        r = page_stories_add(doc, input, waits, nr_waits, first_tsc, is_svm, ret_error);
    if (r < 0)
        return r;
    *ret_doc = TAKE_PTR(doc);
    return 0;
}

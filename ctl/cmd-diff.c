// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl diff: two traces side by side, and which differences are more than usual. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/input.h"
#include "ctl/page-data.h"
#include "ctl/page-trim.h"
#include "ctl/page.h"
#include "ctl/pager.h"
#include "ctl/selection.h"
#include "ctl/str.h"
#include "ctl/table.h"
#include "ctl/wrap.h"
#include "trace/compare.h"
#include "trace/exit-reasons.h"
#include "trace/measures.h"
#include "trace/sidecar.h"
#include "trace/source.h"

struct options {
    const char *html;
    struct selection_options selection;
};

/* The same part of both. */
static const struct args_option diff_options[] = {
    {"html", 0, "PAGE", ARGS_FILE, offsetof(struct options, html),
     .help = "write the comparison, with the distributions of waits,\n"
             "to PAGE, one file for a browser; - is standard output"},
    SELECTION_TIME_OPTIONS(struct options, selection),
    SELECTION_SUBJECT_OPTIONS(struct options, selection),
    {},
};

#define EXITS_SHOWN         5u /* of a domain; --json has all */
#define FINDINGS_SHOWN      10u
#define DISTRIBUTIONS_MAX   64u /* domains on a page */
#define PAGE_DOMAINS_MAX    4096u
#define PAGE_DIFF_BYTES_MAX (1024u * 1024)

/* A trace: as a whole, and its halves. */
struct subject {
    struct input *input;
    struct compare_side *sides[3];
    uint64_t first_tsc, last_tsc, records, lost;
    struct json_object *facts; /* for a page: its `trace` and `waits`; else NULL */
};

static void subject_done(struct subject *subject)
{
    for (size_t i = 0; i < ARRAY_SIZE(subject->sides); i++)
        (void)compare_side_free(subject->sides[i]);
    subject->input = input_free(subject->input);
    subject->facts = doc_free(subject->facts);
}

static void measures_freep(struct measures **measures)
{
    *measures = measures_free(*measures);
}

/* --- Reading. --- */

/* What SUBJECT's input has begun to read. */
static int measure(struct subject *subject, struct measures **ret_measures, char **ret_error)
{
    struct input *input = subject->input;
    int r = measures_new_of(&input->merge, input->subjects,
                            sidecar_vendor(input->sidecar) == SIDECAR_VENDOR_AMD, MEASURES_REPORT,
                            ret_measures);

    return r < 0 ? input_refuse(input, r, "", ret_error) : 0;
}

/* Of the part that was selected, the half before its middle, or the one from there on. */
static int subject_read_half(struct subject *subject, struct merge_part whole, unsigned int i,
                             char **ret_error)
{
    uint64_t middle = subject->first_tsc + (subject->last_tsc - subject->first_tsc) / 2;
    struct merge_part part = i == 1 ? (struct merge_part){subject->first_tsc, middle}
                                    : (struct merge_part){middle, whole.until};
    uint64_t cycles = i == 1 ? middle - subject->first_tsc : subject->last_tsc - middle;
    _cleanup_(measures_freep) struct measures *measures = NULL;
    int r;

    r = input_begin(subject->input, part, ret_error);
    if (r < 0)
        return r;
    r = measure(subject, &measures, ret_error);
    if (r < 0)
        return r;
    return compare_side_new(measures, cycles, subject->input->tsc_khz, &subject->sides[i]);
}

/* Else it is refused when it is open. */
static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static int subject_read(struct subject *subject, const struct ctl *ctl,
                        const struct options *options, const char *path, char **ret_error)
{
    _cleanup_(measures_freep) struct measures *measures = NULL;
    struct merge_part whole;
    int r;

    r = selection_open(ctl, &options->selection, path, is_file(path), &subject->input, ret_error);
    if (r < 0)
        return r;
    if (source_is_stream(subject->input->source))
        return str_refuse(-EINVAL, ret_error,
                          "diff reads each trace more than once: %s is not a file.", path);
    whole = subject->input->part;
    r = measure(subject, &measures, ret_error);
    if (r < 0)
        return r;
    if (options->html) {
        subject->facts = json_object_new_object();
        page_data_add_trace(subject->facts, subject->input, measures);
    }
    subject->first_tsc = measures->first_tsc;
    subject->last_tsc = measures->last_tsc;
    subject->records = measures->records;
    subject->lost = measures->lost;
    r = compare_side_new(measures, measures_span(measures), subject->input->tsc_khz,
                         &subject->sides[0]);
    if (r < 0)
        return r;
    r = subject_read_half(subject, whole, 1, ret_error);
    if (r < 0)
        return r;
    return subject_read_half(subject, whole, 2, ret_error);
}

/* --- Which domain is which. --- */

/* A domain of A and one of B; NULL: it is in the other trace only. */
struct match {
    const struct compare_domain *a, *b;
    const char *by; /* "name", "uuid", "id"; NULL: it is in one trace only */
};

struct matches {
    struct match *list; /* [nr]: those of A, then those of B alone */
    size_t nr;
};

typedef const char *(*text_fn)(const struct sidecar *sidecar, uint32_t domid,
                               uint64_t realtime_nsec);

static const char *text_of(const struct subject *subject, const struct compare_domain *domain,
                           text_fn text)
{
    const struct sidecar *sidecar = subject->input->sidecar;

    return text(sidecar, domain->domid, sidecar_realtime_nsec(sidecar, subject->last_tsc));
}

static void match_set(struct match *match, const struct compare_side *b, size_t j, char *is_taken,
                      const char *by)
{
    is_taken[j] = true;
    match->b = &b->domains[j];
    match->by = by;
}

/* IS_TAKEN: of each domain of B, whether it has a match. TEXTS: room for as many. */
static void match_by_text(struct matches *matches, char *is_taken, const char **texts,
                          const struct subject subjects[2], text_fn text, const char *by)
{
    const struct compare_side *b = subjects[1].sides[0];

    for (size_t j = 0; j < b->nr_domains; j++)
        texts[j] = text_of(&subjects[1], &b->domains[j], text);
    for (size_t i = 0; i < matches->nr; i++) {
        struct match *match = &matches->list[i];
        const char *of_a = match->b ? NULL : text_of(&subjects[0], match->a, text);

        for (size_t j = 0; of_a && j < b->nr_domains && !match->b; j++)
            if (!is_taken[j] && texts[j] && strcmp(of_a, texts[j]) == 0)
                match_set(match, b, j, is_taken, by);
    }
}

/* An id is used again for another domain: not if both have names. */
static void match_by_id(struct matches *matches, char *is_taken, const struct subject subjects[2])
{
    const struct compare_side *b = subjects[1].sides[0];

    for (size_t i = 0; i < matches->nr; i++) {
        struct match *match = &matches->list[i];
        const struct compare_domain *found = compare_find(b, match->a->domid);

        if (match->b || !found || is_taken[found - b->domains] ||
            (text_of(&subjects[0], match->a, sidecar_domain_name) &&
             text_of(&subjects[1], found, sidecar_domain_name)))
            continue;
        match_set(match, b, (size_t)(found - b->domains), is_taken, "id");
    }
}

static uint64_t run_of(const struct match *match)
{
    return max_u64(match->a ? match->a->run_ppm : 0, match->b ? match->b->run_ppm : 0);
}

static int compare_matches(const void *a, const void *b)
{
    const struct match *x = a, *y = b;
    uint32_t i = x->a ? x->a->domid : x->b->domid, j = y->a ? y->a->domid : y->b->domid;

    if (run_of(x) != run_of(y))
        return run_of(x) < run_of(y) ? 1 : -1;
    return (i > j) - (i < j);
}

static int find_matches(const struct subject subjects[2], struct matches *ret_matches)
{
    const struct compare_side *a = subjects[0].sides[0], *b = subjects[1].sides[0];
    _cleanup_free_ char *is_taken = calloc(b->nr_domains + 1, 1);
    const char **texts = calloc(b->nr_domains + 1, sizeof(*texts));
    struct matches matches = {0};

    matches.list = calloc(a->nr_domains + b->nr_domains + 1, sizeof(*matches.list));
    if (!is_taken || !texts || !matches.list) {
        free(texts);
        free(matches.list);
        return -ENOMEM;
    }
    for (; matches.nr < a->nr_domains; matches.nr++)
        matches.list[matches.nr].a = &a->domains[matches.nr];
    match_by_text(&matches, is_taken, texts, subjects, sidecar_domain_name, "name");
    match_by_text(&matches, is_taken, texts, subjects, sidecar_domain_uuid, "uuid");
    match_by_id(&matches, is_taken, subjects);
    free(texts);
    for (size_t i = 0; i < b->nr_domains; i++)
        if (!is_taken[i])
            matches.list[matches.nr++].b = &b->domains[i];
    qsort(matches.list, matches.nr, sizeof(*matches.list), compare_matches);
    *ret_matches = matches;
    return 0;
}

/* --- The differences. --- */

static struct compare_pair pair_of(const struct subject subjects[2], const struct match *match)
{
    struct compare_pair pair = {0};

    for (unsigned int i = 0; i < 3; i++) {
        pair.a[i] = match->a ? compare_find(subjects[0].sides[i], match->a->domid) : NULL;
        pair.b[i] = match->b ? compare_find(subjects[1].sides[i], match->b->domid) : NULL;
    }
    return pair;
}

struct exit_value {
    uint32_t reason;
    struct compare_value value;
};

static int compare_exit_values(const void *a, const void *b)
{
    const struct exit_value *x = a, *y = b;

    if (x->value.is_larger != y->value.is_larger)
        return x->value.is_larger ? -1 : 1;
    if (x->value.distance != y->value.distance)
        return x->value.distance < y->value.distance ? 1 : -1;
    return (x->reason > y->reason) - (x->reason < y->reason);
}

/* The exits of both, those with a difference that matters first. Free it; NULL: no memory. */
static struct exit_value *exits_of(const struct compare_pair *pair, size_t *ret_nr)
{
    const struct compare_domain *of[] = {pair->a[0], pair->b[0]};
    size_t nr = 0, max = 1;
    struct exit_value *values;

    for (size_t i = 0; i < ARRAY_SIZE(of); i++)
        max += of[i] ? of[i]->nr_exits : 0;
    values = calloc(max, sizeof(*values));
    for (size_t i = 0; values && i < ARRAY_SIZE(of); i++) {
        for (size_t j = 0; of[i] && j < of[i]->nr_exits; j++) {
            uint32_t reason = of[i]->exits[j].reason;
            bool is_known = false;

            for (size_t k = 0; k < nr && !is_known; k++)
                is_known = values[k].reason == reason;
            if (is_known)
                continue;
            values[nr].reason = reason;
            compare_by_exits(pair, reason, &values[nr++].value);
        }
    }
    if (nr > 0)
        qsort(values, nr, sizeof(*values), compare_exit_values);
    *ret_nr = nr;
    return values;
}

/* --- In words. --- */

/* How a number is shown. */
typedef const char *(*format_fn)(char buffer[static INPUT_TEXT_MAX], uint64_t value);

static const char *format_percent(char buffer[static INPUT_TEXT_MAX], uint64_t ppm)
{
    (void)snprintf(buffer, INPUT_TEXT_MAX, "%" PRIu64 ".%" PRIu64 "%%", ppm / 10000,
                   ppm % 10000 / 1000);
    return buffer;
}

static const char *format_distance(char buffer[static INPUT_TEXT_MAX], uint64_t ppm)
{
    (void)snprintf(buffer, INPUT_TEXT_MAX, "%" PRIu64 ".%03" PRIu64, ppm / 1000000,
                   ppm % 1000000 / 1000);
    return buffer;
}

static const char *format_rate(char buffer[static INPUT_TEXT_MAX], uint64_t rate)
{
    if (rate < 100000)
        (void)snprintf(buffer, INPUT_TEXT_MAX, "%" PRIu64 ".%" PRIu64 "/s", rate / 1000,
                       rate % 1000 / 100);
    else
        (void)snprintf(buffer, INPUT_TEXT_MAX, "%" PRIu64 "/s", rate / 1000);
    return buffer;
}

/* NAME of the domain in A, or in B, if it is only there. Returns BUFFER. */
static const char *name_of(const struct subject subjects[2], const struct match *match,
                           char buffer[static INPUT_TEXT_MAX])
{
    const struct subject *of = match->a ? &subjects[0] : &subjects[1];

    return input_domain(of->input, buffer, match->a ? match->a->domid : match->b->domid,
                        of->last_tsc);
}

/*
 * "web ran more in B: ...": a sentence to be freed; NULL: the difference is not larger, or too
 * small to be seen. WHAT: with "more" or "less".
 */
static char *describe_amount(const char *name, const char *what, const char *unit,
                             const struct compare_value *value, format_fn format)
{
    char a[INPUT_TEXT_MAX], b[INPUT_TEXT_MAX], noise[INPUT_TEXT_MAX];

    if (!value->is_larger || strcmp(format(a, value->a), format(b, value->b)) == 0)
        return NULL;
    return str_format("%s %s in B: %s%s, in A %s. The halves of a trace differ by up to %s.", name,
                      what, b, unit, a, format(noise, value->noise));
}

/* The median and the 99th percentile of waits. */
struct lengths {
    uint64_t p50, p99;
    char text[2 * INPUT_TEXT_MAX]; /* "p50 728us, p99 9.57ms" */
};

static struct lengths lengths_of(const struct compare_waits *waits)
{
    struct lengths lengths = {compare_percentile(waits, 1, 2), compare_percentile(waits, 99, 100),
                              ""};
    char p50[INPUT_TEXT_MAX], p99[INPUT_TEXT_MAX];

    (void)snprintf(lengths.text, sizeof(lengths.text), "p50 %s, p99 %s",
                   input_span_nsec(p50, lengths.p50), input_span_nsec(p99, lengths.p99));
    return lengths;
}

static const char *compare_lengths(const struct lengths *a, const struct lengths *b)
{
    if (a->p50 == b->p50 && a->p99 == b->p99)
        return "other waits";
    if (a->p50 <= b->p50 && a->p99 <= b->p99)
        return "longer waits";
    return a->p50 >= b->p50 && a->p99 >= b->p99 ? "shorter waits" : "other waits";
}

/* The same of the distributions of waits. */
static char *describe_waits(const char *name, const struct compare_pair *pair)
{
    struct lengths a = lengths_of(&pair->a[0]->waits), b = lengths_of(&pair->b[0]->waits);
    char distance[INPUT_TEXT_MAX], noise[INPUT_TEXT_MAX];
    struct compare_value value;

    compare_by_waits(pair, &value);
    if (!value.is_larger)
        return NULL;
    return str_format(
        "%s had %s for a CPU in B: %s; in A %s. The distributions are %s apart, those "
        "of the halves of a trace up to %s.",
        name, compare_lengths(&a, &b), b.text, a.text, format_distance(distance, value.distance),
        format_distance(noise, value.noise));
}

/* TEXT is freed; NULL: there is nothing to say. */
static void add_finding(struct json_object *list, size_t domain, const char *measure, char *text)
{
    struct json_object *entry;

    if (!text)
        return;
    entry = doc_append_object(list);
    doc_add_number(entry, "domain", domain);
    doc_add_text(entry, "measure", measure);
    doc_add_text(entry, "text", text);
    free(text);
}

static void add_exit_findings(struct json_object *list, size_t domain, const char *name,
                              const struct compare_pair *pair, bool is_svm)
{
    size_t nr = 0;
    struct exit_value *values = exits_of(pair, &nr);

    for (size_t i = 0; values && i < nr && i < EXITS_SHOWN; i++) {
        const struct compare_value *value = &values[i].value;
        char reason[EXIT_REASON_TEXT_MAX], what[INPUT_TEXT_MAX];

        (void)snprintf(what, sizeof(what), "had %s %s exits",
                       value->b > value->a ? "more" : "fewer",
                       exit_reason_name(is_svm, values[i].reason, reason));
        add_finding(list, domain, "exits", describe_amount(name, what, "", value, format_rate));
    }
    free(values);
}

/* `findings`: a sentence for each difference that is larger, in the order of the domains. */
static struct json_object *add_findings(struct json_object *doc, const struct subject subjects[2],
                                        const struct matches *matches)
{
    bool is_svm = subjects[0].sides[0]->is_svm || subjects[1].sides[0]->is_svm;
    struct json_object *list = doc_add_array(doc, "findings");

    for (size_t i = 0; i < matches->nr; i++) {
        const struct match *match = &matches->list[i];
        struct compare_pair pair = pair_of(subjects, match);
        struct compare_value value;
        char name[INPUT_TEXT_MAX];

        (void)name_of(subjects, match, name);
        if (!match->a || !match->b) {
            add_finding(list, i, NULL, str_format("%s is only in %s.", name, match->a ? "A" : "B"));
            continue;
        }
        compare_by_run(&pair, &value);
        add_finding(list, i, "run_ppm",
                    describe_amount(name, value.b > value.a ? "ran more" : "ran less", " of a CPU",
                                    &value, format_percent));
        add_finding(list, i, "waits", describe_waits(name, &pair));
        add_exit_findings(list, i, name, &pair, is_svm);
    }
    return list;
}

/* --- JSON. --- */

static void add_value(struct json_object *doc, const char *key, const struct compare_value *value,
                      bool in_a, bool in_b)
{
    struct json_object *entry = doc_add_object(doc, key);

    if (in_a)
        doc_add_number(entry, "a", value->a);
    if (in_b)
        doc_add_number(entry, "b", value->b);
    if (value->has_distance)
        doc_add_number(entry, "difference", value->distance);
    if (value->has_noise)
        doc_add_number(entry, "between_halves", value->noise);
    if (value->has_distance && value->has_noise)
        doc_add_flag(entry, "larger", value->is_larger);
}

static void add_percentiles(struct json_object *doc, const char *key,
                            const struct compare_domain *domain)
{
    struct json_object *entry;

    if (!domain)
        return;
    entry = doc_add_object(doc, key);
    doc_add_number(entry, "count", domain->waits.total);
    doc_add_number(entry, "p50_ns", compare_percentile(&domain->waits, 1, 2));
    doc_add_number(entry, "p99_ns", compare_percentile(&domain->waits, 99, 100));
    doc_add_number(entry, "max_ns", compare_percentile(&domain->waits, 1, 1));
}

static void add_waits(struct json_object *doc, const struct compare_pair *pair)
{
    struct json_object *entry = doc_add_object(doc, "waits");
    struct compare_value value;

    compare_by_waits(pair, &value);
    add_percentiles(entry, "a", pair->a[0]);
    add_percentiles(entry, "b", pair->b[0]);
    if (value.has_distance)
        doc_add_number(entry, "difference", value.distance);
    if (value.has_noise)
        doc_add_number(entry, "between_halves", value.noise);
    if (value.has_distance && value.has_noise)
        doc_add_flag(entry, "larger", value.is_larger);
}

static void add_exits(struct json_object *doc, const struct compare_pair *pair, bool is_svm)
{
    struct json_object *exits = doc_add_object(doc, "exits"), *entry;
    size_t nr = 0;
    struct exit_value *values = exits_of(pair, &nr);

    for (size_t i = 0; values && i < nr; i++) {
        char key[EXIT_REASON_TEXT_MAX], name[EXIT_REASON_TEXT_MAX];

        (void)snprintf(key, sizeof(key), "0x%" PRIx32, values[i].reason);
        add_value(exits, key, &values[i].value, pair->a[0], pair->b[0]);
        entry = doc_find(exits, key);
        doc_add_text(entry, "name", exit_reason_name(is_svm, values[i].reason, name));
    }
    free(values);
}

static void add_subject(struct json_object *doc, const char *key, const struct subject *subject)
{
    struct json_object *entry = doc_add_object(doc, key);

    doc_add_text(entry, "path", subject->input->path);
    doc_add_number(entry, "first_tsc", subject->first_tsc);
    doc_add_number(entry, "last_tsc", subject->last_tsc);
    doc_add_number(entry, "span_ns", subject->sides[0]->span_nsec);
    doc_add_number(entry, "tsc_khz", subject->input->tsc_khz);
    doc_add_flag(entry, "tsc_khz_assumed", subject->input->khz_is_assumed);
    doc_add_number(entry, "records", subject->records);
    doc_add_number(entry, "lost", subject->lost);
}

/* Free it with doc_free(); NULL: no memory. */
static struct json_object *make_doc(const struct subject subjects[2], const struct matches *matches)
{
    bool is_svm = subjects[0].sides[0]->is_svm || subjects[1].sides[0]->is_svm;
    struct json_object *doc = doc_new("xentraced-diff"), *domains;

    selection_doc_add(doc, subjects[0].input);
    add_subject(doc, "a", &subjects[0]);
    add_subject(doc, "b", &subjects[1]);
    (void)add_findings(doc, subjects, matches);
    domains = doc_add_array(doc, "domains");
    for (size_t i = 0; i < matches->nr; i++) {
        const struct match *match = &matches->list[i];
        struct compare_pair pair = pair_of(subjects, match);
        struct json_object *entry = doc_append_object(domains);
        const struct subject *of = match->a ? &subjects[0] : &subjects[1];
        struct compare_value value;

        if (match->a)
            doc_add_number(entry, "domid_a", match->a->domid);
        if (match->b)
            doc_add_number(entry, "domid_b", match->b->domid);
        doc_add_text(entry, "name",
                     text_of(of, match->a ? match->a : match->b, sidecar_domain_name));
        doc_add_text(entry, "matched_by", match->by);
        compare_by_run(&pair, &value);
        add_value(entry, "run_ppm", &value, match->a, match->b);
        add_waits(entry, &pair);
        add_exits(entry, &pair, is_svm);
    }
    return doc;
}

/* --- The page. --- */

/* `waits`: of each of the first domains, the distributions in A and in B. */
static void add_distributions(struct json_object *doc, const struct subject subjects[2],
                              const struct matches *matches)
{
    struct json_object *list = doc_add_array(doc, "waits");

    for (size_t i = 0; i < matches->nr && i < DISTRIBUTIONS_MAX; i++) {
        const struct compare_domain *of[] = {matches->list[i].a, matches->list[i].b};
        struct json_object *entry = doc_append_object(list);

        for (size_t j = 0; j < ARRAY_SIZE(of); j++) {
            struct json_object *waits;
            char path[32];

            if (!of[j])
                continue;
            (void)snprintf(path, sizeof(path), "waits.d%" PRIu32, of[j]->domid);
            waits = doc_find(subjects[j].facts, path);
            if (waits)
                doc_add_document(entry, j == 0 ? "a" : "b", waits);
        }
    }
}

static int write_page(struct page_output *output, const struct subject subjects[2],
                      const struct matches *matches, size_t *ret_bytes, char **ret_error)
{
    _cleanup_doc_ struct json_object *doc = doc_new("xentraced-page");
    struct json_object *trimmed = doc_add_array(doc, "trimmed");
    const struct matches shown = {matches->list, min_u64(matches->nr, PAGE_DOMAINS_MAX)};
    struct json_object *diff = make_doc(subjects, &shown);

    if (!doc || !diff) {
        (void)doc_free(diff);
        return -ENOMEM;
    }
    if (matches->nr > shown.nr)
        page_trim_note(trimmed, "domains", shown.nr, matches->nr);
    page_trim(diff, PAGE_DIFF_BYTES_MAX, trimmed);
    (void)json_object_object_add(doc, "diff", diff);
    doc_add_document(doc, "a", doc_find(subjects[0].facts, "trace"));
    doc_add_document(doc, "b", doc_find(subjects[1].facts, "trace"));
    add_distributions(doc, subjects, matches);
    return page_write(output, doc, ret_bytes, ret_error);
}

/* --- For people. --- */

/* The last three columns. */
static void add_distance(struct table *table, const struct match *match,
                         const struct compare_value *value, format_fn format)
{
    char text[INPUT_TEXT_MAX];

    if (!match->a || !match->b) {
        table_add(table, "-");
        table_add(table, "-");
        table_add(table, match->a ? "only in A" : "only in B");
        return;
    }
    table_add(table, "%s", value->has_distance ? format(text, value->distance) : "-");
    table_add(table, "%s", value->has_noise ? format(text, value->noise) : "-");
    if (!value->has_distance || !value->has_noise)
        table_add(table, "unknown");
    else
        table_add(table, "%s", value->is_larger ? "yes" : "no");
}

static void add_row(struct table *table, const char *domain, const char *what,
                    const struct match *match, const struct compare_value *value, format_fn format)
{
    char text[INPUT_TEXT_MAX];

    table_add(table, "%s", domain);
    table_add(table, "%s", what);
    table_add(table, "%s", match->a ? format(text, value->a) : "-");
    table_add(table, "%s", match->b ? format(text, value->b) : "-");
    add_distance(table, match, value, format);
}

static void add_wait_rows(struct table *table, const struct match *match,
                          const struct compare_pair *pair)
{
    static const struct {
        const char *name;
        unsigned int part, whole;
    } rows[] = {{"waits, p50", 1, 2}, {"waits, p99", 99, 100}, {"waits, max", 1, 1}};
    const struct compare_domain *of[] = {match->a, match->b};
    struct compare_value value;

    compare_by_waits(pair, &value);
    for (size_t i = 0; i < ARRAY_SIZE(rows) && value.a + value.b > 0; i++) {
        table_add(table, "%s", "");
        table_add(table, "%s", rows[i].name);
        for (size_t j = 0; j < ARRAY_SIZE(of); j++) {
            char text[INPUT_TEXT_MAX];

            if (of[j] && of[j]->waits.total > 0)
                table_add(table, "%s",
                          input_span_nsec(text, compare_percentile(&of[j]->waits, rows[i].part,
                                                                   rows[i].whole)));
            else
                table_add(table, "-");
        }
        if (i == 0) {
            add_distance(table, match, &value, format_distance);
            continue;
        }
        for (unsigned int j = 0; j < 3; j++)
            table_add(table, "%s", "");
    }
}

static void add_exit_rows(struct table *table, const struct match *match,
                          const struct compare_pair *pair, bool is_svm)
{
    size_t nr = 0;
    struct exit_value *values = exits_of(pair, &nr);

    for (size_t i = 0; values && i < nr && i < EXITS_SHOWN; i++) {
        char reason[EXIT_REASON_TEXT_MAX], what[INPUT_TEXT_MAX];

        (void)snprintf(what, sizeof(what), "exits %s",
                       exit_reason_name(is_svm, values[i].reason, reason));
        add_row(table, "", what, match, &values[i].value, format_rate);
    }
    free(values);
}

static void print_subject(char letter, const struct subject *subject)
{
    char span[INPUT_TEXT_MAX], from[INPUT_TEXT_MAX];

    (void)printf("%c: %s: %s from %s, %" PRIu64 " records", letter, input_name(subject->input),
                 input_span(subject->input, span, subject->last_tsc - subject->first_tsc),
                 input_when(subject->input, from, subject->first_tsc, subject->first_tsc),
                 subject->records);
    if (subject->lost > 0)
        (void)printf("; %" PRIu64 " lost", subject->lost);
    (void)puts(".");
    if (subject->input->khz_is_assumed)
        (void)printf("   The TSC frequency is unknown and is assumed to be %" PRIu64 " MHz.\n",
                     subject->input->tsc_khz / 1000);
}

static void print_findings(const struct subject subjects[2], const struct matches *matches,
                           unsigned int width)
{
    _cleanup_doc_ struct json_object *doc = json_object_new_object();
    struct json_object *list = add_findings(doc, subjects, matches);
    size_t nr = doc_length(list);

    (void)putchar('\n');
    if (nr == 0)
        (void)wrap_print(stdout,
                         "No difference is larger than those between the halves of one trace.",
                         width, 0, 0);
    else
        (void)puts("Findings:");
    for (size_t i = 0; i < nr && i < FINDINGS_SHOWN; i++)
        (void)wrap_print(stdout, doc_text(doc_at(list, i), "text", ""), width, 2, 4);
    if (nr > FINDINGS_SHOWN)
        (void)printf("  %zu more: LARGER is yes in their rows.\n", nr - FINDINGS_SHOWN);
}

static void print_text(const struct subject subjects[2], const struct matches *matches,
                       unsigned int width)
{
    bool is_svm = subjects[0].sides[0]->is_svm || subjects[1].sides[0]->is_svm;
    _cleanup_table_ struct table *table = NULL;

    print_subject('A', &subjects[0]);
    print_subject('B', &subjects[1]);
    if (subjects[0].input->shown)
        (void)printf("Shown: %s.\n", subjects[0].input->shown);
    print_findings(subjects, matches, width);
    if (table_new("DOMAIN MEASURE >A >B >DIFFERENCE >HALVES LARGER", &table) < 0)
        return;
    for (size_t i = 0; i < matches->nr; i++) {
        const struct match *match = &matches->list[i];
        struct compare_pair pair = pair_of(subjects, match);
        struct compare_value value;
        char name[INPUT_TEXT_MAX];

        compare_by_run(&pair, &value);
        add_row(table, name_of(subjects, match, name), "ran", match, &value, format_percent);
        add_wait_rows(table, match, &pair);
        add_exit_rows(table, match, &pair, is_svm);
    }
    (void)putchar('\n');
    table_print(table, stdout, 0, 0);
    (void)puts("\nLARGER: whether the difference is larger than that between the halves of one "
               "trace (HALVES).\nOf waits, it is the largest distance between the two "
               "distributions, from 0 to 1.");
}

static void print(const struct ctl *ctl, const struct subject subjects[2],
                  const struct matches *matches)
{
    _cleanup_pager_ struct pager *pager = NULL;
    unsigned int width = (unsigned int)table_terminal_width(false);

    if (ctl->json) {
        _cleanup_doc_ struct json_object *doc = make_doc(subjects, matches);

        doc_print(stdout, doc);
        return;
    }
    pager_open(!ctl->no_pager, &pager);
    print_text(subjects, matches, width);
}

/* SUBJECTS and MATCHES are the caller's to free, also after an error. */
static int diff(struct ctl *ctl, const struct options *options, const char *const paths[2],
                struct subject subjects[2], struct matches *matches, char **ret_error)
{
    _cleanup_page_ struct page_output *page = NULL;
    size_t bytes = 0;
    int r;

    if (options->html) {
        r = page_open(options->html, &page, ret_error);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < 2; i++) {
        r = subject_read(&subjects[i], ctl, options, paths[i], ret_error);
        if (r < 0)
            return r;
    }
    r = find_matches(subjects, matches);
    if (r < 0)
        return r;
    if (matches->nr == 0 && subjects[0].input->subjects)
        return str_refuse(-ENOENT, ret_error, "Neither trace has a runstate record of %s.",
                          subjects[0].input->shown);
    if (!page) {
        print(ctl, subjects, matches);
        return 0;
    }
    r = write_page(page, subjects, matches, &bytes, ret_error);
    if (r == 0)
        page_print_written(options->html, bytes);
    return r;
}

static int cmd_diff(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {.selection.may_be_missing = true};
    struct subject subjects[2] = {0};
    struct matches matches = {0};
    const char *paths[2];
    char *error = NULL;
    int r;

    r = args_parse(ctl, diff_options, argc, argv, 2, &options, NULL, &error);
    if (r == 0)
        r = selection_check(&options.selection, NULL, &error);
    if (r == 0 && options.html && ctl->json)
        r = str_refuse(-EINVAL, &error, "--html has all numbers: it does not take --json.");
    if (r == 0 && optind + 2 != argc)
        r = str_refuse(-EINVAL, &error, "diff needs the names of two trace files.");
    for (int i = 0; r == 0 && i < 2; i++) {
        paths[i] = argv[optind + i];
        if (strcmp(paths[i], "-") == 0)
            r = str_refuse(-EINVAL, &error,
                           "diff reads each trace more than once: give it files, not standard "
                           "input.");
    }
    if (r < 0)
        return args_exit(&verb_diff, r, error);
    r = diff(ctl, &options, paths, subjects, &matches, &error);
    free(matches.list);
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
        subject_done(&subjects[i]);
    if (r >= 0)
        return CTL_OK;
    ctl_error_sentence(error);
    free(error);
    return CTL_FAILURE;
}

const struct verb verb_diff = {
    .name = "diff",
    .run = cmd_diff,
    .words = "FILE FILE",
    .completes = "files",
    .summary = "compare two traces",
    .help = "Shows two traces side by side, domain by domain: how much each ran, how long it\n"
            "waited, its exits; and which differences are larger than those between the\n"
            "halves of one trace. Needs no daemon.\n",
    .options = diff_options,
    .examples = "  xentracectl diff --html page.html before.xentrace after.xentrace\n",
};

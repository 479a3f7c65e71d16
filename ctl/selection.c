// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A time with a sign is one of the trace: "+3.5s" after its beginning, "-40s" before its end.
 * Others are those of the wall clock, as time_spec_parse() reads them, and are looked up in the
 * sidecar. A time of day is the last one that is not after the end of the trace: a trace of
 * yesterday has one, too.
 */

#include "ctl/selection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "common/time-spec.h"
#include "common/util.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/input.h"
#include "ctl/newest.h"
#include "ctl/now.h"
#include "ctl/str.h"
#include "ctl/who.h"
#include "trace/measures.h"
#include "trace/sidecar.h"
#include "trace/subjects.h"

#define DOMAINS_SHOWN 8u /* in a sentence */
#define DAY_NSEC      (UINT64_C(86400) * NSEC_PER_SEC)

static bool has_sign(const char *text)
{
    return *text == '+' || *text == '-';
}

static uint64_t realtime_nsec(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* --- Without the trace. --- */

int selection_check_time(const char *option, const char *text, char **ret_error)
{
    struct time_spec spec;
    uint64_t usec;

    if (time_spec_parse(text, realtime_nsec(), &spec) == 0)
        return 0;
    if (duration_parse(text, USEC_PER_SEC, &usec) == 0)
        return str_refuse(
            -EINVAL, ret_error,
            "%s %s is a duration. Write +%s (after the beginning of the trace) or -%s "
            "(before its end).",
            option, text, text, text);
    return str_refuse(
        -EINVAL, ret_error,
        "%s \"%s\" is not a time: write 02:51:00.5, \"2026-11-21 02:51\", +3.5s (after "
        "the beginning of the trace) or -40s (before its end).",
        option, text);
}

static int check_if_given(const char *option, const char *text, char **ret_error)
{
    return text ? selection_check_time(option, text, ret_error) : 0;
}

int selection_check(const struct selection_options *options, const char *path, char **ret_error)
{
    int r;

    if (path && options->now)
        return str_refuse(-EINVAL, ret_error,
                          "--now reads what the flight recorder holds, not a file: omit %s.", path);

    r = check_if_given("--since", options->since, ret_error);
    if (r == 0)
        r = check_if_given("--until", options->until, ret_error);
    if (r == 0)
        r = check_if_given("--around", options->around, ret_error);
    if (r < 0)
        return r;
    if (options->around && (options->since || options->until))
        return str_refuse(-EINVAL, ret_error,
                          "--around selects a part by its middle, --since and --until by its ends: "
                          "choose one.");
    if (options->window_usec && !options->around)
        return str_refuse(-EINVAL, ret_error, "--window needs --around, the middle of the part.");
    return 0;
}

bool selection_has_part(const struct selection_options *options)
{
    return options->since || options->until || options->around;
}

static bool counts_from_end(const char *text)
{
    return text && *text == '-';
}

static bool needs_end(const struct selection_options *options)
{
    return counts_from_end(options->since) || counts_from_end(options->until) ||
           counts_from_end(options->around);
}

/* --- With it. --- */

/* Whether TEXT is a time of a day that it does not name: it is another one a day later. */
static bool has_no_day(const char *text, uint64_t now)
{
    struct time_spec today, tomorrow;

    return text_is_digit(*text) && time_spec_parse(text, now, &today) == 0 &&
           time_spec_parse(text, now + DAY_NSEC, &tomorrow) == 0 &&
           today.realtime_ns != tomorrow.realtime_ns;
}

/* The moment of the wall clock. */
static int find_nsec(const char *text, uint64_t end_nsec, uint64_t *ret_nsec)
{
    uint64_t now = realtime_nsec();
    struct time_spec spec;
    int r;

    if (has_no_day(text, now) && end_nsec > 0) {
        r = time_spec_parse(text, end_nsec, &spec);
        if (r == 0 && spec.realtime_ns > end_nsec && end_nsec > DAY_NSEC)
            r = time_spec_parse(text, end_nsec - DAY_NSEC, &spec);
    } else {
        r = time_spec_parse(text, now, &spec);
    }
    if (r < 0)
        return r;
    if (spec.is_relative) /* "now", "5min ago" */
        *ret_nsec = now - min_u64(now, spec.offset_usec * NSEC_PER_USEC);
    else
        *ret_nsec = spec.realtime_ns;
    return 0;
}

static int refuse_clock(const char *option, const char *text, const struct input *input,
                        char **ret_error)
{
    return str_refuse(-EINVAL, ret_error,
                      "%s %s is a time of the wall clock, which %s has no sidecar for. Write +3.5s "
                      "(after the beginning of the trace) or -40s (before its end).",
                      option, text, input_name(input));
}

int selection_find_tsc(const char *option, const char *text, const struct input *input,
                       uint64_t first_tsc, uint64_t last_tsc, uint64_t *ret_tsc, char **ret_error)
{
    uint64_t usec, nsec, ticks;
    int r;

    if (has_sign(text)) {
        r = duration_parse(text + 1, USEC_PER_SEC, &usec);
        if (r < 0)
            return selection_check_time(option, text, ret_error);
        ticks = input_ticks(input, usec);
        if (*text == '+')
            *ret_tsc = ticks > UINT64_MAX - first_tsc ? UINT64_MAX : first_tsc + ticks;
        else
            *ret_tsc = last_tsc - min_u64(ticks, last_tsc);
        return 0;
    }
    r = find_nsec(text, sidecar_realtime_nsec(input->sidecar, last_tsc), &nsec);
    if (r < 0)
        return selection_check_time(option, text, ret_error);
    if (!sidecar_find_tsc(input->sidecar, nsec, ret_tsc))
        return refuse_clock(option, text, input, ret_error);
    return 0;
}

static int refuse_empty(const struct selection_options *options, const struct input *input,
                        uint64_t first_tsc, uint64_t last_tsc, char **ret_error)
{
    char from[INPUT_TEXT_MAX], to[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];

    if (options->since && options->until)
        return str_refuse(-ERANGE, ret_error, "--since %s is not before --until %s.",
                          options->since, options->until);
    return str_refuse(
        -ERANGE, ret_error, "%s has no record of that time: it holds %s, from %s to %s.",
        input_name(input), input_span(input, span, last_tsc - first_tsc),
        input_when(input, from, first_tsc, first_tsc), input_when(input, to, last_tsc, first_tsc));
}

static int find_part(const struct selection_options *options, const struct input *input,
                     uint64_t first_tsc, uint64_t last_tsc, struct merge_part *ret_part,
                     char **ret_error)
{
    struct merge_part part = MERGE_ALL;
    uint64_t window = options->window_usec ? options->window_usec : SELECTION_WINDOW_USEC;
    int r = 0;

    if (options->around) {
        r = selection_find_tsc("--around", options->around, input, first_tsc, last_tsc, &part.from,
                               ret_error);
        part.from -= min_u64(part.from, input_ticks(input, window / 2));
        part.until = part.from + input_ticks(input, window);
    }
    if (r == 0 && options->since)
        r = selection_find_tsc("--since", options->since, input, first_tsc, last_tsc, &part.from,
                               ret_error);
    if (r == 0 && options->until)
        r = selection_find_tsc("--until", options->until, input, first_tsc, last_tsc, &part.until,
                               ret_error);
    if (r < 0)
        return r;
    if (part.from >= part.until || part.until <= first_tsc ||
        (last_tsc > 0 && part.from > last_tsc))
        return refuse_empty(options, input, first_tsc, last_tsc, ret_error);
    *ret_part = part;
    return 0;
}

/* --- Domains, vCPUs, CPUs. --- */

bool selection_has_subjects(const struct selection_options *options)
{
    return options->domains.nr > 0 || options->vcpus.nr > 0 || options->cpus;
}

typedef int (*add_fn)(struct input *input, const char *word, char **ret_error);

/* A name that this trace does not have is no error if another trace may have it. */
static int add_word(const struct selection_options *options, struct input *input, add_fn add,
                    const char *word, char **ret_error)
{
    int r = add(input, word, ret_error);

    if (r != -ENOENT || !options->may_be_missing)
        return r;
    free(*ret_error);
    *ret_error = NULL;
    return 0;
}

/* Calls ADD for each word of LIST. A word with commas may be a name. */
static int each_word(const struct selection_options *options, struct input *input,
                     const struct args_list *list, add_fn add, char **ret_error)
{
    int r = 0;

    for (unsigned int i = 0; i < list->nr && r >= 0; i++) {
        _cleanup_free_ char *words = strdup(list->values[i]);
        char *rest = words, *word;
        uint32_t domid;

        if (!words)
            return -ENOMEM;
        if (sidecar_find_domain(input->sidecar, words, &domid))
            rest = NULL;
        if (!rest)
            r = add_word(options, input, add, words, ret_error);
        while (r >= 0 && (word = strsep(&rest, ",")))
            r = add_word(options, input, add, word, ret_error);
    }
    return r;
}

static int add_domain(struct input *input, const char *word, char **ret_error)
{
    uint32_t domid;
    int r = who_find_domain(input, word, &domid, ret_error);

    input->subjects->of_domains = true;
    if (r >= 0)
        subjects_add_domain(input->subjects, domid);
    return r;
}

static int add_vcpu(struct input *input, const char *word, char **ret_error)
{
    uint32_t domid = 0;
    int64_t vcpu = -1;
    int r = who_find_vcpu(input, word, &domid, &vcpu, ret_error);

    input->subjects->of_vcpus = true;
    if (r < 0)
        return r;
    if (vcpu < 0)
        return str_refuse(-EINVAL, ret_error,
                          "--vcpu %s is a domain: write --vcpu %s.0 for its first vCPU, or "
                          "--domain %s.",
                          word, word, word);
    if (!subjects_add_vcpu(input->subjects, domid << 16 | (uint32_t)vcpu))
        return str_refuse(-EINVAL, ret_error, "--vcpu takes up to %u vCPUs.", SUBJECTS_VCPUS_MAX);
    return 0;
}

/* Both are restricted, and no vCPU is in both. */
static bool is_contradiction(const struct subjects *subjects)
{
    for (size_t i = 0; i < subjects->nr_vcpus; i++)
        if (subjects_has_vcpu(subjects, subjects->vcpus[i]))
            return false;
    return subjects->of_domains && subjects->of_vcpus;
}

static void describe_list(FILE *file, const char *what, const struct args_list *list)
{
    for (unsigned int i = 0; i < list->nr; i++)
        (void)fprintf(file, "%s %s", i > 0 ? "," : what, list->values[i]);
}

/* "domain web; CPU 3", as the user named them. */
static char *describe(const struct selection_options *options)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    if (!file)
        return NULL;
    describe_list(file, "domain", &options->domains);
    describe_list(file, options->domains.nr > 0 ? "; vCPU" : "vCPU", &options->vcpus);
    if (options->cpus)
        (void)fprintf(file, "%sCPU %s", options->domains.nr + options->vcpus.nr > 0 ? "; " : "",
                      options->cpus);
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    str_make_printable(text);
    return text;
}

int selection_find_subjects(const struct selection_options *options, struct input *input,
                            char **ret_error)
{
    int r;

    if (!selection_has_subjects(options))
        return 0;
    input->subjects = calloc(1, sizeof(*input->subjects));
    if (!input->subjects)
        return -ENOMEM;
    r = each_word(options, input, &options->domains, add_domain, ret_error);
    if (r < 0)
        return r;
    r = each_word(options, input, &options->vcpus, add_vcpu, ret_error);
    if (r < 0)
        return r;
    input->subjects->of_cpus = options->cpus;
    if (options->cpus)
        r = cpu_set_parse(options->cpus, CPU_SET_MAX, &input->subjects->cpus, ret_error);
    if (r < 0)
        return r;
    if (!options->may_be_missing && is_contradiction(input->subjects))
        return str_refuse(-EINVAL, ret_error,
                          "No vCPU of --vcpu is one of --domain: nothing would be shown.");
    input->shown = describe(options);
    return input->shown ? 0 : -ENOMEM;
}

/* "web and db", by their runstates. */
static char *list_domains(const struct input *input, const struct measures *measures)
{
    char *text = NULL;
    size_t bytes, nr = 0;
    FILE *file = open_memstream(&text, &bytes);
    struct subjects *seen = calloc(1, sizeof(*seen));

    for (unsigned int i = 0; file && seen && i < measures->state.nr_vcpus; i++) {
        uint32_t domid = measures->state.vcpus[i]->key >> 16;
        char name[INPUT_TEXT_MAX];

        if (domid >= STATE_DOMAIN_IDLE || (nr > 0 && subjects_has_domain(seen, domid)))
            continue;
        subjects_add_domain(seen, domid);
        if (nr++ < DOMAINS_SHOWN)
            (void)fprintf(file, "%s%s", nr > 1 ? ", " : "",
                          input_domain(input, name, domid, measures->last_tsc));
    }
    free(seen);
    if (file && nr > DOMAINS_SHOWN)
        (void)fprintf(file, " and %zu more", nr - DOMAINS_SHOWN);
    if (file && fclose(file) == 0)
        return text;
    free(text);
    return NULL;
}

static bool has_asked_cpu(const struct input *input)
{
    for (unsigned int i = 0; i < merge_streams(&input->merge); i++)
        if (subjects_has_cpu(input->subjects, merge_cpu_of(&input->merge, i)))
            return true;
    return false;
}

int selection_check_shown(const struct input *input, const struct measures *measures,
                          char **ret_error)
{
    _cleanup_free_ char *domains = NULL;

    if (!input->subjects)
        return 0;
    if (!has_asked_cpu(input))
        return str_refuse(-ENOENT, ret_error,
                          "%s has no record of %s. It has records of %u CPUs: xentracectl report "
                          "--view cpus %s",
                          input_name(input), input->shown, merge_streams(&input->merge),
                          input->path);
    if (!subjects_are_vcpus(input->subjects))
        return 0;
    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++)
        if (measures_shows_vcpu(measures, measures->state.vcpus[i]))
            return 0;
    domains = list_domains(input, measures);
    if (input->subjects->of_cpus) /* it may be known, but elsewhere */
        return str_refuse(-ENOENT, ret_error, "No vCPU of %s matches all of: %s. Its domains: %s.",
                          input_name(input), input->shown, domains && *domains ? domains : "none");
    return str_refuse(-ENOENT, ret_error, "%s has no runstate record of %s. Its domains: %s.",
                      input_name(input), input->shown, domains && *domains ? domains : "none");
}

void selection_doc_add(struct json_object *doc, const struct input *input)
{
    const struct subjects *subjects = input->subjects;
    struct json_object *entry, *list;
    _cleanup_free_ char *cpus = NULL;

    if (!subjects)
        return;
    entry = doc_add_object(doc, "selection");
    if (subjects->of_domains) {
        list = doc_add_array(entry, "domains");
        for (uint32_t i = 0; i < SUBJECTS_DOMAINS; i++)
            if (subjects_has_domain(subjects, i))
                doc_append_number(list, i);
    }
    if (subjects->of_vcpus) {
        list = doc_add_array(entry, "vcpus");
        for (size_t i = 0; i < subjects->nr_vcpus; i++) {
            char text[32];

            (void)snprintf(text, sizeof(text), "d%" PRIu32 "v%" PRIu32, subjects->vcpus[i] >> 16,
                           subjects->vcpus[i] & 0xffff);
            doc_append_text(list, text);
        }
    }
    if (subjects->of_cpus && cpu_set_format(&subjects->cpus, &cpus) == 0)
        doc_add_text(entry, "cpus", cpus);
}

/* --- Opening. --- */

/* The flight recorder's content. */
static int open_now(const struct ctl *ctl, const struct selection_options *options,
                    struct input **ret_input, char **ret_error)
{
    struct input_options input_options = {
        .path = "--now",
        .tsc_khz = options->tsc_khz,
        .is_now = true,
    };
    _cleanup_fd_ int sidecar = -1;
    int r;

    r = now_take(ctl->socket, &input_options.trace_fd, &sidecar, ret_error);
    if (r < 0)
        return r;
    input_options.sidecar_fd = sidecar;
    return input_open(&input_options, ret_input, ret_error);
}

static int open_input(const struct ctl *ctl, const struct selection_options *options,
                      const char *path, bool keep, struct input **ret_input, char **ret_error)
{
    struct input_options input_options = {
        .path = path,
        .tsc_khz = options->tsc_khz,
        .keep = keep,
    };
    _cleanup_free_ char *newest = NULL;
    int r;

    if (options->now)
        return open_now(ctl, options, ret_input, ret_error);
    if (!path) {
        r = newest_find(ctl->socket, &newest, ret_error);
        if (r < 0)
            return r;
        input_options.path = newest;
    }
    return input_open(&input_options, ret_input, ret_error);
}

int selection_open(const struct ctl *ctl, const struct selection_options *options, const char *path,
                   bool again, struct input **ret_input, char **ret_error)
{
    _cleanup_input_ struct input *input = NULL;
    struct merge_part part = MERGE_ALL;
    uint64_t first_tsc, last_tsc;
    int r;

    r = open_input(ctl, options, path, again || needs_end(options), &input, ret_error);
    if (r < 0)
        return r;
    r = selection_find_subjects(options, input, ret_error);
    if (r < 0)
        return r;
    if (selection_has_part(options) && input_find_span(input, &first_tsc, &last_tsc)) {
        r = source_error(input->source);
        if (r < 0)
            return input_refuse(input, r, "", ret_error);
        r = find_part(options, input, first_tsc, last_tsc, &part, ret_error);
        if (r < 0)
            return r;
    }
    r = input_begin(input, part, ret_error);
    if (r < 0)
        return r;
    *ret_input = TAKE_PTR(input);
    return 0;
}

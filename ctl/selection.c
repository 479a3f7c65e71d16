// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A time with a sign is one of the trace: "+3.5s" after its beginning, "-40s" before its end.
 * Others are those of the wall clock, as time_spec_parse() reads them, and are looked up in the
 * sidecar. A time of day is the last one that is not after the end of the trace: a trace of
 * yesterday has one, too.
 */

#include "ctl/selection.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "common/time-spec.h"
#include "common/util.h"
#include "ctl/ctl.h"
#include "ctl/input.h"
#include "ctl/newest.h"
#include "ctl/now.h"
#include "ctl/str.h"
#include "trace/sidecar.h"

#define DAY_NSEC (UINT64_C(86400) * NSEC_PER_SEC)

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
    if (selection_has_part(options) && input_find_span(input, &first_tsc, &last_tsc)) {
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

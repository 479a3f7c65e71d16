/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The letters are xentrace's. Each value is parsed here although the daemon gets lists as they were
 * typed: a mistake is answered before a file is made or anybody is asked.
 */

#include "ctl/options.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/cpu-set.h"
#include "common/event-set.h"
#include "common/units.h"
#include "ctl/args.h"
#include "ctl/str.h"
#include "ctl/values.h"

#define MIB (UINT64_C(1024) * 1024)

enum {
    OPTION_MAX_SIZE_ONLY = 0x100, /* options without a letter */
    OPTION_FORCE_ONLY,
    OPTION_MAX_AGE_ONLY,
    OPTION_SEGMENT_SIZE_ONLY,
    OPTION_SEGMENT_TIME_ONLY,
    OPTION_KEEP_FILES_ONLY,
    OPTION_KEEP_SIZE_ONLY,
    OPTION_ON_RESERVE_ONLY,
};

/* record's first: start has all but --quiet. */
static const struct option capture_options[] = {
    {"quiet", no_argument, NULL, 'q'},
    {"events", required_argument, NULL, 'e'},
    {"cpus", required_argument, NULL, 'c'},
    {"time", required_argument, NULL, 'T'},
    {"output", required_argument, NULL, 'o'},
    {"force", no_argument, NULL, OPTION_FORCE_ONLY},
    {"reserve", required_argument, NULL, 'r'},
    {"max-size", required_argument, NULL, OPTION_MAX_SIZE_ONLY},
    {"buffer-pages", required_argument, NULL, 'S'},
    {"poll", required_argument, NULL, 's'},
    {"discard", no_argument, NULL, 'D'},
    {"keep-enabled", no_argument, NULL, 'x'},
    {"start-disabled", no_argument, NULL, 'X'},
    {"memory", required_argument, NULL, 'M'},
    {"max-age", required_argument, NULL, OPTION_MAX_AGE_ONLY},
    {"segment-size", required_argument, NULL, OPTION_SEGMENT_SIZE_ONLY},
    {"segment-time", required_argument, NULL, OPTION_SEGMENT_TIME_ONLY},
    {"keep-files", required_argument, NULL, OPTION_KEEP_FILES_ONLY},
    {"keep-size", required_argument, NULL, OPTION_KEEP_SIZE_ONLY},
    {"on-reserve", required_argument, NULL, OPTION_ON_RESERVE_ONLY},
    {},
};

static int add_events(struct capture_options *options, const char *list)
{
    char *joined = options->events ? str_format("%s,%s", options->events, list) : strdup(list);

    if (!joined)
        return -ENOMEM;
    free(options->events);
    options->events = joined;
    return 0;
}

/* All -e together: numbers are OR-ed, so that one alone may be no event yet. */
static int check_events(const char *list, char **ret_error)
{
    struct event_set events;

    return list ? event_set_parse(list, &events, ret_error) : 0;
}

static int set_cpus(struct capture_options *options, const char *list, char **ret_error)
{
    struct cpu_set cpus;
    int r;

    r = cpu_set_parse(list, CPU_SET_MAX, &cpus, ret_error);
    if (r < 0)
        return r == -ERANGE ? -EINVAL : r;
    if (cpu_set_count(&cpus) == 0)
        return str_refuse(-EINVAL, ret_error, "The CPU list \"%s\" has no CPU in it.", list);
    options->cpus = list;
    return 0;
}

/* A number alone is in bytes, as in xentrace. */
static int set_memory(struct capture_options *options, const char *text, char **ret_error)
{
    int r = values_set_size("-M", text, 1, false, &options->memory_bytes, ret_error);

    if (r >= 0 && options->memory_bytes < PAGE_BYTES)
        return str_refuse(-EINVAL, ret_error,
                          "-M %s is %" PRIu64 " bytes, not even a page: write 64M for 64 MiB.",
                          text, options->memory_bytes);
    return r;
}

static int set_on_reserve(struct capture_options *options, const char *text, char **ret_error)
{
    if (strcmp(text, "stop") != 0 && strcmp(text, "rotate") != 0 && strcmp(text, "pause") != 0)
        return str_refuse(-EINVAL, ret_error,
                          "--on-reserve \"%s\" is not known: write stop, rotate or pause.", text);
    options->on_reserve = text;
    return 0;
}

static int take_ring_option(struct capture_options *options, int option, char **ret_error)
{
    switch (option) {
    case 'M':
        return set_memory(options, optarg, ret_error);
    case OPTION_MAX_AGE_ONLY:
        return values_set_duration("--max-age", optarg, USEC_PER_SEC, &options->max_age_usec,
                                   ret_error);
    case OPTION_SEGMENT_SIZE_ONLY:
        return values_set_size("--segment-size", optarg, 1, false, &options->segment_size_bytes,
                               ret_error);
    case OPTION_SEGMENT_TIME_ONLY:
        return values_set_duration("--segment-time", optarg, USEC_PER_SEC,
                                   &options->segment_time_usec, ret_error);
    case OPTION_KEEP_FILES_ONLY:
        return values_set_count("--keep-files", optarg, "files", &options->keep_files, ret_error);
    case OPTION_KEEP_SIZE_ONLY:
        return values_set_size("--keep-size", optarg, 1, false, &options->keep_size_bytes,
                               ret_error);
    case OPTION_ON_RESERVE_ONLY:
        return set_on_reserve(options, optarg, ret_error);
    }
    return -EINVAL; /* not reached: the table above has no other */
}

static int take_option(struct capture_options *options, int option, char **ret_error)
{
    switch (option) {
    case 'e':
        return add_events(options, optarg);
    case 'c':
        return set_cpus(options, optarg, ret_error);
    case 'T':
        return values_set_duration("-T", optarg, USEC_PER_SEC, &options->time_usec, ret_error);
    case 's':
        return values_set_duration("-s", optarg, USEC_PER_MSEC, &options->poll_usec, ret_error);
    case 'r':
        options->has_reserve = true;
        return values_set_size("-r", optarg, MIB, true, &options->reserve_bytes, ret_error);
    case OPTION_MAX_SIZE_ONLY:
        return values_set_size("--max-size", optarg, 1, false, &options->max_size_bytes, ret_error);
    case 'S':
        return values_set_count("-S", optarg, "pages", &options->buffer_pages, ret_error);
    case 'o':
        return values_set_output(optarg, &options->output, ret_error);
    case OPTION_FORCE_ONLY:
        options->force = true;
        return 0;
    case 'D':
        options->discard = true;
        return 0;
    case 'x':
        options->keep_enabled = true;
        return 0;
    case 'X':
        options->start_disabled = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    }
    return take_ring_option(options, option, ret_error);
}

static bool is_segmented(const struct capture_options *options)
{
    return options->segment_size_bytes || options->segment_time_usec;
}

/* What a ring in memory and a disk ring need, and what they exclude. */
static int check_rings(const struct capture_options *options, char **ret_error)
{
    bool keeps = options->keep_files || options->keep_size_bytes;

    if (options->memory_bytes && is_segmented(options))
        return str_refuse(-EINVAL, ret_error,
                          "-M keeps the capture in memory, --segment-size and --segment-time on "
                          "the disk: choose one of the two.");
    if (options->max_age_usec && !options->memory_bytes)
        return str_refuse(-EINVAL, ret_error,
                          "--max-age needs -M: it is for a capture that is kept in memory.");
    if (keeps && !is_segmented(options))
        return str_refuse(-EINVAL, ret_error,
                          "--keep-files and --keep-size need --segment-size or --segment-time: "
                          "without them the capture is one file.");
    if (is_segmented(options) && options->output)
        return str_refuse(-EINVAL, ret_error,
                          "-o is for one file: xentraced makes segments in its own directory, and "
                          "none elsewhere; leave -o out.");
    if (options->keep_size_bytes && options->keep_size_bytes < options->segment_size_bytes)
        return str_refuse(-EINVAL, ret_error,
                          "--keep-size is less than one segment of --segment-size: give it room "
                          "for two or more.");
    if (options->on_reserve && strcmp(options->on_reserve, "rotate") == 0 && !is_segmented(options))
        return str_refuse(-EINVAL, ret_error,
                          "--on-reserve rotate deletes the oldest segments: it needs "
                          "--segment-size or --segment-time.");
    return 0;
}

static int check_words(struct capture_options *options, int argc, char **argv, char **ret_error)
{
    int r;

    r = args_check_words(argc, argv, 1, ret_error);
    if (r < 0)
        return r;
    if (optind < argc) {
        options->name = argv[optind];
        r = values_check_name(options->name, "a capture", ret_error);
        if (r < 0)
            return r;
    }
    if (options->force && !options->output)
        return str_refuse(-EINVAL, ret_error, "--force needs -o: it is for a file that exists.");
    return check_rings(options, ret_error);
}

int options_parse(struct ctl *ctl, bool is_record, int argc, char **argv,
                  struct capture_options *options, char **ret_error)
{
    struct args args = {
        .ctl = ctl,
        .argc = argc,
        .argv = argv,
        .options = is_record ? capture_options : capture_options + 1,
    };
    int option, r;

    *options = (struct capture_options){};
    while ((r = args_next(&args, &option, ret_error)) > 0) {
        r = take_option(options, option, ret_error);
        if (r < 0)
            break;
    }
    args_done(&args);
    if (r == 0)
        r = check_events(options->events, ret_error);
    return r < 0 ? r : check_words(options, argc, argv, ret_error);
}

void options_done(struct capture_options *options)
{
    free(options->events);
    options->events = NULL;
}

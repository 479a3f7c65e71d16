/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The letters are xentrace's. Each value is parsed here although the daemon gets lists as they were
 * typed: a mistake is answered before a file is made or anybody is asked.
 */

#include "ctl/options.h"

#include <errno.h>
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
    {"memory", optional_argument, NULL, 'M'},
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
    case 'M':
        *ret_error = strdup("The flight recorder (-M) is not in this version; leave -M out to "
                            "capture to a file. Nothing was started.");
        return *ret_error ? -EOPNOTSUPP : -ENOMEM;
    }
    return -EINVAL; /* not reached: the table above has no other */
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
    return 0;
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

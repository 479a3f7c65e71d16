// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl snapshot: writes the records of a ring to a file, while recording continues. */

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/time-spec.h"
#include "common/units.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/reading.h"
#include "ctl/request.h"
#include "ctl/snapshot.h"
#include "ctl/str.h"
#include "ctl/target.h"

struct options {
    uint64_t given;                     /* as args_parse() sets it */
    const char *name, *session, *label; /* NULL: not given; borrowed from argv */
    const char *output;                 /* as typed; NULL: a file of the daemon's */
    const char *compress;
    const char *since, *until;          /* as typed; NULL: not given */
    uint64_t last_usec, max_size_bytes; /* 0: not given */
    bool force, bundle;

    /* SINCE and UNTIL, as the daemon takes them; 0: not given so. */
    uint64_t since_ns, since_ago_usec, until_ns, until_ago_usec;
};

#define AT(member) offsetof(struct options, member)

/* name, letter, argument, type, member, unit of a number alone, detail, key of the call, help */
static const struct args_option snapshot_options[] = {
    {"last", 0, "TIME", ARGS_DURATION, AT(last_usec), USEC_PER_SEC, NULL, FIELD_LAST,
     "only the newest TIME: 30 (seconds), 5min"},
    {"since", 'S', "TIME", ARGS_TEXT, AT(since), 0, NULL, NULL,
     "from TIME on: -40s, 03:10, \"yesterday 23:50\", @UNIX"},
    {"until", 'U', "TIME", ARGS_TEXT, AT(until), 0, NULL, NULL, "up to TIME"},
    {"max-size", 0, "SIZE", ARGS_SIZE, AT(max_size_bytes), 1, NULL, FIELD_MAX_SIZE,
     "only the newest SIZE: 1048576 (bytes), 100M"},
    {"output", 'o', "FILE", ARGS_FILE, AT(output), 0, NULL, NULL,
     "write to FILE, with its sidecar; - is standard output\n"
     "(default: a new file in " XENTRACED_STATE_DIR ")"},
    {"compress", 0, "HOW", ARGS_CHOICE, AT(compress), 0, "zstd no", FIELD_COMPRESS,
     "compress the file: zstd or no (default: compress=\n"
     "in [flight-recorder]; with -o no)"},
    {"force", 0, NULL, ARGS_DESTROY, AT(force),
     .help = "replace FILE and its sidecar if they exist"},
    {"bundle", 0, NULL, ARGS_FLAG, AT(bundle),
     .help = "with -o: one tar archive of the trace and its sidecar"},
    {"session", 0, "NAME", ARGS_SESSION, AT(session), 0, "a session", FIELD_SESSION,
     "of the session NAME"},
    {"label", 0, "TEXT", ARGS_NAME, AT(label), 0, "a label", FIELD_LABEL,
     "reason, for the file name and the sidecar"},
    {},
};

static uint64_t realtime_ns(void)
{
    struct timespec now = {};

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static int refuse_moment(const char *label, const char *text, char **ret_error)
{
    uint64_t usec;

    if (duration_parse(text, USEC_PER_SEC, &usec) >= 0)
        return str_refuse(
            -EINVAL, ret_error,
            "%s %s is a duration, not a point in time. For a time before now, write %s -%s.", label,
            text, label, text);
    return str_refuse(-EINVAL, ret_error,
                      "%s \"%s\" is not a time: write -40s, 03:10, \"yesterday 23:50\" or "
                      "\"2026-11-21 03:10:05\".",
                      label, text);
}

/* TEXT as the daemon takes it: a moment, or a time before its own now. Only one of both is set. */
static int parse_moment(const char *label, const char *text, uint64_t *ret_ns,
                        uint64_t *ret_ago_usec, char **ret_error)
{
    struct time_spec spec;

    if (!text)
        return 0;
    if (time_spec_parse(text, realtime_ns(), &spec) < 0)
        return refuse_moment(label, text, ret_error);
    if (spec.is_relative && spec.is_after && spec.offset_usec)
        return str_refuse(-EINVAL, ret_error,
                          "%s %s is in the future: a snapshot holds what has been recorded.", label,
                          text);
    if (spec.is_relative)
        *ret_ago_usec = spec.offset_usec;
    else
        *ret_ns = spec.realtime_ns;
    return 0;
}

static int parse_span(struct options *options, char **ret_error)
{
    bool has_moment = options->since || options->until;
    int r;

    if (options->last_usec && options->max_size_bytes)
        return str_refuse(-EINVAL, ret_error, "snapshot takes --last or --max-size, not both.");
    if (has_moment && (options->last_usec || options->max_size_bytes))
        return str_refuse(
            -EINVAL, ret_error,
            "%s selects the newest part, and cannot be combined with --since and --until.",
            options->last_usec ? "--last" : "--max-size");
    r = parse_moment("--since", options->since, &options->since_ns, &options->since_ago_usec,
                     ret_error);
    if (r < 0)
        return r;
    if (options->since && !options->since_ns && !options->since_ago_usec)
        return str_refuse(
            -EINVAL, ret_error,
            "--since %s selects no records: write a time before now, such as --since -40s.",
            options->since);
    return parse_moment("--until", options->until, &options->until_ns, &options->until_ago_usec,
                        ret_error);
}

/* "30s" is meant for --last. */
static int check_name(const char *name, char **ret_error)
{
    uint64_t usec;

    if (duration_parse(name, USEC_PER_SEC, &usec) >= 0)
        return str_refuse(-EINVAL, ret_error,
                          "\"%s\" is a time, not the name of a snapshot. For the newest part, use "
                          "--last %s.",
                          name, name);
    return args_check_name(name, "a snapshot", ret_error);
}

static int parse(struct ctl *ctl, int argc, char **argv, struct options *options, char **ret_error)
{
    int r;

    r = args_parse(ctl, snapshot_options, argc, argv, 1, options, &options->given, ret_error);
    if (r < 0)
        return r;
    r = parse_span(options, ret_error);
    if (r < 0)
        return r;
    if (options->force && !options->output)
        return str_refuse(-EINVAL, ret_error, "--force needs -o: it replaces that file.");
    if (options->bundle && !options->output)
        return str_refuse(-EINVAL, ret_error,
                          "--bundle needs -o, which names the archive: -o FILE.tar, or -o - for "
                          "standard output.");
    options->name = optind < argc ? argv[optind] : NULL;
    return options->name ? check_name(options->name, ret_error) : 0;
}

static void show_progress(void *context, uint64_t bytes, uint64_t total_bytes)
{
    struct reading *progress = context;

    progress->total_bytes = total_bytes;
    reading_show(progress, bytes);
}

static int take(struct ctl *ctl, const struct options *options, struct json_object **ret_snapshot,
                char **ret_error)
{
    const struct request_number numbers[] = {
        {FIELD_LAST, options->since_ago_usec}, /* --last itself is in the table */
        {FIELD_SINCE, options->since_ns},           {FIELD_UNTIL, options->until_ns},
        {FIELD_UNTIL_AGO, options->until_ago_usec}, {},
    };
    struct reading progress;
    const struct request request = {
        .method = PROTOCOL_SNAPSHOT,
        .name = options->name,
        .table = snapshot_options,
        .values = options,
        .given = options->given,
        .numbers = numbers,
        .answer = REPLY_SNAPSHOT,
        .format = DOC_FORMAT_SNAPSHOT,
        .timeout_usec = CLIENT_LONG_TIMEOUT_USEC,
        .on_progress = isatty(STDERR_FILENO) ? show_progress : NULL,
        .context = &progress,
        .nothing = "Nothing was written",
        .unknown = "To see whether the snapshot was written: xentracectl status",
    };
    _cleanup_client_ struct client *client = NULL;
    const struct output_options how = {
        .typed = options->output,
        .nothing = request.nothing,
        .force = options->force,
        .for_daemon = true,
        .may_copy = true,
        .is_packed = options->compress && strcmp(options->compress, "zstd") == 0,
    };
    _cleanup_target_ struct target target = {};
    int r;

    r = client_new(ctl->socket, &client, ret_error);
    if (r < 0)
        return r;
    r = client_catch_signals(client, ret_error);
    if (r < 0)
        return r;
    r = target_open(&target, &how, options->bundle, ret_error);
    if (r < 0)
        return r;
    reading_init(&progress, "Writing", "", 0);
    r = request_make(client, &request, target.output, ret_snapshot, ret_error);
    reading_end(&progress);
    return r < 0 ? r : target_finish(&target, *ret_snapshot, ret_error);
}

static int cmd_snapshot(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *snapshot = NULL;
    struct options options = {};
    FILE *talk;
    char *error = NULL;
    int r;

    r = parse(ctl, argc, argv, &options, &error);
    if (r < 0)
        return args_exit(&verb_snapshot, r, error);
    r = take(ctl, &options, &snapshot, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    talk = output_talk(options.output);
    if (ctl->json) {
        doc_print(talk, snapshot);
    } else {
        doc_make_printable(snapshot);
        snapshot_print(talk, snapshot);
    }
    if (!snapshot_is_ok(snapshot))
        return CTL_FAILURE;
    return snapshot_is_shorter(snapshot) ? CTL_SHORTER : CTL_OK;
}

const struct verb verb_snapshot = {
    .name = "snapshot",
    .run = cmd_snapshot,
    .words = "[NAME]",
    .summary = "write the flight recorder's records to a file",
    .help = "Writes the records that a ring in memory holds to a file, while recording\n"
            "continues, and waits for the file. The ring is the flight recorder, or else the\n"
            "only capture with -M.\n\n"
            "Exit status: 3 if the ring does not go back as far as --last or --since ask for.\n",
    .options = snapshot_options,
    .examples = "  xentracectl snapshot --last 30s --label slow-guest\n"
                "  xentracectl snapshot --since 03:10 --until 03:12:30\n",
};

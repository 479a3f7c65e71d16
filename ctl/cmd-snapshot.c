// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl snapshot: writes the records of a ring to a file, while recording continues. */

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/request.h"
#include "ctl/snapshot.h"
#include "ctl/str.h"

struct options {
    uint64_t given;                     /* as args_parse() sets it */
    const char *name, *session, *label; /* NULL: not given; borrowed from argv */
    const char *output;                 /* as typed; NULL: a file of the daemon's */
    uint64_t last_usec, max_size_bytes; /* 0: not given */
    bool force;
};

#define AT(member) offsetof(struct options, member)

/* name, letter, argument, type, member, unit of a number alone, detail, D-Bus key, help */
static const struct args_option snapshot_options[] = {
    {"last", 0, "TIME", ARGS_DURATION, AT(last_usec), USEC_PER_SEC, NULL, OPTION_LAST,
     "only the newest part: 30 (seconds), 5min"},
    {"max-size", 0, "SIZE", ARGS_SIZE, AT(max_size_bytes), 1, NULL, OPTION_MAX_SIZE,
     "only the newest part: 1048576 (bytes), 100M"},
    {"output", 'o', "FILE", ARGS_FILE, AT(output), 0, NULL, NULL,
     "write to FILE, with its sidecar; - is standard output\n"
     "(default: a new file in " XENTRACED_STATE_DIR ")"},
    {"force", 0, NULL, ARGS_DESTROY, AT(force),
     .help = "replace FILE and its sidecar if they exist"},
    {"session", 0, "NAME", ARGS_SESSION, AT(session), 0, "a session", OPTION_SESSION,
     "of the ring of that session"},
    {"label", 0, "TEXT", ARGS_NAME, AT(label), 0, "a label", OPTION_LABEL,
     "who asks, or why: for the file's name and the sidecar"},
    {},
};

static int parse(struct ctl *ctl, int argc, char **argv, struct options *options, char **ret_error)
{
    int r;

    r = args_parse(ctl, snapshot_options, argc, argv, 1, options, &options->given, ret_error);
    if (r < 0)
        return r;
    if (options->last_usec && options->max_size_bytes)
        return str_refuse(-EINVAL, ret_error, "snapshot takes --last or --max-size, not both.");
    if (options->force && !options->output)
        return str_refuse(-EINVAL, ret_error, "--force needs -o: it replaces that file.");
    options->name = optind < argc ? argv[optind] : NULL;
    return options->name ? args_check_name(options->name, "a snapshot", ret_error) : 0;
}

static int take(struct ctl *ctl, const struct options *options, struct json_object **ret_snapshot,
                char **ret_error)
{
    const struct request request = {
        .member = PROTOCOL_SNAPSHOT,
        .name = options->name,
        .table = snapshot_options,
        .values = options,
        .given = options->given,
        .format = DOC_FORMAT_SNAPSHOT,
        .timeout_usec = CLIENT_LONG_TIMEOUT_USEC,
        .nothing = "Nothing was written",
        .unknown = "To see whether the snapshot was written: xentracectl status",
        .no_file = "; leave -o out to have it in " XENTRACED_STATE_DIR,
    };
    _cleanup_client_ struct client *client = NULL;
    _cleanup_output_ struct output *output = NULL;
    int r;

    r = client_new(ctl->socket, &client, ret_error);
    if (r < 0)
        return r;
    r = client_catch_signals(client, ret_error);
    if (r < 0)
        return r;
    if (options->output) {
        r = output_open(options->output, options->force, request.nothing, &output, ret_error);
        if (r < 0)
            return r;
    }
    return request_make(client, &request, output, ret_snapshot, ret_error);
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
    .summary = "write what the flight recorder holds to a file",
    .help = "Writes the records that a ring in memory holds to a file, while recording\n"
            "continues, and waits for the file. The ring is the flight recorder, or else the\n"
            "only capture with -M. Exit status 3: the ring does not go back as far as --last,\n"
            "and the file holds what there was.\n",
    .options = snapshot_options,
    .examples = "  xentracectl snapshot --last 30s --label slow-guest\n",
    .remote = VERB_STREAMS,
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xentracectl snapshot: what a ring holds, as a file, while recording goes on. */

#include <errno.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/output.h"
#include "ctl/request.h"
#include "ctl/snapshot.h"
#include "ctl/str.h"
#include "ctl/values.h"

struct options {
    const char *name, *session, *label; /* NULL: not given; borrowed from argv */
    const char *output;                 /* as typed; NULL: a file of the daemon's */
    uint64_t last_usec, max_size_bytes; /* 0: not given */
    bool force;
};

enum {
    SNAPSHOT_LAST = 0x100, /* options without a letter */
    SNAPSHOT_MAX_SIZE,
    SNAPSHOT_FORCE,
    SNAPSHOT_SESSION,
    SNAPSHOT_LABEL,
};

static const struct option snapshot_options[] = {
    {"last", required_argument, NULL, SNAPSHOT_LAST},
    {"max-size", required_argument, NULL, SNAPSHOT_MAX_SIZE},
    {"output", required_argument, NULL, 'o'},
    {"force", no_argument, NULL, SNAPSHOT_FORCE},
    {"session", required_argument, NULL, SNAPSHOT_SESSION},
    {"label", required_argument, NULL, SNAPSHOT_LABEL},
    {},
};

static int take_option(struct options *options, int option, char **ret_error)
{
    switch (option) {
    case SNAPSHOT_LAST:
        return values_set_duration("--last", optarg, USEC_PER_SEC, &options->last_usec, ret_error);
    case SNAPSHOT_MAX_SIZE:
        return values_set_size("--max-size", optarg, 1, false, &options->max_size_bytes, ret_error);
    case 'o':
        return values_set_output(optarg, &options->output, ret_error);
    case SNAPSHOT_FORCE:
        options->force = true;
        return 0;
    case SNAPSHOT_SESSION:
        options->session = optarg;
        return values_check_name(optarg, "a session", ret_error);
    case SNAPSHOT_LABEL:
        options->label = optarg;
        return values_check_name(optarg, "who asks", ret_error);
    }
    return -EINVAL; /* not reached: the table above has no other */
}

static int parse(struct ctl *ctl, int argc, char **argv, struct options *options, char **ret_error)
{
    struct args args = {.ctl = ctl, .argc = argc, .argv = argv, .options = snapshot_options};
    int option, r;

    while ((r = args_next(&args, &option, ret_error)) > 0) {
        r = take_option(options, option, ret_error);
        if (r < 0)
            break;
    }
    args_done(&args);
    if (r == 0)
        r = args_check_words(argc, argv, 1, ret_error);
    if (r < 0)
        return r;
    if (options->last_usec && options->max_size_bytes)
        return str_refuse(-EINVAL, ret_error, "snapshot takes --last or --max-size, not both.");
    if (options->force && !options->output)
        return str_refuse(-EINVAL, ret_error, "--force needs -o: it is for a file that exists.");
    options->name = optind < argc ? argv[optind] : NULL;
    return options->name ? values_check_name(options->name, "a snapshot", ret_error) : 0;
}

static int fill(sd_bus_message *call, const void *context)
{
    const struct options *options = context;
    int r;

    if ((r = request_append_text(call, OPTION_SESSION, options->session)) < 0 ||
        (r = request_append_number(call, OPTION_LAST, options->last_usec)) < 0 ||
        (r = request_append_number(call, OPTION_MAX_SIZE, options->max_size_bytes)) < 0)
        return r;
    return request_append_text(call, OPTION_LABEL, options->label);
}

static int take(struct ctl *ctl, const struct options *options, struct json_object **ret_snapshot,
                char **ret_error)
{
    static const struct request_words words = {
        .member = PROTOCOL_SNAPSHOT,
        .nothing = "Nothing was written",
        .unknown = "Whether the snapshot is written, xentracectl status tells",
        .no_file = "; leave -o out to have it in " XENTRACED_STATE_DIR,
    };
    _cleanup_client_ struct client *client = NULL;
    _cleanup_output_ struct output *output = NULL;
    int r;

    r = client_new(ctl->socket, &client, ret_error);
    if (r >= 0)
        r = client_catch_signals(client, ret_error);
    if (r >= 0 && options->output)
        r = output_open(options->output, options->force, words.nothing, &output, ret_error);
    if (r < 0)
        return r;
    return request_make(client, &words, options->name ? options->name : "", fill, options, output,
                        CLIENT_LONG_TIMEOUT_USEC, DOC_FORMAT_SNAPSHOT, ret_snapshot, ret_error);
}

int cmd_snapshot(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *snapshot = NULL;
    struct options options = {};
    FILE *talk;
    char *error = NULL;
    int r;

    r = parse(ctl, argc, argv, &options, &error);
    if (r < 0)
        return args_exit("snapshot", r, error);
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
    return snapshot_is_ok(snapshot) ? CTL_OK : CTL_FAILURE;
}

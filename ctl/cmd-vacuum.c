// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl vacuum and remove: traces that are not needed any more. */

#include <errno.h>
#include <getopt.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/files.h"
#include "ctl/str.h"
#include "ctl/table.h"

static const struct args_option vacuum_options[] = {
    {"max-use", 0, "SIZE", ARGS_SIZE, offsetof(struct files_limits, max_use_bytes), 1, NULL, NULL,
     "remove the oldest until at most SIZE is used: 2G"},
    {"keep-free", 0, "SIZE", ARGS_SIZE, offsetof(struct files_limits, keep_free_bytes), 1, NULL,
     NULL, "remove the oldest until SIZE of the disk is free: 10G"},
    {"max-age", 0, "TIME", ARGS_DURATION, offsetof(struct files_limits, max_age_usec), USEC_PER_SEC,
     NULL, NULL, "remove traces older than TIME: 14d"},
    {"dry-run", 'n', .offset = offsetof(struct files_limits, dry_run),
     .help = "only show what would be removed"},
    {},
};

static int show(const struct ctl *ctl, int r, char *error, struct json_object *files)
{
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    if (ctl->json) {
        doc_print(stdout, files);
        return CTL_OK;
    }
    doc_make_printable(files);
    files_print_removed(stdout, files, table_terminal_width(false));
    return CTL_OK;
}

static int cmd_vacuum(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *files = NULL;
    struct files_limits limits = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, vacuum_options, argc, argv, 0, &limits, NULL, &error);
    if (r < 0)
        return args_exit(&verb_vacuum, r, error);
    r = files_vacuum(ctl->socket, &limits, &files, &error);
    return show(ctl, r, error, files);
}

static int cmd_remove(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *files = NULL;
    char *error = NULL;
    int r;

    r = args_parse(ctl, NULL, argc, argv, argc, NULL, NULL, &error);
    if (r == 0 && optind == argc)
        r = str_refuse(-EINVAL, &error,
                       "remove needs the names of traces. For the names: xentracectl list --files");
    if (r < 0)
        return args_exit(&verb_remove, r, error);
    r = files_remove(ctl->socket, argv + optind, &files, &error);
    return show(ctl, r, error, files);
}

const struct verb verb_vacuum = {
    .name = "vacuum",
    .destroys = true,
    .run = cmd_vacuum,
    .words = "",
    .summary = "remove the oldest traces",
    .help = "Removes finished snapshots and segments of rings from xentraced's directory,\n"
            "oldest first. Without options, the limits max-use=, keep-free= and max-file-age=\n"
            "apply. Captures that a user started and open files are kept.\n",
    .options = vacuum_options,
    .examples = "  xentracectl vacuum --max-use 1G --dry-run\n",
};

const struct verb verb_remove = {
    .name = "remove",
    .destroys = true,
    .run = cmd_remove,
    .words = "NAME...",
    .completes = "traces",
    .summary = "remove traces, with their sidecars",
    .help = "Removes traces from xentraced's directory, each with its sidecar: all that are\n"
            "named, or none. The name of a capture with segments removes all of them.\n"
            "A running capture must be stopped first.\n",
};

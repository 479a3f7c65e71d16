// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl rotate: closes the segment that is being written, and names its file. */

#include <errno.h>
#include <getopt.h>

#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/storage.h"
#include "ctl/str.h"

static int cmd_rotate(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *segment = NULL;
    char *error = NULL;
    int r;

    r = args_parse(ctl, NULL, argc, argv, 1, NULL, NULL, &error);
    if (r == 0 && optind < argc && !*argv[optind])
        r = str_refuse(-EINVAL, &error, "\"\" is not the name of a capture.");
    if (r < 0)
        return args_exit(&verb_rotate, r, error);
    r = client_ask(ctl->socket, client_rotate, optind < argc ? argv[optind] : "", &segment, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    if (ctl->json) {
        doc_print(stdout, segment);
    } else {
        doc_make_printable(segment);
        storage_print_segment(stdout, segment);
    }
    return CTL_OK;
}

const struct verb verb_rotate = {
    .name = "rotate",
    .run = cmd_rotate,
    .words = "[NAME]",
    .completes = "running",
    .summary = "close the segment that a capture is writing",
    .help = "Closes the segment that a capture with --segment-size or --segment-time is\n"
            "writing, waits for it, and prints its file. Without NAME: the only such capture.\n",
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xentracectl rotate: closes the segment that is being written, and names its file. */

#include <errno.h>

#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/storage.h"
#include "ctl/str.h"

int cmd_rotate(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *segment = NULL;
    char *error = NULL;
    int r;

    r = args_parse_words(ctl, argc, argv, 1, &error);
    if (r == 0 && optind < argc && !*argv[optind])
        r = str_refuse(-EINVAL, &error, "\"\" is not the name of a capture.");
    if (r < 0)
        return args_exit("rotate", r, error);
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

// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl trigger: fires a trigger by hand. */

#include <errno.h>
#include <getopt.h>

#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/str.h"
#include "ctl/trigger.h"

static int cmd_trigger(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *trigger = NULL;
    char *error = NULL;
    int r;

    r = args_parse(ctl, NULL, argc, argv, 1, NULL, NULL, &error);
    if (r == 0 && (optind == argc || !*argv[optind]))
        r = str_refuse(
            -EINVAL, &error,
            "trigger needs the name of a trigger. For the names: xentracectl list --triggers");
    if (r < 0)
        return args_exit(&verb_trigger, r, error);
    r = client_ask(ctl->socket, client_trigger, argv[optind], &trigger, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    if (ctl->json) {
        doc_print(stdout, trigger);
    } else {
        doc_make_printable(trigger);
        trigger_print(stdout, trigger);
    }
    return trigger_was_suppressed(trigger) ? CTL_FAILURE : CTL_OK;
}

const struct verb verb_trigger = {
    .name = "trigger",
    .run = cmd_trigger,
    .words = "NAME",
    .completes = "triggers",
    .summary = "fire a manual trigger",
    .help = "Fires the trigger NAME, which has condition=manual in xentraced's\n"
            "configuration. It takes its snapshot in the background; see: xentracectl status\n\n"
            "Exit status: 1 if it takes none, because it is busy or its limit is reached.\n",
};

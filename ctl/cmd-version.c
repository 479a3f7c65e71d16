// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl version: of the client, and of the daemon if it can be reached. */

#include <errno.h>

#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/ctl.h"

static int cmd_version(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_client_ struct client *client = NULL;
    _cleanup_free_ char *why = NULL;
    const char *version = NULL;
    char *error = NULL;
    int r;

    r = args_parse(ctl, NULL, argc, argv, 0, NULL, NULL, &error);
    if (r < 0)
        return args_exit(&verb_version, r, error);
    if (client_new(ctl->socket, &client, &why) == 0) /* WHY is shown */
        version = client_version(client);
    if (ctl->json) {
        _cleanup_doc_ struct json_object *doc = doc_new("xentraced-version");

        doc_add_text(doc, "client", PACKAGE_VERSION);
        doc_add_text(doc, "daemon", version);
        doc_print(stdout, doc);
        return CTL_OK;
    }
    (void)printf("xentracectl %s\n", PACKAGE_VERSION);
    if (version)
        (void)printf("xentraced   %s\n", version);
    else
        (void)printf("xentraced   not reached: %s\n", why ? why : "out of memory");
    return CTL_OK;
}

const struct verb verb_version = {
    .name = "version",
    .run = cmd_version,
    .words = "",
    .summary = "show the versions of xentracectl and xentraced",
    .help = "Prints the versions of xentracectl and, if it can be reached, xentraced.\n",
};

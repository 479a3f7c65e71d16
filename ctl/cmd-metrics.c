// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl metrics: the status in Prometheus' text format. */

#include <errno.h>

#include "common/metrics.h"
#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/str.h"

static int read_metrics(struct ctl *ctl, char **ret_text, char **ret_error)
{
    _cleanup_doc_ struct json_object *status = NULL;
    int r;

    r = client_ask(ctl->socket, client_status, "", &status, ret_error);
    if (r < 0)
        return r;
    r = metrics_render(status, ret_text);
    if (r == -EBADMSG)
        return str_refuse(r, ret_error,
                          "The answer of xentraced is not a status document (compare: xentracectl "
                          "version).");
    return r;
}

static int cmd_metrics(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_free_ char *text = NULL, *error = NULL;
    char *refusal = NULL;
    int r;

    r = args_parse(ctl, NULL, argc, argv, 0, NULL, NULL, &refusal);
    if (r < 0)
        return args_exit(&verb_metrics, r, refusal);
    r = read_metrics(ctl, &text, &error);
    if (r < 0) {
        (void)fputs(metrics_of_none(), stdout);
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    (void)fputs(text, stdout);
    return CTL_OK;
}

const struct verb verb_metrics = {
    .name = "metrics",
    .run = cmd_metrics,
    .words = "",
    .summary = "print the status in Prometheus' text format",
    .help = "Prints the status in Prometheus' text format. xentraced can also write it to a\n"
            "file for node_exporter every 15 seconds: metrics-file= in xentraced.conf.\n",
    .examples = "  xentracectl metrics | promtool check metrics\n",
};

// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl report: what a trace says. */

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/findings.h"
#include "ctl/input.h"
#include "ctl/intervals.h"
#include "ctl/report.h"
#include "ctl/selection.h"
#include "ctl/str.h"
#include "trace/measures-doc.h"
#include "trace/measures.h"
#include "trace/sidecar.h"

struct options {
    const char *view;
    struct selection_options selection;
};

static const struct args_option report_options[] = {
    {"view", 0, "VIEW", ARGS_CHOICE, offsetof(struct options, view), 0, "intervals",
     .help = "intervals: every run, wait and sleep of each vCPU"},
    SELECTION_OPTIONS(struct options, selection),
    {},
};

static void measures_freep(struct measures **measures)
{
    measures_free(*measures);
}

static void findings_freep(struct findings **findings)
{
    findings_free(*findings);
}

static void add_findings(struct json_object *doc, const struct findings *findings)
{
    struct json_object *list = doc_add_array(doc, "findings");

    for (size_t i = 0; i < findings_count(findings); i++) {
        struct json_object *entry = doc_append_object(list);

        doc_add_text(entry, "kind", findings_at(findings, i)->kind);
        doc_add_text(entry, "text", findings_at(findings, i)->text);
    }
}

static int report(struct ctl *ctl, const struct options *options, const char *path)
{
    _cleanup_input_ struct input *input = NULL;
    _cleanup_(measures_freep) struct measures *measures = NULL;
    _cleanup_(findings_freep) struct findings *findings = NULL;
    _cleanup_doc_ struct json_object *doc = NULL;
    char *error = NULL;
    int r;

    r = selection_open(ctl, &options->selection, path, false, &input, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    r = measures_new(&input->merge, sidecar_vendor(input->sidecar) == SIDECAR_VENDOR_AMD,
                     &measures);
    if (r < 0) {
        ctl_error("Cannot read %s to its end: %s.", input_name(input), strerror(-r));
        return CTL_FAILURE;
    }
    r = findings_new(input, measures, &findings);
    if (r < 0) {
        ctl_error_sentence(NULL);
        return CTL_FAILURE;
    }
    if (!ctl->json) {
        report_print(stdout, input, measures, findings);
        return CTL_OK;
    }
    doc = doc_new("xentraced-report");
    add_findings(doc, findings);
    measures_doc_add(doc, measures);
    doc_print(stdout, doc);
    return CTL_OK;
}

static int report_intervals(struct ctl *ctl, const struct options *options, const char *path)
{
    _cleanup_input_ struct input *input = NULL;
    char *error = NULL;
    int r;

    r = selection_open(ctl, &options->selection, path, false, &input, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    r = intervals_print(stdout, input, ctl->json);
    if (ferror(stdout)) {
        ctl_error("Cannot write to standard output: the list of intervals is incomplete.");
        return CTL_FAILURE;
    }
    if (r < 0) {
        ctl_error("Cannot read %s to its end: %s.", input_name(input), strerror(-r));
        return CTL_FAILURE;
    }
    return CTL_OK;
}

static int cmd_report(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, report_options, argc, argv, 1, &options, NULL, &error);
    if (r == 0)
        r = selection_check(&options.selection, argv[optind], &error);
    if (r < 0)
        return args_exit(&verb_report, r, error);
    if (options.view)
        return report_intervals(ctl, &options, argv[optind]);
    return report(ctl, &options, argv[optind]);
}

const struct verb verb_report = {
    .name = "report",
    .run = cmd_report,
    .words = "[FILE]",
    .completes = "files",
    .summary = "show who ran, who waited, and for whom",
    .help = "Reads a trace (- is standard input) and shows what happened. Needs no daemon.\n",
    .options = report_options,
    .remote = VERB_RUNS_THERE,
};

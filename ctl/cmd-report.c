// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl report: what a trace says. */

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl/args.h"
#include "ctl/color.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/findings.h"
#include "ctl/input.h"
#include "ctl/intervals.h"
#include "ctl/page-data.h"
#include "ctl/page.h"
#include "ctl/pager.h"
#include "ctl/report.h"
#include "ctl/selection.h"
#include "ctl/str.h"
#include "ctl/table.h"
#include "ctl/views.h"
#include "trace/measures-doc.h"
#include "trace/measures.h"
#include "trace/sidecar.h"

#define VIEWS                                                                                      \
    "domains vcpus cpus latency waits preemption migrations exits mmio interrupts power "          \
    "scheduler "                                                                                   \
    "memory losses findings intervals"

#define DEFAULT_ROWS 24 /* of a serial console, which does not know its size */

struct options {
    const char *view;
    const char *html;
    struct selection_options selection;
};

static const struct args_option report_options[] = {
    {"view", 0, "VIEW", ARGS_CHOICE, offsetof(struct options, view), 0, VIEWS,
     .help = "show one subject in detail: domains, vcpus, cpus,\n"
             "latency, waits, preemption, migrations, exits, mmio,\n"
             "interrupts, power, scheduler, memory, losses,\n"
             "findings;\n"
             "intervals lists every run, wait and sleep of each vCPU,\n"
             "idle states, frequencies and interrupts of each CPU"},
    {"html", 0, "PAGE", ARGS_FILE, offsetof(struct options, html),
     .help = "write the report, with a timeline and charts, to PAGE,\n"
             "one file for a browser; - is standard output"},
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

/* Opens and reads the trace. An exit status, with the error printed. */
static int read_trace(const struct ctl *ctl, const struct options *options, const char *path,
                      unsigned int parts, struct input **ret_input, struct measures **ret_measures)
{
    _cleanup_(measures_freep) struct measures *measures = NULL;
    _cleanup_input_ struct input *input = NULL;
    char *error = NULL;
    int r;

    r = selection_open(ctl, &options->selection, path, options->html != NULL, &input, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    r = measures_new_of(&input->merge, input->subjects,
                        sidecar_vendor(input->sidecar) == SIDECAR_VENDOR_AMD, parts, &measures);
    if (r < 0) {
        r = input_refuse(input, r, "", &error);
        return input_fail(error, r);
    }
    if (selection_check_shown(input, measures, &error) < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    *ret_measures = TAKE_PTR(measures);
    *ret_input = TAKE_PTR(input);
    return CTL_OK;
}

/* The size of the terminal. A file has everything. */
static struct report_page terminal_page(void)
{
    struct winsize size = {0};

    if (!isatty(STDOUT_FILENO))
        return (struct report_page){.palette = palette_for(STDOUT_FILENO)};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0)
        size.ws_row = DEFAULT_ROWS;
    return (struct report_page){
        .width = (unsigned int)table_terminal_width(false),
        .rows = size.ws_row,
        .palette = palette_for(STDOUT_FILENO),
    };
}

static int report(struct ctl *ctl, const struct options *options, const char *path)
{
    _cleanup_input_ struct input *input = NULL;
    _cleanup_(measures_freep) struct measures *measures = NULL;
    _cleanup_(findings_freep) struct findings *findings = NULL;
    _cleanup_doc_ struct json_object *doc = NULL;
    _cleanup_pager_ struct pager *pager = NULL;
    const struct report_page page = terminal_page();
    int r;

    r = read_trace(ctl, options, path, ctl->json ? MEASURES_ALL : MEASURES_REPORT, &input,
                   &measures);
    if (r != CTL_OK)
        return r;
    r = findings_new(input, measures, &findings);
    if (r < 0) {
        ctl_error_sentence(NULL);
        return CTL_FAILURE;
    }
    if (!ctl->json) {
        pager_open(!ctl->no_pager, &pager);
        report_print(stdout, &page, input, measures, findings);
        return CTL_OK;
    }
    doc = doc_new("xentraced-report");
    selection_doc_add(doc, input);
    page_data_add_findings(doc, findings);
    measures_doc_add(doc, measures);
    doc_print(stdout, doc);
    return CTL_OK;
}

static int report_view(struct ctl *ctl, const struct options *options, const char *path,
                       const struct view *view)
{
    _cleanup_input_ struct input *input = NULL;
    _cleanup_(measures_freep) struct measures *measures = NULL;
    _cleanup_doc_ struct json_object *doc = NULL;
    _cleanup_pager_ struct pager *pager = NULL;
    struct view_output output = {
        .file = stdout,
        .width = table_terminal_width(false),
        .palette = palette_for(STDOUT_FILENO),
    };
    int r;

    r = read_trace(ctl, options, path, view->parts, &input, &measures);
    if (r != CTL_OK)
        return r;
    if (!ctl->json) {
        pager_open(!ctl->no_pager, &pager);
        output.input = input;
        output.measures = measures;
        report_print_quality(stdout, input, measures, (unsigned int)output.width);
        view->print(&output);
        return CTL_OK;
    }
    doc = doc_new("xentraced-report");
    doc_add_text(doc, "view", view->name);
    selection_doc_add(doc, input);
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
        r = input_refuse(input, r, "", &error);
        return input_fail(error, r);
    }
    return CTL_OK;
}

static int report_page(struct ctl *ctl, const struct options *options, const char *path)
{
    _cleanup_page_ struct page_output *output = NULL;
    _cleanup_input_ struct input *input = NULL;
    _cleanup_(measures_freep) struct measures *measures = NULL;
    _cleanup_(findings_freep) struct findings *findings = NULL;
    _cleanup_doc_ struct json_object *data = NULL;
    char *error = NULL;
    size_t bytes = 0;
    int r;

    r = page_open(options->html, &output, &error);
    if (r < 0)
        return input_fail(error, r);
    r = read_trace(ctl, options, path, MEASURES_ALL, &input, &measures);
    if (r != CTL_OK)
        return r;
    r = findings_new(input, measures, &findings);
    if (r == 0)
        r = page_data_new(input, measures, findings, &data, &error);
    if (r == 0)
        r = page_write(output, data, &bytes, &error);
    if (r < 0 && !error)
        r = input_refuse(input, r, "", &error);
    if (r < 0)
        return input_fail(error, r);
    page_print_written(options->html, bytes);
    return CTL_OK;
}

static int cmd_report(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {};
    const struct view *view;
    char *error = NULL;
    int r;

    r = args_parse(ctl, report_options, argc, argv, 1, &options, NULL, &error);
    if (r == 0)
        r = selection_check(&options.selection, argv[optind], &error);
    if (r == 0 && options.html && (options.view || ctl->json))
        r = str_refuse(-EINVAL, &error,
                       "--html has all views and all numbers: it takes neither "
                       "--view nor --json.");
    if (r < 0)
        return args_exit(&verb_report, r, error);
    if (options.html)
        return report_page(ctl, &options, argv[optind]);
    if (!options.view)
        return report(ctl, &options, argv[optind]);
    view = view_find(options.view);
    return view ? report_view(ctl, &options, argv[optind], view)
                : report_intervals(ctl, &options, argv[optind]);
}

const struct verb verb_report = {
    .name = "report",
    .run = cmd_report,
    .words = "[FILE]",
    .completes = "files",
    .summary = "show who ran, who waited, and for whom",
    .help = "Reads a trace (- is standard input) and shows what happened. Needs no daemon.\n",
    .options = report_options,
    .examples = "  xentracectl report --html page.html web.xentrace\n",
};

// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl dump: a line for each record. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "common/event-set.h"
#include "common/trace-open.h"
#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/columns.h"
#include "ctl/condition.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/follow.h"
#include "ctl/format-file.h"
#include "ctl/input.h"
#include "ctl/pager.h"
#include "ctl/selection.h"
#include "ctl/str.h"
#include "trace/about.h"
#include "trace/events.h"
#include "trace/exit-reasons.h"
#include "trace/merge.h"
#include "trace/record-text.h"
#include "trace/sidecar.h"
#include "trace/source.h"
#include "trace/state.h"

#define BUFFER_BYTES (256u * 1024u)

/* Of any form. */
#define LINE_MAX_BYTES (COLUMNS_TEXT_MAX > RECORD_TEXT_MAX ? COLUMNS_TEXT_MAX : RECORD_TEXT_MAX)

struct options {
    char *events;
    const char *fields, *where, *format_file; /* NULL: not given */
    bool follow;
    struct selection_options selection;
};

static const struct args_option dump_options[] = {
    {"events", 'e', "LIST", ARGS_EVENTS, offsetof(struct options, events),
     .help = "events: sched,hvm-entryexit,0x0010f000 (default all)"},
    {"fields", 0, "LIST", ARGS_TEXT, offsetof(struct options, fields),
     .help = "print these fields only: time,cpu,name,vcpu"},
    {"follow", 'f', .offset = offsetof(struct options, follow),
     .help = "print the flight recorder's records as they come"},
    {"format-file", 0, "FILE", ARGS_FILE, offsetof(struct options, format_file),
     .help = "print as xentrace_format does with its formats FILE"},
    {"where", 0, "CONDITION", ARGS_TEXT, offsetof(struct options, where),
     .help = "records that match: 'vcpu = d1v2 and cpu = 3'"},
    SELECTION_OPTIONS(struct options, selection),
    {},
};

/* Texts on their way out. */
struct buffer {
    char text[BUFFER_BYTES];
    size_t used;
};

static bool buffer_flush(struct buffer *buffer)
{
    bool ok = fwrite(buffer->text, 1, buffer->used, stdout) == buffer->used;

    buffer->used = 0;
    return ok;
}

/* Which records, and how they are printed. */
struct printer {
    bool has_events;
    struct event_set events;
    struct condition *where; /* NULL: all */
    struct columns *columns; /* NULL: all fields */
    struct about *about;     /* NULL: all */
    bool is_json;
    struct record_text_style style;
    bool has_begun;
    int error; /* -ENOMEM */
    struct buffer buffer;
};

static size_t print(const struct printer *printer, const struct merge_record *record, char *text)
{
    const struct record_text_style *style = &printer->style;

    if (printer->columns)
        return printer->is_json ? columns_json(printer->columns, text, record, style)
                                : columns_text(printer->columns, text, record, style);
    return printer->is_json ? record_json(text, record, style) : record_text(text, record, style);
}

/* Returns false if nobody reads any more. */
static bool printer_add(struct printer *printer, const struct merge_record *record)
{
    struct buffer *buffer = &printer->buffer;
    uint32_t event = record_event(record->header);
    bool is_about = true;

    if (!printer->has_begun)
        printer->style.first_tsc = record->tsc;
    printer->has_begun = true;
    if (!printer->style.is_svm && state_is_exit(event))
        printer->style.is_svm = exit_record_is_svm(record);
    if (printer->about && printer->error == 0)
        printer->error = about_record(printer->about, record, &printer->style, &is_about);
    if (!is_about || printer->error < 0)
        return printer->error == 0;
    if (printer->has_events && !event_set_has(&printer->events, event))
        return true;
    if (printer->where && !condition_matches(printer->where, record, &printer->style))
        return true;
    if (sizeof(buffer->text) - buffer->used < LINE_MAX_BYTES && !buffer_flush(buffer))
        return false;
    buffer->used += print(printer, record, buffer->text + buffer->used);
    return true;
}

static void printer_done(struct printer *printer)
{
    condition_free(printer->where);
    columns_free(printer->columns);
    about_free(printer->about);
}

static int printer_init(struct printer *printer, const struct options *options, bool is_json,
                        char **ret_error)
{
    int r;

    printer->is_json = is_json;
    printer->has_events = options->events;
    r = options->events ? event_set_parse(options->events, &printer->events, ret_error) : 0;
    if (r < 0)
        return r;
    r = options->fields ? columns_new(options->fields, &printer->columns, ret_error) : 0;
    if (r < 0)
        return r;
    return options->where ? condition_new(options->where, &printer->where, ret_error) : 0;
}

/* XEN: its version; NULL: unknown. */
static void printer_begin(struct printer *printer, bool is_svm, const char *xen, uint64_t tsc_khz)
{
    static struct record_text_cache texts;

    printer->style = (struct record_text_style){
        .is_svm = is_svm,
        .xen = xen ? event_xen_parse(xen) : 0,
        .tsc_khz = tsc_khz,
        .texts = &texts,
    };
}

/* Returns false if nobody reads any more. */
static bool dump(struct input *input, struct printer *printer)
{
    struct merge_record record;
    int item;

    printer_begin(printer, sidecar_vendor(input->sidecar) == SIDECAR_VENDOR_AMD,
                  sidecar_xen_version(input->sidecar), input->tsc_khz);
    printer->style.first_tsc = input->origin_tsc;
    printer->has_begun = input->origin_tsc > 0;
    while ((item = merge_next(&input->merge, &record)) != MERGE_END) {
        if (item == MERGE_RECORD && !printer_add(printer, &record))
            return false;
    }
    return buffer_flush(&printer->buffer);
}

/* Nobody reads any more, which main() reports, or there is no memory. */
static int printer_fail(const struct printer *printer)
{
    if (printer->error < 0)
        ctl_error_sentence(NULL);
    return CTL_FAILURE;
}

static int dump_file(const struct ctl *ctl, struct printer *printer, const struct options *options,
                     const char *path)
{
    _cleanup_input_ struct input *input = NULL;
    struct pager *pager = NULL;
    char *error = NULL;
    bool is_read;

    if (selection_open(ctl, &options->selection, path, false, &input, &error) < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    if (input->subjects && about_new(input->subjects, &printer->about) < 0) {
        ctl_error_sentence(NULL);
        return CTL_FAILURE;
    }
    if (isatty(STDOUT_FILENO)) /* the records show how far it is */
        merge_report_bytes(&input->merge, NULL, NULL);
    if (!ctl->json)
        pager_open(!ctl->no_pager, &pager);
    is_read = dump(input, printer);
    if (!is_read && pager && printer->error == 0) { /* its user has seen enough */
        pager_close(pager);
        return CTL_OK;
    }
    pager_close(pager);
    if (!is_read)
        return printer_fail(printer);
    if (input->merge.error < 0) {
        (void)input_refuse(input, input->merge.error, "", &error);
        return input_fail(error, input->merge.error);
    }
    return CTL_OK;
}

/* --- Of the flight recorder. --- */

struct follower {
    struct printer *printer;
    const struct selection_options *selection;
    struct input input; /* only what names are found in, and what follows from it */
};

static void follower_done(struct follower *follower)
{
    follower->printer->about = about_free(follower->printer->about);
    follower->input.sidecar = sidecar_free(follower->input.sidecar);
    free(follower->input.subjects);
    free(follower->input.shown);
}

static int follow_begin(void *context, struct json_object *doc, char **ret_error)
{
    struct follower *follower = context;
    uint64_t khz = doc_number(doc, "host.tsc_khz");

    int r;

    printer_begin(follower->printer,
                  strcmp(doc_text(doc, "host.cpu_vendor", ""), "AuthenticAMD") == 0,
                  doc_text(doc, "host.xen_version", ""), khz ? khz : INPUT_ASSUMED_KHZ);
    r = sidecar_new_document(doc, &follower->input.sidecar);
    if (r < 0)
        return r;
    r = selection_find_subjects(follower->selection, &follower->input, ret_error);
    if (r < 0 || !follower->input.subjects)
        return r;
    return about_new(follower->input.subjects, &follower->printer->about);
}

static bool follow_record(void *context, const struct merge_record *record)
{
    struct follower *follower = context;

    return printer_add(follower->printer, record);
}

static bool follow_flush(void *context)
{
    struct follower *follower = context;

    return buffer_flush(&follower->printer->buffer) && fflush(stdout) == 0;
}

static int dump_follow(struct ctl *ctl, struct printer *printer, const struct options *options)
{
    _cleanup_(follower_done) struct follower follower = {
        .printer = printer,
        .selection = &options->selection,
        .input = {.is_now = true, .path = (char *)"--now"},
    };
    const struct follow_sink sink = {follow_begin, follow_record, follow_flush, &follower};
    _cleanup_client_ struct client *client = NULL;
    char *error = NULL;
    int r;

    r = client_new(ctl->socket, &client, &error);
    if (r >= 0)
        r = follow_run(client, &sink, &error);
    if (r >= 0)
        return printer_fail(printer);
    ctl_error_sentence(error);
    free(error);
    return CTL_FAILURE;
}

/* --- With a file of formats. --- */

/* In the order of the file, which is not that of time: the program had no other. */
static int print_formats(const struct printer *printer, const struct format_file *formats,
                         const char *path)
{
    int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : trace_open(path);
    struct source *source = NULL;
    int r = fd < 0 ? fd : source_new_fd(fd, &source);
    bool is_shorter;

    if (r >= 0)
        r = format_file_print(formats, source, printer->has_events ? &printer->events : NULL,
                              stdout);
    if (r >= 0 && source_bytes(source) > 0 && source_offset(source) == 0)
        r = -EBADMSG;
    is_shorter = r == -EIO && source_is_shorter(source);
    source_free(source);
    if (r == -EPIPE)
        return CTL_FAILURE; /* main() reports it */
    if (r == -EBADMSG)
        ctl_error("%s does not begin with a window of trace records. See: xentracectl info %s",
                  path, path);
    else if (is_shorter)
        ctl_error("%s has become shorter while it was read.", path);
    else if (r < 0)
        ctl_error("Cannot read %s: %s.", path, trace_open_problem(r));
    return r < 0 ? CTL_FAILURE : CTL_OK;
}

static int dump_formats(const struct printer *printer, const char *format_path, const char *path)
{
    _cleanup_format_file_ struct format_file *formats = NULL;
    char *error = NULL;

    if (format_file_new(format_path, &formats, &error) < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    return print_formats(printer, formats, path);
}

static int check_options(const struct ctl *ctl, const struct options *options, const char *path,
                         char **ret_error)
{
    if (options->follow && (options->format_file || path))
        return str_refuse(-EINVAL, ret_error,
                          "--follow prints the flight recorder's records, and takes no %s.",
                          path ? "file" : "--format-file");
    if (options->format_file && (options->fields || options->where || ctl->json))
        return str_refuse(-EINVAL, ret_error,
                          "--format-file cannot be combined with --fields, --where and --json.");
    if (options->format_file && !path)
        return str_refuse(-EINVAL, ret_error, "--format-file needs the name of a trace file.");
    if (options->follow && (options->selection.now || selection_has_part(&options->selection)))
        return str_refuse(
            -EINVAL, ret_error,
            "--follow prints all records as they come: it cannot be combined with --now, "
            "--since, --until and --around.");
    if (options->format_file &&
        (selection_has_part(&options->selection) || selection_has_subjects(&options->selection)))
        return str_refuse(
            -EINVAL, ret_error,
            "--format-file prints all of the trace, in the order of the file: it cannot "
            "be combined with --since, --until, --around, --domain, --vcpu and --cpu.");
    return 0;
}

static int cmd_dump(struct ctl *ctl, int argc, char **argv)
{
    static struct printer printer;
    struct options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, dump_options, argc, argv, 1, &options, NULL, &error);
    if (r == 0)
        r = selection_check(&options.selection, argv[optind], &error);
    if (r == 0)
        r = check_options(ctl, &options, argv[optind], &error);
    if (r == 0)
        r = printer_init(&printer, &options, ctl->json, &error);
    if (r < 0)
        r = args_exit(&verb_dump, r, error);
    else if (options.follow)
        r = dump_follow(ctl, &printer, &options);
    else if (options.format_file)
        r = dump_formats(&printer, options.format_file, argv[optind]);
    else
        r = dump_file(ctl, &printer, &options, argv[optind]);
    printer_done(&printer);
    free(options.events);
    return r;
}

const struct verb verb_dump = {
    .name = "dump",
    .run = cmd_dump,
    .words = "[FILE]",
    .completes = "files",
    .summary = "print the records of a trace",
    .help = "Prints each record of a trace (- is standard input), in time order. With --json,\n"
            "each is an object on a line of its own. Needs no daemon.\n",
    .options = dump_options,
    .examples = "  xentracectl dump --where 'name = vmexit and reason = NPF' FILE\n"
                "  xentracectl dump --fields time,vcpu,runtime -e sched FILE | sort -nk3\n",
};

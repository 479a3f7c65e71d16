// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl cut: writes a part of a trace as a trace of its own, with its sidecar. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/derived.h"
#include "ctl/input.h"
#include "ctl/number.h"
#include "ctl/output.h"
#include "ctl/selection.h"
#include "ctl/str.h"
#include "ctl/table.h"
#include "trace/cut.h"
#include "trace/sidecar.h"
#include "trace/source.h"

struct options {
    const char *output;
    bool force;
    struct selection_options selection;
};

#define AT(member) offsetof(struct options, member)

static const struct args_option cut_options[] = {
    {"output", 'o', "FILE", ARGS_FILE, AT(output),
     .help = "to FILE, with its sidecar; - is standard output"},
    {"force", 0, NULL, ARGS_DESTROY, AT(force),
     .help = "replace FILE and its sidecar if they exist"},
    SELECTION_TIME_OPTIONS(struct options, selection),
    {},
};

/* --- The new trace. --- */

/* What was read, and what was written. */
struct cut_job {
    struct input *input;
    struct output *output;
    uint64_t begin_tsc; /* of the trace */
    struct merge_part part;
    struct cut_result result;
};

static void cut_job_done(struct cut_job *job)
{
    job->input = input_free(job->input);
    job->output = output_free(job->output);
}

static void add_gaps(struct json_object *doc, const struct cut_result *result)
{
    struct json_object *gaps = doc_add_array(doc, "gaps");

    for (uint64_t i = 0; i < result->nr_gaps && i < CUT_GAPS_MAX; i++) {
        const struct cut_gap *gap = &result->gaps[i];
        struct json_object *entry = doc_append_object(gaps);

        doc_add_number(entry, "cpu", gap->cpu);
        doc_add_number(entry, "from_tsc", gap->from_tsc);
        doc_add_number(entry, "to_tsc", gap->to_tsc);
        doc_add_number(entry, "count", gap->count);
    }
}

static void add_part(struct json_object *doc, const struct merge_part *part)
{
    if (part->from > 0)
        doc_add_number(doc, "since_tsc", part->from);
    if (part->until < UINT64_MAX)
        doc_add_number(doc, "until_tsc", part->until);
}

static struct json_object *make_sidecar(const struct cut_job *job)
{
    const struct cut_result *result = &job->result;
    struct json_object *original = derived_read_original(job->input->sidecar_path), *doc;
    _cleanup_free_ char *message = str_format("Cut from %s.", job->input->path);
    struct derived derived = {
        .cause = "cut",
        .from = job->input->path,
        .message = message,
        .tsc_khz = job->input->khz_is_assumed ? 0 : job->input->tsc_khz,
        .bytes = result->bytes,
        .records = result->records,
        .lost = result->lost,
        .first_tsc = result->first_tsc,
        .last_tsc = result->last_tsc,
    };

    if (sidecar_complete_from_tsc(job->input->sidecar) > 0)
        derived.complete_from_tsc = job->part.from;
    doc = derived_doc(original, job->input->sidecar, &derived, job->output);
    add_part(doc_find(doc, "cut"), &job->part);
    add_gaps(doc, result);
    (void)doc_free(original);
    return doc;
}

static int refuse_read(const struct input *input, int r, char **ret_error)
{
    if (r == -ENOMEM)
        return r;
    if (input->merge.error < 0)
        return input_refuse(input, r, " Nothing was written.", ret_error);
    errno = -r;
    return str_refuse(r, ret_error, "Cannot copy from %s: %m. Nothing was written.", input->path);
}

static int cut_run(struct cut_job *job, const struct options *options, char **ret_error)
{
    struct output_options output_options = {
        .typed = options->output,
        .nothing = "Nothing was written",
        .force = options->force,
    };
    _cleanup_doc_ struct json_object *sidecar = NULL;
    int r;

    job->begin_tsc = job->input->origin_tsc;
    if (job->begin_tsc == 0)
        (void)merge_find_next(&job->input->merge, &job->begin_tsc);
    job->part = job->input->part;
    r = output_open(&output_options, &job->output, ret_error);
    if (r < 0)
        return r;
    r = cut_write(&job->input->merge, job->part, job->output->trace.fd, &job->result);
    if (r < 0)
        return refuse_read(job->input, r, ret_error);
    if (job->result.records == 0)
        return str_refuse(-ENODATA, ret_error,
                          "%s has no record in that time. Nothing was written.", job->input->path);
    sidecar = make_sidecar(job);
    return derived_keep(job->output, sidecar, ret_error);
}

/* --- For people. --- */

static void print_doc(FILE *file, const struct cut_job *job)
{
    const struct cut_result *result = &job->result;
    _cleanup_doc_ struct json_object *doc = doc_new("xentraced-cut");

    doc_add_text(doc, "path", job->input->path);
    doc_add_text(doc, "output", job->output->trace.path ? job->output->trace.path : "-");
    add_part(doc, &job->part);
    doc_add_number(doc, "first_tsc", result->first_tsc);
    doc_add_number(doc, "last_tsc", result->last_tsc);
    doc_add_number(doc, "bytes", result->bytes);
    doc_add_number(doc, "records", result->records);
    doc_add_number(doc, "lost", result->lost);
    add_gaps(doc, result);
    doc_print(file, doc);
}

static void print_text(FILE *file, const struct cut_job *job)
{
    const struct cut_result *result = &job->result;
    const char *path = job->output->trace.path;
    _cleanup_free_ char *quoted = str_shell_show(path ? path : "-");
    char from[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX], size[UNITS_TEXT_MAX], count[NUMBER_MAX];

    table_print_field(file, "File", "%s", path ? path : "standard output");
    table_print_field(file, "Window", "%s from %s",
                      input_span(job->input, span, result->last_tsc - result->first_tsc),
                      input_when(job->input, from, result->first_tsc, job->begin_tsc));
    table_print_field(file, "Records", "%s", number_format(count, result->records));
    table_print_field(file, "Missing", "%s", number_format(count, result->lost));
    table_print_field(file, "Size", "%s", size_format(size, result->bytes));
    if (path && quoted)
        table_print_field(file, "Next", "xentracectl report %s", quoted);
}

/* What may be wrong with it. */
static void warn(const struct cut_job *job)
{
    struct source_damage damage = source_damage(job->input->source);

    if (damage.is_damaged)
        ctl_warning("%s is damaged at offset %" PRIu64
                    ": records after it were not copied. To read them: xentracectl repair %s",
                    job->input->path, damage.offset, job->input->path);
    if (job->input->khz_is_assumed)
        ctl_warning("The TSC frequency of %s is unknown and is assumed to be %" PRIu64 " MHz.",
                    job->input->path, job->input->tsc_khz / 1000);
}

static int cut_file(struct ctl *ctl, const struct options *options, const char *path)
{
    _cleanup_(cut_job_done) struct cut_job job = {.part = MERGE_ALL};
    FILE *file = output_talk(options->output);
    char *error = NULL;
    int r;

    r = selection_open(ctl, &options->selection, path, false, &job.input, &error);
    if (r >= 0)
        r = cut_run(&job, options, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    warn(&job);
    if (ctl->json)
        print_doc(file, &job);
    else
        print_text(file, &job);
    return CTL_OK;
}

static int cmd_cut(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, cut_options, argc, argv, 1, &options, NULL, &error);
    if (r == 0 && optind == argc)
        r = str_refuse(-EINVAL, &error, "cut needs the name of a trace file.");
    if (r == 0)
        r = selection_check(&options.selection, argv[optind], &error);
    if (r == 0 && !options.output)
        r = str_refuse(-EINVAL, &error, "cut needs -o FILE, the file that it writes.");
    if (r < 0)
        return args_exit(&verb_cut, r, error);
    return cut_file(ctl, &options, argv[optind]);
}

const struct verb verb_cut = {
    .name = "cut",
    .run = cmd_cut,
    .words = "FILE",
    .completes = "files",
    .summary = "write a part of a trace to another file",
    .help = "Writes the records of a trace (- is standard input) from one time to another to\n"
            "a new trace, with its sidecar. Needs no daemon.\n",
    .options = cut_options,
    .examples = "  xentracectl cut --since -40s -o last.xentrace all.xentrace\n",
};

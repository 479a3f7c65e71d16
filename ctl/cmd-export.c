// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl export: a trace in the format of another program. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/input.h"
#include "ctl/number.h"
#include "ctl/output.h"
#include "ctl/served.h"
#include "ctl/selection.h"
#include "ctl/str.h"
#include "ctl/table.h"
#include "export/export.h"
#include "trace/source.h"
#include "trace/xentrace-borrow.h"

struct options {
    const char *to, *output, *table;
    bool schema, force;
    struct selection_options selection;
};

#define AT(member) offsetof(struct options, member)

static const struct args_option export_options[] = {
    {"to", 't', "FORMAT", ARGS_CHOICE, AT(to), .detail = "csv clickhouse perfetto ctf help",
     .help = "csv, clickhouse, perfetto, ctf; help lists them"},
    {"output", 'o', "FILE", ARGS_FILE, AT(output),
     .help = "to FILE; - is standard output, the default"},
    {"force", 0, NULL, ARGS_DESTROY, AT(force), .help = "replace FILE if it exists"},
    {"table", 0, "TABLE", ARGS_CHOICE, AT(table), .detail = "records intervals",
     .help = "records (the default) or intervals"},
    {"schema", .offset = AT(schema), .help = "print the statements that create FORMAT's tables"},
    SELECTION_OPTIONS(struct options, selection),
    {},
};

/* --- The export. --- */

struct job {
    struct input *input;
    struct xentrace *trace;
    struct output *output; /* NULL: standard output, or a directory: */
    const char *directory; /* made by this run; NULL: none */
    int directory_fd;
    bool is_kept;
    struct export_options options;
    struct export_result result;
};

/* Removes the files that this run has written there, and the directory. */
static void remove_directory(const char *path, int fd)
{
    DIR *directory = fdopendir(dup(fd));
    const struct dirent *entry;

    while (directory && (entry = readdir(directory)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(fd, entry->d_name, 0);
    if (directory)
        (void)closedir(directory);
    (void)rmdir(path);
}

static void job_done(struct job *job)
{
    if (job->directory && !job->is_kept)
        remove_directory(job->directory, job->directory_fd);
    fd_close(&job->directory_fd);
    job->trace = xentrace_close(job->trace);
    job->input = input_free(job->input);
    job->output = output_free(job->output);
}

/* The library's view of what was opened. */
static int job_open_trace(struct job *job)
{
    struct input *input = job->input;
    struct xentrace_borrow borrow = {
        .source = input->source,
        .sidecar = input->sidecar,
        .merge = &input->merge,
        .subjects = input->subjects,
        .tsc_khz = input->tsc_khz,
        .khz_is_assumed = input->khz_is_assumed,
        .first_tsc = input->origin_tsc,
    };
    int r;

    if (borrow.first_tsc == 0)
        (void)merge_find_next(&input->merge, &borrow.first_tsc);
    r = xentrace_borrow(&borrow, &job->trace);
    job->options.trace = job->trace;
    return r;
}

static int job_open_directory(struct job *job, const struct options *options, char **ret_error)
{
    if (mkdir(options->output, 0750) < 0) {
        if (errno == EEXIST)
            return str_refuse(
                -EEXIST, ret_error,
                "%s exists and was not changed: choose another name for the directory.",
                options->output);
        return str_refuse(-errno, ret_error, "Cannot create %s: %m. Nothing was written.",
                          options->output);
    }
    job->directory_fd = open(options->output, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (job->directory_fd < 0) {
        int r = -errno;

        (void)rmdir(options->output);
        return str_refuse(r, ret_error, "Cannot open %s: %m. Nothing was written.",
                          options->output);
    }
    job->directory = options->output;
    job->options.fd = job->directory_fd;
    return 0;
}

static int job_open_output(struct job *job, const struct options *options, char **ret_error)
{
    const struct output_options output_options = {
        .typed = options->output,
        .nothing = "Nothing was written",
        .force = options->force,
        .is_archive = true,
    };
    int r;

    if (job->options.format->is_directory)
        return job_open_directory(job, options, ret_error);
    job->options.fd = served_output_fd() >= 0 ? served_output_fd() : STDOUT_FILENO;
    if (!options->output || strcmp(options->output, "-") == 0) {
        if (job->options.format->is_binary && isatty(STDOUT_FILENO))
            return str_refuse(-ENOTTY, ret_error,
                              "%s is a binary format, and standard output is a terminal: write to "
                              "a file with -o FILE, or to a pipe.",
                              job->options.format->name);
        return 0;
    }
    r = output_open(&output_options, &job->output, ret_error);
    if (r < 0)
        return r;
    job->options.fd = job->output->trace.fd;
    return 0;
}

static int refuse_failed(const struct job *job, int r, bool is_read, char **ret_error)
{
    if (r == -ENOMEM)
        return r;
    if (is_read)
        return input_refuse(job->input, r,
                            job->output || job->directory ? " Nothing was written."
                                                          : " The output is not complete.",
                            ret_error);
    errno = -r;
    if (job->directory && (r == -EMFILE || r == -ENFILE))
        return str_refuse(r, ret_error,
                          "%s needs a file for each CPU, and this process may not open that many. "
                          "Nothing was written. Raise the limit: ulimit -n 65536",
                          job->options.format->name);
    if (job->directory)
        return str_refuse(r, ret_error, "Cannot write to %s: %m. It was removed.", job->directory);
    if (!job->output)
        return str_refuse(r, ret_error,
                          "Cannot write to standard output: %m. The output is not complete.");
    return str_refuse(r, ret_error, "Cannot write %s: %m. It was removed.",
                      job->output->trace.path ? job->output->trace.path : "the output");
}

static int job_run(struct job *job, const struct ctl *ctl, const struct options *options,
                   const char *path, char **ret_error)
{
    bool is_read;
    int r;

    r = job_open_output(job, options, ret_error);
    if (r < 0)
        return r;
    r = selection_open(ctl, &options->selection, path, false, &job->input, ret_error);
    if (r < 0)
        return r;
    r = job_open_trace(job);
    if (r < 0)
        return r;
    r = export_run(&job->options, &job->result, &is_read);
    reading_end(&job->input->reading);
    if (r < 0)
        return refuse_failed(job, r, is_read, ret_error);
    job->is_kept = true;
    return job->output ? output_keep(job->output, ret_error) : 0;
}

/* --- For people. --- */

static void print_doc(FILE *file, const struct job *job)
{
    _cleanup_doc_ struct json_object *doc = doc_new("xentraced-export");

    doc_add_text(doc, "path", job->input->path);
    doc_add_text(doc, "to", job->options.format->name);
    doc_add_text(doc, "output", job->output ? job->output->trace.path : job->directory);
    doc_add_number(doc, "records", job->result.records);
    doc_add_number(doc, "intervals", job->result.intervals);
    doc_add_number(doc, "bytes", job->result.bytes);
    doc_print(file, doc);
}

static void print_text(FILE *file, const struct job *job)
{
    char size[UNITS_TEXT_MAX], count[NUMBER_MAX];

    if (job->directory)
        table_print_field(file, "Directory", "%s", job->directory);
    else
        table_print_field(file, "File", "%s", job->output->trace.path);
    table_print_field(file, "Format", "%s", job->options.format->name);
    if (job->result.records > 0)
        table_print_field(file, "Records", "%s", number_format(count, job->result.records));
    if (job->result.intervals > 0)
        table_print_field(file, "Intervals", "%s", number_format(count, job->result.intervals));
    table_print_field(file, "Size", "%s", size_format(size, job->result.bytes));
}

/* Says why the file may be wrong. */
static void warn(const struct job *job)
{
    struct source_damage damage = source_damage(job->input->source);

    if (damage.is_damaged)
        ctl_warning("%s is damaged at offset %" PRIu64
                    ": what is after it was not exported. To read it: xentracectl repair %s",
                    job->input->path, damage.offset, job->input->path);
    if (job->input->khz_is_assumed)
        ctl_warning("The TSC frequency of %s is unknown and is assumed to be %" PRIu64 " MHz: all "
                    "times in nanoseconds depend on it. To name another one: --tsc-khz",
                    job->input->path, job->input->tsc_khz / 1000);
    if (job->result.records == 0 && job->result.intervals == 0)
        ctl_warning("%s has no %s of what was selected: the output is empty.", job->input->path,
                    job->options.table == EXPORT_INTERVALS ? "interval" : "record");
}

static int export_file(const struct ctl *ctl, const struct options *options,
                       const struct export_format *format, const char *path)
{
    _cleanup_(job_done) struct job job = {.options.format = format, .directory_fd = -1};
    char *error = NULL;

    if (options->table && strcmp(options->table, "intervals") == 0)
        job.options.table = EXPORT_INTERVALS;
    if (job_run(&job, ctl, options, path, &error) < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    warn(&job);
    if (!job.output && !job.directory)
        return CTL_OK;
    if (ctl->json)
        print_doc(stdout, &job);
    else
        print_text(stdout, &job);
    return CTL_OK;
}

/* --- The command line. --- */

static void list_formats(void)
{
    size_t nr;
    const struct export_format *const *formats = export_formats(&nr);

    for (size_t i = 0; i < nr; i++)
        (void)printf("%-12s%s\n", formats[i]->name, formats[i]->summary);
}

static int check_options(const struct options *options, const char *path,
                         const struct export_format **ret_format, char **ret_error)
{
    const struct export_format *format = options->to ? export_format_find(options->to) : NULL;

    if (!format)
        return str_refuse(-EINVAL, ret_error,
                          "export needs --to FORMAT, the format that it writes. To list them: "
                          "xentracectl export --to help");
    if (options->table && !format->has_tables)
        return str_refuse(-EINVAL, ret_error,
                          "--table chooses a table, and %s has both in one file: omit it.",
                          format->name);
    if (format->is_directory && (!options->output || strcmp(options->output, "-") == 0))
        return str_refuse(-EINVAL, ret_error, "%s is a directory: name it with -o DIRECTORY.",
                          format->name);
    if (format->is_directory && *served_host())
        return str_refuse(
            -EINVAL, ret_error,
            "%s is a directory, which -H does not copy: export it on that host, or copy "
            "the trace.",
            format->name);
    if (format->is_directory && options->force)
        return str_refuse(-EINVAL, ret_error,
                          "--force replaces no directory, which %s is: remove it yourself.",
                          format->name);
    if (options->schema && !format->schema)
        return str_refuse(-EINVAL, ret_error, "%s needs no schema.", format->name);
    if (options->schema && path)
        return str_refuse(-EINVAL, ret_error, "--schema reads no trace: omit %s.", path);
    if (options->force && (!options->output || strcmp(options->output, "-") == 0))
        return str_refuse(-EINVAL, ret_error, "--force needs -o FILE, the file that it replaces.");
    *ret_format = format;
    return selection_check(&options->selection, path, ret_error);
}

static int cmd_export(struct ctl *ctl, int argc, char **argv)
{
    const struct export_format *format = NULL;
    struct options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, export_options, argc, argv, 1, &options, NULL, &error);
    if (r == 0 && options.to && strcmp(options.to, "help") == 0) {
        list_formats();
        return CTL_OK;
    }
    if (r == 0)
        r = check_options(&options, argv[optind], &format, &error);
    if (r < 0)
        return args_exit(&verb_export, r, error);
    if (options.schema) {
        (void)fputs(format->schema, stdout);
        return CTL_OK;
    }
    return export_file(ctl, &options, format, argv[optind]);
}

const struct verb verb_export = {
    .name = "export",
    .run = cmd_export,
    .words = "[FILE]",
    .completes = "files",
    .summary = "write a trace in the format of another program",
    .help = "Writes a trace (- is standard input) for other viewers and engines: its records,\n"
            "and the intervals of its vCPUs and CPUs. Needs no daemon.\n",
    .options = export_options,
    .examples = "  xentracectl export --to csv --table intervals --domain web FILE\n",
};

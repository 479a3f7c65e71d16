// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl repair: makes a readable trace of what a crash left. The original stays. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/sidecar-path.h"
#include "common/trace-open.h"
#include "common/units.h"
#include "common/unpack.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/derived.h"
#include "ctl/input.h"
#include "ctl/now.h"
#include "ctl/number.h"
#include "ctl/output.h"
#include "ctl/served.h"
#include "ctl/str.h"
#include "ctl/table.h"
#include "trace/repair.h"
#include "trace/sidecar.h"

#define DROPS_SHOWN 10u

struct options {
    const char *output; /* as typed; NULL: beside the original */
    bool force;
};

#define AT(member) offsetof(struct options, member)

static const struct args_option repair_options[] = {
    {"output", 'o', "FILE", ARGS_FILE, AT(output),
     .help = "write to FILE, with its sidecar; - is standard output\n"
             "(default: NAME.repaired.xentrace, beside the original)"},
    {"force", 0, NULL, ARGS_DESTROY, AT(force),
     .help = "replace FILE and its sidecar if they exist"},
    {},
};

/* The original, and what became of it. */
struct job {
    const char *path;
    char *sidecar_path;
    int fd;
    uint64_t bytes;
    struct sidecar *sidecar;
    struct output *output; /* NULL: it is sound, and no copy was asked for */
    struct repair_result result;
};

static void job_done(struct job *job)
{
    fd_close(&job->fd);
    job->sidecar = sidecar_free(job->sidecar);
    job->output = output_free(job->output);
    free(job->sidecar_path);
}

/* --- Reading. --- */

static int check_file(const struct job *job, int fd, char **ret_error)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return str_refuse(-errno, ret_error, "Cannot read %s: %m.", job->path);
    if (!S_ISREG(st.st_mode))
        return str_refuse(-EINVAL, ret_error,
                          "repair reads the trace more than once: %s is not a file.", job->path);
    if (st.st_size == 0)
        return str_refuse(-ENODATA, ret_error, "%s is empty: there is nothing to repair.",
                          job->path);
    return 0;
}

/* Of a compressed file, what it holds: of frames that are damaged, four zero bytes. */
static int unpack_file(struct job *job, int *fd, char **ret_error)
{
    uint8_t magic[UNPACK_MAGIC_BYTES];
    ssize_t n = pread(*fd, magic, sizeof(magic), 0);

    if (n < 0)
        return str_refuse(-errno, ret_error, "Cannot read %s: %m.", job->path);
    if (!unpack_is_packed(magic, (size_t)n))
        return 0;
    return now_keep_unpacked(fd_take(fd), true, job->path, fd, ret_error);
}

/* Reads the original, and writes what is sound to FD; -1: only finds what is wrong with it. */
static int read_original(struct job *job, int fd, char **ret_error)
{
    int r = repair_write(job->fd, job->bytes, fd, &job->result);

    if (r == 0 || r == -ENOMEM || !job->result.is_read)
        return r;
    if (job->result.is_shorter)
        return str_refuse(r, ret_error, "%s has become shorter while it was read.", job->path);
    errno = -r;
    return str_refuse(r, ret_error, "Cannot read %s to its end: %m.", job->path);
}

static int open_original(struct job *job, char **ret_error)
{
    _cleanup_fd_ int fd = trace_open(job->path);
    struct stat st;
    int r;

    if (fd == -EISDIR)
        return str_refuse(fd, ret_error, "%s is a directory.", job->path);
    if (fd < 0)
        return str_refuse(fd, ret_error, "Cannot read %s: %s.", job->path, trace_open_problem(fd));
    *ret_error = input_explain_sidecar(job->path);
    if (*ret_error)
        return -EINVAL;
    r = check_file(job, fd, ret_error);
    if (r < 0)
        return r;
    r = unpack_file(job, &fd, ret_error);
    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0)
        return str_refuse(-errno, ret_error, "Cannot read %s: %m.", job->path);
    job->bytes = (uint64_t)st.st_size; /* 0: a compressed file that holds nothing */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* a hint */
    job->fd = fd_take(&fd);
    job->sidecar_path = sidecar_path_of(job->path);
    r = job->sidecar_path ? sidecar_new(job->sidecar_path, &job->sidecar) : -ENOMEM;
    if (r >= 0)
        r = read_original(job, -1, ret_error);
    if (r < 0)
        return r;
    if (job->result.windows == 0)
        return str_refuse(-EBADMSG, ret_error,
                          "%s holds no window of trace records: there is nothing to keep.",
                          job->path);
    return 0;
}

static bool is_sound(const struct job *job)
{
    return job->result.nr_drops == 0;
}

/* --- The document. --- */

static void add_drops(struct json_object *doc, const struct repair_result *result)
{
    struct json_object *drops = doc_add_array(doc, "dropped");

    for (uint64_t i = 0; i < result->nr_drops && i < REPAIR_DROPS_MAX; i++) {
        const struct repair_drop *drop = &result->drops[i];
        struct json_object *entry = doc_append_object(drops);

        doc_add_number(entry, "offset", drop->offset);
        doc_add_number(entry, "bytes", drop->bytes);
        doc_add_text(entry, "kind", trace_file_damage_kind(drop->damage));
        doc_add_text(entry, "text", trace_file_damage_text(drop->damage));
        if (drop->has_cpu)
            doc_add_number(entry, "cpu", drop->cpu);
    }
}

/* Keys of the sidecar's object and of the answer. */
static void add_repair(struct json_object *doc, const struct repair_result *result)
{
    doc_add_number(doc, "dropped_bytes", result->dropped_bytes);
    doc_add_number(doc, "dropped_places", result->nr_drops);
    doc_add_number(doc, "marks", result->marks);
    add_drops(doc, result);
}

static struct json_object *make_sidecar(const struct job *job)
{
    const struct repair_result *result = &job->result;
    struct json_object *original = derived_read_original(job->sidecar_path), *doc;
    _cleanup_free_ char *message = str_format("Repaired from %s: %" PRIu64 " bytes were dropped.",
                                              job->path, result->dropped_bytes);
    struct derived derived = {
        .cause = "repair",
        .from = job->path,
        .message = message,
        .bytes = result->bytes,
        .records = result->records,
        .lost = result->lost,
        .first_tsc = result->first_tsc,
        .last_tsc = result->last_tsc,
    };

    doc = derived_doc(original, job->sidecar, &derived, job->output);
    add_repair(doc_find(doc, "repair"), result);
    (void)doc_free(original);
    return doc;
}

/* --- Writing. --- */

/* "web.repaired.xentrace" of "web.xentrace" and "web.xentrace.zst". NULL: no memory. */
static char *default_output(const char *path)
{
    if (trace_path_is_trace(path))
        return str_format("%.*s.repaired" TRACE_SUFFIX, (int)trace_path_stem(path), path);
    return str_format("%s.repaired", path);
}

static int write_repaired(struct job *job, const struct options *options, char **ret_error)
{
    _cleanup_free_ char *beside = default_output(job->path);
    _cleanup_doc_ struct json_object *sidecar = NULL;
    struct output_options output_options = {
        .typed = options->output ? options->output : beside,
        .nothing = "Nothing was written",
        .force = options->force,
    };
    int r;

    if (!beside)
        return -ENOMEM;
    r = output_open(&output_options, &job->output, ret_error);
    if (r < 0)
        return r;
    r = read_original(job, job->output->trace.fd, ret_error);
    if (r < 0 && r != -ENOMEM && !*ret_error) {
        errno = -r;
        return str_refuse(r, ret_error, "Cannot write %s: %m. %s is unchanged.",
                          job->output->trace.path ? job->output->trace.path : "standard output",
                          job->path);
    }
    if (r < 0)
        return r;
    sidecar = make_sidecar(job);
    return derived_keep(job->output, sidecar, ret_error);
}

/* --- For people. --- */

static void print_doc(FILE *file, const struct job *job)
{
    const struct repair_result *result = &job->result;
    _cleanup_doc_ struct json_object *doc = doc_new("xentraced-repair");

    doc_add_text(doc, "path", job->path);
    doc_add_flag(doc, "sound", is_sound(job));
    if (job->output)
        doc_add_text(doc, "output", job->output->trace.path ? job->output->trace.path : "-");
    doc_add_number(doc, "bytes", result->bytes);
    doc_add_number(doc, "windows", result->windows);
    doc_add_number(doc, "records", result->records);
    add_repair(doc, result);
    doc_print(file, doc);
}

static void print_drop(FILE *file, const struct repair_drop *drop)
{
    char cpu[32] = "", count[NUMBER_MAX];

    if (drop->has_cpu)
        (void)snprintf(cpu, sizeof(cpu), " of CPU %" PRIu32, drop->cpu);
    (void)fprintf(file, "  at byte %" PRIu64 ": %s bytes%s dropped: %s\n", drop->offset,
                  number_format(count, drop->bytes), cpu, trace_file_damage_text(drop->damage));
}

static void print_text(FILE *file, const struct job *job)
{
    const struct repair_result *result = &job->result;
    const char *path = job->output ? job->output->trace.path : NULL;
    _cleanup_free_ char *quoted = str_shell_show(path ? path : "-"), *name = str_clean(job->path);
    char count[NUMBER_MAX], size[UNITS_TEXT_MAX];
    bool is_there = *served_host() && !served_path();

    if (is_sound(job))
        (void)fprintf(file, "%s is sound: there is nothing to repair.\n",
                      name ? name : "The trace");
    else
        (void)fprintf(file, "%s is damaged:\n", name ? name : "The trace");
    for (uint64_t i = 0; i < result->nr_drops && i < DROPS_SHOWN; i++)
        print_drop(file, &result->drops[i]);
    if (result->nr_drops > DROPS_SHOWN)
        (void)fprintf(file, "  and %s more places\n",
                      number_format(count, result->nr_drops - DROPS_SHOWN));
    if (!job->output)
        return;
    table_print_field(file, "File", "%s", path ? path : "standard output");
    table_print_field(file, "Records", "%s", number_format(count, result->records));
    table_print_field(file, "Dropped", "%s", size_format(size, result->dropped_bytes));
    table_print_field(file, "Gaps", "%s, marked by lost_records records",
                      number_format(count, result->marks));
    if (path && quoted)
        table_print_field(file, "Next", "xentracectl%s%s report %s", is_there ? " -H " : "",
                          is_there ? served_host() : "", quoted);
}

static int repair_file(struct ctl *ctl, const struct options *options, const char *path)
{
    _cleanup_(job_done) struct job job = {.path = path, .fd = -1};
    FILE *file = output_talk(options->output);
    char *error = NULL;
    int r;

    r = open_original(&job, &error);
    if (r >= 0 && (!is_sound(&job) || options->output))
        r = write_repaired(&job, options, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    if (ctl->json)
        print_doc(file, &job);
    else
        print_text(file, &job);
    return CTL_OK;
}

static int cmd_repair(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, repair_options, argc, argv, 1, &options, NULL, &error);
    if (r == 0 && optind == argc)
        r = str_refuse(-EINVAL, &error, "repair needs the name of a trace file.");
    if (r == 0 && strcmp(argv[optind], "-") == 0)
        r = str_refuse(-EINVAL, &error,
                       "repair reads the trace more than once: give it a file, not standard "
                       "input.");
    if (r < 0)
        return args_exit(&verb_repair, r, error);
    return repair_file(ctl, &options, argv[optind]);
}

const struct verb verb_repair = {
    .name = "repair",
    .run = cmd_repair,
    .words = "FILE",
    .completes = "files",
    .summary = "make a readable trace of a damaged one",
    .help = "Writes what is readable of a damaged trace to a new file, with its sidecar, and\n"
            "marks the gaps. FILE stays as it is. Needs no daemon.\n",
    .options = repair_options,
};

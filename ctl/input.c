// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/sidecar-path.h"
#include "common/trace-open.h"
#include "common/units.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/now.h"
#include "ctl/str.h"
#include "trace/sidecar.h"
#include "trace/source.h"
#include "trace/state.h"

struct input *input_free(struct input *input)
{
    if (!input)
        return NULL;
    reading_end(&input->reading);
    if (input->has_merge)
        merge_done(&input->merge);
    source_free(input->source);
    sidecar_free(input->sidecar);
    free(input->path);
    free(input->name);
    free(input->sidecar_path);
    free(input->subjects);
    free(input->shown);
    free(input);
    return NULL;
}

static bool is_standard_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

static int input_read_sidecar(struct input *input, const struct input_options *options)
{
    if (options->is_now) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", options->sidecar_fd);
        return sidecar_new(path, &input->sidecar);
    }
    if (!is_standard_input(input->path)) {
        input->sidecar_path = sidecar_path_of(input->path);
        if (!input->sidecar_path)
            return -ENOMEM;
    }
    return sidecar_new(input->sidecar_path, &input->sidecar);
}

/* A compressed file without a seek table is read once, as a pipe is: its content can be kept. */
static int source_new_kept(int fd, const char *name, struct source **ret_source, char **ret_error)
{
    _cleanup_fd_ int owned = fd, again = fcntl(fd, F_DUPFD_CLOEXEC, 3), plain = -1;
    int r;

    if (again < 0)
        return -errno;
    r = source_new_fd(fd_take(&owned), ret_source);
    if (r < 0 || !source_is_stream(*ret_source))
        return r;
    *ret_source = source_free(*ret_source);
    r = now_keep_unpacked(fd_take(&again), false, name, &plain, ret_error);
    return r < 0 ? r : source_new_fd(fd_take(&plain), ret_source);
}

static int open_source(const struct input_options *options, const char *name,
                       struct source **ret_source, char **ret_error)
{
    struct stat status;
    int fd, r;

    if (options->is_now)
        return source_new_fd(options->trace_fd, ret_source);
    if (is_standard_input(options->path)) {
        fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
        r = fd < 0 ? -errno : 0;
    } else {
        r = fd = trace_open(options->path);
    }
    if (r < 0)
        return r;
    if (options->keep && fstat(fd, &status) == 0 && !S_ISREG(status.st_mode)) {
        r = now_keep_pipe(fd, name, &fd, ret_error);
        if (r < 0)
            return r;
    }
    return options->keep ? source_new_kept(fd, name, ret_source, ret_error)
                         : source_new_fd(fd, ret_source);
}

static void input_find_khz(struct input *input, uint64_t khz)
{
    input->tsc_khz = khz ? khz : sidecar_tsc_khz(input->sidecar);
    input->khz_is_assumed = input->tsc_khz == 0;
    if (input->khz_is_assumed)
        input->tsc_khz = INPUT_ASSUMED_KHZ;
}

/* A trace that was compressed meanwhile is found by the name that it had. */
static char *find_path(const char *path)
{
    char *packed;

    if (is_standard_input(path) || access(path, F_OK) == 0 || !trace_path_is_trace(path))
        return strdup(path);
    packed = str_format("%s" TRACE_SUFFIX_PACKED, path);
    if (!packed || access(packed, F_OK) == 0)
        return packed;
    free(packed);
    return strdup(path);
}

/* Warns that the sidecar was not used: without this, times and names would be wrong for no reason.
 */
static void input_report_sidecar(const struct input *input)
{
    int problem = sidecar_problem(input->sidecar);
    _cleanup_free_ char *name = NULL;

    if (!input->sidecar_path || problem == 0 || problem == -ENOENT)
        return;
    name = str_clean(input->sidecar_path);
    (void)fprintf(
        stderr,
        "The sidecar %s is not used: %s. The TSC frequency, the time of day and the names of "
        "domains are unknown without it.\n",
        name ? name : "of the trace",
        problem == -EFBIG     ? "it is too large"
        : problem == -EBADMSG ? "it is damaged or no session document"
                              : strerror(-problem));
}

static int input_open_all(struct input *input, const struct input_options *options,
                          char **ret_error)
{
    struct input_options found = *options;
    int r;

    input->path = options->is_now ? strdup(options->path) : find_path(options->path);
    input->name = input->path ? str_clean(input->path) : NULL;
    if (!input->name)
        return -ENOMEM;
    found.path = input->path;
    r = open_source(&found, input_name(input), &input->source, ret_error);
    if (r < 0)
        return r;
    input->is_now = options->is_now;
    input->begin = source_offset(input->source);
    r = input_read_sidecar(input, options);
    if (r < 0)
        return r;
    input_report_sidecar(input);
    input_find_khz(input, options->tsc_khz);
    return 0;
}

/* The length of PATH without the suffix of a sidecar; 0: PATH does not have it. */
static size_t sidecar_stem_length(const char *path)
{
    static const char suffix[] = ".json";
    size_t length = strlen(path), cut = strlen(suffix);

    return length > cut && strcmp(path + length - cut, suffix) == 0 ? length - cut : 0;
}

/* The trace that the sidecar at PATH belongs to, if it is there; else NULL. */
static char *trace_of_sidecar(const char *path)
{
    size_t length = sidecar_stem_length(path);
    char *trace = str_format("%.*s" TRACE_SUFFIX TRACE_SUFFIX_PACKED, (int)length, path);

    if (trace && access(trace, F_OK) < 0)
        trace[length + strlen(TRACE_SUFFIX)] = '\0';
    if (trace && access(trace, F_OK) < 0)
        trace[length] = '\0'; /* a trace whose name has no suffix */
    if (trace && access(trace, F_OK) == 0)
        return trace;
    free(trace);
    return NULL;
}

char *input_explain_sidecar(const char *path)
{
    _cleanup_doc_ struct json_object *doc = NULL;
    _cleanup_free_ char *trace = NULL, *quoted = NULL;

    if (!sidecar_stem_length(path) || doc_read_file(path, &doc) < 0 ||
        (!doc_is(doc, DOC_FORMAT_SESSION) && !doc_is(doc, DOC_FORMAT_SNAPSHOT)))
        return NULL;
    trace = trace_of_sidecar(path);
    quoted = trace ? str_shell_show(trace) : NULL;
    if (quoted)
        return str_format("%s is a sidecar. Name its trace: %s", path, quoted);
    return str_format("%s is a sidecar. Name its trace, which it expects at %s.", path,
                      doc_text(doc, "output.path", "an unknown path"));
}

/* A file without a record: why. */
static int refuse_empty(const char *path, char **ret_error)
{
    char *sentence = input_explain_sidecar(path);

    if (!sentence)
        return str_refuse(-EBADMSG, ret_error,
                          "%s has no trace records: it is empty, or is not a trace. See: "
                          "xentracectl info %s",
                          path, path);
    *ret_error = sentence;
    return -EBADMSG;
}

static int refuse_reading(const char *path, int r, char **ret_error)
{
    if (r == -ENOMEM)
        return r;
    return str_refuse(r, ret_error, "Cannot read %s: %s.", path, trace_open_problem(r));
}

int input_open(const struct input_options *options, struct input **ret_input, char **ret_error)
{
    _cleanup_input_ struct input *input = calloc(1, sizeof(*input));
    int r;

    if (!input)
        return -ENOMEM;
    r = input_open_all(input, options, ret_error);
    if (r < 0 && *ret_error)
        return r;
    if (r < 0)
        return refuse_reading(options->path, r, ret_error);
    *ret_input = TAKE_PTR(input);
    return 0;
}

bool input_find_span(struct input *input, uint64_t *ret_first, uint64_t *ret_last)
{
    if (!source_is_stream(input->source)) {
        if (!merge_find_span(input->source, &input->origin_tsc, ret_last))
            return false;
    } else {
        input->has_merge = true;
        if (merge_init(&input->merge, input->source, MERGE_ALL) < 0 ||
            !merge_find_next(&input->merge, &input->origin_tsc))
            return false;
        *ret_last = 0;
    }
    *ret_first = input->origin_tsc;
    return true;
}

int input_begin(struct input *input, struct merge_part part, char **ret_error)
{
    int r;

    input->part = part;
    if (input->has_merge && source_is_stream(input->source)) {
        reading_begin(&input->reading, &input->merge, input_name(input), 0);
        merge_narrow(&input->merge, part);
        return 0;
    }
    if (input->has_merge) {
        merge_done(&input->merge);
        source_return(input->source, input->begin);
    }
    input->has_merge = true;
    r = merge_init(&input->merge, input->source, part);
    if (r < 0)
        return input_refuse(input, r, "", ret_error);
    if (merge_streams(&input->merge) == 0 && !source_is_stream(input->source))
        return refuse_empty(input->path, ret_error);
    reading_begin(&input->reading, &input->merge, input_name(input),
                  part.from == 0 && part.until == UINT64_MAX && !source_is_stream(input->source)
                      ? source_bytes(input->source)
                      : 0);
    return 0;
}

/* --- For people. --- */

const char *input_name(const struct input *input)
{
    if (input->is_now)
        return "the flight recorder";
    return is_standard_input(input->path) ? "standard input" : input->name;
}

int input_refuse(const struct input *input, int r, const char *after, char **ret_error)
{
    if (r == -ENOMEM)
        return r;
    if (r == -EIO && source_is_shorter(input->source))
        return str_refuse(r, ret_error, "%s has become shorter while it was read.%s",
                          input_name(input), after);
    if (r == -EFBIG)
        return str_refuse(r, ret_error,
                          "%s has windows so large that it cannot be read once from its beginning "
                          "to its end.%s Unpack it to a file, and read that: zstd -d",
                          input_name(input), after);
    errno = -r;
    return str_refuse(r, ret_error, "Cannot read %s to its end: %m.%s", input_name(input), after);
}

int input_fail(char *error, int r)
{
    if (error)
        ctl_error_sentence(error);
    else
        ctl_error("Cannot read the trace: %s.", strerror(-r));
    free(error);
    return CTL_FAILURE;
}

uint64_t input_ticks(const struct input *input, uint64_t usec)
{
    unsigned __int128 ticks = (unsigned __int128)usec * input->tsc_khz / 1000;

    return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

uint64_t input_nsec(const struct input *input, uint64_t ticks)
{
    return (uint64_t)((unsigned __int128)ticks * 1000000 / input->tsc_khz);
}

const char *input_span_nsec(char buffer[static INPUT_TEXT_MAX], uint64_t nsec)
{
    static const struct {
        uint64_t nsec;
        const char *name;
    } units[] = {
        {NSEC_PER_SEC, "s"}, {NSEC_PER_SEC / 1000, "ms"}, {NSEC_PER_USEC, "us"}, {1, "ns"}};
    size_t i = 0;

    while (i < ARRAY_SIZE(units) - 1 && nsec < units[i].nsec)
        i++;
    if (nsec >= 100 * units[i].nsec || units[i].nsec == 1)
        (void)snprintf(buffer, INPUT_TEXT_MAX, "%" PRIu64 "%s", nsec / units[i].nsec,
                       units[i].name);
    else if (nsec >= 10 * units[i].nsec)
        (void)snprintf(buffer, INPUT_TEXT_MAX, "%" PRIu64 ".%" PRIu64 "%s", nsec / units[i].nsec,
                       nsec % units[i].nsec * 10 / units[i].nsec, units[i].name);
    else
        (void)snprintf(buffer, INPUT_TEXT_MAX, "%" PRIu64 ".%02" PRIu64 "%s", nsec / units[i].nsec,
                       nsec % units[i].nsec * 100 / units[i].nsec, units[i].name);
    return buffer;
}

const char *input_span(const struct input *input, char buffer[static INPUT_TEXT_MAX],
                       uint64_t ticks)
{
    return input_span_nsec(buffer, input_nsec(input, ticks));
}

static const char *format_when(const struct input *input, char buffer[static INPUT_TEXT_MAX],
                               uint64_t tsc, uint64_t first_tsc, unsigned int digits)
{
    uint64_t nsec = sidecar_realtime_nsec(input->sidecar, tsc);
    uint64_t unit = digits == 6 ? NSEC_PER_USEC : NSEC_PER_SEC / 1000;
    time_t seconds = (time_t)(nsec / NSEC_PER_SEC);
    struct tm local;
    char text[32];

    if (nsec == 0 || !localtime_r(&seconds, &local)) {
        nsec = input_nsec(input, tsc - (input->origin_tsc ? input->origin_tsc : first_tsc));
        (void)snprintf(buffer, INPUT_TEXT_MAX, "+%" PRIu64 ".%0*" PRIu64 "s", nsec / NSEC_PER_SEC,
                       (int)digits, nsec % NSEC_PER_SEC / unit);
        return buffer;
    }
    (void)strftime(text, sizeof(text), "%H:%M:%S", &local);
    (void)snprintf(buffer, INPUT_TEXT_MAX, "%s.%0*" PRIu64, text, (int)digits,
                   nsec % NSEC_PER_SEC / unit);
    return buffer;
}

const char *input_when(const struct input *input, char buffer[static INPUT_TEXT_MAX], uint64_t tsc,
                       uint64_t first_tsc)
{
    return format_when(input, buffer, tsc, first_tsc, 3);
}

const char *input_when_usec(const struct input *input, char buffer[static INPUT_TEXT_MAX],
                            uint64_t tsc, uint64_t first_tsc)
{
    return format_when(input, buffer, tsc, first_tsc, 6);
}

const char *input_domain(const struct input *input, char buffer[static INPUT_TEXT_MAX],
                         uint32_t domid, uint64_t tsc)
{
    const char *name =
        sidecar_domain_label(input->sidecar, domid, sidecar_realtime_nsec(input->sidecar, tsc));

    if (domid == STATE_DOMAIN_IDLE)
        name = "idle";
    if (name)
        (void)snprintf(buffer, INPUT_TEXT_MAX, "%s", name);
    else
        (void)snprintf(buffer, INPUT_TEXT_MAX, "d%" PRIu32, domid);
    return buffer;
}

const char *input_vcpu(const struct input *input, char buffer[static INPUT_TEXT_MAX], uint32_t key,
                       uint64_t tsc)
{
    const char *name =
        sidecar_domain_label(input->sidecar, key >> 16, sidecar_realtime_nsec(input->sidecar, tsc));

    if (key >> 16 == STATE_DOMAIN_IDLE)
        (void)snprintf(buffer, INPUT_TEXT_MAX, "idle");
    else if (name)
        (void)snprintf(buffer, INPUT_TEXT_MAX, "%s v%" PRIu32, name, key & 0xffff);
    else
        (void)snprintf(buffer, INPUT_TEXT_MAX, "d%" PRIu32 "v%" PRIu32, key >> 16, key & 0xffff);
    return buffer;
}

void input_print_cause(FILE *file, const struct input *input, uint64_t first_tsc)
{
    const char *reason = sidecar_reason(input->sidecar);
    uint64_t tsc = sidecar_reason_tsc(input->sidecar);
    char when[INPUT_TEXT_MAX];

    if (!reason)
        return;
    (void)fprintf(file, "  Snapshot taken because: %s", reason);
    if (tsc)
        (void)fprintf(file, " That was at %s%s.", input_when(input, when, tsc, first_tsc),
                      tsc < first_tsc ? ", before the first record here" : "");
    (void)fputc('\n', file);
}

void input_print_assumed(FILE *file, const struct input *input)
{
    if (input->khz_is_assumed)
        (void)fprintf(file,
                      "  TSC frequency unknown: times assume %" PRIu64
                      " MHz (xl dmesg | grep MHz; --tsc-khz).\n",
                      input->tsc_khz / 1000);
}

char *input_argument(const struct input *input)
{
    if (input->is_now)
        return strdup("--now");
    return is_standard_input(input->path) ? NULL : str_shell_show(input->path);
}

char *input_vcpu_argument(const struct input *input, uint32_t key, uint64_t tsc)
{
    uint64_t nsec = sidecar_realtime_nsec(input->sidecar, tsc);
    const char *name = sidecar_domain_name(input->sidecar, key >> 16, nsec);
    const char *label = sidecar_domain_label(input->sidecar, key >> 16, nsec);
    _cleanup_free_ char *text = NULL;
    uint32_t domid;

    if (name && *name != '-' && name == label &&
        sidecar_find_domain(input->sidecar, name, &domid) && domid == key >> 16)
        text = str_format("%s.%" PRIu32, name, key & 0xffff);
    if (!text || sidecar_find_domain(input->sidecar, text, &domid)) { /* names may have dots */
        free(text);
        text = str_format("d%" PRIu32 "v%" PRIu32, key >> 16, key & 0xffff);
    }
    return text ? str_shell_show(text) : NULL;
}

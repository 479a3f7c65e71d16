// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The library's four kinds of observed things become one kind of interval here: the formats differ
 * in what they write, not in where it comes from.
 */

#include "export/export.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/util.h"
#include "export/formats.h"

#define PIPE_BYTES (1024 * 1024)

static const struct export_format *const formats[] = {
    &export_csv,
    &export_clickhouse,
    &export_perfetto,
    &export_ctf,
};

const struct export_format *const *export_formats(size_t *ret_count)
{
    *ret_count = ARRAY_SIZE(formats);
    return formats;
}

const struct export_format *export_format_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

const char *export_kind_name(enum export_kind kind)
{
    static const char *const names[EXPORT_KINDS] = {
        [EXPORT_RUNNING] = "running", [EXPORT_RUNNABLE] = "runnable", [EXPORT_BLOCKED] = "blocked",
        [EXPORT_OFFLINE] = "offline", [EXPORT_EXIT] = "exit",         [EXPORT_C_STATE] = "c_state",
        [EXPORT_MHZ] = "mhz",         [EXPORT_INTERRUPT] = "irq",     [EXPORT_GAP] = "lost",
    };

    return names[kind];
}

const char *export_runstate_name(uint32_t runstate)
{
    return runstate <= XENTRACE_OFFLINE ? export_kind_name(runstate) : "";
}

const char *export_wait_name(uint32_t wait)
{
    static const char *const names[] = {
        [XENTRACE_NO_WAIT] = "",
        [XENTRACE_WAKE] = "wake",
        [XENTRACE_PREEMPT] = "preempt",
        [XENTRACE_OTHER] = "other",
    };

    return wait < ARRAY_SIZE(names) ? names[wait] : "other";
}

/* --- Intervals. --- */

/* An error of the format, for which the library has no place. */
struct reader {
    struct export *export;
    int error;
};

static int pass_on(struct reader *reader, const struct export_interval *interval)
{
    reader->export->intervals++;
    if (reader->error == 0)
        reader->error = reader->export->format->interval(reader->export, interval);
    return reader->error;
}

static int on_interval(void *context, const struct xentrace_interval *of)
{
    static const uint8_t kinds[] = {
        [XENTRACE_RUNNING] = EXPORT_RUNNING,
        [XENTRACE_RUNNABLE] = EXPORT_RUNNABLE,
        [XENTRACE_BLOCKED] = EXPORT_BLOCKED,
        [XENTRACE_OFFLINE] = EXPORT_OFFLINE,
    };
    const struct export_interval interval = {
        .kind = kinds[of->runstate],
        .domid = of->domid,
        .vcpu = of->vcpu,
        .cpu = of->cpu == XENTRACE_NO_CPU ? EXPORT_NOBODY : of->cpu,
        .begin_cpu = of->begin_cpu,
        .wait = of->wait,
        .next = of->next_runstate,
        .name = "",
        .from_tsc = of->from_tsc,
        .to_tsc = of->to_tsc,
        .cycles = of->to_tsc - of->from_tsc,
        .is_complete = true,
        .ends_in_loss = of->ends_in_loss,
    };

    return pass_on(context, &interval);
}

static int on_exit_end(void *context, const struct xentrace_exit *of)
{
    const struct export_interval interval = {
        .kind = EXPORT_EXIT,
        .next = XENTRACE_UNKNOWN,
        .domid = of->domid,
        .vcpu = of->vcpu,
        .cpu = of->cpu == XENTRACE_NO_CPU ? EXPORT_NOBODY : of->cpu,
        .begin_cpu = of->cpu == XENTRACE_NO_CPU ? EXPORT_NOBODY : of->cpu,
        .value = of->reason,
        .name = of->name,
        .from_tsc = of->from_tsc,
        .to_tsc = of->is_complete ? of->to_tsc : of->from_tsc,
        .cycles = of->is_complete ? of->cycles : 0,
        .is_complete = of->is_complete,
    };

    return pass_on(context, &interval);
}

static int on_cpu_interval(void *context, const struct xentrace_cpu_interval *of)
{
    static const uint8_t kinds[] = {
        [XENTRACE_IDLE] = EXPORT_C_STATE,
        [XENTRACE_FREQUENCY] = EXPORT_MHZ,
        [XENTRACE_INTERRUPT] = EXPORT_INTERRUPT,
    };
    const struct export_interval interval = {
        .kind = kinds[of->kind],
        .next = XENTRACE_UNKNOWN,
        .domid = EXPORT_NOBODY,
        .vcpu = EXPORT_NOBODY,
        .cpu = of->cpu,
        .begin_cpu = of->cpu,
        .value = of->value,
        .name = "",
        .from_tsc = of->from_tsc,
        .to_tsc = of->to_tsc,
        .cycles = of->to_tsc - of->from_tsc,
        .is_complete = of->is_complete,
        .ends_in_loss = of->ends_in_loss,
    };

    return pass_on(context, &interval);
}

static int on_gap(void *context, const struct xentrace_gap *of)
{
    const struct export_interval interval = {
        .kind = EXPORT_GAP,
        .next = XENTRACE_UNKNOWN,
        .domid = EXPORT_NOBODY,
        .vcpu = EXPORT_NOBODY,
        .cpu = of->cpu,
        .begin_cpu = of->cpu,
        .value = of->records,
        .name = "",
        .from_tsc = of->from_tsc,
        .to_tsc = of->to_tsc,
        .cycles = of->to_tsc - of->from_tsc,
        .is_complete = true,
    };

    return pass_on(context, &interval);
}

/* --- The loop. --- */

static bool wants_intervals(const struct export *export)
{
    return export->format->interval &&
           (!export->format->has_tables || export->table == EXPORT_INTERVALS);
}

static bool wants_records(const struct export *export)
{
    return export->format->record &&
           (!export->format->has_tables || export->table == EXPORT_RECORDS);
}

static int read_records(struct reader *reader)
{
    struct export *export = reader->export;
    const struct xentrace_record *record;
    int r;

    while ((r = xentrace_next(export->trace, &record)) > 0) {
        export->records++;
        if (reader->error == 0)
            reader->error = export->format->record(export, record);
        if (reader->error < 0 || export->buffer.error < 0)
            return 0;
    }
    return r;
}

/* As fast as the library reads: nobody looks at the records themselves. */
static int read_intervals(struct reader *reader)
{
    int r;

    do {
        r = xentrace_run(reader->export->trace, 65536);
    } while (r > 0 && reader->error == 0 && reader->export->buffer.error == 0);
    return r < 0 ? r : 0;
}

static int read_trace(struct reader *reader)
{
    const struct xentrace_observer observer = {
        .size = sizeof(observer),
        .context = reader,
        .interval = on_interval,
        .exit = on_exit_end,
        .cpu_interval = on_cpu_interval,
        .gap = on_gap,
    };
    int r = 0;

    if (wants_intervals(reader->export))
        r = xentrace_observe(reader->export->trace, &observer);
    if (r < 0)
        return r;
    return wants_records(reader->export) ? read_records(reader) : read_intervals(reader);
}

static int finish(struct export *export)
{
    int r = export->format->finish ? export->format->finish(export) : 0;

    return r < 0 ? r : export_buffer_flush(&export->buffer);
}

static struct export *export_free(struct export *export)
{
    if (!export)
        return NULL;
    if (export->state && export->format->done)
        export->format->done(export);
    free(export->state);
    free(export);
    return NULL;
}

static void export_freep(struct export **export)
{
    export_free(*export);
}

int export_run(const struct export_options *options, struct export_result *ret_result,
               bool *ret_is_read)
{
    _cleanup_(export_freep) struct export *export = calloc(1, sizeof(*export));
    struct reader reader = {.export = export};
    int r = 0;

    *ret_is_read = false;
    if (!export)
        return -ENOMEM;
    export->format = options->format;
    export->trace = options->trace;
    export->table = options->table;
    export->buffer.fd = options->fd;
    (void)fcntl(options->fd, F_SETPIPE_SZ, PIPE_BYTES); /* fewer waits, if it is a pipe */
    export->state = calloc(1, options->format->state_bytes + 1);
    if (!export->state)
        return -ENOMEM;
    if (options->format->begin)
        r = options->format->begin(export);
    if (r < 0)
        return r;
    r = read_trace(&reader);
    *ret_is_read = r < 0;
    if (r == 0)
        r = reader.error < 0 ? reader.error : finish(export);
    if (r < 0)
        return r;
    *ret_result = (struct export_result){
        .records = export->records,
        .intervals = export->intervals,
        .bytes = export->buffer.written,
    };
    return 0;
}

/* --- For formats. --- */

/* A long one is cut after a character of its UTF-8. */
static void copy_name(char buffer[static EXPORT_NAME_MAX], const char *name)
{
    size_t length = strnlen(name, EXPORT_NAME_MAX);

    if (length == EXPORT_NAME_MAX) {
        do {
            length--;
        } while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80);
    }
    memcpy(buffer, name, length);
    buffer[length] = '\0';
}

const char *export_domain_name(const struct export *export, uint32_t domid, uint64_t tsc,
                               char buffer[static EXPORT_NAME_MAX])
{
    const char *name =
        domid == EXPORT_DOMAIN_IDLE ? "idle" : xentrace_domain_label(export->trace, domid, tsc);

    if (name)
        copy_name(buffer, name);
    else
        (void)snprintf(buffer, EXPORT_NAME_MAX, "d%" PRIu32, domid);
    return buffer;
}

uint64_t export_nsec(const struct export *export, uint64_t tsc)
{
    uint64_t first_tsc = xentrace_first_tsc(export->trace);

    return tsc > first_tsc ? xentrace_ticks_to_nsec(export->trace, tsc - first_tsc) : 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The input is a trace, in memory, in a file and through a pipe: records, fields, texts, state, a
 * part of it, measures. tests/fuzz/run builds and runs it.
 */

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/xentrace.h"

#define PIPE_BYTES 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What is wrong here is a bug that no sanitizer sees. */
static void expect(int condition)
{
    if (!condition)
        abort();
}

static int on_interval(void *context, const struct xentrace_interval *interval)
{
    uint64_t *intervals = context;

    expect(interval->to_tsc >= interval->from_tsc && interval->runstate <= XENTRACE_OFFLINE);
    (*intervals)++;
    return 0;
}

static int on_exit_end(void *context, const struct xentrace_exit *exit)
{
    (void)context;
    expect(exit->name && (!exit->is_complete || exit->to_tsc >= exit->from_tsc));
    return 0;
}

static int on_cpu_interval(void *context, const struct xentrace_cpu_interval *interval)
{
    (void)context;
    expect(interval->to_tsc >= interval->from_tsc && interval->kind <= XENTRACE_INTERRUPT);
    return 0;
}

/* Returns the TSC in the middle, and checks the order. */
static uint64_t read_records(struct xentrace *trace)
{
    const struct xentrace_record *record;
    const struct xentrace_field *fields;
    uint64_t before = 0, nr = 0, middle = 0;

    while (xentrace_next(trace, &record) > 0) {
        expect(record->tsc >= before);
        before = record->tsc;
        (void)xentrace_fields(trace, &fields);
        (void)xentrace_text(trace);
        (void)xentrace_json(trace);
        if ((++nr & (nr - 1)) == 0)
            middle = record->tsc;
    }
    return middle;
}

static void use(struct xentrace *trace)
{
    uint64_t intervals = 0, middle, offset;
    const struct xentrace_observer observer = {
        .size = sizeof(observer),
        .context = &intervals,
        .interval = on_interval,
        .exit = on_exit_end,
        .cpu_interval = on_cpu_interval,
    };
    char *json = NULL;

    expect(xentrace_observe(trace, &observer) == 0);
    middle = read_records(trace);
    (void)xentrace_damage(trace, &offset);
    if (xentrace_seek(trace, middle) == 0)
        (void)xentrace_run(trace, 0);
    if (xentrace_select(trace, 0, UINT64_MAX) == 0 && xentrace_measures(trace, &json) == 0)
        free(json);
}

/* A file is read in blocks (trace/blocks), memory is not. */
static void use_file(const uint8_t *data, size_t bytes)
{
    int fd = memfd_create("fuzz-trace", MFD_CLOEXEC);
    struct xentrace *trace = NULL;

    if (fd < 0)
        return;
    expect(write(fd, data, bytes) == (ssize_t)bytes && lseek(fd, 0, SEEK_SET) == 0);
    if (xentrace_open_fd(fd, NULL, &trace) == 0)
        use(trace);
    xentrace_close(trace);
}

static void use_pipe(const uint8_t *data, size_t bytes)
{
    struct xentrace *trace = NULL;
    int fds[2];

    if (bytes > PIPE_BYTES || pipe(fds) < 0)
        return;
    expect(write(fds[1], data, bytes) == (ssize_t)bytes);
    close(fds[1]);
    if (xentrace_open_fd(fds[0], NULL, &trace) == 0)
        use(trace);
    xentrace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct xentrace *trace = NULL;

    if (xentrace_open_memory(data, bytes, NULL, &trace) == 0)
        use(trace);
    xentrace_close(trace);
    use_file(data, bytes);
    use_pipe(data, bytes);
    return 0;
}

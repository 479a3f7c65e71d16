// SPDX-License-Identifier: GPL-2.0-or-later
/* The input is a sidecar, beside a trace of one record. */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/xentrace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A window of CPU 3 with one record, at 100. */
static const uint32_t one_record[] = {0x2001f003, 3, 16, 0x90021211, 100, 0, 0x10002};

static void use(struct xentrace *trace)
{
    static const uint64_t times[] = {0, 1, 100, 1ull << 32, INT64_MAX, UINT64_MAX};
    const struct xentrace_record *record;
    uint32_t domid;
    uint64_t tsc;

    while (xentrace_next(trace, &record) > 0)
        (void)xentrace_text(trace);
    (void)xentrace_hostname(trace), (void)xentrace_scheduler(trace), (void)xentrace_reason(trace);
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        (void)xentrace_realtime_nsec(trace, times[i]);
        (void)xentrace_find_realtime(trace, times[i], &tsc);
        (void)xentrace_ticks_to_nsec(trace, times[i]);
        (void)xentrace_nsec_to_ticks(trace, times[i]);
        (void)xentrace_domain_name(trace, 1, times[i]);
    }
    (void)xentrace_find_domain(trace, "web", &domid);
    for (size_t i = 0; xentrace_domain(trace, i); i++)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct xentrace_options options = {.size = sizeof(options)};
    struct xentrace *trace = NULL;
    int fd = memfd_create("sidecar", MFD_CLOEXEC);
    char path[64];

    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
        abort();
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    options.sidecar = path;
    if (xentrace_open_memory(one_record, sizeof(one_record), &options, &trace) != 0)
        abort();
    use(trace);
    xentrace_close(trace);
    close(fd);
    return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The order matters. To start: CPU mask, event mask, enable; each can be taken back until the last
 * succeeded. To end: mute, drain, disable; disabling first would zero the counts of losses that Xen
 * has not reported yet (tb_control() in Xen's common/trace.c).
 */

#include "daemon/host/tracing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xen/trace.h>

#include "collector/collector.h"
#include "collector/xen.h"
#include "common/event-set.h"
#include "common/protocol.h"
#include "common/util.h"
#include "daemon/host/explain.h"
#include "daemon/base/log.h"

#define BUFFER_MAX_PAGES  256u
#define BUFFER_MIN_PAGES  32u
#define BUFFERS_MAX_BYTES (UINT64_C(32) << 20) /* of all CPUs */
#define BUFFERS_MAX_PART  16u                  /* of what Xen has left */

/* For whom Xen is not as the boot left it. */
enum usage {
    USAGE_NONE, /* it is */
    USAGE_OWN,  /* sessions of a daemon, which may have been killed */
    USAGE_KEPT, /* a session that has ended with keep-enabled */
};

struct tracing {
    struct xen_host *host;
    struct collector *collector;
    enum tracing_state state;
    uint32_t event_mask; /* in force */
    const char *boot_mask_path;
    bool is_noted; /* in that file */
    enum usage usage;
    uint32_t boot_event_mask; /* before any daemon touched it */
    struct cpu_set cpus;      /* in force, as far as we know: Xen's own default is all */
    uint32_t pages;           /* 0: not mapped */
    struct tracing_use *uses; /* whose wishes are in force */
};

static struct cpu_set all_cpus(void)
{
    struct cpu_set set;

    for (size_t i = 0; i < ARRAY_SIZE(set.bits); i++)
        set.bits[i] = UINT64_MAX;
    return set;
}

/* --- What the next daemon has to know, in a file. --- */

#define NOTE_FORMAT "0x%08" PRIx32 " %s\n"

static const char *const usage_names[] = {
    [USAGE_NONE] = "unused",
    [USAGE_OWN] = "used",
    [USAGE_KEPT] = "kept",
};

/* False if PATH is not exactly what write_note() leaves: then its meaning is unknown. */
static bool read_note(const char *path, uint32_t *ret_mask, enum usage *ret_usage)
{
    _cleanup_file_ FILE *file = fopen(path, "re");
    char text[32], expected[32];
    uint32_t mask;
    size_t length;

    if (!file)
        return false;
    length = fread(text, 1, sizeof(text) - 1, file);
    text[length] = '\0';
    mask = (uint32_t)strtoul(text, NULL, 16);
    for (size_t usage = 0; usage < ARRAY_SIZE(usage_names); usage++) {
        (void)snprintf(expected, sizeof(expected), NOTE_FORMAT, mask, usage_names[usage]);
        if (strcmp(text, expected) != 0)
            continue;
        *ret_mask = mask;
        *ret_usage = (enum usage)usage;
        return true;
    }
    (void)snprintf(expected, sizeof(expected), "0x%08" PRIx32 "\n", mask); /* until 0.2 */
    if (strcmp(text, expected) != 0)
        return false;
    *ret_mask = mask;
    *ret_usage = USAGE_NONE;
    return true;
}

/* Written aside and renamed: a daemon that is killed here leaves the file whole or absent. */
static int write_note(const char *path, uint32_t mask, enum usage usage)
{
    _cleanup_free_ char *temporary = NULL;
    FILE *file;
    bool is_written;

    if (asprintf(&temporary, "%s.new", path) < 0) {
        temporary = NULL;
        return -ENOMEM;
    }
    file = fopen(temporary, "we");
    if (!file)
        return -errno;
    is_written = fprintf(file, NOTE_FORMAT, mask, usage_names[usage]) > 0;
    if (fclose(file) != 0 || !is_written || rename(temporary, path) < 0) {
        (void)unlink(temporary);
        return -EIO;
    }
    return 0;
}

static void write_own_note(struct tracing *tracing)
{
    const char *path = tracing->boot_mask_path;
    int r = write_note(path, tracing->boot_event_mask, tracing->usage);

    tracing->is_noted = true;
    if (r < 0)
        log_line(LOG_WARNING, NULL,
                 "Cannot save Xen's event mask to %s: %s. If xentraced is killed, the next start "
                 "uses the current mask in place of the boot mask, and may leave tracing enabled.",
                 path, strerror(-r));
}

/* Before Xen is changed for a session, and after it is as the boot left it. */
static void note_usage(struct tracing *tracing, enum usage usage)
{
    if (tracing->usage == usage && (tracing->is_noted || usage == USAGE_NONE))
        return;
    tracing->usage = usage;
    write_own_note(tracing);
}

/* Xen knows the boot's mask again, as it did before there was a note. */
static void forget_note(struct tracing *tracing)
{
    (void)unlink(tracing->boot_mask_path);
    tracing->usage = USAGE_NONE;
    tracing->is_noted = false;
}

static void learn_boot_mask(struct tracing *tracing)
{
    tracing->boot_event_mask = tracing->event_mask;
    tracing->is_noted =
        read_note(tracing->boot_mask_path, &tracing->boot_event_mask, &tracing->usage);
}

bool tracing_is_left_on(const struct tracing *tracing)
{
    return tracing->usage == USAGE_OWN && !tracing->uses;
}

uint32_t tracing_boot_event_mask(const struct tracing *tracing)
{
    return tracing->boot_event_mask;
}

void tracing_set_boot_event_mask(struct tracing *tracing, uint32_t mask)
{
    if (mask == tracing->boot_event_mask)
        return;
    tracing->boot_event_mask = mask;
    write_own_note(tracing);
}

/* --- Construction. --- */

int tracing_new(struct xen_host *host, struct collector *collector, const char *boot_mask_path,
                struct tracing **ret_tracing)
{
    struct tracing *tracing;
    bool allocated;
    int r;

    tracing = calloc(1, sizeof(*tracing));
    if (!tracing)
        return -ENOMEM;
    tracing->host = host;
    tracing->collector = collector;
    tracing->cpus = all_cpus();
    r = xen_host_trace_info(host, &tracing->event_mask, &allocated);
    if (r < 0) {
        free(tracing);
        return r;
    }
    tracing->boot_mask_path = boot_mask_path;
    learn_boot_mask(tracing);
    tracing->state = allocated ? TRACING_UNKNOWN : TRACING_OFF;
    *ret_tracing = tracing;
    return 0;
}

struct tracing *tracing_free(struct tracing *tracing)
{
    free(tracing);
    return NULL;
}

static int allocate_buffers(struct tracing *tracing, uint32_t pages, struct failure *failure)
{
    enum usage usage_before = tracing->usage;
    bool was_noted = tracing->is_noted;
    enum xen_step step;
    int r;

    note_usage(tracing, USAGE_OWN); /* Xen's mask is 0 meanwhile */
    r = xen_host_allocate_buffers(tracing->host, pages, &step);
    if (was_noted)
        note_usage(tracing, usage_before);
    else
        forget_note(tracing);
    if (r < 0)
        return explain_xen(failure, step, r);
    tracing->state = TRACING_OFF;
    return 0;
}

/*
 * A buffer must hold the records until the collector reads it, which does not take less time with
 * many CPUs. It is therefore 1 MiB per CPU, up to a total limit and a small part of Xen's free
 * memory, and at least the default of xentrace.
 */
static uint32_t suitable_pages(struct tracing *tracing)
{
    uint32_t nr_cpus = xen_host_info(tracing->host)->nr_cpus;
    uint64_t sum = BUFFERS_MAX_BYTES;
    uint64_t free_bytes;

    if (xen_host_free_bytes(tracing->host, &free_bytes) >= 0)
        sum = min_u64(sum, free_bytes / BUFFERS_MAX_PART);
    return (uint32_t)max_u64(min_u64(sum / nr_cpus / PAGE_BYTES, BUFFER_MAX_PAGES),
                             BUFFER_MIN_PAGES);
}

/* The size is ours to choose: less will do, too. */
static int allocate_suitable_buffers(struct tracing *tracing, struct failure *failure)
{
    uint32_t pages = suitable_pages(tracing);
    int r;

    while ((r = allocate_buffers(tracing, pages, failure)) == -ENOMEM && pages > BUFFER_MIN_PAGES)
        pages = (uint32_t)max_u64(pages / 2, BUFFER_MIN_PAGES);
    return r;
}

static int map_buffers(struct tracing *tracing, struct failure *failure)
{
    const struct xen_trace_buffers *buffers;
    int r;

    r = xen_host_map_buffers(tracing->host, &buffers);
    if (r < 0)
        return explain_xen(failure, XEN_STEP_MAP, r);
    r = collector_set_buffers(tracing->collector, buffers);
    if (r < 0)
        return explain_xen(failure, XEN_STEP_MAP, r);
    tracing->pages = buffers->pages;
    return 0;
}

int tracing_prepare(struct tracing *tracing, uint32_t wanted_pages, uint32_t default_pages,
                    struct failure *failure)
{
    uint32_t mask;
    bool allocated;
    bool fresh = false;
    int r;

    if (tracing->pages == 0) {
        r = xen_host_trace_info(tracing->host, &mask, &allocated);
        if (r < 0)
            return explain_xen(failure, XEN_STEP_TRACE_INFO, r);
        if (!allocated) {
            uint32_t pages = wanted_pages ? wanted_pages : default_pages;

            r = pages ? allocate_buffers(tracing, pages, failure)
                      : allocate_suitable_buffers(tracing, failure);
            if (r < 0)
                return r;
            fresh = true;
        }
        r = map_buffers(tracing, failure);
        if (r < 0)
            return r;
        if (fresh && wanted_pages && tracing->pages != wanted_pages)
            log_line(LOG_NOTICE, NULL, "Xen reduced the trace buffers from %u to %u pages per CPU.",
                     wanted_pages, tracing->pages);
    }
    if (!fresh && wanted_pages && wanted_pages != tracing->pages)
        return failure_set(
            failure, -EINVAL, ERROR_BUFFER_SIZE,
            "Xen's trace buffers were allocated with %u pages per CPU, and keep that size until "
            "the host is rebooted. Omit --buffer-pages, or boot Xen with tbuf_size=%u.",
            tracing->pages, wanted_pages);
    return 0;
}

static int set_event_mask(struct tracing *tracing, uint32_t mask)
{
    int r;

    note_usage(tracing, USAGE_OWN); /* from here on Xen does not know the boot's mask any more */
    r = xen_host_set_event_mask(tracing->host, mask);
    if (r < 0)
        return r;
    tracing->event_mask = mask;
    return 0;
}

static int set_cpus(struct tracing *tracing, const struct cpu_set *cpus)
{
    int r = xen_host_set_cpu_mask(tracing->host, cpus);

    if (r < 0)
        return r;
    tracing->cpus = *cpus;
    return 0;
}

/* --- The union. --- */

bool tracing_is_used(const struct tracing *tracing, const struct tracing_use *other_than)
{
    for (const struct tracing_use *use = tracing->uses; use; use = use->next)
        if (use != other_than)
            return true;
    return false;
}

/* Sets what everybody wants in Xen. Returns the step that failed in *RET_STEP. */
static int set_union(struct tracing *tracing, enum xen_step *ret_step)
{
    struct cpu_set cpus = {0};
    uint32_t mask = 0;
    int r;

    for (const struct tracing_use *use = tracing->uses; use; use = use->next) {
        mask |= use->event_mask;
        for (size_t i = 0; i < ARRAY_SIZE(cpus.bits); i++)
            cpus.bits[i] |= use->cpus.bits[i];
    }
    *ret_step = XEN_STEP_CPU_MASK;
    r = set_cpus(tracing, &cpus);
    if (r < 0)
        return r;
    *ret_step = XEN_STEP_EVENT_MASK;
    return set_event_mask(tracing, mask);
}

static void add_use(struct tracing *tracing, struct tracing_use *use)
{
    use->active = true;
    use->next = tracing->uses;
    tracing->uses = use;
}

static void remove_use(struct tracing *tracing, struct tracing_use *use)
{
    struct tracing_use **link = &tracing->uses;

    while (*link && *link != use)
        link = &(*link)->next;
    if (*link)
        *link = use->next;
    use->active = false;
}

/* Returns the step that failed in *RET_STEP. */
static int set_union_and_enable(struct tracing *tracing, bool enable, enum xen_step *ret_step)
{
    int r;

    r = set_union(tracing, ret_step);
    if (r < 0 || !enable)
        return r;
    *ret_step = XEN_STEP_ENABLE;
    return xen_host_enable(tracing->host);
}

int tracing_start(struct tracing *tracing, struct tracing_use *use, struct failure *failure)
{
    struct cpu_set cpus_before = tracing->cpus;
    uint32_t mask_before = tracing->event_mask;
    enum usage usage_before = tracing->usage;
    enum xen_step step;
    int r;

    add_use(tracing, use);
    r = set_union_and_enable(tracing, use->enable, &step);
    if (r < 0) {
        remove_use(tracing, use);
        /* A request that was refused once may be refused again: the first error is reported. */
        if (tracing->event_mask != mask_before)
            (void)set_event_mask(tracing, mask_before);
        (void)set_cpus(tracing, &cpus_before);
        note_usage(tracing, usage_before);
        return explain_xen(failure, step, r);
    }
    if (use->enable)
        tracing->state = TRACING_ON;
    return 0;
}

int tracing_mute(struct tracing *tracing, struct tracing_use *use)
{
    enum xen_step step;

    if (!use->active)
        return 0;
    remove_use(tracing, use);
    /* The last one's CPUs stay: nothing passes, and they may be asked for what they lost. */
    return tracing->uses ? set_union(tracing, &step) : set_event_mask(tracing, 0);
}

void tracing_leave(struct tracing *tracing, struct tracing_use *use, bool is_kept)
{
    remove_use(tracing, use);
    if (is_kept)
        note_usage(tracing, USAGE_KEPT);
}

int tracing_provoke(struct tracing *tracing, const struct cpu_set *cpus)
{
    int r;

    if (tracing->uses)
        return 0;
    r = set_cpus(tracing, cpus);
    return r < 0 ? r : set_event_mask(tracing, TRC_ALL & ~(TRC_GUEST & ~TRC_GEN));
}

int tracing_force_stop(struct tracing *tracing)
{
    struct cpu_set all = all_cpus();
    int disable_error, mask_error, cpus_error;

    /* Each is tried, whatever became of the others. */
    disable_error = xen_host_disable(tracing->host);
    if (disable_error >= 0)
        tracing->state = TRACING_OFF;
    mask_error = set_event_mask(tracing, tracing->boot_event_mask);
    cpus_error = set_cpus(tracing, &all);
    if (disable_error < 0)
        return disable_error;
    if (mask_error >= 0 && cpus_error >= 0)
        note_usage(tracing, USAGE_NONE);
    return mask_error < 0 ? mask_error : cpus_error;
}

int tracing_stop(struct tracing *tracing)
{
    return tracing->uses ? 0 : tracing_force_stop(tracing);
}

enum tracing_state tracing_state(const struct tracing *tracing)
{
    return tracing->state;
}

uint32_t tracing_event_mask(const struct tracing *tracing)
{
    return tracing->event_mask;
}

uint32_t tracing_buffer_pages(const struct tracing *tracing)
{
    return tracing->pages;
}

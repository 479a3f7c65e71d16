// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/progress.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/units.h"
#include "ctl/served.h"
#include "ctl/storage.h"

#define TERMINAL_INTERVAL_USEC (500 * USEC_PER_MSEC)
#define QUIET_INTERVAL_USEC    (1 * USEC_PER_SEC)
#define LINE_INTERVAL_USEC     (5 * USEC_PER_SEC) /* where lines cannot be rewritten */
#define LINE_MAX_BYTES         256u

struct progress_sample progress_read(struct json_object *session, uint64_t elapsed_usec)
{
    return (struct progress_sample){
        .elapsed_usec = elapsed_usec,
        .limit_usec = doc_number(session, "limits.time_usec"),
        .records = doc_number(session, "ledger.delivered"),
        .bytes = storage_bytes(session),
        .memory_bytes = storage_memory_bytes(session),
        .evicted = doc_number(session, "ledger.evicted"),
        .lost = doc_number(session, "ledger.lost"),
        .dropped = doc_number(session, "ledger.dropped"),
    };
}

static uint64_t per_second(uint64_t before, uint64_t now, uint64_t usec)
{
    if (!usec || now <= before)
        return 0;
    return (uint64_t)((unsigned __int128)(now - before) * USEC_PER_SEC / usec);
}

/* Whole seconds: a line that is rewritten should not flicker. */
static const char *format_seconds(char buffer[static UNITS_TEXT_MAX], uint64_t usec)
{
    return usec < USEC_PER_SEC ? strcpy(buffer, "0s")
                               : duration_format(buffer, usec - usec % USEC_PER_SEC);
}

/* "80M  6.7M/s", or "58M of 64M  evicted 123". */
static void format_place(char *buffer, size_t bytes, const struct progress_sample *before,
                         const struct progress_sample *now, uint64_t usec)
{
    char size[UNITS_TEXT_MAX], other[UNITS_TEXT_MAX];

    (void)size_format(size, now->bytes);
    if (now->memory_bytes)
        (void)snprintf(buffer, bytes, "%s of %s  evicted %" PRIu64, size,
                       size_format(other, now->memory_bytes), now->evicted);
    else
        (void)snprintf(buffer, bytes, "%s  %s/s", size,
                       size_format(other, per_second(before->bytes, now->bytes, usec)));
}

const char *progress_format(char *buffer, size_t bytes, const struct progress_sample *before,
                            const struct progress_sample *now)
{
    static const struct progress_sample start;
    char elapsed[UNITS_TEXT_MAX], limit[UNITS_TEXT_MAX], place[128];
    char dropped[48] = "";
    uint64_t usec;

    if (!before)
        before = &start;
    usec = now->elapsed_usec > before->elapsed_usec ? now->elapsed_usec - before->elapsed_usec : 0;
    if (now->dropped)
        (void)snprintf(dropped, sizeof(dropped), "  dropped %" PRIu64, now->dropped);
    format_place(place, sizeof(place), before, now, usec);
    /* what was evicted had come, too */
    (void)snprintf(buffer, bytes,
                   "%s%s%s  %" PRIu64 " records  %" PRIu64 "/s  %s  lost %" PRIu64 "%s",
                   format_seconds(elapsed, now->elapsed_usec), now->limit_usec ? " / " : "",
                   now->limit_usec ? duration_format(limit, now->limit_usec) : "", now->records,
                   per_second(before->records + before->evicted, now->records + now->evicted, usec),
                   place, now->lost, dropped);
    return buffer;
}

void progress_init(struct progress *progress, bool quiet)
{
    *progress = (struct progress){
        .on_terminal = served_has_terminal() || isatty(STDERR_FILENO),
        .quiet = quiet,
    };
}

uint64_t progress_interval_usec(const struct progress *progress)
{
    return progress->on_terminal && !progress->quiet ? TERMINAL_INTERVAL_USEC : QUIET_INTERVAL_USEC;
}

/* Longer lines would wrap and could not be rewritten. */
static void cut_to_terminal(char *line)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 2)
        return;
    if (strlen(line) >= size.ws_col)
        line[size.ws_col - 1] = 0;
}

void progress_show(struct progress *progress, const struct progress_sample *sample)
{
    char line[LINE_MAX_BYTES];

    if (progress->quiet)
        return;
    if (!progress->on_terminal && sample->elapsed_usec < progress->shown_usec + LINE_INTERVAL_USEC)
        return;
    (void)progress_format(line, sizeof(line), &progress->last, sample);
    progress->last = *sample;
    progress->shown_usec = sample->elapsed_usec;
    if (served_has_terminal()) {
        served_send(SERVED_PROGRESS, line);
    } else if (progress->on_terminal) {
        cut_to_terminal(line);
        (void)fprintf(stderr, "\r%s\033[K", line);
        progress->has_line = true;
    } else {
        (void)fprintf(stderr, "%s\n", line);
    }
}

void progress_clear(struct progress *progress)
{
    if (progress->has_line)
        (void)fputs("\r\033[K", stderr);
    progress->has_line = false;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/reading.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "trace/merge.h"

#define FIRST_USEC USEC_PER_SEC
#define EACH_USEC  (200 * USEC_PER_MSEC)

static uint64_t now_usec(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

const char *reading_format(char buffer[static READING_TEXT_MAX], const struct reading *reading,
                           uint64_t taken_bytes, uint64_t elapsed_usec)
{
    const char *space = *reading->name ? " " : "";
    char taken[UNITS_TEXT_MAX], total[UNITS_TEXT_MAX];
    uint64_t left, bytes = reading->total_bytes;

    (void)size_format(taken, taken_bytes);
    if (bytes == 0 || taken_bytes == 0 || taken_bytes > bytes) {
        (void)snprintf(buffer, READING_TEXT_MAX, "%s%s%.80s: %s", reading->verb, space,
                       reading->name, taken);
        return buffer;
    }
    left = (uint64_t)((unsigned __int128)elapsed_usec * (bytes - taken_bytes) / taken_bytes);
    (void)snprintf(buffer, READING_TEXT_MAX,
                   "%s%s%.80s: %" PRIu64 "%%, %s of %s, %" PRIu64 "s left", reading->verb, space,
                   reading->name, (uint64_t)((unsigned __int128)taken_bytes * 100 / bytes), taken,
                   size_format(total, bytes), (left + USEC_PER_SEC / 2) / USEC_PER_SEC);
    return buffer;
}

void reading_show(struct reading *reading, uint64_t taken_bytes)
{
    uint64_t now = now_usec();
    char text[READING_TEXT_MAX];

    if (now - reading->begin_usec < FIRST_USEC || now - reading->shown_usec < EACH_USEC)
        return;
    reading->shown_usec = now;
    reading->has_line = true;
    (void)fprintf(stderr, "\r\033[K%s",
                  reading_format(text, reading, taken_bytes, now - reading->begin_usec));
    (void)fflush(stderr);
}

static void on_bytes(void *context, uint64_t taken_bytes)
{
    if (taken_bytes == UINT64_MAX)
        reading_end(context);
    else
        reading_show(context, taken_bytes);
}

void reading_init(struct reading *reading, const char *verb, const char *name, uint64_t total_bytes)
{
    *reading = (struct reading){
        .verb = verb,
        .name = name,
        .total_bytes = total_bytes,
        .begin_usec = now_usec(),
    };
}

void reading_begin(struct reading *reading, struct merge *merge, const char *name,
                   uint64_t total_bytes)
{
    reading_init(reading, "Reading", name, total_bytes);
    if (isatty(STDERR_FILENO))
        merge_report_bytes(merge, on_bytes, reading);
}

void reading_end(struct reading *reading)
{
    if (reading->has_line)
        (void)fputs("\r\033[K", stderr);
    reading->has_line = false;
}

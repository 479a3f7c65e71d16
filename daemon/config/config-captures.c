// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A capture that nobody looks at must not fill the disk, nor end there: by default it has segments,
 * and deletes its oldest ones when the disk has no more than is to stay free.
 */

#include "daemon/config/config-captures.h"

#include <stdio.h>
#include <string.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/name.h"
#include "daemon/config/capture-config.h"
#include "daemon/config/config-reading.h"

#define WORD          "capture"
#define SEGMENT_BYTES (UINT64_C(100) << 20)

/* The size of a segment if no key sets it. */
static void settle_segments(struct capture_config *capture)
{
    if (capture->segment_size_bytes || capture->segment_time_usec)
        return;
    capture->segment_size_bytes = SEGMENT_BYTES;
    if (capture->keep_size_bytes)
        capture->segment_size_bytes = max_u64(min_u64(capture->keep_size_bytes / 8, SEGMENT_BYTES),
                                              CAPTURE_SEGMENT_MIN_BYTES);
}

static void check_capture(struct config_reading *reading, struct capture_config *capture,
                          const struct config_origin *origin)
{
    char text[UNITS_TEXT_MAX];
    uint64_t least_bytes;

    if (strcmp(capture->name, PROTOCOL_RECORDER) == 0) {
        (void)config_refuse(
            reading, origin,
            "'%s' is not a valid name for a capture: it is the name of the flight recorder",
            capture->name);
        return;
    }
    if (name_is_of_user(capture->name)) {
        (void)config_refuse(reading, origin,
                            "'%s' is not a valid name for a capture: names that begin with 'uid' "
                            "and a number are of captures of users other than root",
                            capture->name);
        return;
    }
    settle_segments(capture);
    least_bytes = 2 * capture->segment_size_bytes + CAPTURE_SEGMENT_MIN_BYTES;
    if (capture->keep_size_bytes && capture->keep_size_bytes < least_bytes)
        (void)config_refuse(
            reading, origin,
            "keep-size= of the capture '%s' is less than two segments and 1 MiB: use at least %s",
            capture->name, size_format(text, least_bytes));
}

void config_check_captures(struct config_reading *reading)
{
    struct capture_configs *configs = &reading->config.captures;

    for (size_t i = 0; i < configs->count; i++) {
        char section[sizeof(WORD) + 1 + SESSION_NAME_MAX];
        const struct config_setting *header;

        (void)snprintf(section, sizeof(section), WORD " %s", configs->captures[i].name);
        header = config_find_setting(reading, section, NULL);
        if (header) /* else there is no memory for it, which is noted */
            check_capture(reading, &configs->captures[i], &header->origin);
    }
}

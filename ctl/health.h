/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether all is well, judged from a status document: the first lines of status and monitor, and
 * the exit code. One thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/units.h"
#include "ctl/color.h"
#include "ctl/doc.h"

/* A loss is reported as happening now if it is no older. */
#define HEALTH_LOSS_NOW_USEC (10 * USEC_PER_SEC)

enum health_level {
    HEALTH_GOOD, /* also: off by configuration */
    HEALTH_WARN, /* records come, but something needs attention */
    HEALTH_BAD,  /* records are being lost, or the recorder does not run */
};

#define HEALTH_WARNINGS_MAX 16u

struct health {
    enum health_level level;
    int exit_code;                       /* of status: an enum ctl_exit */
    char *headline;                      /* a sentence or two, without a newline; NULL: no memory */
    char *warnings[HEALTH_WARNINGS_MAX]; /* a sentence each */
    size_t nr_warnings;
};

/* Judges STATUS, which was made printable. HEALTH needs health_done(). */
void health_read(struct health *health, struct json_object *status);
void health_done(struct health *health);

#define _cleanup_health_ _cleanup_(health_done)

/* The headline, and the warnings in a line each. */
void health_print(FILE *file, const struct health *health, const struct palette *palette);

/* Whether SESSION, which may be ended, loses records now. */
bool health_loses_now(struct json_object *session);

/* How long before the document was made SESSION lost records; 0: it has not, as far as known. */
uint64_t health_loss_age_usec(struct json_object *session);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon's log: the journal with fields when systemd runs it, else lines on standard error.
 * Main thread only: collector/ and common/ never log.
 *
 * The journal's socket and the reader of a pipe may hang. So once log_start() was called, a worker
 * writes the lines, and logging never waits. Lines for which its queue has no room are counted; the
 * log reports their number when it accepts lines again.
 *
 * Lines on account of users other than root are limited for each of them (log-quota.h); the sum of
 * those that are left out follows in one line.
 */

#include <syslog.h>

#include "common/util.h"

struct requester;
struct sd_event;

/* Finds out where the log goes. Call it first. */
void log_open(void);

/* Lines of a lower priority than LEVEL (LOG_ERR to LOG_DEBUG) are left out; LOG_INFO at first. */
void log_set_level(int level);

/*
 * From now on, a worker writes the lines. EVENT is referenced. Returns 0; or a negative errno, and
 * lines are still written by the caller.
 */
int log_start(struct sd_event *event);
/*
 * When the event loop has ended: waits until all lines are written, for a second at most. What is
 * logged afterwards is written at once, or left out if the log hangs.
 */
void log_stop(void);

/*
 * One line of PRIORITY (LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG) about SESSION, or
 * about the daemon if it is NULL.
 */
_printf_(3, 4) void log_line(int priority, const char *session, const char *format, ...);

/*
 * The subject of a line, as fields of the journal; NULL: unknown. A text that is too long for a
 * field is omitted.
 */
struct log_about {
    const char *id;      /* MESSAGE_ID=: LOG_ID_... (log-id.h) */
    const char *session; /* SESSION=; the line begins with it */
    const char *cpus;    /* CPU=: "3", "0-3,7" */
    const char *file;    /* FILE= */
    const char *domain;  /* DOMAIN=: its name, or its number if it has none */
    const char *trigger; /* TRIGGER= */

    /* Who causes the line; NULL: the owner of SESSION, or the daemon itself. */
    const struct requester *who;
};

/*
 * Lines about the session NAME are on account of OWNER from now on; NULL: of nobody. At most
 * LOG_OWNERS_MAX sessions have an owner at a time.
 */
#define LOG_OWNERS_MAX 32u
void log_set_owner(const char *name, const struct requester *owner);

/* One line, with fields. */
_printf_(3, 4) void log_event(int priority, const struct log_about *about, const char *format, ...);

#define log_error(...)   log_line(LOG_ERR, NULL, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, NULL, __VA_ARGS__)
#define log_info(...)    log_line(LOG_INFO, NULL, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_DEBUG, NULL, __VA_ARGS__)

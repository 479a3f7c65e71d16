/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon's log: the journal with fields when systemd runs it, else lines on standard error.
 * Main thread only: collector/ and common/ never log.
 */

#include <syslog.h>

#include "common/util.h"

/* Finds out where the log goes. Call it first. */
void log_open(void);

/*
 * One line of PRIORITY (LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO) about SESSION, or about the
 * daemon if it is NULL.
 */
_printf_(3, 4) void log_line(int priority, const char *session, const char *format, ...);

#define log_error(...)   log_line(LOG_ERR, NULL, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, NULL, __VA_ARGS__)
#define log_info(...)    log_line(LOG_INFO, NULL, __VA_ARGS__)

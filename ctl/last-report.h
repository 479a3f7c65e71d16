/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The report that a trigger with report=yes has beside its last snapshot. It may not be there yet,
 * or not any more. A disk that does not answer must not block a command, so a child process reads
 * it. Main thread.
 */

#include <stdbool.h>

#define LAST_REPORT_MAX 512u

/*
 * The first finding of the report at PATH, or that nothing stands out, as one line that is
 * printable. False: it is not there, has neither, or the disk does not answer.
 */
bool last_report_read(const char *path, char ret_finding[static LAST_REPORT_MAX]);

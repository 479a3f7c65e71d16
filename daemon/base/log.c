// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * systemd says in JOURNAL_STREAM which device and inode its stream has (systemd.exec(5)): only if
 * standard error is that stream is it the journal's.
 */

#include "daemon/base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

/* The one mutable global beside arg_*: where the log goes is a fact about the process. */
static bool log_to_journal;

void log_open(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uint64_t device, inode;
    struct stat st;

    log_to_journal = stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
                     fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_line(int priority, const char *session, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    /* A client's path may be in it: one call is one line. */
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == '\x7f')
            *p = '?';

    /* A log that cannot be written is not worth dying for. */
    if (!log_to_journal)
        (void)fprintf(stderr, "xentraced: %s%s%s\n", session ? session : "", session ? ": " : "",
                      text);
    else if (session)
        (void)sd_journal_send("MESSAGE=%s: %s", session, text, "PRIORITY=%i", priority,
                              "XENTRACED_SESSION=%s", session, NULL);
    else
        (void)sd_journal_send("MESSAGE=%s", text, "PRIORITY=%i", priority, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A request that could not be carried out: the error's name (common/protocol.h) and one
 * sentence for the person who asked, which says what happened and what to do.
 */

#include <stdarg.h>
#include <stdio.h>

#include "common/utf8.h"
#include "common/util.h"

struct failure {
    const char *name; /* static */
    char text[768];
    char parameter[64]; /* of SERVICE_ERROR_PARAMETER: its name */
};

/* Sets FAILURE and returns ERROR, which is negative, for `return failure_set(...)`. */
_printf_(4, 5) static inline int failure_set(struct failure *failure, int error, const char *name,
                                             const char *format, ...)
{
    va_list arguments;

    failure->name = name;
    va_start(arguments, format);
    (void)vsnprintf(failure->text, sizeof(failure->text), format, arguments);
    va_end(arguments);
    (void)utf8_trim(failure->text); /* a long path: JSON is valid UTF-8 only */
    return error;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each sentence shows how the value would be written. */

#include "ctl/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "ctl/str.h"

int values_set_duration(const char *option, const char *text, uint64_t unit_usec,
                        uint64_t *ret_usec, char **ret_error)
{
    uint64_t usec;
    int r;

    r = duration_parse(text, unit_usec, &usec);
    if (r < 0)
        return str_refuse(-EINVAL, ret_error,
                          "%s \"%s\" is not a time: write 10, 10s, 500ms or 5min.", option, text);
    if (usec == 0)
        return str_refuse(-EINVAL, ret_error, "%s %s: the time must be more than nothing.", option,
                          text);
    *ret_usec = usec;
    return 0;
}

int values_set_size(const char *option, const char *text, uint64_t unit_bytes, bool zero_is_fine,
                    uint64_t *ret_bytes, char **ret_error)
{
    uint64_t bytes;
    int r;

    r = size_parse(text, unit_bytes, &bytes);
    if (r < 0)
        return str_refuse(-EINVAL, ret_error, "%s \"%s\" is not a size: write 64M, 1.5G or 4096B.",
                          option, text);
    if (bytes == 0 && !zero_is_fine)
        return str_refuse(-EINVAL, ret_error, "%s %s: the size must be more than nothing.", option,
                          text);
    *ret_bytes = bytes;
    return 0;
}

int values_set_count(const char *option, const char *text, const char *what, uint32_t *ret_count,
                     char **ret_error)
{
    unsigned long count;
    char *end;

    errno = 0;
    count = strtoul(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || count < 1 || count > UINT32_MAX)
        return str_refuse(-EINVAL, ret_error, "%s \"%s\" is not a number of %s, 1 or more.", option,
                          text, what);
    *ret_count = (uint32_t)count;
    return 0;
}

int values_set_output(const char *text, const char **ret_path, char **ret_error)
{
    if (!*text)
        return str_refuse(-EINVAL, ret_error,
                          "-o needs the name of a file, or - for standard output.");
    *ret_path = text;
    return 0;
}

int values_check_name(const char *name, const char *what, char **ret_error)
{
    if (*name && !strchr(name, '/'))
        return 0;
    return str_refuse(-EINVAL, ret_error,
                      "\"%s\" cannot be the name of %s: a name is a word without a slash; -o names "
                      "a file.",
                      name, what);
}

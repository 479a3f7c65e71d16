// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/base/name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/protocol.h"
#include "common/text.h"

#define STEM_MAX 42 /* "-20261121-060512" and "-99999" fit after it */

bool name_is_valid(const char *name, size_t max_length)
{
    return text_is_name(name) && strlen(name) <= max_length;
}

int name_check(const char *name, struct failure *failure)
{
    if (name_is_valid(name, SESSION_NAME_MAX))
        return 0;
    return failure_set(failure, -EINVAL, ERROR_INVALID,
                       "'%s' is not a valid name: use 1 to %u letters, digits or ._-@: and do not "
                       "begin with '.' or '-'.",
                       name, SESSION_NAME_MAX);
}

#define USER_PREFIX "uid"

bool name_is_of_user(const char *name)
{
    size_t digits;

    if (strncmp(name, USER_PREFIX, strlen(USER_PREFIX)) != 0)
        return false;
    digits = strspn(name + strlen(USER_PREFIX), "0123456789");
    return digits > 0 && name[strlen(USER_PREFIX) + digits] == '-';
}

int name_of_user(uid_t uid, const char *name, char ret_name[static SESSION_NAME_MAX + 1],
                 struct failure *failure)
{
    char prefix[sizeof(USER_PREFIX "4294967295-")];
    size_t length;
    int r;

    (void)snprintf(prefix, sizeof(prefix), USER_PREFIX "%u-", (unsigned int)uid);
    length = strlen(prefix);
    if (!name[0]) {
        (void)snprintf(ret_name, SESSION_NAME_MAX + 1, "%.*s", (int)length - 1, prefix);
        return 0;
    }
    r = name_check(name, failure);
    if (r < 0)
        return r;
    if (strncmp(name, prefix, length) == 0)
        length = 0;
    if (length + strlen(name) > SESSION_NAME_MAX)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "'%s' is too long: captures of users other than root begin with '%s', "
                           "and have at most %u characters in all.",
                           name, prefix, SESSION_NAME_MAX);
    (void)snprintf(ret_name, SESSION_NAME_MAX + 1, "%.*s%.*s", (int)length, prefix,
                   (int)(SESSION_NAME_MAX - length), name);
    return 0;
}

void name_number(const char *name, unsigned int number, char ret_name[static SESSION_NAME_MAX + 1])
{
    char suffix[16];
    int length = snprintf(suffix, sizeof(suffix), "-%03u", number);

    (void)snprintf(ret_name, SESSION_NAME_MAX + 1, "%.*s%s", (int)SESSION_NAME_MAX - length, name,
                   suffix);
}

void name_make_up(const char *stem, bool (*is_taken)(const void *userdata, const char *name),
                  const void *userdata, char ret_name[static SESSION_NAME_MAX + 1])
{
    char when[16], first[SESSION_NAME_MAX + 1];
    time_t now = time(NULL);
    struct tm tm;

    if (!localtime_r(&now, &tm) || strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm) == 0)
        (void)snprintf(when, sizeof(when), "now");
    (void)snprintf(first, sizeof(first), "%.*s-%s", STEM_MAX, stem, when);
    (void)strcpy(ret_name, first);
    for (unsigned int i = 2; i <= NAME_NUMBER_MAX && is_taken(userdata, ret_name); i++)
        name_number(first, i, ret_name);
}

// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/base/requester.h"

#include <stdio.h>

bool requester_is_user(const struct requester *requester)
{
    return requester->is_set && requester->person != PERSON_ROOT;
}

const char *requester_describe(char text[static REQUESTER_TEXT_MAX],
                               const struct requester *requester)
{
    char user[32], process[REQUESTER_COMM_MAX + 32] = "";

    if (requester->uid == (uid_t)-1)
        (void)snprintf(user, sizeof(user), "an unknown user");
    else
        (void)snprintf(user, sizeof(user), "%sUID %u", requester->uid == 0 ? "root, " : "",
                       (unsigned int)requester->uid);
    if (requester->pid > 0)
        (void)snprintf(process, sizeof(process), " (%s%sPID %d)", requester->comm,
                       requester->comm[0] ? ", " : "", (int)requester->pid);
    (void)snprintf(text, REQUESTER_TEXT_MAX, "%s%s", user, process);
    return text;
}

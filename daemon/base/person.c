// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/base/person.h"

#include <stdio.h>

const char *person_describe(char text[static PERSON_TEXT_MAX], uid_t person)
{
    if (person == PERSON_OTHERS)
        (void)snprintf(text, PERSON_TEXT_MAX, "users whom the group database does not name");
    else
        (void)snprintf(text, PERSON_TEXT_MAX, "UID %u", (unsigned int)person);
    return text;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* A user who is not in the table takes the place of the one who was quiet for longest. */

#include "daemon/control/audit.h"

#include <string.h>
#include <time.h>

#include "common/protocol.h"
#include "common/units.h"
#include "daemon/base/log.h"

void audit_name_object(struct audit_call *call, const char *name_untrusted)
{
    if (name_is_valid(name_untrusted, SESSION_NAME_MAX))
        (void)snprintf(call->object, sizeof(call->object), "%s", name_untrusted);
}

static struct audit_user *audit_find_user(struct audit *audit, uid_t person)
{
    struct audit_user *oldest = &audit->users[0];

    for (size_t i = 0; i < AUDIT_USERS_MAX; i++) {
        struct audit_user *user = &audit->users[i];

        if (user->since_usec && user->person == person)
            return user;
        if (user->since_usec < oldest->since_usec)
            oldest = user;
    }
    *oldest = (struct audit_user){.person = person};
    return oldest;
}

bool audit_admit(struct audit *audit, uid_t person, uint64_t now_usec, uint64_t *ret_suppressed)
{
    struct audit_user *user = audit_find_user(audit, person);

    if (!user->since_usec || now_usec - user->since_usec >= AUDIT_INTERVAL_USEC) {
        user->since_usec = now_usec;
        user->lines = 0;
    }
    if (user->lines >= AUDIT_LINES_MAX) {
        user->suppressed++;
        return false;
    }
    user->lines++;
    *ret_suppressed = user->suppressed;
    user->suppressed = 0;
    return true;
}

static uint64_t now_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC + 1;
}

static void audit_write(struct audit *audit, const struct audit_call *call, bool is_limited,
                        const char *result, const char *reason)
{
    char who[REQUESTER_TEXT_MAX], person[PERSON_TEXT_MAX];
    uint64_t suppressed = 0;

    if (!call->what)
        return;
    if (is_limited && call->who.person != PERSON_ROOT &&
        !audit_admit(audit, call->who.person, now_usec(), &suppressed))
        return;
    if (suppressed > 0)
        log_line(LOG_NOTICE, NULL, "Audit: %llu calls of %s were not logged.",
                 (unsigned long long)suppressed, person_describe(person, call->who.person));
    log_line(LOG_NOTICE, call->object[0] ? call->object : NULL, "Audit: %s%s%s by %s: %s.%s%s",
             call->what, call->object[0] ? " " : "", call->object,
             requester_describe(who, &call->who), result, reason[0] ? " " : "", reason);
}

void audit_log(struct audit *audit, const struct audit_call *call, const struct failure *failure)
{
    bool is_refused = failure && strcmp(failure->name, ERROR_NOT_PERMITTED) == 0;
    bool is_trigger = call->what && strcmp(call->what, PROTOCOL_TRIGGER) == 0;

    audit_write(audit, call, failure || is_trigger,
                is_refused ? "refused"
                : failure  ? "failed"
                           : "done",
                failure ? failure->text : "");
}

void audit_log_abandoned(struct audit *audit, const struct audit_call *call)
{
    audit_write(audit, call, false, "under way", "The client left before the answer.");
}

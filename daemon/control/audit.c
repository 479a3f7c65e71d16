// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/control/audit.h"

#include <string.h>

#include "common/protocol.h"
#include "daemon/base/log.h"

void audit_name_object(struct audit_call *call, const char *name_untrusted)
{
    if (name_is_valid(name_untrusted, SESSION_NAME_MAX))
        (void)snprintf(call->object, sizeof(call->object), "%s", name_untrusted);
}

static void audit_write(const struct audit_call *call, const char *result, const char *reason)
{
    const struct log_about about = {.session = call->object[0] ? call->object : NULL,
                                    .who = &call->who};
    char who[REQUESTER_TEXT_MAX];

    if (call->what)
        log_event(LOG_NOTICE, &about, "Audit: %s%s%s by %s: %s.%s%s", call->what,
                  call->object[0] ? " " : "", call->object, requester_describe(who, &call->who),
                  result, reason[0] ? " " : "", reason);
}

void audit_log(const struct audit_call *call, const struct failure *failure)
{
    bool is_refused = failure && strcmp(failure->name, ERROR_NOT_PERMITTED) == 0;

    audit_write(call,
                is_refused ? "refused"
                : failure  ? "failed"
                           : "done",
                failure ? failure->text : "");
}

void audit_log_abandoned(const struct audit_call *call)
{
    audit_write(call, "under way", "The client left before the answer.");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table has the least role for one's own capture and the least for anybody else's. Sentences of
 * refusals are written here, beside what they refuse, so that both change together.
 */

#include "daemon/control/rights.h"

#include <errno.h>

#include "common/protocol.h"

static const struct rule {
    enum role own;   /* the least that may do it to its own capture */
    enum role other; /* ... to another user's, or where nobody owns it */
    const char *what;
    const char *hint; /* what else to do; "" for nothing */
} rules[RIGHTS] = {
    [RIGHT_STATUS] = {ROLE_VIEW, ROLE_VIEW, "see the status", ""},
    [RIGHT_TRIGGER] = {ROLE_VIEW, ROLE_VIEW, "fire a trigger", ""},
    [RIGHT_SNAPSHOT] = {ROLE_VIEW, ROLE_VIEW, "take a snapshot", ""},
    [RIGHT_SNAPSHOT_OUTPUT] = {ROLE_OPERATE, ROLE_OPERATE, "choose where a snapshot is written",
                               "Leave -o out: the snapshot goes to the state directory."},
    [RIGHT_SNAPSHOT_LIVE] = {ROLE_VIEW, ROLE_VIEW, "read the newest records", ""},
    [RIGHT_FILES] = {ROLE_VIEW, ROLE_VIEW, "list the files", ""},
    [RIGHT_VACUUM] = {ROLE_ROOT, ROLE_ROOT, "vacuum the state directory", "Use sudo."},
    [RIGHT_REMOVE] = {ROLE_ROOT, ROLE_ROOT, "remove files", "Use sudo."},
    [RIGHT_START_OUTPUT] = {ROLE_OPERATE, ROLE_OPERATE, "start captures", "Use sudo."},
    [RIGHT_START_STATE_DIR] = {ROLE_ROOT, ROLE_ROOT, "capture into the state directory",
                               "Name a file of your own with -o FILE, or use sudo."},
    [RIGHT_START_KEEP_ENABLED] = {ROLE_ROOT, ROLE_ROOT, "leave tracing enabled after a capture",
                                  "Without a reader, Xen's buffers stay full. Leave "
                                  "--keep-enabled out, or use sudo."},
    [RIGHT_START_BUFFER_PAGES] = {ROLE_ROOT, ROLE_ROOT, "choose the size of Xen's trace buffers",
                                  "It holds until the next boot. Leave --buffer-pages out, or use "
                                  "sudo."},
    [RIGHT_STOP] = {ROLE_OPERATE, ROLE_ROOT, "stop captures", "Use sudo."},
    [RIGHT_ABORT] = {ROLE_OPERATE, ROLE_ROOT, "abort captures", "Use sudo."},
    [RIGHT_ROTATE] = {ROLE_OPERATE, ROLE_ROOT, "rotate captures", "Use sudo."},
    [RIGHT_RELOAD] = {ROLE_ROOT, ROLE_ROOT, "reload the configuration", "Use sudo."},
    [RIGHT_START_RECORDER] = {ROLE_ROOT, ROLE_ROOT, "start the flight recorder", "Use sudo."},
    [RIGHT_STOP_RECORDER] = {ROLE_ROOT, ROLE_ROOT, "stop the flight recorder",
                             "Its history is then lost. Use sudo."},
};

const char *role_name(enum role role)
{
    static const char *const names[ROLES] = {
        [ROLE_NONE] = "none",
        [ROLE_VIEW] = "view",
        [ROLE_OPERATE] = "operate",
        [ROLE_ROOT] = "root",
    };

    return names[role];
}

/* Who has at least ROLE, as the subject of a sentence. */
static const char *describe_those_with(enum role role)
{
    static const char *const texts[ROLES] = {
        [ROLE_NONE] = "Everybody",
        [ROLE_VIEW] = "Only the group xentrace, the group set by control-group=, and root",
        [ROLE_OPERATE] = "Only root and members of the group set by control-group= (role operate)",
        [ROLE_ROOT] = "Only root",
    };

    return texts[role];
}

int rights_check(enum role role, enum right right, bool is_own, struct failure *failure)
{
    const struct rule *rule = &rules[right];
    enum role least = is_own ? rule->own : rule->other;

    if (role >= least)
        return 0;
    /* Else an operator would read that operators may, and not why this one may not. */
    if (role >= rule->own)
        return failure_set(failure, -EPERM, ERROR_NOT_PERMITTED,
                           "Another user started this one: only root may %s of others. %s",
                           rule->what, rule->hint);
    return failure_set(failure, -EPERM, ERROR_NOT_PERMITTED, "%s may %s. %s",
                       describe_those_with(least), rule->what, rule->hint);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A reload: which values have changed, and which of them can be applied. Any thread. */

#include "daemon/config/config-reading.h"

struct config_key;

enum config_change_kind {
    CONFIG_CHANGED, /* a key's value */
    CONFIG_ADDED,   /* a section with a name: key is NULL */
    CONFIG_REMOVED, /* likewise */
};

struct config_change {
    enum config_change_kind kind;
    char title[TRIGGER_NAME_MAX + 32]; /* "daemon", "trigger crash" */
    const struct config_key *key;
    char value[CONFIG_LIST_MAX]; /* as typed, or the default */
    char origin[512];            /* "FILE:LINE", or "default" */
    bool is_applied;             /* by the reload; else a restart is needed */
};

struct config_changes {
    struct config_change *items;
    size_t count;
};

static inline void config_changes_done(struct config_changes *changes)
{
    free(changes->items);
}

/*
 * Compares RUNNING with READING, which has no errors. *RET_MERGED is RUNNING with the changes that
 * a reload may apply. -ENOMEM. Free the changes.
 */
int config_merge(const struct config *running, const struct config_reading *reading,
                 struct config *ret_merged, struct config_changes *ret_changes);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Whether the triggers that were read make sense. Any thread. */

#include "daemon/config/config-reading.h"

/*
 * Called when all files are read: sets each trigger's condition from its keys, and refuses triggers
 * that could never fire.
 */
void config_check_triggers(struct config_reading *reading);

/*
 * Whether the flight recorder of CONFIG records what TRIGGER waits for; if it does not,
 * *RET_MISSING is the list of events to add, which lives as long as TRIGGER.
 */
bool config_records_for(const struct config *config, const struct trigger_config *trigger,
                        const char **ret_missing);

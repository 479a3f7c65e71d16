/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the keys of the [capture NAME] sections mean together (capture-config.h). Any thread. */

struct config_reading;

/*
 * When all files are read: gives captures without a segment-size= or segment-time= one, and refuses
 * those whose keys do not go together.
 */
void config_check_captures(struct config_reading *reading);

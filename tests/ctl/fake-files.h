/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The fake daemon's state directory: four traces, of which one is of a capture that runs. */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct json_object;

/* Handles Files, Vacuum and Remove. 0: another method. */
int fake_files_handle(sd_bus_message *message);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The fake daemon's state directory: four traces, of which one is of a capture that runs. */

#include "tests/ctl/fake-server.h"

/* Handles Files, Vacuum and Remove. False: another method. */
bool fake_files_handle(const struct fake_call *call);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the commands inside `xensim run` share.
 */

#include "sim.h"

/* sim_attach(), with a sentence on stderr if it fails. */
int control_attach(struct sim *sim);

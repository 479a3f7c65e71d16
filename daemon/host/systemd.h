/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What is asked of systemd, as a client of its private socket: why it ends us, and to start other
 * units. Main thread; waits, for a second at most, for its answer.
 */

#include <stdbool.h>

/*
 * Whether systemd is stopping this service without starting it again (`systemctl stop`, the host's
 * shutdown): only then is what it keeps for us lost. False if it is not systemd that runs us, or
 * does not say.
 */
bool systemd_stops_for_good(void);

/*
 * Has UNIT started, without waiting until it runs. Returns 0 or a negative errno: of connect(2) if
 * it is not systemd that runs this machine, -ENOENT if there is no such unit.
 */
int systemd_start_unit(const char *unit);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Why the service manager ends us: to start us again, or for good. Main thread; waits, for a second
 * at most, for systemd's answer.
 */

#include <stdbool.h>

/*
 * Whether systemd is stopping this service without starting it again (`systemctl stop`, the host's
 * shutdown): only then is what it keeps for us lost. False if it is not systemd that runs us, or
 * does not say.
 */
bool service_is_stopped_for_good(void);

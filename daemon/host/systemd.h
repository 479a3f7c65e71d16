/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All communication with systemd: requests through its private socket, sd_notify(3), and the fd
 * store (fd-store.h). Because a busy or stopped systemd blocks its clients, everything runs on one
 * worker, in the order of the requests.
 *
 * Main thread; nothing here waits. Each callback is called once, from the event loop; from inside
 * the function that was given it only where there is no memory for the request. After
 * systemd_free() none is called any more: what USERDATA points to must live until then.
 */

#include <stdbool.h>

struct sd_event;
struct systemd;
struct workers;

/* -ENOMEM, -EAGAIN. */
int systemd_new(struct sd_event *event, struct workers *workers, struct systemd **ret_systemd);

/* Requests under way are still carried out if the process lives. Takes NULL; returns NULL. */
struct systemd *systemd_free(struct systemd *systemd);

/*
 * Has UNIT started, without waiting until it runs. ERROR of DONE: 0 or a negative errno: of
 * connect(2) if systemd does not run this machine, -ENOENT if there is no such unit, -ENOMEM.
 */
void systemd_start_unit(struct systemd *systemd, const char *unit,
                        void (*done)(void *userdata, const char *unit, int error), void *userdata);

/*
 * Asks whether systemd is stopping this service without starting it again (`systemctl stop`, the
 * host's shutdown): only then is what it keeps for us lost. The answer is false if systemd does not
 * run this service, or does not answer within 2 s.
 */
void systemd_ask_stop(struct systemd *systemd, void (*answer)(void *userdata, bool for_good),
                      void *userdata);

/* sd_notify(3) with TEXT. Without a service manager nothing happens. */
void systemd_notify(struct systemd *systemd, const char *text);

/* DONE is called when all earlier requests are done, or after 2 s. */
void systemd_flush(struct systemd *systemd, void (*done)(void *userdata), void *userdata);

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * systemd's private socket is there without a message bus, and answers root.
 *
 * Source: org.freedesktop.systemd1(5): GetUnitByPID(), properties Job and JobType, StartUnit().
 */

#include "daemon/host/systemd.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "common/units.h"
#include "common/util.h"

#define ADDRESS     "unix:path=/run/systemd/private"
#define DESTINATION "org.freedesktop.systemd1"
#define WAIT_USEC   USEC_PER_SEC

static int open_manager(sd_bus **ret_bus)
{
    sd_bus *bus = NULL;
    int r;

    r = sd_bus_new(&bus);
    if (r >= 0)
        r = sd_bus_set_address(bus, ADDRESS);
    if (r >= 0)
        r = sd_bus_set_method_call_timeout(bus, WAIT_USEC);
    if (r >= 0)
        r = sd_bus_start(bus);
    if (r < 0) {
        sd_bus_unref(bus);
        return r;
    }
    *ret_bus = bus;
    return 0;
}

/* The unit's job, as an object path; "/" if it has none. Free *RET_PATH. */
static int read_job(sd_bus *bus, const char *unit, char **ret_path)
{
    sd_bus_message *reply = NULL;
    const char *path;
    int r;

    r = sd_bus_get_property(bus, DESTINATION, unit, "org.freedesktop.systemd1.Unit", "Job", NULL,
                            &reply, "(uo)");
    if (r >= 0)
        r = sd_bus_message_read(reply, "(uo)", NULL, &path);
    if (r >= 0) {
        *ret_path = strdup(path);
        r = *ret_path ? 0 : -ENOMEM;
    }
    sd_bus_message_unref(reply);
    return r;
}

static int read_unit(sd_bus *bus, char **ret_path)
{
    sd_bus_message *reply = NULL;
    const char *path;
    int r;

    r = sd_bus_call_method(bus, DESTINATION, "/org/freedesktop/systemd1",
                           "org.freedesktop.systemd1.Manager", "GetUnitByPID", NULL, &reply, "u",
                           (uint32_t)getpid());
    if (r >= 0)
        r = sd_bus_message_read(reply, "o", &path);
    if (r >= 0) {
        *ret_path = strdup(path);
        r = *ret_path ? 0 : -ENOMEM;
    }
    sd_bus_message_unref(reply);
    return r;
}

bool systemd_stops_for_good(void)
{
    _cleanup_free_ char *unit = NULL, *job = NULL, *type = NULL;
    sd_bus *bus = NULL;
    bool for_good;
    int r;

    r = open_manager(&bus);
    if (r >= 0)
        r = read_unit(bus, &unit);
    if (r >= 0)
        r = read_job(bus, unit, &job);
    if (r >= 0)
        r = sd_bus_get_property_string(bus, DESTINATION, job, "org.freedesktop.systemd1.Job",
                                       "JobType", NULL, &type);
    for_good = r >= 0 && strcmp(type, "stop") == 0;
    sd_bus_flush_close_unref(bus);
    return for_good;
}

int systemd_start_unit(const char *unit)
{
    sd_bus *bus = NULL;
    int r;

    r = open_manager(&bus);
    if (r < 0)
        return r;
    r = sd_bus_call_method(bus, DESTINATION, "/org/freedesktop/systemd1",
                           "org.freedesktop.systemd1.Manager", "StartUnit", NULL, NULL, "ss", unit,
                           "fail");
    sd_bus_flush_close_unref(bus);
    return r < 0 ? r : 0;
}

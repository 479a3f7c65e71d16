// SPDX-License-Identifier: GPL-2.0-or-later
/* A trigger as an object of docs/control-protocol.md. */

#include "daemon/triggers/trigger.h"

#include "daemon/base/json-put.h"

json *trigger_document(const struct trigger *trigger)
{
    const struct trigger_config *config = &trigger->config;
    const struct trigger_suppressed *suppressed = &trigger->suppressed;
    json *object = json_object_new_object();
    json *counts = json_object_new_object();

    put_text(object, "name", config->name);
    put_text(object, "condition", config->condition_text);
    put_text(object, "state", trigger_state_name(trigger->state));
    put_count(object, "delay_usec", config->delay_usec);
    put_count(object, "cooldown_usec", config->cooldown_usec);
    put_count(object, "max_per_day", config->max_per_day);
    put_count(object, "last_usec", config->last_usec);
    put_count(object, "fired", trigger->fired);
    put_count(object, "last_fired_ns", trigger->last_fired_ns);
    put_text(object, "last_reason", trigger->last_reason);
    put_count(object, "written", trigger->written);
    put_text(object, "last_snapshot", trigger->last_snapshot);
    put_text(object, "last_error", trigger->last_error);
    put_count(counts, "busy", suppressed->busy);
    put_count(counts, "cooldown", suppressed->cooldown);
    put_count(counts, "max_per_day", suppressed->max_per_day);
    put(object, "suppressed", counts);
    put_count(object, "last_suppressed_ns", suppressed->last_ns);
    put_text(object, "last_suppressed_reason", suppressed->last_reason);
    return object;
}

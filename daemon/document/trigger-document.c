// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/document/trigger-document.h"

#include "daemon/base/json-put.h"
#include "daemon/triggers/triggers.h"

json *document_of_trigger(const struct trigger *trigger)
{
    const struct trigger_config *config = &trigger->config;
    const struct trigger_suppressed *suppressed = &trigger->suppressed;
    json *object = json_object_new_object();
    json *counts = json_object_new_object();

    json_put_text(object, "name", config->name);
    json_put_text(object, "condition", config->condition_text);
    json_put_count(object, "count", config->count);
    json_put_count(object, "within_usec", config->within_usec);
    json_put_text(object, "state", trigger_state_name(trigger->state));
    json_put_count(object, "delay_usec", config->delay_usec);
    json_put_count(object, "cooldown_usec", config->cooldown_usec);
    json_put_count(object, "max_per_day", config->max_per_day);
    if (config->max_per_domain) {
        json_put_text(object, "domain", config->domain);
        json_put_count(object, "max_per_domain", config->max_per_domain);
    }
    json_put_count(object, "last_usec", config->last_usec);
    json_put_count(object, "fired", trigger->fired);
    json_put_count(object, "last_fired_ns", trigger->last_fired_ns);
    json_put_text(object, "last_reason", trigger->last_reason);
    json_put_count(object, "written", trigger->written);
    json_put_text(object, "last_snapshot", trigger->last_snapshot);
    if (config->report || trigger->last_report)
        json_put_text(object, "last_report", trigger->last_report);
    json_put_text(object, "last_error", trigger->last_error);
    json_put_count(counts, "busy", suppressed->busy);
    json_put_count(counts, "cooldown", suppressed->cooldown);
    json_put_count(counts, "max_per_day", suppressed->max_per_day);
    json_put_count(counts, "max_per_domain", suppressed->max_per_domain);
    json_put(object, "suppressed", counts);
    json_put_count(object, "last_suppressed_ns", suppressed->last_ns);
    json_put_text(object, "last_suppressed_reason", suppressed->last_reason);
    return object;
}

json *document_of_triggers(const struct triggers *triggers)
{
    json *array = json_object_new_array();

    for (size_t i = 0; i < triggers_count(triggers); i++)
        (void)json_object_array_add(array, document_of_trigger(triggers_get(triggers, i)));
    return array;
}

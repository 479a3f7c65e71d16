// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A condition may come true with every record. So a watch that has is armed again when its trigger
 * would write another snapshot, or after a second: until then its trigger only counts what it
 * suppresses, and a count of seconds in which it did says enough. If it is one domain that has had
 * its part of the day, that one is muted for a second instead, and the watch is armed for others.
 */

#include "daemon/triggers/triggers.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-event.h>

#include "collector/watch.h"
#include "common/protocol.h"
#include "common/units.h"
#include "daemon/base/clock.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/domain-watch.h"
#include "daemon/base/log.h"
#include "daemon/base/log-id.h"
#include "daemon/triggers/domain-filter.h"

#define REARM_USEC USEC_PER_SEC
#define SLACK_USEC (20 * USEC_PER_MSEC)

#define NO_WATCH SIZE_MAX

_Static_assert(CONFIG_TRIGGERS_MAX <= WATCH_MAX, "each trigger may have a watch");

struct triggers {
    struct triggers_context context;
    size_t count;
    struct trigger *trigger[CONFIG_TRIGGERS_MAX]; /* as in the configuration */
    struct trigger *leaving; /* a list: not in the configuration any more, but still writing */
    bool has_ring;
    size_t watch[CONFIG_TRIGGERS_MAX];        /* its index in the set, or NO_WATCH */
    uint64_t rearm_usec[CONFIG_TRIGGERS_MAX]; /* TRIGGER_NO_TIME: it is armed */
    enum trigger_state logged[CONFIG_TRIGGERS_MAX];
    struct domain_filter filter[CONFIG_TRIGGERS_MAX];
    struct watch_set *set;
    struct watch_config watches[CONFIG_TRIGGERS_MAX]; /* what it looks for */
    size_t nr_watches;
    struct domain_watch *domains;
    struct sd_event_source *timer;
};

static uint64_t triggers_now_usec(const struct triggers *triggers)
{
    uint64_t usec = 0;

    (void)sd_event_now(triggers->context.event, CLOCK_MONOTONIC, &usec); /* the clock exists */
    return usec;
}

/* --- Time. --- */

static void triggers_arm_watch(struct triggers *triggers, size_t i)
{
    triggers->rearm_usec[i] = TRIGGER_NO_TIME;
    watch_arm(triggers->set, triggers->watch[i]);
}

static void triggers_log_state(struct triggers *triggers, size_t i)
{
    const struct trigger *trigger = triggers->trigger[i];

    if (triggers->logged[i] == trigger->state)
        return;
    log_debug("Trigger %s: %s -> %s.", trigger->config.name,
              trigger_state_name(triggers->logged[i]), trigger_state_name(trigger->state));
    triggers->logged[i] = trigger->state;
}

/* Arms what is due, and sets the timer for what comes next. */
static void triggers_update_time(struct triggers *triggers)
{
    uint64_t now = triggers_now_usec(triggers), next = TRIGGER_NO_TIME;

    for (size_t i = 0; i < triggers->count; i++) {
        triggers_log_state(triggers, i);
        if (triggers->rearm_usec[i] != TRIGGER_NO_TIME &&
            (triggers->rearm_usec[i] <= now || triggers->trigger[i]->state == TRIGGER_ARMED))
            triggers_arm_watch(triggers, i);
        next = min_u64(next, trigger_next_usec(triggers->trigger[i]));
        next = min_u64(next, triggers->rearm_usec[i]);
        next = min_u64(next,
                       domain_filter_advance(&triggers->filter[i], triggers->context.names, now));
    }
    if (!triggers->timer)
        return;
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time(triggers->timer, next);
    (void)sd_event_source_set_enabled(triggers->timer,
                                      next == TRIGGER_NO_TIME ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

/* Does what a trigger answered; its snapshot may be done before this returns. */
static void triggers_act(struct triggers *triggers, size_t i, enum trigger_action action)
{
    const struct triggers_context *context = &triggers->context;
    struct trigger *trigger = triggers->trigger[i];

    triggers_log_state(triggers, i);
    if (action == TRIGGER_SNAPSHOT)
        context->snapshot(context->userdata, trigger, trigger->config.name,
                          trigger_last_usec(trigger, triggers_now_usec(triggers)));
}

static int triggers_handle_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct triggers *triggers = userdata;

    (void)source;
    (void)usec;
    for (size_t i = 0; i < triggers->count; i++)
        triggers_act(triggers, i,
                     trigger_advance(triggers->trigger[i], triggers_now_usec(triggers)));
    triggers_update_time(triggers);
    return 0;
}

/* --- Conditions. --- */

/* For the journal: its name, or its number. */
static const char *domain_field(char *buffer, size_t size, const struct xen_domain *domain)
{
    if (domain->name[0])
        return domain->name;
    (void)snprintf(buffer, size, "%" PRIu32, domain->domid);
    return buffer;
}

/* Why a trigger fires. */
struct cause {
    const char *reason;
    uint64_t tsc;                     /* of the record that shows it; 0: none does */
    const struct xen_domain *culprit; /* NULL: no domain */
    const struct requester *who;      /* asks for it; NULL: nobody */
};

/* Suppressed snapshots are counted, not logged: there may be many. */
static void triggers_fire(struct triggers *triggers, size_t i, const struct cause *cause)
{
    struct trigger *trigger = triggers->trigger[i];
    uint64_t now = triggers_now_usec(triggers);
    uint64_t refused = trigger->suppressed.max_per_domain;
    bool was_delaying = trigger->state == TRIGGER_DELAYING;
    struct trigger_domain domain = {0};
    char field[16];
    const char *about = NULL; /* the journal's DOMAIN= */
    enum trigger_action action;

    if (cause->culprit) {
        about = domain_field(field, sizeof(field), cause->culprit);
        domain = domain_of(cause->culprit);
    }
    action = trigger_fire(trigger, now, clock_pair_now().realtime_ns, cause->reason, &domain);
    if (action == TRIGGER_SNAPSHOT || (trigger->state == TRIGGER_DELAYING && !was_delaying)) {
        trigger->requester = cause->who ? *cause->who : (struct requester){0};
        trigger->last_tsc = cause->tsc;
        log_event(LOG_NOTICE,
                  &(struct log_about){.id = LOG_ID_TRIGGER,
                                      .trigger = trigger->config.name,
                                      .domain = about,
                                      .who = cause->who},
                  "Trigger %s: %s", trigger->config.name, cause->reason);
    }
    if (triggers->watch[i] != NO_WATCH)
        triggers->rearm_usec[i] = now + REARM_USEC;
    if (trigger->suppressed.max_per_domain > refused &&
        domain_filter_mute(&triggers->filter[i], cause->culprit->domid, now + REARM_USEC))
        triggers->rearm_usec[i] = now;
    triggers_act(triggers, i, action);
}

static uint64_t triggers_tsc_to_usec(const struct triggers *triggers, uint64_t tsc)
{
    uint32_t khz = triggers->context.tsc_khz;

    return khz ? (uint64_t)((unsigned __int128)tsc * 1000 / khz) : 0;
}

/* "3 (web)", or "3". */
static const char *describe_domain(char *buffer, size_t size, const struct xen_domain *domain)
{
    bool has_name = domain->name[0];

    (void)snprintf(buffer, size, "%" PRIu32 "%s%s%s", domain->domid, has_name ? " (" : "",
                   domain->name, has_name ? ")" : "");
    return buffer;
}

/* DOMAIN is who ran; "" if the trigger is about any. */
static void describe_event(const struct trigger_config *config, const struct watch_hit *hit,
                           const char *domain, char *reason, size_t size)
{
    const char *of = domain[0] ? " of domain " : "";
    char text[UNITS_TEXT_MAX];

    if (config->count == 1)
        (void)snprintf(reason, size, "Event 0x%08" PRIx32 " (%s)%s%s on CPU %u.", hit->event,
                       event_class_name(hit->event), of, domain, hit->cpu);
    else
        (void)snprintf(reason, size,
                       "%" PRIu32 " events within %s, one of them 0x%08" PRIx32
                       " (%s)%s%s on CPU %u.",
                       config->count, duration_format(text, config->within_usec), hit->event,
                       event_class_name(hit->event), of, domain, hit->cpu);
}

static void triggers_describe_hit(const struct triggers *triggers, size_t i,
                                  const struct watch_hit *hit, const struct xen_domain *ran,
                                  char *reason, size_t size)
{
    const struct trigger_config *config = &triggers->trigger[i]->config;
    char domain[96], text[UNITS_TEXT_MAX];

    (void)describe_domain(domain, sizeof(domain), ran);
    if (config->condition == TRIGGER_EVENT)
        describe_event(config, hit, config->domain[0] ? domain : "", reason, size);
    else if (config->condition == TRIGGER_RUNNABLE_LATENCY)
        (void)snprintf(
            reason, size, "vCPU %u of domain %s waited %s for CPU %u.", hit->vcpu, domain,
            duration_format(text, triggers_tsc_to_usec(triggers, hit->waited_tsc)), hit->cpu);
    else
        (void)snprintf(reason, size, "Xen lost %" PRIu32 " records on CPU %u%s%s%s.", hit->lost,
                       hit->cpu, config->domain[0] ? ", where domain " : "",
                       config->domain[0] ? domain : "", config->domain[0] ? " ran" : "");
}

/* Whether a domain's budget is used. */
static bool is_about_domain(const struct trigger_config *config)
{
    return config->condition != TRIGGER_EVENT || config->domain[0];
}

/* As far as it is known. */
static struct xen_domain triggers_find_domain(const struct triggers *triggers, uint32_t domid)
{
    const struct xen_domain *known = domain_names_find(triggers->context.names, domid);

    return known ? *known : (struct xen_domain){.domid = domid};
}

static void triggers_handle_hit(struct triggers *triggers, size_t i, const struct watch_hit *hit)
{
    const struct xen_domain ran = triggers_find_domain(triggers, hit->domid);
    char reason[TRIGGER_REASON_MAX];

    triggers_describe_hit(triggers, i, hit, &ran, reason, sizeof(reason));
    triggers_fire(triggers, i,
                  &(struct cause){
                      .reason = reason,
                      .tsc = hit->tsc,
                      .culprit = is_about_domain(&triggers->trigger[i]->config) ? &ran : NULL,
                  });
}

void triggers_handle_watch(struct triggers *triggers)
{
    struct watch_hit hit;

    for (size_t i = 0; i < triggers->count; i++) {
        if (triggers->watch[i] != NO_WATCH && triggers->rearm_usec[i] == TRIGGER_NO_TIME &&
            watch_take(triggers->set, triggers->watch[i], &hit))
            triggers_handle_hit(triggers, i, &hit);
    }
    triggers_update_time(triggers);
}

static void triggers_handle_crash(void *userdata, const struct xen_domain *domain)
{
    struct triggers *triggers = userdata;
    char text[96], reason[TRIGGER_REASON_MAX];

    (void)snprintf(reason, sizeof(reason), "Domain %s crashed.",
                   describe_domain(text, sizeof(text), domain));
    for (size_t i = 0; i < triggers->count; i++) {
        const struct trigger_config *config = &triggers->trigger[i]->config;

        if (config->condition == TRIGGER_DOMAIN_CRASH && domain_matches(config->domain, domain))
            triggers_fire(triggers, i, &(struct cause){.reason = reason, .culprit = domain});
    }
    triggers_update_time(triggers);
}

static size_t triggers_find_by_name(const struct triggers *triggers, const char *name)
{
    size_t i = 0;

    while (i < triggers->count && strcmp(triggers->trigger[i]->config.name, name) != 0)
        i++;
    return i;
}

int triggers_fire_manual(struct triggers *triggers, const char *name, const struct requester *who,
                         const struct trigger **ret_trigger, struct failure *failure)
{
    size_t i = triggers_find_by_name(triggers, name);
    const struct trigger *trigger;

    if (i == triggers->count)
        return failure_set(failure, -ENOENT, ERROR_NO_TRIGGER,
                           "There is no trigger '%s'. Triggers are configured in sections [trigger "
                           "NAME]. To see them: xentracectl list --triggers",
                           name);
    trigger = triggers->trigger[i];
    if (trigger->config.condition != TRIGGER_MANUAL)
        return failure_set(
            failure, -EINVAL, ERROR_INVALID,
            "The trigger '%s' has the condition %s; only triggers with condition=manual can be "
            "fired on request. To write a snapshot now: xentracectl snapshot",
            name, trigger->config.condition_text);
    if (trigger->state == TRIGGER_OFF)
        return failure_set(failure, -ENODATA, ERROR_NO_RING,
                           "The flight recorder is not running, so there is nothing to write. To "
                           "start it: xentracectl start flight-recorder. If it is disabled, set "
                           "enabled=yes in [flight-recorder] and restart xentraced.");
    triggers_fire(triggers, i, &(struct cause){.reason = "Fired on request.", .who = who});
    triggers_update_time(triggers);
    *ret_trigger = trigger;
    return 0;
}

/* --- The ring and its snapshots. --- */

void triggers_set_ring(struct triggers *triggers, bool has_ring)
{
    triggers->has_ring = has_ring;
    for (size_t i = 0; i < triggers->count; i++)
        trigger_set_ring(triggers->trigger[i], has_ring, triggers_now_usec(triggers));
    triggers_update_time(triggers);
}

static struct trigger *trigger_free(struct trigger *trigger)
{
    trigger_done(trigger);
    free(trigger);
    return NULL;
}

/* Takes TRIGGER out of the list of those that leave; false: it is not there. */
static bool triggers_unlist(struct triggers *triggers, const struct trigger *trigger)
{
    for (struct trigger **at = &triggers->leaving; *at; at = &(*at)->next) {
        if (*at != trigger)
            continue;
        *at = trigger->next;
        return true;
    }
    return false;
}

void triggers_snapshot_done(struct triggers *triggers, struct trigger *trigger, const char *path,
                            const char *error)
{
    uint64_t now = triggers_now_usec(triggers);
    char wait[UNITS_TEXT_MAX];

    if (path)
        trigger_written(trigger, now, path);
    else
        trigger_failed(trigger, now, error);
    if (triggers_unlist(triggers, trigger))
        trigger_free(trigger);
    else if (trigger->state == TRIGGER_RETRYING)
        log_info("Trigger %s: no snapshot was written. Trying again in %s.", trigger->config.name,
                 duration_format(wait, trigger->retry_usec - now));
    triggers_update_time(triggers);
}

struct watch_set *triggers_watch_set(const struct triggers *triggers)
{
    return triggers->set;
}

size_t triggers_count(const struct triggers *triggers)
{
    return triggers->count;
}

const struct trigger *triggers_get(const struct triggers *triggers, size_t index)
{
    assert(index < triggers->count);
    return triggers->trigger[index];
}

/* --- Construction. --- */

/* Whether a trigger's condition is seen in the records; then what to look for. */
static bool watch_config_of(const struct triggers *triggers, const struct trigger_config *config,
                            struct watch_config *ret_watch)
{
    *ret_watch = (struct watch_config){
        .count = 1,
        .by_domain = is_about_domain(config),
        .wants_all = !config->domain[0],
    };
    switch (config->condition) {
    case TRIGGER_EVENT:
        ret_watch->kind = WATCH_EVENT;
        ret_watch->events = config->events;
        ret_watch->count = config->count;
        ret_watch->within_tsc = clock_tsc_of_usec(config->within_usec, triggers->context.tsc_khz);
        return true;
    case TRIGGER_RUNNABLE_LATENCY:
        ret_watch->kind = WATCH_RUNNABLE;
        ret_watch->latency_tsc =
            max_u64(1, clock_tsc_of_usec(config->latency_usec, triggers->context.tsc_khz));
        return true;
    case TRIGGER_LOST_RECORDS:
        ret_watch->kind = WATCH_LOST;
        return true;
    case TRIGGER_NEVER:
    case TRIGGER_DOMAIN_CRASH:
    case TRIGGER_MANUAL:
        break;
    }
    return false;
}

static bool is_same_watch(const struct watch_config *a, const struct watch_config *b)
{
    return a->kind == b->kind && a->by_domain == b->by_domain && a->wants_all == b->wants_all &&
           a->count == b->count && a->within_tsc == b->within_tsc &&
           a->latency_tsc == b->latency_tsc &&
           memcmp(&a->events, &b->events, sizeof(a->events)) == 0;
}

void triggers_update_domains(struct triggers *triggers)
{
    for (size_t i = 0; i < triggers->count; i++)
        domain_filter_update(&triggers->filter[i], triggers->context.names);
}

/* Who runs already is known; more will come. */
static void triggers_filter_domains(struct triggers *triggers)
{
    for (size_t i = 0; i < triggers->count; i++)
        triggers->filter[i] = (struct domain_filter){
            .pattern = triggers->trigger[i]->config.domain,
            .set = triggers->watch[i] != NO_WATCH ? triggers->set : NULL,
            .watch = triggers->watch[i],
        };
    triggers_update_domains(triggers);
}

/* Whether the collector looks for just that already. */
static bool triggers_watch_for(const struct triggers *triggers, const struct watch_config *watches,
                               size_t count)
{
    bool is_same = triggers->set && count == triggers->nr_watches;

    for (size_t i = 0; i < count && is_same; i++)
        is_same = is_same_watch(&watches[i], &triggers->watches[i]);
    return is_same;
}

/* The triggers that the configuration now has. */
struct lineup {
    struct trigger *trigger[CONFIG_TRIGGERS_MAX];
    bool is_new[CONFIG_TRIGGERS_MAX];
    size_t count;
};

/*
 * Has the collector watch for the conditions of LINEUP. If they are unchanged, its watches
 * continue.
 */
static int triggers_watch(struct triggers *triggers, const struct lineup *lineup)
{
    uint64_t rearm_usec[CONFIG_TRIGGERS_MAX]; /* by watch */
    struct watch_config watches[CONFIG_TRIGGERS_MAX];
    size_t n = 0, watch[CONFIG_TRIGGERS_MAX];
    bool goes_on;
    int r = 0;

    for (size_t i = 0; i < CONFIG_TRIGGERS_MAX; i++) {
        watch[i] = NO_WATCH;
        rearm_usec[i] = TRIGGER_NO_TIME;
        if (i < lineup->count &&
            watch_config_of(triggers, &lineup->trigger[i]->config, &watches[n]))
            watch[i] = n++;
    }
    goes_on = triggers_watch_for(triggers, watches, n);
    if (!goes_on)
        r = triggers->set ? watch_set_replace(triggers->set, watches, n)
                          : watch_set_new(watches, n, &triggers->set);
    if (r < 0)
        return r;
    for (size_t i = 0; goes_on && i < triggers->count; i++)
        if (triggers->watch[i] != NO_WATCH)
            rearm_usec[triggers->watch[i]] = triggers->rearm_usec[i];
    for (size_t i = 0; i < CONFIG_TRIGGERS_MAX; i++) {
        triggers->watch[i] = watch[i];
        triggers->rearm_usec[i] = watch[i] == NO_WATCH ? TRIGGER_NO_TIME : rearm_usec[watch[i]];
    }
    memcpy(triggers->watches, watches, n * sizeof(watches[0]));
    triggers->nr_watches = n;
    return 0;
}

/* The trigger called NAME, also one that is leaving; NULL. */
static struct trigger *triggers_find_any(const struct triggers *triggers, const char *name)
{
    size_t i = triggers_find_by_name(triggers, name);
    struct trigger *trigger = i < triggers->count ? triggers->trigger[i] : triggers->leaving;

    while (trigger && strcmp(trigger->config.name, name) != 0)
        trigger = trigger->next;
    return trigger;
}

static int triggers_line_up_one(const struct triggers *triggers, struct lineup *lineup,
                                const struct trigger_config *config)
{
    struct trigger *trigger = triggers_find_any(triggers, config->name);
    int r;

    if (trigger) {
        lineup->trigger[lineup->count++] = trigger;
        return trigger_reconfigure(trigger, config, triggers_now_usec(triggers));
    }
    trigger = calloc(1, sizeof(*trigger));
    if (!trigger)
        return -ENOMEM;
    r = trigger_init(trigger, config);
    if (r < 0) {
        free(trigger);
        return r;
    }
    trigger_set_ring(trigger, triggers->has_ring, triggers_now_usec(triggers));
    lineup->is_new[lineup->count] = true;
    lineup->trigger[lineup->count++] = trigger;
    return 0;
}

static int triggers_line_up(struct triggers *triggers, struct lineup *lineup,
                            const struct config *config)
{
    int r = 0;

    for (size_t i = 0; i < config->nr_triggers && r >= 0; i++)
        r = triggers_line_up_one(triggers, lineup, &config->triggers[i]);
    if (r >= 0)
        r = triggers_watch(triggers, lineup);
    for (size_t i = 0; i < lineup->count && r < 0; i++)
        if (lineup->is_new[i])
            trigger_free(lineup->trigger[i]);
    return r;
}

static bool lineup_has(const struct lineup *lineup, const struct trigger *trigger)
{
    for (size_t i = 0; i < lineup->count; i++)
        if (lineup->trigger[i] == trigger)
            return true;
    return false;
}

/* Those that are not in LINEUP go, at once or when their snapshots are written. */
static void triggers_replace(struct triggers *triggers, const struct lineup *lineup)
{
    for (size_t i = 0; i < triggers->count; i++) {
        struct trigger *trigger = triggers->trigger[i];

        if (lineup_has(lineup, trigger))
            continue;
        if (trigger->state == TRIGGER_WRITING) {
            trigger->next = triggers->leaving;
            triggers->leaving = trigger;
        } else {
            trigger_free(trigger);
        }
    }
    triggers->count = lineup->count;
    for (size_t i = 0; i < lineup->count; i++) {
        (void)triggers_unlist(triggers, lineup->trigger[i]); /* one may come back */
        triggers->trigger[i] = lineup->trigger[i];
        triggers->logged[i] = lineup->trigger[i]->state;
    }
}

/* The context of triggers. */
static int triggers_make_sources(struct triggers *triggers)
{
    const struct triggers_context *context = &triggers->context;
    int r;

    if (!triggers->timer) {
        r = sd_event_add_time(context->event, &triggers->timer, CLOCK_MONOTONIC, TRIGGER_NO_TIME,
                              SLACK_USEC, triggers_handle_timer, triggers);
        if (r < 0)
            return r;
        r = sd_event_source_set_enabled(triggers->timer, SD_EVENT_OFF);
        if (r < 0)
            return r;
    }
    if (triggers->domains)
        return 0;
    /* Also where no trigger is about crashes: documents say who was there, and when. */
    return domain_watch_new(context->event, context->xen, context->names, triggers_handle_crash,
                            triggers, &triggers->domains);
}

int triggers_reload(struct triggers *triggers, const struct config *config)
{
    struct lineup lineup = {0};
    int r;

    r = triggers_make_sources(triggers);
    if (r < 0)
        return r;
    for (size_t i = 0; i < triggers->count; i++) /* the filters are made anew */
        (void)domain_filter_advance(&triggers->filter[i], triggers->context.names,
                                    DOMAIN_FILTER_NO_TIME);
    if (triggers->set)
        triggers_handle_watch(triggers); /* what came true until now */
    r = triggers_line_up(triggers, &lineup, config);
    if (r < 0)
        return r;
    triggers_replace(triggers, &lineup);
    triggers_filter_domains(triggers);
    triggers_update_time(triggers);
    return 0;
}

int triggers_new(const struct triggers_context *context, struct triggers **ret_triggers)
{
    struct triggers *triggers = calloc(1, sizeof(*triggers));
    int r;

    if (!triggers)
        return -ENOMEM;
    triggers->context = *context;
    triggers->context.event = sd_event_ref(context->event);
    r = triggers_reload(triggers, context->config);
    triggers->context.config = NULL; /* borrowed until here */
    if (r < 0) {
        triggers_free(triggers);
        return r;
    }
    *ret_triggers = triggers;
    return 0;
}

struct triggers *triggers_free(struct triggers *triggers)
{
    if (!triggers)
        return NULL;
    domain_watch_free(triggers->domains);
    triggers->timer = sd_event_source_disable_unref(triggers->timer);
    watch_set_free(triggers->set);
    for (size_t i = 0; i < triggers->count; i++)
        trigger_free(triggers->trigger[i]);
    while (triggers->leaving) {
        struct trigger *next = triggers->leaving->next;

        trigger_free(triggers->leaving);
        triggers->leaving = next;
    }
    sd_event_unref(triggers->context.event);
    free(triggers);
    return NULL;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Suppressed firings are counted and dated like others, so the newer of the two dates shows the
 * outcome of the last one.
 */

#include "ctl/trigger.h"

#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "ctl/last-report.h"
#include "ctl/session.h"
#include "ctl/str.h"
#include "ctl/table.h"

bool trigger_was_suppressed(struct json_object *trigger)
{
    uint64_t suppressed = doc_number(trigger, "last_suppressed_ns");

    return suppressed && suppressed >= doc_number(trigger, "last_fired_ns");
}

/* What the state of a trigger that did not fire means to a user who wants a snapshot. */
static const char *explain_suppression(const char *state)
{
    if (strcmp(state, "cooling") == 0)
        return "too soon after the last one";
    if (strcmp(state, "exhausted") == 0)
        return "the limit for the day is reached";
    return "another one is under way";
}

/* What a state means to a user who waits for a snapshot. */
static const char *explain_state(const char *state)
{
    static const struct {
        const char *state, *meaning;
    } meanings[] = {
        {"armed", "waiting for its condition"},
        {"delaying", "recording until its delay is over; then it writes its snapshot"},
        {"writing", "its snapshot is being written"},
        {"retrying", "its snapshot failed; trying again"},
        {"cooling", "cooling down after its snapshot"},
        {"exhausted", "limit of snapshots for the day reached"},
        {"off", "no ring to take a snapshot of"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(meanings); i++) {
        if (strcmp(meanings[i].state, state) == 0)
            return meanings[i].meaning;
    }
    return NULL;
}

void trigger_print(FILE *file, struct json_object *trigger)
{
    const char *state = doc_text(trigger, "state", "unknown"), *meaning = explain_state(state);

    table_print_field(file, "Trigger", "%s (%s)", doc_text(trigger, "name", "(without a name)"),
                      doc_text(trigger, "condition", "unknown condition"));
    if (trigger_was_suppressed(trigger))
        table_print_field(file, "Outcome", "no snapshot: %s", explain_suppression(state));
    else
        table_print_field(file, "Outcome", "fired");
    table_print_field(file, "State", "%s%s%s", state, meaning ? ": " : "", meaning ? meaning : "");
    table_print_field(file, "Next", "xentracectl status");
}

/* "busy 1, cooldown 2", or "0". */
static char *suppressed(struct json_object *trigger)
{
    static const char *const reasons[] = {"busy", "cooldown", "max_per_day", "max_per_domain"};
    static const char *const names[] = {"busy", "cooldown", "max-per-day", "max-per-domain"};
    char *text = strdup("");

    for (size_t i = 0; i < ARRAY_SIZE(reasons) && text; i++) {
        uint64_t count = doc_number(doc_find(trigger, "suppressed"), reasons[i]);
        char *longer;

        if (!count)
            continue;
        longer = str_format("%s%s%s %" PRIu64, text, *text ? ", " : "", names[i], count);
        free(text);
        text = longer;
    }
    if (text && !*text) {
        free(text);
        text = strdup("0");
    }
    return text;
}

/* "event=hw-irq count=100 within=1s": the condition as the configuration has it. */
static char *condition(struct json_object *trigger)
{
    const char *text = doc_text(trigger, "condition", "-");
    uint64_t count = doc_number(trigger, "count");
    char within[UNITS_TEXT_MAX];

    if (count < 2)
        return strdup(text);
    return str_format("%s count=%" PRIu64 " within=%s", text, count,
                      duration_format(within, doc_number(trigger, "within_usec")));
}

/* "cooldown=1min max-per-day=10", and those that are not zero. */
static char *limits(struct json_object *trigger)
{
    uint64_t delay_usec = doc_number(trigger, "delay_usec");
    uint64_t last_usec = doc_number(trigger, "last_usec");
    char cooldown[UNITS_TEXT_MAX], delay[UNITS_TEXT_MAX], last[UNITS_TEXT_MAX];

    return str_format("cooldown=%s max-per-day=%" PRIu64 "%s%s%s%s",
                      duration_format(cooldown, doc_number(trigger, "cooldown_usec")),
                      doc_number(trigger, "max_per_day"), delay_usec ? " delay=" : "",
                      delay_usec ? duration_format(delay, delay_usec) : "",
                      last_usec ? " last=" : "", last_usec ? duration_format(last, last_usec) : "");
}

static void add_row(struct table *table, struct json_object *trigger, bool with_limits)
{
    _cleanup_free_ char *waits_for = condition(trigger), *limited = limits(trigger);
    _cleanup_free_ char *why = suppressed(trigger);
    const char *domain = doc_text(trigger, "domain", "");
    char ago[STR_AGO_MAX];

    table_add(table, "%s", doc_text(trigger, "name", "-"));
    table_add(table, "%s%s%s", waits_for ? waits_for : "-", *domain ? " of " : "", domain);
    table_add(table, "%s", doc_text(trigger, "state", "-"));
    table_add_count(table, doc_number(trigger, "fired"));
    table_add(table, "%s", str_ago(ago, doc_number(trigger, "last_fired_ns")));
    table_add_count(table, doc_number(trigger, "written"));
    table_add(table, "%s", why ? why : "-");
    if (with_limits)
        table_add(table, "%s", limited ? limited : "-");
}

void trigger_print_list(FILE *file, struct json_object *triggers, int indent, bool with_limits,
                        int width)
{
    _cleanup_table_ struct table *table = NULL;

    if (!doc_length(triggers) ||
        table_new(with_limits ? "~TRIGGER /CONDITION STATE >FIRED LAST >WRITTEN ~SUPPRESSED /LIMITS"
                              : "~TRIGGER /CONDITION STATE >FIRED LAST >WRITTEN ~SUPPRESSED",
                  &table) < 0)
        return;
    for (size_t i = 0; i < doc_length(triggers); i++)
        add_row(table, doc_at(triggers, i), with_limits);
    table_print(table, file, indent, width);
    for (size_t i = 0; i < doc_length(triggers); i++) {
        struct json_object *trigger = doc_at(triggers, i);
        const char *error = doc_text(trigger, "last_error", "");

        if (*error)
            (void)fprintf(file, "%*sThe last snapshot of %s failed: %s\n", indent, "",
                          doc_text(trigger, "name", "-"), error);
    }
}

void trigger_print_reports(FILE *file, struct json_object *triggers, int indent)
{
    for (size_t i = 0; i < doc_length(triggers); i++) {
        const char *path = doc_text(doc_at(triggers, i), "last_report", "");
        char finding[LAST_REPORT_MAX];

        if (*path && last_report_read(path, finding))
            (void)fprintf(file, "%*sLast report: %s\n%*s  %s\n", indent, "", finding, indent, "",
                          path);
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The flight recorder's default events have one and the same subclass in two classes, so that Xen's
 * own mask selects exactly them (0x00061000) and nothing else takes up room in its buffers.
 */

#include "daemon/config/config-keys.h"

#include <stdio.h>
#include <string.h>

#include "common/suggest.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/config/config-values.h"

/* The collector keeps the times of this many events at most, and looks at all of them at each
 * event. */
#define COUNT_MAX       1000u
#define MAX_PER_DAY_MAX 1000u

#define KEEP_FILES_MAX 99999u

/* inih keeps 49 characters of a header: "capture " and these. */
#define HEADER_NAME_MAX 41u

static const struct config_section sections[] = {
    {.title = "daemon", .word = "daemon"},
    {.title = "capture", .word = "capture"},
    {
        .title = "capture NAME",
        .word = "capture",
        .items_offset = offsetof(struct config, captures.captures),
        .item_bytes = sizeof(struct capture_config),
        .count_offset = offsetof(struct config, captures.count),
        .items_max = CAPTURE_CONFIGS_MAX,
        .name_max = HEADER_NAME_MAX,
        .applies = CONFIG_AT_RESTART,
    },
    {.title = "disk", .word = "disk"},
    {.title = "limits", .word = "limits"},
    {.title = "flight-recorder", .word = "flight-recorder"},
    {
        .title = "trigger NAME",
        .word = "trigger",
        .items_offset = offsetof(struct config, triggers),
        .item_bytes = sizeof(struct trigger_config),
        .count_offset = offsetof(struct config, nr_triggers),
        .items_max = CONFIG_TRIGGERS_MAX,
        .name_max = TRIGGER_NAME_MAX,
        .applies = CONFIG_AT_RELOAD,
    },
};

#define KEY(title, type, key, kind, member, default_text, when, ...)                               \
    {                                                                                              \
        .section = title, .name = key, .parse = kind, .offset = offsetof(struct type, member),     \
        .bytes = sizeof(((struct type *)0)->member), .standard = default_text, .applies = when,    \
        .summary = __VA_ARGS__                                                                     \
    }
#define DAEMON(key, kind, member, ...)  KEY("daemon", config, key, kind, member, __VA_ARGS__)
#define CAPTURE(key, kind, member, ...) KEY("capture", config, key, kind, member, __VA_ARGS__)
#define EACH(key, kind, member, ...)                                                               \
    KEY("capture NAME", capture_config, key, kind, member, __VA_ARGS__)
#define DISK(key, kind, member, ...)   KEY("disk", config, key, kind, disk.member, __VA_ARGS__)
#define LIMITS(key, kind, member, ...) KEY("limits", config, key, kind, limits.member, __VA_ARGS__)
#define RECORDER(key, kind, member, ...)                                                           \
    KEY("flight-recorder", config, key, kind, recorder.member, __VA_ARGS__)
#define TRIGGER(key, kind, member, ...)                                                            \
    KEY("trigger NAME", trigger_config, key, kind, member, __VA_ARGS__)

#define RELOAD  CONFIG_AT_RELOAD
#define RESTART CONFIG_AT_RESTART

/* A line for each key: name, kind of value, member, default, when a change is applied, summary. */
static const struct config_key keys[] = {
    DAEMON("pool", config_value_memory, pool_bytes, "64M", RESTART,
           "memory for records that are being written to the disk"),
    DAEMON("pool-max", config_value_memory_or_auto, pool_max_bytes, "auto", RESTART,
           "size to which the pool may grow while a disk is slow"),
    DAEMON("log-level", config_value_log_level, log_level, "info", RELOAD,
           "least urgent level that is logged"),
    DAEMON("control-group", config_value_group, control_group, "", RELOAD,
           "group whose members may start and stop captures"),
    DAEMON("memory-share", config_value_percent, memory_share_percent, "50", RELOAD,
           "percent of dom0's free memory that rings may take", .min = 1, .max = 90),
    DAEMON("metrics-file", config_value_path, metrics_file, "", RESTART,
           "file to write Prometheus metrics to"),
    CAPTURE("buffer-pages", config_value_pages_or_auto, buffer_pages, "auto", RELOAD,
            "pages per CPU for Xen's trace buffers, if not allocated yet"),
    CAPTURE("reserve", config_value_reserve, reserve_bytes, "auto", RELOAD,
            "free space that captures leave on the disk"),
    CAPTURE("segment-unit", config_value_unit_template, segment_unit, "", RELOAD,
            "unit that is started for each finished segment"),
    EACH("enabled", config_value_bool, enabled, "yes", RESTART, "whether the capture starts"),
    EACH("events", config_value_events, events, "all", RESTART, "events to capture"),
    EACH("cpus", config_value_cpus, cpus, "all", RESTART, "CPUs to record"),
    EACH("segment-size", config_value_segment_size, segment_size_bytes, "", RESTART,
         "size of a segment"),
    EACH("segment-time", config_value_segment_time, segment_time_usec, "", RESTART,
         "duration of a segment"),
    EACH("keep-files", config_value_number, keep_files, "", RESTART, "number of segments to keep",
         .min = 2, .max = KEEP_FILES_MAX),
    EACH("keep-size", config_value_keep_size, keep_size_bytes, "", RESTART,
         "total size of segments to keep"),
    EACH("reserve", config_value_reserve, reserve_bytes, "auto", RESTART,
         "free space to leave on the disk"),
    EACH("on-reserve", config_value_on_reserve, on_reserve, "rotate", RESTART,
         "action at the reserve: rotate, pause or stop"),
    EACH("compress", config_value_compress, compress, "no", RESTART,
         "compression of its files: zstd or no"),
    DISK("max-use", config_value_disk_limit, max_use, "auto", RELOAD,
         "limit for finished files in the state directory"),
    DISK("keep-free", config_value_disk_limit, keep_free, "auto", RELOAD,
         "space to keep free on the disk of the state directory"),
    DISK("max-file-age", config_value_time_or_none, max_age_usec, "none", RELOAD,
         "age at which files are removed"),
    LIMITS("snapshot-interval", config_value_time, snapshot_interval_usec, "10s", RELOAD,
           "minimum time between snapshots of a user"),
    LIMITS("snapshots-per-day", config_value_number, snapshots_per_day, "100", RELOAD,
           "snapshots of a user in 24 hours", .min = 1, .max = MAX_PER_DAY_MAX),
    LIMITS("snapshot-bytes-per-day", config_value_limit, snapshot_bytes_per_day, "auto", RELOAD,
           "total size of a user's snapshots in 24 hours", .min = 1),
    LIMITS("keep-for-triggers", config_value_limit, keep_for_triggers_bytes, "auto", RELOAD,
           "free space that users' snapshots leave for triggers and root"),
    RECORDER("enabled", config_value_bool, enabled, "yes", RESTART,
             "whether the flight recorder runs"),
    RECORDER("memory", config_value_memory, memory_bytes, "64M", RESTART,
             "size of its ring in memory"),
    RECORDER("events", config_value_events, events, "sched-min,dom0op-domops", RESTART,
             "events to record"),
    RECORDER("cpus", config_value_cpus, cpus, "all", RESTART, "CPUs to record"),
    RECORDER("max-age", config_value_time_or_none, max_age_usec, "none", RESTART,
             "age at which records are evicted"),
    RECORDER("keep-enabled", config_value_bool, keep_enabled, "yes", RELOAD,
             "whether tracing stays enabled while the daemon restarts"),
    RECORDER("compress", config_value_compress, compress, "no", RELOAD,
             "compression of snapshots in the state directory: zstd or no"),
    TRIGGER("condition", config_value_condition, condition, "", RELOAD,
            "domain-crash, lost-records or manual", .is_condition = true),
    TRIGGER("runnable-latency", config_value_time_above_zero, latency_usec, "", RELOAD,
            "condition: a vCPU waited that long for a physical CPU", .is_condition = true),
    TRIGGER("event", config_value_watched_events, events, "", RELOAD,
            "condition: one of these events", .is_condition = true),
    TRIGGER("count", config_value_number, count, "", RELOAD, "with event=: number of events",
            .min = 1, .max = COUNT_MAX),
    TRIGGER("within", config_value_time_above_zero, within_usec, "", RELOAD,
            "with event=: time within which they occur"),
    TRIGGER("delay", config_value_time, delay_usec, "0", RELOAD,
            "time to continue recording before the snapshot"),
    TRIGGER("cooldown", config_value_time, cooldown_usec, "1min", RELOAD,
            "minimum time between snapshots"),
    TRIGGER("max-per-day", config_value_number, max_per_day, "10", RELOAD, "snapshots in 24 hours",
            .min = 1, .max = MAX_PER_DAY_MAX),
    TRIGGER("max-per-domain", config_value_number_or_auto, max_per_domain, "auto", RELOAD,
            "limit of these for one domain", .min = 1, .max = MAX_PER_DAY_MAX),
    TRIGGER("domain", config_value_text, domain, "", RELOAD,
            "domains to which it applies: name, pattern or UUID"),
    TRIGGER("last", config_value_time, last_usec, "0", RELOAD,
            "how far back the snapshot reaches; 0: everything"),
    TRIGGER("report", config_value_bool, report, "no", RELOAD,
            "whether a report is written beside the snapshot"),
};

size_t config_key_count(void)
{
    return ARRAY_SIZE(keys);
}

const struct config_key *config_key_at(size_t index)
{
    return &keys[index];
}

size_t config_section_count(void)
{
    return ARRAY_SIZE(sections);
}

const struct config_section *config_section_at(size_t index)
{
    return &sections[index];
}

/* --- Finding. --- */

const struct config_section *config_find_section(const char *text, const char **ret_name)
{
    size_t length = strcspn(text, " \t");
    const char *name = text + length;

    while (text_is_blank(*name))
        name++;
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
        const struct config_section *section = &sections[i];

        if (strlen(section->word) != length || strncmp(section->word, text, length) != 0 ||
            (section->items_max == 0 && text[length] != '\0'))
            continue;
        *ret_name = name;
        return section;
    }
    return NULL;
}

const struct config_key *config_find_key(const char *title, const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(keys[i].section, title) == 0 && strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

bool config_is_in_section(const struct config_key *key, const struct config_section *section)
{
    return strcmp(key->section, section->title) == 0;
}

/* --- Items. --- */

size_t config_item_count(const struct config *config, const struct config_section *section)
{
    size_t count;

    if (section->items_max == 0)
        return 0;
    memcpy(&count, (const char *)config + section->count_offset, sizeof(count));
    return count;
}

void *config_item_at(struct config *config, const struct config_section *section, size_t index)
{
    return (char *)config + section->items_offset + index * section->item_bytes;
}

const char *config_item_name(const struct config *config, const struct config_section *section,
                             size_t index)
{
    return (const char *)config + section->items_offset + index * section->item_bytes;
}

const char *config_item_title(char buffer[static CONFIG_TITLE_MAX], const struct config *config,
                              const struct config_section *section, size_t index)
{
    (void)snprintf(buffer, CONFIG_TITLE_MAX, "%s %s", section->word,
                   config_item_name(config, section, index));
    return buffer;
}

void *config_find_item(struct config *config, const struct config_section *section,
                       const char *name)
{
    for (size_t i = 0; i < config_item_count(config, section); i++)
        if (strcmp(config_item_name(config, section, i), name) == 0)
            return config_item_at(config, section, i);
    return NULL;
}

void *config_add_item(struct config *config, const struct config_section *section, const char *name)
{
    size_t count = config_item_count(config, section);
    void *item = config_item_at(config, section, count);

    memset(item, 0, section->item_bytes);
    memcpy(item, name, strlen(name) + 1); /* the name comes first, and a valid one fits */
    count++;
    memcpy((char *)config + section->count_offset, &count, sizeof(count));
    return item;
}

/* --- Suggestions. --- */

const char *config_nearest_section(const char *word)
{
    const char *words[ARRAY_SIZE(sections)];

    for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
        words[i] = sections[i].word;
    return suggest_nearest(word, words, ARRAY_SIZE(words));
}

const char *config_nearest_key(const char *title, const char *name)
{
    const char *words[ARRAY_SIZE(keys)];
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (!title || strcmp(title, keys[i].section) == 0)
            words[count++] = keys[i].name;
    return suggest_nearest(name, words, count);
}

const char *config_section_of_key(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(keys[i].name, name) == 0)
            return keys[i].section;
    return NULL;
}

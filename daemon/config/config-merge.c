// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values are compared by their bytes, not as typed: 64M and 65536K are the same. Parsers write
 * whole fields, texts with zeros up to the end, so bytes are enough.
 */

#include "daemon/config/config-merge.h"

#include <errno.h>
#include <string.h>

#include "common/utf8.h"
#include "daemon/config/config-keys.h"

/* The two sides of a comparison. */
struct merge {
    struct config running; /* copies, as items are found in a struct config that can be changed */
    struct config fresh;
    const struct config_reading *reading;
    struct config_changes changes;
};

static struct config_change *merge_add(struct merge *merge)
{
    struct config_changes *changes = &merge->changes;
    struct config_change *more =
        reallocarray(changes->items, changes->count + 1, sizeof(*changes->items));

    if (!more)
        return NULL;
    changes->items = more;
    more[changes->count] = (struct config_change){.is_applied = true};
    return &more[changes->count++];
}

static int merge_note_key(struct merge *merge, const char *title, const struct config_key *key)
{
    const struct config_setting *setting = config_find_setting(merge->reading, title, key);
    const char *value = setting && setting->value[0] ? setting->value : key->standard;
    struct config_change *change = merge_add(merge);

    if (!change)
        return -ENOMEM;
    change->kind = CONFIG_CHANGED;
    change->key = key;
    change->is_applied = key->applies == CONFIG_AT_RELOAD;
    (void)snprintf(change->title, sizeof(change->title), "%s", title);
    (void)snprintf(change->value, sizeof(change->value), "%s", value);
    if (setting)
        (void)snprintf(change->origin, sizeof(change->origin), "%s:%d", setting->origin.file,
                       setting->origin.line);
    else
        (void)snprintf(change->origin, sizeof(change->origin), "default");
    (void)utf8_trim(change->value); /* either may have been cut */
    (void)utf8_trim(change->origin);
    return 0;
}

static int merge_note_section(struct merge *merge, const struct config_section *section,
                              const char *title, enum config_change_kind kind)
{
    struct config_change *change = merge_add(merge);

    if (!change)
        return -ENOMEM;
    change->kind = kind;
    change->is_applied = section->applies == CONFIG_AT_RELOAD;
    (void)snprintf(change->title, sizeof(change->title), "%s", title);
    return 0;
}

/* The keys of one section, whose fields are in RUNNING and FRESH. */
static int merge_compare(struct merge *merge, const struct config_section *section,
                         const char *title, void *running, void *fresh)
{
    for (size_t i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key_at(i);

        if (!config_is_in_section(key, section) ||
            memcmp(config_field(running, key), config_field(fresh, key), key->bytes) == 0)
            continue;
        if (merge_note_key(merge, title, key) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int merge_compare_items(struct merge *merge, const struct config_section *section)
{
    char title[CONFIG_TITLE_MAX];
    int r = 0;

    for (size_t i = 0; i < config_item_count(&merge->fresh, section) && r >= 0; i++) {
        void *fresh = config_item_at(&merge->fresh, section, i);
        void *running = config_find_item(&merge->running, section, fresh);

        (void)config_item_title(title, &merge->fresh, section, i);
        r = running ? merge_compare(merge, section, title, running, fresh)
                    : merge_note_section(merge, section, title, CONFIG_ADDED);
    }
    for (size_t i = 0; i < config_item_count(&merge->running, section) && r >= 0; i++) {
        if (config_find_item(&merge->fresh, section, config_item_name(&merge->running, section, i)))
            continue;
        (void)config_item_title(title, &merge->running, section, i);
        r = merge_note_section(merge, section, title, CONFIG_REMOVED);
    }
    return r;
}

/* All sections of one kind, which only a restart changes. */
static void merge_keep_items(struct config *merged, const struct config *running,
                             const struct config_section *section)
{
    memcpy((char *)merged + section->items_offset, (const char *)running + section->items_offset,
           section->items_max * section->item_bytes);
    memcpy((char *)merged + section->count_offset, (const char *)running + section->count_offset,
           sizeof(size_t));
}

/* Of the running configuration, what only a restart changes. */
static void merge_keep(struct config *merged, const struct config *running)
{
    struct config kept = *running;

    for (size_t i = 0; i < config_section_count(); i++) {
        const struct config_section *section = config_section_at(i);

        if (section->items_max > 0 && section->applies == CONFIG_AT_RESTART)
            merge_keep_items(merged, running, section);
        for (size_t j = 0; j < config_key_count() && section->items_max == 0; j++) {
            const struct config_key *key = config_key_at(j);

            if (config_is_in_section(key, section) && key->applies == CONFIG_AT_RESTART)
                memcpy(config_field(merged, key), config_field(&kept, key), key->bytes);
        }
    }
}

int config_merge(const struct config *running, const struct config_reading *reading,
                 struct config *ret_merged, struct config_changes *ret_changes)
{
    struct merge merge = {.running = *running, .fresh = reading->config, .reading = reading};
    int r = 0;

    for (size_t i = 0; i < config_section_count() && r >= 0; i++) {
        const struct config_section *section = config_section_at(i);

        r = section->items_max > 0
                ? merge_compare_items(&merge, section)
                : merge_compare(&merge, section, section->title, &merge.running, &merge.fresh);
    }
    if (r < 0) {
        config_changes_done(&merge.changes);
        return r;
    }
    *ret_merged = reading->config;
    merge_keep(ret_merged, running);
    *ret_changes = merge.changes;
    return 0;
}

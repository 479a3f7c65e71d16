/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All sections and keys of the configuration, in two tables. A new key is a member of struct config
 * (or of its section's struct), a line in the table, a paragraph in xentraced.conf(5) and a line
 * in conf/xentraced.conf; tests/unit/test-config-keys compares the three. Static data; any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config-key.h"
#include "daemon/config/config.h"

/* A kind of section: there is one, or there are several with names, [WORD NAME]. */
struct config_section {
    const char *title; /* "daemon", "trigger NAME": in messages, and for its keys */
    const char *word;  /* the first word of that */
    /* Of those with names: an array in struct config of structs that begin with the name. */
    size_t items_offset, item_bytes, count_offset;
    unsigned int items_max;      /* 0: it has no name */
    unsigned int name_max;       /* letters; a header has 49 at most (inih) */
    enum config_applies applies; /* of sections with names, which come and go as a whole */
};

size_t config_key_count(void);
const struct config_key *config_key_at(size_t index);
size_t config_section_count(void);
const struct config_section *config_section_at(size_t index);

/* The section that the text between [ and ] begins, and *RET_NAME in it ("" if it has none). NULL:
 * there is no such section. */
const struct config_section *config_find_section(const char *text, const char **ret_name);

/* NULL: the section of that title has no such key. */
const struct config_key *config_find_key(const char *title, const char *name);

bool config_is_in_section(const struct config_key *key, const struct config_section *section);

/* Items of a section with names, in CONFIG. */
size_t config_item_count(const struct config *config, const struct config_section *section);
void *config_item_at(struct config *config, const struct config_section *section, size_t index);
const char *config_item_name(const struct config *config, const struct config_section *section,
                             size_t index);
#define CONFIG_TITLE_MAX (TRIGGER_NAME_MAX + 32u)

/* "trigger crash": what its header has between [ and ]. Returns BUFFER. */
const char *config_item_title(char buffer[static CONFIG_TITLE_MAX], const struct config *config,
                              const struct config_section *section, size_t index);
/* The one called NAME; NULL: there is none. */
void *config_find_item(struct config *config, const struct config_section *section,
                       const char *name);
/* One more, all zero but for its name, which is valid; there is room. */
void *config_add_item(struct config *config, const struct config_section *section,
                      const char *name);

/* What to suggest for a word that is none; NULL: nothing comes near. Static. */
const char *config_nearest_section(const char *word);
/* Of the section of that title; NULL: of all. */
const char *config_nearest_key(const char *title, const char *name);
/* The title of the first section that has a key of that NAME; NULL: none has. */
const char *config_section_of_key(const char *name);

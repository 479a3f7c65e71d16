// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Three sources, in this order: the word is what another program calls it; it is an option of
 * another command; it is near to a word that exists. A line of the two tables here counts only if
 * what it leads to exists, so that the tables may name more than one build has.
 */

#include "ctl/hint.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "common/suggest.h"
#include "common/units.h"
#include "ctl/args-table.h"
#include "ctl/ctl.h"
#include "ctl/str.h"

#define WORDS_MAX 64u

struct synonym {
    const char *typed;
    const char *meant; /* a command, perhaps with an option; or the name of an option */
};

static const struct synonym commands[] = {
    /* systemctl, journalctl, coredumpctl */
    {"show", "status"},
    {"list-units", "list"},
    {"is-active", "status"},
    {"daemon-reload", "reload"},
    {"list-files", "list --files"},
    {"list-triggers", "list --triggers"},
    {"triggers", "list --triggers"},
    /* perf, trace-cmd */
    {"script", "dump"},
    {"print", "dump"},
    {"analyze", "report"},
    {"stat", "status"},
    {"top", "monitor"},
    {"extract", "snapshot"},
    {"trace", "record"},
    {"profile", "record"},
    /* lttng */
    {"create", "start"},
    {"enable-event", "start"},
    {"view", "info"},
    {"save", "snapshot"},
    /* the shell */
    {"ls", "list"},
    {"ps", "list"},
    {"file", "info"},
    {"check", "info"},
    {"verify", "info"},
    {"inspect", "info"},
    {"diagnose", "doctor"},
    {"live", "monitor"},
    {"watch", "monitor"},
    {"follow", "monitor"},
    {"begin", "start"},
    {"run", "record"},
    {"capture", "record"},
    {"end", "stop"},
    {"finish", "stop"},
    {"fire", "trigger"},
    {"prometheus", "metrics"},
    {"names", "events"},
};

static const struct synonym options[] = {
    /* perf, trace-cmd, timeout, tcpdump */
    {"duration", "time"},
    {"timeout", "time"},
    {"seconds", "time"},
    {"for", "time"},
    {"event", "events"},
    {"filter", "events"},
    {"cpu", "cpus"},
    {"processors", "cpus"},
    {"file", "output"},
    {"filename", "output"},
    {"out", "output"},
    {"overwrite", "memory"},
    {"mmap-pages", "buffer-pages"},
    {"limit", "max-size"},
    {"size", "max-size"},
    {"switch-output", "segment-size"},
    {"switch-max-files", "keep-files"},
    {"max-files", "keep-files"},
    {"rotate-size", "segment-size"},
    {"rotate-time", "segment-time"},
    {"silent", "quiet"},
    /* xentrace */
    {"evt-mask", "events"},
    {"cpu-mask", "cpus"},
    {"poll-sleep", "poll"},
    {"reserve-disk-space", "reserve"},
    {"trace-buf-size", "buffer-pages"},
    {"discard-buffers", "discard"},
    {"dont-disable-tracing", "keep-enabled"},
    {"memory-buffer", "memory"},
    {"time-interval", "time"},
    /* journalctl, systemctl, lttng */
    {"since", "last"},
    {"reason", "label"},
    {"message", "label"},
    {"vacuum-size", "max-use"},
    {"output-format", "json"},
    {"format", "json"},
    {"address", "socket"},
    {"machine", "host"},
};

/* Options that ask for what a command of its own does. */
static const struct synonym option_commands[] = {
    {"watch", "monitor"},
    {"follow", "monitor"},
    {"live", "monitor"},
};

/* --- Commands. --- */

static bool is_suggested(const struct verb *verb)
{
    return verb && !verb->destroys;
}

/* Whether "list --files" exists. */
static bool command_exists(const char *meant)
{
    size_t length = strcspn(meant, " ");
    _cleanup_free_ char *name = strndup(meant, length);
    const struct verb *verb = name ? verb_find(name) : NULL;

    if (!is_suggested(verb))
        return false;
    return !meant[length] || args_find(verb->options, meant + length + strlen(" --"));
}

static const char *find_command(const char *typed)
{
    const char *names[WORDS_MAX];
    size_t count, n = 0;
    const struct verb *const *verbs = verbs_all(&count);

    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        if (strcasecmp(commands[i].typed, typed) == 0 && command_exists(commands[i].meant))
            return commands[i].meant;
    }
    for (size_t i = 0; i < count && n < WORDS_MAX; i++) {
        if (is_suggested(verbs[i]))
            names[n++] = verbs[i]->name;
    }
    return suggest_nearest(typed, names, n);
}

int hint_refuse_command(const char *typed, char **ret_error)
{
    const char *meant = find_command(typed);

    if (access(typed, R_OK) == 0 && strchr(typed, '.'))
        return str_refuse(-EINVAL, ret_error,
                          "%s is a file, and a command is missing; did you mean \"info %s\"?",
                          typed, typed);
    if (meant)
        return str_refuse(-EINVAL, ret_error, "There is no command \"%s\"; did you mean \"%s\"?",
                          typed, meant);
    return str_refuse(-EINVAL, ret_error, "There is no command \"%s\".", typed);
}

/* --- Options. --- */

/* The option of that name that may be suggested, of VERB (may be NULL) or of all commands. */
static const struct args_option *find_own(const struct verb *verb, const char *name)
{
    const struct args_option *option = verb ? args_find(verb->options, name) : NULL;

    if (!option)
        option = args_find(args_global_options, name);
    return option && args_is_suggested(option) ? option : NULL;
}

/* The option of VERB that other programs call WORD. */
static const struct args_option *find_synonym(const struct verb *verb, const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        const struct args_option *option;

        if (strcasecmp(options[i].typed, word) != 0)
            continue;
        option = find_own(verb, options[i].meant);
        if (option)
            return option;
    }
    return NULL;
}

static size_t add_names(const char **names, size_t n, const struct args_option *table)
{
    for (size_t i = 0; i < args_count(table) && n < WORDS_MAX; i++) {
        if (args_is_suggested(&table[i]))
            names[n++] = table[i].name;
    }
    return n;
}

static const char *find_nearest(const struct verb *verb, const char *word)
{
    const char *names[WORDS_MAX];
    size_t n;

    n = add_names(names, 0, verb ? verb->options : NULL);
    n = add_names(names, n, args_global_options);
    return suggest_nearest(word, names, n);
}

/* "start, record": the commands that have such an option. NULL: none, or no memory. */
static char *find_owners(const struct verb *verb, const char *name, char letter)
{
    char *owners = NULL;
    size_t count;
    const struct verb *const *verbs = verbs_all(&count);

    for (size_t i = 0; i < count; i++) {
        const struct args_option *table = verbs[i]->options;
        bool has = false;
        char *longer;

        for (size_t j = 0; j < args_count(table); j++)
            has = has || (args_is_suggested(&table[j]) &&
                          (letter ? table[j].letter == letter : strcmp(table[j].name, name) == 0));
        if (!has || verbs[i] == verb || !is_suggested(verbs[i]))
            continue;
        longer = str_format("%s%s%s", owners ? owners : "", owners ? ", " : "", verbs[i]->name);
        free(owners);
        owners = longer;
        if (!owners)
            return NULL;
    }
    return owners;
}

/* The commands that have WORD, or what other programs call so, which is *RET_NAME then. */
static char *find_elsewhere(const struct verb *verb, const char *word, const char **ret_name)
{
    char *owners = find_owners(verb, word, 0);

    *ret_name = word;
    for (size_t i = 0; i < ARRAY_SIZE(options) && !owners; i++) {
        if (strcasecmp(options[i].typed, word) != 0)
            continue;
        owners = find_owners(verb, options[i].meant, 0);
        *ret_name = options[i].meant;
    }
    return owners;
}

static int refuse_elsewhere(const struct verb *verb, const char *typed, const char *option,
                            const char *owners, char **ret_error)
{
    if (!verb)
        return str_refuse(-EINVAL, ret_error,
                          "%s is an option of a command (%s): write it after the command.", option,
                          owners);
    if (strcmp(typed, option) == 0)
        return str_refuse(-EINVAL, ret_error, "%s has no option %s; these commands have it: %s.",
                          verb->name, typed, owners);
    return str_refuse(-EINVAL, ret_error, "%s has no option %s; these commands have %s: %s.",
                      verb->name, typed, option, owners);
}

static int refuse_for_command(const char *typed, const char *command, char **ret_error)
{
    return str_refuse(-EINVAL, ret_error, "There is no option %s; did you mean the command \"%s\"?",
                      typed, command);
}

/* The command that does what the option WORD asks for; NULL: none. */
static const char *find_option_command(const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(option_commands); i++) {
        if (strcasecmp(option_commands[i].typed, word) == 0)
            return option_commands[i].meant;
    }
    return NULL;
}

int hint_refuse_option(const struct verb *verb, const char *word, char **ret_error)
{
    const char *command = find_option_command(word);
    const struct args_option *synonym = find_synonym(verb, word);
    _cleanup_free_ char *owners = NULL, *typed = str_format("--%s", word), *option = NULL;
    const char *name = synonym ? synonym->name : NULL;

    if (!typed)
        return -ENOMEM;
    if (command)
        return refuse_for_command(typed, command, ret_error);
    if (!name) {
        owners = find_elsewhere(verb, word, &name);
        option = owners ? str_format("--%s", name) : NULL;
        if (option)
            return refuse_elsewhere(verb, typed, option, owners, ret_error);
        name = find_nearest(verb, word);
    }
    if (name)
        return str_refuse(-EINVAL, ret_error, "There is no option %s; did you mean --%s?", typed,
                          name);
    return str_refuse(-EINVAL, ret_error, "There is no option %s.", typed);
}

/* -t for -T: the same letter in the other case. */
static const struct args_option *find_other_case(const struct verb *verb, char letter)
{
    const struct args_option *table = verb ? verb->options : NULL;
    int other = isupper((unsigned char)letter) ? tolower((unsigned char)letter)
                                               : toupper((unsigned char)letter);

    for (size_t i = 0; i < args_count(table); i++) {
        if (args_is_suggested(&table[i]) && table[i].letter == other)
            return &table[i];
    }
    return NULL;
}

int hint_refuse_letter(const struct verb *verb, char letter, char **ret_error)
{
    const struct args_option *other = find_other_case(verb, letter);
    const char typed[] = {'-', letter > 0x20 && letter < 0x7f ? letter : '?', '\0'};
    _cleanup_free_ char *owners = NULL;

    if (verb && strcmp(verb->name, "status") == 0 && strchr("fw", letter))
        return refuse_for_command(typed, "monitor", ret_error); /* as tail and watch have them */
    if (other)
        return str_refuse(-EINVAL, ret_error, "There is no option %s; did you mean -%c (--%s)?",
                          typed, other->letter, other->name);
    owners = find_owners(verb, "", letter);
    if (owners)
        return refuse_elsewhere(verb, typed, typed, owners, ret_error);
    return str_refuse(-EINVAL, ret_error, "There is no option %s.", typed);
}

int hint_refuse_number(const struct verb *verb, const char *typed, char **ret_error)
{
    uint64_t usec;

    if (verb && args_find(verb->options, "last") &&
        duration_parse(typed + 1, USEC_PER_SEC, &usec) >= 0)
        return str_refuse(-EINVAL, ret_error,
                          "There is no option %s; did you mean --last %s, or --since %s?", typed,
                          typed + 1, typed);
    return str_refuse(-EINVAL, ret_error, "There is no option %s.", typed);
}

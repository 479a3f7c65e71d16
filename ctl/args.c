// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * getopt_long(3) permutes its words, so options and names may come in any order. Its own messages
 * are turned off and replaced by sentences that name the nearest option.
 *
 * Each value is parsed here although the daemon receives lists as they were typed: a mistake is
 * reported before a file is made or the daemon is asked. Each sentence shows a correct value.
 */

#include "ctl/args.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>

#include "common/cpu-set.h"
#include "common/event-set.h"
#include "common/units.h"
#include "ctl/ctl.h"
#include "ctl/hint.h"
#include "ctl/str.h"

#define HELP_COLUMN 24 /* where the explanations begin */

enum {
    FIRST_OWN = 0x1000, /* getopt's values: of an option of the command, by its index */
    FIRST_GLOBAL = 0x2000,
};

struct parser {
    const struct verb *verb; /* NULL: no command yet */
    const struct args_option *table;
    int argc;
    char **argv;
    struct option *long_options;
    char *letters;
};

static void parser_done(struct parser *parser)
{
    free(parser->long_options);
    free(parser->letters);
}

/* Adds the options of TABLE, the first of which has the value FIRST. */
static void parser_add(struct parser *parser, const struct args_option *table, int first)
{
    struct option *option = parser->long_options;
    char *letter = parser->letters + strlen(parser->letters);

    while (option->name)
        option++;
    for (int i = 0; table && table[i].help; i++) {
        if (!table[i].name)
            continue;
        *option++ = (struct option){
            .name = table[i].name,
            .has_arg = table[i].argument ? required_argument : no_argument,
            .val = first + i,
        };
        if (!table[i].letter)
            continue;
        *letter++ = table[i].letter;
        if (table[i].argument)
            *letter++ = ':';
    }
}

static int parser_init(struct parser *parser, bool until_word)
{
    size_t n = args_count(parser->table) + args_count(args_global_options);

    parser->long_options = calloc(n + 1, sizeof(struct option));
    parser->letters = calloc(1, 2 * n + 3);
    if (!parser->long_options || !parser->letters)
        return -ENOMEM;
    (void)strcpy(parser->letters, until_word ? "+:" : ":"); /* ':' reports a missing value apart */
    parser_add(parser, parser->table, FIRST_OWN);
    parser_add(parser, args_global_options, FIRST_GLOBAL);
    optind = 0; /* glibc: start over, other vector */
    opterr = 0;
    return 0;
}

/* The option with that value, or that letter, of getopt's. */
static const struct args_option *find_option(const struct args_option *table, int first, int value)
{
    int n = (int)args_count(table);

    if (value >= first && value < first + n)
        return &table[value - first];
    for (int i = 0; i < n; i++) {
        if (table[i].letter && table[i].letter == value)
            return &table[i];
    }
    return NULL;
}

/* TYPED is "--evnets" or "--evnets=sched". */
static int refuse_unknown(const struct parser *parser, const char *typed, char **ret_error)
{
    _cleanup_free_ char *word = strndup(typed + 2, strcspn(typed + 2, "="));

    return word ? hint_refuse_option(parser->verb, word, ret_error) : -ENOMEM;
}

/* The first word like "-40s". */
static const char *find_number(const struct parser *parser)
{
    for (int i = 1; i < parser->argc; i++) {
        if (parser->argv[i][0] == '-' && isdigit((unsigned char)parser->argv[i][1]))
            return parser->argv[i];
    }
    return parser->argv[optind - 1]; /* "-q4" */
}

/* RESULT is getopt's '?' or ':'; optopt is the option that it is about. */
static int refuse_option(const struct parser *parser, int result, char **ret_error)
{
    const char *word = parser->argv[optind - 1];

    if (result == ':' && strncmp(word, "--", 2) == 0)
        return str_refuse(-EINVAL, ret_error, "Option %s needs a value.", word);
    if (result == ':')
        return str_refuse(-EINVAL, ret_error, "Option -%c needs a value.", optopt);
    if (!optopt)
        return refuse_unknown(parser, word, ret_error);
    if (optopt >= '0' && optopt <= '9')
        return hint_refuse_number(parser->verb, find_number(parser), ret_error);
    if (optopt > UCHAR_MAX) /* "--json=yes" */
        return str_refuse(-EINVAL, ret_error, "Option %.*s takes no value.",
                          (int)strcspn(word, "="), word);
    return hint_refuse_letter(parser->verb, (char)optopt, ret_error);
}

static int set_duration(const struct args_option *option, const char *label, const char *text,
                        uint64_t *ret_usec, char **ret_error)
{
    uint64_t usec;

    if (duration_parse(text, option->unit, &usec) < 0)
        return str_refuse(-EINVAL, ret_error,
                          "%s \"%s\" is not a time: write 10, 10s, 500ms or 5min.", label, text);
    if (usec == 0)
        return str_refuse(-EINVAL, ret_error, "%s %s: the time must be greater than 0.", label,
                          text);
    *ret_usec = usec;
    return 0;
}

static int set_size(const struct args_option *option, const char *label, const char *text,
                    uint64_t *ret_bytes, char **ret_error)
{
    uint64_t bytes;

    if (size_parse(text, option->unit, &bytes) < 0)
        return str_refuse(-EINVAL, ret_error, "%s \"%s\" is not a size: write 64M, 1.5G or 4096B.",
                          label, text);
    if (bytes == 0 && option->type != ARGS_SIZE_OR_0)
        return str_refuse(-EINVAL, ret_error, "%s %s: the size must be greater than 0.", label,
                          text);
    *ret_bytes = bytes;
    return 0;
}

static int set_count(const struct args_option *option, const char *label, const char *text,
                     uint32_t *ret_count, char **ret_error)
{
    unsigned long count;
    char *end;

    errno = 0;
    count = strtoul(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || count < 1 || count > UINT32_MAX)
        return str_refuse(-EINVAL, ret_error, "%s \"%s\" is not a number of %s: write 1 or more.",
                          label, text, option->detail);
    *ret_count = (uint32_t)count;
    return 0;
}

static int set_choice(const struct args_option *option, const char *label, const char *text,
                      const char **ret_choice, char **ret_error)
{
    for (const char *word = option->detail; *word;) {
        size_t length = strcspn(word, " ");

        if (strlen(text) == length && strncmp(word, text, length) == 0) {
            *ret_choice = text;
            return 0;
        }
        word += length + strspn(word + length, " ");
    }
    return str_refuse(-EINVAL, ret_error, "%s \"%s\" is not one of: %s.", label, text,
                      option->detail);
}

static int set_cpus(const char *list, const char **ret_list, char **ret_error)
{
    struct cpu_set cpus;
    int r;

    r = cpu_set_parse(list, CPU_SET_MAX, &cpus, ret_error);
    if (r < 0)
        return r == -ERANGE ? -EINVAL : r;
    if (cpu_set_count(&cpus) == 0)
        return str_refuse(-EINVAL, ret_error, "The CPU list \"%s\" contains no CPU.", list);
    *ret_list = list;
    return 0;
}

static int set_file(const char *label, const char *text, const char **ret_path, char **ret_error)
{
    if (!*text)
        return str_refuse(-EINVAL, ret_error, "%s needs the name of a file.", label);
    *ret_path = text;
    return 0;
}

/* Lists are checked together at the end: numbers are OR-ed, and one alone may be no event yet. */
static int add_events(char **events, const char *list)
{
    char *joined = *events ? str_format("%s,%s", *events, list) : strdup(list);

    if (!joined)
        return -ENOMEM;
    free(*events);
    *events = joined;
    return 0;
}

static int add_to_list(const char *label, const char *text, struct args_list *list,
                       char **ret_error)
{
    if (!*text)
        return str_refuse(-EINVAL, ret_error, "%s needs a value that is not empty.", label);
    if (list->nr == ARGS_LIST_MAX)
        return str_refuse(-EINVAL, ret_error, "%s may be given up to %u times.", label,
                          ARGS_LIST_MAX);
    list->values[list->nr++] = text;
    return 0;
}

static int set_value(const struct args_option *option, void *values, char **ret_error)
{
    void *value = (char *)values + option->offset;
    char label[ARGS_LABEL_MAX];

    (void)args_label(label, option);
    switch (option->type) {
    case ARGS_FLAG:
    case ARGS_DESTROY:
        *(bool *)value = true;
        return 0;
    case ARGS_TEXT:
    case ARGS_HOST:
        *(const char **)value = optarg;
        return 0;
    case ARGS_NAME:
    case ARGS_SESSION:
        *(const char **)value = optarg;
        return args_check_name(optarg, option->detail, ret_error);
    case ARGS_FILE:
        return set_file(label, optarg, value, ret_error);
    case ARGS_CHOICE:
        return set_choice(option, label, optarg, value, ret_error);
    case ARGS_DURATION:
        return set_duration(option, label, optarg, value, ret_error);
    case ARGS_SIZE:
    case ARGS_SIZE_OR_0:
        return set_size(option, label, optarg, value, ret_error);
    case ARGS_COUNT:
        return set_count(option, label, optarg, value, ret_error);
    case ARGS_EVENTS:
        return add_events(value, optarg);
    case ARGS_CPUS:
        return set_cpus(optarg, value, ret_error);
    case ARGS_LIST:
        return add_to_list(label, optarg, value, ret_error);
    }
    return -EINVAL;
}

static int check_events(const struct args_option *table, const void *values, char **ret_error)
{
    struct event_set set;
    int r;

    for (size_t i = 0; i < args_count(table); i++) {
        const char *events;

        if (!table[i].name || table[i].type != ARGS_EVENTS)
            continue;
        events = *(char *const *)((const char *)values + table[i].offset);
        r = events ? event_set_parse(events, &set, ret_error) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static int check_words(int argc, char **argv, int max, char **ret_error)
{
    const struct verb *verb = verb_find(argv[0]);
    const char *more = argc - optind > 2 ? ", ..." : "";

    if (argc - optind <= max)
        return 0;
    if (max == 0)
        return str_refuse(-EINVAL, ret_error, "%s takes no argument, but was given %s.", argv[0],
                          argv[optind]);
    if (verb && verb_takes_command(verb))
        return str_refuse(-EINVAL, ret_error,
                          "%s takes one argument, but was given %d: %s, %s%s. A command follows "
                          "after --: %s -- %s ...",
                          argv[0], argc - optind, argv[optind], argv[optind + 1], more, argv[0],
                          argv[optind]);
    return str_refuse(-EINVAL, ret_error, "%s takes one argument, but was given %d: %s, %s%s.",
                      argv[0], argc - optind, argv[optind], argv[optind + 1], more);
}

/* getopt_long() takes a beginning for the whole: not where that takes something away. */
static int check_in_full(const struct args_option *option, const char *typed, char **ret_error)
{
    if (option->type != ARGS_DESTROY || strncmp(typed, "--", 2) != 0 ||
        strcmp(typed + 2, option->name) == 0)
        return 0;
    return str_refuse(-EINVAL, ret_error, "Write --%s in full.", option->name);
}

int args_parse(struct ctl *ctl, const struct args_option *table, int argc, char **argv,
               int max_words, void *values, uint64_t *ret_given, char **ret_error)
{
    _cleanup_(parser_done) struct parser parser = {
        .verb = max_words < 0 ? NULL : verb_find(argv[0]),
        .table = table,
        .argc = argc,
        .argv = argv,
    };
    uint64_t given = 0;
    int value, r;

    r = parser_init(&parser, max_words < 0);
    if (r < 0)
        return r;
    while ((value = getopt_long(argc, argv, parser.letters, parser.long_options, NULL)) >= 0) {
        const struct args_option *option = find_option(table, FIRST_OWN, value);
        bool is_own = option;

        if (!option)
            option = find_option(args_global_options, FIRST_GLOBAL, value);
        if (!option)
            return refuse_option(&parser, value, ret_error);
        if (option->letter == 'h' && !is_own)
            return -ECANCELED;
        r = check_in_full(option, argv[optind - 1], ret_error);
        if (r < 0)
            return r;
        r = set_value(option, is_own ? values : ctl, ret_error);
        if (r < 0)
            return r;
        if (is_own)
            given |= UINT64_C(1) << (option - table);
    }
    r = check_events(table, values, ret_error);
    if (r < 0)
        return r;
    if (ret_given)
        *ret_given = given;
    return max_words < 0 ? 0 : check_words(argc, argv, max_words, ret_error);
}

/* --- The command line again. --- */

void args_free_words(char ***words)
{
    for (char **word = *words; word && *word; word++)
        free(*word);
    free(*words);
    *words = NULL;
}

/* Takes WORD, which may be NULL for a lack of memory. WORDS has room. */
static int add_word(char **words, char *word)
{
    size_t n = 0;

    while (words[n])
        n++;
    words[n] = word;
    return word ? 0 : -ENOMEM;
}

static bool is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

static int add_options(struct parser *parser, const char *const *left_out, char **words)
{
    int value, r;

    while ((value = getopt_long(parser->argc, parser->argv, parser->letters, parser->long_options,
                                NULL)) >= 0) {
        const struct args_option *option = find_option(parser->table, FIRST_OWN, value);

        if (!option)
            option = find_option(args_global_options, FIRST_GLOBAL, value);
        if (!option)
            return -EINVAL;
        if (is_among(option->name, left_out))
            continue;
        r = add_word(words, option->argument ? str_format("--%s=%s", option->name, optarg)
                                             : str_format("--%s", option->name));
        if (r < 0)
            return r;
    }
    return 0;
}

int args_rebuild(const struct args_option *table, int argc, char **argv,
                 const char *const *left_out, const char *const *added, char ***ret_words)
{
    _cleanup_(parser_done) struct parser parser = {.table = table, .argc = argc, .argv = argv};
    _cleanup_(args_free_words) char **words = NULL;
    size_t nr_added = 0;
    int r;

    while (added && added[nr_added])
        nr_added++;
    words = calloc((size_t)argc + nr_added + 2, sizeof(*words));
    if (!words)
        return -ENOMEM;
    r = parser_init(&parser, false);
    if (r < 0)
        return r;
    r = add_word(words, strdup(argv[0]));
    if (r < 0)
        return r;
    r = add_options(&parser, left_out, words);
    for (size_t i = 0; i < nr_added && r >= 0; i++)
        r = add_word(words, strdup(added[i]));
    if (r >= 0 && optind < argc && *argv[optind] == '-')
        r = add_word(words, strdup("--"));
    for (int i = optind; i < argc && r >= 0; i++)
        r = add_word(words, strdup(argv[i]));
    if (r < 0)
        return r;
    *ret_words = TAKE_PTR(words);
    return 0;
}

/* One that ends with a command has no full stop, which would be copied with it. */
static bool is_complete(const char *sentence)
{
    return sentence && *sentence && strchr(".?", sentence[strlen(sentence) - 1]);
}

int args_exit(const struct verb *verb, int r, char *error)
{
    _cleanup_free_ char *sentence = error;

    if (r == -ECANCELED) {
        verb_print_help(stdout, verb);
        return CTL_OK;
    }
    if (r != -EINVAL) {
        ctl_error_sentence(sentence);
        return CTL_FAILURE;
    }
    ctl_error("%s%s See: xentracectl %s%s--help", sentence, is_complete(sentence) ? "" : ".",
              verb ? verb->name : "", verb ? " " : "");
    return CTL_USAGE;
}

int args_check_name(const char *name, const char *what, char **ret_error)
{
    if (*name && !strchr(name, '/'))
        return 0;
    return str_refuse(
        -EINVAL, ret_error,
        "\"%s\" is not a valid name for %s: a name is a word without a slash. To name "
        "a file, use -o.",
        name, what);
}

/* The lines of TEXT, all but the first one after an indent. */
static void print_lines(FILE *file, const char *text)
{
    for (;;) {
        int length = (int)strcspn(text, "\n");

        (void)fprintf(file, "%.*s\n", length, text);
        text += length;
        if (!*text)
            return;
        (void)fprintf(file, "%*s", HELP_COLUMN, "");
        text++;
    }
}

static void print_options(FILE *file, const struct args_option *table)
{
    for (size_t i = 0; i < args_count(table); i++) {
        const struct args_option *option = &table[i];
        int width;

        if (!option->name) {
            (void)fprintf(file, "%s%s\n", i > 0 ? "\n" : "", option->help);
            continue;
        }
        width = option->letter ? fprintf(file, "  -%c, ", option->letter) : fprintf(file, "      ");
        width += fprintf(file, "--%s%s%s", option->name, option->argument ? " " : "",
                         option->argument ? option->argument : "");
        if (width >= HELP_COLUMN) { /* no blank would be left */
            (void)fputc('\n', file);
            width = 0;
        }
        (void)fprintf(file, "%*s", HELP_COLUMN - width, "");
        print_lines(file, option->help);
    }
}

void args_print_help(FILE *file, const struct args_option *table)
{
    print_options(file, table ? table : args_global_options);
}

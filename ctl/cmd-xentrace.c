// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xentracectl xentrace: takes xentrace's command line, and records as it says, for scripts that
 * were written for xentrace. It makes the command line of `record`, which --translate prints.
 *
 * Source: xentrace's options as of Xen 4.17, tried with its binary (tests/sim/compat.sh compares).
 * docs/from-xentrace.md lists them. Where they differ from ours:
 *
 * - Several masks are joined, and names are in lower case. Without -e, xentrace leaves Xen's mask
 *   as it is, which is everything after a boot.
 * - -S is ignored if Xen's buffers have a size already.
 * - -M may be smaller than the least that xentraced takes.
 * - FILE is truncated if it exists, and "-" is one. Records for a pipe go to /dev/stdout.
 */

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/remote.h"
#include "ctl/str.h"

#define MASK_ALL         0x0ffff000u
#define MEMORY_MIN_BYTES (UINT64_C(2) << 20) /* the daemon's */
#define WORDS_MAX        32u

/* The command line as parsed; 0 and NULL: not given. */
struct xentrace {
    uint32_t mask;
    const char *event_name; /* if one name is all there is to it */
    unsigned int nr_masks;
    const char *cpus;
    const char *file;
    uint64_t poll_msec, pages, reserve_mib, time_sec, memory_bytes;
    bool discard, keep_enabled, start_disabled;
    bool is_to_be_printed; /* --translate */
    bool wants_help, wants_version;
};

/* The words of the command line of `record`. */
struct words {
    char *word[WORDS_MAX + 1];
    size_t count;
    bool has_failed; /* no memory */
};

/* --- xentrace's command line. --- */

/* For the help and the shell's completion. args_parse() would judge values as ours. */
static const struct args_option options_table[] = {
    {"evt-mask", 'e', "MASK", ARGS_TEXT, .help = "events: a number, gen, sched, dom0op, hvm, all"},
    {"cpu-mask", 'c', "CPUS", ARGS_TEXT, .help = "CPUs: 0xff, 0-7, 0,2-, all"},
    {"time-interval", 'T', "N", ARGS_TEXT, .help = "end after N seconds"},
    {"reserve-disk-space", 'r', "N", ARGS_TEXT, .help = "leave N MiB of the disk free"},
    {"memory-buffer", 'M', "SIZE", ARGS_TEXT,
     .help = "keep the newest SIZE in memory until the end"},
    {"poll-sleep", 's', "N", ARGS_TEXT, .help = "read the buffers at least every N ms"},
    {"trace-buf-size", 'S', "N", ARGS_TEXT,
     .help = "pages per CPU for Xen's buffers, if they are not set yet"},
    {"discard-buffers", 'D', .help = "discard the records in Xen's buffers first"},
    {"dont-disable-tracing", 'x', .help = "leave tracing enabled at the end"},
    {"start-disabled", 'X', .help = "set up, but never enable tracing"},
    {"version", 'V', .help = "print the versions"},
    {"translate", .help = "print the equivalent command of xentracectl"},
    {},
};

enum { OPTION_TRANSLATE = 256, OPTION_SOCKET, OPTION_JSON };

static const struct option long_options[] = {
    {"poll-sleep", required_argument, NULL, 's'},
    {"cpu-mask", required_argument, NULL, 'c'},
    {"evt-mask", required_argument, NULL, 'e'},
    {"trace-buf-size", required_argument, NULL, 'S'},
    {"reserve-disk-space", required_argument, NULL, 'r'},
    {"time-interval", required_argument, NULL, 'T'},
    {"memory-buffer", required_argument, NULL, 'M'},
    {"discard-buffers", no_argument, NULL, 'D'},
    {"dont-disable-tracing", no_argument, NULL, 'x'},
    {"start-disabled", no_argument, NULL, 'X'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    /* ours */
    {"translate", no_argument, NULL, OPTION_TRANSLATE},
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"json", no_argument, NULL, OPTION_JSON},
    {},
};

/* A number as strtol(3) reads it with base 0: 10, 0x10, 010. */
static int parse_number(const char *text, int option, uint64_t max, uint64_t *ret_number,
                        char **ret_error)
{
    unsigned long long number;
    char *end;

    errno = 0;
    number = strtoull(text, &end, 0);
    if (!isdigit((unsigned char)*text) || *end || errno || number > max)
        return str_refuse(-EINVAL, ret_error, "-%c %s: not a number in xentrace's syntax.", option,
                          text);
    *ret_number = number;
    return 0;
}

static int parse_events(struct xentrace *options, const char *text, char **ret_error)
{
    static const struct {
        const char *name;
        uint32_t mask;
    } names[] = {
        {"gen", 0x0001f000}, {"sched", 0x0002f000}, {"dom0op", 0x0004f000},
        {"hvm", 0x0008f000}, {"all", MASK_ALL},
    };
    uint64_t number;
    int r;

    options->nr_masks++;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(text, names[i].name) != 0)
            continue;
        options->mask |= names[i].mask;
        options->event_name = names[i].mask == MASK_ALL ? NULL : names[i].name;
        return 0;
    }
    r = parse_number(text, 'e', UINT32_MAX, &number, ret_error);
    if (r < 0)
        return r;
    options->mask |= (uint32_t)number;
    options->event_name = NULL;
    return 0;
}

/* xentrace takes one letter after the number. */
static int parse_memory(struct xentrace *options, const char *text, char **ret_error)
{
    if (size_parse(text, 1, &options->memory_bytes) < 0)
        return str_refuse(-EINVAL, ret_error, "-M %s: not a size, such as 64M.", text);
    options->memory_bytes = max_u64(options->memory_bytes, MEMORY_MIN_BYTES);
    return 0;
}

static int parse_option(struct ctl *ctl, struct xentrace *options, int option, const char *value,
                        char **ret_error)
{
    switch (option) {
    case OPTION_TRANSLATE:
        options->is_to_be_printed = true;
        return 0;
    case OPTION_SOCKET:
        ctl->socket = value;
        return 0;
    case OPTION_JSON:
        ctl->json = true;
        return 0;
    case 'e':
        return parse_events(options, value, ret_error);
    case 'M':
        return parse_memory(options, value, ret_error);
    case 's':
        return parse_number(value, option, UINT32_MAX, &options->poll_msec, ret_error);
    case 'S':
        return parse_number(value, option, UINT16_MAX, &options->pages, ret_error);
    case 'r':
        return parse_number(value, option, UINT32_MAX, &options->reserve_mib, ret_error);
    case 'T':
        return parse_number(value, option, UINT32_MAX, &options->time_sec, ret_error);
    case 'c':
        options->cpus = value;
        return 0;
    case 'D':
        options->discard = true;
        return 0;
    case 'x':
        options->keep_enabled = true;
        return 0;
    case 'X':
        options->start_disabled = true;
        return 0;
    case 'V':
        options->wants_version = true;
        return 0;
    default:
        options->wants_help = true;
        return 0;
    }
}

static int refuse_option(char *const *argv, int option, char **ret_error)
{
    if (option == ':')
        return str_refuse(-EINVAL, ret_error, "%s needs a value.", argv[optind - 1]);
    if (optopt)
        return str_refuse(-EINVAL, ret_error, "xentrace has no option -%c.", optopt);
    return str_refuse(-EINVAL, ret_error, "xentrace has no option %s.", argv[optind - 1]);
}

static int parse(struct ctl *ctl, struct xentrace *options, int argc, char **argv, char **ret_error)
{
    int option, r;

    optind = 0; /* glibc: start over, other vector */
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":s:c:e:S:r:T:M:DxXVh", long_options, NULL)) >= 0) {
        bool asks_help = option == '?' && optopt == '?'; /* xentrace's -?; -h is ours */

        if ((option == '?' && !asks_help) || option == ':')
            return refuse_option(argv, option, ret_error);
        r = parse_option(ctl, options, option, optarg, ret_error);
        if (r < 0)
            return r;
    }
    if (argc - optind > 1)
        return str_refuse(-EINVAL, ret_error, "xentrace takes one file, but was also given %s.",
                          argv[optind + 1]);
    options->file = optind < argc ? argv[optind] : NULL;
    if (!options->file && !options->wants_help && !options->wants_version)
        return str_refuse(-EINVAL, ret_error, "xentrace needs the name of a file.");
    return 0;
}

/* --- Ours. --- */

/* Takes WORD over. */
static void words_take(struct words *words, char *word)
{
    if (!word || words->count == WORDS_MAX) {
        free(word);
        words->has_failed = true;
        return;
    }
    words->word[words->count++] = word;
}

static void words_done(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->word[i]);
}

static void words_add(struct words *words, const char *word)
{
    words_take(words, strdup(word));
}

/* "-T", "10"; nothing if NUMBER is 0, which xentrace takes for "not given". */
static void words_add_number(struct words *words, const char *option, uint64_t number)
{
    if (number == 0)
        return;
    words_add(words, option);
    words_take(words, str_format("%" PRIu64, number));
}

static void words_add_flag(struct words *words, const char *option, bool is_given)
{
    if (is_given)
        words_add(words, option);
}

static bool is_stdout(const char *file)
{
    return strcmp(file, "/dev/stdout") == 0 || strcmp(file, "/dev/fd/1") == 0;
}

static void words_make(struct words *words, const struct xentrace *options)
{
    words_add(words, "record");
    words_add(words, "-q");
    words_add(words, "-e");
    if (options->event_name && options->nr_masks == 1)
        words_add(words, options->event_name);
    else
        words_take(words, str_format("0x%08" PRIx32, options->mask ? options->mask : MASK_ALL));
    if (options->cpus)
        words_take(words, str_format("--cpus=%s", options->cpus)); /* it may begin with "-" */
    words_add_number(words, "-T", options->time_sec);
    words_add_number(words, "-r", options->reserve_mib);
    words_add_number(words, "-s", options->poll_msec);
    words_add_number(words, "-S", options->pages);
    words_add_number(words, "-M", options->memory_bytes);
    words_add_flag(words, "-D", options->discard);
    words_add_flag(words, "-x", options->keep_enabled);
    words_add_flag(words, "-X", options->start_disabled);
    words_add_flag(words, "--force", !is_stdout(options->file));
    words_add(words, "-o");
    if (is_stdout(options->file))
        words_add(words, "-");
    else
        words_add(words, strcmp(options->file, "-") == 0 ? "./-" : options->file);
}

static void print_words(const struct words *words)
{
    (void)fputs("xentracectl", stdout);
    for (size_t i = 0; i < words->count; i++) {
        _cleanup_free_ char *quoted = str_shell_show(words->word[i]);

        (void)printf(" %s", quoted ? quoted : words->word[i]);
    }
    (void)putchar('\n');
}

/* xentrace ignores -S once the buffers have a size. Returns whether that is so, and drops it. */
static bool drop_known_size(struct ctl *ctl, struct xentrace *options)
{
    _cleanup_doc_ struct json_object *status = NULL;
    _cleanup_free_ char *error = NULL;
    uint64_t pages;
    bool differs;

    if (!options->pages || client_ask(ctl->socket, client_status, "", &status, &error) < 0)
        return false; /* without an answer, `record` reports why */
    pages = doc_number(status, "xen.buffer_pages");
    differs = pages && pages != options->pages;
    if (differs)
        ctl_error("-S %" PRIu64 " is ignored: Xen's buffers have %" PRIu64
                  " pages per CPU until the host is rebooted.",
                  options->pages, pages);
    if (differs)
        options->pages = 0;
    return differs;
}

/* xentrace writes nothing but records to standard output, so the summary goes to standard error. */
static int leave_stdout(void)
{
    if (fflush(stdout) == 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        return 0;
    ctl_error("Cannot redirect standard output: %s.", strerror(errno));
    return -errno;
}

static int record(struct ctl *ctl, const struct xentrace *options)
{
    _cleanup_(words_done) struct words words = {};

    words_make(&words, options);
    if (words.has_failed) {
        ctl_error("Out of memory.");
        return CTL_FAILURE;
    }
    if (options->is_to_be_printed) {
        print_words(&words);
        return CTL_OK;
    }
    return verb_record.run(ctl, (int)words.count, words.word);
}

/*
 * The daemon does not know the size of buffers that were allocated before it until it has used them
 * once. It does after it has refused another size, with nothing done.
 */
static int run(struct ctl *ctl, struct xentrace *options)
{
    int code;

    if (options->is_to_be_printed)
        return record(ctl, options);
    if (!is_stdout(options->file) && leave_stdout() < 0)
        return CTL_FAILURE;
    (void)drop_known_size(ctl, options);
    code = record(ctl, options);
    if (code == CTL_FAILURE && drop_known_size(ctl, options))
        code = record(ctl, options);
    return code;
}

static int cmd_xentrace(struct ctl *ctl, int argc, char **argv)
{
    struct xentrace options = {};
    char *error = NULL;
    int r, code;

    r = parse(ctl, &options, argc, argv, &error);
    if (r < 0)
        return args_exit(&verb_xentrace, r, error);
    if (options.wants_help) {
        verb_print_help(stdout, &verb_xentrace);
        return CTL_OK;
    }
    if (options.wants_version)
        return verb_version.run(ctl, 1, (char *[]){argv[0], NULL});
    if (!options.is_to_be_printed &&
        remote_run_words(ctl, argv, is_stdout(options.file) ? "-" : options.file,
                         !is_stdout(options.file), &code))
        return code;
    return run(ctl, &options);
}

const struct verb verb_xentrace = {
    .name = "xentrace",
    .run = cmd_xentrace,
    .words = "FILE",
    .completes = "files",
    .summary = "record with xentrace's command line",
    .help = "Records as xentrace does with that command line, for old scripts: until Ctrl-C,\n"
            "SIGTERM, SIGHUP or the end of -T. FILE is replaced, and may be /dev/stdout.\n",
    .options = options_table,
    .remote = VERB_STAYS_HERE,
    .examples = "  xentracectl xentrace -e sched -T 10 trace.bin\n"
                "  xentracectl xentrace --translate -e sched -T 10 trace.bin\n",
};

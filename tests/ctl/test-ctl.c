// SPDX-License-Identifier: GPL-2.0-or-later
/* The parts of xentracectl that need no daemon: options, formatting, strange documents. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/sidecar-path.h"
#include "common/units.h"
#include "ctl/doc.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/progress.h"
#include "ctl/session.h"
#include "ctl/str.h"
#include "ctl/table.h"

/* Of main.c, which is not linked. */
void ctl_error(const char *format, ...)
{
    (void)format;
}

void ctl_warning(const char *format, ...)
{
    (void)format;
}

void ctl_error_sentence(const char *sentence)
{
    (void)sentence;
}

static int failures;

static void check(bool ok, const char *test, const char *name)
{
    if (!ok) {
        failures++;
        (void)printf("FAILED: %s: %s\n", test, name);
    }
}

static void check_text(const char *got, const char *want, const char *test, const char *name)
{
    bool ok = got && strcmp(got, want) == 0;

    check(ok, test, name);
    if (!ok)
        (void)printf("  got  \"%s\"\n  want \"%s\"\n", got ? got : "(null)", want);
}

/* A command line, and what becomes of it. */
struct options_case {
    const char *name;
    const char *line; /* words, separated by blanks */
    int result;
    const char *error; /* part of the sentence */
    const char *parsed;
};

#define NOTHING "name=- events=- cpus=- out=- T=0 max=0 s=0 r=no S=0 flags="

static const struct options_case options_cases[] = {
    {"nothing", "start", 0, NULL, NOTHING},
    {"a name", "start boot", 0, NULL,
     "name=boot events=- cpus=- out=- T=0 max=0 s=0 r=no S=0 flags="},
    {"xentrace's letters", "start -e sched -c 0-7 -T 10 -o f -r 100 -S 64 -s 50 -D -x", 0, NULL,
     "name=- events=sched cpus=0-7 out=f T=10000000 max=0 s=50000 r=104857600 S=64 flags=Dx"},
    {"long options",
     "start --events=hvm --cpus=all --time=5min --output=- --reserve=1G --max-size=4096 "
     "--buffer-pages=1 --poll=1s --discard --keep-enabled --start-disabled",
     0, NULL,
     "name=- events=hvm cpus=all out=- T=300000000 max=4096 s=1000000 r=1073741824 S=1 flags=DxX"},
    {"options after the name", "record boot -q -X", 0, NULL,
     "name=boot events=- cpus=- out=- T=0 max=0 s=0 r=no S=0 flags=Xq"},
    {"events add up", "start -e sched -e hvm,mem", 0, NULL,
     "name=- events=sched,hvm,mem cpus=- out=- T=0 max=0 s=0 r=no S=0 flags="},
    {"numbers are one mask", "start -e 0x00100000 -e 0x0000f000", 0, NULL,
     "name=- events=0x00100000,0x0000f000 cpus=- out=- T=0 max=0 s=0 r=no S=0 flags="},
    {"CPU 0 alone", "start -c 0-0", 0, NULL,
     "name=- events=- cpus=0-0 out=- T=0 max=0 s=0 r=no S=0 flags="},
    {"a reserve of nothing", "start -r 0", 0, NULL,
     "name=- events=- cpus=- out=- T=0 max=0 s=0 r=0 S=0 flags="},
    {"force with an output", "start -o f --force", 0, NULL,
     "name=- events=- cpus=- out=f T=0 max=0 s=0 r=no S=0 flags=f"},
    {"a name that looks like an option", "start -- -x", 0, NULL,
     "name=-x events=- cpus=- out=- T=0 max=0 s=0 r=no S=0 flags="},
    {"global options anywhere", "start --json --socket /s boot", 0, NULL,
     "name=boot events=- cpus=- out=- T=0 max=0 s=0 r=no S=0 flags="},
    {"help", "start -T 5 --help", -ECANCELED, NULL, NULL},
    {"unknown event", "start -e shced", -EINVAL, "sched", NULL},
    {"no event at all", "start -e 0x00000000", -EINVAL, "", NULL},
    {"no CPU list", "start -c x", -EINVAL, "\"x\"", NULL},
    {"a CPU beyond all", "start -c 99999", -EINVAL, "", NULL},
    {"no CPU at all", "start -c 0x0", -EINVAL, "CPU", NULL},
    {"no time", "start -T 0", -EINVAL, "greater than 0", NULL},
    {"not a time", "start -T soon", -EINVAL, "is not a time", NULL},
    {"a negative time", "start -T -5", -EINVAL, "is not a time", NULL},
    {"no size", "start --max-size 0", -EINVAL, "greater than 0", NULL},
    {"not a size", "start -r much", -EINVAL, "is not a size", NULL},
    {"a size beyond all", "start -r 99999999999T", -EINVAL, "is not a size", NULL},
    {"no pages", "start -S 0", -EINVAL, "number of pages", NULL},
    {"not a number of pages", "start -S 3x", -EINVAL, "number of pages", NULL},
    {"too many pages", "start -S 4294967296", -EINVAL, "number of pages", NULL},
    {"negative pages", "start -S -1", -EINVAL, "number of pages", NULL},
    {"no poll", "start -s 0", -EINVAL, "greater than 0", NULL},
    {"an empty output", "start --output=", -EINVAL, "needs the name", NULL},
    {"force without an output", "start --force", -EINVAL, "--force needs -o", NULL},
    {"two names", "start a b", -EINVAL, "one argument", NULL},
    {"a path as the name", "start a/b", -EINVAL, "not a valid name", NULL},
    {"a missing value", "start -T", -EINVAL, "Option -T needs a value", NULL},
    {"a missing value, long", "start --time", -EINVAL, "Option --time needs a value", NULL},
    {"a value too many", "start --json=yes", -EINVAL, "--json takes no value", NULL},
    {"an unknown option", "start --tiem 3", -EINVAL, "did you mean --time?", NULL},
    {"an unknown letter", "start -z", -EINVAL, "no option -z", NULL},
    {"an unknown letter after a known one", "start -Dz", -EINVAL, "no option -z", NULL},
    {"quiet is record's", "start -q", -EINVAL, "no option -q", NULL},
    {"a ring", "start -M 64M --max-age 5min", 0, NULL,
     NOTHING " M=67108864 age=300000000 seg=0/0 keep=0/0 on=-"},
    {"a ring in bytes, as in xentrace", "record -M 1048576 -o -", 0, NULL,
     "name=- events=- cpus=- out=- T=0 max=0 s=0 r=no S=0 flags= M=1048576 age=0 seg=0/0 keep=0/0 "
     "on=-"},
    {"a ring beyond 32 bits", "start --memory=5G", 0, NULL,
     NOTHING " M=5368709120 age=0 seg=0/0 keep=0/0 on=-"},
    {"a disk ring",
     "start --segment-size 64M --segment-time 60 --keep-files 10 --keep-size 1T --on-reserve "
     "rotate",
     0, NULL, NOTHING " M=0 age=0 seg=67108864/60000000 keep=10/1099511627776 on=rotate"},
    {"pause at the reserve", "start --on-reserve=pause", 0, NULL,
     NOTHING " M=0 age=0 seg=0/0 keep=0/0 on=pause"},
    {"no memory size", "start -M", -EINVAL, "Option -M needs a value", NULL},
    {"not a memory size", "start -M much", -EINVAL, "-M \"much\" is not a size", NULL},
    {"a forgotten unit of memory", "start -M 64", -EINVAL, "write 64M", NULL},
    {"no age", "start -M 64M --max-age 0", -EINVAL, "greater than 0", NULL},
    {"no files", "start --segment-size 1M --keep-files 0", -EINVAL, "number of files", NULL},
    {"too many files", "start --segment-size 1M --keep-files 4294967296", -EINVAL,
     "number of files", NULL},
    {"memory and segments", "start -M 64M --segment-size 1M", -EINVAL, "choose one", NULL},
    {"memory and timed segments", "start -M 64M --segment-time 5", -EINVAL, "choose one", NULL},
    {"age without memory", "start --max-age 5", -EINVAL, "--max-age needs -M", NULL},
    {"files without segments", "start --keep-files 5", -EINVAL, "the capture is one file", NULL},
    {"kept size without segments", "start --keep-size 5G", -EINVAL, "the capture is one file",
     NULL},
    {"segments in a file", "start --segment-size 1M -o f", -EINVAL, "own directory", NULL},
    {"segments to a pipe", "start --segment-time 5 -o -", -EINVAL, "own directory", NULL},
    {"less kept than one segment", "start --segment-size 2M --keep-size 1M", -EINVAL,
     "less than one segment", NULL},
    {"nothing known at the reserve", "start --on-reserve wait", -EINVAL, "stop rotate pause", NULL},
    {"rotate without segments", "start --on-reserve rotate", -EINVAL, "deletes the oldest", NULL},
    {"to be continued", "start --segment-size 1M --persist", 0, NULL,
     NOTHING " M=0 age=0 seg=1048576/0 keep=0/0 on=-"},
    {"to be continued without segments", "start --persist", -EINVAL, "--segment-size", NULL},
    {"a record to be continued", "record --segment-size 1M --persist", -EINVAL, "start --persist",
     NULL},
};

static bool is_given(const struct capture_options *options, const char *name)
{
    for (size_t i = 0; options->table[i].help; i++) {
        if (options->table[i].name && strcmp(options->table[i].name, name) == 0)
            return options->given & (UINT64_C(1) << i);
    }
    return false;
}

static void describe(const struct capture_options *o, char *buffer, size_t bytes)
{
    char reserve[32] = "no";
    size_t length;

    if (is_given(o, "reserve"))
        (void)snprintf(reserve, sizeof(reserve), "%" PRIu64, o->reserve_bytes);
    (void)snprintf(buffer, bytes,
                   "name=%s events=%s cpus=%s out=%s T=%" PRIu64 " max=%" PRIu64 " s=%" PRIu64
                   " r=%s S=%" PRIu32 " flags=%s%s%s%s%s",
                   o->name ? o->name : "-", o->events ? o->events : "-", o->cpus ? o->cpus : "-",
                   o->output ? o->output : "-", o->time_usec, o->max_size_bytes, o->poll_usec,
                   reserve, o->buffer_pages, o->discard ? "D" : "", o->keep_enabled ? "x" : "",
                   o->start_disabled ? "X" : "", o->force ? "f" : "", o->quiet ? "q" : "");
    length = strlen(buffer);
    if (o->memory_bytes || o->max_age_usec || o->segment_size_bytes || o->segment_time_usec ||
        o->keep_files || o->keep_size_bytes || o->on_reserve)
        (void)snprintf(buffer + length, bytes - length,
                       " M=%" PRIu64 " age=%" PRIu64 " seg=%" PRIu64 "/%" PRIu64 " keep=%" PRIu32
                       "/%" PRIu64 " on=%s",
                       o->memory_bytes, o->max_age_usec, o->segment_size_bytes,
                       o->segment_time_usec, o->keep_files, o->keep_size_bytes,
                       o->on_reserve ? o->on_reserve : "-");
}

static void test_options(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(options_cases); i++) {
        const struct options_case *c = &options_cases[i];
        _cleanup_free_ char *line = strdup(c->line), *error = NULL;
        struct capture_options options;
        struct ctl ctl = {.socket = "/default"};
        char *argv[32], *rest = NULL, got[512];
        int argc = 0, r;

        for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
            argv[argc++] = word;
        argv[argc] = NULL;
        r = options_parse(&ctl,
                          strcmp(argv[0], "record") == 0 ? OPTIONS_OF_RECORD : OPTIONS_OF_START,
                          argc, argv, &options, &error);
        check(r == c->result, "result", c->name);
        if (c->error)
            check(error && strstr(error, c->error), "sentence", c->name);
        if (c->parsed) {
            describe(&options, got, sizeof(got));
            check_text(got, c->parsed, "options", c->name);
        }
        if (strstr(c->line, "--socket"))
            check(ctl.json && strcmp(ctl.socket, "/s") == 0, "global options", c->name);
        options_done(&options);
    }
}

static void test_progress(void)
{
    static const struct {
        const char *name;
        struct progress_sample before, now;
        const char *want;
    } cases[] = {
        {"at the start", {}, {}, "0s  0 records  0/s  0B  0B/s  lost 0"},
        {"with an end",
         {.elapsed_usec = 10000000, .records = 1000, .bytes = 1024},
         {.elapsed_usec = 12000000, .limit_usec = 30000000, .records = 3000, .bytes = 5120},
         "12s / 30s  3000 records  1000/s  5K  2K/s  lost 0"},
        {"losses",
         {},
         {.elapsed_usec = 1000000, .lost = 7, .dropped = 3},
         "1s  0 records  0/s  0B  0B/s  lost 7  dropped 3"},
        {"a ring: what was evicted had come",
         {.elapsed_usec = 10000000, .records = 1000, .bytes = 1024, .evicted = 500},
         {.elapsed_usec = 12000000,
          .records = 1000,
          .bytes = 60817408,
          .memory_bytes = 67108864,
          .evicted = 2500},
         "12s  1000 records  1000/s  58M of 64M  evicted 2500  lost 0"},
        {"a ring beyond 32 bits",
         {},
         {.elapsed_usec = 1000000, .bytes = 6442450944, .memory_bytes = 8589934592, .lost = 3},
         "1s  0 records  0/s  6G of 8G  evicted 0  lost 3"},
        {"counts that go back",
         {.elapsed_usec = 5, .records = 9},
         {.elapsed_usec = 2},
         "0s  0 records  0/s  0B  0B/s  lost 0"},
        {"huge",
         {},
         {.elapsed_usec = 1, .records = UINT64_MAX},
         "0s  18446744073709551615 records  18446744073708551616/s  0B  0B/s  lost 0"},
    };
    char buffer[256];

    for (size_t i = 0; i + 1 < ARRAY_SIZE(cases); i++)
        check_text(progress_format(buffer, sizeof(buffer), &cases[i].before, &cases[i].now),
                   cases[i].want, "progress", cases[i].name);
    /* a rate beyond 64 bits is wrong, but must be harmless */
    check(progress_format(buffer, sizeof(buffer), NULL, &cases[ARRAY_SIZE(cases) - 1].now),
          "progress", "huge");
}

static void test_interval(void)
{
    struct progress progress = {.on_terminal = true};

    check(progress_interval_usec(&progress) == 500000, "interval", "terminal");
    progress.quiet = true;
    check(progress_interval_usec(&progress) == 1000000, "interval", "quiet");
}

static void test_str(void)
{
    static const struct {
        const char *name, *text, *want;
    } quotes[] = {
        {"harmless", "/var/lib/a-b_c.xentrace", "/var/lib/a-b_c.xentrace"},
        {"a blank", "a b", "'a b'"},
        {"a quote", "it's", "'it'\\''s'"},
        {"nothing", "", "''"},
    };
    static const struct {
        const char *name;
        uint64_t khz;
        const char *want;
    } frequencies[] = {
        {"round", 2300000, "2.3G"},
        {"exact", 2294608, "2.294608G"},
        {"slow", 999999, "999.999M"},
    };
    static const struct {
        const char *name, *text, *want;
    } shown[] = {
        {"harmless", "web.1", "web.1"},
        {"printable", "it's \u00e4", "'it'\\''s \u00e4'"},
        {"an escape", "a\033[31m'\\$(x)", "$'a\\033[31m\\047\\134$(x)'"},
        {"an override", "a\u202e", "$'a\\342\\200\\256'"},
        {"not UTF-8", "a\xff", "$'a\\377'"},
    };
    char hz[STR_HZ_MAX], time[STR_TIME_MAX], dirty[] = "a\033[31m\n\x7f\xc2\x9b\xc3\xa9";
    char broken[] = "\x9b"
                    "31m\xc3\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0\x80\xc0\x9b";

    for (size_t i = 0; i < ARRAY_SIZE(quotes); i++) {
        _cleanup_free_ char *got = str_shell_quote(quotes[i].text);

        check_text(got, quotes[i].want, "quote", quotes[i].name);
    }
    for (size_t i = 0; i < ARRAY_SIZE(frequencies); i++)
        check_text(str_hz(hz, frequencies[i].khz), frequencies[i].want, "hz", frequencies[i].name);
    for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
        _cleanup_free_ char *got = str_shell_show(shown[i].text);

        check_text(got, shown[i].want, "show", shown[i].name);
    }
    str_make_printable(dirty);
    check_text(dirty, "a?[31m????\xc3\xa9", "printable", "sequences go, letters stay");
    str_make_printable(broken); /* a terminal without UTF-8 obeys a single byte 0x9b */
    check_text(broken, "?31m?\xe2\x82\xac\xf0\x9f\x98\x80?????", "printable",
               "what is not UTF-8 goes");
    check_text(str_time(time, 0), "-", "time", "none");
    check(str_time(time, UINT64_MAX) == time, "time", "beyond all calendars");
    check(str_ticks_usec(UINT64_MAX, 2300000) == UINT64_C(8020323510308500), "ticks",
          "no overflow");
    check(str_ticks_usec(5, 0) == 0, "ticks", "no frequency");
}

static void test_table(void)
{
    struct table *table;
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    if (!file || table_new("NAME >COUNT FILE", &table) < 0) {
        check(false, "table", "no memory");
        return;
    }
    table_add(table, "\xc3\xa9t\xc3\xa9");
    table_add(table, "%d", 7);
    table_add(table, "a");
    table_add(table, "longer");
    table_add(table, "1234567");
    table_add(table, "b c");
    table_print(table, file, 1, 0);
    (void)fclose(file);
    check_text(text,
               " NAME      COUNT  FILE\n"
               " \xc3\xa9t\xc3\xa9           7  a\n"
               " longer  1234567  b c\n",
               "table", "aligned");
    (void)table_free(table);
    free(text);
}

/* The name has 30 characters, of which the 3rd and the 28th have two bytes. */
static void test_table_width(void)
{
    static const struct {
        const char *name;
        int width;
        const char *expected;
    } cases[] = {
        {"any width", 0,
         "NAME                            KIND     SIZE  CAUSE         FILE\n"
         "ab\xc3\xa9"
         "defghijklmnopqrstuvwxyz0\xc3\xa9"
         "23  capture     1  request-from  /a/b\n"},
        {"just wide enough", 65,
         "NAME                            KIND     SIZE  CAUSE         FILE\n"
         "ab\xc3\xa9"
         "defghijklmnopqrstuvwxyz0\xc3\xa9"
         "23  capture     1  request-from  /a/b\n"},
        {"a line of its own", 64,
         "NAME                            KIND     SIZE  CAUSE\n"
         "ab\xc3\xa9"
         "defghijklmnopqrstuvwxyz0\xc3\xa9"
         "23  capture     1  request-from\n"
         "    /a/b\n"},
        {"shortened, the widest first", 55,
         "NAME                        KIND     SIZE  CAUSE\n"
         "ab\xc3\xa9"
         "defghijkl...tuvwxyz0\xc3\xa9"
         "23  capture     1  request-from\n"
         "    /a/b\n"},
        {"one left out, the others less short", 46,
         "NAME                        SIZE  CAUSE\n"
         "ab\xc3\xa9"
         "defghijkl...tuvwxyz0\xc3\xa9"
         "23     1  request-from\n"
         "    /a/b\n"},
        {"too narrow for what must be there", 20,
         "NAME                      SIZE  CAUSE\n"
         "ab\xc3\xa9"
         "defghijk...uvwxyz0\xc3\xa9"
         "23     1  requ...rom\n"
         "    /a/b\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct table *table;
        char *text = NULL;
        size_t bytes;
        FILE *file = open_memstream(&text, &bytes);

        if (!file || table_new("~NAME ?KIND >SIZE ~CAUSE /FILE", &table) < 0) {
            check(false, "table", "no memory");
            return;
        }
        table_add(table, "ab\xc3\xa9"
                         "defghijklmnopqrstuvwxyz0\xc3\xa9"
                         "23");
        table_add(table, "capture");
        table_add(table, "1");
        table_add(table, "request-from");
        table_add(table, "/a/b");
        table_print(table, file, 0, cases[i].width);
        (void)fclose(file);
        check_text(text, cases[i].expected, "table", cases[i].name);
        (void)table_free(table);
        free(text);
    }
}

static void test_doc_parse(void)
{
    static const struct {
        const char *name, *text;
        int result;
    } cases[] = {
        {"an object", "{\"a\":1}", 0},
        {"blanks around it", " {} \r\n\t", 0},
        {"nothing", "", -EBADMSG},
        {"an array", "[]", -EBADMSG},
        {"a text", "\"a\"", -EBADMSG},
        {"cut off", "{\"a\":", -EBADMSG},
        {"something after it", "{}{}", -EBADMSG},
        {"words", "none of your business", -EBADMSG},
    };
    static char deep[100000];
    struct json_object *doc;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int r = doc_parse(cases[i].text, strlen(cases[i].text), &doc);

        check(r == cases[i].result, "parse", cases[i].name);
        if (r == 0)
            (void)doc_free(doc);
    }
    memset(deep, '[', sizeof(deep));
    memcpy(deep, "{\"a\":", 5);
    check(doc_parse(deep, sizeof(deep), &doc) == -EBADMSG, "parse", "nested without end");
}

static void test_doc_read(void)
{
    static const char text[] = "{\"format\":\"f\",\"version\":1,\"n\":5,\"neg\":-5,\"big\":"
                               "18446744073709551615,\"s\":\"t\",\"b\":true,\"o\":{\"n\":7,\"s\":"
                               "null},\"a\":[1],\"num\":\"12\",\"f\":1.5}";
    _cleanup_doc_ struct json_object *doc = NULL;

    check(doc_parse(text, strlen(text), &doc) == 0, "read", "parse");
    check(doc_is(doc, "f") && !doc_is(doc, "g") && !doc_is(NULL, "f"), "read", "format");
    check(doc_number(doc, "n") == 5, "read", "number");
    check(doc_number(doc, "neg") == 0, "read", "negative");
    check(doc_number(doc, "big") == UINT64_MAX, "read", "64 bits");
    check(doc_number(doc, "num") == 0, "read", "a text is no number");
    check(doc_number(doc, "o.n") == 7, "read", "nested");
    check(doc_number(doc, "o.x") == 0 && doc_number(doc, "n.x") == 0, "read", "not there");
    check_text(doc_text(doc, "s", "-"), "t", "read", "text");
    check_text(doc_text(doc, "o.s", "-"), "-", "read", "null is no text");
    check_text(doc_text(doc, "n", "-"), "-", "read", "a number is no text");
    check(doc_flag(doc, "b") && !doc_flag(doc, "n"), "read", "flag");
    check(doc_length(doc_array(doc, "a")) == 1 && !doc_array(doc, "o"), "read", "array");
    check(doc_length(NULL) == 0, "read", "no array");
}

static void test_doc_print(void)
{
    static const char in[] = "{\"a\\u009b\":\"\\u0085\\u007f\\u001b\xc3\xa9\"}";
    _cleanup_doc_ struct json_object *doc = NULL;
    _cleanup_free_ char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    check(file && doc_parse(in, strlen(in), &doc) == 0, "print", "parse");
    doc_print(file, doc);
    (void)fclose(file);
    check(text && strstr(text, "\"a\\u009b\"") && strstr(text, "\"\\u0085\\u007f\\u001b\xc3\xa9\""),
          "print", "control characters are escaped in JSON, too");
}

static void test_losses(void)
{
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        {"nothing known", "{}", "unknown"},
        {"none", "{\"ledger\":{\"lost\":0,\"dropped\":0}}", "none"},
        {"by CPU",
         "{\"ledger\":{\"lost\":10,\"dropped\":1,\"cpus\":[{\"cpu\":0,\"lost\":0},{\"cpu\":2,"
         "\"lost\":7,\"dropped\":1},{\"cpu\":3,\"lost\":3}]}}",
         "10 by Xen, 1 by xentraced (CPU 2: 8, CPU 3: 3)"},
        {"without a count", "{\"ledger\":{\"lost\":0,\"loss_unknown_cpus\":\"1-2\"}}",
         "0 by Xen, 0 by xentraced; more, uncounted, on CPUs 1-2"},
        {"many CPUs",
         "{\"ledger\":{\"lost\":7,\"cpus\":[{\"cpu\":0,\"lost\":1},{\"cpu\":1,\"lost\":1},"
         "{\"cpu\":2,\"lost\":1},{\"cpu\":3,\"lost\":1},{\"cpu\":4,\"lost\":1},{\"cpu\":5,"
         "\"lost\":1},{\"cpu\":6,\"lost\":1},{\"cpu\":7,\"lost\":1}]}}",
         "7 by Xen, 0 by xentraced (CPU 0: 1, CPU 1: 1, CPU 2: 1, CPU 3: 1, CPU 4: 1, CPU 5: 1, "
         "...)"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_doc_ struct json_object *doc = NULL;
        _cleanup_free_ char *got = NULL;

        check(doc_parse(cases[i].text, strlen(cases[i].text), &doc) == 0, "losses", cases[i].name);
        got = session_losses(doc);
        check_text(got, cases[i].want, "losses", cases[i].name);
    }
}

static void test_sidecar_path(void)
{
    static const struct {
        const char *path, *want;
    } cases[] = {
        {"/d/a.xentrace", "/d/a.json"}, {"/d/a", "/d/a.json"},
        {"/d/a.bin", "/d/a.bin.json"},  {"/d/.xentrace", "/d/.xentrace.json"},
        {"a.xentrace", "a.json"},       {"-", "-.json"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *got = sidecar_path_of(cases[i].path);

        check_text(got, cases[i].want, "sidecar", cases[i].path);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    if (file) {
        (void)fputs(text, file);
        (void)fclose(file);
    }
}

static const char *read_file(const char *path)
{
    static char text[64];
    FILE *file = fopen(path, "re");
    size_t n;

    if (!file)
        return NULL;
    n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = 0;
    (void)fclose(file);
    return text;
}

static int open_output(const char *typed, bool force, struct output **ret_output, char **ret_error)
{
    const struct output_options options = {
        .typed = typed,
        .nothing = "Nothing was started",
        .force = force,
    };

    return output_open(&options, ret_output, ret_error);
}

/* In an empty directory of its own. */
static void test_output(void)
{
    _cleanup_free_ char *error = NULL;
    struct output *output = NULL;
    struct stat st;

    check(open_output("f", false, &output, &error) == 0, "output", "new file");
    check(stat("f", &st) == 0 && (st.st_mode & 0777 & ~0640u) == 0, "output", "mode");
    check(access("f.json", F_OK) == 0, "output", "new sidecar");
    output = output_free(output);
    check(access("f", F_OK) < 0 && access("f.json", F_OK) < 0, "output", "removed again");

    write_file("f", "old");
    check(open_output("f", false, &output, &error) == -EEXIST, "output", "exists");
    check(error && strstr(error, "--force"), "output", "what to do");
    check(access("f.json", F_OK) < 0, "output", "no sidecar left behind");
    check(open_output("f", true, &output, &error) == 0, "output", "forced");
    check_text(read_file("f"), "old", "output", "untouched until the start");
    output = output_free(output);
    check_text(read_file("f"), "old", "output", "untouched when refused");
    check(open_output("f", true, &output, &error) == 0, "output", "forced again");
    check(write(output->trace.fd, "new", 3) == 3, "output", "write");
    check(output_keep(output, &error) == 0, "output", "keep");
    output = output_free(output);
    check_text(read_file("f"), "new", "output", "replaced");
    check(access("f.json", F_OK) == 0, "output", "sidecar kept");

    (void)unlink("f");
    write_file("f.json", "old");
    free(error);
    error = NULL;
    check(open_output("f", false, &output, &error) == -EEXIST, "output", "sidecar exists");
    check(access("f", F_OK) < 0, "output", "no file left behind");
    check_text(read_file("f.json"), "old", "output", "sidecar untouched");
    (void)unlink("f.json");
}

static void test_output_in_directory(void)
{
    char path[] = "/tmp/test-ctl-XXXXXX";
    int old = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (old < 0 || !mkdtemp(path) || chdir(path) < 0) {
        check(false, "output", "a directory for the test");
        return;
    }
    test_output();
    check(fchdir(old) == 0 && rmdir(path) == 0, "output", "nothing left behind");
    (void)close(old);
}

int main(void)
{
    test_options();
    test_progress();
    test_interval();
    test_str();
    test_table();
    test_table_width();
    test_doc_parse();
    test_doc_read();
    test_doc_print();
    test_losses();
    test_sidecar_path();
    test_output_in_directory();
    (void)printf("%d failed\n", failures);
    return failures ? 1 : 0;
}

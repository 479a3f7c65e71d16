// SPDX-License-Identifier: GPL-2.0-or-later

/* Drop-ins: which are read, in which order, and where values come from; what is only a warning. */

#include <fcntl.h>
#include <sys/stat.h>

#include "common/util.h"
#include "daemon/config/config-keys.h"
#include "daemon/config/config-read.h"
#include "tests/unit/test.h"

static char root[] = "/tmp/test-config.XXXXXX";

/* A file at PATH below the root; its directory is there. "->TARGET": a link. */
static void put(const char *path, const char *text)
{
    char full[256];
    FILE *file;

    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    (void)unlink(full);
    if (strncmp(text, "->", 2) == 0) {
        CHECK_INT(symlink(text + 2, full), 0);
        return;
    }
    file = fopen(full, "we");
    if (!CHECK(file))
        exit(EXIT_FAILURE);
    (void)fputs(text, file);
    (void)fclose(file);
}

static struct config_reading *read_all(void)
{
    static char file[64], own[64], vendor[64];
    const struct config_source source = {
        .file = file, .directories = {own, vendor}, .log_level = -1};
    struct config_reading *reading = NULL;

    (void)snprintf(file, sizeof(file), "%s/main.conf", root);
    (void)snprintf(own, sizeof(own), "%s/etc", root);
    (void)snprintf(vendor, sizeof(vendor), "%s/usr", root);
    CHECK_INT(config_read(&source, &reading), 0);
    return reading;
}

/* SECTION and KEY have VALUE, from FILE and line LINE; FILE NULL: they are the default. */
static void check_origin(const struct config_reading *reading, const char *section, const char *key,
                         const char *value, const char *file, int line)
{
    const char *title = strncmp(section, "trigger", 7) == 0 ? "trigger NAME" : section;
    const struct config_setting *setting =
        config_find_setting(reading, section, config_find_key(title, key));

    if (!file) {
        CHECK(!setting);
        return;
    }
    if (!CHECK(setting))
        return;
    CHECK_STR(setting->value, value);
    CHECK_STR(setting->origin.file + strlen(root) + 1, file);
    CHECK_INT(setting->origin.line, line);
}

static void test_order(void)
{
    _cleanup_reading_ struct config_reading *reading = NULL;

    test_case("the order of files");
    put("main.conf", "[daemon]\npool=2M\nlog-level=err\nmemory-share=10\n");
    put("usr/10-a.conf", "[daemon]\npool=3M\nlog-level=debug\n");
    put("etc/20-b.conf", "[daemon]\npool=4M\n");
    put("usr/30-c.conf", "\n[daemon]\npool=5M\n");
    put("etc/ignored", "[daemon]\npool=6M\n");
    put("etc/.hidden.conf", "[daemon]\npool=7M\n");
    reading = read_all();
    CHECK_UINT(reading->nr_problems, 0);
    CHECK_UINT(reading->nr_files, 4);
    CHECK_UINT(reading->config.pool_bytes, UINT64_C(5) << 20);
    check_origin(reading, "daemon", "pool", "5M", "usr/30-c.conf", 3);
    check_origin(reading, "daemon", "log-level", "debug", "usr/10-a.conf", 3);
    check_origin(reading, "daemon", "memory-share", "10", "main.conf", 4);
    check_origin(reading, "daemon", "pool-max", NULL, NULL, 0);
}

static void test_same_name(void)
{
    _cleanup_reading_ struct config_reading *reading = NULL, *masked = NULL, *empty = NULL;

    test_case("a drop-in of the same name");
    put("main.conf", "");
    put("usr/10-a.conf", "[daemon]\npool=3M\nlog-level=debug\n");
    put("etc/10-a.conf", "[daemon]\npool=4M\n");
    put("usr/30-c.conf", "");
    put("etc/20-b.conf", "");
    reading = read_all();
    check_origin(reading, "daemon", "pool", "4M", "etc/10-a.conf", 2);
    check_origin(reading, "daemon", "log-level", NULL, NULL, 0);

    test_case("one that is masked");
    put("etc/10-a.conf", "->/dev/null");
    masked = read_all();
    CHECK_UINT(masked->nr_problems, 0);
    CHECK_UINT(masked->nr_settings, 0);

    test_case("an empty value takes a value back");
    put("etc/10-a.conf", "");
    put("main.conf", "[daemon]\npool=9M\n[trigger x]\ncondition=manual\n");
    put("etc/20-b.conf", "[daemon]\npool=\n[trigger x]\ncondition=\nevent=sched-min\n");
    empty = read_all();
    CHECK_UINT(empty->nr_problems, 0);
    CHECK_UINT(empty->config.pool_bytes, UINT64_C(64) << 20);
    CHECK_UINT(empty->config.nr_triggers, 1);
    CHECK_INT(empty->config.triggers[0].condition, TRIGGER_EVENT);
    CHECK_STR(empty->config.triggers[0].condition_text, "event=sched-min");
}

static void test_sections(void)
{
    _cleanup_reading_ struct config_reading *reading = NULL, *twice = NULL;

    test_case("a drop-in changes a trigger");
    put("main.conf", "[trigger x]\ncondition=manual\ncooldown=5min\ndelay=1s\n");
    put("etc/20-b.conf", "[trigger y]\ncondition=manual\n[trigger x]\ncooldown=7min\n");
    reading = read_all();
    CHECK_UINT(reading->nr_problems, 0);
    CHECK_UINT(reading->config.nr_triggers, 2);
    CHECK_UINT(reading->config.triggers[0].cooldown_usec, UINT64_C(420000000));
    CHECK_UINT(reading->config.triggers[0].delay_usec, UINT64_C(1000000));
    check_origin(reading, "trigger x", "condition", "manual", "main.conf", 2);
    check_origin(reading, "trigger x", "cooldown", "7min", "etc/20-b.conf", 4);

    test_case("a condition in another file is one more");
    put("etc/20-b.conf", "[trigger x]\nevent=sched-min\n");
    twice = read_all();
    CHECK_UINT(twice->nr_errors, 1);
    CHECK(strstr(twice->problems[0].text, "two conditions, event and manual"));
}

static void check_problem(const struct config_problem *problem, bool is_error, const char *file,
                          int line, const char *text)
{
    CHECK(problem->is_error == is_error);
    CHECK_STR(problem->origin.file + strlen(root) + 1, file);
    CHECK_INT(problem->origin.line, line);
    if (!CHECK(strstr(problem->text, text)))
        fprintf(stderr, "    %s\n", problem->text);
}

static void test_problems(void)
{
    _cleanup_reading_ struct config_reading *reading = NULL;
    _cleanup_free_ char *first = NULL;

    test_case("all problems, by file and line");
    put("main.conf", "[daemon]\npol=1M\nlog-level=loud\n nothing\n[nowhere]\nx=1\ny=2\n");
    put("etc/10-a.conf", "->/nonexistent");
    put("etc/20-b.conf", "[capture]\nreserve=1G\nreserve=2G\n");
    reading = read_all();
    if (!CHECK_UINT(reading->nr_problems, 6))
        return;
    check_problem(&reading->problems[0], true, "main.conf", 2, "no key 'pol' in [daemon]");
    check_problem(&reading->problems[1], true, "main.conf", 3, "'loud' is not a level");
    check_problem(&reading->problems[2], true, "main.conf", 4, "begins with a blank");
    check_problem(&reading->problems[3], true, "main.conf", 5, "no section [nowhere]");
    check_problem(&reading->problems[4], true, "etc/10-a.conf", 0, "No such file");
    check_problem(&reading->problems[5], false, "etc/20-b.conf", 3,
                  "reserve= is already set at line 2; this value applies");
    CHECK_UINT(reading->nr_errors, 5);
    first = config_describe_first_error(reading);
    CHECK(first && strstr(first, "/main.conf, line 2: there is no key 'pol' in [daemon]; did you "
                                 "mean 'pool'? See xentraced.conf(5)."));
}

static void test_units(void)
{
    static const struct {
        const char *name;
        const char *text;
        const char *warning; /* NULL: none */
    } cases[] = {
        {"a latency without a unit", "[trigger x]\nrunnable-latency=50\n",
         "runnable-latency=50 has no unit and means 50s; write runnable-latency=50s, or "
         "runnable-latency=50ms if milliseconds are meant"},
        {"a latency", "[trigger x]\nrunnable-latency=50ms\n", NULL},
        {"no time", "[trigger x]\ncondition=manual\ncooldown=0\n", NULL},
        {"two parts", "[trigger x]\ncondition=manual\ncooldown=90\n", "means 1min 30s"},
        {"a fraction", "[trigger x]\ncondition=manual\ncooldown=1.5\n", "means 1.5s"},
        {"an hour", "[flight-recorder]\nmax-age=3600\n", "max-age=3600 has no unit and means 1h"},
        {"no age", "[flight-recorder]\nmax-age=none\n", NULL},
        {"a size", "[flight-recorder]\nmemory=67108864\n", NULL},
    };

    put("etc/10-a.conf", "");
    put("etc/20-b.conf", "");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_reading_ struct config_reading *reading = NULL;

        test_case(cases[i].name);
        put("main.conf", cases[i].text);
        reading = read_all();
        CHECK_UINT(reading->nr_errors, 0);
        CHECK_UINT(reading->nr_problems, cases[i].warning ? 1 : 0);
        if (cases[i].warning && reading->nr_problems == 1)
            CHECK(strstr(reading->problems[0].text, cases[i].warning));
    }
}

static void test_long_line(void)
{
    _cleanup_reading_ struct config_reading *reading = NULL;
    char text[1024];

    test_case("a line that is too long");
    (void)snprintf(text, sizeof(text), "[daemon]\npool=2M ; %0500d\nlog-level=debug\npol=1\n", 0);
    put("main.conf", text);
    reading = read_all();
    if (!CHECK_UINT(reading->nr_problems, 2))
        return;
    check_problem(&reading->problems[0], true, "main.conf", 2, "the line is longer than");
    check_problem(&reading->problems[1], true, "main.conf", 4, "'pol'");
}

static void test_full_line(void)
{
    _cleanup_reading_ struct config_reading *reading = NULL;
    char text[1024];

    test_case("a line that just fits");
    (void)snprintf(text, sizeof(text), "[daemon]\npool=2M ; %0189d\npol=1\n#%0198d", 0, 0);
    put("main.conf", text);
    reading = read_all();
    if (CHECK_UINT(reading->nr_problems, 1))
        check_problem(&reading->problems[0], true, "main.conf", 3, "'pol'");
}

static void remove_all(void)
{
    char command[64];

    (void)snprintf(command, sizeof(command), "rm -rf %s", root);
    CHECK_INT(system(command), 0);
}

int main(void)
{
    char path[64];

    if (!mkdtemp(root))
        return EXIT_FAILURE;
    (void)snprintf(path, sizeof(path), "%s/etc", root);
    CHECK_INT(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/usr", root);
    CHECK_INT(mkdir(path, 0700), 0);
    test_order();
    test_same_name();
    test_sections();
    test_problems();
    test_units();
    test_long_line();
    test_full_line();
    remove_all();
    return test_end();
}

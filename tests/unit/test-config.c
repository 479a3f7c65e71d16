// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/config/config.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <syslog.h>

#include "common/util.h"
#include "daemon/config/config-read.h"
#include "tests/unit/test.h"

/* A file with TEXT. */
static int write_file(const char *text)
{
    int fd = memfd_create("config", MFD_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        exit(EXIT_FAILURE);
    return fd;
}

/* The first error, as the daemon reports it; *RET_CONFIG is written on success only. */
static int load(const char *path, bool required, struct config *ret_config, char **ret_error)
{
    const struct config_source source = {.file = path, .is_required = required, .log_level = -1};
    _cleanup_reading_ struct config_reading *reading = NULL;
    int r = config_read(&source, &reading);

    if (r < 0)
        return r;
    if (reading->nr_errors > 0) {
        *ret_error = config_describe_first_error(reading);
        return -EINVAL;
    }
    *ret_config = reading->config;
    return 0;
}

static int load_text(const char *text, struct config *ret_config, char **ret_error)
{
    char path[64];
    _cleanup_fd_ int fd = write_file(text);

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return load(path, true, ret_config, ret_error);
}

struct good_case {
    const char *name;
    const char *text;
    struct {
        uint64_t pool_bytes;
        const char *control_group;
        uint32_t buffer_pages;
        uint64_t reserve_bytes;
    } config;
};

#define DEFAULT_POOL (UINT64_C(64) << 20)
#define AUTO         DISK_RESERVE_AUTO

static const struct good_case good_cases[] = {
    {"empty", "", {DEFAULT_POOL, "", 0, AUTO}},
    {"comments", "# one\n; two\n\n[daemon]\n", {DEFAULT_POOL, "", 0, AUTO}},
    {"all keys",
     "[daemon]\npool = 128M\ncontrol-group = daemon\n[capture]\nbuffer-pages = 64\nreserve=1G\n",
     {UINT64_C(128) << 20, "daemon", 64, UINT64_C(1) << 30}},
    {"the smallest pool", "[daemon]\npool=2M\n", {UINT64_C(2) << 20, "", 0, AUTO}},
    {"the largest pool", "[daemon]\npool=64G\n", {UINT64_C(64) << 30, "", 0, AUTO}},
    {"a pool that does not grow",
     "[daemon]\npool-max=128M\npool=128M\n",
     {UINT64_C(128) << 20, "", 0, AUTO}},
    {"one that grows as far as suits the host",
     "[daemon]\npool-max=2M\npool-max=auto\n",
     {DEFAULT_POOL, "", 0, AUTO}},
    {"buffers that suit the host", "[capture]\nbuffer-pages=auto\n", {DEFAULT_POOL, "", 0, AUTO}},
    {"the smallest buffers", "[capture]\nbuffer-pages=1\n", {DEFAULT_POOL, "", 1, AUTO}},
    {"the largest buffers", "[capture]\nbuffer-pages=65535\n", {DEFAULT_POOL, "", 65535, AUTO}},
    {"a number alone is MiB",
     "[capture]\nreserve=512\n",
     {DEFAULT_POOL, "", 0, UINT64_C(512) << 20}},
    {"no reserve", "[capture]\nreserve=0\n", {DEFAULT_POOL, "", 0, 0}},
    {"no group", "[daemon]\ncontrol-group=\n", {DEFAULT_POOL, "", 0, AUTO}},
    {"the last one counts", "[daemon]\npool=2M\npool=4M\n", {UINT64_C(4) << 20, "", 0, AUTO}},
    {"an empty value is the default", "[daemon]\npool=2M\npool=\n", {DEFAULT_POOL, "", 0, AUTO}},
    {"a mark of UTF-8", "\xef\xbb\xbf[daemon]\npool=2M\n", {UINT64_C(2) << 20, "", 0, AUTO}},
    {"a file for metrics", "[daemon]\nmetrics-file=/run/x.prom\n", {DEFAULT_POOL, "", 0, AUTO}},
    {"no file for metrics", "[daemon]\nmetrics-file=\n", {DEFAULT_POOL, "", 0, AUTO}},
    {"DOS line ends", "[daemon]\r\npool=2M\r\n", {UINT64_C(2) << 20, "", 0, AUTO}},
};

static void test_good(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(good_cases); i++) {
        const struct good_case *c = &good_cases[i];
        _cleanup_free_ char *error = NULL;
        struct config config = {0};

        test_case(c->name);
        CHECK_INT(load_text(c->text, &config, &error), 0);
        CHECK_STR(error, NULL);
        CHECK_UINT(config.pool_bytes, c->config.pool_bytes);
        CHECK_STR(config.control_group, c->config.control_group);
        CHECK_UINT(config.buffer_pages, c->config.buffer_pages);
        CHECK_UINT(config.reserve_bytes, c->config.reserve_bytes);
    }
}

static void test_disk(void)
{
    static const struct {
        const char *text;
        struct disk_limits limits;
        bool is_wrong;
    } cases[] = {
        {"", {{0}, {0}, 0}, false},
        {"max-use=auto\nkeep-free=auto\nmax-file-age=none\n", {{0}, {0}, 0}, false},
        {"max-use=2G\n", {{DISK_LIMIT_BYTES, UINT64_C(2) << 30}, {0}, 0}, false},
        {"max-use=20%\nkeep-free=0\n", {{DISK_LIMIT_PERCENT, 20}, {DISK_LIMIT_NONE, 0}, 0}, false},
        {"keep-free=none\nmax-use=0%\n", {{DISK_LIMIT_NONE, 0}, {DISK_LIMIT_NONE, 0}, 0}, false},
        {"max-file-age=14d\n", {{0}, {0}, UINT64_C(14) * 24 * 3600 * 1000000}, false},
        {"max-use=%\n", {{0}, {0}, 0}, true},
        {"max-use=100%\n", {{0}, {0}, 0}, true},
        {"keep-free=1x%\n", {{0}, {0}, 0}, true},
        {"keep-free=much\n", {{0}, {0}, 0}, true},
        {"max-file-age=old\n", {{0}, {0}, 0}, true},
        {"max-uses=1\n", {{0}, {0}, 0}, true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *error = NULL;
        struct config config = {0};
        char text[128];

        test_case(*cases[i].text ? cases[i].text : "an empty [disk]");
        (void)snprintf(text, sizeof(text), "[disk]\n%s", cases[i].text);
        if (cases[i].is_wrong) {
            CHECK(load_text(text, &config, &error) < 0);
            CHECK(error && strstr(error, "line 2"));
            continue;
        }
        CHECK_INT(load_text(text, &config, &error), 0);
        CHECK_INT(config.disk.max_use.kind, cases[i].limits.max_use.kind);
        CHECK_UINT(config.disk.max_use.value, cases[i].limits.max_use.value);
        CHECK_INT(config.disk.keep_free.kind, cases[i].limits.keep_free.kind);
        CHECK_UINT(config.disk.keep_free.value, cases[i].limits.keep_free.value);
        CHECK_UINT(config.disk.max_age_usec, cases[i].limits.max_age_usec);
    }
}

static void test_log_level(void)
{
    static const struct {
        const char *text;
        int level;
    } cases[] = {
        {"", LOG_INFO},
        {"[daemon]\nlog-level=err\n", LOG_ERR},
        {"[daemon]\nlog-level=warning\n", LOG_WARNING},
        {"[daemon]\nlog-level=notice\n", LOG_NOTICE},
        {"[daemon]\nlog-level=debug\nlog-level=info\n", LOG_INFO},
        {"[daemon]\nlog-level=debug\n", LOG_DEBUG},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *error = NULL;
        struct config config = {0};

        test_case(cases[i].text);
        CHECK_INT(load_text(cases[i].text, &config, &error), 0);
        CHECK_INT(config.log_level, cases[i].level);
    }
}

#define MIB UINT64_C(1048576)

struct recorder_case {
    const char *name;
    const char *text;
    uint32_t memory_share_percent;
    bool enabled;
    uint64_t memory_bytes;
    const char *events;
    const char *cpus;
    uint64_t max_age_usec;
    bool keep_enabled;
};

static const struct recorder_case recorder_cases[] = {
    {"defaults", "", 50, true, 64 * MIB, "sched-min,dom0op-domops", "all", 0, true},
    {"all keys",
     "[daemon]\nmemory-share=25\n[flight-recorder]\nenabled=no\nmemory=1G\n"
     "events = sched, hw-irq\ncpus=0-3\nmax-age=10min\nkeep-enabled=no\n",
     25, false, 1024 * MIB, "sched, hw-irq", "0-3", 600000000, false},
    {"the smallest memory", "[flight-recorder]\nmemory=2M\n", 50, true, 2 * MIB,
     "sched-min,dom0op-domops", "all", 0, true},
    {"percent", "[daemon]\nmemory-share=90%\n", 90, true, 64 * MIB, "sched-min,dom0op-domops",
     "all", 0, true},
    {"no age", "[flight-recorder]\nmax-age=none\nkeep-enabled=Off\n", 50, true, 64 * MIB,
     "sched-min,dom0op-domops", "all", 0, false},
    {"seconds", "[flight-recorder]\nmax-age=90\nenabled=1\n", 50, true, 64 * MIB,
     "sched-min,dom0op-domops", "all", 90000000, true},
    {"what guests choose, by name", "[flight-recorder]\nevents=sched-min,guest\n", 50, true,
     64 * MIB, "sched-min,guest", "all", 0, true},
    {"a CPU this host may not have", "[flight-recorder]\ncpus=4000\n", 50, true, 64 * MIB,
     "sched-min,dom0op-domops", "4000", 0, true},
};

static void test_recorder(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(recorder_cases); i++) {
        const struct recorder_case *c = &recorder_cases[i];
        _cleanup_free_ char *error = NULL;
        struct config config = {0};

        test_case(c->name);
        CHECK_INT(load_text(c->text, &config, &error), 0);
        CHECK_STR(error, NULL);
        CHECK_UINT(config.memory_share_percent, c->memory_share_percent);
        CHECK(config.recorder.enabled == c->enabled);
        CHECK_UINT(config.recorder.memory_bytes, c->memory_bytes);
        CHECK_STR(config.recorder.events, c->events);
        CHECK_STR(config.recorder.cpus, c->cpus);
        CHECK_UINT(config.recorder.max_age_usec, c->max_age_usec);
        CHECK(config.recorder.keep_enabled == c->keep_enabled);
        CHECK_UINT(config.nr_triggers, 0);
    }
}

static void test_limits(void)
{
    static const struct {
        const char *name, *text;
        uint64_t interval_usec;
        uint32_t per_day;
        uint64_t bytes_per_day, keep_bytes; /* by config_limits() */
    } cases[] = {
        {"limits", "", 10000000, 100, 1024 * MIB, 256 * MIB},
        {"limits of a large recorder", "[flight-recorder]\nmemory=1G\n", 10000000, 100, 16384 * MIB,
         4096 * MIB},
        {"all limits",
         "[limits]\nsnapshot-interval=1min\nsnapshots-per-day=5\nsnapshot-bytes-per-day=100M\n"
         "keep-for-triggers=0\n",
         60000000, 5, 100 * MIB, 0},
        {"limits that are automatic again",
         "[limits]\nsnapshot-interval=0\nsnapshot-bytes-per-day=1\nsnapshot-bytes-per-day=auto\n"
         "keep-for-triggers=auto\n",
         0, 100, 1024 * MIB, 256 * MIB},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *error = NULL;
        struct config config = {0};
        struct limits_config limits;

        test_case(cases[i].name);
        CHECK_INT(load_text(cases[i].text, &config, &error), 0);
        limits = config_limits(&config);
        CHECK_UINT(limits.snapshot_interval_usec, cases[i].interval_usec);
        CHECK_UINT(limits.snapshots_per_day, cases[i].per_day);
        CHECK_UINT(limits.snapshot_bytes_per_day, cases[i].bytes_per_day);
        CHECK_UINT(limits.keep_for_triggers_bytes, cases[i].keep_bytes);
    }
}

/* Guests must not be able to flush the recorder, and Xen's mask must say it without a filter. */
static void test_default_events(void)
{
    _cleanup_free_ char *error = NULL;
    struct config config = {0};
    struct event_set set = {0};

    test_case("default events");
    CHECK_INT(load_text("", &config, &error), 0);
    CHECK_INT(event_set_parse(config.recorder.events, &set, &error), 0);
    CHECK_UINT(event_set_xen_mask(&set), 0x00061000);
    CHECK(event_set_is_exact(&set));
    CHECK(!event_set_has(&set, 0x0800f000));
}

struct trigger_case {
    const char *name;
    const char *text;
    struct trigger_config trigger; /* the last one; events apart */
    uint32_t mask;                 /* of its events */
    size_t nr_triggers;
};

#define MINUTE UINT64_C(60000000)

static const struct trigger_case trigger_cases[] = {
    {"crash",
     "[trigger crash]\ncondition=domain-crash\n",
     {.name = "crash",
      .condition = TRIGGER_DOMAIN_CRASH,
      .condition_text = "domain-crash",
      .count = 1,
      .cooldown_usec = MINUTE,
      .max_per_day = 10},
     0,
     1},
    {"lost, all settings",
     "[trigger a.B_1-@:]\ncondition = lost-records\ndelay=5s\ncooldown=0\nmax-per-day=1000\n"
     "last=30\nreport=yes\n",
     {.name = "a.B_1-@:",
      .condition = TRIGGER_LOST_RECORDS,
      .condition_text = "lost-records",
      .count = 1,
      .delay_usec = 5000000,
      .max_per_day = 1000,
      .last_usec = 30000000,
      .report = true},
     0,
     1},
    {"manual",
     "[trigger  by-hand]\ncondition=manual\nmax-per-day=1\n",
     {.name = "by-hand",
      .condition = TRIGGER_MANUAL,
      .condition_text = "manual",
      .count = 1,
      .cooldown_usec = MINUTE,
      .max_per_day = 1},
     0,
     1},
    {"latency",
     "[trigger slow]\nrunnable-latency=50ms\n",
     {.name = "slow",
      .condition = TRIGGER_RUNNABLE_LATENCY,
      .condition_text = "runnable-latency=50ms",
      .count = 1,
      .latency_usec = 50000,
      .cooldown_usec = MINUTE,
      .max_per_day = 10},
     0,
     1},
    {"latency, said twice",
     "[trigger slow]\ncondition=runnable-latency\nrunnable-latency=1\n",
     {.name = "slow",
      .condition = TRIGGER_RUNNABLE_LATENCY,
      .condition_text = "runnable-latency=1",
      .count = 1,
      .latency_usec = 1000000,
      .cooldown_usec = MINUTE,
      .max_per_day = 10},
     0,
     1},
    {"event",
     "[trigger new]\nevent=dom0op-domops\n",
     {.name = "new",
      .condition = TRIGGER_EVENT,
      .condition_text = "event=dom0op-domops",
      .count = 1,
      .cooldown_usec = MINUTE,
      .max_per_day = 10},
     0x00041000,
     1},
    {"count of an event that is recorded",
     "[trigger storm]\nwithin=1s\ncount=1000\nevent=hw-irq,gen\n[flight-recorder]\nevents=hw\n",
     {.name = "storm",
      .condition = TRIGGER_EVENT,
      .condition_text = "event=hw-irq,gen",
      .count = 1000,
      .within_usec = 1000000,
      .cooldown_usec = MINUTE,
      .max_per_day = 10},
     0x00802000,
     1},
    {"one within any time",
     "[trigger x]\nevent=sched-min\ncount=1\nwithin=1s\n",
     {.name = "x",
      .condition = TRIGGER_EVENT,
      .condition_text = "event=sched-min",
      .count = 1,
      .cooldown_usec = MINUTE,
      .max_per_day = 10},
     0x00021000,
     1},
    {"not recorded, but nothing is",
     "[flight-recorder]\nenabled=no\n[trigger x]\nevent=hvm\n",
     {.name = "x",
      .condition = TRIGGER_EVENT,
      .condition_text = "event=hvm",
      .count = 1,
      .cooldown_usec = MINUTE,
      .max_per_day = 10},
     0x0008f000,
     1},
    {"other sections between",
     "[trigger a]\ncondition=manual\n[daemon]\npool=2M\n[trigger b]\ncondition=domain-crash\n",
     {.name = "b",
      .condition = TRIGGER_DOMAIN_CRASH,
      .condition_text = "domain-crash",
      .count = 1,
      .cooldown_usec = MINUTE,
      .max_per_day = 10},
     0,
     2},
    {"the longest name",
     "[trigger 01234567890123456789012345678901]\ncondition=manual\n",
     {.name = "01234567890123456789012345678901",
      .condition = TRIGGER_MANUAL,
      .condition_text = "manual",
      .count = 1,
      .cooldown_usec = MINUTE,
      .max_per_day = 10},
     0,
     1},
};

static void check_trigger(const struct trigger_config *got, const struct trigger_config *expected,
                          uint32_t mask)
{
    CHECK_STR(got->name, expected->name);
    CHECK_INT(got->condition, expected->condition);
    CHECK_STR(got->condition_text, expected->condition_text);
    CHECK_UINT(event_set_xen_mask(&got->events), mask);
    CHECK_UINT(got->count, expected->count);
    CHECK_UINT(got->within_usec, expected->within_usec);
    CHECK_UINT(got->latency_usec, expected->latency_usec);
    CHECK_UINT(got->delay_usec, expected->delay_usec);
    CHECK_UINT(got->cooldown_usec, expected->cooldown_usec);
    CHECK_UINT(got->max_per_day, expected->max_per_day);
    CHECK_UINT(got->last_usec, expected->last_usec);
    CHECK_UINT(got->report, expected->report);
}

static void test_triggers(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(trigger_cases); i++) {
        const struct trigger_case *c = &trigger_cases[i];
        _cleanup_free_ char *error = NULL;
        struct config config = {0};

        test_case(c->name);
        CHECK_INT(load_text(c->text, &config, &error), 0);
        CHECK_STR(error, NULL);
        if (CHECK_UINT(config.nr_triggers, c->nr_triggers))
            check_trigger(&config.triggers[c->nr_triggers - 1], &c->trigger, c->mask);
    }
}

static void test_trigger_domains(void)
{
    static const struct {
        const char *name, *text, *domain;
        uint32_t max_per_domain, kept_for_new;
    } cases[] = {
        {"a third for a domain", "condition=domain-crash", "", 3, 2},
        {"of few", "condition=lost-records\nmax-per-day=2", "", 1, 0},
        {"of one", "runnable-latency=1s\nmax-per-day=1", "", 1, 0},
        {"all of it for the only domain", "condition=domain-crash\ndomain=web", "web", 10, 0},
        {"a third for several", "condition=domain-crash\ndomain=web*\nmax-per-day=30", "web*", 10,
         6},
        {"as is said", "condition=domain-crash\nmax-per-domain=5", "", 5, 2},
        {"no budgets", "condition=domain-crash\nmax-per-domain=10", "", 10, 0},
        {"automatic again", "condition=domain-crash\nmax-per-domain=10\nmax-per-domain=auto", "", 3,
         2},
        {"events have no domains", "event=sched-min", "", 0, 0},
        {"unless they are those of one", "event=sched-min\ndomain=db", "db", 10, 0},
        {"nobody has a button", "condition=manual", "", 0, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *error = NULL;
        struct config config = {0};
        char text[256];

        test_case(cases[i].name);
        (void)snprintf(text, sizeof(text), "[trigger x]\n%s\n", cases[i].text);
        CHECK_INT(load_text(text, &config, &error), 0);
        CHECK_STR(error, NULL);
        CHECK_STR(config.triggers[0].domain, cases[i].domain);
        CHECK_UINT(config.triggers[0].max_per_domain, cases[i].max_per_domain);
        CHECK_UINT(config.triggers[0].kept_for_new, cases[i].kept_for_new);
    }
}

struct bad_case {
    const char *name;
    const char *text;
    const char *line;    /* that the sentence names */
    const char *problem; /* what it says */
};

static const struct bad_case bad_cases[] = {
    {"not a size", "[daemon]\npool = much\n", "line 2", "'much' is not a size from 2M to 64G"},
    {"a pool too small", "[daemon]\npool=1048575\n", "line 2", "'1048575' is not a size"},
    {"a pool too large", "[daemon]\n\n\npool=65G\n", "line 4", "'65G' is not a size"},
    {"a pool that is to shrink", "[daemon]\npool-max=32M\n", "line 2",
     "pool-max=32M is less than pool=64M, which is taken at start"},
    {"the same, whatever comes first", "[daemon]\npool-max=32M\npool=33M\n", "line 2",
     "pool-max=32M is less than pool=33M"},
    {"no size for the most", "[daemon]\npool-max=much\n", "line 2",
     "'much' is not a size from 2M to 64G"},
    {"no pages", "[capture]\nbuffer-pages=0\n", "line 2", "'0' is neither 'auto' nor a number"},
    {"too many pages", "[capture]\nbuffer-pages=65536\n", "line 2", "from 1 to 65535"},
    {"negative pages", "[capture]\nbuffer-pages=-1\n", "line 2",
     "'-1' is neither 'auto' nor a number"},
    {"no template", "[capture]\nsegment-unit=compress.service\n", "line 2",
     "'compress.service' is not the name of a template unit"},
    {"a template without a name", "[capture]\nsegment-unit=@.service\n", "line 2",
     "'@.service' is not the name of a template unit"},
    {"a command", "[capture]\nsegment-unit=/bin/sh -c @.service\n", "line 2",
     "is not the name of a template unit"},
    {"a level that there is not", "[daemon]\nlog-level=loud\n", "line 2",
     "'loud' is not a level: use err, warning, notice, info or debug"},
    {"a negative reserve", "[capture]\nreserve=-1M\n", "line 2",
     "'-1M' is neither 'auto' nor a size"},
    {"a group that there is not",
     "[daemon]\n"
     "control-group=0123456789012345678901234567890123456789012345678901234567890123\n",
     "line 2", "this group does not exist: create it (groupadd --system 0123"},
    {"metrics in no directory", "[daemon]\nmetrics-file=x.prom\n", "line 2",
     "'x.prom' is not the absolute path of a file"},
    {"metrics in a directory", "[daemon]\nmetrics-file=/run/\n", "line 2",
     "'/run/' is not the absolute path of a file"},
    {"an unknown key", "[daemon]\npoool=1M\n", "line 2",
     "there is no key 'poool' in [daemon]; did you mean 'pool'?"},
    {"a key unlike any", "[daemon]\ncolour=red\n", "line 2",
     "there is no key 'colour' in [daemon];"},
    {"another section's key", "[capture]\npool=2M\n", "line 2", "'pool' belongs in [daemon]"},
    {"an unknown section", "[deamon]\npool=2M\n", "line 1",
     "there is no section [deamon]; did you mean [daemon]? See xentraced.conf(5)."},
    {"an unknown section without keys", "[flight-recoder]\n", "line 1",
     "there is no section [flight-recoder]; did you mean [flight-recorder]?"},
    {"an unknown section with a name", "[triger x]\n", "line 1",
     "there is no section [triger x]; did you mean [trigger]?"},
    {"a section unlike any", "[colours]\n", "line 1", "there is no section [colours];"},
    {"a name for a section that has none", "[daemon x]\n", "line 1", "no section [daemon x]"},
    {"a header that is indented", " [daemon]\npool=2M\n", "line 2",
     "the header [daemon] must be at the beginning of the line"},
    {"a key that is indented", "[daemon]\npool=2M\n pool-max=4M\n", "line 3",
     "a line that begins with a blank continues the one before"},
    {"no section", "pool=2M\n", "line 1", "'pool' belongs in [daemon]"},
    {"no equals sign", "[daemon]\npool 2M\n", "line 2", "not of the form 'key = value'"},
    {"the first of two", "[daemon]\npool=x\nbogus=1\n", "line 2", "'x' is not a size"},
    {"no equals sign, then a bad value", "[daemon]\npool 2M\n\npool=x\n", "line 2",
     "not of the form 'key = value'"},
    {"no share", "[daemon]\nmemory-share=0\n", "line 2", "'0' is not a number from 1 to 90"},
    {"all memory", "[daemon]\nmemory-share=91%\n", "line 2", "is not a number from 1 to 90"},
    {"not a share", "[daemon]\nmemory-share=5x\n", "line 2", "is not a number from 1 to 90"},
    {"no snapshots", "[limits]\nsnapshots-per-day=0\n", "line 2", "not a number from 1 to 1000"},
    {"no bytes", "[limits]\nsnapshot-bytes-per-day=0\n", "line 2", "'0' is neither 'auto' nor"},
    {"not an interval", "[limits]\nsnapshot-interval=often\n", "line 2", "is not a time"},
    {"neither yes nor no", "[flight-recorder]\nenabled=maybe\n", "line 2",
     "'maybe' is neither 'yes' nor 'no'"},
    {"too small a ring", "[flight-recorder]\nmemory=1023K\n", "line 2", "'1023K' is not a size"},
    {"unknown events", "[flight-recorder]\nevents=scehd\n", "line 2",
     "There are no events named \"scehd\"; did you mean \"sched\"?"},
    {"not CPUs", "[flight-recorder]\ncpus=one\n", "line 2", "\"one\""},
    {"not an age", "[flight-recorder]\nmax-age=old\n", "line 2", "'old' is not a time"},
    {"keep-enabled, too", "[flight-recorder]\nkeep-enabled=2\n", "line 2", "'2' is neither"},
    {"the trigger's key", "[flight-recorder]\nevent=sched\n", "line 2",
     "there is no key 'event' in [flight-recorder]; did you mean 'events'?"},
    {"the recorder's key", "[trigger x]\nevents=sched\n", "line 2",
     "there is no key 'events' in [trigger x]; did you mean 'event'?"},
    {"a trigger's misspelt key", "[trigger x]\ncooldwon=1\n", "line 2",
     "there is no key 'cooldwon' in [trigger x]; did you mean 'cooldown'?"},
    {"a trigger without a name", "[trigger]\ncondition=manual\n", "line 1",
     "'' is not a valid name for a trigger"},
    {"a name with a slash", "\n[trigger a/b]\ncondition=manual\n", "line 2",
     "'a/b' is not a valid"},
    {"a name with a blank", "[trigger a b]\ncondition=manual\n", "line 1", "'a b' is not a valid"},
    {"a name too long", "[trigger 012345678901234567890123456789012]\ncondition=manual\n", "line 1",
     "is not a valid name for a trigger"},
    {"the name of a user's snapshot", "[trigger user-x]\ncondition=manual\n", "line 1",
     "'user-x' is not a valid name for a trigger"},
    {"a hidden name", "[trigger .x]\n", "line 1", "'.x' is not a valid"},
    {"two of a name", "[trigger x]\ncondition=manual\n\n[trigger x]\ncondition=manual\n", "line 4",
     "the trigger 'x' is already defined at line 1"},
    {"no condition", "[daemon]\n[trigger x]\ndelay=1s\n", "line 2",
     "the trigger 'x' has no condition"},
    {"nothing at all", "[trigger x]\n", "line 1", "the trigger 'x' has no condition"},
    {"two conditions", "[trigger x]\nevent=sched-min\ncondition=manual\n", "line 1",
     "has two conditions, event and manual: use two triggers"},
    {"two words", "[trigger x]\ncondition=domain-crash\ncondition=manual\n", "line 3",
     "condition= is already set at line 2"},
    {"a condition without its key", "[trigger x]\ncondition=event\n", "line 1", "needs event="},
    {"an unknown condition", "[trigger x]\ncondition=crash\n", "line 2",
     "'crash' is not a condition"},
    {"events that are none", "[trigger x]\nevent=gen\n", "line 2", "condition=lost-records"},
    {"no such events", "[trigger x]\nevent=bogus\n", "line 2", "no events named \"bogus\""},
    {"no latency", "[trigger x]\nrunnable-latency=0\n", "line 2",
     "'0' is not a time greater than 0"},
    {"not a latency", "[trigger x]\nrunnable-latency=50k\n", "line 2", "'50k' is not a time"},
    {"a count alone", "[trigger x]\nevent=sched-min\ncount=5\n", "line 1",
     "needs both count= and within=, or neither"},
    {"a time alone", "[trigger x]\nevent=sched-min\nwithin=5\n", "line 1",
     "needs both count= and within=, or neither"},
    {"a count of crashes", "[trigger x]\ncondition=domain-crash\ncount=2\nwithin=1\n", "line 1",
     "which require event="},
    {"no count", "[trigger x]\ncount=0\n", "line 2", "'0' is not a number from 1 to 1000"},
    {"too high a count", "[trigger x]\ncount=1001\n", "line 2", "from 1 to 1000"},
    {"a count beyond everything", "[trigger x]\ncount=99999999999999999999999\n", "line 2",
     "from 1 to 1000"},
    {"a negative count", "[trigger x]\ncount=-1\n", "line 2", "'-1' is not a number"},
    {"within no time", "[trigger x]\nwithin=0\n", "line 2", "'0' is not a time greater than 0"},
    {"none a day", "[trigger x]\nmax-per-day=0\n", "line 2", "'0' is not a number"},
    {"not a delay", "[trigger x]\ndelay=soon\n", "line 2", "'soon' is not a time"},
    {"not a cooldown", "[trigger x]\ncooldown=x\n", "line 2", "'x' is not a time"},
    {"not a part of the ring", "[trigger x]\nlast=all\n", "line 2", "'all' is not a time"},
    {"not recorded", "[trigger x]\nevent=hvm,sched-min\n", "line 1",
     "events=sched-min,dom0op-domops in [flight-recorder] does not include: add hvm,sched-min"},
    {"latencies not recorded", "[trigger x]\nrunnable-latency=1s\n[flight-recorder]\nevents=hw\n",
     "line 1", "does not include: add sched-min"},
    {"a domain's button", "\n[trigger x]\ncondition=manual\ndomain=web\n", "line 2",
     "has domain= or max-per-domain=, but manual does not concern a domain"},
    {"a part of nobody's", "[trigger x]\nevent=sched-min\nmax-per-domain=2\n", "line 1",
     "event does not concern a domain"},
    {"none for a domain", "[trigger x]\nmax-per-domain=0\n", "line 2", "from 1 to 1000"},
    {"whose events they are is not recorded",
     "[trigger x]\nevent=hvm\ndomain=web\n[flight-recorder]\nevents=hvm\n", "line 1",
     "add hvm, and sched-min, which shows the domains"},
    {"too many triggers",
     "[trigger 1]\ncondition=manual\n[trigger 2]\ncondition=manual\n"
     "[trigger 3]\ncondition=manual\n[trigger 4]\ncondition=manual\n"
     "[trigger 5]\ncondition=manual\n[trigger 6]\ncondition=manual\n"
     "[trigger 7]\ncondition=manual\n[trigger 8]\ncondition=manual\n"
     "[trigger 9]\ncondition=manual\n[trigger 10]\ncondition=manual\n"
     "[trigger 11]\ncondition=manual\n[trigger 12]\ncondition=manual\n"
     "[trigger 13]\ncondition=manual\n[trigger 14]\ncondition=manual\n"
     "[trigger 15]\ncondition=manual\n[trigger 16]\ncondition=manual\n"
     "[trigger 17]\ncondition=manual\n",
     "line 33", "at most 16 triggers are supported"},
    {"an unclosed header", "[trigger x\ncondition=manual\n", "line 1",
     "not of the form 'key = value'"},
    {"a bad header, then no equals sign", "[trigger /]\nx\n", "line 1", "'/' is not a valid"},
    {"no equals sign, then a bad header", "x\n[trigger /]\n", "line 1",
     "not of the form 'key = value'"},
    {"bytes that are no text", "[daemon]\np\xff\x1bool=2M\n", "line 2",
     "there is no key 'p\xef\xbf\xbd\\x1bool' in [daemon]"},
    {"a header of such bytes", "[d\xff]\n", "line 1", "no section [d\xef\xbf\xbd]"},
    {"a bad value, then no equals sign", "[daemon]\npool=x\npool 2M\n", "line 2",
     "'x' is not a size"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_cases); i++) {
        const struct bad_case *c = &bad_cases[i];
        _cleanup_free_ char *error = NULL;
        struct config config = {.pool_bytes = 77};

        test_case(c->name);
        CHECK_INT(load_text(c->text, &config, &error), -EINVAL);
        CHECK_UINT(config.pool_bytes, 77); /* written on success only */
        if (!CHECK(error))
            continue;
        CHECK(strncmp(error, "/proc/self/fd/", 14) == 0);
        if (!CHECK(strstr(error, c->line)) || !CHECK(strstr(error, c->problem)))
            fprintf(stderr, "    %s\n", error);
    }
}

static void test_files(void)
{
    _cleanup_free_ char *missing = NULL, *unreadable = NULL;
    struct config config = {0};

    test_case("missing");
    CHECK_INT(load("/nonexistent/xentraced.conf", false, &config, &missing), 0);
    CHECK_UINT(config.buffer_pages, 0);
    CHECK_UINT(config.pool_bytes, DEFAULT_POOL);
    CHECK_STR(missing, NULL);
    CHECK_INT(load("/nonexistent/xentraced.conf", true, &config, &missing), -EINVAL);
    CHECK(missing && strstr(missing, "/nonexistent/xentraced.conf"));

    test_case("a directory");
    CHECK_INT(load("/", false, &config, &unreadable), -EINVAL);
    CHECK(unreadable && strstr(unreadable, "Cannot read the configuration /: Is a directory"));
}

int main(void)
{
    test_good();
    test_disk();
    test_log_level();
    test_recorder();
    test_limits();
    test_default_events();
    test_triggers();
    test_trigger_domains();
    test_bad();
    test_files();
    return test_end();
}

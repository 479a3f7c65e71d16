// SPDX-License-Identifier: GPL-2.0-or-later
/* Sections of captures, as lines: what they mean, and what is wrong with them. */

#include "daemon/config/capture-config.h"

#include "daemon/base/disk-limit.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define MIB UINT64_C(1048576)

static struct capture_configs configs;
static char problem[CAPTURE_PROBLEM_MAX];

/* "key=value key=value" after the section. */
static int read_section(const char *section, const char *keys)
{
    char text[256];
    char *rest = text, *word;
    int r;

    problem[0] = '\0';
    r = capture_config_begin(&configs, section, problem);
    (void)snprintf(text, sizeof(text), "%s", keys);
    while (r >= 0 && (word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');

        if (!value)
            continue;
        *value++ = '\0';
        r = capture_config_set(&configs, word, value, problem);
    }
    return r < 0 ? r : capture_config_check(&configs, problem);
}

static const struct {
    const char *keys;
    const char *events, *cpus, *on_reserve;
    uint64_t segment_mib, segment_sec, keep_mib, reserve_bytes;
    uint32_t keep_files;
    bool enabled;
} good[] = {
    {"", "all", "all", "rotate", 100, 0, 0, DISK_RESERVE_AUTO, 0, true},
    {"events=sched cpus=0-3 enabled=no", "sched", "0-3", "rotate", 100, 0, 0, DISK_RESERVE_AUTO, 0,
     false},
    {"segment-size=2M keep-files=9", "all", "all", "rotate", 2, 0, 0, DISK_RESERVE_AUTO, 9, true},
    {"segment-time=5min", "all", "all", "rotate", 0, 300, 0, DISK_RESERVE_AUTO, 0, true},
    {"keep-size=80M", "all", "all", "rotate", 10, 0, 80, DISK_RESERVE_AUTO, 0, true},
    {"keep-size=4G", "all", "all", "rotate", 100, 0, 4096, DISK_RESERVE_AUTO, 0, true},
    {"reserve=1 on-reserve=pause", "all", "all", "pause", 100, 0, 0, MIB, 0, true},
    {"reserve=0 reserve=auto", "all", "all", "rotate", 100, 0, 0, DISK_RESERVE_AUTO, 0, true},
};

static const struct {
    const char *section, *keys, *says;
} bad[] = {
    {"capture .x", "", "cannot be a capture's name"},
    {"capture a/b", "", "cannot be a capture's name"},
    {"capture flight-recorder", "", "cannot be a capture's name"},
    {"capture x", "event=sched", "did you mean 'events'"},
    {"capture x", "colour=red", "there is no key 'colour'"},
    {"capture x", "events=scheduler", "scheduler"},
    {"capture x", "cpus=a", "a"},
    {"capture x", "enabled=perhaps", "neither 'yes' nor 'no'"},
    {"capture x", "segment-size=100", "1M or more"},
    {"capture x", "segment-time=500ms", "1 s or more"},
    {"capture x", "keep-files=1", "from 2"},
    {"capture x", "keep-files=3x", "from 2"},
    {"capture x", "keep-size=lots", "not a size"},
    {"capture x", "segment-size=10M keep-size=20M", "at least 21M"},
    {"capture x", "reserve=some", "neither 'auto'"},
    {"capture x", "on-reserve=panic", "none of stop"},
};

int main(void)
{
    char name[64];

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        const struct capture_config *c = &configs.captures[0];

        test_case(*good[i].keys ? good[i].keys : "defaults");
        configs.count = 0;
        CHECK_INT(read_section("capture x", good[i].keys), 0);
        CHECK_STR(problem, "");
        CHECK_STR(c->name, "x");
        CHECK_STR(c->events, good[i].events);
        CHECK_STR(c->cpus, good[i].cpus);
        CHECK_STR(c->on_reserve, good[i].on_reserve);
        CHECK_UINT(c->segment_size_bytes, good[i].segment_mib * MIB);
        CHECK_UINT(c->segment_time_usec, good[i].segment_sec * 1000000);
        CHECK_UINT(c->keep_size_bytes, good[i].keep_mib * MIB);
        CHECK_UINT(c->reserve_bytes, good[i].reserve_bytes);
        CHECK_UINT(c->keep_files, good[i].keep_files);
        CHECK_INT(c->enabled, good[i].enabled);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        (void)snprintf(name, sizeof(name), "wrong: %s %s", bad[i].section, bad[i].keys);
        test_case(name);
        configs.count = 0;
        CHECK(read_section(bad[i].section, bad[i].keys) < 0);
        if (!CHECK(strstr(problem, bad[i].says)))
            TEST_SAY("it says: %s", problem);
    }
    test_case("which sections");
    CHECK(capture_config_is_section("capture a"));
    CHECK(!capture_config_is_section("capture"));
    CHECK(!capture_config_is_section("captures a"));
    test_case("two of a name, and too many");
    configs.count = 0;
    CHECK_INT(read_section("capture \t a", ""), 0);
    CHECK_STR(configs.captures[0].name, "a");
    CHECK(read_section("capture a", "") < 0);
    for (unsigned int i = 1; i < CAPTURE_CONFIGS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "capture b%u", i);
        CHECK_INT(read_section(name, ""), 0);
    }
    CHECK(read_section("capture c", "") < 0);
    CHECK(strstr(problem, "at most"));
    return test_end();
}

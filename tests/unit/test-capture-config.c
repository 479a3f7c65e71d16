// SPDX-License-Identifier: GPL-2.0-or-later
/* Sections of captures: what they mean, and what is wrong with them. */

#include "daemon/config/capture-config.h"

#include <sys/mman.h>

#include "common/util.h"
#include "daemon/config/config-read.h"
#include "tests/unit/test.h"

#define MIB UINT64_C(1048576)

static struct config config;
static char problem[512]; /* the first one; "": none */

/* Reads a file with TEXT. Returns whether it is right. */
static bool is_right(const char *text)
{
    char path[64];
    _cleanup_fd_ int fd = memfd_create("config", MFD_CLOEXEC);
    const struct config_source source = {.file = path, .is_required = true, .log_level = -1};
    _cleanup_reading_ struct config_reading *reading = NULL;
    _cleanup_free_ char *error = NULL;

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        exit(EXIT_FAILURE);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (config_read(&source, &reading) < 0)
        exit(EXIT_FAILURE);
    config = reading->config;
    error = config_describe_first_error(reading);
    (void)snprintf(problem, sizeof(problem), "%s", error ? error : "");
    return reading->nr_errors == 0;
}

/* [SECTION] with "key=value key=value". */
static bool section_is_right(const char *section, const char *keys)
{
    char text[512];
    int length = snprintf(text, sizeof(text), "[%s]\n", section);

    (void)snprintf(text + length, sizeof(text) - (size_t)length, "%s\n", keys);
    for (char *c = text + length; *c; c++)
        if (*c == ' ')
            *c = '\n';
    return is_right(text);
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
    {"capture .x", "", "is not a valid name for a capture"},
    {"capture a/b", "", "is not a valid name for a capture"},
    {"capture flight-recorder", "", "is not a valid name for a capture"},
    {"capture uid1000-x", "", "are of captures of users other than root"},
    {"capture x", "event=sched", "did you mean 'events'"},
    {"capture x", "colour=red", "there is no key 'colour'"},
    {"capture x", "events=scheduler", "scheduler"},
    {"capture x", "cpus=a", "a"},
    {"capture x", "enabled=perhaps", "neither 'yes' nor 'no'"},
    {"capture x", "segment-size=100", "1M or more"},
    {"capture x", "segment-time=500ms", "less than 1 s"},
    {"capture x", "keep-files=1", "from 2"},
    {"capture x", "keep-files=3x", "from 2"},
    {"capture x", "keep-size=lots", "not a size"},
    {"capture x", "segment-size=10M keep-size=20M", "at least 21M"},
    {"capture x", "reserve=some", "neither 'auto'"},
    {"capture x", "on-reserve=panic", "not an action"},
};

int main(void)
{
    char name[64], many[1024] = "";

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        const struct capture_config *c = &config.captures.captures[0];

        test_case(*good[i].keys ? good[i].keys : "defaults");
        CHECK(section_is_right("capture x", good[i].keys));
        CHECK_STR(problem, "");
        CHECK_UINT(config.captures.count, 1);
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
        CHECK(!section_is_right(bad[i].section, bad[i].keys));
        if (!CHECK(strstr(problem, bad[i].says)))
            TEST_SAY("it says: %s", problem);
    }
    test_case("a section without a name is about all captures");
    CHECK(section_is_right("capture", "reserve=1M"));
    CHECK_UINT(config.captures.count, 0);
    test_case("the longest name");
    CHECK(section_is_right("capture 01234567890123456789012345678901234567890", ""));
    CHECK_STR(config.captures.captures[0].name, "01234567890123456789012345678901234567890");
    CHECK(!section_is_right("capture 012345678901234567890123456789012345678901", ""));
    test_case("two of a name, and too many");
    CHECK(is_right("[capture \t a]\n[capture b]\n"));
    CHECK_STR(config.captures.captures[0].name, "a");
    CHECK(!is_right("[capture a]\n[capture a]\n"));
    CHECK(strstr(problem, "already"));
    for (unsigned int i = 0; i < CAPTURE_CONFIGS_MAX; i++)
        (void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "[capture b%u]\n", i);
    CHECK(is_right(many));
    (void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "[capture c]\n");
    CHECK(!is_right(many));
    CHECK(strstr(problem, "at most"));
    return test_end();
}

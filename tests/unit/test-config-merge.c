// SPDX-License-Identifier: GPL-2.0-or-later

/* What a reload changes, and what waits for a restart. */

#include "daemon/config/config-merge.h"

#include <sys/mman.h>
#include <syslog.h>

#include "common/util.h"
#include "daemon/config/config-keys.h"
#include "daemon/config/config-read.h"
#include "tests/unit/test.h"

static struct config_reading *read_text(const char *text)
{
    int fd = memfd_create("config", MFD_CLOEXEC);
    struct config_source source = {.is_required = true, .log_level = -1};
    struct config_reading *reading = NULL;
    char path[64];

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        exit(EXIT_FAILURE);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    source.file = path;
    CHECK_INT(config_read(&source, &reading), 0);
    CHECK_UINT(reading->nr_errors, 0);
    (void)close(fd);
    return reading;
}

#define EVENTS "[flight-recorder]\nevents=all\n"

struct merge_case {
    const char *name;
    const char *before;
    const char *after;
    const char *changes; /* "+": added, "-": removed, "!": after a restart; in brackets */
};

static const struct merge_case merge_cases[] = {
    {"nothing", "[daemon]\npool=4M\n", "[daemon]\npool=4M\n", ""},
    {"the same, written otherwise", "[daemon]\npool=4M\n", "\n[daemon]\npool=4096K\n", ""},
    {"the default, spelt out", "", "[daemon]\npool=64M\nlog-level=info\n", ""},
    {"a level", "", "[daemon]\nlog-level=debug\n", "[daemon log-level=debug]"},
    {"back to the default", "[daemon]\nlog-level=err\n", "", "[daemon log-level=info]"},
    {"a size of memory", "", "[daemon]\npool=4M\n", "[daemon pool=4M!]"},
    {"a text that becomes shorter", "[daemon]\ncontrol-group=daemon\n",
     "[daemon]\ncontrol-group=adm\n", "[daemon control-group=adm]"},
    {"what is recorded", "", "[flight-recorder]\nevents=sched\nkeep-enabled=no\n",
     "[flight-recorder events=sched!][flight-recorder keep-enabled=no]"},
    {"a new trigger", EVENTS, EVENTS "[trigger x]\nevent=hvm\n", "[+trigger x]"},
    {"one that goes", "[trigger x]\ncondition=manual\n", "", "[-trigger x]"},
    {"one by another name", "[trigger x]\ncondition=manual\n", "[trigger y]\ncondition=manual\n",
     "[+trigger y][-trigger x]"},
    {"triggers in another order", "[trigger x]\ncondition=manual\n[trigger y]\ncondition=manual\n",
     "[trigger y]\ncondition=manual\n[trigger x]\ncondition=manual\n", ""},
    {"a trigger's limits", "[trigger x]\ncondition=manual\ncooldown=1s\n",
     "[trigger x]\ncondition=manual\nmax-per-day=3\n",
     "[trigger x cooldown=1min][trigger x max-per-day=3]"},
    {"another condition", "[trigger x]\nevent=sched-min\n",
     "[trigger x]\nevent=sched-min\ncount=3\nwithin=1s\n",
     "[trigger x count=3][trigger x within=1s]"},
};

static void describe(const struct config_change *change, char *text, size_t size)
{
    size_t length = strlen(text);

    if (change->kind != CONFIG_CHANGED)
        (void)snprintf(text + length, size - length, "[%c%s]",
                       change->kind == CONFIG_ADDED ? '+' : '-', change->title);
    else
        (void)snprintf(text + length, size - length, "[%s %s=%s%s]", change->title,
                       change->key->name, change->value, change->is_applied ? "" : "!");
}

static void test_changes(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(merge_cases); i++) {
        const struct merge_case *c = &merge_cases[i];
        _cleanup_reading_ struct config_reading *before = NULL, *after = NULL;
        _cleanup_(config_changes_done) struct config_changes changes = {0};
        struct config merged;
        char text[512] = "";

        test_case(c->name);
        before = read_text(c->before);
        after = read_text(c->after);
        CHECK_INT(config_merge(&before->config, after, &merged, &changes), 0);
        for (size_t j = 0; j < changes.count; j++)
            describe(&changes.items[j], text, sizeof(text));
        CHECK_STR(text, c->changes);
    }
}

static void test_merged(void)
{
    _cleanup_reading_ struct config_reading *before = NULL, *after = NULL;
    _cleanup_(config_changes_done) struct config_changes changes = {0}, again = {0};
    struct config merged, more;

    test_case("what is in force then");
    before = read_text("[daemon]\npool=4M\n[trigger x]\ncondition=manual\n");
    after = read_text("[daemon]\npool=8M\nlog-level=debug\n[trigger y]\ncondition=domain-crash\n");
    CHECK_INT(config_merge(&before->config, after, &merged, &changes), 0);
    CHECK_UINT(merged.pool_bytes, UINT64_C(4) << 20);
    CHECK_INT(merged.log_level, LOG_DEBUG);
    CHECK_UINT(merged.nr_triggers, 1);
    CHECK_STR(merged.triggers[0].name, "y");
    CHECK(strstr(changes.items[0].origin, "/proc/self/fd/"));

    test_case("what waits for a restart is reported each time");
    CHECK_INT(config_merge(&merged, after, &more, &again), 0);
    CHECK_UINT(again.count, 1);
    CHECK_STR(again.items[0].key->name, "pool");
}

int main(void)
{
    test_changes();
    test_merged();
    return test_end();
}

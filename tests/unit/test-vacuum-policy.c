// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A directory as a line of words, and what goes. A word is CLASS SIZE @ HOURS of age: s a snapshot
 * or segment, r a snapshot of root's, t a trigger's, v one that a user asked for, w a trigger's
 * that a user fired, u a user's capture; a ! after it: it is open; a +: it was for too long.
 */

#include "daemon/output/vacuum-policy.h"

#include "common/units.h"
#include "daemon/base/disk-limit.h"
#include "tests/unit/test.h"

#define MIB      UINT64_C(1048576)
#define GIB      (UINT64_C(1024) * MIB)
#define HOUR_NS  (UINT64_C(3600) * NSEC_PER_SEC)
#define NOW_NS   (UINT64_C(1000000) * HOUR_NS)
#define FILE_MAX 16

static const struct {
    const char *name;
    const char *files;
    struct {
        uint64_t max_use_mib, keep_free_mib, max_age_hours;
    } limits;
    uint64_t free_mib;
    const char *goes; /* the indices; an o: too little is free because of others */
    bool is_enough;
} cases[] = {
    {"nothing there", "", {10, 10, 1}, 100, "", true},
    {"no limits", "s100@5 s100@4", {0}, 0, "", true},
    {"within them", "s100@5 s100@4", {200, 50, 10}, 50, "", true},
    {"too much is used: the oldest", "s100@4 s100@5 s100@3", {200, 0, 0}, 0, "1", true},
    {"as many as it takes", "s100@4 s100@5 s100@3", {199, 0, 0}, 0, "01", true},
    {"too little is free", "s100@4 s100@5 s100@3", {0, 150, 0}, 20, "01", true},
    {"to the byte", "s100@4 s100@5", {0, 120, 0}, 20, "1", true},
    {"both limits", "s100@4 s100@5 s100@3", {250, 300, 0}, 150, "01", true},
    {"a user's capture never goes", "u500@9 s100@4", {10, 1000, 1}, 0, "1", false},
    {"... and is not counted", "u500@9 s100@4", {100, 0, 0}, 0, "", true},
    {"an open file is spared, and none goes instead", "s100@9! s100@4", {100, 0, 0}, 0, "", true},
    {"... the next does if that is not enough", "s100@9! s100@8 s1@4", {100, 0, 0}, 0, "1", true},
    {"... a reader of all that is old does not have the new removed",
     "s100@9! t100@8! t100@1",
     {100, 0, 0},
     0,
     "",
     true},
    {"a trigger's of the last day goes last", "t100@9 s100@4 s100@3", {100, 0, 0}, 0, "12", true},
    {"... but goes", "t100@9 t100@8 s100@3", {100, 0, 0}, 0, "02", true},
    {"a trigger's of the day before goes as any", "t100@25 s100@4", {100, 0, 0}, 0, "0", true},
    {"a trigger's at the end of its day", "t100@24 s100@25", {100, 0, 0}, 0, "1", true},
    {"too old", "s100@5 s100@4 s1@2", {0, 0, 3}, 0, "01", true},
    {"too old, but a trigger's of the last day", "t100@5 s100@4", {0, 0, 3}, 0, "1", true},
    {"too old, but open", "s100@5! s100@4", {0, 0, 3}, 0, "1", true},
    {"what is too old counts for the rest", "s100@5 s100@2 s100@1", {200, 0, 3}, 0, "0", true},
    {"the future is not old", "s100@0 s100@1", {0, 0, 2}, 0, "", true},
    {"what users asked for goes first", "s100@9 v100@1 v100@2", {250, 0, 0}, 0, "2", true},
    {"... all of it", "s100@9 v100@1 v100@2 s100@8", {200, 0, 0}, 0, "12", true},
    {"... then the others", "s100@9 v100@1 t100@7", {100, 0, 0}, 0, "01", true},
    {"... for free space, too", "s100@9 v100@1", {0, 100, 0}, 0, "1", true},
    {"a trigger that a user fired protects nothing", "w100@1 s100@9", {100, 0, 0}, 0, "0", true},
    {"users' files that stay open remove no others",
     "s100@9 v300@1! v300@2!",
     {200, 0, 0},
     0,
     "",
     true},
    {"... what is too much without them goes", "s150@9 s100@8 v300@1!", {200, 0, 0}, 0, "0", true},
    {"... and they count for each other", "v300@1! v100@2", {200, 0, 0}, 0, "1", true},
    {"users' files are too old like any", "v100@5 v100@2", {0, 0, 3}, 0, "0", true},
    {"nothing is enough", "s100@5 s100@4", {0, 1000, 0}, 0, "01", false},

    /* For free space, only what was written since there was enough. */
    {"others fill the disk", "s100@9 t100@1 s100@3 b300@0", {0, 1000, 0}, 0, "o", false},
    {"... and a new one makes room for itself",
     "s100@9 s100@8 t100@7 s100@1 b300@0",
     {0, 1000, 0},
     0,
     "0o",
     false},
    {"... a small one not for a large one", "s100@9 s10@1 b100@0", {0, 1000, 0}, 0, "o", false},
    {"... unless that is enough", "s100@9 s10@1 b100@0", {0, 110, 0}, 10, "0", true},
    {"... and no more than is missing", "s100@9 s100@8 s100@1", {0, 60, 0}, 0, "0", true},
    {"the newest of triggers and of root stay",
     "r100@9 r100@8 t100@7 t100@6",
     {0, 1000, 0},
     0,
     "02o",
     false},
    {"... also after a day", "t100@90 s100@9", {0, 1000, 0}, 0, "1o", false},
    {"... but not from max-use=", "r100@9 t100@6", {50, 0, 0}, 0, "01", true},
    {"... nor from age", "r100@9 t100@40", {0, 0, 5}, 0, "01", true},
    {"a trigger's is not taken for older ones that are too large",
     "s100@9 t10@2 t10@1 s5@1 b105@0",
     {0, 1000, 0},
     0,
     "o",
     false},
    {"users' growth takes users' files",
     "s100@9 v50@8 v100@1 c50@0 b100@0",
     {0, 1000, 0},
     0,
     "1o",
     false},
    {"... and none of others', if they stay open",
     "s100@9 v50@8! v100@1! c50@0 b100@0",
     {0, 1000, 0},
     0,
     "o",
     false},
    {"... the others' takes users' first",
     "s100@9 v100@8 s100@1 c100@0 b100@0",
     {0, 1000, 0},
     0,
     "1o",
     false},
    {"what max-use= takes counts", "s100@9 s100@8 s100@1 b200@0", {200, 1000, 0}, 0, "0o", false},

    /* A file that is held open is removed, but its space is not free yet. */
    {"held: not for growth that is smaller", "s100@9+ s10@1 b100@0", {0, 110, 0}, 10, "o", false},
    {"held: counts for max-use=", "s100@9+ s100@8", {100, 0, 0}, 0, "0", true},
    {"held: frees nothing", "s100@9+ s100@8", {0, 100, 0}, 0, "01", true},
    {"held: others do not go for it", "s100@9+ s100@8 b100@0", {0, 100, 0}, 0, "0o", false},
};

static size_t read_files(const char *text, struct vacuum_file files[static FILE_MAX],
                         struct vacuum_use *base)
{
    size_t count = 0;

    while (*text) {
        unsigned long size, hours;
        char kind, open = '\0';
        int length = 0;

        (void)sscanf(text, "%c%lu@%lu%n", &kind, &size, &hours, &length);
        open = text[length] == ' ' ? '\0' : text[length];
        files[count] = (struct vacuum_file){
            .bytes = size * MIB,
            .time_ns = NOW_NS - hours * HOUR_NS,
            .is_of_trigger = kind == 't',
            .is_of_root = kind == 'r',
            .is_open = open,
            .is_spared = open == '!',
        };
        if (kind == 'b' || kind == 'c') {
            *(kind == 'b' ? &base->other_bytes : &base->user_bytes) = size * MIB;
            text += length + (text[length] == ' ');
            continue;
        }
        files[count].vacuum_class =
            kind == 'u'
                ? VACUUM_NEVER
                : vacuum_class_of_snapshot(kind == 'v' || kind == 'w', kind == 't' || kind == 'w',
                                           files[count].time_ns, NOW_NS);
        count++;
        text += length + !!open;
        text += *text == ' ';
    }
    return count;
}

static void check_case(size_t i)
{
    struct vacuum_limits limits = {
        .max_use_bytes = cases[i].limits.max_use_mib * MIB,
        .keep_free_bytes = cases[i].limits.keep_free_mib * MIB,
        .max_age_usec = cases[i].limits.max_age_hours * 3600 * USEC_PER_SEC,
    };
    struct vacuum_file files[FILE_MAX] = {0};
    size_t count = read_files(cases[i].files, files, &limits.base), went = 0;
    struct vacuum_outcome outcome =
        vacuum_choose(files, count, &limits, cases[i].free_mib * MIB, NOW_NS);
    char goes[FILE_MAX + 2] = "";
    uint64_t bytes = 0;

    for (size_t n = 0; n < count; n++) {
        if (!files[n].goes)
            continue;
        goes[went++] = (char)('0' + n);
        bytes += files[n].bytes;
    }
    if (outcome.is_of_others)
        goes[went] = 'o';
    CHECK_STR(goes, cases[i].goes);
    CHECK_UINT(outcome.files, went);
    CHECK_UINT(outcome.bytes, bytes);
    CHECK_INT(outcome.is_enough, cases[i].is_enough);
}

static const struct {
    const char *name;
    struct disk_limit limit;
    uint64_t total_bytes;
    uint64_t expected_bytes;
} limits[] = {
    {"a tenth", {0}, 10 * GIB, GIB},
    {"4 GiB at most", {0}, 1000 * GIB, 4 * GIB},
    {"none", {.kind = DISK_LIMIT_NONE}, 10 * GIB, 0},
    {"bytes", {.kind = DISK_LIMIT_BYTES, .value = 5 * MIB}, GIB, 5 * MIB},
    {"a part", {.kind = DISK_LIMIT_PERCENT, .value = 50}, 100 * GIB, 50 * GIB},
};

static void test_reasons(void)
{
    struct vacuum_file files[FILE_MAX] = {0};
    struct vacuum_limits both = {
        .max_use_bytes = 250 * MIB,
        .keep_free_bytes = 230 * MIB,
        .max_age_usec = 9 * 3600 * USEC_PER_SEC,
    };
    size_t count = read_files("s100@10 s100@4 s100@3 s100@2", files, &both.base);

    test_case("why each goes");
    (void)vacuum_choose(files, count, &both, 0, NOW_NS);
    CHECK_INT(files[0].reason, VACUUM_TOO_OLD);
    CHECK_INT(files[1].reason, VACUUM_MAX_USE);
    CHECK_INT(files[2].reason, VACUUM_KEEP_FREE);
    CHECK(files[2].goes && !files[3].goes);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_case(cases[i].name);
        check_case(i);
    }
    test_reasons();
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        test_case(limits[i].name);
        CHECK_UINT(disk_limit_bytes(limits[i].limit, limits[i].total_bytes, DISK_MAX_USE_PERCENT) /
                       1024,
                   limits[i].expected_bytes / 1024);
    }
    return test_end();
}

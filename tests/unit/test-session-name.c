// SPDX-License-Identifier: GPL-2.0-or-later

/* Names: what a session may be called, and what its files are called then. */

#include <errno.h>
#include <time.h>

#include "common/sidecar-path.h"
#include "common/util.h"
#include "daemon/base/name.h"
#include "tests/unit/test.h"

#define LETTERS_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct name_case {
    const char *text;
    bool valid;
};

static const struct name_case name_cases[] = {
    {"a", true},
    {"capture-2026-01-31T10:20:30", true},
    {"web.1_x@host", true},
    {"0", true},
    {"_", true},
    {"@", true},
    {"a..b", true},
    {"a.xentrace", true},
    {LETTERS_64, true},
    {LETTERS_64 "x", false},
    {"", false},
    {".", false},
    {"..", false},
    {".hidden", false},
    {"-option", false},
    {"a/b", false},
    {"/etc/passwd", false},
    {"../a", false},
    {"a b", false},
    {" a", false},
    {"a\n", false},
    {"a\tb", false},
    {"a\033[2J", false},
    {"\xc3\xa9t\xc3\xa9", false},
    {"a%s", false},
    {"a*", false},
    {"a\\b", false},
    {"a'b", false},
    {"a,b", false},
};

static void test_names(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(name_cases); i++) {
        test_case(name_cases[i].text);
        CHECK(name_is_valid(name_cases[i].text, SESSION_NAME_MAX) == name_cases[i].valid);
    }
}

/* --- Names that are made up, while the clock stands still. --- */

#define NAMES 1200

static char made_up[NAMES][SESSION_NAME_MAX + 1];

time_t time(time_t *ret_now) /* in place of the C library's */
{
    if (ret_now)
        *ret_now = 1795241112;
    return 1795241112;
}

static bool is_made_up(const void *userdata, const char *name)
{
    size_t count = *(const size_t *)userdata;

    for (size_t i = 0; i < count; i++)
        if (strcmp(made_up[i], name) == 0)
            return true;
    return false;
}

/* Valid, unique, and sorted. */
static void test_made_up(const char *stem, const char *first, const char *last)
{
    test_case(stem);
    for (size_t i = 0; i < NAMES; i++) {
        name_make_up(stem, is_made_up, &i, made_up[i]);
        CHECK(name_is_valid(made_up[i], SESSION_NAME_MAX));
        CHECK(!is_made_up(&i, made_up[i]));
        CHECK(i == 0 || i >= 999 || strcmp(made_up[i - 1], made_up[i]) < 0);
    }
    CHECK_STR(made_up[0], first);
    CHECK_STR(made_up[NAMES - 1], last);
}

static void test_numbers(void)
{
    char name[SESSION_NAME_MAX + 1];

    test_case("a number that does not fit");
    name_number(LETTERS_64, NAME_NUMBER_MAX, name);
    CHECK(name_is_valid(name, SESSION_NAME_MAX));
    CHECK_STR(name + SESSION_NAME_MAX - 6, "-99999");
}

struct path_case {
    const char *output;
    const char *sidecar;
};

static const struct path_case path_cases[] = {
    {"f.xentrace", "f.json"},
    {"f", "f.json"},
    {"/tmp/a/f.xentrace", "/tmp/a/f.json"},
    {"f.bin", "f.bin.json"},
    {"f.xentrace.xentrace", "f.xentrace.json"},
    {"f.xentrace.1", "f.xentrace.1.json"},
    {"f.xentracex", "f.xentracex.json"},
    {".xentrace", ".xentrace.json"},
    {"a.xentrace/f", "a.xentrace/f.json"},
};

static const struct {
    const char *name;   /* that is asked for */
    const char *result; /* of UID 1000; NULL: none */
} user_cases[] = {
    {"nightly", "uid1000-nightly"},
    {"uid1000-nightly", "uid1000-nightly"},
    {"uid1001-nightly", "uid1000-uid1001-nightly"},
    {"uid0-nightly", "uid1000-uid0-nightly"},
    {"flight-recorder", "uid1000-flight-recorder"},
    {"", "uid1000"}, /* the time follows */
    {"a/b", NULL},
    {"-a", NULL},
    {"0123456789abcdef0123456789abcdef0123456789abcdef01234567",
     "uid1000-"
     "0123456789abcdef0123456789abcdef0123456789abcdef01234567"},
    {"0123456789abcdef0123456789abcdef0123456789abcdef012345678", NULL},
};

static void test_users(void)
{
    static const char *const of_root[] = {"nightly", "uid",     "uid-a", "uidx-a",
                                          "uid12",   "auid1-a", "",      "capture-20261121-060512"};
    char name[SESSION_NAME_MAX + 1];
    struct failure failure;

    for (size_t i = 0; i < ARRAY_SIZE(user_cases); i++) {
        int r = name_of_user(1000, user_cases[i].name, name, &failure);

        test_case(user_cases[i].name);
        CHECK_INT(r, user_cases[i].result ? 0 : -EINVAL);
        if (r == 0)
            CHECK_STR(name, user_cases[i].result);
    }
    test_case("the longest UID");
    CHECK_INT(name_of_user((uid_t)-2, "a", name, &failure), 0);
    CHECK_STR(name, "uid4294967294-a");
    test_case("names of users are told from root's");
    CHECK(name_is_of_user("uid1000-nightly") && name_is_of_user("uid0-a"));
    CHECK(name_is_of_user(name));
    for (size_t i = 0; i < ARRAY_SIZE(of_root); i++)
        CHECK(!name_is_of_user(of_root[i]));
}

static void test_paths(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(path_cases); i++) {
        _cleanup_free_ char *path = sidecar_path_of(path_cases[i].output);

        test_case(path_cases[i].output);
        CHECK_STR(path, path_cases[i].sidecar);
    }
}

int main(void)
{
    if (setenv("TZ", "UTC", 1) < 0)
        return 77;
    test_names();
    test_made_up("capture", "capture-20261121-060512", "capture-20261121-060512-1200");
    test_made_up("snapshot-" LETTERS_64,
                 "snapshot-0123456789abcdef0123456789abcdef0-20261121-060512",
                 "snapshot-0123456789abcdef0123456789abcdef0-20261121-060512-1200");
    test_numbers();
    test_users();
    test_paths();
    return test_end();
}

// SPDX-License-Identifier: GPL-2.0-or-later

/* Names: what a session may be called, and what its files are called then. */

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
    test_names();
    test_paths();
    return test_end();
}

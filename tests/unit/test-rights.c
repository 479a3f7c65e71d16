// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The whole table of rights: every call, by every role, to one's own capture and to another's. The
 * expectations are written as xentraced(8) has them, not as the module does.
 */

#include "daemon/control/rights.h"

#include "common/protocol.h"
#include "tests/unit/test.h"

static const struct {
    const char *name;
    enum right right;
    const char
        *own; /* of each role in order, whether it may: '-' none, v view, o operate, r root */
    const char *other; /* ... to somebody else's */
    const char *says;  /* what a refusal names */
} table[] = {
    {"Status", RIGHT_STATUS, "vor", "vor", "group xentrace"},
    {"Trigger", RIGHT_TRIGGER, "vor", "vor", "group xentrace"},
    {"Snapshot", RIGHT_SNAPSHOT, "vor", "vor", "group xentrace"},
    {"Snapshot into a pipe, of the newest records", RIGHT_SNAPSHOT_LIVE, "vor", "vor",
     "group xentrace"},
    {"Snapshot with an output", RIGHT_SNAPSHOT_OUTPUT, "or", "or", "control-group="},
    {"Files", RIGHT_FILES, "vor", "vor", "group xentrace"},
    {"Vacuum", RIGHT_VACUUM, "r", "r", "Only root"},
    {"Remove", RIGHT_REMOVE, "r", "r", "Only root"},
    {"Start with an output", RIGHT_START_OUTPUT, "or", "or", "control-group="},
    {"Start without an output", RIGHT_START_STATE_DIR, "r", "r", "Only root"},
    {"Start that leaves tracing enabled", RIGHT_START_KEEP_ENABLED, "r", "r",
     "Leave --keep-enabled"},
    {"Start with buffer pages", RIGHT_START_BUFFER_PAGES, "r", "r", "Leave --buffer-pages"},
    {"Stop", RIGHT_STOP, "or", "r", "root"},
    {"Abort", RIGHT_ABORT, "or", "r", "root"},
    {"Rotate", RIGHT_ROTATE, "or", "r", "root"},
    {"Reload", RIGHT_RELOAD, "r", "r", "Only root"},
    {"Start of the recorder", RIGHT_START_RECORDER, "r", "r", "Only root"},
    {"StopRecorder", RIGHT_STOP_RECORDER, "r", "r", "Only root"},
};

static void check_cell(size_t i, enum role role, bool is_own)
{
    const char letters[ROLES] = {'-', 'v', 'o', 'r'};
    bool may = strchr(is_own ? table[i].own : table[i].other, letters[role]);
    struct failure failure = {0};
    int r = rights_check(role, table[i].right, is_own, &failure);

    if (!CHECK_INT(r, may ? 0 : -EPERM))
        TEST_SAY("%s, %s", role_name(role), is_own ? "own" : "other's");
    if (may) {
        CHECK_STR(failure.name, NULL);
        return;
    }
    CHECK_STR(failure.name, ERROR_NOT_PERMITTED);
    if (!CHECK(strstr(failure.text, table[i].says)))
        TEST_SAY("%s: %s", role_name(role), failure.text);
}

static void test_table(void)
{
    bool seen[RIGHTS] = {false};

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        test_case(table[i].name);
        seen[table[i].right] = true;
        for (unsigned int role = 0; role < ROLES; role++) {
            check_cell(i, (enum role)role, true);
            check_cell(i, (enum role)role, false);
        }
    }
    test_case("no call is left out");
    for (unsigned int right = 0; right < RIGHTS; right++)
        CHECK(seen[right]);
}

static void test_sentences(void)
{
    struct failure failure = {0};

    test_case("an operator and another user's capture: the sentence says whose it is");
    CHECK_INT(rights_check(ROLE_OPERATE, RIGHT_STOP, false, &failure), -EPERM);
    CHECK(strstr(failure.text,
                 "Another user started this one: only root may stop captures of others."));
    test_case("a viewer and a capture: the sentence names the role");
    CHECK_INT(rights_check(ROLE_VIEW, RIGHT_STOP, true, &failure), -EPERM);
    CHECK(strstr(failure.text, "role operate"));
}

int main(void)
{
    test_table();
    test_sentences();
    return test_end();
}

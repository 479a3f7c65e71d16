// SPDX-License-Identifier: GPL-2.0-or-later
/* The server's side of authentication: a table of dialogues, and lines at random. */

#include "daemon/control/sasl.h"

#include "common/util.h"
#include "tests/unit/test.h"

#define GUID  "0123456789abcdef0123456789abcdef"
#define OK    "OK " GUID
#define BYE   "(disconnects)"
#define BEGUN "(begins)"

#define LONG_LINE                                                                                  \
    "AUTH EXTERNAL 0123456789012345678901234567890123456789012345678901234567890123456789012345"   \
    "67890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567" \
    "89012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"

/* A UID of 1000 says 31303030. */
static const struct {
    const char *name;
    bool no_descriptors;
    const char *dialogue[10]; /* line, reply, ... */
} dialogues[] = {
    {"as libsystemd does",
     false,
     {"AUTH EXTERNAL", "DATA", "DATA", OK, "NEGOTIATE_UNIX_FD", "AGREE_UNIX_FD", "BEGIN", BEGUN}},
    {"as libdbus does",
     false,
     {"AUTH EXTERNAL 31303030", OK, "NEGOTIATE_UNIX_FD", "AGREE_UNIX_FD", "BEGIN", BEGUN}},
    {"the UID as data", false, {"AUTH EXTERNAL", "DATA", "DATA 31303030", OK, "BEGIN", BEGUN}},
    {"no descriptors",
     true,
     {"AUTH EXTERNAL 31303030", OK, "NEGOTIATE_UNIX_FD", "ERROR", "BEGIN", BEGUN}},
    {"descriptors before authentication",
     false,
     {"NEGOTIATE_UNIX_FD", "ERROR", "AUTH EXTERNAL 31303030", OK, "BEGIN", BEGUN}},
    {"somebody else's UID", false, {"AUTH EXTERNAL 30", "REJECTED EXTERNAL", "BEGIN", BYE}},
    {"somebody else's UID as data",
     false,
     {"AUTH EXTERNAL", "DATA", "DATA 30", "REJECTED EXTERNAL", "BEGIN", BYE}},
    {"no hexadecimal digits", false, {"AUTH EXTERNAL 1000", "REJECTED EXTERNAL"}},
    {"another mechanism, then the right one",
     false,
     {"AUTH", "REJECTED EXTERNAL", "AUTH ANONYMOUS", "REJECTED EXTERNAL", "AUTH EXTERNAL 31303030",
      OK, "BEGIN", BEGUN}},
    {"a mechanism with a longer name", false, {"AUTH EXTERNALLY", "REJECTED EXTERNAL"}},
    {"begins without authentication", false, {"BEGIN", BYE}},
    {"begins in the middle", false, {"AUTH EXTERNAL", "DATA", "BEGIN", BYE}},
    {"cancels", false, {"AUTH EXTERNAL", "DATA", "CANCEL", "REJECTED EXTERNAL", "DATA", "ERROR"}},
    {"an error of the client's", false, {"ERROR what", "REJECTED EXTERNAL"}},
    {"authenticates twice",
     false,
     {"AUTH EXTERNAL 31303030", OK, "AUTH EXTERNAL 31303030", "ERROR", "BEGIN", BEGUN}},
    {"an unknown command", false, {"HELP", "ERROR", "", "ERROR", "begin", "ERROR"}},
    {"a line that is too long", false, {LONG_LINE, BYE}},
    {"lines after BEGIN", false, {"AUTH EXTERNAL 31303030", OK, "BEGIN", BEGUN, "BEGIN", BYE}},
};

static void check_answer(const struct sasl *sasl, int r, const char *reply, const char *expected)
{
    char line[SASL_REPLY_MAX];

    if (strcmp(expected, BYE) == 0) {
        CHECK_INT(r, -EPROTO);
        return;
    }
    CHECK_INT(r, 0);
    CHECK_INT(sasl->state == SASL_BEGUN, strcmp(expected, BEGUN) == 0);
    (void)snprintf(line, sizeof(line), "%s\r\n", expected);
    CHECK_STR(reply, sasl->state == SASL_BEGUN ? "" : line);
}

static void test_dialogues(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(dialogues); i++) {
        const char *const *line = dialogues[i].dialogue;
        struct sasl sasl;

        test_case(dialogues[i].name);
        sasl_init(&sasl, 1000, !dialogues[i].no_descriptors, GUID);
        for (; *line; line += 2) {
            char reply[SASL_REPLY_MAX] = "?";
            int r = sasl_feed(&sasl, line[0], strlen(line[0]), reply);

            check_answer(&sasl, r, reply, line[1]);
        }
    }
}

static void test_bounds(void)
{
    char reply[SASL_REPLY_MAX];
    struct sasl sasl;

    test_case("a line with a NUL");
    sasl_init(&sasl, 0, true, GUID);
    CHECK_INT(sasl_feed(&sasl, "AUTH\0EXTERNAL", 13, reply), -EPROTO);
    test_case("too many lines");
    sasl_init(&sasl, 0, true, GUID);
    for (unsigned int i = 0; i < SASL_LINES_MAX; i++)
        CHECK_INT(sasl_feed(&sasl, "AUTH", 4, reply), 0);
    CHECK_INT(sasl_feed(&sasl, "AUTH", 4, reply), -EPROTO);
}

int main(void)
{
    test_dialogues();
    test_bounds();
    return test_end();
}

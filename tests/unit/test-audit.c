// SPDX-License-Identifier: GPL-2.0-or-later
/* Who may have how many lines in the audit trail, and what is counted instead. */

#include "daemon/control/audit.h"

#include "common/util.h"
#include "tests/unit/test.h"

#define NOW UINT64_C(1000000000)

static unsigned int admit_many(struct audit *audit, uid_t uid, uint64_t now_usec,
                               unsigned int times, uint64_t *ret_suppressed)
{
    unsigned int admitted = 0;
    uint64_t suppressed;

    for (unsigned int i = 0; i < times; i++)
        if (audit_admit(audit, uid, now_usec, &suppressed)) {
            admitted++;
            *ret_suppressed += suppressed;
        }
    return admitted;
}

static void test_rate(void)
{
    struct audit audit = {0};
    uint64_t suppressed = 0;

    test_case("ten lines in an interval");
    CHECK_UINT(admit_many(&audit, 1000, NOW, 100, &suppressed), AUDIT_LINES_MAX);
    CHECK_UINT(suppressed, 0);
    test_case("another user has lines of its own");
    CHECK_UINT(admit_many(&audit, 1001, NOW, 100, &suppressed), AUDIT_LINES_MAX);
    test_case("none before the interval is over");
    CHECK_UINT(admit_many(&audit, 1000, NOW + AUDIT_INTERVAL_USEC - 1, 1, &suppressed), 0);
    test_case("afterwards again, with the number of those that were left out");
    CHECK_UINT(admit_many(&audit, 1000, NOW + AUDIT_INTERVAL_USEC, 100, &suppressed),
               AUDIT_LINES_MAX);
    CHECK_UINT(suppressed, 91);
}

static void test_many_users(void)
{
    struct audit audit = {0};
    uint64_t suppressed = 0;

    test_case("more users than there is room for: the one who was quiet for longest is forgotten");
    for (unsigned int i = 0; i <= AUDIT_USERS_MAX; i++)
        CHECK_UINT(admit_many(&audit, 1000 + i, NOW + i, 100, &suppressed), AUDIT_LINES_MAX);
    CHECK_UINT(admit_many(&audit, 1000 + AUDIT_USERS_MAX, NOW + 20, 1, &suppressed), 0);
    CHECK_UINT(admit_many(&audit, 1001, NOW + 20, 1, &suppressed), 0);
    CHECK_UINT(admit_many(&audit, 1000, NOW + 20, 1, &suppressed), 1);
}

static void test_names(void)
{
    static const struct {
        const char *name, *object;
    } names[] = {
        {"nightly", "nightly"}, {"", ""}, {"a\nb", ""}, {"../x", ""}, {"\x1b[2J", ""},
    };

    test_case("only names are named");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct audit_call call = {0};

        audit_name_object(&call, names[i].name);
        CHECK_STR(call.object, names[i].object);
    }
}

int main(void)
{
    test_rate();
    test_many_users();
    test_names();
    return test_end();
}

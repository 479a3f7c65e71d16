// SPDX-License-Identifier: GPL-2.0-or-later
/* What the audit trail names, and on whose account its lines are: each line of it, carried out or
 * not. */

#include "daemon/control/audit.h"

#include "common/util.h"
#include "tests/unit/test.h"

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
    test_names();
    return test_end();
}

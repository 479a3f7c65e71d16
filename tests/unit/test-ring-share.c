// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/session/ring-share.h"

#include "common/protocol.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define MIB UINT64_C(1048576)

struct share_case {
    const char *name;
    uint32_t percent;
    uint64_t rings, wanted, available;
    int result;
};

static const struct share_case cases[] = {
    {"the first ring", 50, 0, 50 * MIB, 100 * MIB, 0},
    {"one that is too large", 50, 0, 51 * MIB, 100 * MIB, -ENOMEM},
    {"a second one, of the same half", 50, 30 * MIB, 20 * MIB, 70 * MIB, 0},
    {"a second half of what is left", 50, 50 * MIB, 25 * MIB, 50 * MIB, -ENOMEM},
    {"rings have more than their part already", 50, 90 * MIB, MIB, 10 * MIB, -ENOMEM},
    {"nobody knows what is free", 50, 0, 50 * MIB, 0, 0},
    {"more than there is", 90, 0, UINT64_MAX, 100 * MIB, -ENOMEM},
    {"more than there is, with others", 90, 10 * MIB, UINT64_MAX - MIB, 100 * MIB, -ENOMEM},
};

int main(void)
{
    struct failure failure = {0};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct share_case *c = &cases[i];
        const struct ring_share share = {.percent = c->percent, .bytes = c->rings};

        test_case(c->name);
        CHECK_INT(ring_share_check(&share, c->wanted, c->available, &failure), c->result);
    }
    test_case("words");
    (void)ring_share_check(&(struct ring_share){50, 0}, 60 * MIB, 100 * MIB, &failure);
    CHECK_STR(failure.name, ERROR_NO_MEMORY);
    CHECK_STR(failure.text, "A ring of 60M is more than dom0 can spare: 100M is free, and "
                            "memory-share= limits all rings together to 50 % of that, 50M. Use a "
                            "smaller ring, or set a larger memory-share=.");
    (void)ring_share_check(&(struct ring_share){50, 40 * MIB}, 60 * MIB, 100 * MIB, &failure);
    CHECK(strstr(failure.text, "100M is free, rings have 40M, and"));
    return test_end();
}

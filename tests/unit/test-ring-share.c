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

/* Of 100 MiB in all, half of which rings may have. */
struct users_case {
    const char *name;
    uint64_t roots, users, recorder; /* MiB */
    uint64_t most;                   /* MiB that a user's next ring may have */
};

static const struct users_case users_cases[] = {
    {"users: half of the share", 0, 0, 0, 25},
    {"users: together", 0, 20, 0, 5},
    {"users: ... and no more", 0, 25, 0, 0},
    {"users: the recorder runs", 10, 0, 0, 25},
    {"users: the recorder does not run", 0, 0, 10, 25},
    {"users: it is large", 0, 0, 40, 10},
    {"users: it is larger than the share", 0, 0, 60, 0},
    {"users: root has half of it, too", 25, 0, 0, 25},
    {"users: root has more, and the recorder is to come", 30, 0, 10, 10},
    {"users: root has all of it", 50, 0, 0, 0},
    {"users: root has all of it, and the recorder is to come", 50, 0, 10, 0},
};

/* However users and root take turns, root's half and the recorder are left. */
static void test_users(void)
{
    struct failure failure = {0};

    for (size_t i = 0; i < ARRAY_SIZE(users_cases); i++) {
        const struct users_case *c = &users_cases[i];
        struct ring_share share = {.percent = 50, .recorder_bytes = c->recorder * MIB};
        uint64_t available = (100 - c->roots - c->users) * MIB;

        test_case(c->name);
        ring_share_take(&share, false, c->roots * MIB);
        ring_share_take(&share, true, c->users * MIB);
        CHECK_INT(ring_share_check(&share, true, c->most * MIB, available, &failure), 0);
        CHECK_INT(ring_share_check(&share, true, c->most * MIB + 1, available, &failure), -ENOMEM);
    }
    test_case("users: the sentence says for whom the rest is");
    (void)ring_share_check(&(struct ring_share){.percent = 50}, true, 26 * MIB, 100 * MIB,
                           &failure);
    CHECK(strstr(failure.text, "kept for root and the flight recorder"));

    test_case("users: whatever they take, root has its half, and the recorder starts");
    for (uint64_t recorder = 0; recorder <= 50; recorder += 5) {
        struct ring_share share = {.percent = 50, .recorder_bytes = recorder * MIB};
        uint64_t free_mib = 100;

        while (free_mib > 0 && ring_share_check(&share, true, MIB, free_mib * MIB, &failure) == 0) {
            ring_share_take(&share, true, MIB);
            free_mib--;
        }
        CHECK_INT(
            ring_share_check(&share, false, max_u64(25, recorder) * MIB, free_mib * MIB, &failure),
            0);
    }

    test_case("users: what was given back");
    {
        struct ring_share share = {.percent = 50};

        ring_share_take(&share, true, 25 * MIB);
        ring_share_give(&share, true, 25 * MIB);
        CHECK_UINT(share.bytes, 0);
        CHECK_INT(ring_share_check(&share, true, 25 * MIB, 100 * MIB, &failure), 0);
    }
}

int main(void)
{
    struct failure failure = {0};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct share_case *c = &cases[i];
        const struct ring_share share = {.percent = c->percent, .bytes = c->rings};

        test_case(c->name);
        CHECK_INT(ring_share_check(&share, false, c->wanted, c->available, &failure), c->result);
    }
    test_case("words");
    (void)ring_share_check(&(struct ring_share){.percent = 50}, false, 60 * MIB, 100 * MIB,
                           &failure);
    CHECK_STR(failure.name, ERROR_NO_MEMORY);
    CHECK_STR(failure.text, "A ring of 60M is more than dom0 can spare: 100M is free, and "
                            "memory-share= limits all rings together to 50 % of that, 50M. Use a "
                            "smaller ring, or set a larger memory-share=.");
    (void)ring_share_check(&(struct ring_share){.percent = 50, .bytes = 40 * MIB}, false, 60 * MIB,
                           100 * MIB, &failure);
    CHECK(strstr(failure.text, "100M is free, rings have 40M, and"));
    test_users();
    return test_end();
}

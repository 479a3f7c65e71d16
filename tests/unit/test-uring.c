// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * In which kernels a write to a file must not be submitted by the collector itself. What io_uring
 * does is tested with the sink on it, and on two file systems: tests/sim/independent.sh.
 */

#include "collector/uring.h"
#include "common/util.h"
#include "tests/unit/test.h"

struct release_case {
    const char *release;
    bool blocks;
};

static const struct release_case release_cases[] = {
    {"5.10.0-33-amd64", true},
    {"5.4.0", true},
    {"6.1.0-28-amd64", true},
    {"6.9.12", true},
    {"6.11.0", true},
    {"6.12.0", false},
    {"6.12", false},
    {"6.12.48+deb13-amd64", false},
    {"6.100.1", false},
    {"7.0.0-rc1", false},
    {"10.1.2", false},
    {"", true}, /* not known: the safe way */
    {"6", true},
    {"linux", true},
};

int main(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(release_cases); i++) {
        test_case(release_cases[i].release);
        CHECK_INT(uring_release_blocks(release_cases[i].release), release_cases[i].blocks);
    }
    return test_end();
}

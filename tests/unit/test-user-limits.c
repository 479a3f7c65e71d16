// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Requests: which are let through, under which name and with which reserve. And what happens when
 * memory becomes scarce. The budget is the real one.
 */

#include "daemon/session/user-limits.h"

#include <errno.h>
#include <fcntl.h>

#include <systemd/sd-event.h>

#include "collector/grower.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/worker.h"
#include "daemon/session/usage-file.h"
#include "tests/unit/test.h"

#define MIB UINT64_C(1048576)

/* --- Memory, and the snapshots that are given up. --- */

static uint64_t used_bytes;
static const struct snapshot *given_up;

uint64_t grower_budget_bytes(const struct grower *grower)
{
    CHECK(!grower);
    return 100;
}

uint64_t grower_used_bytes(const struct grower *grower)
{
    CHECK(!grower);
    return used_bytes;
}

void snapshot_give_up(struct snapshot *snapshot, const struct failure *failure)
{
    CHECK_STR(failure->name, ERROR_LIMIT);
    CHECK(strstr(failure->text, "pool-max="));
    given_up = snapshot;
}

/* --- Requests. --- */

enum request_output { NONE, A_PIPE, A_FILE };

struct request_case {
    const char *name;
    bool is_root, may_pass_outputs;
    const char *asked; /* the name */
    enum request_output output;
    bool has_sidecar;
    uint64_t last_usec;
    const char *error; /* NULL: let through */
    const char *given; /* the name that it has then */
    bool keeps_disk, is_live;
};

static const struct request_case request_cases[] = {
    {"a file", false, false, "", NONE, false, 0, NULL, "", true, false},
    {"a name", false, false, "mine", NONE, false, 0, NULL, "snapshot-user-mine", true, false},
    {"a name with the prefix", false, false, "snapshot-user-mine", NONE, false, 0, NULL,
     "snapshot-user-mine", true, false},
    {"a name of a segment of root's", false, true, "nightly.00002", NONE, false, 0, NULL,
     "snapshot-user-nightly.00002", true, false},
    {"a name that looks like a trigger's", false, false, "snapshot-crash-20261128-220000", NONE,
     false, 0, NULL, "snapshot-user-snapshot-crash-20261128-220000", true, false},
    {"a name that is none", false, false, "a/b", NONE, false, 0, ERROR_INVALID, NULL, false, false},
    {"a hidden name", false, false, ".a", NONE, false, 0, ERROR_INVALID, NULL, false, false},
    {"a name with no room for the prefix", false, false,
     "01234567890123456789012345678901234567890123456789012345", NONE, false, 0, ERROR_INVALID,
     NULL, false, false},
    {"the longest one", false, false, "01234567890123456789012345678901234567890123456789", NONE,
     false, 0, NULL, "snapshot-user-01234567890123456789012345678901234567890123456789", true,
     false},
    {"root's name", true, true, "mine", NONE, false, 0, NULL, "mine", false, false},
    {"the newest second into a pipe", false, false, "", A_PIPE, false, USEC_PER_SEC, NULL, "",
     false, true},
    {"root's, too", true, true, "", A_PIPE, false, USEC_PER_SEC, NULL, "", false, true},
    {"more than a second", false, false, "", A_PIPE, false, USEC_PER_SEC + 1, ERROR_NOT_PERMITTED,
     NULL, false, false},
    {"all there is", false, false, "", A_PIPE, false, 0, ERROR_NOT_PERMITTED, NULL, false, false},
    {"with a sidecar", false, false, "", A_PIPE, true, USEC_PER_SEC, ERROR_NOT_PERMITTED, NULL,
     false, false},
    {"into a file", false, false, "", A_FILE, false, USEC_PER_SEC, ERROR_NOT_PERMITTED, NULL, false,
     false},
    {"into a file of one who may", false, true, "x", A_FILE, true, 0, NULL, "x", false, false},
    {"all there is, into a pipe of one who may", false, true, "", A_PIPE, false, 0, NULL, "", false,
     false},
};

static struct workers *workers;
static int state_dir_fd;

static struct user_limits *limits_of(sd_event *event)
{
    const struct config config = {
        .limits = {.snapshots_per_day = 10,
                   .snapshot_bytes_per_day = 100 * MIB,
                   .keep_for_triggers_bytes = 7},
    };
    struct user_limits *limits = NULL;

    used_bytes = 0;
    CHECK_INT(user_limits_new(event, workers, state_dir_fd, &config, NULL, &limits), 0);
    workers_run_all(workers);
    return limits;
}

static void check_request(sd_event *event, const struct request_case *c, const int fds[3])
{
    struct user_limits *limits = limits_of(event);
    struct snapshot_options options = {
        .name = c->asked,
        .span.last_usec = c->last_usec,
        .reserve_bytes = 1000,
        .has_output = c->output != NONE,
        .output_fd = fds[c->output],
        .sidecar_fd = c->has_sidecar ? fds[A_FILE] : -1,
        .user = {.person = c->is_root ? 0 : 1000,
                 .is_limited = !c->is_root,
                 .may_pass_outputs = c->may_pass_outputs},
    };
    struct failure failure = {0};
    char name[SESSION_NAME_MAX + 1];
    int r;

    r = user_limits_admit(limits, &options, name, &failure);
    CHECK((r < 0) == (c->error != NULL));
    CHECK_STR(failure.name, c->error);
    if (r >= 0) {
        CHECK_STR(options.name, c->given);
        CHECK_UINT(options.reserve_bytes, c->keeps_disk ? 1007 : 1000);
        CHECK(options.limits.is_live == c->is_live);
        CHECK(options.limits.grant.is_taken == !c->is_root);
        CHECK_UINT(options.limits.number_max, c->is_root ? 0 : 999);
    }
    user_limits_begin(limits, &options, NULL);
    user_limits_free(limits);
}

static void test_requests(sd_event *event)
{
    int fds[3] = {-1, -1, open("/dev/null", O_WRONLY | O_CLOEXEC)}, pipe_fds[2];

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    fds[A_PIPE] = pipe_fds[1];
    for (size_t i = 0; i < ARRAY_SIZE(request_cases); i++) {
        test_case(request_cases[i].name);
        check_request(event, &request_cases[i], fds);
    }
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    (void)close(fds[A_FILE]);
}

/* --- Those that are under way. --- */

static void run(sd_event *event, uint64_t usec)
{
    uint64_t now, end;

    (void)sd_event_now(event, CLOCK_MONOTONIC, &now);
    for (end = now + usec; now < end && !given_up;) {
        CHECK(sd_event_run(event, end - now) >= 0);
        (void)sd_event_now(event, CLOCK_MONOTONIC, &now);
    }
}

static void test_memory(sd_event *event)
{
    struct user_limits *limits = limits_of(event);
    struct snapshot_options options = {
        .output_fd = -1, .sidecar_fd = -1, .user = {.person = 1000, .is_limited = true}};
    struct snapshot snapshot = {0};
    struct failure failure = {0};
    char name[SESSION_NAME_MAX + 1];

    test_case("half of the memory is enough for users");
    used_bytes = 50;
    CHECK_INT(user_limits_admit(limits, &options, name, &failure), 0);
    snapshot.limits = options.limits;
    user_limits_begin(limits, &options, &snapshot);
    run(event, 600 * USEC_PER_MSEC);
    CHECK(!given_up);

    test_case("beyond that, theirs are given up");
    used_bytes = 51;
    run(event, 5 * USEC_PER_SEC);
    CHECK(given_up == &snapshot);

    test_case("... and refused");
    options.user.person = 1001;
    CHECK_INT(user_limits_admit(limits, &options, name, &failure), -EDQUOT);
    CHECK_STR(failure.name, ERROR_LIMIT);

    test_case("root's are neither");
    options.user = (struct snapshot_user){0};
    CHECK_INT(user_limits_admit(limits, &options, name, &failure), 0);

    test_case("nothing wakes when none is left");
    snapshot.failure.name = ERROR_LIMIT;
    user_limits_end(limits, &snapshot);
    workers_run_all(workers);
    given_up = NULL;
    CHECK_INT(sd_event_run(event, 400 * USEC_PER_MSEC), 0);
    CHECK(!given_up);
    user_limits_free(limits);
    CHECK(!user_limits_free(NULL));
}

/* --- Across a restart. --- */

/* Takes one snapshot of PERSON's, of 1 MiB. Returns what asking for it returned. */
static int take_one(struct user_limits *limits, uid_t person)
{
    struct snapshot_options options = {
        .output_fd = -1, .sidecar_fd = -1, .user = {.person = person, .is_limited = true}};
    struct snapshot snapshot = {.plan = {.bytes = MIB}};
    struct failure failure = {0};
    char name[SESSION_NAME_MAX + 1];
    int r = user_limits_admit(limits, &options, name, &failure);

    if (r < 0)
        return r;
    snapshot.limits = options.limits;
    user_limits_begin(limits, &options, &snapshot);
    user_limits_end(limits, &snapshot);
    return 0;
}

static unsigned int take_all(struct user_limits *limits, uid_t person)
{
    unsigned int count = 0;

    while (count < 100 && take_one(limits, person) == 0)
        count++;
    return count;
}

/* Puts a file into the state directory in the place of the one that was saved. */
static void replace_usage(const char *text, size_t length)
{
    int fd;

    (void)unlinkat(state_dir_fd, USAGE_FILE, 0);
    fd = openat(state_dir_fd, USAGE_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, text, length) == (ssize_t)length);
    (void)close(fd);
}

static void test_restart(sd_event *event)
{
    struct user_limits *limits;
    char *large = calloc(1, 2 * BUDGET_SAVED_MAX_BYTES);

    (void)unlinkat(state_dir_fd, USAGE_FILE, 0);
    test_case("a day's snapshots");
    limits = limits_of(event);
    CHECK_UINT(take_all(limits, 1000), 10);
    CHECK_UINT(take_all(limits, PERSON_OTHERS), 10);
    user_limits_free(limits);
    workers_run_all(workers);

    test_case("are no more after a restart");
    limits = limits_of(event);
    CHECK_UINT(take_all(limits, 1000), 0);
    CHECK_UINT(take_all(limits, PERSON_OTHERS), 0);
    CHECK_UINT(take_all(limits, 1001), 10);
    user_limits_free(limits);
    workers_run_all(workers);

    test_case("what was used before the file was read is counted, too");
    limits = NULL;
    {
        const struct config config = {
            .limits = {.snapshots_per_day = 11, .snapshot_bytes_per_day = 100 * MIB}};

        CHECK_INT(user_limits_new(event, workers, state_dir_fd, &config, NULL, &limits), 0);
        CHECK_INT(take_one(limits, 1000), 0);
        workers_run_all(workers);
        CHECK_UINT(take_all(limits, 1000), 0);
        user_limits_free(limits);
        workers_run_all(workers);
    }

    test_case("a file that is damaged, empty, too large or a link is none");
    replace_usage("xentraced budget 1\nx", 20);
    limits = limits_of(event);
    CHECK_UINT(take_all(limits, 1000), 10);
    user_limits_free(limits);
    workers_run_all(workers);
    replace_usage(large, 2 * BUDGET_SAVED_MAX_BYTES);
    limits = limits_of(event);
    CHECK_UINT(take_all(limits, 1000), 10);
    user_limits_free(limits);
    workers_run_all(workers);
    (void)unlinkat(state_dir_fd, USAGE_FILE, 0);
    CHECK_INT(symlinkat("/etc/passwd", state_dir_fd, USAGE_FILE), 0);
    limits = limits_of(event);
    CHECK_UINT(take_all(limits, 1000), 10);
    user_limits_free(limits);
    workers_run_all(workers);
    (void)unlinkat(state_dir_fd, USAGE_FILE, 0);
    free(large);
}

int main(void)
{
    char directory[] = "/tmp/test-user-limits.XXXXXX";
    sd_event *event;

    if (!mkdtemp(directory))
        return EXIT_FAILURE;
    state_dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state_dir_fd < 0 || sd_event_new(&event) < 0 || workers_new(event, &workers) < 0)
        return EXIT_FAILURE;
    test_requests(event);
    test_memory(event);
    test_restart(event);
    workers_free(workers);
    (void)rmdir(directory);
    sd_event_unref(event);
    return test_end();
}

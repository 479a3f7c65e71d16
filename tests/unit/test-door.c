// SPDX-License-Identifier: GPL-2.0-or-later
/* daemon/control/door.c and listener.c: who can connect. Replaces the list of known members. */

#include "daemon/control/door.h"

#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/util.h"
#include "daemon/base/person.h"
#include "daemon/base/worker.h"
#include "daemon/control/listener.h"
#include "daemon/control/peer-groups.h"
#include "daemon/control/persons.h"
#include "tests/unit/test.h"

#define GROUP    60000u
#define STRANGER 3000u /* it has the group, and the group database does not know it */
#define FOREIGN  4000u /* it has not */

static const uid_t members[] = {1000, 2000};
static char path[] = "/tmp/test-door.XXXXXX";
static char socket_path[64];

size_t persons_list(const struct persons *persons, const uid_t **ret_uids)
{
    (void)persons;
    *ret_uids = members;
    return ARRAY_SIZE(members);
}

static bool can_connect(uid_t uid)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const gid_t group = GROUP;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
        if (setgroups(uid == FOREIGN ? 0 : 1, &group) < 0 || setresgid(uid, uid, uid) < 0 ||
            setresuid(uid, uid, uid) < 0)
            _exit(2);
        _exit(connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}

static void check(bool first, bool second, bool stranger)
{
    CHECK_INT(can_connect(members[0]), first);
    CHECK_INT(can_connect(members[1]), second);
    CHECK_INT(can_connect(STRANGER), stranger);
    CHECK(!can_connect(FOREIGN));
    CHECK(can_connect(0));
}

static void *sleep_forever(void *argument)
{
    for (;;)
        (void)pause();
    return argument;
}

/* Its first thread has ended; another one is stuck, and keeps the socket. */
static void run_dead_daemon(void)
{
    struct failure failure = {0};
    pthread_t thread;
    int fd;

    if (listener_open(socket_path, &(struct peer_groups){0}, &fd, &failure) < 0 ||
        pthread_create(&thread, NULL, sleep_forever, NULL) != 0)
        _exit(1);
    pthread_exit(NULL);
}

static bool is_zombie(pid_t pid)
{
    char line[128], text[256] = "";
    FILE *file;

    (void)snprintf(line, sizeof(line), "/proc/%d/stat", (int)pid);
    file = fopen(line, "re");
    if (file) {
        CHECK(fread(text, 1, sizeof(text) - 1, file) > 0);
        (void)fclose(file);
    }
    return strstr(text, ") Z");
}

static void test_dead_daemon(void)
{
    struct failure failure = {0};
    pid_t pid = fork();
    int fd;

    test_case("a daemon of which a thread is stuck does not listen any more");
    if (pid == 0)
        run_dead_daemon();
    while (!is_zombie(pid))
        (void)usleep(1000);
    CHECK_INT(listener_open(socket_path, &(struct peer_groups){0}, &fd, &failure), 0);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);

    test_case("one that runs does");
    CHECK_INT(listener_open(socket_path, &(struct peer_groups){0}, &(int){-1}, &failure),
              -EADDRINUSE);

    test_case("a socket that was shut down does not, before it is closed");
    CHECK_INT(shutdown(fd, SHUT_RDWR), 0);
    CHECK(!can_connect(0));
    (void)close(fd);
    (void)unlink(socket_path);
}

int main(void)
{
    static const struct peer_groups groups = {.has_view_group = true, .view_gid = GROUP};
    const uid_t both[] = {PERSON_OTHERS, members[1]};
    struct failure failure = {0};
    struct workers *workers;
    sd_event *event = NULL;
    struct door *door;
    int fd;

    if (geteuid() != 0) {
        puts("# skipped: only root can become another user");
        return TEST_SKIPPED;
    }
    if (!mkdtemp(path) || chmod(path, 0755) < 0)
        return EXIT_FAILURE;
    (void)snprintf(socket_path, sizeof(socket_path), "%s/control", path);
    if (sd_event_new(&event) < 0 || workers_new(event, &workers) < 0 ||
        door_new(workers, socket_path, &door) < 0)
        return EXIT_FAILURE;
    test_dead_daemon();
    if (listener_open(socket_path, &groups, &fd, &failure) < 0)
        return EXIT_FAILURE;

    test_case("all with the group");
    check(true, true, true);
    test_case("a member is locked out");
    door_set(door, &groups, NULL, &members[0], 1);
    workers_run_all(workers);
    check(false, true, true);
    test_case("those whom the group database does not know are");
    door_set(door, &groups, NULL, &both[0], 1);
    workers_run_all(workers);
    check(true, true, false);
    test_case("both");
    door_set(door, &groups, NULL, both, 2);
    workers_run_all(workers);
    check(true, false, false);
    test_case("no more");
    door_set(door, &groups, NULL, NULL, 0);
    workers_run_all(workers);
    check(true, true, true);

    door_free(door);
    (void)close(fd);
    (void)unlink(socket_path);
    (void)rmdir(path);
    workers_run_all(workers);
    workers_free(workers);
    sd_event_unref(event);
    return test_end();
}

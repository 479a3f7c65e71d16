// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Who is which person, with a group database that is made here: it counts what it is asked, and
 * hangs on request.
 */

#include "daemon/control/persons.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/util.h"
#include "daemon/base/worker.h"
#include "daemon/control/peer-groups.h"
#include "tests/unit/test.h"

#define VIEW    500u
#define OPERATE 600u

/* --- The group database. --- */

static struct {
    uid_t uid;
    char name[24];
    gid_t primary;
    gid_t supplementary; /* as getgrouplist(3) has it; 0: none */
    bool is_enumerated;  /* sssd does not, by default */
} users[] = {
    {1000, "alice", 1000, VIEW, true},          /* in gr_mem, too */
    {1001, "bob", 1001, OPERATE, true},         /* in gr_mem, too */
    {1002, "carol", VIEW, 0, false},            /* the view group is her primary one */
    {998, "xentraced-snapshot", VIEW, 0, true}, /* likewise: of the unit for OnFailure= */
    {1003, "dave", 1003, 0, true},              /* not a member */
    {1004, "erin", 1004, OPERATE, false},       /* in none of the lists, as sssd may have it */
    {61184, "dynamic", 61184, 0, true},         /* of a DynamicUser= unit */
};

static char *view_members[] = {"alice", "nobody-has-this-name", NULL};
static char *operate_members[] = {"bob", NULL};

static int gate[2];
static atomic_bool hangs;
static atomic_int broken; /* the error of every answer; 0: none */
static atomic_uint nr_asked;
static atomic_uint nr_asked_by_main; /* which would wait for NSS */
static pthread_t main_thread;

static void ask(void)
{
    char byte;

    if (pthread_equal(pthread_self(), main_thread))
        atomic_fetch_add(&nr_asked_by_main, 1);
    atomic_fetch_add(&nr_asked, 1);
    if (atomic_load(&hangs))
        (void)!read(gate[0], &byte, 1);
}

static int answer(size_t i, struct passwd *user, struct passwd **ret_user)
{
    *ret_user = NULL;
    if (atomic_load(&broken))
        return atomic_load(&broken);
    if (i == ARRAY_SIZE(users))
        return 0;
    *user = (struct passwd){
        .pw_name = users[i].name, .pw_uid = users[i].uid, .pw_gid = users[i].primary};
    *ret_user = user;
    return 0;
}

int getpwuid_r(uid_t uid, struct passwd *user, char *buffer, size_t bytes, struct passwd **ret_user)
{
    size_t i = 0;

    (void)buffer;
    ask();
    if (bytes < 8192) /* some entries are long */
        return ERANGE;
    while (i < ARRAY_SIZE(users) && users[i].uid != uid)
        i++;
    return answer(i, user, ret_user);
}

int getpwnam_r(const char *name, struct passwd *user, char *buffer, size_t bytes,
               struct passwd **ret_user)
{
    size_t i = 0;

    (void)buffer, (void)bytes;
    ask();
    while (i < ARRAY_SIZE(users) && strcmp(users[i].name, name) != 0)
        i++;
    return answer(i, user, ret_user);
}

int getgrgid_r(gid_t gid, struct group *group, char *buffer, size_t bytes, struct group **ret_group)
{
    (void)buffer, (void)bytes;
    ask();
    *ret_group = NULL;
    if (atomic_load(&broken))
        return atomic_load(&broken);
    *group = (struct group){.gr_gid = gid, .gr_mem = gid == VIEW ? view_members : operate_members};
    *ret_group = group;
    return 0;
}

static size_t next_user;

void setpwent(void)
{
    next_user = 0;
}

void endpwent(void)
{
}

int getpwent_r(struct passwd *user, char *buffer, size_t bytes, struct passwd **ret_user)
{
    int r;

    (void)buffer;
    ask();
    if (next_user == 1 && bytes < 8192)
        return ERANGE;
    while (next_user < ARRAY_SIZE(users) && !users[next_user].is_enumerated)
        next_user++;
    r = answer(next_user, user, ret_user);
    next_user++;
    return r != 0 || *ret_user ? r : ENOENT;
}

/* A user of 70 groups, the one that matters last. */
int getgrouplist(const char *name, gid_t primary, gid_t *gids, int *count)
{
    int room = *count;

    ask();
    *count = 70;
    for (int i = 0; i < room && i < 70; i++)
        gids[i] = i == 0 ? primary : (gid_t)(20000 + i);
    if (room < 70)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(users); i++)
        if (strcmp(users[i].name, name) == 0 && users[i].supplementary)
            gids[69] = users[i].supplementary;
    return 70;
}

/* --- The cases. --- */

static const struct peer_groups groups = {
    .has_view_group = true,
    .view_gid = VIEW,
    .has_operate_group = true,
    .operate_gid = OPERATE,
};

static unsigned int nr_changes;

static void handle_change(void *userdata)
{
    CHECK(!userdata);
    nr_changes++;
}

/* Who UID is when the database has answered. */
static uid_t find_settled(struct workers *workers, struct persons *persons, uid_t uid)
{
    (void)persons_find(persons, uid);
    workers_run_all(workers);
    return persons_find(persons, uid);
}

static void test_members(struct workers *workers, struct persons *persons)
{
    test_case("members of the groups are known from the start");
    workers_run_all(workers);
    CHECK_UINT(nr_changes, 2);
    atomic_store(&nr_asked, 0);
    CHECK_UINT(persons_find(persons, 1000), 1000);
    CHECK_UINT(persons_find(persons, 1001), 1001);
    CHECK_UINT(persons_find(persons, 998), 998);
    CHECK_UINT(atomic_load(&nr_asked), 0);

    test_case("root is root");
    CHECK_UINT(persons_find(persons, 0), PERSON_ROOT);

    test_case("a member whose primary group it is, and one whom no list names");
    CHECK_UINT(persons_find(persons, 1002), PERSON_OTHERS);
    CHECK_UINT(find_settled(workers, persons, 1002), 1002);
    CHECK_UINT(find_settled(workers, persons, 1004), 1004);

    test_case("subordinate UIDs, dynamic users and strangers are one person");
    CHECK_UINT(find_settled(workers, persons, 100000), PERSON_OTHERS);
    CHECK_UINT(find_settled(workers, persons, 165535), PERSON_OTHERS);
    CHECK_UINT(find_settled(workers, persons, 61184), PERSON_OTHERS);
    CHECK_UINT(find_settled(workers, persons, 1003), PERSON_OTHERS);
    CHECK_UINT(find_settled(workers, persons, (uid_t)-1), PERSON_OTHERS);

    test_case("they are asked for once");
    atomic_store(&nr_asked, 0);
    CHECK_UINT(find_settled(workers, persons, 100000), PERSON_OTHERS);
    CHECK_UINT(find_settled(workers, persons, 1003), PERSON_OTHERS);
    CHECK_UINT(atomic_load(&nr_asked), 0);
}

static void test_many(struct workers *workers, struct persons *persons)
{
    test_case("65,536 UIDs displace no member");
    for (uid_t uid = 100000; uid < 165536; uid++)
        CHECK_UINT(persons_find(persons, uid), PERSON_OTHERS);
    workers_run_all(workers);
    CHECK_UINT(persons_find(persons, 1000), 1000);
    CHECK_UINT(persons_find(persons, 1002), 1002);
    CHECK_UINT(persons_find(persons, 1004), 1004);
}

static void test_hanging(struct workers *workers, struct persons *persons)
{
    test_case("a database that hangs holds nobody up");
    atomic_store(&hangs, true);
    CHECK_UINT(persons_find(persons, 7777), PERSON_OTHERS);
    for (uid_t uid = 200000; uid < 300000; uid++)
        CHECK_UINT(persons_find(persons, uid), PERSON_OTHERS);
    CHECK_UINT(persons_find(persons, 1000), 1000);
    persons_set_groups(persons, &groups);
    CHECK_UINT(persons_find(persons, 1000), 1000);
    atomic_store(&hangs, false);
    (void)!write(gate[1], "x", 1);
    workers_run_all(workers);
    CHECK_UINT(persons_find(persons, 1000), 1000);
}

static void test_reload(struct workers *workers, struct persons *persons)
{
    struct peer_groups view_only = groups;

    test_case("who was removed from a group is one of the others after a reload");
    view_members[0] = "nobody-has-this-name";
    users[0].supplementary = 0;
    CHECK_UINT(persons_find(persons, 1000), 1000);
    persons_set_groups(persons, &groups);
    workers_run_all(workers);
    CHECK_UINT(find_settled(workers, persons, 1000), PERSON_OTHERS);

    test_case("who was added is known after a reload");
    view_members[0] = "alice";
    persons_set_groups(persons, &groups);
    workers_run_all(workers);
    CHECK_UINT(persons_find(persons, 1000), 1000);

    test_case("members whom no list names stay");
    CHECK_UINT(persons_find(persons, 1002), 1002);
    CHECK_UINT(persons_find(persons, 1004), 1004);

    test_case("a database that cannot be reached ends no membership");
    atomic_store(&broken, EIO);
    persons_set_groups(persons, &groups);
    workers_run_all(workers);
    CHECK_UINT(persons_find(persons, 1000), 1000);
    CHECK_UINT(persons_find(persons, 1004), 1004);
    atomic_store(&broken, 0);

    test_case("a group that has no access any more");
    view_only.has_operate_group = false;
    persons_set_groups(persons, &view_only);
    workers_run_all(workers);
    CHECK_UINT(persons_find(persons, 1000), 1000);
    CHECK_UINT(find_settled(workers, persons, 1004), PERSON_OTHERS);
}

int main(void)
{
    struct sd_event *event;
    struct workers *workers;
    struct persons *persons;

    main_thread = pthread_self();
    if (pipe(gate) < 0 || sd_event_new(&event) < 0 || workers_new(event, &workers) < 0 ||
        persons_new(workers, &groups, handle_change, NULL, &persons) < 0)
        return EXIT_FAILURE;
    test_members(workers, persons);
    test_many(workers, persons);
    test_hanging(workers, persons);
    test_reload(workers, persons);

    test_case("freed while the database hangs");
    atomic_store(&hangs, true);
    (void)persons_find(persons, 4444);
    persons_free(persons);
    atomic_store(&hangs, false);
    (void)!write(gate[1], "x", 1);
    workers_run_all(workers);
    workers_free(workers);
    sd_event_unref(event);
    CHECK_UINT(atomic_load(&nr_asked_by_main), 0);
    return test_end();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One job at a time on one worker. A UID that cannot be told from those of a user namespace by
 * anything that the kernel reports on Linux 6.1 is told from them by the group database alone: a
 * process cannot put subordinate UIDs into that.
 *
 * Source: getpwuid_r(3), getgrouplist(3), subuid(5).
 */

#include "daemon/control/persons.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "common/util.h"
#include "daemon/base/worker.h"
#include "daemon/control/peer-groups.h"

#define MEMBERS_MAX     65536u /* more than that are counted to the others */
#define UNKNOWN_MAX     64u    /* UIDs that wait to be looked up; more have to come again */
#define STRANGERS_MAX   256u   /* UIDs that are remembered as no member's */
#define STRANGER_USEC   (60 * USEC_PER_SEC)
#define ENTRY_BYTES     4096u /* of the database, at first */
#define ENTRY_MAX_BYTES (4096u << 10)
#define USERS_MAX       1000000u /* that are enumerated */
#define GROUPS_MAX      65536    /* of a user: NGROUPS_MAX of Linux */
#define GROUPS_FIRST    64       /* room at first */

/* UIDs, each once, in ascending order. */
struct uid_set {
    uid_t *uids;
    size_t count, room;
};

struct stranger {
    uid_t uid;
    uint64_t until_usec; /* 0: free */
};

/* What is asked at a time, in the order of who goes first. */
enum lookup_kind {
    LOOKUP_GROUPS, /* whom the groups list, and whether known members still are */
    LOOKUP_USERS,  /* all users, for those of whom a group is the primary one */
    LOOKUP_UIDS,   /* unknown UIDs */
};

struct lookup;

struct persons {
    struct worker *worker;
    struct peer_groups groups;
    void (*changed)(void *userdata);
    void *userdata;
    struct uid_set members;
    struct stranger strangers[STRANGERS_MAX];
    size_t next_stranger;
    uid_t unknown[UNKNOWN_MAX];
    size_t nr_unknown;
    bool wants_groups, wants_users;
    struct lookup *lookup; /* under way; NULL: none */
};

/* The worker's, until it is done. */
struct lookup {
    struct job job;
    struct persons *persons; /* NULL: freed */
    struct peer_groups groups;
    enum lookup_kind kind;
    struct uid_set members;
    size_t nr_asked;
    uid_t asked[]; /* members until now, or unknown UIDs */
};

static uint64_t now_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC + 1;
}

/* --- Sets of UIDs. --- */

/* Returns the index of the first that is not less than UID. */
static size_t uid_set_index(const struct uid_set *set, uid_t uid)
{
    size_t low = 0, high = set->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (set->uids[middle] < uid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool uid_set_has(const struct uid_set *set, uid_t uid)
{
    size_t i = uid_set_index(set, uid);

    return i < set->count && set->uids[i] == uid;
}

/* Adds UID; without memory, or beyond MEMBERS_MAX, it is left out. */
static void uid_set_add(struct uid_set *set, uid_t uid)
{
    size_t i = uid_set_index(set, uid), room = set->room ? 2 * set->room : 16;

    if (uid_set_has(set, uid) || set->count == MEMBERS_MAX)
        return;
    if (set->count == set->room) {
        uid_t *uids = reallocarray(set->uids, room, sizeof(*uids));

        if (!uids)
            return;
        set->uids = uids;
        set->room = room;
    }
    memmove(set->uids + i + 1, set->uids + i, (set->count - i) * sizeof(*set->uids));
    set->uids[i] = uid;
    set->count++;
}

/* --- The database: the worker's thread. --- */

/* Doubles *BUFFER. False: it is large enough for anything that makes sense, or there is no memory.
 */
static bool grow_buffer(char **buffer, size_t *bytes)
{
    char *larger;

    *bytes = *bytes ? 2 * *bytes : ENTRY_BYTES;
    larger = *bytes <= ENTRY_MAX_BYTES ? realloc(*buffer, *bytes) : NULL;
    if (!larger)
        return false;
    *buffer = larger;
    return true;
}

/* Returns whether the database puts the user NAME, whose primary group is GID, into the groups. */
static bool user_is_member(const struct peer_groups *groups, const char *name, gid_t gid)
{
    int room = GROUPS_FIRST, count = room, found;
    gid_t *gids = malloc((size_t)room * sizeof(*gids));
    bool is_member = false;

    found = gids ? getgrouplist(name, gid, gids, &count) : -1;
    if (gids && found < 0 && count > room && count <= GROUPS_MAX) { /* now the number is known */
        free(gids);
        gids = malloc((size_t)count * sizeof(*gids));
        found = gids ? getgrouplist(name, gid, gids, &count) : -1;
    }
    for (int i = 0; i < found && !is_member; i++)
        is_member = peer_groups_have(groups, gids[i]);
    free(gids);
    return is_member;
}

/* Returns 1: UID is a member's; 0: it is not; or a negative errno: the database does not say. */
static int ask_uid(const struct peer_groups *groups, uid_t uid)
{
    _cleanup_free_ char *buffer = NULL;
    struct passwd user, *found = NULL;
    size_t bytes = 0;
    int r;

    do {
        if (!grow_buffer(&buffer, &bytes))
            return -ENOMEM;
        r = getpwuid_r(uid, &user, buffer, bytes, &found);
    } while (r == ERANGE);
    if (found)
        return user_is_member(groups, user.pw_name, user.pw_gid);
    return r == 0 || r == ENOENT || r == ESRCH ? 0 : -r; /* getpwnam(3): all of them are "none" */
}

static void add_user(struct uid_set *members, const char *name)
{
    _cleanup_free_ char *buffer = NULL;
    struct passwd user, *found = NULL;
    size_t bytes = 0;
    int r;

    do {
        if (!grow_buffer(&buffer, &bytes))
            return;
        r = getpwnam_r(name, &user, buffer, bytes, &found);
    } while (r == ERANGE);
    if (found)
        uid_set_add(members, user.pw_uid);
}

/* Adds those whom the entry of group GID lists. */
static void add_members_of(struct uid_set *members, gid_t gid)
{
    _cleanup_free_ char *buffer = NULL;
    struct group group, *found = NULL;
    size_t bytes = 0;
    int r;

    do {
        if (!grow_buffer(&buffer, &bytes))
            return;
        r = getgrgid_r(gid, &group, buffer, bytes, &found);
    } while (r == ERANGE);
    for (char **name = found ? group.gr_mem : NULL; name && *name; name++)
        add_user(members, *name);
}

/* Adds those whose primary group has access. No other thread of the daemon enumerates users. */
static void add_primary_members(struct uid_set *members, const struct peer_groups *groups)
{
    _cleanup_free_ char *buffer = NULL;
    struct passwd user, *found = NULL;
    size_t bytes = 0;
    bool has_room = grow_buffer(&buffer, &bytes);
    int r;

    setpwent();
    for (unsigned int i = 0; has_room && i < USERS_MAX; i++) {
        r = getpwent_r(&user, buffer, bytes, &found);
        if (r == ERANGE) /* the same entry comes again */
            has_room = grow_buffer(&buffer, &bytes);
        else if (r != 0)
            break;
        else if (peer_groups_have(groups, user.pw_gid))
            uid_set_add(members, user.pw_uid);
    }
    endpwent();
}

static void lookup_run(struct job *job)
{
    struct lookup *lookup = job_container(job, struct lookup, job);
    const struct peer_groups *groups = &lookup->groups;

    if (lookup->kind == LOOKUP_USERS) {
        add_primary_members(&lookup->members, groups);
        return;
    }
    for (size_t i = 0; i < lookup->nr_asked; i++) {
        int r = ask_uid(groups, lookup->asked[i]);

        /* A database that is out of reach does not end a membership that it confirmed before. */
        if (r > 0 || (r < 0 && lookup->kind == LOOKUP_GROUPS))
            uid_set_add(&lookup->members, lookup->asked[i]);
    }
    if (lookup->kind == LOOKUP_GROUPS && groups->has_view_group)
        add_members_of(&lookup->members, groups->view_gid);
    if (lookup->kind == LOOKUP_GROUPS && groups->has_operate_group)
        add_members_of(&lookup->members, groups->operate_gid);
}

/* --- The main thread. --- */

static struct lookup *lookup_free(struct lookup *lookup)
{
    free(lookup->members.uids);
    free(lookup);
    return NULL;
}

static void persons_ask(struct persons *persons);

static void persons_add_stranger(struct persons *persons, uid_t uid)
{
    persons->strangers[persons->next_stranger] =
        (struct stranger){.uid = uid, .until_usec = now_usec() + STRANGER_USEC};
    persons->next_stranger = (persons->next_stranger + 1) % STRANGERS_MAX;
}

static void persons_apply(struct persons *persons, struct lookup *lookup)
{
    if (lookup->kind == LOOKUP_GROUPS) {
        free(persons->members.uids);
        persons->members = lookup->members;
        lookup->members = (struct uid_set){0};
        memset(persons->strangers, 0, sizeof(persons->strangers));
        return;
    }
    for (size_t i = 0; i < lookup->nr_asked; i++)
        if (!uid_set_has(&lookup->members, lookup->asked[i]))
            persons_add_stranger(persons, lookup->asked[i]);
    for (size_t i = 0; i < lookup->members.count; i++)
        uid_set_add(&persons->members, lookup->members.uids[i]);
}

static void lookup_finish(struct job *job)
{
    struct lookup *lookup = job_container(job, struct lookup, job);
    struct persons *persons = lookup->persons;

    if (persons) {
        persons->lookup = NULL;
        persons_apply(persons, lookup);
        persons_ask(persons);
        persons->changed(persons->userdata);
    }
    lookup_free(lookup);
}

/* Sends what is to be asked next, if anything. Without memory, the next unknown UID does so. */
static void persons_ask(struct persons *persons)
{
    enum lookup_kind kind = persons->wants_groups  ? LOOKUP_GROUPS
                            : persons->wants_users ? LOOKUP_USERS
                                                   : LOOKUP_UIDS;
    const uid_t *asked = kind == LOOKUP_GROUPS ? persons->members.uids : persons->unknown;
    size_t nr_asked = kind == LOOKUP_GROUPS ? persons->members.count
                      : kind == LOOKUP_UIDS ? persons->nr_unknown
                                            : 0;
    struct lookup *lookup;

    if (persons->lookup || (kind == LOOKUP_UIDS && nr_asked == 0))
        return;
    lookup = calloc(1, sizeof(*lookup) + nr_asked * sizeof(lookup->asked[0]));
    if (!lookup)
        return;
    lookup->job = (struct job){.run = lookup_run, .done = lookup_finish};
    lookup->persons = persons;
    lookup->groups = persons->groups;
    lookup->kind = kind;
    lookup->nr_asked = nr_asked;
    if (nr_asked > 0)
        memcpy(lookup->asked, asked, nr_asked * sizeof(asked[0]));
    switch (kind) {
    case LOOKUP_GROUPS:
        persons->wants_groups = false;
        break;
    case LOOKUP_UIDS:
        persons->nr_unknown = 0;
        break;
    case LOOKUP_USERS:
        persons->wants_users = false;
        break;
    }
    persons->lookup = lookup;
    worker_send(persons->worker, &lookup->job);
}

static bool persons_know_stranger(const struct persons *persons, uid_t uid)
{
    uint64_t now = now_usec();

    for (size_t i = 0; i < STRANGERS_MAX; i++)
        if (persons->strangers[i].uid == uid && now < persons->strangers[i].until_usec)
            return true;
    return false;
}

/* Whether UID is being looked up, or is going to be. */
static bool persons_wait_for(const struct persons *persons, uid_t uid)
{
    const struct lookup *lookup = persons->lookup;

    for (size_t i = 0; lookup && i < lookup->nr_asked; i++)
        if (lookup->asked[i] == uid)
            return true;
    for (size_t i = 0; i < persons->nr_unknown; i++)
        if (persons->unknown[i] == uid)
            return true;
    return false;
}

uid_t persons_find(struct persons *persons, uid_t uid)
{
    if (uid == 0)
        return PERSON_ROOT;
    if (uid_set_has(&persons->members, uid))
        return uid;
    if (uid == PERSON_OTHERS || persons_know_stranger(persons, uid))
        return PERSON_OTHERS;
    if (!persons_wait_for(persons, uid) && persons->nr_unknown < UNKNOWN_MAX)
        persons->unknown[persons->nr_unknown++] = uid;
    persons_ask(persons);
    return PERSON_OTHERS;
}

void persons_set_groups(struct persons *persons, const struct peer_groups *groups)
{
    persons->groups = *groups;
    persons->wants_groups = true;
    persons->wants_users = true;
    persons_ask(persons);
}

int persons_new(struct workers *workers, const struct peer_groups *groups,
                void (*changed)(void *userdata), void *userdata, struct persons **ret_persons)
{
    struct persons *persons = calloc(1, sizeof(*persons));
    int r;

    if (!persons)
        return -ENOMEM;
    persons->changed = changed;
    persons->userdata = userdata;
    r = worker_new(workers, "persons", &persons->worker);
    if (r < 0) {
        free(persons);
        return r;
    }
    persons_set_groups(persons, groups);
    *ret_persons = persons;
    return 0;
}

struct persons *persons_free(struct persons *persons)
{
    if (!persons)
        return NULL;
    (void)worker_free(persons->worker); /* ends when its job is done */
    if (persons->lookup)
        persons->lookup->persons = NULL;
    free(persons->members.uids);
    free(persons);
    return NULL;
}

size_t persons_list(const struct persons *persons, const uid_t **ret_uids)
{
    *ret_uids = persons->members.uids;
    return persons->members.count;
}

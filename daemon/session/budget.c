// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each user has a list of its files of the last 24 hours, as long as that limit can be. A user has
 * one file under way at most, which is the newest in the list.
 *
 * A user is a person, of whom there are as many as the groups have members, and one more. All of
 * them have room; who has used nothing for 24 hours is forgotten. Memory grows with the files that
 * were written, not with the users that ask.
 */

#include "daemon/session/budget.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"

#define DAY_USEC (24 * 3600 * USEC_PER_SEC)

/* Once a second, as seen by a client whose timer and whose call take their time. */
#define LIVE_INTERVAL_USEC (900 * USEC_PER_MSEC)

struct budget_file {
    uint64_t begin_usec;
    uint64_t bytes;
};

struct budget_user {
    struct budget_user *next;
    uid_t person;
    unsigned int running[BUDGET_KINDS];
    bool has_begun[BUDGET_KINDS]; /* at begin_usec, last */
    uint64_t begin_usec[BUDGET_KINDS];
    struct budget_file *files; /* oldest first */
    size_t nr_files, room;
};

struct budget {
    struct limits_config limits;
    unsigned int nr_running;
    struct budget_user *users;
};

/* A file as it is saved: the bytes after SAVED_MAGIC are these, of a person's own oldest first. */
struct saved_file {
    uint64_t begin_realtime_usec;
    uint64_t bytes;
    uint32_t person;
    uint32_t zero;
};

#define SAVED_MAGIC "xentraced budget 1\n" /* another number for another struct, or byte order */

int budget_new(const struct limits_config *limits, struct budget **ret_budget)
{
    struct budget *budget = calloc(1, sizeof(*budget));

    if (!budget)
        return -ENOMEM;
    budget_set_limits(budget, limits);
    *ret_budget = budget;
    return 0;
}

void budget_set_limits(struct budget *budget, const struct limits_config *limits)
{
    assert(limits->snapshots_per_day > 0 && limits->snapshots_per_day <= BUDGET_FILES_MAX);
    assert(limits->snapshot_bytes_per_day > 0);
    budget->limits = *limits;
}

/* Unlinks and frees *AT. */
static void budget_forget_user(struct budget_user **at)
{
    struct budget_user *user = *at;

    *at = user->next;
    free(user->files);
    free(user);
}

struct budget *budget_free(struct budget *budget)
{
    if (!budget)
        return NULL;
    while (budget->users)
        budget_forget_user(&budget->users);
    free(budget);
    return NULL;
}

/* --- Users. --- */

static struct budget_user *budget_find_user(const struct budget *budget, uid_t person)
{
    struct budget_user *user = budget->users;

    while (user && user->person != person)
        user = user->next;
    return user;
}

static void user_forget_old_files(struct budget_user *user, uint64_t now_usec)
{
    size_t n = 0;

    while (n < user->nr_files && now_usec >= user->files[n].begin_usec + DAY_USEC)
        n++;
    if (n == 0)
        return;
    user->nr_files -= n;
    memmove(user->files, user->files + n, user->nr_files * sizeof(user->files[0]));
}

static bool user_is_idle(struct budget_user *user, uint64_t now_usec)
{
    for (size_t kind = 0; kind < BUDGET_KINDS; kind++)
        if (user->running[kind] > 0 ||
            (user->has_begun[kind] && now_usec < user->begin_usec[kind] + DAY_USEC))
            return false;
    return true;
}

static void budget_forget_idle_users(struct budget *budget, uint64_t now_usec)
{
    struct budget_user **at = &budget->users;

    while (*at)
        if (user_is_idle(*at, now_usec))
            budget_forget_user(at);
        else
            at = &(*at)->next;
}

/* Returns PERSON's entry, which may be new; NULL: there is no memory. */
static struct budget_user *budget_get_user(struct budget *budget, uid_t person)
{
    struct budget_user *user = budget_find_user(budget, person);

    if (user)
        return user;
    user = calloc(1, sizeof(*user));
    if (!user)
        return NULL;
    *user = (struct budget_user){.next = budget->users, .person = person};
    budget->users = user;
    return user;
}

static int user_add_file(struct budget_user *user, const struct budget_file *file)
{
    if (user->nr_files == user->room) {
        size_t room = user->room ? 2 * user->room : 8;
        struct budget_file *files = reallocarray(user->files, room, sizeof(*files));

        if (!files)
            return -ENOMEM;
        user->files = files;
        user->room = room;
    }
    user->files[user->nr_files++] = *file;
    return 0;
}

static uint64_t user_bytes(const struct budget_user *user)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < user->nr_files; i++)
        bytes += user->files[i].bytes;
    return bytes;
}

/* How long until those of its files that are not a day old have fewer BYTES; 0: they have none. */
static uint64_t user_more_usec(const struct budget_user *user, uint64_t bytes, uint64_t now_usec)
{
    uint64_t left = user_bytes(user);

    for (size_t i = 0; i < user->nr_files; i++) {
        left -= user->files[i].bytes;
        if (left < bytes)
            return user->files[i].begin_usec + DAY_USEC - now_usec;
    }
    return 0;
}

/* --- Limits. --- */

/* Rounded up to what is shown of it, so that nobody comes too early. */
static const char *format_wait(char buffer[static UNITS_TEXT_MAX], uint64_t usec)
{
    uint64_t unit = usec > 3600 * USEC_PER_SEC ? 60 * USEC_PER_SEC : USEC_PER_SEC;

    if (usec > USEC_PER_SEC)
        usec = (usec + unit - 1) / unit * unit;
    return duration_format(buffer, usec);
}

static int check_interval(const struct budget *budget, const struct budget_user *user,
                          enum budget_kind kind, uint64_t now_usec, struct failure *failure)
{
    uint64_t interval_usec =
        kind == BUDGET_LIVE ? LIVE_INTERVAL_USEC : budget->limits.snapshot_interval_usec;
    char interval[UNITS_TEXT_MAX], wait[UNITS_TEXT_MAX];
    uint64_t end_usec = user->begin_usec[kind] + interval_usec;

    if (!user->has_begun[kind] || now_usec >= end_usec)
        return 0;
    (void)format_wait(wait, end_usec - now_usec);
    if (kind == BUDGET_LIVE)
        return failure_set(
            failure, -EDQUOT, ERROR_LIMIT,
            "Users other than root may read the newest second once a second. Try again in %s.",
            wait);
    return failure_set(failure, -EDQUOT, ERROR_LIMIT,
                       "You took a snapshot less than %s ago. Try again in %s. Root has no limit, "
                       "and sets yours with snapshot-interval= in [limits].",
                       duration_format(interval, interval_usec), wait);
}

static int check_day(const struct budget *budget, const struct budget_user *user, uint64_t now_usec,
                     struct failure *failure)
{
    const struct limits_config *limits = &budget->limits;
    char wait[UNITS_TEXT_MAX], size[UNITS_TEXT_MAX];
    uint64_t begin_usec;

    if (user->nr_files >= limits->snapshots_per_day) {
        begin_usec = user->files[user->nr_files - limits->snapshots_per_day].begin_usec;
        return failure_set(
            failure, -EDQUOT, ERROR_LIMIT,
            "You have taken %zu snapshots in the last 24 hours, which is the limit. Try again in "
            "%s. Root has no limit, and sets yours with snapshots-per-day= in [limits].",
            user->nr_files, format_wait(wait, begin_usec + DAY_USEC - now_usec));
    }
    if (user_bytes(user) >= limits->snapshot_bytes_per_day)
        return failure_set(
            failure, -EDQUOT, ERROR_LIMIT,
            "Your snapshots of the last 24 hours have reached the limit of %s. Try again in %s. "
            "Root has no limit, and sets yours with snapshot-bytes-per-day= in [limits].",
            size_format(size, limits->snapshot_bytes_per_day),
            format_wait(wait, user_more_usec(user, limits->snapshot_bytes_per_day, now_usec)));
    return 0;
}

static int check_running(const struct budget *budget, const struct budget_user *user,
                         enum budget_kind kind, struct failure *failure)
{
    if (kind != BUDGET_OUTPUT && user->running[kind] > 0)
        return failure_set(failure, -EDQUOT, ERROR_LIMIT,
                           "Your last snapshot is still being written, and users other than root "
                           "may write one at a time. Try again when it is finished.");
    if (user->running[BUDGET_FILE] + user->running[BUDGET_LIVE] + user->running[BUDGET_OUTPUT] >=
        BUDGET_OF_USER)
        return failure_set(failure, -EDQUOT, ERROR_LIMIT,
                           "%u of your snapshots are being written, which is the limit for one "
                           "user. Try again when one of them is finished. Root has no limit.",
                           BUDGET_OF_USER);
    if (budget->nr_running >= BUDGET_PLACES)
        return failure_set(failure, -EDQUOT, ERROR_LIMIT,
                           "%u snapshots of users other than root are being written, which is the "
                           "limit. Try again when one of them is finished. Root has no limit.",
                           BUDGET_PLACES);
    return 0;
}

static int check_limits(const struct budget *budget, const struct budget_user *user,
                        enum budget_kind kind, uint64_t now_usec, struct failure *failure)
{
    int r;

    r = check_running(budget, user, kind, failure);
    if (r < 0 || kind == BUDGET_OUTPUT)
        return r;
    if (kind == BUDGET_FILE) { /* a day lasts longer than an interval */
        r = check_day(budget, user, now_usec, failure);
        if (r < 0)
            return r;
    }
    return check_interval(budget, user, kind, now_usec, failure);
}

/* --- Taking and giving back. --- */

int budget_begin(struct budget *budget, uid_t person, enum budget_kind kind, uint64_t now_usec,
                 struct budget_grant *ret_grant, struct failure *failure)
{
    struct budget_grant grant = {
        .is_taken = true,
        .kind = kind,
        .person = person,
        .allowed_bytes = UINT64_MAX,
    };
    struct budget_user *user;
    int r;

    budget_forget_idle_users(budget, now_usec);
    user = budget_get_user(budget, person);
    if (!user)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    user_forget_old_files(user, now_usec);
    r = check_limits(budget, user, kind, now_usec, failure);
    if (r < 0)
        return r;
    if (kind == BUDGET_FILE) {
        grant.allowed_bytes = budget->limits.snapshot_bytes_per_day - user_bytes(user);
        grant.more_usec = user_more_usec(user, user_bytes(user), now_usec);
        if (user_add_file(user, &(struct budget_file){.begin_usec = now_usec}) < 0)
            return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    }
    user->has_begun[kind] = true;
    user->begin_usec[kind] = now_usec;
    user->running[kind]++;
    budget->nr_running++;
    *ret_grant = grant;
    return 0;
}

void budget_end(struct budget *budget, const struct budget_grant *grant, bool written,
                uint64_t bytes)
{
    struct budget_user *user = grant->is_taken ? budget_find_user(budget, grant->person) : NULL;

    if (!user)
        return;
    user->running[grant->kind]--;
    budget->nr_running--;
    if (grant->kind != BUDGET_FILE || user->nr_files == 0)
        return; /* one that took more than a day is forgotten */
    if (written)
        user->files[user->nr_files - 1].bytes = bytes;
    else
        user->nr_files--;
}

/* --- Across a restart. --- */

ssize_t budget_save(struct budget *budget, uint64_t now_usec, uint64_t realtime_usec,
                    void **ret_bytes)
{
    const size_t max = (BUDGET_SAVED_MAX_BYTES - strlen(SAVED_MAGIC)) / sizeof(struct saved_file);
    size_t count = 0, length = strlen(SAVED_MAGIC);
    char *bytes;

    for (struct budget_user *user = budget->users; user; user = user->next) {
        user_forget_old_files(user, now_usec);
        count += user->nr_files;
    }
    bytes = malloc(length + min_u64(count, max) * sizeof(struct saved_file));
    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, SAVED_MAGIC, length);
    for (const struct budget_user *user = budget->users; user; user = user->next) {
        size_t share = count > max ? user->nr_files * max / count : user->nr_files;

        for (size_t i = user->nr_files - share; i < user->nr_files; i++) {
            struct saved_file file = {
                .begin_realtime_usec = realtime_usec - (now_usec - user->files[i].begin_usec),
                .bytes = user->files[i].bytes,
                .person = user->person,
            };

            memcpy(bytes + length, &file, sizeof(file));
            length += sizeof(file);
        }
    }
    *ret_bytes = bytes;
    return (ssize_t)length;
}

static int compare_begin(const void *a, const void *b)
{
    const struct budget_file *one = a, *other = b;

    return (one->begin_usec > other->begin_usec) - (one->begin_usec < other->begin_usec);
}

/* A file from the future, after the wall clock was set back, was begun now. */
static int budget_load_file(struct budget *budget, const struct saved_file *saved,
                            uint64_t now_usec, uint64_t realtime_usec)
{
    uint64_t age_usec = realtime_usec - min_u64(realtime_usec, saved->begin_realtime_usec);
    struct budget_file file = {.begin_usec = now_usec - age_usec, .bytes = saved->bytes};
    struct budget_user *user;
    int r;

    if (age_usec >= DAY_USEC)
        return 0;
    user = budget_get_user(budget, saved->person);
    if (!user)
        return -ENOMEM;
    if (user->nr_files >= BUDGET_FILES_MAX || file.bytes > INT64_MAX / BUDGET_FILES_MAX)
        return 0;
    r = user_add_file(user, &file);
    if (r < 0)
        return r;
    if (!user->has_begun[BUDGET_FILE] || user->begin_usec[BUDGET_FILE] < file.begin_usec) {
        user->has_begun[BUDGET_FILE] = true;
        user->begin_usec[BUDGET_FILE] = file.begin_usec;
    }
    return 0;
}

int budget_load(struct budget *budget, const void *bytes_untrusted, size_t length,
                uint64_t now_usec, uint64_t realtime_usec)
{
    const size_t magic = strlen(SAVED_MAGIC);
    struct saved_file file;
    int r = 0;

    if (length < magic || length > BUDGET_SAVED_MAX_BYTES ||
        memcmp(bytes_untrusted, SAVED_MAGIC, magic) != 0 || (length - magic) % sizeof(file) != 0)
        return -EBADMSG;
    for (size_t at = magic; at < length && r >= 0; at += sizeof(file)) {
        memcpy(&file, (const char *)bytes_untrusted + at, sizeof(file));
        if (file.zero == 0)
            r = budget_load_file(budget, &file, now_usec, realtime_usec);
    }
    for (struct budget_user *user = budget->users; user; user = user->next)
        if (user->nr_files > 0)
            qsort(user->files, user->nr_files, sizeof(user->files[0]), compare_begin);
    return r;
}

void budget_explain_space(const struct budget *budget, struct failure *failure)
{
    uint64_t keep_bytes = budget->limits.keep_for_triggers_bytes;
    size_t length = strlen(failure->text);
    char size[UNITS_TEXT_MAX];

    if (keep_bytes > 0)
        (void)snprintf(
            failure->text + length, sizeof(failure->text) - length,
            " Of this, %s is kept for triggers and root: keep-for-triggers= in [limits].",
            size_format(size, keep_bytes));
}

int budget_explain_bytes(const struct budget *budget, const struct budget_grant *grant,
                         uint64_t bytes, struct failure *failure)
{
    char size[UNITS_TEXT_MAX], allowed[UNITS_TEXT_MAX], limit[UNITS_TEXT_MAX];
    char wait[UNITS_TEXT_MAX];

    return failure_set(failure, -EDQUOT, ERROR_LIMIT,
                       "This snapshot would have %s, and of the %s that you may write in 24 hours, "
                       "%s is left%s%s. Ask for less with --last or --max-size. Root has no limit, "
                       "and sets yours with snapshot-bytes-per-day= in [limits].",
                       size_format(size, bytes),
                       size_format(limit, budget->limits.snapshot_bytes_per_day),
                       size_format(allowed, grant->allowed_bytes),
                       grant->more_usec ? "; more is available in " : "",
                       grant->more_usec ? format_wait(wait, grant->more_usec) : "");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A person who is not in the table takes the place of the one who began longest ago, which would
 * give many of them in turn new lines each time: therefore there is a limit for all of them, too.
 */

#include "daemon/base/log-quota.h"

#include "common/util.h"

static void quota_renew(struct log_quota_person *person, uint64_t now_usec)
{
    if (person->since_usec && now_usec - person->since_usec < LOG_QUOTA_INTERVAL_USEC)
        return;
    person->since_usec = now_usec;
    person->lines = 0;
}

static struct log_quota_person *quota_find(struct log_quota *quota, uid_t person)
{
    struct log_quota_person *oldest = &quota->persons[0];

    for (size_t i = 0; i < LOG_QUOTA_PERSONS_MAX; i++) {
        struct log_quota_person *found = &quota->persons[i];

        if (found->since_usec && found->person == person)
            return found;
        if (found->since_usec < oldest->since_usec)
            oldest = found;
    }
    quota->all.suppressed += oldest->suppressed;
    *oldest = (struct log_quota_person){.person = person};
    return oldest;
}

bool log_quota_admit(struct log_quota *quota, uid_t person, uint64_t now_usec)
{
    struct log_quota_person *found = quota_find(quota, person);

    quota_renew(found, now_usec);
    quota_renew(&quota->all, now_usec);
    if (found->lines >= LOG_QUOTA_LINES_MAX || quota->all.lines >= LOG_QUOTA_ALL_MAX) {
        found->suppressed++;
        return false;
    }
    found->lines++;
    quota->all.lines++;
    return true;
}

static uint64_t sum_usec(const struct log_quota_person *person)
{
    return person->suppressed > 0 ? person->since_usec + LOG_QUOTA_INTERVAL_USEC : 0;
}

uint64_t log_quota_next_usec(const struct log_quota *quota)
{
    uint64_t next = sum_usec(&quota->all);

    for (size_t i = 0; i < LOG_QUOTA_PERSONS_MAX; i++) {
        uint64_t usec = sum_usec(&quota->persons[i]);

        if (usec && (!next || usec < next))
            next = usec;
    }
    return next;
}

static bool take_sum(struct log_quota_person *person, uint64_t now_usec, uint64_t *ret_lines)
{
    if (person->suppressed == 0 || now_usec < sum_usec(person))
        return false;
    *ret_lines = person->suppressed;
    person->suppressed = 0;
    return true;
}

bool log_quota_take_sum(struct log_quota *quota, uint64_t now_usec, uid_t *ret_person,
                        uint64_t *ret_lines)
{
    for (size_t i = 0; i < LOG_QUOTA_PERSONS_MAX; i++) {
        if (!take_sum(&quota->persons[i], now_usec, ret_lines))
            continue;
        *ret_person = quota->persons[i].person;
        return true;
    }
    if (!take_sum(&quota->all, now_usec, ret_lines))
        return false;
    *ret_person = LOG_QUOTA_SEVERAL;
    return true;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The text is read from left to right, each piece by one function that moves on past it: a day of
 * the week, a date or the name of a day, a time of day, a zone.
 *
 * Local times are mktime(3)'s: of a time that a change to summer time leaves out it makes one an
 * hour off, and of one that comes twice it takes one of the two.
 */

#include "common/time-spec.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/text.h"
#include "common/units.h"
#include "common/util.h"

#define NSEC_DIGITS     9u
#define SECONDS_MAX     (INT64_MAX / (int64_t)NSEC_PER_SEC)
#define SEC_PER_MIN     60
#define SEC_PER_HOUR    3600
#define ZONE_MAX_SEC    (14 * SEC_PER_HOUR) /* UTC+14 is the easternmost */
#define RELATIVE_SUFFIX " ago"

enum zone_kind { ZONE_LOCAL, ZONE_UTC, ZONE_OFFSET };

struct zone {
    enum zone_kind kind;
    long offset_sec; /* east of UTC */
};

/* The fields of a date as typed. */
struct moment {
    struct tm tm;
    bool has_date;
    bool has_weekday;
    int weekday;
    int day_offset; /* of "yesterday" and "tomorrow" */
    uint64_t nsec;
    struct zone zone;
};

static void skip_blanks(const char **p)
{
    while (text_is_blank(**p))
        (*p)++;
}

/* WORD, in any case, if no letter follows it. */
static bool take_word(const char **p, const char *word)
{
    size_t length = strlen(word);
    char after;

    if (strncasecmp(*p, word, length) != 0)
        return false;
    after = text_to_lower((*p)[length]);
    if (after >= 'a' && after <= 'z')
        return false;
    *p += length;
    return true;
}

static bool take_letter(const char **p, char letter)
{
    if (**p != letter)
        return false;
    (*p)++;
    return true;
}

/* A number of MIN to MAX digits. */
static bool take_digits(const char **p, size_t min, size_t max, int *ret_value)
{
    size_t length = 0;
    int value = 0;

    for (; length < max && text_is_digit((*p)[length]); length++)
        value = value * 10 + ((*p)[length] - '0');
    if (length < min || text_is_digit((*p)[length]))
        return false;
    *p += length;
    *ret_value = value;
    return true;
}

/* ".250" as nanoseconds; what is less than one is cut off. No fraction is 0. */
static bool take_fraction(const char **p, uint64_t *ret_nsec)
{
    uint64_t nsec = 0;
    size_t digits = 0;

    *ret_nsec = 0;
    if (!take_letter(p, '.'))
        return true;
    for (; text_is_digit(**p); (*p)++, digits++)
        if (digits < NSEC_DIGITS)
            nsec = nsec * 10 + (uint64_t)(**p - '0');
    for (size_t i = digits; i < NSEC_DIGITS; i++)
        nsec *= 10;
    *ret_nsec = nsec;
    return digits > 0;
}

/* --- Relative to now. --- */

static int set_relative(const char *duration, bool is_after, struct time_spec *ret_spec)
{
    uint64_t usec;
    int r;

    r = duration_parse(duration, USEC_PER_SEC, &usec);
    if (r < 0)
        return r;
    *ret_spec = (struct time_spec){.is_relative = true, .is_after = is_after, .offset_usec = usec};
    return 0;
}

/* "5min ago" */
static int parse_ago(const char *text, struct time_spec *ret_spec)
{
    size_t length = strlen(text), suffix = strlen(RELATIVE_SUFFIX);
    char duration[64];

    while (length > 0 && text_is_blank(text[length - 1]))
        length--;
    if (length <= suffix || length - suffix >= sizeof(duration) ||
        strncasecmp(text + length - suffix, RELATIVE_SUFFIX, suffix) != 0)
        return -EINVAL;
    memcpy(duration, text, length - suffix);
    duration[length - suffix] = '\0';
    return set_relative(duration, false, ret_spec);
}

static int parse_relative(const char *text, struct time_spec *ret_spec)
{
    const char *p = text;

    if (take_word(&p, "now")) {
        skip_blanks(&p);
        if (*p)
            return -EINVAL;
        *ret_spec = (struct time_spec){.is_relative = true};
        return 0;
    }
    if (*text == '-' || *text == '+')
        return set_relative(text + 1, *text == '+', ret_spec);
    return parse_ago(text, ret_spec);
}

/* --- A date, a time of day, a zone. --- */

static void take_weekday(const char **p, struct moment *moment)
{
    static const char *const names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};

    for (int i = 0; i < (int)ARRAY_SIZE(names); i++) {
        char abbreviation[4];

        (void)snprintf(abbreviation, sizeof(abbreviation), "%s", names[i]);
        if (!take_word(p, names[i]) && !take_word(p, abbreviation))
            continue;
        (void)take_letter(p, ',');
        moment->has_weekday = true;
        moment->weekday = i;
        skip_blanks(p);
        return;
    }
}

static bool take_day_name(const char **p, struct moment *moment)
{
    static const char *const names[] = {"yesterday", "today", "tomorrow"};

    for (int i = 0; i < (int)ARRAY_SIZE(names); i++) {
        if (!take_word(p, names[i]))
            continue;
        moment->day_offset = i - 1;
        return true;
    }
    return false;
}

/* "2026-11-21"; "26-11-21", a year of this century or the last, as strptime(3) has it. */
static bool take_date(const char **p, struct moment *moment)
{
    const char *c = *p;
    int year, month, day;

    if (take_digits(&c, 4, 4, &year))
        year -= 1900;
    else if (take_digits(&c, 2, 2, &year))
        year += year < 69 ? 100 : 0;
    else
        return false;
    if (!take_letter(&c, '-') || !take_digits(&c, 1, 2, &month) || !take_letter(&c, '-') ||
        !take_digits(&c, 1, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    moment->has_date = true;
    moment->tm.tm_year = year;
    moment->tm.tm_mon = month - 1;
    moment->tm.tm_mday = day;
    *p = c;
    return true;
}

/* "03:10", "03:10:05", "03:10:05.250" */
static bool take_time(const char **p, struct moment *moment)
{
    const char *c = *p;
    int hour, minute, second = 0;

    if (!take_digits(&c, 1, 2, &hour) || !take_letter(&c, ':') || !take_digits(&c, 2, 2, &minute))
        return false;
    if (take_letter(&c, ':') &&
        (!take_digits(&c, 2, 2, &second) || !take_fraction(&c, &moment->nsec)))
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    moment->tm.tm_hour = hour;
    moment->tm.tm_min = minute;
    moment->tm.tm_sec = second;
    *p = c;
    return true;
}

/* "+01:00", "-0330" */
static bool take_offset(const char **p, struct zone *ret_zone)
{
    const char *c = *p;
    bool is_west = *c == '-';
    int hours, minutes;
    long seconds;

    if (*c != '+' && *c != '-')
        return false;
    c++;
    if (take_digits(&c, 4, 4, &hours)) {
        minutes = hours % 100;
        hours /= 100;
    } else if (!take_digits(&c, 2, 2, &hours) || !take_letter(&c, ':') ||
               !take_digits(&c, 2, 2, &minutes)) {
        return false;
    }
    seconds = (long)hours * SEC_PER_HOUR + (long)minutes * SEC_PER_MIN;
    if (minutes > 59 || seconds > ZONE_MAX_SEC)
        return false;
    *ret_zone = (struct zone){.kind = ZONE_OFFSET, .offset_sec = is_west ? -seconds : seconds};
    *p = c;
    return true;
}

static void take_zone(const char **p, struct zone *zone)
{
    if (take_word(p, "UTC") || take_word(p, "Z"))
        zone->kind = ZONE_UTC;
    else
        (void)take_offset(p, zone);
}

static int read_moment(const char *text, struct moment *ret_moment)
{
    struct moment moment = {.tm.tm_isdst = -1};
    const char *p = text;
    bool has_day, needs_time;

    take_weekday(&p, &moment);
    has_day = take_day_name(&p, &moment) || take_date(&p, &moment);
    if (moment.has_weekday && !moment.has_date)
        return -EINVAL;
    needs_time = !has_day || (moment.has_date && take_letter(&p, 'T'));
    if (needs_time || text_is_blank(*p)) {
        skip_blanks(&p);
        if (!take_time(&p, &moment) && needs_time)
            return -EINVAL;
    }
    skip_blanks(&p);
    take_zone(&p, &moment.zone);
    skip_blanks(&p);
    if (*p)
        return -EINVAL;
    *ret_moment = moment;
    return 0;
}

/* --- To seconds since 1970. --- */

static bool zone_break_down(const struct zone *zone, time_t when, struct tm *ret_tm)
{
    if (zone->kind == ZONE_LOCAL)
        return localtime_r(&when, ret_tm);
    when += zone->offset_sec;
    return gmtime_r(&when, ret_tm);
}

/* TM is brought into its limits: the 30th of February is in March. */
static time_t zone_to_time(const struct zone *zone, struct tm *tm)
{
    if (zone->kind == ZONE_LOCAL)
        return mktime(tm);
    return timegm(tm) - zone->offset_sec;
}

/* Today, or the day before or after. */
static bool set_day(struct moment *moment, uint64_t now_ns)
{
    struct tm today;

    if (!zone_break_down(&moment->zone, (time_t)(now_ns / NSEC_PER_SEC), &today))
        return false;
    moment->tm.tm_year = today.tm_year;
    moment->tm.tm_mon = today.tm_mon;
    moment->tm.tm_mday = today.tm_mday + moment->day_offset;
    return true;
}

static int set_absolute(int64_t seconds, uint64_t nsec, struct time_spec *ret_spec)
{
    if (seconds < 0 || seconds >= SECONDS_MAX)
        return -ERANGE;
    *ret_spec = (struct time_spec){
        .realtime_ns = (uint64_t)seconds * NSEC_PER_SEC + nsec,
    };
    return 0;
}

static int parse_moment(const char *text, uint64_t now_ns, struct time_spec *ret_spec)
{
    struct moment moment;
    int day, r;
    time_t when;

    r = read_moment(text, &moment);
    if (r < 0)
        return r;
    if (!moment.has_date && !set_day(&moment, now_ns))
        return -ERANGE;
    day = moment.tm.tm_mday;
    when = zone_to_time(&moment.zone, &moment.tm);
    if (moment.has_date && moment.tm.tm_mday != day)
        return -EINVAL; /* there is no such day */
    if (moment.has_weekday && moment.tm.tm_wday != moment.weekday)
        return -EINVAL;
    return set_absolute(when, moment.nsec, ret_spec);
}

/* "@1795241112.5" */
static int parse_unix(const char *text, struct time_spec *ret_spec)
{
    const char *p = text;
    int64_t seconds = 0;
    bool too_large = false;
    uint64_t nsec;

    if (!text_is_digit(*p))
        return -EINVAL;
    for (; text_is_digit(*p); p++) {
        too_large = too_large || seconds > SECONDS_MAX / 10;
        if (!too_large)
            seconds = seconds * 10 + (*p - '0');
    }
    if (!take_fraction(&p, &nsec))
        return -EINVAL;
    skip_blanks(&p);
    if (*p)
        return -EINVAL;
    return too_large ? -ERANGE : set_absolute(seconds, nsec, ret_spec);
}

int time_spec_parse(const char *text, uint64_t now_ns, struct time_spec *ret_spec)
{
    const char *p = text;
    int r;

    skip_blanks(&p);
    if (*p == '@')
        return parse_unix(p + 1, ret_spec);
    r = parse_relative(p, ret_spec);
    return r == -EINVAL ? parse_moment(p, now_ns, ret_spec) : r;
}

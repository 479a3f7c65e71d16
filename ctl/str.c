// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text from elsewhere is cleaned character by character: UTF-8 passes, control characters do not. A
 * byte that is not UTF-8 does not pass either: a terminal with another character set obeys 0x9b.
 */

#include "ctl/str.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "common/utf8.h"

#define DATE_LENGTH (sizeof("2026-11-21 ") - 1)

char *str_format(const char *format, ...)
{
    va_list ap;
    char *text;
    int r;

    va_start(ap, format);
    r = vasprintf(&text, format, ap);
    va_end(ap);
    return r < 0 ? NULL : text;
}

void str_make_printable(char *text)
{
    while (*text) {
        uint32_t character;
        size_t length = utf8_read(text, &character);

        if (length == 0)
            *text++ = '?';
        else if (!utf8_is_shown(character))
            text = (char *)memset(text, '?', length) + length;
        else
            text += length;
    }
}

char *str_clean(const char *text)
{
    size_t size = UTF8_ESCAPED_BYTES * strlen(text) + 1;
    char *copy = malloc(size);

    if (copy)
        (void)utf8_copy(copy, size, text);
    return copy;
}

int str_refuse(int error, char **ret_error, const char *format, ...)
{
    va_list ap;
    char *text;
    int r;

    va_start(ap, format);
    r = vasprintf(&text, format, ap);
    va_end(ap);
    if (r < 0)
        return -ENOMEM;
    str_make_printable(text);
    *ret_error = text;
    return error;
}

char *str_shell_quote(const char *text)
{
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "/._-+,:@%=";
    char *quoted, *p;

    if (text[0] && strspn(text, harmless) == strlen(text))
        return strdup(text);

    quoted = p = malloc(4 * strlen(text) + 3); /* each ' becomes '\'' */
    if (!quoted)
        return NULL;
    *p++ = '\'';
    for (; *text; text++) {
        if (*text == '\'') {
            memcpy(p, "'\\''", 4);
            p += 4;
        } else {
            *p++ = *text;
        }
    }
    *p++ = '\'';
    *p = 0;
    return quoted;
}

char *str_shell_show(const char *text)
{
    char *shown, *p;
    bool is_clean = true;
    uint32_t character;
    size_t length;

    for (const char *c = text; *c; c += length ? length : 1) {
        length = utf8_read(c, &character);
        is_clean = is_clean && length > 0 && utf8_is_shown(character);
    }
    if (is_clean)
        return str_shell_quote(text);
    shown = p = malloc(4 * strlen(text) + 4); /* each byte is \NNN */
    if (!shown)
        return NULL;
    p = stpcpy(p, "$'");
    for (; *text; text++)
        if (*text >= ' ' && *text <= '~' && *text != '\'' && *text != '\\')
            *p++ = *text;
        else
            p += sprintf(p, "\\%03o", (unsigned char)*text);
    (void)strcpy(p, "'");
    return shown;
}

const char *str_time(char buffer[static STR_TIME_MAX], uint64_t realtime_ns)
{
    time_t seconds = (time_t)(realtime_ns / NSEC_PER_SEC);
    struct tm tm;

    if (!realtime_ns || !localtime_r(&seconds, &tm) ||
        !strftime(buffer, STR_TIME_MAX, "%Y-%m-%d %H:%M:%S", &tm))
        (void)strcpy(buffer, "-");
    return buffer;
}

void str_use_utc(void)
{
    (void)setenv("TZ", "UTC0", 1);
    tzset();
}

static uint64_t now_ns(void)
{
    struct timespec now = {};

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Whole seconds from PAST_NS to now; the clock may have been set back meanwhile. */
static uint64_t age_usec(uint64_t past_ns)
{
    uint64_t now = now_ns(), age_ns = now > past_ns ? now - past_ns : 0;

    return (age_ns - age_ns % NSEC_PER_SEC) / NSEC_PER_USEC;
}

const char *str_ago(char buffer[static STR_AGO_MAX], uint64_t realtime_ns)
{
    char duration[UNITS_TEXT_MAX];

    if (!realtime_ns)
        return strcpy(buffer, "never");
    if (age_usec(realtime_ns) == 0)
        return strcpy(buffer, "just now");
    (void)snprintf(buffer, STR_AGO_MAX, "%s ago", duration_format(duration, age_usec(realtime_ns)));
    return buffer;
}

const char *str_since(char buffer[static STR_SINCE_MAX], uint64_t realtime_ns)
{
    char since[STR_TIME_MAX], today[STR_TIME_MAX], duration[UNITS_TEXT_MAX];
    const char *shown = since;

    (void)str_time(since, realtime_ns);
    (void)str_time(today, now_ns());
    if (strlen(since) > DATE_LENGTH && strncmp(since, today, DATE_LENGTH) == 0)
        shown += DATE_LENGTH;
    (void)snprintf(buffer, STR_SINCE_MAX, "%s (%s)", shown,
                   duration_format(duration, age_usec(realtime_ns)));
    return buffer;
}

const char *str_window(char buffer[static STR_WINDOW_MAX], uint64_t first_ns, uint64_t last_ns)
{
    char first[STR_TIME_MAX], last[STR_TIME_MAX], duration[UNITS_TEXT_MAX];
    const char *end = last;

    if (!first_ns)
        return strcpy(buffer, "empty");
    (void)str_time(first, first_ns);
    (void)str_time(last, last_ns);
    if (strlen(first) > DATE_LENGTH && strncmp(first, last, DATE_LENGTH) == 0)
        end += DATE_LENGTH;
    (void)snprintf(
        buffer, STR_WINDOW_MAX, "%s to %s (%s)", first, end,
        duration_format(duration, last_ns > first_ns ? (last_ns - first_ns) / NSEC_PER_USEC : 0));
    return buffer;
}

const char *str_hz(char buffer[static STR_HZ_MAX], uint64_t khz)
{
    /* 7 digits: a TSC's frequency in kHz has no more */
    if (khz >= 1000000)
        (void)snprintf(buffer, STR_HZ_MAX, "%.10gG", (double)khz / 1e6);
    else
        (void)snprintf(buffer, STR_HZ_MAX, "%.10gM", (double)khz / 1e3);
    return buffer;
}

uint64_t str_ticks_usec(uint64_t ticks, uint64_t khz)
{
    if (!khz)
        return 0;
    return (uint64_t)((unsigned __int128)ticks * 1000 / khz);
}

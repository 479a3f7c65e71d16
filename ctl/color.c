// SPDX-License-Identifier: GPL-2.0-or-later
/* The 8 colors that every terminal has, so that the user's own theme applies. */

#include "ctl/color.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const struct palette *palette_of(int has_colors)
{
    static const struct palette none = {"", "", "", "", "", "", ""};
    static const struct palette ansi = {
        .good = "\033[1;32m",
        .warn = "\033[1;33m",
        .bad = "\033[1;31m",
        .strong = "\033[1m",
        .dim = "\033[2m",
        .inverse = "\033[7m",
        .end = "\033[0m",
    };

    return has_colors ? &ansi : &none;
}

/* 1 or 0 as SYSTEMD_COLORS says; -1: it does not. systemd's other values mean colors, too. */
static int read_systemd_colors(void)
{
    static const char *const no[] = {"0", "no", "n", "false", "f", "off"};
    const char *value = getenv("SYSTEMD_COLORS");

    if (!value || !*value)
        return -1;
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        if (strcasecmp(value, no[i]) == 0)
            return 0;
    }
    return 1;
}

const struct palette *palette_for(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    int wanted = read_systemd_colors();

    if (wanted < 0)
        wanted =
            !(no_color && *no_color) && isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
    return palette_of(wanted);
}

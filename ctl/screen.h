/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A terminal as a screen that is redrawn: alternate screen, no echo, keys as they are pressed.
 * Plain ANSI sequences, as every terminal since the VT100 and tmux understand them.
 *
 * screen_free() restores the terminal, also when a signal ends the program: signals are reported as
 * events, and on SCREEN_QUIT the caller frees the screen and returns. Ctrl-Z is supported. One at a
 * time; main thread.
 */

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "common/util.h"

struct frame;
struct screen;

enum screen_event {
    SCREEN_TIMEOUT,
    SCREEN_RESIZED, /* also after Ctrl-Z: draw again */
    SCREEN_QUIT,    /* SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGQUIT; the terminal is gone */
    SCREEN_KEY,     /* *RET_KEY */
    SCREEN_INPUT,   /* one of the caller's descriptors */
};

/* Keys beyond the characters. */
enum screen_key {
    SCREEN_KEY_UP = 0x100,
    SCREEN_KEY_DOWN,
    SCREEN_KEY_RIGHT,
    SCREEN_KEY_LEFT,
    SCREEN_KEY_HOME,
    SCREEN_KEY_END,
    SCREEN_KEY_PAGE_UP,
    SCREEN_KEY_PAGE_DOWN,
    SCREEN_KEY_ESCAPE,
};

/* Standard input and output must be a terminal, and not a dumb one: -ENOTTY. Other errors are
 * negative errnos. */
int screen_new(struct screen **ret_screen);
struct screen *screen_free(struct screen *screen);

static inline void screen_freep(struct screen **screen)
{
    *screen = screen_free(*screen);
}

#define _cleanup_screen_ _cleanup_(screen_freep)

/* 24 x 80 if the terminal does not say. */
void screen_size(const struct screen *screen, unsigned int *ret_rows, unsigned int *ret_cols);

/* Draws FRAME over what was there, without a flicker. */
void screen_draw(struct screen *screen, const struct frame *frame);

/* Waits for an event, at most TIMEOUT_USEC. OTHERS: what poll(2) is to wait for, too. */
#define SCREEN_OTHERS_MAX 4u
enum screen_event screen_wait(struct screen *screen, uint64_t timeout_usec,
                              const struct pollfd *others, size_t nr_others, int *ret_key);

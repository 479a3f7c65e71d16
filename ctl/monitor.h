/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What `monitor` shows: pictures of status documents, and what the keys do to them. Pages are a
 * table in monitor.c: a new page is a line there, and functions for its picture, keys and help.
 *
 * Pure: no terminal, no daemon, no clock. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ctl/color.h"
#include "ctl/disk.h"
#include "ctl/doc.h"
#include "ctl/top.h"

struct frame;

/* What is known. Borrowed; documents were made printable. */
struct monitor_facts {
    struct json_object *status; /* NULL: none yet */
    struct json_object *before; /* the one before it, for rates; NULL: none yet */
    uint64_t elapsed_usec;      /* between the two */
    int disk_result;            /* of disk_read() */
    struct disk disk;           /* of the state directory */
    const char *error;          /* why there is no newer document; NULL: there is */
    const char *time;           /* of the document: "12:03:04" */
    const struct top *top;      /* the newest second; NULL: none was taken yet */
    const char *top_error;      /* why there is no newer one; NULL: there is */
};

enum monitor_page {
    MONITOR_RECORDING,
    MONITOR_VCPUS, /* its facts are `top` and `top_error` */
};

/* What is looked at. Zero-initialized; monitor_draw() keeps the rest. */
struct monitor_view {
    enum monitor_page page;
    struct top_view top;
    bool paused;
    bool help;
    unsigned int cpu; /* the one that is selected, counted from 0 among those that are shown */

    unsigned int nr_cpus;      /* that can be selected */
    unsigned int across, down; /* how far an arrow moves the selection */
    unsigned int a_page;       /* ... and page up, page down */
};

/* Fills FRAME. */
void monitor_draw(struct frame *frame, const struct monitor_facts *facts, struct monitor_view *view,
                  const struct palette *palette);

/* A key (a character, or an enum screen_key) was pressed. Returns whether that means to quit. */
bool monitor_press(struct monitor_view *view, int key);

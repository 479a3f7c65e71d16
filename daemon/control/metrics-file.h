/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * metrics-file=: the status as a file in Prometheus' text format, for node_exporter's textfile
 * collector. It is written every 15 s, by a worker, and replaced as a whole. Main thread.
 */

struct manager;
struct metrics_file;

/*
 * Writes PATH from now on; "": nothing, and *RET_FILE is NULL. MANAGER and PATH are borrowed.
 * Returns 0 or a negative errno. A file that cannot be written is reported in the log, once, and
 * tried again.
 */
int metrics_file_new(struct manager *manager, const char *path, struct metrics_file **ret_file);

/*
 * When the event loop has ended: the last content says that no daemon runs. Waits for that, half a
 * second at most. Takes NULL; returns NULL.
 */
struct metrics_file *metrics_file_free(struct metrics_file *file);

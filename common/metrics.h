/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The status document as metrics in Prometheus' text format (version 0.0.4), for `xentracectl
 * metrics` and the daemon's metrics-file=. Any thread that owns the document.
 *
 * Values that the document of an older daemon lacks have no sample. Ended sessions have none either:
 * each of their names would remain as a series.
 */

struct json_object;

/* The document of Status(""). Returns 0 with text to be freed, -EBADMSG (it is another), -ENOMEM.
 */
int metrics_render(struct json_object *status, char **ret_text);

/* The metrics of a daemon that does not run. */
const char *metrics_of_none(void);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * --bundle: the trace and its sidecar in one tar archive. The size of a file comes first in an
 * archive, so the daemon writes the two as files, which are packed when they are complete, and
 * removed then: beside the archive and named after it, or, if that is a stream, in a directory of
 * their own in $TMPDIR (/var/tmp). If anything fails after the daemon has begun, they stay.
 */

#include "ctl/output.h"

struct bundle;
struct json_object;

/*
 * Opens the archive that OPTIONS name, and the files, which the daemon is to be passed. Returns as
 * output_open(). *RET_MEMBERS is freed before the bundle.
 */
int bundle_open(const struct output_options *options, struct bundle **ret_bundle,
                struct output **ret_members, char **ret_error);

/*
 * Packs MEMBERS, which the daemon has finished, and removes them. DOC, which describes the files,
 * names the archive afterwards. An error comes with its sentence, which says where the files are.
 */
int bundle_pack(struct bundle *bundle, struct output *members, struct json_object *doc,
                char **ret_error);

/* An archive that was not packed is removed. Takes NULL; returns NULL. */
struct bundle *bundle_free(struct bundle *bundle);

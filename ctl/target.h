/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The destination of the records, as set by -o, --force and --bundle, from opening to completion. A
 * caller that cannot pass descriptors to the daemon uses output_copy_from().
 */

#include "ctl/bundle.h"
#include "ctl/output.h"

struct target {
    struct output *output; /* what the daemon is passed; NULL: a file of its own */
    struct bundle *bundle; /* of which it is the members; NULL: none */
    bool is_served_bundle; /* which the host that has asked with -H packs */
};

/*
 * Opens what OPTIONS name, as a bundle if IS_BUNDLE; with options->typed NULL there is nothing to
 * open. Returns as output_open(). Needs target_done() in any case.
 */
int target_open(struct target *target, const struct output_options *options, bool is_bundle,
                char **ret_error);

/*
 * The daemon has written everything, which DOC describes: waits until all was copied, if there is a
 * copy, and packs a bundle, which DOC names afterwards.
 */
int target_finish(struct target *target, struct json_object *doc, char **ret_error);

/* What was made, and has no content that anybody wants, is removed. */
void target_done(struct target *target);

#define _cleanup_target_ _cleanup_(target_done)

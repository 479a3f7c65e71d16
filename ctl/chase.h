/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Resolves a path that a user has named, component by component, so that other users cannot
 * redirect it: in a directory with the sticky bit (/tmp), only links owned by the caller are
 * followed. This is stricter than fs.protected_symlinks, does not depend on it, and also applies in
 * the middle of a path.
 */

#include <stdbool.h>
#include <sys/stat.h>

#include "common/util.h"

struct chase {
    int directory_fd; /* O_PATH: of the directory that it is in, or would be */
    char *path;       /* absolute, and free of links but for the last component */
    const char *name; /* in that directory; the end of `path` */
    bool exists;
    bool is_via_link;   /* a link at the end was followed */
    bool is_in_sticky;  /* the directory has the sticky bit */
    bool is_in_kernel;  /* in proc(5): a link there is followed by the kernel alone */
    struct stat status; /* if it exists; of a link itself, unless it is in the kernel */
};

/*
 * Finds what the user TYPED; FOLLOW: links at the end, too. Its directory must exist, it need not.
 * RET_CHASE needs chase_done(), on success. An error comes with its sentence in *RET_ERROR (free
 * it), which ends with NOTHING ("Nothing was started").
 */
int chase(const char *typed, bool follow, const char *nothing, struct chase *ret_chase,
          char **ret_error);

void chase_done(struct chase *chase);

#define _cleanup_chase_ _cleanup_(chase_done)

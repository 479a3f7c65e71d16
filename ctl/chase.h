/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the file that a user has named, one component after the other, so that nobody can send the
 * caller elsewhere: in a directory with the sticky bit (/tmp), where everybody may make files, only
 * links of the caller's own are followed. That is stricter than fs.protected_symlinks, and holds
 * without it, in the middle of a path, too.
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

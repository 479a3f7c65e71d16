// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/newest.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sidecar-path.h"
#include "common/units.h"
#include "common/util.h"
#include "ctl/client.h"
#include "ctl/doc.h"
#include "ctl/str.h"

#define ASK_TIMEOUT_USEC (USEC_PER_SEC / 2)

/* Whether a directory entry can be a trace, and not one that is being written. */
static bool is_trace_name(const char *name)
{
    return *name != '.' && trace_path_is_trace(name);
}

static bool is_snapshot(const char *path)
{
    _cleanup_doc_ struct json_object *doc = NULL;
    _cleanup_free_ char *sidecar = sidecar_path_of(path);

    return sidecar && access(path, R_OK) == 0 && doc_read_file(sidecar, &doc) == 0 &&
           doc_is(doc, DOC_FORMAT_SNAPSHOT);
}

static uint64_t changed_nsec(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
        return 0;
    return (uint64_t)status.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)status.st_mtim.tv_nsec;
}

/* Sidecars are read only of what is newer than the newest so far. */
static int find_in(const char *folder, DIR *dir, char **ret_path)
{
    _cleanup_free_ char *newest = NULL;
    uint64_t newest_nsec = 0;
    struct dirent *entry;

    while ((entry = readdir(dir))) {
        _cleanup_free_ char *path = NULL;
        uint64_t nsec;

        if (!is_trace_name(entry->d_name))
            continue;
        path = str_format("%s/%s", folder, entry->d_name);
        if (!path)
            return -ENOMEM;
        nsec = changed_nsec(path);
        if (nsec <= newest_nsec || !is_snapshot(path))
            continue;
        newest_nsec = nsec;
        free(newest);
        newest = TAKE_PTR(path);
    }
    *ret_path = TAKE_PTR(newest);
    return *ret_path ? 0 : -ENOENT;
}

int newest_find(const char *socket, char **ret_path, char **ret_error)
{
    _cleanup_doc_ struct json_object *status = NULL;
    _cleanup_free_ char *error = NULL;
    const char *folder;
    DIR *dir;
    int r;

    (void)client_ask_briefly(socket, ASK_TIMEOUT_USEC, &status, &error); /* else the default */
    folder = doc_text(status, "daemon.state_dir", XENTRACED_STATE_DIR);
    dir = opendir(folder);
    if (!dir)
        return str_refuse(-errno, ret_error,
                          "Cannot look for a snapshot in %s: %m. Name a file, or use --now.",
                          folder);
    r = find_in(folder, dir, ret_path);
    (void)closedir(dir);
    if (r == -ENOENT)
        return str_refuse(r, ret_error,
                          "There is no snapshot in %s. Name a file, or use --now. To take a "
                          "snapshot: xentracectl snapshot",
                          folder);
    return r;
}

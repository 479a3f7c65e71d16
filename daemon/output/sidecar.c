// SPDX-License-Identifier: GPL-2.0-or-later
/* Temporary name, fsync(), rename(): a sidecar is the old one or the new one, never half of one. */

#include "daemon/output/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "common/protocol.h"
#include "common/sidecar-path.h"
#include "common/util.h"

int sidecar_adopt(int fd, const char *output_path, int *ret_fd, char **ret_path,
                  struct failure *failure)
{
    _cleanup_fd_ int own = -1;
    char *path;

    if (fd < 0)
        return 0;
    own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return failure_set(failure, -errno, ERROR_OUTPUT, "Out of descriptors.");
    path = sidecar_path_of(output_path);
    if (!path)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    *ret_fd = own;
    *ret_path = path;
    own = -1;
    return 0;
}

static int write_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, text, bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int replace_own(int directory, const char *stem, const char *text, size_t bytes)
{
    char name[NAME_MAX + 1], temporary[NAME_MAX + 1];
    _cleanup_fd_ int fd = -1;
    int r;

    (void)snprintf(name, sizeof(name), "%s.json", stem);
    (void)snprintf(temporary, sizeof(temporary), ".%s.json.new", stem);
    fd = openat(directory, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return -errno;
    r = write_all(fd, text, bytes);
    if (r >= 0 && fsync(fd) < 0)
        r = -errno;
    if (r >= 0 && renameat(directory, temporary, directory, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(directory, temporary, 0);
    return r;
}

/* One pwrite() from the start; what is left of a longer old text is cut off afterwards. */
static int overwrite(int fd, const char *text, size_t bytes)
{
    ssize_t n = pwrite(fd, text, bytes, 0);

    if (n < 0)
        return -errno;
    if ((size_t)n != bytes)
        return -ENOSPC;
    if (ftruncate(fd, (off_t)bytes) < 0 || fsync(fd) < 0)
        return -errno;
    return 0;
}

int sidecar_write(int directory_fd, const char *name, int fd, struct json_object *document)
{
    const char *text;
    size_t bytes;
    int r;

    text = json_object_to_json_string_length(
        document, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE, &bytes);
    if (!text)
        r = -ENOMEM;
    else if (fd >= 0)
        r = overwrite(fd, text, bytes);
    else
        r = replace_own(directory_fd, name, text, bytes);
    json_object_put(document);
    return r;
}

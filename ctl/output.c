// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opened O_RDWR, not O_WRONLY: the daemon may set O_DIRECT, truncate, and read back a tail. A FIFO
 * is opened without waiting for its reader, who might never come.
 */

#include "ctl/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "common/sidecar-path.h"
#include "ctl/str.h"

#define OUTPUT_MODE 0640 /* as the daemon's own captures: records tell much about guests */

/* The path from the root, links resolved up to (not including) a file that need not exist. */
static int make_absolute(const char *typed, const char *nothing, char **ret_path, char **ret_error)
{
    const char *slash = strrchr(typed, '/'), *base = slash ? slash + 1 : typed;
    _cleanup_free_ char *folder = NULL;
    char *resolved, *path;

    if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return str_refuse(-EISDIR, ret_error, "-o %s is a directory: name a file in it.", typed);
    folder = slash ? strndup(typed, slash == typed ? 1 : (size_t)(slash - typed)) : strdup(".");
    if (!folder)
        return -ENOMEM;
    resolved = realpath(folder, NULL);
    if (!resolved)
        return str_refuse(-errno, ret_error, "Cannot write to %s: %m. %s.", typed, nothing);
    path = str_format("%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, base);
    free(resolved);
    if (!path)
        return -ENOMEM;
    *ret_path = path;
    return 0;
}

static int create(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, OUTPUT_MODE);

    return fd < 0 ? -errno : fd;
}

/* Beside an old file, under a name of its own, to be renamed over it. */
static int create_beside(struct output_file *file)
{
    struct stat st;
    char *target;

    target = realpath(file->path, NULL); /* a link stays a link */
    if (!target)
        return -errno;
    free(file->path);
    file->path = target;
    if (stat(target, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EEXIST;
    file->temporary = str_format("%s.new-%ld", target, (long)getpid());
    return file->temporary ? create(file->temporary) : -ENOMEM;
}

/* Makes the file at file->path. */
static int open_new(struct output_file *file, bool force, const char *nothing, char **ret_error)
{
    int fd = create(file->path);

    if (fd == -EEXIST && force)
        fd = create_beside(file);
    if (fd == -EEXIST)
        return str_refuse(fd, ret_error, "%s exists and was not changed: choose another name%s.",
                          file->path, force ? "" : ", or replace it with --force");
    if (fd < 0) {
        errno = -fd;
        return str_refuse(fd, ret_error, "Cannot create %s: %m. %s.", file->path, nothing);
    }
    file->fd = fd;
    file->is_new = true;
    return 0;
}

static int open_stdout(struct output *output, char **ret_error)
{
    struct stat st;

    if (isatty(STDOUT_FILENO))
        return str_refuse(-ENOTTY, ret_error,
                          "-o - writes binary records to standard output, which is a terminal: "
                          "redirect it to a file or a pipe.");
    output->trace.fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (output->trace.fd < 0 || fstat(output->trace.fd, &st) < 0)
        return str_refuse(-errno, ret_error, "Cannot use standard output: %m.");
    output->is_stdout = true;
    output->is_stream = !S_ISREG(st.st_mode);
    return 0;
}

/* A FIFO or a character device that exists. */
static int open_stream(struct output *output, const char *nothing, char **ret_error)
{
    const char *path = output->trace.path;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), flags;

    if (fd < 0 && errno == ENXIO)
        return str_refuse(-ENXIO, ret_error, "%s has no reader: start the reader first.", path);
    if (fd < 0)
        return str_refuse(-errno, ret_error, "Cannot write to %s: %m. %s.", path, nothing);
    output->trace.fd = fd;
    if (isatty(fd))
        return str_refuse(-ENOTTY, ret_error, "%s is a terminal: name a file or a pipe.", path);
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return str_refuse(-errno, ret_error, "Cannot use %s: %m.", path);
    output->is_stream = true;
    return 0;
}

static int open_path(struct output *output, const char *typed, bool force, const char *nothing,
                     char **ret_error)
{
    struct stat st = {};
    int r;

    r = make_absolute(typed, nothing, &output->trace.path, ret_error);
    if (r < 0)
        return r;
    if (stat(output->trace.path, &st) == 0 && !S_ISREG(st.st_mode)) {
        if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
            return open_stream(output, nothing, ret_error);
        return str_refuse(-EINVAL, ret_error, "%s is %s: name a file or a pipe.",
                          output->trace.path,
                          S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
    }
    r = open_new(&output->trace, force, nothing, ret_error);
    if (r < 0)
        return r;
    output->sidecar.path = sidecar_path_of(output->trace.path);
    return output->sidecar.path ? open_new(&output->sidecar, force, nothing, ret_error) : -ENOMEM;
}

int output_open(const char *typed, bool force, const char *nothing, struct output **ret_output,
                char **ret_error)
{
    _cleanup_output_ struct output *output = calloc(1, sizeof(*output));
    int r;

    if (!output)
        return -ENOMEM;
    output->trace.fd = output->sidecar.fd = -1;
    r = strcmp(typed, "-") == 0 ? open_stdout(output, ret_error)
                                : open_path(output, typed, force, nothing, ret_error);
    if (r < 0)
        return r;
    *ret_output = TAKE_PTR(output);
    return 0;
}

static int file_replace(struct output_file *file, char **ret_error)
{
    if (!file->temporary)
        return 0;
    if (rename(file->temporary, file->path) < 0)
        return str_refuse(-errno, ret_error, "Cannot replace %s: %m. The new file is %s.",
                          file->path, file->temporary);
    free(file->temporary);
    file->temporary = NULL;
    return 0;
}

void output_abandon(struct output *output)
{
    output->trace.is_new = output->sidecar.is_new = false;
}

int output_keep(struct output *output, char **ret_error)
{
    int r;

    output_abandon(output);
    r = file_replace(&output->trace, ret_error);
    return r < 0 ? r : file_replace(&output->sidecar, ret_error);
}

static void file_done(struct output_file *file)
{
    if (file->is_new)
        (void)unlink(file->temporary ? file->temporary : file->path); /* empty, and our own */
    fd_close(&file->fd);
    free(file->path);
    free(file->temporary);
}

struct output *output_free(struct output *output)
{
    if (!output)
        return NULL;
    file_done(&output->trace);
    file_done(&output->sidecar);
    free(output);
    return NULL;
}

FILE *output_talk(const char *typed)
{
    return typed && strcmp(typed, "-") == 0 ? stderr : stdout;
}

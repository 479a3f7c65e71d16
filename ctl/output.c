// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opened O_RDWR, not O_WRONLY: the daemon may set O_DIRECT, truncate, and read back a tail. A FIFO
 * is opened without waiting for its reader, who might never come. What was opened is compared with
 * what was found: between the two it may have been replaced.
 */

#include "ctl/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "common/memory-file.h"
#include "common/sidecar-path.h"
#include "common/units.h"
#include "ctl/chase.h"
#include "ctl/copy.h"
#include "ctl/doc.h"
#include "ctl/served.h"
#include "ctl/str.h"

#define OUTPUT_MODE 0640 /* as the daemon's own captures: records tell much about guests */

static const char *base_name(const char *path)
{
    return strrchr(path, '/') + 1; /* it is absolute */
}

/* --- Files. --- */

static int create(const struct output_file *file, const char *path)
{
    int fd = openat(file->directory_fd, base_name(path),
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, OUTPUT_MODE);

    return fd < 0 ? -errno : fd;
}

/* Beside an old file or link, under a name of its own, to be renamed over it. */
static int create_beside(struct output_file *file)
{
    struct stat st;

    if (fstatat(file->directory_fd, base_name(file->path), &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return -EEXIST;
    file->temporary = str_format("%s.new-%ld", file->path, (long)getpid());
    return file->temporary ? create(file, file->temporary) : -ENOMEM;
}

/* Makes the file at file->path. */
static int open_new(struct output_file *file, const struct output_options *options,
                    char **ret_error)
{
    int fd = create(file, file->path);

    if (fd == -EEXIST && options->force)
        fd = create_beside(file);
    if (fd == -EEXIST)
        return str_refuse(fd, ret_error, "%s exists and was not changed: choose another name%s.",
                          file->path, options->force ? "" : ", or replace it with --force");
    if (fd < 0) {
        errno = -fd;
        return str_refuse(fd, ret_error, "Cannot create %s: %m. %s.", file->path, options->nothing);
    }
    file->fd = fd;
    file->is_new = true;
    return 0;
}

/* --- Streams. --- */

static bool is_null_device(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* What the daemon takes: docs/control-protocol.md. */
static bool is_passable(const struct stat *st)
{
    return S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode) || S_ISBLK(st->st_mode) ||
           is_null_device(st);
}

static const char *name_for_people(const struct output *output)
{
    return output->is_stdout ? "standard output" : output->trace.path;
}

/* Makes a pipe for the daemon, of which FD, which is taken over, receives what comes. */
static int open_copy(struct output *output, int fd, uint64_t reserve_bytes, char **ret_error)
{
    int fds[2], r;

    if (pipe2(fds, O_CLOEXEC) < 0) {
        r = -errno;
        (void)close(fd);
    } else {
        output->trace.fd = fds[1];
        (void)fcntl(fds[0], F_SETPIPE_SZ, 1 << 20); /* fewer turns, if it is allowed */
        r = copy_new(fds[0], fd, reserve_bytes, &output->copy);
    }
    if (r >= 0)
        return 0;
    errno = -r;
    return str_refuse(r, ret_error, "Cannot use %s: %m.", name_for_people(output));
}

/* 15% of the file system, at most 4 GiB, at most half of what is free: docs/man/xentraced.conf.5 */
static uint64_t reserve_of(const struct output_options *options, int fd)
{
    struct statvfs st;
    uint64_t total, available;

    if (options->reserve_bytes != OUTPUT_RESERVE_AUTO || fstatvfs(fd, &st) < 0)
        return options->reserve_bytes == OUTPUT_RESERVE_AUTO ? 0 : options->reserve_bytes;
    total = (uint64_t)st.f_blocks * st.f_frsize;
    available = (uint64_t)st.f_bavail * st.f_frsize;
    return min_u64(min_u64(total / 100 * 15, UINT64_C(4) << 30), available / 2);
}

/* Makes the pipe for a file FD in memory, which is taken over. */
static int open_memory_copy(struct output *output, int fd, const struct output_options *options,
                            char **ret_error)
{
    if (options->may_copy)
        return open_copy(output, fd, reserve_of(options, fd), ret_error);
    (void)close(fd);
    return str_refuse(-EINVAL, ret_error,
                      "%s is in memory (such as tmpfs), and xentraced writes to files on a disk "
                      "only: name one, such as in /var/tmp, or let a command that stays copy the "
                      "records: xentracectl record. %s.",
                      output->is_stdout ? "Standard output" : output->trace.path, options->nothing);
}

static int open_stdout(struct output *output, const struct output_options *options,
                       char **ret_error)
{
    _cleanup_fd_ int fd = -1;
    struct stat st;

    if (isatty(STDOUT_FILENO))
        return str_refuse(-ENOTTY, ret_error,
                          "-o - writes binary records to standard output, which is a terminal: "
                          "redirect it to a file or a pipe.");
    fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 || fstat(fd, &st) < 0)
        return str_refuse(-errno, ret_error, "Cannot use standard output: %m.");
    output->is_stdout = true;
    output->is_stream = !S_ISREG(st.st_mode);
    if (!is_passable(&st) && !options->is_archive && options->may_copy)
        return open_copy(output, fd_take(&fd), 0, ret_error);
    if (options->for_daemon && !options->is_archive && S_ISREG(st.st_mode) && memory_file_is(fd))
        return open_memory_copy(output, fd_take(&fd), options, ret_error);
    if (!is_passable(&st) && !options->is_archive)
        return str_refuse(-EINVAL, ret_error,
                          "Standard output is %s: redirect it to a file or a pipe.",
                          S_ISSOCK(st.st_mode) ? "a socket" : "a device");
    output->trace.fd = fd_take(&fd);
    return 0;
}

/* Whether FD is what was found. */
static bool is_same(int fd, const struct stat *found)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_dev == found->st_dev && st.st_ino == found->st_ino &&
           st.st_mode == found->st_mode && st.st_uid == found->st_uid;
}

/* A FIFO, or a device. */
static int open_stream(struct output *output, const struct chase *found,
                       const struct output_options *options, char **ret_error)
{
    const char *path = output->trace.path;
    int no_follow = found->is_in_kernel ? 0 : O_NOFOLLOW; /* /dev/fd/3 is a link there */
    /* Of a block device O_EXCL is that nobody has it mounted. */
    int exclusive = S_ISBLK(found->status.st_mode) ? O_EXCL : 0;
    int fd, flags;

    fd = openat(found->directory_fd, found->name,
                O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | no_follow | exclusive);
    if (fd < 0 && errno == ENXIO)
        return str_refuse(-ENXIO, ret_error, "%s has no reader: start the reader first.", path);
    if (fd < 0)
        return str_refuse(-errno, ret_error, "Cannot write to %s: %m. %s.", path, options->nothing);
    output->trace.fd = fd;
    if (!is_same(fd, &found->status))
        return str_refuse(-EBUSY, ret_error, "%s was replaced while it was opened. %s.", path,
                          options->nothing);
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return str_refuse(-errno, ret_error, "Cannot use %s: %m.", path);
    output->is_stream = true;
    return 0;
}

static const char *describe_type(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a directory";
    case S_IFCHR:
        return "a terminal or another character device";
    case S_IFBLK:
        return "a block device, whose content would be lost";
    default:
        return "not a regular file";
    }
}

/* --- Either. --- */

/* Something that exists, and is neither a regular file nor a link that is to be replaced. */
static int open_special(struct output *output, const struct chase *found,
                        const struct output_options *options, char **ret_error)
{
    const struct stat *st = &found->status;

    if (found->is_in_sticky && st->st_uid != geteuid() && !found->is_in_kernel)
        return str_refuse(-EPERM, ret_error,
                          "%s was created by another user (UID %u) in a world-writable directory, "
                          "and is not written to. %s.",
                          output->trace.path, (unsigned int)st->st_uid, options->nothing);
    if (S_ISFIFO(st->st_mode) || is_null_device(st) || (S_ISBLK(st->st_mode) && options->force))
        return open_stream(output, found, options, ret_error);
    return str_refuse(-EINVAL, ret_error, "%s is %s: name a file or a pipe.", output->trace.path,
                      describe_type(st->st_mode));
}

static int open_files(struct output *output, const struct output_options *options, char **ret_error)
{
    int r;

    r = open_new(&output->trace, options, ret_error);
    if (r < 0 || options->is_archive)
        return r;
    output->sidecar.path = sidecar_path_of(output->trace.path);
    if (!output->sidecar.path)
        return -ENOMEM;
    r = open_new(&output->sidecar, options, ret_error);
    if (r < 0 || !options->for_daemon || !memory_file_is(output->trace.fd))
        return r;
    output->own_sidecar_fd = fd_take(&output->sidecar.fd);
    return open_memory_copy(output, fd_take(&output->trace.fd), options, ret_error);
}

static int open_path(struct output *output, const struct output_options *options, char **ret_error)
{
    _cleanup_chase_ struct chase found = {.directory_fd = -1};
    int r;

    /* --force replaces a link, never what it points to. */
    r = chase(options->typed, !options->force, options->nothing, &found, ret_error);
    if (r < 0)
        return r;
    output->trace.path = strdup(found.path);
    if (!output->trace.path)
        return -ENOMEM;
    output->directory_fd = fcntl(found.directory_fd, F_DUPFD_CLOEXEC, 3);
    if (output->directory_fd < 0)
        return -errno;
    output->trace.directory_fd = output->sidecar.directory_fd = output->directory_fd;
    if (!found.exists && found.is_via_link)
        return str_refuse(-EEXIST, ret_error,
                          "%s is a link to a file that does not exist, and was not changed: choose "
                          "another name, or replace the link with --force.",
                          options->typed);
    if (found.exists && !S_ISREG(found.status.st_mode) && !S_ISLNK(found.status.st_mode))
        return open_special(output, &found, options, ret_error);
    return open_files(output, options, ret_error);
}

/* The file is one of the host that has asked with -H, which makes it of what it receives. */
static int open_served(struct output *output, const struct output_options *options)
{
    output->is_stdout = output->is_stream = strcmp(served_path(), "-") == 0;
    output->trace.fd = fcntl(served_output_fd(), F_DUPFD_CLOEXEC, 3);
    if (output->trace.fd < 0)
        return -errno;
    if (output->is_stdout)
        return 0;
    output->trace.path = strdup(served_path());
    if (!output->trace.path)
        return -ENOMEM;
    if (options->is_archive)
        return 0;
    output->sidecar.path = sidecar_path_of(output->trace.path);
    output->sidecar.fd = fcntl(served_sidecar_fd(), F_DUPFD_CLOEXEC, 3);
    if (output->sidecar.fd < 0)
        return -errno;
    return output->sidecar.path ? 0 : -ENOMEM;
}

int output_open(const struct output_options *options, struct output **ret_output, char **ret_error)
{
    _cleanup_output_ struct output *output = calloc(1, sizeof(*output));
    int r;

    if (!output)
        return -ENOMEM;
    output->trace.fd = output->sidecar.fd = output->directory_fd = output->own_sidecar_fd = -1;
    if (served_path())
        r = open_served(output, options);
    else
        r = strcmp(options->typed, "-") == 0 ? open_stdout(output, options, ret_error)
                                             : open_path(output, options, ret_error);
    if (r < 0)
        return r;
    *ret_output = TAKE_PTR(output);
    return 0;
}

int output_copy_from(struct output *output, int fd, char **ret_error)
{
    int r = copy_new(fd, fd_take(&output->trace.fd), 0, &output->copy);

    if (r >= 0)
        return 0;
    errno = -r;
    return str_refuse(r, ret_error, "Cannot copy to %s: %m.", name_for_people(output));
}

static int file_replace(struct output_file *file, char **ret_error)
{
    if (!file->temporary)
        return 0;
    if (renameat(file->directory_fd, base_name(file->temporary), file->directory_fd,
                 base_name(file->path)) < 0)
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
    fd_close(&output->trace.fd); /* else readers would not come to an end */
    fd_close(&output->sidecar.fd);
    r = file_replace(&output->trace, ret_error);
    return r < 0 ? r : file_replace(&output->sidecar, ret_error);
}

/* Overwrites the file FD with DOC, and has it on the disk. */
static int write_doc(int fd, struct json_object *doc)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
    bool ok;

    if (!file)
        return -errno;
    ok = ftruncate(copy, 0) == 0 && lseek(copy, 0, SEEK_SET) == 0;
    doc_print(file, doc);
    ok = fflush(file) == 0 && fsync(copy) == 0 && ok;
    ok = fclose(file) == 0 && ok;
    return ok ? 0 : -errno;
}

int output_describe(struct output *output, struct json_object *doc, char **ret_error)
{
    struct json_object *place = doc_find(doc, "output");
    int r;

    if (output->own_sidecar_fd < 0)
        return 0;
    if (place) {
        doc_add_text(place, "kind", "file");
        doc_add_text(place, "sidecar", output->sidecar.path);
    }
    r = write_doc(output->own_sidecar_fd, doc);
    if (r >= 0)
        return 0;
    errno = -r;
    return str_refuse(r, ret_error, "Cannot write %s: %m.", output->sidecar.path);
}

int output_finish(struct output *output, char **ret_error)
{
    uint64_t reserve_bytes = copy_reserve_bytes(output->copy);
    char reserve[UNITS_TEXT_MAX];
    int r;

    r = copy_finish(TAKE_PTR(output->copy));
    if (r >= 0)
        return 0;
    if (r == -ENOSPC && reserve_bytes)
        return str_refuse(
            r, ret_error,
            "%s has reached its reserve: %s of that memory are left free (--reserve). "
            "The records up to there are in it.",
            output->is_stdout ? "Standard output" : output->trace.path,
            size_format(reserve, reserve_bytes));
    errno = -r;
    return str_refuse(r, ret_error, "%s could not be written: %m.",
                      output->is_stdout ? "Standard output" : output->trace.path);
}

static void file_done(struct output_file *file)
{
    if (file->is_new) /* empty, and our own */
        (void)unlinkat(file->directory_fd,
                       base_name(file->temporary ? file->temporary : file->path), 0);
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
    copy_abandon(output->copy);
    fd_close(&output->own_sidecar_fd);
    fd_close(&output->directory_fd);
    free(output);
    return NULL;
}

FILE *output_talk(const char *typed)
{
    return typed && strcmp(typed, "-") == 0 ? stderr : stdout;
}

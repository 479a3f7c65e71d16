// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each component is opened first (O_PATH | O_NOFOLLOW, which has no effect on the file), and its
 * status is read from the descriptor, so it cannot be replaced in between. Links are expanded here:
 * their text is prepended to the rest of the path.
 *
 * Sources: path_resolution(7), proc(5) for fs.protected_symlinks, and for the links in it that no
 * text describes.
 */

#include "ctl/chase.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "ctl/str.h"

#define LINKS_MAX 40u /* as the kernel */

/* On the way. */
struct chaser {
    const char *typed, *nothing;
    struct chase at; /* its name is set at the end only */
    char *rest;      /* of the path, not looked at yet */
    unsigned int nr_links;
};

static void chaser_done(struct chaser *chaser)
{
    chase_done(&chaser->at);
    free(chaser->rest);
}

void chase_done(struct chase *chase)
{
    fd_close(&chase->directory_fd);
    free(chase->path);
    chase->path = NULL;
}

static int chaser_refuse(const struct chaser *chaser, int r, char **ret_error)
{
    errno = -r;
    return str_refuse(r, ret_error, "Cannot write to %s: %m. %s.", chaser->typed, chaser->nothing);
}

/* Goes to the directory FD, which is taken over, and is called PATH. */
static int chaser_enter(struct chaser *chaser, int fd, const char *path)
{
    char *copy = strdup(path);
    struct statfs fs;
    struct stat st;

    fd_close(&chaser->at.directory_fd);
    chaser->at.directory_fd = fd;
    if (!copy)
        return -ENOMEM;
    free(chaser->at.path);
    chaser->at.path = copy;
    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        return -errno;
    chaser->at.is_in_sticky = st.st_mode & S_ISVTX;
    chaser->at.is_in_kernel = fs.f_type == PROC_SUPER_MAGIC;
    return 0;
}

static int chaser_begin(struct chaser *chaser, const char *path)
{
    bool is_absolute = *path == '/';
    _cleanup_free_ char *here = is_absolute ? strdup("") : realpath(".", NULL);
    int fd = open(is_absolute ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    if (!here) {
        (void)close(fd);
        return -ENOMEM;
    }
    return chaser_enter(chaser, fd, strcmp(here, "/") == 0 ? "" : here);
}

static int chaser_go_up(struct chaser *chaser)
{
    _cleanup_free_ char *path = strdup(chaser->at.path);
    char *slash;
    int fd;

    if (!path)
        return -ENOMEM;
    slash = strrchr(path, '/');
    if (slash) /* else it is the root, of which the parent is itself */
        *slash = '\0';
    fd = openat(chaser->at.directory_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : chaser_enter(chaser, fd, path);
}

/* A link of somebody else, where everybody may make one. */
static bool is_planted(const struct chase *at, const struct stat *st)
{
    return at->is_in_sticky && st->st_uid != geteuid();
}

/* The link FD is NAME: continues with its text, and what is left of the path. */
static int chaser_follow(struct chaser *chaser, int fd, const struct stat *st, const char *name,
                         char **ret_error)
{
    char target[PATH_MAX], *rest;
    ssize_t length;
    int r;

    if (is_planted(&chaser->at, st))
        return str_refuse(-EPERM, ret_error,
                          "%s/%s is a link created by another user (UID %u) in a world-writable "
                          "directory, and is not followed. %s.",
                          chaser->at.path, name, (unsigned int)st->st_uid, chaser->nothing);
    if (++chaser->nr_links > LINKS_MAX)
        return chaser_refuse(chaser, -ELOOP, ret_error);
    length = readlinkat(fd, "", target, sizeof(target) - 1);
    if (length < 0)
        return chaser_refuse(chaser, -errno, ret_error);
    target[length] = '\0';
    rest = str_format("%s/%s", target, chaser->rest);
    if (!rest)
        return -ENOMEM;
    if (!*chaser->rest)
        rest[length] = '\0'; /* a slash at the end would make it a directory */
    free(chaser->rest);
    chaser->rest = rest;
    if (*target != '/')
        return 0;
    r = chaser_begin(chaser, target);
    return r < 0 ? chaser_refuse(chaser, r, ret_error) : 0;
}

/* The next component, out of chaser->rest; "" at the end. */
static char *chaser_take_component(struct chaser *chaser)
{
    size_t begin = strspn(chaser->rest, "/");
    size_t length = strcspn(chaser->rest + begin, "/");
    char *component = strndup(chaser->rest + begin, length);

    if (component)
        memmove(chaser->rest, chaser->rest + begin + length,
                strlen(chaser->rest + begin + length) + 1);
    return component;
}

/* A component with others after it. */
static int chaser_pass(struct chaser *chaser, const char *name, char **ret_error)
{
    _cleanup_free_ char *path = str_format("%s/%s", chaser->at.path, name);
    _cleanup_fd_ int fd = -1;
    struct stat st;
    int r;

    if (!path)
        return -ENOMEM;
    fd = openat(chaser->at.directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return chaser_refuse(chaser, -errno, ret_error);
    if (S_ISLNK(st.st_mode))
        return chaser_follow(chaser, fd, &st, name, ret_error);
    if (!S_ISDIR(st.st_mode))
        return chaser_refuse(chaser, -ENOTDIR, ret_error);
    r = chaser_enter(chaser, fd_take(&fd), path);
    return r < 0 ? chaser_refuse(chaser, r, ret_error) : 0;
}

/* The last one. Returns 1 if it was a link that is followed, 0 if it is what was looked for. */
static int chaser_arrive(struct chaser *chaser, const char *name, bool follow, char **ret_error)
{
    struct chase *at = &chaser->at;
    _cleanup_fd_ int fd = openat(at->directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char *path;
    int r;

    if (fd < 0 && errno != ENOENT)
        return chaser_refuse(chaser, -errno, ret_error);
    at->exists = fd >= 0;
    if (at->exists && fstat(fd, &at->status) < 0)
        return chaser_refuse(chaser, -errno, ret_error);
    if (at->exists && S_ISLNK(at->status.st_mode) && at->is_in_kernel) {
        if (fstatat(at->directory_fd, name, &at->status, 0) < 0)
            return chaser_refuse(chaser, -errno, ret_error);
    } else if (at->exists && S_ISLNK(at->status.st_mode) && follow) {
        at->is_via_link = true;
        r = chaser_follow(chaser, fd, &at->status, name, ret_error);
        return r < 0 ? r : 1;
    }
    path = str_format("%s/%s", at->path, name);
    if (!path)
        return -ENOMEM;
    free(at->path);
    at->path = path;
    at->name = strrchr(path, '/') + 1;
    return 0;
}

static int refuse_directory(const struct chaser *chaser, char **ret_error)
{
    return str_refuse(-EISDIR, ret_error, "-o %s is a directory: name a file in it.",
                      chaser->typed);
}

static int chaser_step(struct chaser *chaser, bool follow, char **ret_error)
{
    _cleanup_free_ char *name = chaser_take_component(chaser);
    bool is_last;
    int r;

    if (!name)
        return -ENOMEM;
    is_last = !*chaser->rest;
    if (!*name || (is_last && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)))
        return refuse_directory(chaser, ret_error);
    if (strcmp(name, ".") == 0)
        return 1;
    if (strcmp(name, "..") == 0) {
        r = chaser_go_up(chaser);
        return r < 0 ? chaser_refuse(chaser, r, ret_error) : 1;
    }
    if (is_last)
        return chaser_arrive(chaser, name, follow, ret_error);
    r = chaser_pass(chaser, name, ret_error);
    return r < 0 ? r : 1;
}

int chase(const char *typed, bool follow, const char *nothing, struct chase *ret_chase,
          char **ret_error)
{
    _cleanup_(chaser_done) struct chaser chaser = {
        .typed = typed,
        .nothing = nothing,
        .at.directory_fd = -1,
        .rest = strdup(typed),
    };
    int r;

    if (!chaser.rest)
        return -ENOMEM;
    r = chaser_begin(&chaser, typed);
    if (r < 0)
        return chaser_refuse(&chaser, r, ret_error);
    do
        r = chaser_step(&chaser, follow, ret_error);
    while (r > 0);
    if (r < 0)
        return r;
    *ret_chase = chaser.at;
    chaser.at = (struct chase){.directory_fd = -1};
    return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A socket pair: the process waits for a byte, runs the command, and returns the errno if that
 * fails; success closes its end, which is close-on-exec. A process that ended earlier closes it,
 * too.
 */

#include "ctl/child.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/util.h"
#include "ctl/str.h"

struct child {
    char *name;
    pid_t pid;
    int fd; /* -1: it has begun */
};

/* 0: PATH is a program. */
static int check_program(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EACCES;
    return access(path, X_OK) < 0 ? -errno : 0;
}

/* As execvp(3) looks for it: the first that can be run, else why not. */
static int find_program(const char *name)
{
    const char *paths = getenv("PATH");
    int result = -ENOENT, r;

    if (strchr(name, '/'))
        return check_program(name);
    for (const char *at = paths && *name ? paths : ""; *at;) {
        size_t length = strcspn(at, ":");
        _cleanup_free_ char *path =
            str_format("%.*s%s%s", (int)length, at, length ? "/" : "./", name);

        r = path ? check_program(path) : -ENOMEM;
        if (r == 0 || r == -ENOMEM)
            return r;
        if (r == -EACCES)
            result = r;
        at += length + (at[length] == ':');
    }
    return result;
}

static int explain(int r, const char *name, char **ret_error)
{
    if (r == -ENOENT && !strchr(name, '/'))
        return str_refuse(r, ret_error, "There is no command %s in PATH. Nothing was started.",
                          name);
    errno = -r;
    return str_refuse(r == -ENOENT ? r : -EACCES, ret_error,
                      "Cannot run %s: %m. Nothing was started.", name);
}

/* In the new process: does not return. */
static void wait_and_run(char **argv, bool quiet_stdout, int fd)
{
    char go;
    int error;

    if (read(fd, &go, 1) != 1)
        _exit(CHILD_NOT_RUN); /* there is nothing to run it for */
    if (!quiet_stdout || dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        (void)execvp(argv[0], argv);
    error = errno;
    (void)send(fd, &error, sizeof(error), MSG_NOSIGNAL); /* without it: an early end */
    _exit(CHILD_NOT_RUN);
}

int child_new(char **argv, bool quiet_stdout, struct child **ret_child, char **ret_error)
{
    _cleanup_(child_freep) struct child *child = calloc(1, sizeof(*child));
    _cleanup_fd_ int theirs = -1;
    int fds[2], r;

    if (!child)
        return -ENOMEM;
    child->fd = -1;
    child->name = strdup(argv[0]);
    if (!child->name)
        return -ENOMEM;
    r = find_program(argv[0]);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return explain(r, child->name, ret_error);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return str_refuse(-errno, ret_error, "Cannot run %s: %m.", child->name);
    child->fd = fds[0];
    theirs = fds[1];
    child->pid = fork();
    if (child->pid < 0)
        return str_refuse(-errno, ret_error, "Cannot run %s: %m.", child->name);
    if (child->pid == 0) {
        fd_close(&child->fd);
        wait_and_run(argv, quiet_stdout, theirs);
    }
    *ret_child = TAKE_PTR(child);
    return 0;
}

struct child *child_free(struct child *child)
{
    if (!child)
        return NULL;
    if (child->fd >= 0) {
        fd_close(&child->fd); /* it waits for that, and ends */
        if (child->pid > 0)
            (void)waitpid(child->pid, NULL, 0);
    }
    free(child->name);
    free(child);
    return NULL;
}

int child_begin(struct child *child, char **ret_error)
{
    int error = 0;
    ssize_t n = send(child->fd, "", 1, MSG_NOSIGNAL);

    if (n == 1)
        n = recv(child->fd, &error, sizeof(error), 0);
    fd_close(&child->fd);
    if (n != (ssize_t)sizeof(error))
        return 0; /* it runs, or a signal has ended it, which its exit status shows */
    errno = error;
    return str_refuse(-EACCES, ret_error, "Cannot run %s: %m.", child->name);
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

int child_exit_code(int wait_status)
{
    return WIFSIGNALED(wait_status) ? CHILD_BY_SIGNAL + WTERMSIG(wait_status)
                                    : WEXITSTATUS(wait_status);
}

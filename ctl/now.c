// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Another xentracectl takes the snapshot, while this one reads: the daemon waits for nobody who
 * does not. With --json it prints the snapshot's document, which is the sidecar, or the error on
 * standard error.
 */

#include "ctl/now.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/unpack.h"
#include "common/util.h"
#include "common/write-all.h"
#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/str.h"

#define COPY_BYTES (256u * 1024u)

static int open_nameless(void)
{
    const char *folder = getenv("TMPDIR");
    int fd = open(folder && *folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : fd;
}

int now_keep_pipe(int fd, int *ret_fd)
{
    _cleanup_fd_ int from = fd, to = open_nameless();
    _cleanup_free_ char *buffer = malloc(COPY_BYTES);
    ssize_t n;

    if (to < 0)
        return to;
    if (!buffer)
        return -ENOMEM;
    while ((n = read(from, buffer, COPY_BYTES)) != 0) {
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        r = write_all(to, buffer, (size_t)n);
        if (r < 0)
            return r;
    }
    if (lseek(to, 0, SEEK_SET) < 0)
        return -errno;
    *ret_fd = fd_take(&to);
    return 0;
}

/* Of frames that could not be unpacked: this is no window, so that repair marks the gap. */
static int write_gap(int to)
{
    static const uint8_t zeroes[4] = {0};

    return write_all(to, zeroes, sizeof(zeroes));
}

static int unpack_to(struct unpack *unpack, int to, bool resume)
{
    _cleanup_free_ char *buffer = malloc(COPY_BYTES);

    if (!buffer)
        return -ENOMEM;
    for (;;) {
        ssize_t n = unpack_read(unpack, buffer, COPY_BYTES);
        int r = n < 0 ? (int)n : write_all(to, buffer, (size_t)n);

        if (r < 0)
            return r;
        if (n > 0)
            continue;
        if (unpack_damage(unpack) == UNPACK_SOUND)
            return 0;
        r = write_gap(to);
        if (r < 0 || !resume || !unpack_resume(unpack))
            return r;
    }
}

int now_keep_unpacked(int fd, bool resume, int *ret_fd)
{
    _cleanup_(unpack_freep) struct unpack *unpack = NULL;
    _cleanup_fd_ int from = fd, to = open_nameless();
    int r;

    if (to < 0)
        return to;
    r = unpack_new_fd(from, NULL, 0, &unpack);
    if (r < 0)
        return r;
    r = unpack_to(unpack, to, resume);
    if (r < 0)
        return r;
    if (lseek(to, 0, SEEK_SET) < 0)
        return -errno;
    *ret_fd = fd_take(&to);
    return 0;
}

_Noreturn static void run_snapshot(const char *socket, int trace, int sidecar)
{
    if (dup2(trace, STDOUT_FILENO) >= 0 && dup2(sidecar, STDERR_FILENO) >= 0)
        (void)execl("/proc/self/exe", "xentracectl", "--json", "--socket", socket, "snapshot", "-o",
                    "-", (char *)NULL);
    _exit(CHILD_NOT_RUN);
}

/* Why there is no snapshot: the sentence of the one who was to take it. */
static int refuse(int sidecar, char **ret_error)
{
    _cleanup_doc_ struct json_object *doc = NULL;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", sidecar);
    if (doc_read_file(path, &doc) < 0)
        return str_refuse(-EIO, ret_error,
                          "Cannot read what the flight recorder holds. See: xentracectl status");
    return str_refuse(
        -EIO, ret_error, "%s",
        doc_text(doc, "message", doc_text(doc, "snapshot.message", "No reason given.")));
}

int now_take(const char *socket, int *ret_trace, int *ret_sidecar, char **ret_error)
{
    _cleanup_fd_ int sidecar = open_nameless(), trace = -1;
    int fds[2], status = 0, code, r;
    pid_t pid;

    if (sidecar < 0)
        return sidecar;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    (void)fcntl(fds[0], F_SETPIPE_SZ, 1 << 20); /* fewer turns, if it is allowed */
    pid = fork();
    if (pid == 0)
        run_snapshot(socket, fds[1], sidecar);
    (void)close(fds[1]);
    if (pid < 0) {
        r = -errno;
        (void)close(fds[0]);
        return r;
    }
    r = now_keep_pipe(fds[0], &trace);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (r < 0)
        return r;
    code = child_exit_code(status);
    if (code != CTL_OK && code != CTL_SHORTER)
        return refuse(sidecar, ret_error);
    *ret_trace = fd_take(&trace);
    *ret_sidecar = fd_take(&sidecar);
    return 0;
}

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
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/record.h"
#include "common/units.h"
#include "common/unpack.h"
#include "common/util.h"
#include "common/write-all.h"
#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/str.h"

#define COPY_BYTES (256u * 1024u)

/* Free space is looked at before each of these. */
#define STEP_BYTES (UINT64_C(16) << 20)
/* What stays free: a tenth of the disk, or this. */
#define RESERVE_MAX_BYTES (UINT64_C(1) << 30)
/* More bytes in a row that are no window are no torn window. */
#define DEBRIS_MAX_BYTES (UINT64_C(1) << 20)

static const char *folder(void)
{
    const char *named = getenv("TMPDIR");

    return named && *named ? named : "/var/tmp";
}

static int open_nameless(void)
{
    int fd = open(folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : fd;
}

/* --- Keeping. --- */

/* A copy of a trace in a file without a name. */
struct keep {
    int fd;
    const char *name; /* of the trace, for people */
    uint64_t written;
    uint64_t checked; /* up to there, there was room for it */
    bool resume;
    bool has_ended; /* something came that is no window, and nothing after it is wanted */

    uint8_t head[WINDOW_HEADER_BYTES]; /* of the next window */
    size_t nr_head;
    uint32_t window_left; /* bytes of the window that are still to come */
    uint64_t debris;      /* bytes that were no window since the last one */
};

static int keep_refuse_full(const struct keep *keep, uint64_t available, uint64_t reserve,
                            char **ret_error)
{
    char needed[UNITS_TEXT_MAX], left[UNITS_TEXT_MAX], kept[UNITS_TEXT_MAX];

    return str_refuse(
        -ENOSPC, ret_error,
        "Reading %s takes a temporary file of more than %s, for which %s has no room: "
        "it has %s left, of which %s stay free. Name another folder: TMPDIR=FOLDER",
        keep->name, size_format(needed, keep->written), folder(), size_format(left, available),
        size_format(kept, reserve));
}

static int keep_write(struct keep *keep, const void *p, size_t bytes, char **ret_error)
{
    struct statvfs status;
    int r;

    if (keep->written + bytes > keep->checked && fstatvfs(keep->fd, &status) == 0) {
        uint64_t available = (uint64_t)status.f_bavail * status.f_frsize;
        uint64_t reserve =
            min_u64((uint64_t)status.f_blocks * status.f_frsize / 10, RESERVE_MAX_BYTES);

        if (available < reserve + STEP_BYTES + bytes)
            return keep_refuse_full(keep, available, reserve, ret_error);
        keep->checked = keep->written + bytes + STEP_BYTES;
    }
    r = write_all(keep->fd, p, bytes);
    if (r < 0 && r != -ENOMEM) {
        errno = -r;
        return str_refuse(r, ret_error, "Cannot write a temporary file to %s: %m.", folder());
    }
    keep->written += bytes;
    return r;
}

/* The first byte of `head` is of no window. */
static int keep_drop_byte(struct keep *keep, char **ret_error)
{
    int r = keep->debris < DEBRIS_MAX_BYTES ? keep_write(keep, keep->head, 1, ret_error) : 0;

    keep->debris++;
    keep->nr_head--;
    memmove(keep->head, keep->head + 1, keep->nr_head);
    return r;
}

/* Of the BYTES at P, those that cannot begin a window. */
static size_t count_debris(const uint8_t *p, size_t bytes)
{
    static const uint32_t header = WINDOW_HEADER;
    const uint8_t *found = memmem(p, bytes, &header, sizeof(header));

    if (found)
        return (size_t)(found - p);
    return bytes - min_u64(bytes, sizeof(header) - 1);
}

/* Adds BYTES of the content: whole windows as they are, of what is none, little. */
static int keep_add(struct keep *keep, const uint8_t *p, size_t bytes, char **ret_error)
{
    int r = 0;

    while (bytes > 0 && !keep->has_ended && r >= 0) {
        size_t length = min_u64(bytes, keep->window_left);
        struct window_header header;

        if (keep->window_left > 0) {
            r = keep_write(keep, p, length, ret_error);
            keep->window_left -= (uint32_t)length;
        } else if (keep->debris > 0 && keep->nr_head == 0 && count_debris(p, bytes) > 0) {
            length = count_debris(p, bytes);
            if (keep->debris < DEBRIS_MAX_BYTES)
                r = keep_write(keep, p, min_u64(length, DEBRIS_MAX_BYTES - keep->debris),
                               ret_error);
            keep->debris += length;
        } else {
            length = min_u64(bytes, sizeof(keep->head) - keep->nr_head);
            memcpy(keep->head + keep->nr_head, p, length);
            keep->nr_head += length;
        }
        p += length;
        bytes -= length;
        if (r < 0 || keep->nr_head < sizeof(keep->head))
            continue;
        if (window_parse(keep->head, &header)) {
            r = keep_write(keep, keep->head, sizeof(keep->head), ret_error);
            keep->window_left = header.bytes;
            keep->nr_head = 0;
            keep->debris = 0;
        } else if (keep->resume) {
            r = keep_drop_byte(keep, ret_error);
        } else {
            keep->has_ended = true;
        }
    }
    return r;
}

/* Of frames that could not be unpacked: this is no window, so that repair marks the gap. */
static int keep_end_part(struct keep *keep, bool is_damaged, char **ret_error)
{
    static const uint8_t zeroes[4] = {0};
    int r = keep_write(keep, keep->head, keep->nr_head, ret_error);

    if (r >= 0 && (is_damaged || keep->has_ended))
        r = keep_write(keep, zeroes, sizeof(zeroes), ret_error);
    keep->nr_head = 0;
    keep->window_left = 0;
    return r;
}

static int keep_refuse_read(const struct keep *keep, int r, char **ret_error)
{
    if (r == -ENOMEM)
        return r;
    errno = -r;
    return str_refuse(r, ret_error, "Cannot read %s to its end: %m.", keep->name);
}

static int keep_unpack(struct keep *keep, struct unpack *unpack, char **ret_error)
{
    _cleanup_free_ char *buffer = malloc(COPY_BYTES);

    if (!buffer)
        return -ENOMEM;
    for (;;) {
        ssize_t n = unpack_read(unpack, buffer, COPY_BYTES);
        bool is_damaged = unpack_damage(unpack) != UNPACK_SOUND;
        int r;

        if (n < 0)
            return keep_refuse_read(keep, (int)n, ret_error);
        r = keep_add(keep, (const uint8_t *)buffer, (size_t)n, ret_error);
        if (r < 0)
            return r;
        if (n > 0 && !keep->has_ended)
            continue;
        r = keep_end_part(keep, is_damaged, ret_error);
        if (r < 0 || !is_damaged || !keep->resume || !unpack_resume(unpack))
            return r;
    }
}

static int keep_begin(struct keep *keep, char **ret_error)
{
    keep->fd = open_nameless();
    if (keep->fd >= 0)
        return 0;
    errno = -keep->fd;
    return str_refuse(keep->fd, ret_error, "Cannot write a temporary file to %s: %m.", folder());
}

static void keep_done(struct keep *keep)
{
    fd_close(&keep->fd);
}

static int keep_end(struct keep *keep, int *ret_fd)
{
    if (lseek(keep->fd, 0, SEEK_SET) < 0)
        return -errno;
    *ret_fd = fd_take(&keep->fd);
    return 0;
}

int now_keep_pipe(int fd, const char *name, int *ret_fd, char **ret_error)
{
    _cleanup_(keep_done) struct keep keep = {.fd = -1, .name = name};
    _cleanup_free_ char *buffer = malloc(COPY_BYTES);
    _cleanup_fd_ int from = fd;
    ssize_t n;
    int r;

    r = buffer ? keep_begin(&keep, ret_error) : -ENOMEM;
    if (r < 0)
        return r;
    while ((n = read(from, buffer, COPY_BYTES)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return keep_refuse_read(&keep, -errno, ret_error);
        r = keep_write(&keep, buffer, (size_t)n, ret_error);
        if (r < 0)
            return r;
    }
    return keep_end(&keep, ret_fd);
}

int now_keep_unpacked(int fd, bool resume, const char *name, int *ret_fd, char **ret_error)
{
    _cleanup_(keep_done) struct keep keep = {.fd = -1, .name = name, .resume = resume};
    _cleanup_(unpack_freep) struct unpack *unpack = NULL;
    _cleanup_fd_ int from = fd;
    struct stat before, after;
    int r;

    r = keep_begin(&keep, ret_error);
    if (r < 0)
        return r;
    r = fstat(from, &before) < 0 ? -errno : unpack_new_fd(from, NULL, 0, &unpack);
    if (r < 0)
        return keep_refuse_read(&keep, r, ret_error);
    r = keep_unpack(&keep, unpack, ret_error);
    if (r == -EIO && fstat(from, &after) == 0 && after.st_size < before.st_size) {
        free(*ret_error);
        return str_refuse(r, ret_error, "%s has become shorter while it was read.", name);
    }
    return r < 0 ? r : keep_end(&keep, ret_fd);
}

/* --- The flight recorder. --- */

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
    r = now_keep_pipe(fds[0], "the flight recorder", &trace, ret_error);
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

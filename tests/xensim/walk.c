// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file is read whole into memory: captures that are verified are of a few GB at most, and a
 * mapping would make a verifier of a file on a failing disk die of SIGBUS.
 */

#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/record.h"
#include "common/util.h"

#define PIECE_BYTES (UINT64_C(128) << 10)

/*
 * Reads FD to its end, into memory that grows; never fails half-way without telling. By small
 * pieces: where the kernel is not preempted, as it copies many MiB to pages that are touched for
 * the first time, nothing else runs, the collector of the next test neither (120 ms for 32 MiB in a
 * virtual machine).
 */
static int read_all(int fd, unsigned char **ret_data, size_t *ret_bytes)
{
    size_t room = 1 << 20, bytes = 0;
    unsigned char *data = malloc(room);

    while (data) {
        ssize_t n = read(fd, data + bytes, min_u64(room - bytes, PIECE_BYTES));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int r = -errno;

            free(data);
            return r;
        }
        if (n == 0) {
            *ret_data = data;
            *ret_bytes = bytes;
            return 0;
        }
        bytes += (size_t)n;
        if (bytes == room) {
            unsigned char *more = realloc(data, room *= 2);

            if (!more)
                free(data);
            data = more;
        }
    }
    return -ENOMEM;
}

/* The read end of `zstd -dc PATH`. */
static int open_zstd(const char *path, pid_t *ret_pid)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO); /* a failure shows as an empty file */
        (void)execlp("zstd", "zstd", "-dcq", "--", path, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    if (pid < 0)
        return fd_close(&ends[0]), -EAGAIN;
    *ret_pid = pid;
    return ends[0];
}

int walk_open(const char *path, struct walk_file *ret_file)
{
    size_t length = strlen(path);
    _cleanup_fd_ int fd = -1;
    unsigned char *data = NULL;
    struct walk_file file = {0};
    pid_t pid = 0;
    int status = 0, r;

    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (length > 4 && strcmp(path + length - 4, ".zst") == 0) {
        fd_close(&fd);
        fd = open_zstd(path, &pid);
        if (fd < 0)
            return fd;
    }
    r = read_all(fd, &data, &file.bytes);
    if (pid && (waitpid(pid, &status, 0) < 0 || status) && r == 0) {
        free(data);
        return -EIO;
    }
    if (r < 0)
        return r;
    file.data = data;
    *ret_file = file;
    return 0;
}

void walk_close(struct walk_file *file)
{
    free((void *)(uintptr_t)file->data);
    file->data = NULL;
}

static int fail(struct walk_file *file, const char *rule, const char *error)
{
    file->rule = rule;
    file->error = error;
    return -EBADMSG;
}

static bool is_zero(const unsigned char *p, size_t bytes)
{
    return bytes && p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0;
}

int walk_next(struct walk_file *file, struct walk_window *ret_window)
{
    struct window_header header;
    size_t left = file->bytes - file->offset;

    if (left == 0)
        return 0;
    if (is_zero(file->data + file->offset, left))
        return fail(file, "zeroes", "nothing but zeroes from here to the end");
    if (left < sizeof(header))
        return fail(file, "truncated", "the file ends inside a cpu_change");
    memcpy(&header, file->data + file->offset, sizeof(header));
    if (header.header != WINDOW_HEADER)
        return fail(file, "cpu-change", "no cpu_change where one must be");
    if (header.bytes > left - sizeof(header))
        return fail(file, "truncated", "the file ends inside a window");
    if (header.bytes & 3)
        return fail(file, "window-size", "the size of the window is no multiple of 4");
    *ret_window = (struct walk_window){
        .offset = file->offset,
        .cpu = header.cpu,
        .bytes = header.bytes,
        .records = file->data + file->offset + sizeof(header),
    };
    file->offset += sizeof(header) + header.bytes;
    return 1;
}

int walk_record(const struct walk_window *window, uint32_t *offset, uint32_t *ret_record,
                uint32_t *ret_bytes)
{
    uint32_t left = window->bytes - *offset;
    uint32_t bytes;

    if (left == 0)
        return 0;
    memcpy(ret_record, window->records + *offset, sizeof(*ret_record));
    bytes = record_bytes(ret_record[0]);
    if (bytes > left || record_event(ret_record[0]) == TRC_TRACE_CPU_CHANGE)
        return -EBADMSG;
    memcpy(ret_record, window->records + *offset, bytes);
    *offset += bytes;
    *ret_bytes = bytes;
    return 1;
}

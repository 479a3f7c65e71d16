// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One job at a time, so that a slow disk makes no queue: of several contents that come meanwhile
 * the last one is written. There is no fsync(2): a file that a crash of the host leaves empty or
 * old costs the limits at most what was used since.
 */

#include "daemon/session/usage-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "common/write-all.h"
#include "daemon/base/log.h"
#include "daemon/base/worker.h"

#define NEW_FILE "." USAGE_FILE ".new"

struct usage_job;

struct usage_file {
    struct worker *worker;
    int directory_fd;
    size_t max_bytes;
    void (*loaded)(void *userdata, const void *bytes_untrusted, size_t length);
    void *userdata;
    struct usage_job *job; /* under way */
    void *next;            /* to be written after it; NULL: nothing */
    size_t next_length;
    bool has_warned;
};

struct usage_job {
    struct job job;
    struct usage_file *file; /* NULL: freed */
    int directory_fd;        /* its own */
    bool reads;
    void *bytes;
    size_t length; /* in: of the buffer, if it reads */
    int error;
};

/* --- The worker's thread. --- */

static ssize_t read_usage(int directory_fd, char *bytes, size_t max_bytes)
{
    _cleanup_fd_ int fd =
        openat(directory_fd, USAGE_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    size_t length = 0;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (uint64_t)st.st_size > max_bytes)
        return -EBADMSG;
    while (length < max_bytes) {
        ssize_t n = read(fd, bytes + length, max_bytes - length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        length += (size_t)n;
    }
    return (ssize_t)length;
}

static int write_usage(int directory_fd, const void *bytes, size_t length)
{
    _cleanup_fd_ int fd = -1;
    int r;

    (void)unlinkat(directory_fd, NEW_FILE, 0); /* of a daemon that was killed; there may be none */
    fd = openat(directory_fd, NEW_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    r = write_all(fd, bytes, length);
    if (r >= 0 && renameat(directory_fd, NEW_FILE, directory_fd, USAGE_FILE) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(directory_fd, NEW_FILE, 0);
    return r;
}

static void usage_run(struct job *base)
{
    struct usage_job *job = job_container(base, struct usage_job, job);

    if (job->reads) {
        ssize_t length = read_usage(job->directory_fd, job->bytes, job->length);

        job->length = length > 0 ? (size_t)length : 0;
    } else {
        job->error = write_usage(job->directory_fd, job->bytes, job->length);
    }
    fd_close(&job->directory_fd);
}

/* --- The main thread. --- */

static void usage_done(struct job *base);

/* Takes over BYTES, also if it fails. */
static int usage_send(struct usage_file *file, bool reads, void *bytes, size_t length)
{
    struct usage_job *job = calloc(1, sizeof(*job));

    if (!job) {
        free(bytes);
        return -ENOMEM;
    }
    *job = (struct usage_job){
        .job = {.run = usage_run, .done = usage_done},
        .file = file,
        .directory_fd = fcntl(file->directory_fd, F_DUPFD_CLOEXEC, 3),
        .reads = reads,
        .bytes = bytes,
        .length = length,
    };
    if (job->directory_fd < 0) {
        free(bytes);
        free(job);
        return -errno;
    }
    file->job = job;
    worker_send(file->worker, &job->job);
    return 0;
}

static void usage_warn(struct usage_file *file, int error)
{
    if (error >= 0 || file->has_warned)
        return;
    file->has_warned = true;
    log_warning("Cannot write %s in the state directory: %s. What users have used of their limits "
                "in the last 24 hours is forgotten when xentraced is restarted.",
                USAGE_FILE, strerror(-error));
}

static void usage_done(struct job *base)
{
    struct usage_job *job = job_container(base, struct usage_job, job);
    struct usage_file *file = job->file;
    void *next;

    if (file) {
        file->job = NULL;
        if (job->reads)
            file->loaded(file->userdata, job->bytes, job->length);
        else
            usage_warn(file, job->error);
        next = TAKE_PTR(file->next);
        if (next && file->job)
            file->next = next; /* LOADED has begun to write */
        else if (next)
            usage_warn(file, usage_send(file, false, next, file->next_length));
    }
    free(job->bytes);
    free(job);
}

void usage_file_write(struct usage_file *file, void *bytes, size_t length)
{
    if (!file->job) {
        usage_warn(file, usage_send(file, false, bytes, length));
        return;
    }
    free(file->next);
    file->next = bytes;
    file->next_length = length;
}

int usage_file_new(struct workers *workers, int directory_fd, size_t max_bytes,
                   void (*loaded)(void *userdata, const void *bytes_untrusted, size_t length),
                   void *userdata, struct usage_file **ret_file)
{
    struct usage_file *file = calloc(1, sizeof(*file));
    void *bytes = malloc(max_bytes);
    int r = -ENOMEM;

    if (file)
        file->directory_fd = -1;
    if (file && bytes) {
        *file = (struct usage_file){.directory_fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 3),
                                    .max_bytes = max_bytes,
                                    .loaded = loaded,
                                    .userdata = userdata};
        r = file->directory_fd < 0 ? -errno : worker_new(workers, "usage", &file->worker);
    }
    if (r >= 0)
        r = usage_send(file, true, TAKE_PTR(bytes), max_bytes);
    free(bytes);
    if (r < 0) {
        (void)usage_file_free(file);
        return r;
    }
    *ret_file = file;
    return 0;
}

struct usage_file *usage_file_free(struct usage_file *file)
{
    if (!file)
        return NULL;
    if (file->job)
        file->job->file = NULL;
    if (file->next && usage_send(file, false, TAKE_PTR(file->next), file->next_length) >= 0)
        file->job->file = NULL;
    free(file->next);
    (void)worker_free(file->worker); /* ends when its jobs are done */
    fd_close(&file->directory_fd);
    free(file);
    return NULL;
}

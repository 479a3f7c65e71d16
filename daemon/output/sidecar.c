// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Temporary name, fsync(), rename(): a sidecar is the old one or the new one, never half of one.
 * The first one of a capture takes its name as a capture does, and never replaces another's.
 */

#include "daemon/output/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "common/protocol.h"
#include "common/sidecar-path.h"
#include "common/util.h"
#include "common/write-all.h"
#include "daemon/output/disk-call.h"
#include "daemon/output/live-files.h"
#include "daemon/output/place.h"

void sidecar_init(struct sidecar *sidecar)
{
    *sidecar = (struct sidecar){.directory_fd = -1, .fd = -1};
}

void sidecar_done(struct sidecar *sidecar, struct worker *worker)
{
    if (worker)
        worker_close(worker, &sidecar->fd);
    free_charp(&sidecar->path);
    free_charp(&sidecar->name);
}

int sidecar_adopt(struct sidecar *sidecar, int fd, const char *output_path, struct failure *failure)
{
    if (fd < 0)
        return 0;
    sidecar->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (sidecar->fd < 0)
        return failure_set(failure, -errno, ERROR_OUTPUT, "Out of descriptors.");
    sidecar->path = sidecar_path_of(output_path);
    if (!sidecar->path)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    return 0;
}

int sidecar_name(struct sidecar *sidecar, int directory_fd, const char *directory, const char *name)
{
    sidecar_done(sidecar, NULL);
    sidecar->is_ours = false;
    sidecar->directory_fd = directory_fd;
    sidecar->name = strdup(name);
    if (!sidecar->name)
        return -ENOMEM;
    if (asprintf(&sidecar->path, "%s/%s.json", directory, name) < 0) {
        sidecar->path = NULL;
        return -ENOMEM;
    }
    return 0;
}

/* --- On the worker. --- */

int sidecar_check_none(int directory_fd, const char *directory, const char *name,
                       struct failure *failure)
{
    char file[NAME_MAX + 1];

    (void)snprintf(file, sizeof(file), "%s.json", name);
    if (faccessat(directory_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    /* Its trace may have been moved away. */
    return failure_set(
        failure, -EEXIST, ERROR_NAME_IN_USE,
        "%s/%s exists, and sidecars are never overwritten. Choose another name, or omit the name.",
        directory, file);
}

/* TEMPORARY is the worker's alone: of two sidecars of one name, both are whole. */
static int write_temporary(int directory_fd, const char *temporary, const char *text, size_t bytes,
                           bool is_last, struct live_file *live)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    _cleanup_fd_ int fd = -1;
    int r;

    live_files_lock();
    r = DISK_CALL(fd = openat(directory_fd, temporary, flags, 0640));
    if (r >= 0)
        r = live_file_enter(live, fd);
    live_files_unlock();
    if (r < 0)
        return r;
    if (!is_last) /* room for a longer one, see write_in_place() */
        (void)DISK_CALL(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)(2 * bytes)));
    r = write_all(fd, text, bytes);
    if (r < 0)
        return r;
    return DISK_SYNC(fd);
}

static int replace_file(int directory_fd, const char *temporary, const char *name)
{
    return DISK_CALL(renameat(directory_fd, temporary, directory_fd, name));
}

/* One pwrite() from the start; what is left of a longer old text is cut off afterwards. */
static int overwrite(int fd, const char *text, size_t bytes)
{
    ssize_t n;
    int r;

    r = DISK_CALL(n = pwrite(fd, text, bytes, 0));
    if (r < 0)
        return r;
    if ((size_t)n != bytes)
        return -ENOSPC;
    r = DISK_CALL(ftruncate(fd, (off_t)bytes));
    return r < 0 ? r : DISK_SYNC(fd);
}

/*
 * The disk is full. The old one has the blocks, but is lost if the host dies now: better than one
 * that says for ever that the capture is running.
 */
static int write_in_place(int directory_fd, const char *name, const char *text, size_t bytes)
{
    _cleanup_fd_ int fd = -1;
    int r;

    r = DISK_CALL(fd = openat(directory_fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    return r < 0 ? r : overwrite(fd, text, bytes);
}

/* IS_OURS: NAME.json may be replaced. */
static int write_own(int directory_fd, const char *stem, const char *text, size_t bytes,
                     bool is_ours, bool is_last)
{
    _cleanup_(live_file_leave) struct live_file live = {0};
    char name[NAME_MAX + 1], temporary[NAME_MAX + 1];
    int r;

    (void)snprintf(name, sizeof(name), "%s.json", stem);
    (void)snprintf(temporary, sizeof(temporary), ".%s.%d.json.new", stem, (int)gettid());
    r = write_temporary(directory_fd, temporary, text, bytes, is_last, &live);
    if (r >= 0 && is_ours)
        r = replace_file(directory_fd, temporary, name);
    else if (r >= 0)
        r = place_file(directory_fd, temporary, name);
    if (r < 0) {
        /* Swept at the next start if it stays. */
        (void)DISK_CALL(unlinkat(directory_fd, temporary, 0));
        if (is_last && is_ours && (r == -ENOSPC || r == -EDQUOT))
            return write_in_place(directory_fd, name, text, bytes);
        return r;
    }
    /* After an answer a power cut must not bring the old one back. */
    return is_last ? DISK_CALL(fsync(directory_fd)) : 0;
}

struct sidecar_job {
    struct job job;
    struct json_object *document; /* owns `text` */
    const char *text;             /* NULL: remove it */
    size_t bytes;
    bool is_ours;
    bool is_last;
    int directory_fd; /* lent */
    char *name;       /* NULL: a client's, in `fd` */
    int fd;
    int error;
    void (*done)(void *userdata, int error);
    void *userdata;
};

static void sidecar_run_job(struct job *job)
{
    struct sidecar_job *sidecar = job_container(job, struct sidecar_job, job);
    char file[NAME_MAX + 1];

    if (sidecar->name && sidecar->text) {
        sidecar->error = write_own(sidecar->directory_fd, sidecar->name, sidecar->text,
                                   sidecar->bytes, sidecar->is_ours, sidecar->is_last);
    } else if (sidecar->text) {
        sidecar->error = overwrite(sidecar->fd, sidecar->text, sidecar->bytes);
    } else {
        (void)snprintf(file, sizeof(file), "%s.json", sidecar->name);
        (void)DISK_CALL(unlinkat(sidecar->directory_fd, file, 0)); /* there may be none */
    }
    fd_close(&sidecar->fd);
}

static void sidecar_finish_job(struct job *job)
{
    struct sidecar_job *sidecar = job_container(job, struct sidecar_job, job);

    if (sidecar->done)
        sidecar->done(sidecar->userdata, sidecar->error);
    json_object_put(sidecar->document);
    free(sidecar->name);
    free(sidecar);
}

/* --- Main thread. --- */

/* A job for SIDECAR that keeps what it needs of it; takes over DOCUMENT on success. */
static int sidecar_job_new(const struct sidecar *sidecar, struct sidecar_job **ret_job)
{
    struct sidecar_job *job = calloc(1, sizeof(*job));

    if (!job)
        return -ENOMEM;
    job->job = (struct job){.run = sidecar_run_job, .done = sidecar_finish_job};
    job->is_ours = sidecar->is_ours;
    job->directory_fd = sidecar->directory_fd;
    job->fd = sidecar->fd >= 0 ? fcntl(sidecar->fd, F_DUPFD_CLOEXEC, 3) : -1;
    job->name = sidecar->fd < 0 ? strdup(sidecar->name) : NULL;
    if (job->fd < 0 && !job->name) {
        free(job);
        return -ENOMEM;
    }
    *ret_job = job;
    return 0;
}

int sidecar_write(const struct sidecar *sidecar, struct worker *worker,
                  struct json_object *document, bool is_last,
                  void (*done)(void *userdata, int error), void *userdata)
{
    struct sidecar_job *job;
    size_t bytes;
    const char *text;
    int r;

    text = json_object_to_json_string_length(
        document, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE, &bytes);
    r = text ? sidecar_job_new(sidecar, &job) : -ENOMEM;
    if (r < 0) {
        json_object_put(document);
        return r;
    }
    job->document = document;
    job->text = text;
    job->bytes = bytes;
    job->is_last = is_last;
    job->done = done;
    job->userdata = userdata;
    worker_send(worker, &job->job);
    return 0;
}

void sidecar_remove(const struct sidecar *sidecar, struct worker *worker)
{
    struct sidecar_job *job;

    /* Without memory for it the file stays: it shows a session that did not start. */
    if (sidecar->name && sidecar->fd < 0 && sidecar->is_ours && sidecar_job_new(sidecar, &job) >= 0)
        worker_send(worker, &job->job);
}

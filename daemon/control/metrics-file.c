// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The directory or its parent (Debian's belongs to prometheus) may belong to another user, who must
 * not redirect our writes: the new file is created with O_EXCL in the opened directory, and rename
 * replaces a link, not its target. node_exporter reads only files that end in ".prom", and
 * therefore ignores the new file. There is no fsync, because after a crash of the host the figures
 * are worthless.
 *
 * While a job is under way (the file system does not answer), none is added.
 */

#include "daemon/control/metrics-file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "common/metrics.h"
#include "common/units.h"
#include "common/util.h"
#include "common/write-all.h"
#include "daemon/base/log.h"
#include "daemon/base/worker.h"
#include "daemon/control/status.h"
#include "daemon/manager.h"

#define INTERVAL_USEC  (15 * USEC_PER_SEC) /* Prometheus' usual scrape_interval */
#define ACCURACY_USEC  USEC_PER_SEC
#define LAST_WAIT_NSEC 500000000

struct metrics_file {
    struct manager *manager;
    const char *path;
    struct workers *workers;
    struct worker *worker;
    sd_event_source *timer;
    bool has_failed;
};

struct metrics_job {
    struct job job;
    struct metrics_file *file; /* of `done` only */
    char *path;
    char *text;
    sem_t *is_over; /* NULL: nobody waits */
    int error;
};

/* --- On the worker. --- */

static int make_file(int directory_fd, const char *name, const char *text)
{
    _cleanup_fd_ int fd = -1;

    if (unlinkat(directory_fd, name, 0) < 0 && errno != ENOENT)
        return -errno;
    fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || fchmod(fd, 0644) < 0) /* whatever the umask: others are to read it */
        return -errno;
    return write_all(fd, text, strlen(text));
}

static int replace_file(const char *path, const char *text)
{
    const char *slash = strrchr(path, '/'), *name = slash + 1; /* it begins with one */
    char directory[PATH_MAX], temporary[NAME_MAX + 1];
    _cleanup_fd_ int directory_fd = -1;
    int r;

    if (snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path + 1), path) >=
            (int)sizeof(directory) ||
        snprintf(temporary, sizeof(temporary), ".%s.new", name) >= (int)sizeof(temporary))
        return -ENAMETOOLONG;
    directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd < 0)
        return -errno;
    r = make_file(directory_fd, temporary, text);
    if (r >= 0 && renameat(directory_fd, temporary, directory_fd, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(directory_fd, temporary, 0); /* the next one removes it if it stays */
    return r;
}

static void metrics_file_run(struct job *job)
{
    struct metrics_job *metrics = job_container(job, struct metrics_job, job);

    metrics->error = replace_file(metrics->path, metrics->text);
    if (metrics->is_over)
        (void)sem_post(metrics->is_over); /* cannot overflow: once */
}

/* --- Main thread. --- */

static void metrics_file_report(struct metrics_file *file, int error)
{
    if (error < 0 && !file->has_failed)
        log_warning("Cannot write metrics to %s: %s. The directory must exist and be listed in "
                    "ReadWritePaths= of the unit.",
                    file->path, strerror(-error));
    else if (error >= 0 && file->has_failed)
        log_info("Metrics are written to %s again.", file->path);
    file->has_failed = error < 0;
}

static void metrics_file_finish(struct job *job)
{
    struct metrics_job *metrics = job_container(job, struct metrics_job, job);

    if (metrics->file)
        metrics_file_report(metrics->file, metrics->error);
    free(metrics->path);
    free(metrics->text);
    free(metrics);
}

/* Takes TEXT over, which may be NULL. */
static void metrics_file_send(struct metrics_file *file, char *text, sem_t *is_over)
{
    struct metrics_job *metrics = calloc(1, sizeof(*metrics));

    if (metrics)
        metrics->path = strdup(file->path);
    if (!text || !metrics || !metrics->path) {
        if (metrics)
            free(metrics->path);
        free(metrics);
        free(text);
        return; /* no memory now: the next time there may be */
    }
    metrics->job = (struct job){.run = metrics_file_run, .done = metrics_file_finish};
    metrics->file = is_over ? NULL : file;
    metrics->text = text;
    metrics->is_over = is_over;
    worker_send(file->worker, &metrics->job);
}

static void metrics_file_write(struct metrics_file *file)
{
    struct json_object *status;
    char *text = NULL;

    if (!workers_are_idle(file->workers))
        return;
    status = status_document(file->manager);
    (void)metrics_render(status, &text); /* without memory there is no text */
    json_object_put(status);
    metrics_file_send(file, text, NULL);
}

static int metrics_file_handle_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    (void)usec;
    metrics_file_write(userdata);
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time_relative(source, INTERVAL_USEC);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

static int metrics_file_set_up(struct metrics_file *file)
{
    int r;

    r = workers_new(file->manager->event, &file->workers);
    if (r < 0)
        return r;
    r = worker_new(file->workers, "metrics", &file->worker);
    if (r < 0)
        return r;
    return sd_event_add_time_relative(file->manager->event, &file->timer, CLOCK_MONOTONIC, 0,
                                      ACCURACY_USEC, metrics_file_handle_timer, file);
}

int metrics_file_new(struct manager *manager, const char *path, struct metrics_file **ret_file)
{
    struct metrics_file *file;
    int r;

    *ret_file = NULL;
    if (!path[0])
        return 0;
    file = calloc(1, sizeof(*file));
    if (!file)
        return -ENOMEM;
    file->manager = manager;
    file->path = path;
    r = metrics_file_set_up(file);
    if (r < 0) {
        metrics_file_free(file);
        return r;
    }
    *ret_file = file;
    return 0;
}

static void metrics_file_write_last(struct metrics_file *file)
{
    static sem_t is_over; /* outlives a job that hangs */
    struct timespec end;

    if (sem_init(&is_over, 0, 0) < 0)
        return;
    (void)clock_gettime(CLOCK_MONOTONIC, &end); /* cannot fail for this clock */
    end.tv_nsec += LAST_WAIT_NSEC;
    if (end.tv_nsec >= (long)NSEC_PER_SEC) {
        end.tv_nsec -= (long)NSEC_PER_SEC;
        end.tv_sec++;
    }
    metrics_file_send(file, strdup(metrics_of_none()), &is_over);
    (void)sem_clockwait(&is_over, CLOCK_MONOTONIC, &end); /* or it is too late */
}

struct metrics_file *metrics_file_free(struct metrics_file *file)
{
    if (!file)
        return NULL;
    sd_event_source_disable_unref(file->timer);
    if (file->timer)
        metrics_file_write_last(file);
    worker_free(file->worker);
    if (file->workers)
        (void)workers_free(file->workers); /* a job that hangs is abandoned */
    free(file);
    return NULL;
}

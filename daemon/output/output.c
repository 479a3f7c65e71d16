// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each kind of request has a job of its own in the output, so that no request can fail for want of
 * memory. A request's arguments are in its job: an earlier job may be running when the request
 * comes. Between worker_send() and the job's `done` the file is the worker's; what the main thread
 * shows is copied when the job is done.
 */

#include "daemon/output/output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/protocol.h"
#include "daemon/base/name.h"
#include "daemon/output/disk-call.h"
#include "daemon/output/passed-file.h"
#include "daemon/output/sidecar.h"

bool output_is_busy(const struct output *output, enum output_operation operation)
{
    return output->under_way >> operation & 1;
}

void output_forget(struct output *output, enum output_operation operation)
{
    output->jobs[operation].done = NULL; /* only the main thread looks at it */
}

/* --- The way to the worker and back. --- */

/* On the worker, when an operation is over. */
static void output_note_figures(struct output_job *job)
{
    struct output_file *file = &job->output->file;

    job->figures = (struct output_figures){
        .path = file->path ? strdup(file->path) : NULL,
        .fd = file->fd,
        .is_stream = file->is_stream,
        .is_direct = file->is_direct,
        .is_final = file->is_final,
        .is_published = file->is_published,
        .ran_out = file->ran_out,
        .granted_bytes = file->granted_bytes,
        .reserve_bytes = file->reserve_bytes,
        .headroom_bytes = file->fd >= 0 && !file->is_stream
                              ? output_file_headroom_bytes(file, job->output->written_bytes)
                              : 0,
        .next_step_bytes = output_file_step_bytes(file),
    };
}

static void output_take_figures(struct output *output, struct output_figures *figures)
{
    if (!figures->path) /* not open; or no memory: then the path stays as it was */
        figures->path = TAKE_PTR(output->figures.path);
    free(output->figures.path);
    output->figures = *figures;
}

static void output_handle_done(struct job *job)
{
    struct output_job *output_job = job_container(job, struct output_job, job);
    struct output *output = output_job->output;
    size_t operation = (size_t)(output_job - output->jobs);

    output->under_way &= ~(UINT32_C(1) << operation);
    free_charp(&output_job->name);
    output_take_figures(output, &output_job->figures);
    if (output_job->done && !output->is_released)
        output_job->done(output->userdata, output_job->error, &output_job->failure);
}

/* JOB is what the request asks for, and its `done`. */
static void output_send(struct output *output, enum output_operation operation,
                        void (*run)(struct job *job), const struct output_job *job)
{
    struct output_job *output_job = &output->jobs[operation];

    assert(!output_is_busy(output, operation) && !output->is_closed);
    output->under_way |= UINT32_C(1) << operation;
    *output_job = *job;
    output_job->job = (struct job){.run = run, .done = output_handle_done};
    output_job->output = output;
    worker_send(output->worker, &output_job->job);
}

static struct output_job *output_job_of(struct job *job)
{
    return job_container(job, struct output_job, job);
}

/* --- Opening. --- */

/* Under NAME, or, if that is in use and another will do, under NAME-002 and so on. */
static int output_create(struct output *output, struct failure *failure)
{
    const struct output_request *request = &output->request;
    unsigned int max = request->number_max ? request->number_max : NAME_NUMBER_MAX;
    unsigned int last = request->may_rename ? max : 1;
    int r = -EEXIST;

    for (unsigned int i = 1; i <= last && r == -EEXIST; i++) {
        if (i > 1)
            name_number(output->request_name, i, output->name);
        free_charp(&output->file.path);
        r = output_file_create(&output->file, request->directory_fd, request->directory,
                               output->name, request->naming, request->check, failure);
    }
    return r;
}

/* The sidecar first: it takes no space. */
static int output_adopt(struct output *output, struct failure *failure)
{
    const struct output_request *request = &output->request;
    int r;

    if (output->sidecar_path) {
        r = passed_file_check_sidecar(output->sidecar_fd, output->sidecar_path, request->by_root,
                                      failure);
        if (r < 0) {
            output->file.fd = request->fd; /* to be closed, here */
            return r;
        }
    }
    return output_file_adopt(&output->file, request->fd, output->request_path, request->by_root,
                             failure);
}

static int output_open_file(struct output *output, struct failure *failure)
{
    const struct output_request *request = &output->request;
    struct output_file *file = &output->file;
    int r;

    if (request->is_adopted)
        r = output_adopt(output, failure);
    else
        r = output_create(output, failure);
    if (r < 0)
        return r;
    file->aim_bytes = request->aim_bytes;
    if (!request->require_bytes || file->is_stream)
        return 0;
    r = output_file_require(file, request->require_bytes, failure);
    if (r < 0 && !request->is_adopted)
        output_file_remove(file, request->directory_fd);
    return r;
}

/*
 * A file that could not be opened as it was asked for is closed: there is nothing to remove. A
 * client's only after the answer, with output_close(), as its file system may not answer: that may
 * be why it was refused.
 */
static int output_open(struct output *output, struct failure *failure)
{
    int r = output_open_file(output, failure);

    if (r >= 0)
        return r;
    if (output->request.is_adopted)
        output->refused_fd = fd_take(&output->file.fd);
    output_file_done(&output->file);
    return r;
}

static void output_run_open(struct job *job)
{
    struct output_job *output_job = output_job_of(job);

    output_job->error = output_open(output_job->output, &output_job->failure);
    if (output_job->error >= 0)
        output_job->failure.name = NULL; /* of names that were in use */
    output_note_figures(output_job);
}

static int output_copy_request(struct output *output, const struct output_request *request)
{
    output->request = *request;
    if (!request->is_adopted) {
        output->request_name = strdup(request->name);
        if (!output->request_name)
            return -ENOMEM;
        (void)snprintf(output->name, sizeof(output->name), "%s", request->name);
        return 0;
    }
    output->request_path = strdup(request->path);
    if (!output->request_path)
        return -ENOMEM;
    if (request->sidecar && request->sidecar->fd >= 0) {
        output->sidecar_fd = request->sidecar->fd;
        output->sidecar_path = strdup(request->sidecar->path);
        if (!output->sidecar_path)
            return -ENOMEM;
    }
    output->request.fd = fcntl(request->fd, F_DUPFD_CLOEXEC, 3);
    return output->request.fd < 0 ? -errno : 0;
}

static void output_destroy(struct output *output)
{
    output_file_done(&output->file);
    free(output->figures.path);
    free(output->request_name);
    free(output->request_path);
    free(output->sidecar_path);
    free(output);
}

int output_new(struct worker *worker, const struct output_request *request, output_done_fn done,
               void *userdata, struct output **ret_output)
{
    struct output *output = calloc(1, sizeof(*output));
    int r;

    if (!output)
        return -ENOMEM;
    output->worker = worker;
    output->reserve_bytes = request->reserve_bytes;
    output->max_bytes = request->max_bytes;
    output->userdata = userdata;
    output->figures.fd = -1;
    output->refused_fd = -1;
    output_file_init(&output->file, request->reserve_bytes, request->max_bytes);
    output->file.is_packed = request->is_packed;
    output->file.is_buffered = request->is_buffered;
    output->file.keep_free = request->keep_free;
    output->file.aim_bytes =
        request->first_aim_bytes ? request->first_aim_bytes : request->aim_bytes;
    output->file.waits = request->waits;
    r = output_copy_request(output, request);
    if (r < 0) {
        output_destroy(output);
        return r;
    }
    output_send(output, OUTPUT_OPEN, output_run_open, &(struct output_job){.done = done});
    *ret_output = output;
    return 0;
}

/* --- Closing. --- */

/* It may wait, too: of a file system on a network, or in user space. */
static void output_run_close(struct job *job)
{
    struct output *output = output_job_of(job)->output;

    output_file_done(&output->file);
    fd_close(&output->refused_fd);
}

static void output_handle_closed(struct job *job)
{
    struct output *output = output_job_of(job)->output;

    output->under_way &= ~(UINT32_C(1) << OUTPUT_CLOSE);
    output->figures.fd = -1;
    if (output->is_released)
        output_destroy(output);
}

void output_close(struct output *output)
{
    struct output_job *output_job = &output->jobs[OUTPUT_CLOSE];

    if (output->is_closed)
        return;
    output->is_closed = true;
    output->under_way |= UINT32_C(1) << OUTPUT_CLOSE;
    *output_job = (struct output_job){
        .job = {.run = output_run_close, .done = output_handle_closed},
        .output = output,
    };
    worker_send(output->worker, &output_job->job);
}

struct output *output_free(struct output *output)
{
    if (!output)
        return NULL;
    output_close(output);
    output->is_released = true;
    if (!output_is_busy(output, OUTPUT_CLOSE))
        output_destroy(output);
    return NULL;
}

/* --- Requests. --- */

static void output_run_extend(struct job *job)
{
    struct output_job *output_job = output_job_of(job);
    struct output *output = output_job->output;
    struct output_file *file = &output->file;

    output->written_bytes = output_job->bytes;
    file->waits = output_job->waits;
    if (!output_job->min_headroom_bytes ||
        output_file_headroom_bytes(file, output->written_bytes) >= output_job->min_headroom_bytes)
        output_file_extend(file, output->written_bytes);
    output_note_figures(output_job);
}

void output_extend(struct output *output, uint64_t written_bytes, bool waits,
                   uint64_t min_headroom_bytes, output_done_fn done)
{
    const struct output_job job = {
        .done = done,
        .bytes = written_bytes,
        .waits = waits,
        .min_headroom_bytes = min_headroom_bytes,
    };

    output_send(output, OUTPUT_EXTEND, output_run_extend, &job);
}

static void output_run_publish(struct job *job)
{
    struct output_job *output_job = output_job_of(job);
    struct output *output = output_job->output;
    const struct output_request *request = &output->request;

    if (output_job->name)
        output_job->error = output_file_publish(&output->file, request->directory_fd,
                                                request->directory, output_job->name);
    else
        output_job->error = -ENOMEM;
    output_note_figures(output_job);
}

void output_publish(struct output *output, const char *name, output_done_fn done)
{
    const struct output_job job = {.done = done, .name = strdup(name)};

    output_send(output, OUTPUT_PUBLISH, output_run_publish, &job);
}

static void output_run_run(struct job *job)
{
    struct output_job *output_job = output_job_of(job);

    output_job->error =
        output_job->run(&output_job->output->file, output_job->argument, &output_job->failure);
    output_note_figures(output_job);
}

void output_run(struct output *output, output_run_fn run, void *argument, output_done_fn done)
{
    const struct output_job job = {.done = done, .run = run, .argument = argument};

    output_send(output, OUTPUT_RUN, output_run_run, &job);
}

static void output_run_finish(struct job *job)
{
    struct output_job *output_job = output_job_of(job);
    struct output *output = output_job->output;

    output_job->error = output_file_finish(&output->file, output_job->bytes);
    if (output_job->error >= 0 && !output->request.is_adopted)
        output_job->error = DISK_CALL(fsync(output->request.directory_fd));
    output_note_figures(output_job);
}

void output_finish(struct output *output, uint64_t bytes, output_done_fn done)
{
    const struct output_job job = {.done = done, .bytes = bytes};

    output_send(output, OUTPUT_FINISH, output_run_finish, &job);
}

static void output_run_drop_cache(struct job *job)
{
    struct output_job *output_job = output_job_of(job);

    output_file_drop_cache(&output_job->output->file, output_job->bytes);
    output_note_figures(output_job);
}

void output_drop_cache(struct output *output, uint64_t bytes)
{
    if (output->under_way || output->figures.is_stream || output->figures.is_direct)
        return;
    output_send(output, OUTPUT_DROP_CACHE, output_run_drop_cache,
                &(struct output_job){.bytes = bytes});
}

static void output_run_remove(struct job *job)
{
    struct output_job *output_job = output_job_of(job);
    struct output *output = output_job->output;

    output_file_remove(&output->file, output->request.directory_fd);
    output_note_figures(output_job);
}

void output_remove(struct output *output, output_done_fn done)
{
    output_send(output, OUTPUT_REMOVE, output_run_remove, &(struct output_job){.done = done});
}

void output_set_path(struct output *output, const char *path)
{
    char *copy = strdup(path);

    if (!copy)
        return;
    free(output->figures.path);
    output->figures.path = copy;
}

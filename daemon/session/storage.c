// SPDX-License-Identifier: GPL-2.0-or-later
/* The common part of all kinds of storage: options, sinks, outputs. */

#include "daemon/session/storage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/collector.h"
#include "collector/handoff.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/record.h"
#include "daemon/output/output.h"
#include "daemon/output/packer.h"

static const char *const names[] = {
    [ON_RESERVE_STOP] = "stop",
    [ON_RESERVE_ROTATE] = "rotate",
    [ON_RESERVE_PAUSE] = "pause",
};

int on_reserve_parse(const char *text, enum on_reserve *ret_on_reserve)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_on_reserve = (enum on_reserve)i;
            return 0;
        }
    }
    return -EINVAL;
}

const char *on_reserve_name(enum on_reserve on_reserve)
{
    return names[on_reserve];
}

int storage_init(struct storage *storage, const struct storage_kind *kind, struct session *session,
                 const struct session_options *options, struct failure *failure)
{
    storage->kind = kind;
    storage->session = session;
    storage->is_sink_closed = true;
    if (options->on_reserve &&
        on_reserve_parse(options->on_reserve, &storage->space.on_reserve) < 0)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "'%s' is not a value of --on-reserve: use stop, rotate or pause.",
                           options->on_reserve);
    return 0;
}

static void wake_collector(void *collector)
{
    collector_poke(collector);
}

/* The thread that compresses OUTPUT, if that was asked for. */
static int make_packer(const struct session *session, const struct output *output,
                       struct handoff **ret_handoff)
{
    const struct packer_config config = {
        .fd = output->figures.fd,
        .is_stream = output->figures.is_stream,
        .wake = wake_collector,
        .userdata = session->context->collector,
    };

    return session->settings.is_packed ? packer_new(&config, ret_handoff) : 0;
}

int storage_make_sink(const struct storage *storage, const struct output *output,
                      uint64_t rotate_bytes, struct sink **ret_sink)
{
    const struct session *session = storage->session;
    const struct output_figures *figures = &output->figures;
    struct sink_config config = {
        .fd = figures->fd,
        .is_stream = figures->is_stream,
        .align_bytes = figures->is_direct ? PAGE_BYTES : RECORD_MIN_BYTES,
        .granted_bytes = figures->granted_bytes,
        .max_bytes = figures->is_final ? figures->granted_bytes : output->max_bytes,
        .grant_ahead_bytes = storage->kind->grant_ahead_bytes ? storage->kind->grant_ahead_bytes
                                                              : figures->granted_bytes / 2,
        .rotate_bytes = rotate_bytes,
        .account = session->account,
        .poll_usec = session->settings.poll_usec,
        .discard = session->settings.discard,
        .events = session->selection.events,
        .cpus = session->selection.cpus,
        .nr_cpus = session->selection.nr_cpus,
    };
    int r;

    r = make_packer(session, output, &config.handoff);
    if (r < 0)
        return r;
    r = sink_new(&config, session->context->pool, ret_sink);
    if (r < 0)
        handoff_free(config.handoff);
    return r;
}

void storage_handle_opened(void *userdata, int error, const struct failure *failure)
{
    struct storage *storage = userdata;
    struct output *output = storage->output;
    struct failure own = {0};

    if (error >= 0 && output->figures.is_stream && storage->space.on_reserve != ON_RESERVE_STOP) {
        error = failure_set(
            &own, -EINVAL, ERROR_INVALID,
            "--on-reserve needs a file: it does not apply to standard output or pipes.");
        failure = &own;
    }
    session_handle_opened(storage->session, output->request.may_rename ? output->name : NULL, error,
                          failure);
}

int storage_open_output(struct storage *storage, const struct output_request *request,
                        output_done_fn done, struct failure *failure)
{
    int r = output_new(storage->session->worker, request, done, storage, &storage->output);

    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory or descriptors.");
    return 0;
}

/* A client's file, or NAME of our own; without limits of its own. */
struct output_request storage_request(const struct storage *storage, const char *name,
                                      const struct session_options *options)
{
    const struct session_context *context = storage->session->context;

    return (struct output_request){
        .is_adopted = options->has_output,
        .by_root = options->by_root,
        .fd = options->output_fd,
        .path = options->output_path,
        .sidecar = &storage->session->sidecar,
        .directory_fd = context->state_dir_fd,
        .directory = context->state_dir,
        .name = name,
        .naming = OUTPUT_NAMED,
        .is_packed = storage->session->settings.is_packed,
        .is_buffered = storage->session->settings.is_packed,
        .may_rename = options->may_rename && !options->has_output,
        .check = sidecar_check_none,
        .reserve_bytes = options->reserve_bytes,
        .keep_free = context->keep_free,
        .max_bytes = options->max_size_bytes ? options->max_size_bytes : UINT64_MAX,
    };
}

static void storage_handle_removed(void *userdata, int error, const struct failure *failure)
{
    struct storage *storage = userdata;

    (void)error, (void)failure; /* what stays is swept, or empty */
    session_handle_finished(storage->session);
}

void storage_remove_output(struct storage *storage)
{
    const struct session *session = storage->session;
    bool is_own = storage->output && !storage->output->request.is_adopted;

    if (!is_own || storage->output->figures.fd < 0) {
        session_handle_finished(storage->session);
        return;
    }
    sidecar_remove(&session->sidecar, session->worker);
    output_remove(storage->output, storage_handle_removed);
}

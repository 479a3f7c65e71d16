// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/session/file-storage.h"

#include <errno.h>
#include <stdlib.h>

#include "collector/collector.h"
#include "collector/sink.h"
#include "common/protocol.h"
#include "daemon/output/output.h"
#include "daemon/session/space.h"

static int file_storage_open(struct storage *storage, const struct session_options *options,
                             struct failure *failure)
{
    const struct output_request request = storage_request(storage, storage->session->name, options);

    return storage_open_output(storage, &request, storage_handle_opened, failure);
}

static int file_storage_make_sink(struct storage *storage, struct watch_set *watch,
                                  struct failure *failure)
{
    int r;

    (void)watch; /* only a ring's records are looked at */
    r = storage_make_sink(storage, storage->output, 0, &storage->sink);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    return 0;
}

static void file_storage_handle_message(struct storage *storage, const struct message *message)
{
    (void)storage, (void)message; /* it has one sink, which the session knows */
}

static void file_storage_handle_finished(void *userdata, int error, const struct failure *failure)
{
    struct storage *storage = userdata;

    (void)failure;
    if (error < 0)
        session_explain_finish(storage->session, storage->output, error);
    session_handle_finished(storage->session);
}

static void file_storage_finish(struct storage *storage)
{
    struct sink_totals totals;

    if (storage->session->start_failure.name) {
        storage_remove_output(storage);
        return;
    }
    sink_read_totals(storage->sink, &totals);
    output_finish(storage->output, totals.output_bytes, file_storage_handle_finished);
    session_expect_answer(storage->session);
}

static struct storage *file_storage_free(struct storage *storage)
{
    space_stop_waiting(storage);
    sink_free(storage->sink);
    output_free(storage->output);
    free(storage);
    return NULL;
}

static const struct storage_kind storage_file = {
    .name = "file",
    .open = file_storage_open,
    .make_sink = file_storage_make_sink,
    .handle_message = file_storage_handle_message,
    .finish = file_storage_finish,
    .free = file_storage_free,
};

int file_storage_new(struct session *session, const struct session_options *options,
                     struct storage **ret_storage, struct failure *failure)
{
    struct storage *storage;
    int r;

    if (options->max_age_usec)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "--max-age limits records in memory: it needs --memory.");
    storage = calloc(1, sizeof(*storage));
    if (!storage)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    r = storage_init(storage, &storage_file, session, options, failure);
    if (r < 0) {
        file_storage_free(storage);
        return r;
    }
    *ret_storage = storage;
    return 0;
}

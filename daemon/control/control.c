// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who may do what is decided from SO_PEERCRED and SO_PEERGROUPS at accept, and again when a reload
 * changes the groups, never from what a message says of its sender; the table of rights is
 * rights.c. Clients cannot hold the daemon up: their number is limited, for each person and in all,
 * with places that only root can take, and each connection bounds everything else (connection.h).
 *
 * A client that never stops calling delays nobody but its like. One dispatch of the event loop
 * reads one call of one client. The loop takes clients of one priority in turn, and everything else
 * first (daemon/base/priority.h): then root, then operators, then viewers.
 *
 * Start and Stop are answered when the session runs or has ended, Snapshot when it is written:
 * until then the call is kept.
 */

#include "daemon/control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "common/interface.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/varlink.h"
#include "daemon/control/audit.h"
#include "daemon/base/json-put.h"
#include "daemon/control/calls.h"
#include "daemon/control/connection.h"
#include "daemon/control/door.h"
#include "daemon/document/document.h"
#include "daemon/document/trigger-document.h"
#include "daemon/control/listener.h"
#include "daemon/base/log.h"
#include "daemon/base/priority.h"
#include "daemon/base/vacate.h"
#include "daemon/manager.h"
#include "daemon/output/compression.h"
#include "daemon/output/passed-file.h"
#include "daemon/output/vacuum.h"
#include "daemon/control/peer.h"
#include "daemon/control/persons.h"
#include "daemon/control/reload.h"
#include "daemon/control/request.h"
#include "daemon/control/rights.h"
#include "daemon/control/status.h"
#include "daemon/session/recorder.h"
#include "daemon/session/recorder-stop.h"
#include "daemon/session/segments.h"
#include "daemon/session/session.h"
#include "daemon/session/snapshot.h"
#include "daemon/session/user-limits.h"
#include "daemon/triggers/triggers.h"

#define MAX_CLIENTS          64u
#define MAX_CLIENTS_OF_USERS 48u                   /* of them may be of others than root */
#define MAX_CLIENTS_OF_USER  8u                    /* ... and of one of them */
#define ACCEPT_BURST         16u                   /* in one turn of the event loop */
#define ACCEPT_PAUSE_USEC    (100 * USEC_PER_MSEC) /* when there is no descriptor for a client */
#define REFUSAL_USEC         (10 * USEC_PER_SEC)   /* between two warnings */

/*
 * Replies that one person has not read: with more, its next call stays in the socket. So a status
 * of a megabyte is there once for each person, not once for each connection.
 */
#define UNSENT_OF_PERSON_BYTES (256u * 1024u)

/* Between the replies of a stream. */
#define INTERVAL_USEC          USEC_PER_SEC
#define INTERVAL_MIN_USEC      (100 * USEC_PER_MSEC)
#define INTERVAL_LIVE_MIN_USEC (900 * USEC_PER_MSEC) /* of others than root, as in budget.c */
#define PROGRESS_USEC          (250 * USEC_PER_MSEC)

struct client {
    struct control *control;
    struct vacate_person *closing; /* closes what the client made */
    struct connection *connection;
    struct peer peer;
    struct session *attached[MANAGER_RUNNING_MAX]; /* sessions that end when this client goes */
};

struct control {
    struct manager *manager;
    struct peer_groups groups;
    struct persons *persons;
    int listen_fd;
    struct vacate_batch *listener; /* has that: connections that are not accepted may be in it */
    struct vacate_person *listening;
    sd_event_source *listen_source;
    sd_event_source *resume_source; /* while no client can be accepted */
    uint64_t refused_usec; /* when the log last reported that a client was not served; 0: never */
    uint64_t nr_refused;   /* ... since then */
    struct client *clients[MAX_CLIENTS];
    struct calls calls;
    struct vacate *vacate;
    struct door *door;
    bool is_door_locked; /* to anybody */
    struct reload *reload;
};

/* A call, as it came. */
struct request {
    struct json_object *message;
    struct json_object *parameters; /* NULL: there are none */
    const struct passed *passed;
    bool more;
};

/* --- Changes that the manager reports. --- */

static void client_detach(struct client *client, const struct session *session)
{
    for (size_t i = 0; i < MANAGER_RUNNING_MAX; i++)
        if (client->attached[i] == session)
            client->attached[i] = NULL;
}

/* There are no more sessions at once than a client has room for. */
static void client_attach(struct client *client, struct session *session)
{
    size_t i = 0;

    while (i < MANAGER_RUNNING_MAX - 1 && client->attached[i])
        i++;
    client->attached[i] = session;
}

/* SESSION runs, could not start, or has ended: then it may be freed at any time. */
static void control_handle_session_change(void *userdata, struct session *session)
{
    struct control *control = userdata;

    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (session->state == SESSION_ENDED && control->clients[i])
            client_detach(control->clients[i], session);
    calls_handle_session(&control->calls, session);
}

static void control_handle_recorder_stopped(void *userdata)
{
    struct control *control = userdata;
    struct json_object *document = status_of_recorder(control->manager);

    calls_handle_recorder_stopped(&control->calls, document);
    json_object_put(document);
}

static void control_handle_snapshot_ended(void *userdata, struct snapshot *snapshot)
{
    struct control *control = userdata;

    calls_handle_snapshot(&control->calls, snapshot);
}

static void control_handle_segment_finished(void *userdata, const struct session *session,
                                            unsigned int number, const struct segment *segment)
{
    struct control *control = userdata;

    calls_handle_segment(&control->calls, session, number, segment);
}

/* --- Methods. --- */

/*
 * Each of them returns a negative errno and FAILURE, with which the call is answered then; or 0: it
 * is answered, or kept. Both write the audit trail.
 */

static int client_answer(const struct call *call, struct json_object *document)
{
    audit_log(&call->audit, NULL);
    call_answer_document(call, document);
    return 0;
}

static int client_check_right(const struct client *client, enum right right, bool is_own,
                              struct failure *failure)
{
    return rights_check(client->peer.role, right, is_own, failure);
}

static int client_check_calls(const struct client *client, struct failure *failure)
{
    return calls_check(&client->control->calls, client->peer.person, failure);
}

/* Nobody owns the flight recorder. */
static bool client_owns(const struct client *client, const struct session *session)
{
    return session->requester.is_set && session->requester.uid == client->peer.uid &&
           !session->settings.is_recorder;
}

/* It has no options but the configuration's. */
static int client_start_recorder(struct client *client, struct call *call,
                                 const struct start_request *start, struct failure *failure)
{
    struct manager *manager = client->control->manager;
    struct session *session;
    int r;

    r = client_check_right(client, RIGHT_START_RECORDER, false, failure);
    if (r < 0)
        return r;
    if (start->has_options)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "'%s' is the name of the flight recorder: start it without options, "
                           "with xentracectl start %s. For a capture, choose another name.",
                           start->name, start->name);
    r = manager_start_recorder(manager, &session, failure);
    if (r < 0)
        return r;
    if (session->state == SESSION_RUNNING)
        return client_answer(call, document_of_session(session));
    call->session = session;
    call->until = SESSION_RUNNING;
    return calls_keep(&client->control->calls, call);
}

/* Nobody copies a descriptor of a file system that may not answer: to close it again would wait. */
static int client_check_outputs(const struct client *client, const char *path, int output_fd,
                                int sidecar_fd, struct failure *failure)
{
    int r = 0;

    if (client->peer.uid == 0)
        return 0;
    if (output_fd >= 0)
        r = passed_file_check_mount(output_fd, path, failure);
    if (r >= 0 && sidecar_fd >= 0)
        r = passed_file_check_mount(sidecar_fd, "The sidecar", failure);
    return r;
}

/* Whoever may choose the output may start a capture; without one it goes to the state directory. */
static int client_check_start(const struct client *client, const struct start_request *start,
                              struct failure *failure)
{
    int r;

    r = client_check_right(client, RIGHT_START_OUTPUT, true, failure);
    if (r >= 0 && start->options.keep_enabled)
        r = client_check_right(client, RIGHT_START_KEEP_ENABLED, true, failure);
    if (r >= 0 && start->options.buffer_pages)
        r = client_check_right(client, RIGHT_START_BUFFER_PAGES, true, failure);
    if (r < 0 || start->options.has_output)
        return r;
    return client_check_right(client, RIGHT_START_STATE_DIR, true, failure);
}

static int method_start(struct client *client, struct call *call, const struct request *request,
                        struct failure *failure)
{
    struct control *control = client->control;
    struct start_request start;
    struct session *session;
    int r;

    r = request_read_start(request->parameters, request->passed, &control->manager->config, &start,
                           failure);
    if (r < 0)
        return r;
    audit_name_object(&call->audit, start.name);
    r = client_check_outputs(client, start.options.output_path, start.options.output_fd,
                             start.options.sidecar_fd, failure);
    if (r >= 0)
        r = client_check_calls(client, failure);
    if (r < 0)
        return r;
    if (strcmp(start.name, RECORDER_NAME) == 0)
        return client_start_recorder(client, call, &start, failure);
    r = client_check_start(client, &start, failure);
    if (r < 0)
        return r;
    start.options.by_root = client->peer.uid == 0;
    start.options.requester = call->audit.who;
    r = manager_start_session(control->manager, start.name, &start.options, &session, failure);
    if (r < 0)
        return r;
    if (start.attached)
        client_attach(client, session);
    call->session = session;
    call->until = SESSION_RUNNING;
    return calls_keep(&control->calls, call);
}

/*
 * A client without the right for any capture receives this error, which does not reveal the names
 * of captures.
 */
static int client_read_name(struct client *client, struct call *call, const struct request *request,
                            enum right right, const char **ret_name, struct failure *failure)
{
    int r;

    r = client_check_right(client, right, true, failure);
    if (r < 0)
        return r;
    r = request_read_text(request->parameters, FIELD_NAME,
                          right == RIGHT_ABORT || right == RIGHT_TRIGGER, ret_name, failure);
    if (r < 0)
        return r;
    audit_name_object(&call->audit, *ret_name);
    return client_check_calls(client, failure);
}

/* The session that CALL is about, if the client may do that to it: else NULL and FAILURE. */
static struct session *client_read_capture(struct client *client, struct call *call,
                                           const struct request *request, enum right right,
                                           struct failure *failure)
{
    struct session *session;
    const char *name;

    if (client_read_name(client, call, request, right, &name, failure) < 0)
        return NULL;
    session = manager_find_session(client->control->manager, &call->audit.who, name, failure);
    if (!session || manager_check_stop(session, failure) < 0)
        return NULL;
    audit_name_object(&call->audit, session->name);
    if (client_check_right(client, right, client_owns(client, session), failure) < 0)
        return NULL;
    call->session = session;
    call->until = SESSION_ENDED;
    return session;
}

static int method_stop(struct client *client, struct call *call, const struct request *request,
                       struct failure *failure)
{
    struct session *session = client_read_capture(client, call, request, RIGHT_STOP, failure);

    if (!session)
        return -ENOENT;
    if (session->state == SESSION_ENDED)
        return client_answer(call, document_of_session(session));
    /* Kept first: the session may end at once. */
    (void)calls_keep(&client->control->calls, call);
    session_stop(session, END_STOP);
    return 0;
}

/* For a session whose disk does not answer. The answer shows what the kernel still holds. */
static int method_abort(struct client *client, struct call *call, const struct request *request,
                        struct failure *failure)
{
    struct session *session = client_read_capture(client, call, request, RIGHT_ABORT, failure);

    if (!session)
        return -ENOENT;
    session_abort(session);
    if (session->state == SESSION_ENDED)
        return client_answer(call, document_of_session(session));
    return calls_keep(&client->control->calls, call);
}

static int method_stop_recorder(struct client *client, struct call *call,
                                const struct request *request, struct failure *failure)
{
    struct control *control = client->control;
    struct recorder_stop stop = {
        .realtime_ns = clock_pair_now().realtime_ns,
        .uid = client->peer.uid,
        .pid = client->peer.pid,
    };
    int r;

    r = request_read_nothing(request->parameters, failure);
    if (r >= 0)
        r = client_check_right(client, RIGHT_STOP_RECORDER, false, failure);
    if (r >= 0)
        r = client_check_calls(client, failure);
    if (r < 0)
        return r;
    (void)snprintf(stop.comm, sizeof(stop.comm), "%s", call->audit.who.comm);
    r = manager_stop_recorder(control->manager, &stop, failure);
    if (r < 0)
        return r;
    if (r > 0)
        return client_answer(call, status_of_recorder(control->manager));
    call->stops_recorder = true;
    return calls_keep(&control->calls, call);
}

/* Sets CALL's interval to the one that was asked for, or INTERVAL_USEC. */
static int call_set_interval(struct call *call, uint64_t interval_usec, uint64_t min_usec,
                             struct failure *failure)
{
    call->interval_usec = interval_usec ? interval_usec : INTERVAL_USEC;
    if (call->interval_usec >= min_usec)
        return 0;
    return failure_set(failure, -EINVAL, ERROR_INVALID,
                       "An interval of %" PRIu64 " ms is too short: at least %" PRIu64 " ms.",
                       call->interval_usec / USEC_PER_MSEC, min_usec / USEC_PER_MSEC);
}

static int method_status(struct client *client, struct call *call, const struct request *request,
                         struct failure *failure)
{
    struct control *control = client->control;
    struct session *session = NULL;
    struct status_request status;
    struct json_object *document;
    int r;

    r = client_check_right(client, RIGHT_STATUS, false, failure);
    if (r >= 0)
        r = request_read_status(request->parameters, &status, failure);
    if (r >= 0)
        r = call_set_interval(call, status.interval_usec, INTERVAL_MIN_USEC, failure);
    if (r >= 0 && request->more)
        r = client_check_calls(client, failure);
    if (r < 0)
        return r;
    if (status.name[0]) {
        session = manager_find_session(control->manager, &call->audit.who, status.name, failure);
        if (!session)
            return -ENOENT;
    }
    document = session ? document_of_session(session) : status_document(control->manager);
    if (!request->more || (session && session->state == SESSION_ENDED))
        return client_answer(call, document);
    call->session = session;
    call->until = SESSION_ENDED;
    call->stream = STREAM_STATUS;
    call_send_document(call, document);
    return calls_keep(&control->calls, call);
}

/* A part of the ring's newest records, into a pipe, again and again: what live views read. */
static enum right right_of_snapshot(const struct snapshot_options *options)
{
    if (!options->has_output)
        return RIGHT_SNAPSHOT;
    return options->span.last_usec > 0 && options->sidecar_fd < 0 ? RIGHT_SNAPSHOT_LIVE
                                                                  : RIGHT_SNAPSHOT_OUTPUT;
}

/* Begins the snapshot, or the next part of a live view. */
static int client_take_snapshot(struct client *client, struct call *call,
                                struct snapshot_request *taken, struct failure *failure)
{
    struct snapshot *snapshot;
    int r;

    r = client_check_right(client, right_of_snapshot(&taken->options), false, failure);
    if (r < 0)
        return r;
    taken->options.requester = call->audit.who;
    taken->options.by_root = client->peer.uid == 0;
    taken->options.user = (struct snapshot_user){
        .person = client->peer.person,
        .is_limited = client->peer.person != PERSON_ROOT,
        .may_pass_outputs = client->peer.role >= ROLE_OPERATE,
    };
    if (user_limits_is_live(&taken->options))
        call->audit.what = NULL; /* once a second */
    r = manager_start_snapshot(client->control->manager, taken->session, &taken->options, &snapshot,
                               failure);
    if (r >= 0)
        call->snapshot = snapshot;
    return r;
}

/* What a live view needs for its next parts: the call, and its output, which is closed at the end.
 */
static int client_keep_view(struct client *client, struct call *call, const struct request *request,
                            const struct snapshot_request *taken, struct failure *failure)
{
    int fd;

    if (!user_limits_is_live(&taken->options))
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A live view (interval_usec) has a pipe as its output, last_usec of a "
                           "second at most, and no sidecar.");
    call->output = vacate_batch_new(client->closing, 1);
    fd = call->output ? fcntl(taken->options.output_fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    vacate_batch_add(call->output, fd);
    call->message = json_object_get(request->message);
    call->stream = STREAM_LIVE;
    return 0;
}

static int method_snapshot(struct client *client, struct call *call, const struct request *request,
                           struct failure *failure)
{
    struct control *control = client->control;
    struct snapshot_request taken;
    int r;

    r = request_read_snapshot(request->parameters, request->passed, &control->manager->config,
                              &taken, failure);
    if (r < 0)
        return r;
    audit_name_object(&call->audit, taken.options.name);
    r = client_check_outputs(client, taken.options.output_path, taken.options.output_fd,
                             taken.options.sidecar_fd, failure);
    if (r >= 0)
        r = client_check_calls(client, failure);
    if (r >= 0 && taken.interval_usec)
        r = call_set_interval(call, taken.interval_usec,
                              client->peer.person == PERSON_ROOT ? INTERVAL_MIN_USEC
                                                                 : INTERVAL_LIVE_MIN_USEC,
                              failure);
    if (r >= 0 && request->more && taken.interval_usec)
        r = client_keep_view(client, call, request, &taken, failure);
    if (r >= 0)
        r = client_take_snapshot(client, call, &taken, failure);
    if (r < 0)
        return r;
    if (request->more && call->stream == STREAM_NONE) {
        call->stream = STREAM_PROGRESS;
        call->interval_usec = PROGRESS_USEC;
    }
    return calls_keep(&control->calls, call);
}

static struct client *control_find_client(const struct control *control,
                                          const struct connection *connection)
{
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i] && control->clients[i]->connection == connection)
            return control->clients[i];
    return NULL;
}

/* The next part of a live view. */
static int control_take_part(void *userdata, struct call *call, struct failure *failure)
{
    struct control *control = userdata;
    struct client *client = control_find_client(control, call->connection);
    struct passed passed = {.fds = {call->output->fds[0]}, .count = 1};
    struct varlink_call varlink;
    struct snapshot_request taken;
    int r;

    r = varlink_read_call(call->message, &varlink);
    if (r >= 0)
        r = request_read_snapshot(varlink.parameters, &passed, &control->manager->config, &taken,
                                  failure);
    return r < 0 ? r : client_take_snapshot(client, call, &taken, failure);
}

static int method_rotate(struct client *client, struct call *call, const struct request *request,
                         struct failure *failure)
{
    struct control *control = client->control;
    struct session *session;
    const char *name;
    int r;

    r = client_read_name(client, call, request, RIGHT_ROTATE, &name, failure);
    if (r < 0)
        return r;
    session = manager_find_segmented(control->manager, &call->audit.who, name, failure);
    if (!session)
        return -ENOENT;
    audit_name_object(&call->audit, session->name);
    r = client_check_right(client, RIGHT_ROTATE, client_owns(client, session), failure);
    if (r >= 0)
        r = segments_rotate(session, &call->segment, failure);
    if (r < 0)
        return r;
    call->session = session;
    return calls_keep(&control->calls, call);
}

static int method_trigger(struct client *client, struct call *call, const struct request *request,
                          struct failure *failure)
{
    struct manager *manager = client->control->manager;
    const struct trigger *trigger;
    const char *name;
    int r;

    r = client_read_name(client, call, request, RIGHT_TRIGGER, &name, failure);
    if (r < 0)
        return r;
    r = triggers_fire_manual(manager->triggers, name, &call->audit.who, &trigger, failure);
    if (r < 0 && strcmp(failure->name, ERROR_NO_RING) == 0)
        manager_explain_no_ring(manager, failure);
    return r < 0 ? r : client_answer(call, document_of_trigger(trigger));
}

/* --- The state directory. --- */

static void control_handle_vacuum(void *userdata, uint64_t ticket,
                                  const struct vacuum_result *result)
{
    struct control *control = userdata;

    calls_handle_vacuum(&control->calls, ticket, control->manager->state_dir, result);
}

/* CALL is answered when VACUUM is done. */
static int client_ask_vacuum(struct client *client, struct call *call, enum right right,
                             struct vacuum_request *vacuum, struct failure *failure)
{
    struct control *control = client->control;
    int r;

    vacuum->who = call->audit.who;
    r = client_check_right(client, right, false, failure);
    if (r >= 0)
        r = client_check_calls(client, failure);
    if (r < 0)
        return r;
    r = vacuum_send(control->manager->vacuum, vacuum, control_handle_vacuum, control,
                    &call->ticket);
    if (r == -EAGAIN)
        return failure_set(failure, r, ERROR_BUSY,
                           "Too many requests wait for the disk of the state directory. Nothing "
                           "was done. Try again later.");
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    if (vacuum->action == VACUUM_LIST || vacuum->dry_run)
        call->audit.what = NULL; /* it changes nothing */
    return calls_keep(&control->calls, call);
}

static int method_files(struct client *client, struct call *call, const struct request *request,
                        struct failure *failure)
{
    struct vacuum_request vacuum = {
        .action = VACUUM_LIST,
        .limits = client->control->manager->config.disk,
    };
    int r = request_read_nothing(request->parameters, failure);

    return r < 0 ? r : client_ask_vacuum(client, call, RIGHT_FILES, &vacuum, failure);
}

static int method_vacuum(struct client *client, struct call *call, const struct request *request,
                         struct failure *failure)
{
    struct vacuum_request vacuum = {.action = VACUUM_CLEAN};
    struct clean_request clean;
    int r;

    r = request_read_clean(request->parameters, &client->control->manager->config, &clean, failure);
    if (r < 0)
        return r;
    vacuum.limits = clean.limits;
    vacuum.dry_run = clean.dry_run;
    return client_ask_vacuum(client, call, RIGHT_VACUUM, &vacuum, failure);
}

static int method_remove(struct client *client, struct call *call, const struct request *request,
                         struct failure *failure)
{
    struct vacuum_request vacuum = {
        .action = VACUUM_REMOVE,
        .limits = client->control->manager->config.disk,
    };
    struct remove_request remove;
    const char **names;
    int r;

    r = request_read_remove(request->parameters, &remove, failure);
    if (r < 0)
        return r;
    vacuum.nr_names = json_object_array_length(remove.names);
    names = calloc(vacuum.nr_names + 1, sizeof(*names));
    if (!names)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    for (size_t i = 0; i < vacuum.nr_names; i++)
        names[i] = json_object_get_string(json_object_array_get_idx(remove.names, i));
    if (vacuum.nr_names > 0)
        audit_name_object(&call->audit, names[0]);
    vacuum.names = names;
    r = client_ask_vacuum(client, call, RIGHT_REMOVE, &vacuum, failure);
    free(names);
    return r;
}

static int method_reload(struct client *client, struct call *call, const struct request *request,
                         struct failure *failure)
{
    struct control *control = client->control;
    int r;

    r = request_read_nothing(request->parameters, failure);
    if (r >= 0)
        r = client_check_right(client, RIGHT_RELOAD, false, failure);
    if (r >= 0)
        r = client_check_calls(client, failure);
    if (r < 0)
        return r;
    call->reload = reload_request(control->reload);
    return calls_keep(&control->calls, call);
}

/* --- Signals. --- */

/* What the sender of SIGNAL wants, as a call. The kernel's own signals have no sender. */
static struct call control_begin_signal(const struct signalfd_siginfo *signal, const char *what)
{
    const bool has_sender = signal->ssi_code <= 0;
    const struct peer sender = {
        .uid = has_sender ? signal->ssi_uid : (uid_t)-1,
        .person = PERSON_ROOT, /* no other may signal a process of root's */
        .pid = has_sender ? (pid_t)signal->ssi_pid : 0,
    };

    return (struct call){.audit = {.who = peer_requester(&sender), .what = what}};
}

void control_reload(struct control *control, const struct signalfd_siginfo *signal)
{
    struct call call = control_begin_signal(signal, PROTOCOL_RELOAD " (SIGHUP)");

    call.reload = reload_request(control->reload);
    (void)calls_keep(&control->calls, &call);
}

void control_take_snapshot(struct control *control, const struct signalfd_siginfo *signal)
{
    struct manager *manager = control->manager;
    struct call call = control_begin_signal(signal, PROTOCOL_SNAPSHOT " (SIGUSR2)");
    const struct snapshot_options options = {
        .cause = SNAPSHOT_SIGNAL,
        .requester = call.audit.who,
        .label = "sigusr2",
        .reserve_bytes = disk_snapshot_reserve_bytes(manager->config.reserve_bytes),
        .output_fd = -1,
        .sidecar_fd = -1,
        .compress = compression_name(manager->config.recorder.compress),
    };
    struct failure failure = {0};
    struct snapshot *snapshot;

    if (manager_start_snapshot(manager, "", &options, &snapshot, &failure) < 0) {
        audit_log(&call.audit, &failure);
        return;
    }
    call.snapshot = snapshot;
    (void)calls_keep(&control->calls, &call);
}

/* --- The interface. --- */

struct method {
    const char *name;
    const char *reply; /* the parameter of its reply */
    bool changes;      /* something: it is not to be made oneway */
    bool passes;       /* it takes descriptors */
    int (*handle)(struct client *client, struct call *call, const struct request *request,
                  struct failure *failure);
};

static const struct method methods[] = {
    {PROTOCOL_START, REPLY_SESSION, true, true, method_start},
    {PROTOCOL_STOP, REPLY_SESSION, true, false, method_stop},
    {PROTOCOL_STOP_RECORDER, REPLY_RECORDER, true, false, method_stop_recorder},
    {PROTOCOL_ABORT, REPLY_SESSION, true, false, method_abort},
    {PROTOCOL_STATUS, REPLY_STATUS, false, false, method_status},
    {PROTOCOL_SNAPSHOT, REPLY_SNAPSHOT, true, true, method_snapshot},
    {PROTOCOL_ROTATE, REPLY_SEGMENT, true, false, method_rotate},
    {PROTOCOL_TRIGGER, REPLY_TRIGGER, true, false, method_trigger},
    {PROTOCOL_FILES, REPLY_FILES, false, false, method_files},
    {PROTOCOL_VACUUM, REPLY_FILES, true, false, method_vacuum},
    {PROTOCOL_REMOVE, REPLY_FILES, true, false, method_remove},
    {PROTOCOL_RELOAD, REPLY_CHANGES, true, false, method_reload},
};

static void reply_service_error(struct client *client, const char *error, const char *key,
                                const char *value)
{
    json *parameters = json_object_new_object();

    json_put_text(parameters, key, value);
    connection_reply(client->connection, varlink_make_error(error, parameters), false);
}

static void reply_info(struct client *client)
{
    json *parameters = json_object_new_object(), *interfaces = json_object_new_array();

    json_put_text(parameters, "vendor", "xentraced");
    json_put_text(parameters, "product", "xentraced");
    json_put_text(parameters, "version", PACKAGE_VERSION);
    json_put_text(parameters, "url", "");
    (void)json_object_array_add(interfaces, json_object_new_string(SERVICE_INTERFACE));
    (void)json_object_array_add(interfaces, json_object_new_string(CONTROL_INTERFACE));
    json_put(parameters, "interfaces", interfaces);
    connection_reply(client->connection, varlink_make_reply(parameters, false), false);
}

static void reply_description(struct client *client, const char *interface)
{
    const char *text = strcmp(interface, SERVICE_INTERFACE) == 0   ? interface_service_text
                       : strcmp(interface, CONTROL_INTERFACE) == 0 ? interface_text
                                                                   : NULL;
    json *parameters;

    if (!text) {
        reply_service_error(client, SERVICE_ERROR_NO_INTERFACE, "interface", interface);
        return;
    }
    parameters = json_object_new_object();
    json_put_text(parameters, "description", text);
    connection_reply(client->connection, varlink_make_reply(parameters, false), false);
}

/* METHOD's name is for the sentence; whether it TAKES any. */
static int client_check_passed(const struct client *client, const char *method, bool takes,
                               const struct passed *passed, struct failure *failure)
{
    if (passed->is_refused)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A call passes %u descriptors at most: an output and its sidecar. "
                           "Nothing was done.",
                           CONNECTION_PASSED_MAX);
    if (passed->count == 0)
        return 0;
    if (!takes)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "%s takes no descriptors. Nothing was done.", method);
    return vacate_check(client->closing, failure);
}

/* A method of the interface that every service has. */
static void client_call_service(struct client *client, const char *method,
                                const struct request *request)
{
    struct json_object *parameters = request->parameters;
    const struct call call = {.connection = client->connection};
    struct failure failure = {0};
    const char *interface;

    if (client_check_passed(client, method, false, request->passed, &failure) < 0)
        call_answer_failure(&call, &failure);
    else if (strcmp(method, SERVICE_GET_INFO) == 0 &&
             request_read_nothing(parameters, &failure) >= 0)
        reply_info(client);
    else if (strcmp(method, SERVICE_GET_DESCRIPTION) == 0 &&
             request_read_text(parameters, "interface", true, &interface, &failure) >= 0)
        reply_description(client, interface);
    else if (failure.name)
        call_answer_failure(&call, &failure);
    else
        reply_service_error(client, SERVICE_ERROR_NO_METHOD, "method", method);
}

static void client_call_method(struct client *client, const struct method *method,
                               const struct request *request)
{
    struct call call = {
        .connection = client->connection,
        .reply = method->reply,
        .audit = {.who = peer_requester(&client->peer),
                  .what = method->changes ? method->name : NULL},
    };
    struct failure failure = {0};
    int r;

    r = client_check_passed(client, method->name, method->passes, request->passed, &failure);
    if (r >= 0)
        r = method->handle(client, &call, request, &failure);
    if (r >= 0)
        return;
    audit_log(&call.audit, &failure);
    call_answer_failure(&call, &failure);
    call_forget(&call);
}

/* Returns the rest of METHOD after INTERFACE and a dot; NULL: it is of another interface. */
static const char *method_of(const char *method, const char *interface)
{
    size_t length = strlen(interface);

    return strncmp(method, interface, length) == 0 && method[length] == '.' ? method + length + 1
                                                                            : NULL;
}

static int client_handle_call(void *userdata, struct json_object *message,
                              const struct varlink_call *call, const struct passed *passed)
{
    struct client *client = userdata;
    const struct request request = {
        .message = message,
        .parameters = call->parameters,
        .passed = passed,
        .more = call->more,
    };
    const char *name = method_of(call->method, CONTROL_INTERFACE);
    const struct method *method = NULL;

    for (size_t i = 0; name && i < ARRAY_SIZE(methods); i++)
        if (strcmp(name, methods[i].name) == 0)
            method = &methods[i];
    if (call->oneway) /* without a reply, what changes nothing is nothing */
        return method && method->changes ? -EPERM : 0;
    if (call->upgrade) {
        reply_service_error(client, SERVICE_ERROR_PARAMETER, "parameter", "upgrade");
        return 0;
    }
    if (method) {
        client_call_method(client, method, &request);
        return 0;
    }
    if (name) {
        reply_service_error(client, SERVICE_ERROR_NO_METHOD, "method", call->method);
        return 0;
    }
    name = method_of(call->method, SERVICE_INTERFACE);
    if (name) {
        client_call_service(client, name, &request);
        return 0;
    }
    reply_service_error(client, SERVICE_ERROR_NO_INTERFACE, "interface", call->method);
    return 0;
}

/* --- Clients. --- */

static void client_end_attached(struct client *client)
{
    for (size_t i = 0; i < MANAGER_RUNNING_MAX; i++)
        if (client->attached[i])
            session_stop(client->attached[i], END_CLIENT_GONE);
}

static void client_log(const struct client *client, const char *what)
{
    log_debug("Client of UID %u, role %s: %s.", (unsigned int)client->peer.uid,
              role_name(client->peer.role), what);
}

static struct client *client_free(struct client *client)
{
    struct control *control = client->control;

    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i] == client)
            control->clients[i] = NULL;
    if (client->connection)
        calls_forget_connection(&control->calls, client->connection);
    client_end_attached(client);
    connection_free(client->connection);
    vacate_leave(client->closing);
    free(client);
    return NULL;
}

static int64_t client_priority(const struct client *client)
{
    if (client->peer.role == ROLE_ROOT)
        return PRIORITY_ROOT;
    return client->peer.role == ROLE_OPERATE ? PRIORITY_OPERATOR : PRIORITY_VIEWER;
}

/* Whether the person has read enough of its replies. Root's scripts are trusted with their own. */
static bool client_may_read(void *userdata)
{
    const struct client *client = userdata;
    const struct control *control = client->control;
    size_t unsent_bytes = 0;

    if (client->peer.person == PERSON_ROOT)
        return true;
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i] && control->clients[i]->peer.person == client->peer.person)
            unsent_bytes += connection_unsent_bytes(control->clients[i]->connection);
    return unsent_bytes <= UNSENT_OF_PERSON_BYTES;
}

static void client_handle_drained(void *userdata)
{
    const struct client *client = userdata;
    const struct control *control = client->control;

    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i] && control->clients[i] != client &&
            control->clients[i]->peer.person == client->peer.person)
            connection_resume(control->clients[i]->connection);
}

static void client_handle_closed(void *userdata, const char *reason)
{
    struct client *client = userdata;

    client_log(client, reason);
    client_free(client);
}

static const struct connection_server connection_server = {
    .may_read = client_may_read,
    .call = client_handle_call,
    .drained = client_handle_drained,
    .closed = client_handle_closed,
};

/* A place for one more client of PEER; NULL and FAILURE if there is none. */
static struct client **control_find_place(struct control *control, const struct peer *peer,
                                          struct failure *failure)
{
    struct client **place = NULL;
    char who[PERSON_TEXT_MAX];
    size_t of_users = 0, of_user = 0;

    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        if (!control->clients[i]) {
            place = &control->clients[i];
            continue;
        }
        of_users += control->clients[i]->peer.person != PERSON_ROOT;
        of_user += control->clients[i]->peer.person == peer->person;
    }
    if (peer->person != PERSON_ROOT && of_user >= MAX_CLIENTS_OF_USER) {
        (void)failure_set(failure, -EUSERS, ERROR_BUSY,
                          "%u connections of %s are open, which is the limit", MAX_CLIENTS_OF_USER,
                          person_describe(who, peer->person));
        return NULL;
    }
    if (!place || (peer->person != PERSON_ROOT && of_users >= MAX_CLIENTS_OF_USERS)) {
        (void)failure_set(failure, -EUSERS, ERROR_BUSY, "the limit of clients is reached");
        return NULL;
    }
    return place;
}

/* SOCKET, of CLOSING, is given away on success. */
static int client_new(struct control *control, struct vacate_batch *socket,
                      struct vacate_person *closing, const struct peer *peer,
                      struct failure *failure)
{
    struct client **place = control_find_place(control, peer, failure);
    struct connection_options options = {
        .event = control->manager->event,
        .person = closing,
        .server = &connection_server,
    };
    struct client *client;
    int r;

    if (!place)
        return -EUSERS;
    client = calloc(1, sizeof(*client));
    if (!client)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "out of memory");
    client->control = control;
    client->peer = *peer;
    client->closing = closing;
    options.priority = client_priority(client);
    options.userdata = client;
    r = connection_new(&options, socket, &client->connection);
    if (r < 0) {
        free(client);
        return failure_set(failure, r, ERROR_NO_MEMORY, "%s", strerror(-r));
    }
    *place = client;
    client_log(client, "connected");
    return 0;
}

/* --- The socket. --- */

/* Clients who are refused may try again at once, and for ever: the log is for others, too. */
static void control_log_refusal(struct control *control, const struct peer *peer,
                                const struct failure *failure)
{
    char others[80] = "";
    uint64_t now_usec = 0;

    (void)sd_event_now(control->manager->event, CLOCK_MONOTONIC, &now_usec); /* the clock exists */
    if (control->refused_usec > 0 && now_usec < control->refused_usec + REFUSAL_USEC) {
        control->nr_refused++;
        return;
    }
    if (control->nr_refused > 0)
        (void)snprintf(others, sizeof(others),
                       " %llu more were refused since the last such message.",
                       (unsigned long long)control->nr_refused);
    log_warning("Refused a client (UID %u): %s.%s", (unsigned int)peer->uid, failure->text, others);
    control->refused_usec = now_usec;
    control->nr_refused = 0;
}

/* A client that is refused sees the end of the connection. SOCKET has room for FD. */
static void control_admit(struct control *control, struct vacate_batch *socket, int fd)
{
    struct vacate_person *closing;
    struct failure failure = {0};
    struct peer peer;
    int r;

    r = peer_read(fd, &control->groups, control->persons, &peer);
    if (r < 0)
        (void)failure_set(&failure, r, ERROR_NO_MEMORY, "%s", strerror(-r));
    closing = vacate_join(control->vacate, peer.person, socket, fd);
    if (r >= 0 && peer.role == ROLE_NONE)
        r = failure_set(&failure, -EACCES, ERROR_NOT_PERMITTED,
                        "the user is not in a group with access");
    if (r >= 0 && vacate_is_locked(closing))
        r = failure_set(&failure, -EBUSY, ERROR_BUSY,
                        "too many descriptors that the user passed are not closed yet");
    if (r >= 0)
        r = client_new(control, socket, closing, &peer, &failure);
    if (r >= 0)
        return;
    control_log_refusal(control, &peer, &failure);
    (void)shutdown(fd, SHUT_RDWR); /* the client need not wait for close(2) */
    vacate_close(socket);
    vacate_leave(closing);
}

/* What the client may do now. Whoever may do nothing any more is disconnected. */
static void client_update_role(struct client *client)
{
    struct peer peer;
    int r;

    r = peer_read(connection_fd(client->connection), &client->control->groups,
                  client->control->persons, &peer);
    if (r >= 0 && peer.role == client->peer.role)
        return;
    client->peer.role = peer.role;
    if (r >= 0 && peer.role != ROLE_NONE)
        r = connection_set_priority(client->connection, client_priority(client));
    if (r < 0 || peer.role == ROLE_NONE)
        client_handle_closed(client, "may not be connected any more");
    else
        client_log(client, "has this role after a reload");
}

/* Who is locked out, the groups, or their members have changed. */
static void control_update_door(struct control *control)
{
    uid_t locked[MAX_CLIENTS];
    size_t nr = vacate_list_locked(control->vacate, locked, MAX_CLIENTS);

    if (nr == 0 && !control->is_door_locked)
        return;
    door_set(control->door, &control->groups, control->persons, locked,
             nr < MAX_CLIENTS ? nr : MAX_CLIENTS);
    control->is_door_locked = nr > 0;
}

/* A person was locked out, or may come again. */
static void control_handle_lock(void *userdata)
{
    struct control *control = userdata;

    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i] && vacate_is_locked(control->clients[i]->closing))
            connection_end(control->clients[i]->connection,
                           "has passed too many descriptors that are not closed yet");
    control_update_door(control);
}

/* The group database knows some of those who are connected now, or no longer. */
static void control_handle_persons(void *userdata)
{
    struct control *control = userdata;

    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i])
            control->clients[i]->peer.person =
                persons_find(control->persons, control->clients[i]->peer.uid);
    control_update_door(control);
}

static void control_set_groups(struct control *control, const struct peer_groups *groups)
{
    control->groups = *groups;
    persons_set_groups(control->persons, groups);
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i])
            client_update_role(control->clients[i]);
}

static void control_handle_reloaded(void *userdata, const struct reload_result *result)
{
    struct control *control = userdata;

    if (result->groups) {
        control_set_groups(control, result->groups);
        control_update_door(control); /* the reading set the ACL for all */
    }
    calls_handle_reload(&control->calls, result);
}

static int control_handle_resume(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct control *control = userdata;

    (void)source, (void)usec;
    return sd_event_source_set_enabled(control->listen_source, SD_EVENT_ON);
}

/* Out of descriptors or memory: who cannot be accepted keeps the socket readable. */
static int control_pause(struct control *control)
{
    int r;

    r = sd_event_source_set_time_relative(control->resume_source, ACCEPT_PAUSE_USEC);
    if (r < 0)
        return r;
    r = sd_event_source_set_enabled(control->resume_source, SD_EVENT_ONESHOT);
    if (r < 0)
        return r;
    return sd_event_source_set_enabled(control->listen_source, SD_EVENT_OFF);
}

/* Several at once, or those who are refused would make the others wait. */
static int control_handle_connection(sd_event_source *source, int listen_fd, uint32_t revents,
                                     void *userdata)
{
    struct control *control = userdata;

    (void)source, (void)revents;
    for (unsigned int i = 0; i < ACCEPT_BURST; i++) {
        struct vacate_batch *socket = vacate_prepare(control->vacate);
        int fd;

        if (!socket)
            return control_pause(control);
        fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            control_admit(control, socket, fd);
            continue;
        }
        vacate_close(socket);
        if (errno == EAGAIN)
            return 0;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            return control_pause(control);
        /* else it went away again */
    }
    return 0;
}

static int control_add_sources(struct control *control)
{
    struct sd_event *event = control->manager->event;
    int r;

    r = sd_event_add_io(event, &control->listen_source, control->listen_fd, EPOLLIN,
                        control_handle_connection, control);
    if (r < 0)
        return r;
    r = sd_event_source_set_priority(control->listen_source, PRIORITY_ROOT);
    if (r < 0)
        return r;
    r = sd_event_add_time_relative(event, &control->resume_source, CLOCK_MONOTONIC, 0,
                                   USEC_PER_MSEC, control_handle_resume, control);
    if (r < 0)
        return r;
    return sd_event_source_set_enabled(control->resume_source, SD_EVENT_OFF);
}

static int control_set_up(struct control *control, const struct config_source *source,
                          struct failure *failure)
{
    struct manager *manager = control->manager;
    int r;

    r = reload_new(manager, source, control_handle_reloaded, control, &control->reload);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    r = peer_groups_read(&control->groups, manager->config.control_group, failure);
    if (r < 0)
        return r;
    r = listener_open(manager->socket_path, &control->groups, &control->listen_fd, failure);
    if (r < 0)
        return r;
    r = persons_new(manager->workers, &control->groups, control_handle_persons, control,
                    &control->persons);
    if (r >= 0)
        r = vacate_new(manager->workers, control_handle_lock, control, &control->vacate);
    if (r >= 0)
        r = door_new(manager->workers, manager->socket_path, &control->door);
    if (r >= 0 && !(control->listener = vacate_prepare(control->vacate)))
        r = -ENOMEM;
    if (r >= 0)
        control->listening =
            vacate_join(control->vacate, PERSON_ROOT, control->listener, control->listen_fd);
    if (r >= 0)
        r = calls_init(&control->calls, manager, control_take_part, control);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    r = control_add_sources(control);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot serve %s: %s.",
                           manager->socket_path, strerror(-r));
    manager->session_changed = control_handle_session_change;
    manager->recorder_stopped = control_handle_recorder_stopped;
    manager->snapshot_ended = control_handle_snapshot_ended;
    manager->segment_finished = control_handle_segment_finished;
    manager->userdata = control;
    return 0;
}

int control_new(struct manager *manager, const struct config_source *source,
                struct control **ret_control, struct failure *failure)
{
    struct control *control;
    int r;

    control = calloc(1, sizeof(*control));
    if (!control)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    control->manager = manager;
    control->listen_fd = -1;
    r = control_set_up(control, source, failure);
    if (r < 0) {
        control_free(control);
        return r;
    }
    *ret_control = control;
    return 0;
}

struct control *control_free(struct control *control)
{
    if (!control)
        return NULL;
    control->manager->session_changed = NULL;
    control->manager->recorder_stopped = NULL;
    control->manager->snapshot_ended = NULL;
    control->manager->segment_finished = NULL;
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i]) {
            connection_send_last(control->clients[i]->connection);
            client_free(control->clients[i]);
        }
    if (control->listen_source)
        (void)unlink(control->manager->socket_path);
    sd_event_source_disable_unref(control->listen_source);
    sd_event_source_disable_unref(control->resume_source);
    if (control->listening) {
        (void)shutdown(control->listen_fd, SHUT_RDWR); /* at once, whatever close(2) waits for */
        vacate_close(control->listener);
        vacate_leave(control->listening);
    } else {
        fd_close(&control->listen_fd); /* nobody knows of it yet */
    }
    calls_done(&control->calls);
    door_free(control->door);
    vacate_free(control->vacate);
    persons_free(control->persons);
    reload_free(control->reload);
    free(control);
    return NULL;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sd-bus in server mode, one bus object per connection: with request.c all that knows D-Bus.
 *
 * Who may do what is decided from SO_PEERCRED and SO_PEERGROUPS at accept, and again when a reload
 * changes the groups, never from what a message says of its sender; the table of rights is
 * rights.c. Clients cannot hold the daemon up: their number is limited, for each user and in all,
 * with places that only root can take, and between each of them and its bus object stands a relay
 * (relay.h), which bounds everything else.
 *
 * A bus object is not attached to the event loop. The relay calls it with each message, and
 * whenever there is room for answers.
 *
 * A client that never stops calling delays nobody but its like. One dispatch of the event loop
 * processes one message of one client. The loop takes clients of one priority in turn, and
 * everything else first (daemon/base/priority.h): then root, then operators, then viewers.
 *
 * Start and Stop are answered when the session runs or has ended, Snapshot when it is written:
 * until then the call is kept.
 */

#include "daemon/control/control.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <json-c/json.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "common/protocol.h"
#include "common/units.h"
#include "daemon/control/audit.h"
#include "daemon/control/calls.h"
#include "daemon/document/document.h"
#include "daemon/document/trigger-document.h"
#include "daemon/control/leaks.h"
#include "daemon/control/listener.h"
#include "daemon/base/log.h"
#include "daemon/base/priority.h"
#include "daemon/base/vacate.h"
#include "daemon/manager.h"
#include "daemon/output/compression.h"
#include "daemon/output/passed-file.h"
#include "daemon/output/vacuum.h"
#include "daemon/control/passed.h"
#include "daemon/control/peer.h"
#include "daemon/control/persons.h"
#include "daemon/control/relay.h"
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

/* Steps of a bus object for one message: more than it needs to read it and to write its answer. */
#define BUS_TURNS_MAX 16u

static const struct passed passed_nothing;

struct client {
    struct control *control;
    struct relay *relay;
    sd_bus *bus; /* NULL: it has not authenticated */
    struct peer peer;
    bool passes_descriptors;                       /* as the handshake agrees */
    const struct passed *passed;                   /* with the message that is being dispatched */
    unsigned int nr_dispatched;                    /* messages that sd-bus could read */
    struct session *attached[MANAGER_RUNNING_MAX]; /* sessions that end when this client goes */
};

struct control {
    struct manager *manager;
    struct peer_groups groups;
    struct persons *persons;
    int listen_fd;
    sd_event_source *listen_source;
    sd_event_source *resume_source; /* while no client can be accepted */
    uint64_t refused_usec; /* when the log last reported that a client was not served; 0: never */
    uint64_t nr_refused;   /* ... since then */
    struct client *clients[MAX_CLIENTS];
    struct calls calls;
    struct leaks *leaks;
    struct vacate *vacate;
    struct stand_ins stand_ins;
    struct reload *reload;
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
 * A call that changes something, from its arrival to its answer: who asks for what. It is answered
 * by one of the functions that follow, each of which writes the audit trail.
 */
static struct call client_begin_call(const struct client *client, sd_bus_message *message,
                                     const char *what)
{
    return (struct call){
        .message = message,
        .audit = {.who = peer_requester(&client->peer), .what = what},
    };
}

static int client_refuse(struct client *client, const struct call *call,
                         const struct failure *failure)
{
    (void)client;
    audit_log(&call->audit, failure);
    return call_answer_failure(call->message, failure);
}

static int client_answer(struct client *client, const struct call *call,
                         struct json_object *document)
{
    (void)client;
    audit_log(&call->audit, NULL);
    return call_answer_document(call->message, document);
}

static int client_check_right(const struct client *client, enum right right, bool is_own,
                              struct failure *failure)
{
    return rights_check(client->peer.role, right, is_own, failure);
}

/* Nobody owns the flight recorder. */
static bool client_owns(const struct client *client, const struct session *session)
{
    return session->requester.is_set && session->requester.uid == client->peer.uid &&
           !session->settings.is_recorder;
}

/* It has no options but the configuration's. */
static int client_start_recorder(struct client *client, struct call *call,
                                 const struct start_request *request)
{
    struct manager *manager = client->control->manager;
    struct failure failure = {0};
    struct session *session;
    int r;

    if (client_check_right(client, RIGHT_START_RECORDER, false, &failure) < 0)
        return client_refuse(client, call, &failure);
    if (request->has_options) {
        (void)failure_set(&failure, -EINVAL, ERROR_INVALID,
                          "'%s' is the name of the flight recorder: start it without options, with "
                          "xentracectl start %s. For a capture, choose another name.",
                          request->name, request->name);
        return client_refuse(client, call, &failure);
    }
    r = manager_start_recorder(manager, &session, &failure);
    if (r < 0)
        return client_refuse(client, call, &failure);
    if (session->state == SESSION_RUNNING)
        return client_answer(client, call, document_of_session(session));
    call->session = session;
    call->until = SESSION_RUNNING;
    return calls_keep(&client->control->calls, call);
}

/*
 * The descriptor for which *FD stands; -1 stays -1. It is borrowed, until the call is dispatched.
 * Nobody copies one of a file system that may not answer: to close it again would wait.
 */
static int client_find_passed(const struct client *client, int *fd, const char *name,
                              struct failure *failure)
{
    if (*fd < 0)
        return 0;
    *fd = stand_ins_find(&client->control->stand_ins, client->passed, *fd);
    if (*fd < 0)
        return failure_set(failure, -EBADF, ERROR_INVALID,
                           "The call cannot be read: a descriptor is missing.");
    return client->peer.uid == 0 ? 0 : passed_file_check_mount(*fd, name, failure);
}

static int client_find_outputs(const struct client *client, const char *path, int *output_fd,
                               int *sidecar_fd, struct failure *failure)
{
    int r = client_find_passed(client, output_fd, path, failure);

    return r < 0 ? r : client_find_passed(client, sidecar_fd, "The sidecar", failure);
}

/* Whoever may choose the output may start a capture; without one it goes to the state directory. */
static int client_check_start(const struct client *client, const struct start_request *request,
                              struct failure *failure)
{
    int r;

    r = client_check_right(client, RIGHT_START_OUTPUT, true, failure);
    if (r >= 0 && request->options.keep_enabled)
        r = client_check_right(client, RIGHT_START_KEEP_ENABLED, true, failure);
    if (r >= 0 && request->options.buffer_pages)
        r = client_check_right(client, RIGHT_START_BUFFER_PAGES, true, failure);
    if (r < 0 || request->options.has_output)
        return r;
    return client_check_right(client, RIGHT_START_STATE_DIR, true, failure);
}

static int client_start_capture(struct client *client, struct call *call,
                                struct start_request *request)
{
    struct control *control = client->control;
    struct failure failure = {0};
    struct session *session;
    int r;

    r = client_check_start(client, request, &failure);
    if (r < 0)
        return client_refuse(client, call, &failure);
    request->options.requester = call->audit.who;
    r = manager_start_session(control->manager, request->name, &request->options, &session,
                              &failure);
    if (r < 0)
        return client_refuse(client, call, &failure);
    if (request->attached)
        client_attach(client, session);
    call->session = session;
    call->until = SESSION_RUNNING;
    return calls_keep(&control->calls, call);
}

static int client_start(struct client *client, struct call *call, struct start_request *request)
{
    struct failure failure = {0};
    int r;

    audit_name_object(&call->audit, request->name);
    r = calls_check(&client->control->calls, client->peer.person, &failure);
    if (r < 0)
        return client_refuse(client, call, &failure);
    if (strcmp(request->name, RECORDER_NAME) == 0)
        return client_start_recorder(client, call, request);
    return client_start_capture(client, call, request);
}

static int method_start(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct control *control = client->control;
    struct call call = client_begin_call(client, message, PROTOCOL_START);
    struct failure failure = {0};
    struct start_request request;
    int r;

    (void)error;
    r = request_read_start(message, &control->manager->config, &request, &failure);
    if (r >= 0)
        r = client_find_outputs(client, request.options.output_path, &request.options.output_fd,
                                &request.options.sidecar_fd, &failure);
    if (r < 0)
        return client_refuse(client, &call, &failure);
    request.options.by_root = client->peer.uid == 0;
    return client_start(client, &call, &request);
}

/*
 * A client without the right for any capture receives this error, which does not reveal the names
 * of captures.
 */
static int client_read_name(struct client *client, struct call *call, enum right right,
                            const char **ret_name, struct failure *failure)
{
    int r;

    r = client_check_right(client, right, true, failure);
    if (r < 0)
        return r;
    r = sd_bus_message_read(call->message, "s", ret_name);
    if (r < 0)
        return failure_set(failure, r, ERROR_INVALID, "The call cannot be read: %s.", strerror(-r));
    audit_name_object(&call->audit, *ret_name);
    return calls_check(&client->control->calls, client->peer.person, failure);
}

/* The session that CALL is about, if the client may do that to it: else NULL and FAILURE. */
static struct session *client_read_capture(struct client *client, struct call *call,
                                           enum right right, struct failure *failure)
{
    struct session *session;
    const char *name;

    if (client_read_name(client, call, right, &name, failure) < 0)
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

static int method_stop(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct call call = client_begin_call(client, message, PROTOCOL_STOP);
    struct failure failure = {0};
    struct session *session;
    int r;

    (void)error;
    session = client_read_capture(client, &call, RIGHT_STOP, &failure);
    if (!session)
        return client_refuse(client, &call, &failure);
    if (session->state == SESSION_ENDED)
        return client_answer(client, &call, document_of_session(session));
    /* Kept first: the session may end at once. */
    r = calls_keep(&client->control->calls, &call);
    session_stop(session, END_STOP);
    return r;
}

/* For a session whose disk does not answer. The answer shows what the kernel still holds. */
static int method_abort(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct call call = client_begin_call(client, message, PROTOCOL_ABORT);
    struct failure failure = {0};
    struct session *session;

    (void)error;
    session = client_read_capture(client, &call, RIGHT_ABORT, &failure);
    if (!session)
        return client_refuse(client, &call, &failure);
    session_abort(session);
    if (session->state == SESSION_ENDED)
        return client_answer(client, &call, document_of_session(session));
    return calls_keep(&client->control->calls, &call);
}

static int method_stop_recorder(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct control *control = client->control;
    struct call call = client_begin_call(client, message, PROTOCOL_STOP_RECORDER);
    struct recorder_stop stop = {
        .realtime_ns = clock_pair_now().realtime_ns,
        .uid = client->peer.uid,
        .pid = client->peer.pid,
    };
    struct failure failure = {0};
    int r;

    (void)error;
    r = client_check_right(client, RIGHT_STOP_RECORDER, false, &failure);
    if (r < 0)
        return client_refuse(client, &call, &failure);
    (void)snprintf(stop.comm, sizeof(stop.comm), "%s", call.audit.who.comm);
    r = calls_check(&control->calls, client->peer.person, &failure);
    if (r >= 0)
        r = manager_stop_recorder(control->manager, &stop, &failure);
    if (r < 0)
        return client_refuse(client, &call, &failure);
    if (r > 0)
        return client_answer(client, &call, status_of_recorder(control->manager));
    call.stops_recorder = true;
    return calls_keep(&control->calls, &call);
}

static int method_status(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    const struct requester who = peer_requester(&client->peer);
    struct failure failure = {0};
    const struct session *session;
    const char *name;
    int r;

    (void)error;
    if (client_check_right(client, RIGHT_STATUS, false, &failure) < 0)
        return call_answer_failure(call, &failure);
    r = sd_bus_message_read(call, "s", &name);
    if (r < 0)
        return r;
    if (name[0] == '\0')
        return call_answer_document(call, status_document(client->control->manager));
    session = manager_find_session(client->control->manager, &who, name, &failure);
    if (!session)
        return call_answer_failure(call, &failure);
    return call_answer_document(call, document_of_session(session));
}

/* A part of the ring's newest records, into a pipe, again and again: what live views read. */
static enum right right_of_snapshot(const struct snapshot_options *options)
{
    if (!options->has_output)
        return RIGHT_SNAPSHOT;
    return options->span.last_usec > 0 && options->sidecar_fd < 0 ? RIGHT_SNAPSHOT_LIVE
                                                                  : RIGHT_SNAPSHOT_OUTPUT;
}

static int client_take_snapshot(struct client *client, struct call *call,
                                struct snapshot_request *request)
{
    struct control *control = client->control;
    struct failure failure = {0};
    struct snapshot *snapshot;
    int r;

    audit_name_object(&call->audit, request->options.name);
    r = client_check_right(client, right_of_snapshot(&request->options), false, &failure);
    if (r < 0)
        return client_refuse(client, call, &failure);
    r = calls_check(&control->calls, client->peer.person, &failure);
    if (r < 0)
        return client_refuse(client, call, &failure);
    request->options.requester = call->audit.who;
    request->options.by_root = client->peer.uid == 0;
    request->options.user = (struct snapshot_user){
        .person = client->peer.person,
        .is_limited = client->peer.person != PERSON_ROOT,
        .may_pass_outputs = client->peer.role >= ROLE_OPERATE,
    };
    if (user_limits_is_live(&request->options))
        call->audit.what = NULL; /* once a second */
    r = manager_start_snapshot(control->manager, request->session, &request->options, &snapshot,
                               &failure);
    if (r < 0)
        return client_refuse(client, call, &failure);
    call->snapshot = snapshot;
    return calls_keep(&control->calls, call);
}

static int method_snapshot(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct control *control = client->control;
    struct call call = client_begin_call(client, message, PROTOCOL_SNAPSHOT);
    struct failure failure = {0};
    struct snapshot_request request;
    int r;

    (void)error;
    r = request_read_snapshot(message, &control->manager->config, &request, &failure);
    if (r >= 0)
        r = client_find_outputs(client, request.options.output_path, &request.options.output_fd,
                                &request.options.sidecar_fd, &failure);
    if (r < 0)
        return client_refuse(client, &call, &failure);
    return client_take_snapshot(client, &call, &request);
}

static int method_rotate(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct control *control = client->control;
    struct call call = client_begin_call(client, message, PROTOCOL_ROTATE);
    struct failure failure = {0};
    struct session *session;
    const char *name;
    int r;

    (void)error;
    r = client_read_name(client, &call, RIGHT_ROTATE, &name, &failure);
    if (r < 0)
        return client_refuse(client, &call, &failure);
    session = manager_find_segmented(control->manager, &call.audit.who, name, &failure);
    if (!session)
        return client_refuse(client, &call, &failure);
    audit_name_object(&call.audit, session->name);
    r = client_check_right(client, RIGHT_ROTATE, client_owns(client, session), &failure);
    if (r >= 0)
        r = segments_rotate(session, &call.segment, &failure);
    if (r < 0)
        return client_refuse(client, &call, &failure);
    call.session = session;
    return calls_keep(&control->calls, &call);
}

static int method_trigger(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct manager *manager = client->control->manager;
    struct call call = client_begin_call(client, message, PROTOCOL_TRIGGER);
    struct failure failure = {0};
    const struct trigger *trigger;
    const char *name;
    int r;

    (void)error;
    r = client_read_name(client, &call, RIGHT_TRIGGER, &name, &failure);
    if (r < 0)
        return client_refuse(client, &call, &failure);
    r = triggers_fire_manual(manager->triggers, name, &call.audit.who, &trigger, &failure);
    if (r < 0 && strcmp(failure.name, ERROR_NO_RING) == 0)
        manager_explain_no_ring(manager, &failure);
    if (r < 0)
        return client_refuse(client, &call, &failure);
    return client_answer(client, &call, document_of_trigger(trigger));
}

/* --- The state directory. --- */

static void control_handle_vacuum(void *userdata, uint64_t ticket,
                                  const struct vacuum_result *result)
{
    struct control *control = userdata;

    calls_handle_vacuum(&control->calls, ticket, control->manager->state_dir, result);
}

/* CALL is answered when REQUEST is done. */
static int client_ask_vacuum(struct client *client, struct call *call, enum right right,
                             struct vacuum_request *request)
{
    struct control *control = client->control;
    struct failure failure = {0};
    int r;

    request->who = call->audit.who;
    r = client_check_right(client, right, false, &failure);
    if (r < 0)
        return client_refuse(client, call, &failure);
    r = calls_check(&control->calls, client->peer.person, &failure);
    if (r < 0)
        return client_refuse(client, call, &failure);
    r = vacuum_send(control->manager->vacuum, request, control_handle_vacuum, control,
                    &call->ticket);
    if (r == -EAGAIN)
        (void)failure_set(&failure, r, ERROR_BUSY,
                          "Too many requests wait for the disk of the state directory. Nothing "
                          "was done. Try again later.");
    else if (r < 0)
        (void)failure_set(&failure, r, ERROR_NO_MEMORY, "Out of memory.");
    if (r < 0)
        return client_refuse(client, call, &failure);
    if (request->action == VACUUM_LIST || request->dry_run)
        call->audit.what = NULL; /* it changes nothing */
    return calls_keep(&control->calls, call);
}

static int method_files(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct call call = client_begin_call(client, message, PROTOCOL_FILES);
    struct vacuum_request request = {
        .action = VACUUM_LIST,
        .limits = client->control->manager->config.disk,
    };

    (void)error;
    return client_ask_vacuum(client, &call, RIGHT_FILES, &request);
}

static int method_vacuum(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct call call = client_begin_call(client, message, PROTOCOL_VACUUM);
    struct vacuum_request request = {.action = VACUUM_CLEAN};
    struct failure failure = {0};
    struct clean_request clean;

    (void)error;
    if (request_read_clean(message, &client->control->manager->config, &clean, &failure) < 0)
        return client_refuse(client, &call, &failure);
    request.limits = clean.limits;
    request.dry_run = clean.dry_run;
    return client_ask_vacuum(client, &call, RIGHT_VACUUM, &request);
}

static int method_remove(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct call call = client_begin_call(client, message, PROTOCOL_REMOVE);
    struct vacuum_request request = {
        .action = VACUUM_REMOVE,
        .limits = client->control->manager->config.disk,
    };
    char **names = NULL;
    int r;

    (void)error;
    r = sd_bus_message_read_strv(message, &names);
    if (r < 0)
        return r;
    while (names && names[request.nr_names])
        request.nr_names++;
    request.names = (const char *const *)names;
    if (request.nr_names > 0)
        audit_name_object(&call.audit, names[0]);
    r = client_ask_vacuum(client, &call, RIGHT_REMOVE, &request);
    for (size_t i = 0; i < request.nr_names; i++)
        free(names[i]);
    free(names);
    return r;
}

static int method_reload(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct control *control = client->control;
    struct call call = client_begin_call(client, message, PROTOCOL_RELOAD);
    struct failure failure = {0};

    (void)error;
    if (client_check_right(client, RIGHT_RELOAD, false, &failure) < 0 ||
        calls_check(&control->calls, client->peer.person, &failure) < 0)
        return client_refuse(client, &call, &failure);
    call.reload = reload_request(control->reload);
    return calls_keep(&control->calls, &call);
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

static int property_version(sd_bus *bus, const char *path, const char *interface,
                            const char *property, sd_bus_message *reply, void *userdata,
                            sd_bus_error *error)
{
    (void)bus, (void)path, (void)interface, (void)property, (void)userdata, (void)error;
    return sd_bus_message_append(reply, "s", PACKAGE_VERSION);
}

/* Without UNPRIVILEGED sd-bus itself refuses everybody but root: the decision is ours. */
static const sd_bus_vtable control_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_START, SD_BUS_ARGS("s", name, "a{sv}", options),
                            SD_BUS_RESULT("s", session), method_start, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_STOP, SD_BUS_ARGS("s", name), SD_BUS_RESULT("s", session),
                            method_stop, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_STOP_RECORDER, NULL, SD_BUS_RESULT("s", recorder),
                            method_stop_recorder, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_ABORT, SD_BUS_ARGS("s", name), SD_BUS_RESULT("s", session),
                            method_abort, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_STATUS, SD_BUS_ARGS("s", name), SD_BUS_RESULT("s", status),
                            method_status, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_SNAPSHOT, SD_BUS_ARGS("s", name, "a{sv}", options),
                            SD_BUS_RESULT("s", snapshot), method_snapshot,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_ROTATE, SD_BUS_ARGS("s", name), SD_BUS_RESULT("s", segment),
                            method_rotate, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_TRIGGER, SD_BUS_ARGS("s", name), SD_BUS_RESULT("s", trigger),
                            method_trigger, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_FILES, NULL, SD_BUS_RESULT("s", files), method_files,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_VACUUM, SD_BUS_ARGS("a{sv}", options),
                            SD_BUS_RESULT("s", files), method_vacuum, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_REMOVE, SD_BUS_ARGS("as", names), SD_BUS_RESULT("s", files),
                            method_remove, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_RELOAD, NULL, SD_BUS_RESULT("s", changes), method_reload,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_PROPERTY(PROTOCOL_VERSION, "s", property_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_VTABLE_END,
};

/* The first calls of busctl(1) and other clients that expect a message bus. */
static int method_hello(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    (void)userdata, (void)error;
    return sd_bus_reply_method_return(call, "s", ":1.1");
}

static int method_match(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    (void)userdata, (void)error;
    return sd_bus_reply_method_return(call, NULL);
}

static const sd_bus_vtable bus_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Hello", NULL, "s", method_hello, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("AddMatch", "s", NULL, method_match, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("RemoveMatch", "s", NULL, method_match, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

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
    if (client->bus)
        calls_forget_bus(&control->calls, client->bus);
    client_end_attached(client);
    relay_free(client->relay);
    sd_bus_close_unref(client->bus);
    free(client);
    return NULL;
}

static int64_t client_priority(const struct client *client)
{
    if (client->peer.role == ROLE_ROOT)
        return PRIORITY_ROOT;
    return client->peer.role == ROLE_OPERATE ? PRIORITY_OPERATOR : PRIORITY_VIEWER;
}

static int client_check_passing(const struct client *client, struct failure *failure)
{
    const struct control *control = client->control;

    if (!leaks_permit(control->leaks, client->peer.uid))
        return failure_set(
            failure, -EPERM, ERROR_NOT_PERMITTED,
            "Malformed messages of this user have cost descriptors: it may pass none "
            "until xentraced is restarted. Nothing was done; use sudo.");
    return vacate_check(control->vacate, client->peer.person, failure);
}

static bool client_may_pass(void *userdata)
{
    struct failure failure;

    return client_check_passing(userdata, &failure) >= 0;
}

/* Why the descriptors of a message were refused. */
static int client_refuse_passed(const struct client *client, sd_bus_message *message)
{
    struct failure failure = {0};

    if (client_check_passing(client, &failure) >= 0)
        (void)failure_set(
            &failure, -EINVAL, ERROR_INVALID,
            "A call passes %u descriptors at most: an output and its sidecar. Nothing "
            "was done.",
            PASSED_MAX);
    return call_answer_failure(message, &failure);
}

/* Sees each message first. */
static int client_handle_message(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;

    (void)error;
    client->nr_dispatched++;
    return client->passed->is_refused ? client_refuse_passed(client, message) : 0;
}

/* *FD is given away as soon as the bus has it. */
static int client_start_bus(struct client *client, int *fd)
{
    sd_id128_t id;
    sd_bus *bus;
    int r;

    r = sd_bus_new(&client->bus);
    if (r < 0)
        return r;
    bus = client->bus;
    r = sd_bus_set_fd(bus, *fd, *fd);
    if (r < 0)
        return r;
    (void)fd_take(fd); /* the bus closes it */
    r = sd_id128_randomize(&id);
    if (r < 0)
        return r;
    r = sd_bus_set_server(bus, 1, id);
    if (r < 0)
        return r;
    r = sd_bus_negotiate_fds(bus, client->passes_descriptors);
    if (r < 0)
        return r;
    r = sd_bus_negotiate_creds(bus, 0, 0);
    if (r < 0)
        return r;
    return sd_bus_start(bus);
}

static int client_serve_objects(struct client *client)
{
    sd_bus *bus = client->bus;
    int r;

    r = sd_bus_add_object_vtable(bus, NULL, PROTOCOL_PATH, PROTOCOL_INTERFACE, control_vtable,
                                 client);
    if (r < 0)
        return r;
    r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                 bus_vtable, client);
    if (r < 0)
        return r;
    return sd_bus_add_filter(bus, NULL, client_handle_message, client);
}

/* Until the bus has nothing more to do. */
static int client_process(struct client *client)
{
    int r = 1;

    for (unsigned int i = 0; r > 0 && i < BUS_TURNS_MAX; i++)
        r = sd_bus_process(client->bus, NULL);
    if (r < 0)
        return r;
    return sd_bus_is_open(client->bus) > 0 ? 0 : -ECONNRESET;
}

/*
 * sd-bus wants to be authenticated to, as it does not know that the client was: CLIENT_FD plays a
 * client who is. All of it is done at once, within this process.
 */
static int client_open_bus(struct client *client, int client_fd)
{
    static const char hello[] = "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";
    char answers[256]; /* three lines of less than 64 bytes */
    int r;

    if (send(client_fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(hello) - 1)
        return -EIO;
    r = client_process(client);
    if (r < 0)
        return r;
    if (sd_bus_is_ready(client->bus) <= 0)
        return -EPROTO;
    return recv(client_fd, answers, sizeof(answers), MSG_DONTWAIT) > 0 ? 0 : -EPROTO;
}

static int client_begin(void *userdata, int fd, int client_fd)
{
    struct client *client = userdata;
    _cleanup_fd_ int own_fd = fd;
    int r;

    r = client_start_bus(client, &own_fd);
    if (r < 0)
        return r;
    r = client_open_bus(client, client_fd);
    if (r < 0)
        return r;
    client_log(client, "connected");
    return client_serve_objects(client);
}

/* A message that sd-bus cannot read is lost, and so are its descriptors (libsystemd 252). */
static int client_receive(void *userdata, const struct passed *passed)
{
    struct client *client = userdata;
    int r;

    client->nr_dispatched = 0;
    client->passed = passed;
    r = client_process(client);
    client->passed = &passed_nothing;
    if (client->nr_dispatched > 0)
        return r;
    if (passed->count > 0)
        leaks_note(client->control->leaks, client->peer.uid, passed->count);
    return r < 0 ? r : -EBADMSG;
}

static int client_flush(void *userdata)
{
    struct client *client = userdata;
    uint64_t queued;
    int r;

    r = sd_bus_get_n_queued_write(client->bus, &queued);
    if (r < 0 || queued == 0)
        return r < 0 ? r : 0;
    r = client_process(client);
    if (r < 0)
        return r;
    r = sd_bus_get_n_queued_write(client->bus, &queued);
    return r < 0 ? r : queued > 0;
}

static void client_handle_closed(void *userdata, const char *reason)
{
    struct client *client = userdata;

    client_log(client, reason);
    client_free(client);
}

static const struct relay_server relay_server = {
    .begin = client_begin,
    .receive = client_receive,
    .may_pass = client_may_pass,
    .flush = client_flush,
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

static int client_new(struct control *control, int *fd, const struct peer *peer,
                      struct failure *failure)
{
    struct client **place = control_find_place(control, peer, failure);
    struct relay_options options = {
        .event = control->manager->event,
        .uid = peer->uid,
        .person = peer->person,
        .vacate = control->vacate,
        .stand_ins = &control->stand_ins,
        .server = &relay_server,
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
    client->passed = &passed_nothing;
    client->passes_descriptors = leaks_permit(control->leaks, peer->uid);
    options.priority = client_priority(client);
    options.passes_descriptors = client->passes_descriptors;
    options.userdata = client;
    r = relay_new(&options, fd, &client->relay);
    if (r < 0) {
        client_free(client);
        return failure_set(failure, r, ERROR_NO_MEMORY, "%s", strerror(-r));
    }
    *place = client;
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

/* A client that is refused sees the end of the connection. */
static void control_admit(struct control *control, int fd)
{
    struct failure failure = {0};
    struct peer peer;
    int r;

    r = peer_read(fd, &control->groups, control->persons, &peer);
    if (r < 0)
        (void)failure_set(&failure, r, ERROR_NO_MEMORY, "%s", strerror(-r));
    else if (peer.role == ROLE_NONE)
        r = failure_set(&failure, -EACCES, ERROR_NOT_PERMITTED,
                        "the user is not in a group with access");
    else
        r = client_new(control, &fd, &peer, &failure);
    if (r >= 0)
        return;
    control_log_refusal(control, &peer, &failure);
    vacate_close_connection(control->vacate, peer.person, fd);
}

/* What the client may do now. Whoever may do nothing any more is disconnected. */
static void client_update_role(struct client *client)
{
    struct peer peer;
    int r;

    r = peer_read(relay_fd(client->relay), &client->control->groups, client->control->persons,
                  &peer);
    if (r >= 0 && peer.role == client->peer.role)
        return;
    client->peer.role = peer.role;
    if (r >= 0 && peer.role != ROLE_NONE)
        r = relay_set_priority(client->relay, client_priority(client));
    if (r < 0 || peer.role == ROLE_NONE)
        client_handle_closed(client, "may not be connected any more");
    else
        client_log(client, "has this role after a reload");
}

/* The group database knows some of those who are connected now, or no longer. */
static void control_handle_persons(void *userdata)
{
    struct control *control = userdata;

    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i])
            control->clients[i]->peer.person =
                persons_find(control->persons, control->clients[i]->peer.uid);
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

    if (result->groups)
        control_set_groups(control, result->groups);
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
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0)
            control_admit(control, fd);
        else if (errno == EAGAIN)
            return 0;
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
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
        r = leaks_new(manager, &control->leaks);
    if (r >= 0)
        r = vacate_new(manager->workers, &control->vacate);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    r = stand_ins_init(&control->stand_ins);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot make files in memory: %s.",
                           strerror(-r));
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
    for (size_t i = 0; i < PASSED_MAX; i++)
        control->stand_ins.fds[i] = -1;
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
            relay_send_last(control->clients[i]->relay);
            client_free(control->clients[i]);
        }
    if (control->listen_source)
        (void)unlink(control->manager->socket_path);
    sd_event_source_disable_unref(control->listen_source);
    sd_event_source_disable_unref(control->resume_source);
    fd_close(&control->listen_fd);
    stand_ins_done(&control->stand_ins);
    vacate_free(control->vacate);
    leaks_free(control->leaks);
    persons_free(control->persons);
    reload_free(control->reload);
    free(control);
    return NULL;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sd-bus in server mode, one bus object per connection: with request.c all that knows D-Bus.
 *
 * Who may do what is decided from SO_PEERCRED and SO_PEERGROUPS at accept, never from what a
 * message says of its sender. Clients cannot hold the daemon up: their number is limited, they have
 * two seconds to get through the handshake, and one that does not read its answers is disconnected.
 *
 * A client that never stops calling delays nobody but its like. One dispatch of the event loop
 * processes one message of one client: sd-bus calls sd_bus_process() once for each readable event,
 * and so do we. The loop takes clients of one priority in turn, and everything else first
 * (daemon/base/priority.h). Clients who may only look come last and leave room for the others.
 *
 * Start and Stop are answered when the session runs or has ended, Snapshot when it is written:
 * until then the call is kept.
 */

#include "daemon/control/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <json-c/json.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "common/protocol.h"
#include "common/units.h"
#include "daemon/control/calls.h"
#include "daemon/document/document.h"
#include "daemon/document/trigger-document.h"
#include "daemon/control/listener.h"
#include "daemon/base/log.h"
#include "daemon/base/priority.h"
#include "daemon/manager.h"
#include "daemon/control/peer.h"
#include "daemon/control/reload.h"
#include "daemon/control/request.h"
#include "daemon/control/status.h"
#include "daemon/session/recorder.h"
#include "daemon/session/recorder-stop.h"
#include "daemon/session/segments.h"
#include "daemon/session/session.h"
#include "daemon/session/snapshot.h"
#include "daemon/triggers/triggers.h"

#define MAX_CLIENTS          32u
#define MAX_LOOKERS          24u /* of them may be clients who may only look */
#define MAX_QUEUED_ANSWERS   16u /* of one client that does not read */
#define HANDSHAKE_USEC       (2 * USEC_PER_SEC)
#define REFUSAL_USEC         (10 * USEC_PER_SEC) /* between two warnings */
#define ACCEPT_INTERVAL_USEC (100 * USEC_PER_MSEC)
#define ACCEPT_BURST         100u /* attempts per interval */

/* What sd-bus may have read beyond a handshake: 64 KiB, of messages of 16 bytes at least. */
#define MAX_LEFTOVER_MESSAGES (65536u / 16u)

struct client {
    struct control *control;
    sd_bus *bus;
    struct peer peer;
    bool is_ready;
    sd_event_source *handshake_source;
    sd_event_source *leftover_source; /* see client_handle_leftover() */
    unsigned int nr_leftovers;
    struct session *attached; /* the session that ends when this client goes; NULL: none */
};

struct control {
    struct manager *manager;
    struct peer_groups groups;
    int listen_fd;
    sd_event_source *listen_source;
    sd_event_source *ready_source; /* see control_handle_dispatched() */
    uint64_t refused_usec; /* when the log last reported that a client was not served; 0: never */
    struct client *clients[MAX_CLIENTS];
    struct calls calls;
    struct reload *reload;
};

/* --- Changes that the manager reports. --- */

static int control_keep_session_call(struct control *control, sd_bus_message *message,
                                     const struct session *session, enum session_state until)
{
    const struct call call = {.message = message, .session = session, .until = until};

    return calls_keep(&control->calls, &call);
}

/* SESSION runs, could not start, or has ended: then it may be freed at any time. */
static void control_handle_session_change(void *userdata, struct session *session)
{
    struct control *control = userdata;

    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (session->state == SESSION_ENDED && control->clients[i] &&
            control->clients[i]->attached == session)
            control->clients[i]->attached = NULL;
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

/* Clients that are connected keep the rights that they had. */
static void control_handle_reloaded(void *userdata, const struct reload_result *result)
{
    struct control *control = userdata;

    if (result->groups)
        control->groups = *result->groups;
    calls_handle_reload(&control->calls, result);
}

void control_reload(struct control *control)
{
    (void)reload_request(control->reload); /* nobody waits for its number */
}

/* --- Methods. --- */

static int client_check_may_control(const struct client *client, sd_bus_message *call)
{
    if (client->peer.may_control)
        return 0;
    (void)sd_bus_reply_method_errorf(
        call, ERROR_NOT_PERMITTED,
        "You may look, but not start or stop: that is for root and the group that control-group= "
        "names in xentraced.conf. Use sudo.");
    return -EPERM;
}

/* "root, UID 0 (xentracectl, PID 1234)". Returns WHO, which is RECORDER_STOP_TEXT_MAX long. */
static const char *client_describe(const struct client *client, char *who)
{
    struct recorder_stop peer = {.uid = client->peer.uid, .pid = client->peer.pid};

    (void)peer_read_comm(&client->peer, peer.comm);
    return recorder_stop_describe(who, &peer);
}

/* Who stopped it is in its end's line. */
static void client_log_recorder_start(const struct client *client)
{
    char who[RECORDER_STOP_TEXT_MAX];

    log_line(LOG_INFO, RECORDER_NAME, "Started by %s.", client_describe(client, who));
}

/* It has no options but the configuration's. Whoever may start captures may start it. */
static int control_start_recorder(struct client *client, sd_bus_message *call,
                                  const struct start_request *request)
{
    struct manager *manager = client->control->manager;
    struct failure failure = {0};
    struct session *session;
    int r;

    if (request->has_options) {
        (void)failure_set(&failure, -EINVAL, ERROR_INVALID,
                          "'%s' is the recorder that [flight-recorder] of the configuration "
                          "describes: `xentracectl start %s` starts it, without options. For a "
                          "capture, choose another name.",
                          request->name, request->name);
        return call_answer_failure(call, &failure);
    }
    r = manager_start_recorder(manager, &session, &failure);
    if (r < 0)
        return call_answer_failure(call, &failure);
    if (session->state == SESSION_RUNNING)
        return call_answer_document(call, document_of_session(session));
    client_log_recorder_start(client);
    return control_keep_session_call(client->control, call, session, SESSION_RUNNING);
}

static int method_start(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct control *control = client->control;
    struct failure failure = {0};
    struct start_request request;
    struct session *session;
    int r;

    (void)error;
    if (client_check_may_control(client, call) < 0)
        return 1;
    r = request_read_start(call, &control->manager->config, &request, &failure);
    if (r < 0)
        return call_answer_failure(call, &failure);
    if (strcmp(request.name, RECORDER_NAME) == 0)
        return control_start_recorder(client, call, &request);
    r = manager_start_session(control->manager, request.name, &request.options, &session, &failure);
    if (r < 0)
        return call_answer_failure(call, &failure);
    if (request.attached)
        client->attached = session;
    return control_keep_session_call(control, call, session, SESSION_RUNNING);
}

static struct session *client_read_session(struct client *client, sd_bus_message *call,
                                           struct failure *failure)
{
    const char *name;
    int r;

    r = sd_bus_message_read(call, "s", &name);
    if (r < 0) {
        (void)failure_set(failure, r, ERROR_INVALID, "The call cannot be read: %s.", strerror(-r));
        return NULL;
    }
    return manager_find_session(client->control->manager, name, failure);
}

/* One that the client may end so. */
static struct session *client_read_capture(struct client *client, sd_bus_message *call,
                                           struct failure *failure)
{
    struct session *session = client_read_session(client, call, failure);

    return session && manager_check_stop(session, failure) >= 0 ? session : NULL;
}

static int method_stop(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct failure failure = {0};
    struct session *session;
    int r;

    (void)error;
    if (client_check_may_control(client, call) < 0)
        return 1;
    session = client_read_capture(client, call, &failure);
    if (!session)
        return call_answer_failure(call, &failure);
    if (session->state == SESSION_ENDED)
        return call_answer_document(call, document_of_session(session));
    /* Kept first: the session may end at once. */
    r = control_keep_session_call(client->control, call, session, SESSION_ENDED);
    session_stop(session, END_STOP);
    return r;
}

/* For a session whose disk does not answer. The answer shows what the kernel still holds. */
static int method_abort(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct failure failure = {0};
    struct session *session;

    (void)error;
    if (client_check_may_control(client, call) < 0)
        return 1;
    session = client_read_capture(client, call, &failure);
    if (!session)
        return call_answer_failure(call, &failure);
    session_abort(session);
    if (session->state == SESSION_ENDED)
        return call_answer_document(call, document_of_session(session));
    return control_keep_session_call(client->control, call, session, SESSION_ENDED);
}

/*
 * Not for the control group: what ends is the host's history, which belongs to everybody who may
 * take a snapshot of it.
 */
static int method_stop_recorder(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct control *control = client->control;
    const struct call kept = {.message = call, .stops_recorder = true};
    struct recorder_stop stop = {
        .realtime_ns = clock_pair_now().realtime_ns,
        .uid = client->peer.uid,
        .pid = client->peer.pid,
    };
    struct failure failure = {0};
    int r;

    (void)error;
    if (client->peer.uid != 0)
        return sd_bus_reply_method_errorf(
            call, ERROR_NOT_PERMITTED,
            "Only root may stop the flight recorder, because its history is lost then. Use sudo.");
    (void)peer_read_comm(&client->peer, stop.comm);
    r = manager_stop_recorder(control->manager, &stop, &failure);
    if (r < 0)
        return call_answer_failure(call, &failure);
    if (r > 0)
        return call_answer_document(call, status_of_recorder(control->manager));
    return calls_keep(&control->calls, &kept);
}

static int method_status(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct failure failure = {0};
    const struct session *session;
    const char *name;
    int r;

    (void)error;
    r = sd_bus_message_read(call, "s", &name);
    if (r < 0)
        return r;
    if (name[0] == '\0')
        return call_answer_document(call, status_document(client->control->manager));
    session = manager_find_session(client->control->manager, name, &failure);
    if (!session)
        return call_answer_failure(call, &failure);
    return call_answer_document(call, document_of_session(session));
}

/* Everybody who may look may take one; only those who may control can send a descriptor. */
static int method_snapshot(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct control *control = client->control;
    struct failure failure = {0};
    struct snapshot_request request;
    struct call kept = {.message = call};
    struct snapshot *snapshot;
    int r;

    (void)error;
    r = request_read_snapshot(call, &control->manager->config, &request, &failure);
    if (r < 0)
        return call_answer_failure(call, &failure);
    r = manager_start_snapshot(control->manager, request.session, &request.options, &snapshot,
                               &failure);
    if (r < 0)
        return call_answer_failure(call, &failure);
    kept.snapshot = snapshot;
    return calls_keep(&control->calls, &kept);
}

static int method_rotate(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct control *control = client->control;
    struct failure failure = {0};
    struct call kept = {.message = call};
    struct session *session;
    const char *name;
    int r;

    (void)error;
    if (client_check_may_control(client, call) < 0)
        return 1;
    r = sd_bus_message_read(call, "s", &name);
    if (r < 0)
        return r;
    session = manager_find_segmented(control->manager, name, &failure);
    if (!session || segments_rotate(session, &kept.segment, &failure) < 0)
        return call_answer_failure(call, &failure);
    kept.session = session;
    return calls_keep(&control->calls, &kept);
}

static int method_trigger(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct manager *manager = client->control->manager;
    struct failure failure = {0};
    const struct trigger *trigger;
    const char *name;
    int r;

    (void)error;
    r = sd_bus_message_read(call, "s", &name);
    if (r < 0)
        return r;
    r = triggers_fire_manual(manager->triggers, name, &trigger, &failure);
    if (r < 0 && strcmp(failure.name, ERROR_NO_RING) == 0)
        manager_explain_no_ring(manager, &failure);
    if (r < 0)
        return call_answer_failure(call, &failure);
    return call_answer_document(call, document_of_trigger(trigger));
}

static int method_reload(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    struct control *control = client->control;
    struct call kept = {.message = call};
    char who[RECORDER_STOP_TEXT_MAX];

    (void)error;
    if (client->peer.uid != 0)
        return sd_bus_reply_method_errorf(
            call, ERROR_NOT_PERMITTED, "Only root may reload the configuration. Use sudo.");
    log_info("Reload of the configuration, asked for by %s.", client_describe(client, who));
    kept.reload = reload_request(control->reload);
    return calls_keep(&control->calls, &kept);
}

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
    SD_BUS_METHOD_WITH_ARGS(PROTOCOL_RELOAD, NULL, SD_BUS_RESULT("s", changes), method_reload,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_PROPERTY(PROTOCOL_VERSION, "s", property_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_VTABLE_END,
};

/* What busctl(1) and other clients made for a message bus ask first. */
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

static void client_end_attached_session(struct client *client)
{
    if (client->attached)
        session_stop(client->attached, END_CLIENT_GONE);
}

static void client_log(const struct client *client, const char *what)
{
    log_debug("Client of UID %u, who may %s: %s.", (unsigned int)client->peer.uid,
              client->peer.may_control ? "control" : "look", what);
}

static struct client *client_free(struct client *client)
{
    struct control *control = client->control;

    client_log(client, "disconnected");
    calls_forget_bus(&control->calls, client->bus);
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i] == client)
            control->clients[i] = NULL;
    client_end_attached_session(client);
    sd_event_source_disable_unref(client->handshake_source);
    sd_event_source_disable_unref(client->leftover_source);
    sd_bus_close_unref(client->bus);
    free(client);
    return NULL;
}

static int client_handle_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    (void)message, (void)error;
    client_free(userdata);
    return 0;
}

static int client_handle_handshake_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    (void)source, (void)usec;
    client_free(userdata);
    return 0;
}

/* A client's answers pile up if it does not read them. */
static int client_filter_message(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    struct client *client = userdata;
    uint64_t queued;

    (void)message, (void)error;
    if (sd_bus_get_n_queued_write(client->bus, &queued) >= 0 && queued > MAX_QUEUED_ANSWERS) {
        client_log(client, "does not read its answers");
        client_free(client);
        return 1;
    }
    return 0;
}

static int client_priority(const struct client *client)
{
    return client->peer.may_control ? PRIORITY_CONTROLLER : PRIORITY_LOOKER;
}

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
    r = sd_bus_negotiate_fds(bus, client->peer.may_control);
    if (r < 0)
        return r;
    r = sd_bus_negotiate_creds(bus, 0, 0);
    if (r < 0)
        return r;
    r = sd_bus_start(bus);
    if (r < 0)
        return r;
    return sd_bus_attach_event(bus, client->control->manager->event, client_priority(client));
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
    r = sd_bus_add_filter(bus, NULL, client_filter_message, client);
    if (r < 0)
        return r;
    return sd_bus_match_signal_async(bus, NULL, "org.freedesktop.DBus.Local", NULL,
                                     "org.freedesktop.DBus.Local", "Disconnected",
                                     client_handle_disconnected, NULL, client);
}

/*
 * When the client's BEGIN and its first messages arrive in one read, sd-bus (252) does not look at
 * the messages before the next readable event, which may never come. So the bus is processed, one
 * message each time, until it has nothing more to do, or has had everything that can be left over:
 * from there on the loop serves it as often as any other client.
 */
static int client_handle_leftover(sd_event_source *source, void *userdata)
{
    struct client *client = userdata;
    bool is_last = ++client->nr_leftovers == MAX_LEFTOVER_MESSAGES;
    sd_bus *bus = sd_bus_ref(client->bus); /* the client may go while it is processed */

    (void)sd_event_source_ref(source);
    if (sd_bus_process(bus, NULL) <= 0 || is_last)
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
    sd_event_source_unref(source);
    sd_bus_unref(bus);
    return 0;
}

static int client_begin_serving(struct client *client)
{
    int r;

    client->is_ready = true;
    client->handshake_source = sd_event_source_disable_unref(client->handshake_source);
    client_log(client, "connected");
    r = sd_event_add_defer(client->control->manager->event, &client->leftover_source,
                           client_handle_leftover, client);
    if (r < 0)
        return r;
    r = sd_event_source_set_priority(client->leftover_source, client_priority(client));
    if (r < 0)
        return r;
    return sd_event_source_set_enabled(client->leftover_source, SD_EVENT_ON);
}

static struct client **control_free_slot(struct control *control, const struct peer *peer)
{
    struct client **slot = NULL;
    size_t lookers = 0;

    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        if (!control->clients[i])
            slot = &control->clients[i];
        else if (!control->clients[i]->peer.may_control)
            lookers++;
    }
    return peer->may_control || lookers < MAX_LOOKERS ? slot : NULL;
}

static int client_set_up(struct client *client, int *fd)
{
    int r;

    r = client_start_bus(client, fd);
    if (r < 0)
        return r;
    r = client_serve_objects(client);
    if (r < 0)
        return r;
    r = sd_event_add_time_relative(client->control->manager->event, &client->handshake_source,
                                   CLOCK_MONOTONIC, HANDSHAKE_USEC, USEC_PER_MSEC,
                                   client_handle_handshake_time, client);
    if (r < 0)
        return r;
    return sd_event_source_set_enabled(client->control->ready_source, SD_EVENT_ON);
}

static int client_new(struct control *control, int *fd, const struct peer *peer)
{
    struct client **slot = control_free_slot(control, peer);
    struct client *client;
    int r;

    if (!slot)
        return -EUSERS;
    client = calloc(1, sizeof(*client));
    if (!client)
        return -ENOMEM;
    client->control = control;
    client->peer = *peer;
    *slot = client;
    r = client_set_up(client, fd);
    if (r < 0)
        client_free(client);
    return r;
}

/* --- The socket. --- */

/* Runs after every dispatch while a client is in its handshake: sd-bus does not report its end. */
static int control_handle_dispatched(sd_event_source *source, void *userdata)
{
    struct control *control = userdata;
    bool any_waits = false;

    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        struct client *client = control->clients[i];

        if (!client || client->is_ready)
            continue;
        if (sd_bus_is_ready(client->bus) <= 0)
            any_waits = true;
        else if (client_begin_serving(client) < 0)
            client_free(client);
    }
    if (!any_waits)
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
    return 0;
}

/* Clients who are refused may try again at once, and for ever: the log is for others, too. */
static void control_log_refusal(struct control *control, const struct peer *peer, int error)
{
    uint64_t now_usec = 0;
    bool is_soon;

    (void)sd_event_now(control->manager->event, CLOCK_MONOTONIC, &now_usec); /* the clock exists */
    is_soon = control->refused_usec > 0 && now_usec < control->refused_usec + REFUSAL_USEC;
    log_line(is_soon ? LOG_DEBUG : LOG_WARNING, NULL, "A client (UID %u) could not be served: %s.",
             (unsigned int)peer->uid, strerror(-error));
    if (!is_soon)
        control->refused_usec = now_usec;
}

static int control_handle_connection(sd_event_source *source, int listen_fd, uint32_t revents,
                                     void *userdata)
{
    struct control *control = userdata;
    _cleanup_fd_ int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct peer peer;
    int r;

    (void)source, (void)revents;
    if (fd < 0)
        return 0; /* it went away again, or out of descriptors: then later ones are served */
    r = peer_read(fd, &control->groups, &peer);
    if (r >= 0 && peer.may_look)
        r = client_new(control, &fd, &peer);
    if (r < 0)
        control_log_refusal(control, &peer, r);
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
    r = sd_event_source_set_priority(control->listen_source, PRIORITY_CONTROLLER);
    if (r < 0)
        return r;
    /* Out of descriptors, a connection cannot be accepted and keeps the socket readable. */
    r = sd_event_source_set_ratelimit(control->listen_source, ACCEPT_INTERVAL_USEC, ACCEPT_BURST);
    if (r < 0)
        return r;
    r = sd_event_add_post(event, &control->ready_source, control_handle_dispatched, control);
    if (r < 0)
        return r;
    return sd_event_source_set_enabled(control->ready_source, SD_EVENT_OFF);
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
    r = listener_open(manager->socket_path, &control->listen_fd, failure);
    if (r < 0)
        return r;
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
        if (control->clients[i])
            client_free(control->clients[i]);
    if (control->listen_source)
        (void)unlink(control->manager->socket_path);
    sd_event_source_disable_unref(control->listen_source);
    sd_event_source_disable_unref(control->ready_source);
    fd_close(&control->listen_fd);
    reload_free(control->reload);
    free(control);
    return NULL;
}

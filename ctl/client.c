// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The socket is connected here and not by sd-bus: connect() fails at once with an errno that
 * explains why, and the path needs no escaping.
 *
 * All waiting is done in one place, wait_until(), on an sd-event loop that also receives the
 * signals. So the commands are written one step after the other, and no step can hang.
 */

#include "ctl/client.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-event.h>

#include "common/tracer.h"
#include "ctl/served.h"
#include "ctl/str.h"

#define CONNECT_TIMEOUT_SEC 5
#define PATIENCE_USEC       (3 * USEC_PER_SEC) /* a healthy disk takes a stop in less */
#define RETRY_USEC          (1 * USEC_PER_SEC)

struct client {
    sd_event *event;
    sd_bus *bus;
    char *path;
    unsigned int interrupts; /* signals that have not ended a wait yet */
    int signal;              /* the last of them, if it came to this process alone; else 0 */
    sd_event_source *child;  /* NULL: none is watched */
    bool child_has_ended;
    int child_status; /* as of waitpid() */
};

/* One call on its way. */
struct call {
    const char *name; /* argument of while_waiting */
    int (*while_waiting)(struct client *client, const char *name);
    sd_bus_message *reply;
};

static bool is_other_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !S_ISSOCK(st.st_mode);
}

/* It may be waiting for a program that has Xen's trace buffers. */
static int explain_no_daemon(const char *path, char **ret_error)
{
    char who[TRACER_TEXT_MAX];

    if (tracer_find(true, who))
        return str_refuse(-ENOTCONN, ret_error,
                          "Cannot reach xentraced at %s: it is not running, or is waiting for %s, "
                          "which seems to trace this host. Xen allows one tracer at a time. End "
                          "that program first, then: systemctl start xentraced",
                          path, who);
    return str_refuse(-ENOTCONN, ret_error,
                      "Cannot reach xentraced at %s: it is not running. To start it: systemctl "
                      "start xentraced",
                      path);
}

static int explain_connect(const char *path, int r, char **ret_error)
{
    if (is_other_file(path))
        return str_refuse(-ECONNRESET, ret_error,
                          "%s is not a socket. --socket and XENTRACED_SOCKET name the socket that "
                          "xentraced listens on; without them it is " XENTRACED_SOCKET ".",
                          path);
    switch (-r) {
    case ENOENT:
    case ECONNREFUSED:
        return explain_no_daemon(path, ret_error);
    case EACCES:
    case EPERM:
    case EPIPE: /* closed at once: that is how the daemon says no */
    case ECONNRESET:
        return str_refuse(
            -ECONNRESET, ret_error,
            "Not permitted to reach xentraced at %s. It is open to root, the group xentrace "
            "(status and snapshots), and the group set by control-group= (your own captures).",
            path);
    case EUSERS:
        return str_refuse(-ECONNRESET, ret_error,
                          "xentraced at %s closed the connection: the limit of clients, in all or "
                          "per user, is reached. Try again later.",
                          path);
    case EAGAIN:
        return str_refuse(-ECONNRESET, ret_error,
                          "Cannot reach xentraced at %s: it does not accept connections "
                          "(see: systemctl status xentraced).",
                          path);
    }
    errno = -r;
    return str_refuse(-ECONNRESET, ret_error,
                      "Cannot reach xentraced at %s: %m (check --socket and XENTRACED_SOCKET).",
                      path);
}

static int open_socket(const char *path, int *ret_fd)
{
    const struct timeval timeout = {.tv_sec = CONNECT_TIMEOUT_SEC};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = -1;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    *ret_fd = fd_take(&fd);
    return 0;
}

/* FD is sd-bus's from here on, even if this fails. */
static int open_bus(struct client *client, int fd)
{
    _cleanup_fd_ int own_fd = fd;
    int r;

    r = sd_bus_new(&client->bus);
    if (r < 0)
        return r;
    r = sd_bus_set_fd(client->bus, own_fd, own_fd);
    if (r < 0)
        return r;
    (void)fd_take(&own_fd); /* sd-bus closes it */
    r = sd_bus_negotiate_fds(client->bus, true);
    if (r < 0)
        return r;
    r = sd_bus_start(client->bus);
    if (r < 0)
        return r;
    return sd_bus_attach_event(client->bus, client->event, SD_EVENT_PRIORITY_NORMAL);
}

/* Also true if the daemon closed the connection: it will never be ready then. */
static bool is_ready(struct client *client, void *context)
{
    (void)context;
    return sd_bus_is_ready(client->bus) > 0 || sd_bus_is_open(client->bus) <= 0;
}

static bool is_answered(struct client *client, void *context)
{
    (void)client;
    return ((struct call *)context)->reply;
}

static bool is_child_done(struct client *client, void *context)
{
    (void)context;
    return client->child_has_ended;
}

static bool is_never(struct client *client, void *context)
{
    (void)client, (void)context;
    return false;
}

/* Runs the loop until DONE says so: 0; -ETIMEDOUT; -EINTR after a signal, which it uses up. */
static int wait_until(struct client *client, bool (*done)(struct client *, void *), void *context,
                      uint64_t timeout_usec)
{
    uint64_t now, end;
    int r;

    r = sd_event_now(client->event, CLOCK_MONOTONIC, &now);
    if (r < 0)
        return r;
    end = now + timeout_usec;
    while (!done(client, context)) {
        if (client->interrupts > 0) {
            client->interrupts--;
            return -EINTR;
        }
        if (now >= end)
            return -ETIMEDOUT;
        r = sd_event_run(client->event, end - now);
        if (r < 0)
            return r;
        r = sd_event_now(client->event, CLOCK_MONOTONIC, &now);
        if (r < 0)
            return r;
    }
    return 0;
}

/*
 * The daemon closed the connection at once. Root is permitted everything, so it has no room; and so
 * it has if the socket itself refuses those who are not permitted.
 */
static int explain_closed(struct client *client, char **ret_error)
{
    struct stat st;
    bool is_restricted;

    is_restricted = stat(client->path, &st) == 0 && !(st.st_mode & S_IWOTH);
    return explain_connect(client->path, geteuid() == 0 || is_restricted ? -EUSERS : -EACCES,
                           ret_error);
}

static int shake_hands(struct client *client, char **ret_error)
{
    int r = wait_until(client, is_ready, NULL, CONNECT_TIMEOUT_SEC * USEC_PER_SEC);

    if (r == -ETIMEDOUT)
        return explain_connect(client->path, -EAGAIN, ret_error);
    if (r == -EPIPE || r == -ECONNRESET)
        return explain_closed(client, ret_error);
    if (r < 0)
        return explain_connect(client->path, r, ret_error);
    return sd_bus_is_ready(client->bus) > 0 ? 0 : explain_closed(client, ret_error);
}

static int client_connect(struct client *client, const char *path, int *ret_fd, char **ret_error)
{
    int r;

    client->path = strdup(path);
    if (!client->path)
        return -ENOMEM;
    str_make_printable(client->path);
    r = open_socket(path, ret_fd);
    return r < 0 ? explain_connect(client->path, r, ret_error) : 0;
}

int client_new(const char *path, struct client **ret_client, char **ret_error)
{
    _cleanup_client_ struct client *client = calloc(1, sizeof(*client));
    _cleanup_fd_ int fd = -1;
    int r;

    if (!client)
        return -ENOMEM;
    r = client_connect(client, path, &fd, ret_error);
    if (r < 0)
        return r;
    r = sd_event_new(&client->event);
    if (r < 0)
        return r;
    r = open_bus(client, fd_take(&fd));
    if (r == -EPIPE || r == -ECONNRESET)
        return explain_closed(client, ret_error);
    if (r < 0)
        return explain_connect(client->path, r, ret_error);
    r = shake_hands(client, ret_error);
    if (r < 0)
        return r;
    *ret_client = TAKE_PTR(client);
    return 0;
}

struct client *client_free(struct client *client)
{
    if (!client)
        return NULL;
    if (client->bus)
        (void)sd_bus_detach_event(client->bus); /* fails only if it never was attached */
    sd_bus_close_unref(client->bus);
    sd_event_source_unref(client->child);
    sd_event_unref(client->event);
    free(client->path);
    free(client);
    return NULL;
}

static int count_interrupt(sd_event_source *source, const struct signalfd_siginfo *info,
                           void *context)
{
    struct client *client = context;

    (void)source;
    client->interrupts++;
    /* the kernel sends those of a terminal to its whole process group */
    client->signal = info->ssi_code == SI_KERNEL ? 0 : (int)info->ssi_signo;
    return 0;
}

/* SIGHUP, by nohup(1): a signalfd would receive it nevertheless. */
static bool is_ignored(int signal)
{
    struct sigaction action;

    return signal == SIGHUP && sigaction(signal, NULL, &action) == 0 &&
           action.sa_handler == SIG_IGN;
}

int client_catch_signals(struct client *client, char **ret_error)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t signals;
    int r;

    (void)sigemptyset(&signals); /* none of these can fail */
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (!is_ignored(ends[i]))
            (void)sigaddset(&signals, ends[i]);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
        return str_refuse(-errno, ret_error, "Cannot catch signals: %m.");
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        if (sigismember(&signals, ends[i]) <= 0)
            continue;
        r = sd_event_add_signal(client->event, NULL, ends[i], count_interrupt, client);
        if (r < 0) {
            errno = -r;
            return str_refuse(r, ret_error, "Cannot catch signals: %m.");
        }
    }
    return 0;
}

int client_take_signal(struct client *client)
{
    int signal = client->signal;

    client->signal = 0;
    return signal;
}

static int keep_child_status(sd_event_source *source, const siginfo_t *info, void *context)
{
    struct client *client = context;

    (void)source;
    client->child_has_ended = true;
    client->child_status = info->si_code == CLD_EXITED ? info->si_status << 8 : info->si_status;
    return 0;
}

int client_watch_child(struct client *client, pid_t pid, char **ret_error)
{
    sigset_t signals;
    int r;

    if (sigemptyset(&signals) < 0 || sigaddset(&signals, SIGCHLD) < 0 ||
        sigprocmask(SIG_BLOCK, &signals, NULL) < 0) /* which sd-event demands */
        return str_refuse(-errno, ret_error, "Cannot watch a process: %m.");
    r = sd_event_add_child(client->event, &client->child, pid, WEXITED, keep_child_status, client);
    if (r >= 0)
        return 0;
    errno = -r;
    return str_refuse(r, ret_error, "Cannot watch a process: %m.");
}

bool client_child_has_ended(const struct client *client, int *ret_status)
{
    if (client->child_has_ended)
        *ret_status = client->child_status;
    return client->child_has_ended;
}

int client_sleep(struct client *client, uint64_t usec)
{
    int r = wait_until(client, client->child ? is_child_done : is_never, NULL, usec);

    return r == -ETIMEDOUT ? 0 : r;
}

int client_make_call(struct client *client, const char *member, sd_bus_message **ret_call,
                     char **ret_error)
{
    int r = sd_bus_message_new_method_call(client->bus, ret_call, NULL, PROTOCOL_PATH,
                                           PROTOCOL_INTERFACE, member);

    if (r >= 0)
        return 0;
    errno = -r;
    return r == -ENOTCONN ? str_refuse(-ECONNRESET, ret_error, "The connection to xentraced broke.")
                          : str_refuse(r, ret_error, "Cannot create the call %s: %m.", member);
}

static int keep_reply(sd_bus_message *reply, void *context, sd_bus_error *error)
{
    struct call *call = context;

    (void)error;
    call->reply = sd_bus_message_ref(reply);
    return 0;
}

/* The daemon's own errors are sentences for people; the others are sd-bus's. */
static int explain_error(struct client *client, sd_bus_message *reply, const char *member,
                         char **ret_error)
{
    const sd_bus_error *error = sd_bus_message_get_error(reply);
    const char *name = error->name ? error->name : "", *text = error->message ? error->message : "";

    if (strncmp(name, ERROR_PREFIX, strlen(ERROR_PREFIX)) == 0 && *text)
        return str_refuse(-EREMOTEIO, ret_error, "%s", text);
    if (sd_bus_is_open(client->bus) <= 0)
        return str_refuse(-ECONNRESET, ret_error,
                          "xentraced closed the connection before it answered %s "
                          "(see: systemctl status xentraced).",
                          member);
    if (strcmp(name, SD_BUS_ERROR_NO_REPLY) == 0 || strcmp(name, SD_BUS_ERROR_TIMEOUT) == 0)
        return str_refuse(-ETIMEDOUT, ret_error,
                          "xentraced did not answer %s in time "
                          "(see: systemctl status xentraced).",
                          member);
    if (strcmp(name, SD_BUS_ERROR_ACCESS_DENIED) == 0)
        return str_refuse(-EREMOTEIO, ret_error,
                          "Not permitted: only root and members of the group set by control-group= "
                          "may start and stop captures.");
    if (strcmp(name, SD_BUS_ERROR_UNKNOWN_METHOD) == 0)
        return str_refuse(
            -EREMOTEIO, ret_error,
            "The running xentraced does not know %s: it is older than this xentracectl. To run the "
            "installed version: systemctl restart xentraced. Captures without --persist end then.",
            member);
    if (strcmp(name, SD_BUS_ERROR_UNKNOWN_OBJECT) == 0 ||
        strcmp(name, SD_BUS_ERROR_UNKNOWN_INTERFACE) == 0)
        return str_refuse(-EREMOTEIO, ret_error,
                          "The service at %s does not know %s; it may not be xentraced "
                          "(compare: xentracectl version).",
                          client->path, member);
    return str_refuse(-EREMOTEIO, ret_error, "xentraced refused %s: %s.", member,
                      *text ? text : name);
}

/* As wait_until(), with breaks for while_waiting(). */
static int wait_for_reply(struct client *client, struct call *call, uint64_t timeout_usec)
{
    uint64_t waited_usec = 0, step_usec;
    int r;

    for (step_usec = PATIENCE_USEC; call->while_waiting; step_usec = RETRY_USEC) {
        r = wait_until(client, is_answered, call, min_u64(step_usec, timeout_usec - waited_usec));
        if (r != -ETIMEDOUT)
            return r;
        waited_usec += step_usec;
        if (waited_usec >= timeout_usec)
            return r;
        r = call->while_waiting(client, call->name);
        if (r == -EINTR)
            return r;
        if (r > 0)
            call->while_waiting = NULL;
    }
    return wait_until(client, is_answered, call, timeout_usec - waited_usec);
}

/* CALL comes without a reply, which is returned in *RET_REPLY. */
static int call_and_wait(struct client *client, sd_bus_message *message, struct call *call,
                         uint64_t timeout_usec, sd_bus_message **ret_reply, char **ret_error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    sd_bus_slot *slot = NULL;
    const char *member;
    int r;

    r = sd_bus_call_async(client->bus, &slot, message, keep_reply, call, timeout_usec);
    if (r >= 0)
        r = wait_for_reply(client, call, timeout_usec + USEC_PER_SEC);
    sd_bus_slot_unref(slot);                     /* an answer that comes later is nobody's */
    member = sd_bus_message_get_member(message); /* not before: sending moves it */
    reply = TAKE_PTR(call->reply);
    if (r == -EINTR)
        return r;
    if (r == -ENOTCONN || r == -ECONNRESET || r == -EPIPE)
        return str_refuse(
            -ECONNRESET, ret_error,
            "xentraced has closed the connection: it was stopped or restarted, or has "
            "failed (see: systemctl status xentraced).");
    if (r < 0) {
        errno = -r;
        return str_refuse(r == -ETIMEDOUT ? r : -ECONNRESET, ret_error,
                          "Cannot ask xentraced (%s): %m "
                          "(see: systemctl status xentraced).",
                          member);
    }
    if (sd_bus_message_is_method_error(reply, NULL))
        return explain_error(client, reply, member, ret_error);
    *ret_reply = TAKE_PTR(reply);
    return 0;
}

static int call_for_document(struct client *client, sd_bus_message *message, struct call *call,
                             uint64_t timeout_usec, const char *format,
                             struct json_object **ret_doc, char **ret_error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_doc_ struct json_object *doc = NULL;
    const char *text;
    int r;

    r = call_and_wait(client, message, call, timeout_usec, &reply, ret_error);
    if (r < 0)
        return r;
    r = sd_bus_message_read(reply, "s", &text);
    if (r > 0)
        r = doc_parse(text, strlen(text), &doc);
    if (r == -ENOMEM)
        return r;
    if (r < 0 || (format && !doc_is(doc, format)))
        return str_refuse(-EBADMSG, ret_error,
                          "This xentracectl does not understand the answer to %s from %s "
                          "(compare: xentracectl version).",
                          sd_bus_message_get_member(message), client->path);
    if (*served_host())
        doc_set_text(doc, "remote", served_host()); /* its paths are here, not there */
    *ret_doc = TAKE_PTR(doc);
    return 0;
}

int client_call(struct client *client, sd_bus_message *message, uint64_t timeout_usec,
                const char *format, struct json_object **ret_doc, char **ret_error)
{
    struct call call = {};

    return call_for_document(client, message, &call, timeout_usec, format, ret_doc, ret_error);
}

static int read_beside(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
    const struct client_reader *reader = userdata;

    (void)fd, (void)events;
    if (reader->read(reader->context))
        return 0;
    (void)sd_event_source_set_enabled(source, SD_EVENT_OFF); /* cannot fail for one that exists */
    fd_close(reader->fd);
    return 0;
}

int client_call_reading(struct client *client, sd_bus_message *message, uint64_t timeout_usec,
                        const char *format, const struct client_reader *reader,
                        struct json_object **ret_doc, char **ret_error)
{
    sd_event_source *source = NULL;
    int r;

    r = sd_event_add_io(client->event, &source, *reader->fd, EPOLLIN, read_beside,
                        (void *)(uintptr_t)reader);
    if (r < 0)
        return r;
    r = client_call(client, message, timeout_usec, format, ret_doc, ret_error);
    sd_event_source_unref(source);
    return r;
}

static int call_by_name(struct client *client, const char *member, const struct call *how,
                        uint64_t timeout_usec, const char *format, struct json_object **ret_doc,
                        char **ret_error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
    struct call call = *how;
    int r;

    r = client_make_call(client, member, &message, ret_error);
    if (r < 0)
        return r;
    r = sd_bus_message_append(message, "s", call.name);
    if (r < 0)
        return str_refuse(-EREMOTEIO, ret_error, "\"%s\" is not a valid name: it is not UTF-8.",
                          call.name);
    return call_for_document(client, message, &call, timeout_usec, format, ret_doc, ret_error);
}

int client_stop(struct client *client, const char *name,
                int (*while_waiting)(struct client *client, const char *name),
                struct json_object **ret_doc, char **ret_error)
{
    return call_by_name(client, PROTOCOL_STOP,
                        &(struct call){.name = name, .while_waiting = while_waiting},
                        CLIENT_LONG_TIMEOUT_USEC, DOC_FORMAT_SESSION, ret_doc, ret_error);
}

int client_stop_recorder(struct client *client, struct json_object **ret_doc, char **ret_error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
    int r;

    r = client_make_call(client, PROTOCOL_STOP_RECORDER, &message, ret_error);
    if (r < 0)
        return r;
    /* A snapshot that is being written is waited for. */
    return client_call(client, message, CLIENT_LONG_TIMEOUT_USEC, NULL, ret_doc, ret_error);
}

int client_reload(struct client *client, const char *name, struct json_object **ret_doc,
                  char **ret_error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
    int r;

    (void)name;
    r = client_make_call(client, PROTOCOL_RELOAD, &message, ret_error);
    if (r < 0)
        return r;
    return client_call(client, message, CLIENT_TIMEOUT_USEC, DOC_FORMAT_RELOAD, ret_doc, ret_error);
}

int client_abort(struct client *client, const char *name, struct json_object **ret_doc,
                 char **ret_error)
{
    return call_by_name(client, PROTOCOL_ABORT, &(struct call){.name = name}, CLIENT_TIMEOUT_USEC,
                        DOC_FORMAT_SESSION, ret_doc, ret_error);
}

int client_status(struct client *client, const char *name, struct json_object **ret_doc,
                  char **ret_error)
{
    return call_by_name(client, PROTOCOL_STATUS, &(struct call){.name = name}, CLIENT_TIMEOUT_USEC,
                        *name ? DOC_FORMAT_SESSION : DOC_FORMAT_STATUS, ret_doc, ret_error);
}

int client_rotate(struct client *client, const char *name, struct json_object **ret_doc,
                  char **ret_error)
{
    return call_by_name(client, PROTOCOL_ROTATE, &(struct call){.name = name},
                        CLIENT_LONG_TIMEOUT_USEC, NULL, ret_doc, ret_error);
}

int client_trigger(struct client *client, const char *name, struct json_object **ret_doc,
                   char **ret_error)
{
    return call_by_name(client, PROTOCOL_TRIGGER, &(struct call){.name = name}, CLIENT_TIMEOUT_USEC,
                        NULL, ret_doc, ret_error);
}

int client_ask(const char *path,
               int (*call)(struct client *client, const char *name, struct json_object **ret_doc,
                           char **ret_error),
               const char *name, struct json_object **ret_doc, char **ret_error)
{
    _cleanup_client_ struct client *client = NULL;
    int r;

    r = client_new(path, &client, ret_error);
    return r < 0 ? r : call(client, name, ret_doc, ret_error);
}

int client_version(struct client *client, char **ret_version, char **ret_error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL, *reply = NULL;
    struct call call = {};
    const char *text;
    char *version;
    int r;

    r = sd_bus_message_new_method_call(client->bus, &message, NULL, PROTOCOL_PATH,
                                       "org.freedesktop.DBus.Properties", "Get");
    if (r < 0)
        return r;
    r = sd_bus_message_append(message, "ss", PROTOCOL_INTERFACE, PROTOCOL_VERSION);
    if (r < 0)
        return r;
    r = call_and_wait(client, message, &call, CLIENT_TIMEOUT_USEC, &reply, ret_error);
    if (r < 0)
        return r;
    r = sd_bus_message_read(reply, "v", "s", &text);
    if (r <= 0)
        return str_refuse(-EBADMSG, ret_error,
                          "This xentracectl does not understand the version that %s reports.",
                          client->path);
    version = strdup(text);
    if (!version)
        return -ENOMEM;
    str_make_printable(version);
    *ret_version = version;
    return 0;
}

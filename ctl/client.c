// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All waiting is done in one place, client_wait(): a poll(2) of the calls that are under way, the
 * signals and the child. So the commands are written one step after the other, and no step can
 * hang.
 *
 * Each connection begins with a question for the service's name and version. So a peer that is
 * turned away, a service that is not xentraced, and a xentraced that still speaks D-Bus are found
 * there, and a connection that ends later has another reason.
 */

#include "ctl/client.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "common/tracer.h"
#include "ctl/connection.h"
#include "ctl/served.h"
#include "ctl/str.h"

#define CONNECT_TIMEOUT_SEC 5
#define PATIENCE_USEC       (3 * USEC_PER_SEC) /* a healthy disk takes a stop in less */
#define RETRY_USEC          (1 * USEC_PER_SEC)
#define SAME_SIGNAL_USEC    (100 * USEC_PER_MSEC) /* timeout(1) sends one twice: to a group, too */
#define CALLS_MAX           4u   /* record's session, its Stop, and why that takes so long */
#define SENTENCE_MAX        4096 /* longer ones are not of our daemon */

/* A call that is under way, or has ended. */
struct client_stream {
    struct client *client;
    struct connection *connection;
    struct client_call call;
    bool is_stream;            /* more than one document is wanted */
    struct json_object *reply; /* the newest; NULL: none since the last one was taken */
    int error;                 /* in place of a further one */
};

struct client {
    char *path, *version;
    struct connection *idle[CALLS_MAX];
    struct client_stream *calls[CALLS_MAX];
    int signal_fd;           /* -1: signals are not caught */
    uint64_t signal_usec;    /* when the last signal came; 0: none did */
    unsigned int interrupts; /* signals that have not ended a wait yet */
    int signal;              /* the last of them, if it came to this process alone; else 0 */
    int child_fd;            /* -1: none is watched, or it has ended */
    bool child_has_ended;
    int child_status; /* as of waitpid() */
};

static uint64_t monotonic_usec(void)
{
    struct timespec now = {};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

/* --- The socket. --- */

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
        return str_refuse(
            -ECONNRESET, ret_error,
            "Not permitted to reach xentraced at %s. It is open to root, the group xentrace "
            "(status and snapshots), and the group set by control-group= (your own captures). It "
            "refuses a user while too many files that this user passed wait to be closed.",
            path);
    case EUSERS:
        return str_refuse(-ECONNRESET, ret_error,
                          "xentraced at %s closed the connection: the limit of clients, in all or "
                          "per user, is reached. Try again later.",
                          path);
    case EAGAIN:
    case ETIMEDOUT:
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

/* Whether a D-Bus server listens, as older ones of ours were: it names what it would accept. */
static bool speaks_dbus(const char *path)
{
    static const char question[] = "\0AUTH\r\n", answer[] = "REJECTED";
    const struct timeval timeout = {.tv_sec = 1};
    char got[sizeof(answer) - 1];
    _cleanup_fd_ int fd = -1;

    return open_socket(path, &fd) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
           send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) == sizeof(question) - 1 &&
           recv(fd, got, sizeof(got), MSG_WAITALL) == sizeof(got) &&
           memcmp(got, answer, sizeof(got)) == 0;
}

/*
 * The service closed the connection at once. Root is permitted everything, so there is no room for
 * it; and so it is if the socket itself refuses those who are not permitted.
 */
static int explain_closed(const char *path, char **ret_error)
{
    struct stat st;
    bool is_restricted;

    if (speaks_dbus(path))
        return str_refuse(
            -ECONNRESET, ret_error,
            "xentraced at %s does not speak this xentracectl's protocol: it is older. "
            "To run the installed version: systemctl restart xentraced. Captures "
            "without --persist end then.",
            path);
    is_restricted = stat(path, &st) == 0 && !(st.st_mode & S_IWOTH);
    return explain_connect(path, geteuid() == 0 || is_restricted ? -EUSERS : -EACCES, ret_error);
}

/* --- Waiting. --- */

static void take_signal(struct client *client)
{
    uint64_t now = monotonic_usec();
    struct signalfd_siginfo info;

    if (read(client->signal_fd, &info, sizeof(info)) != sizeof(info) ||
        (client->signal_usec && now - client->signal_usec < SAME_SIGNAL_USEC))
        return;
    client->signal_usec = now;
    client->interrupts++;
    /* the kernel sends those of a terminal to its whole process group */
    client->signal = info.ssi_code == SI_KERNEL ? 0 : (int)info.ssi_signo;
}

static void reap_child(struct client *client)
{
    siginfo_t info = {};

    if (waitid(P_PIDFD, (id_t)client->child_fd, &info, WEXITED) < 0)
        return;
    client->child_has_ended = true;
    client->child_status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
    fd_close(&client->child_fd);
}

/* A document that nobody took gives way to a newer one, unless the reader's bytes belong to it. */
static bool stream_wants_reply(const struct client_stream *stream)
{
    return stream->error == 0 && (!stream->reply || !stream->call.reader);
}

static bool stream_reads(const struct client_stream *stream)
{
    return stream->call.reader && *stream->call.reader->fd >= 0;
}

static void stream_advance(struct client_stream *stream)
{
    struct client_reader *reader = stream->call.reader;
    struct json_object *reply = NULL;
    int r;

    if (stream_reads(stream) && !reader->read(reader->context))
        fd_close(reader->fd);
    if (!stream_wants_reply(stream))
        return;
    r = connection_advance(stream->connection, &reply);
    if (r < 0)
        stream->error = r;
    if (r <= 0)
        return;
    (void)doc_free(stream->reply);
    stream->reply = reply;
    if (!doc_flag(reply, "continues"))
        stream->error = -ENODATA;
}

size_t client_stream_fds(const struct client_stream *stream,
                         struct pollfd fds[static CLIENT_STREAM_FDS_MAX])
{
    size_t nr = 0;

    if (stream_wants_reply(stream))
        fds[nr++] = (struct pollfd){.fd = connection_fd(stream->connection),
                                    .events = connection_events(stream->connection)};
    if (stream_reads(stream))
        fds[nr++] = (struct pollfd){.fd = *stream->call.reader->fd, .events = POLLIN};
    return nr;
}

/* Waits for whatever comes first, and takes it. Returns whether there was something. */
static int client_poll(struct client *client, uint64_t usec)
{
    const struct timespec timeout = {.tv_sec = (time_t)(usec / USEC_PER_SEC),
                                     .tv_nsec = (long)(usec % USEC_PER_SEC * NSEC_PER_USEC)};
    struct pollfd fds[2 + CALLS_MAX * CLIENT_STREAM_FDS_MAX] = {
        {.fd = client->signal_fd, .events = POLLIN},
        {.fd = client->child_fd, .events = POLLIN},
    };
    size_t nr = 2;
    int ready;

    for (size_t i = 0; i < CALLS_MAX; i++)
        if (client->calls[i])
            nr += client_stream_fds(client->calls[i], fds + nr);
    ready = ppoll(fds, nr, &timeout, NULL);
    if (ready < 0)
        return errno == EINTR ? 0 : -errno;
    if (fds[0].revents)
        take_signal(client);
    if (fds[1].revents)
        reap_child(client);
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (client->calls[i])
            stream_advance(client->calls[i]);
    return ready > 0;
}

/*
 * Until STREAM (NULL: none) has a reply or an error, or with MINDS_CHILD the child has ended: 0;
 * -ETIMEDOUT; -EINTR after a signal, which it uses up. Of more than one document, the timeout is
 * that of silence: a process that was stopped finds the pipe full.
 */
static int client_wait(struct client *client, const struct client_stream *stream, bool minds_child,
                       uint64_t timeout_usec)
{
    uint64_t now = monotonic_usec(), end = now + timeout_usec;
    bool is_over = false;

    for (;;) {
        int r;

        if (stream && (stream->reply || stream->error < 0))
            return 0;
        if (minds_child && client->child_has_ended)
            return 0;
        if (client->interrupts > 0) {
            client->interrupts--;
            return -EINTR;
        }
        if (is_over)
            return -ETIMEDOUT;
        is_over = now >= end; /* what is there already is taken in any case */
        r = client_poll(client, is_over ? 0 : end - now);
        if (r < 0)
            return r;
        now = monotonic_usec();
        if (r > 0 && timeout_usec > 0 && stream && stream->is_stream) {
            end = now + timeout_usec;
            is_over = false;
        }
    }
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

    (void)sigemptyset(&signals); /* none of these can fail */
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (!is_ignored(ends[i]))
            (void)sigaddset(&signals, ends[i]);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
        return str_refuse(-errno, ret_error, "Cannot catch signals: %m.");
    client->signal_fd = signalfd(client->signal_fd, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return client->signal_fd < 0 ? str_refuse(-errno, ret_error, "Cannot catch signals: %m.") : 0;
}

int client_take_signal(struct client *client)
{
    int signal = client->signal;

    client->signal = 0;
    return signal;
}

int client_watch_child(struct client *client, pid_t pid, char **ret_error)
{
    client->child_fd = pidfd_open(pid, 0);
    return client->child_fd < 0 ? str_refuse(-errno, ret_error, "Cannot watch a process: %m.") : 0;
}

bool client_child_has_ended(const struct client *client, int *ret_status)
{
    if (client->child_has_ended)
        *ret_status = client->child_status;
    return client->child_has_ended;
}

int client_sleep(struct client *client, uint64_t usec)
{
    int r = client_wait(client, NULL, true, usec);

    return r == -ETIMEDOUT ? 0 : r;
}

/* --- What an answer means. --- */

/* The daemon's own errors have a sentence for people; the others are Varlink's. */
static int explain_error(const struct client *client, struct json_object *reply, const char *method,
                         char **ret_error)
{
    const char *name = doc_text(reply, "error", "");
    const char *sentence = doc_text(reply, "parameters." FIELD_SENTENCE, "");
    const char *hint = doc_text(reply, "parameters." FIELD_HINT, "");

    if (*sentence)
        return str_refuse(-EREMOTEIO, ret_error, "%.*s%s%.*s", SENTENCE_MAX, sentence,
                          *hint ? " " : "", SENTENCE_MAX, hint);
    if (strcmp(name, SERVICE_ERROR_NO_METHOD) == 0 ||
        strcmp(name, SERVICE_ERROR_NOT_IMPLEMENTED) == 0)
        return str_refuse(
            -EREMOTEIO, ret_error,
            "The running xentraced does not know %s: it is older than this xentracectl. To run the "
            "installed version: systemctl restart xentraced. Captures without --persist end then.",
            method);
    if (strcmp(name, SERVICE_ERROR_PARAMETER) == 0)
        return str_refuse(
            -EREMOTEIO, ret_error,
            "The running xentraced does not take the parameter %.64s of %s: it is another version "
            "than this xentracectl (compare: xentracectl version).",
            doc_text(reply, "parameters.parameter", "(without a name)"), method);
    if (strcmp(name, SERVICE_ERROR_NO_INTERFACE) == 0)
        return str_refuse(-EREMOTEIO, ret_error,
                          "The service at %s does not know %s; it may not be xentraced "
                          "(compare: xentracectl version).",
                          client->path, method);
    if (strcmp(name, SERVICE_ERROR_PERMISSION) == 0)
        return str_refuse(-EREMOTEIO, ret_error,
                          "Not permitted: only root and members of the group set by control-group= "
                          "may start and stop captures.");
    return str_refuse(-EREMOTEIO, ret_error,
                      "xentraced refused %s without a reason: %.128s (compare: xentracectl "
                      "version).",
                      method, name);
}

static int explain_failure(const struct client_stream *stream, int r, char **ret_error)
{
    const char *method = stream->call.method;

    switch (-r) {
    case EINTR:
    case ENOMEM:
        return r;
    case ECONNRESET:
        return str_refuse(
            r, ret_error,
            "xentraced closed the connection%s%s: it was stopped or restarted, or has "
            "failed (see: systemctl status xentraced).",
            stream->is_stream ? "" : " before it answered ", stream->is_stream ? "" : method);
    case ENODATA:
        return str_refuse(-ECONNRESET, ret_error, "xentraced has ended its answers to %s.", method);
    case ETIMEDOUT:
        return str_refuse(r, ret_error,
                          "xentraced did not answer %s in time (see: systemctl status xentraced).",
                          method);
    case EFBIG:
        return str_refuse(-EBADMSG, ret_error,
                          "The answer to %s from %s is larger than any of xentraced's, and was not "
                          "read (compare: xentracectl version).",
                          method, stream->client->path);
    case EBADMSG:
        return str_refuse(r, ret_error,
                          "This xentracectl does not understand the answer to %s from %s "
                          "(compare: xentracectl version).",
                          method, stream->client->path);
    case EILSEQ:
        return str_refuse(-EREMOTEIO, ret_error, "A name or an option is not valid UTF-8.");
    case EMSGSIZE:
        return str_refuse(-EREMOTEIO, ret_error,
                          "Names and options are longer than xentraced accepts in one call (64K).");
    }
    errno = -r;
    return str_refuse(-ECONNRESET, ret_error,
                      "Cannot ask xentraced (%s): %m (see: systemctl status xentraced).", method);
}

/* The document of REPLY; 1: it has progress in its place. */
static int read_reply(const struct client_stream *stream, struct json_object *reply,
                      struct json_object **ret_doc, char **ret_error)
{
    const struct client_call *call = &stream->call;
    struct json_object *parameters = doc_find(reply, "parameters"), *doc;

    if (doc_find(reply, "error"))
        return explain_error(stream->client, reply, call->method, ret_error);
    if (!stream->is_stream && doc_flag(reply, "continues")) {
        struct json_object *progress = doc_find(parameters, REPLY_PROGRESS);

        if (!call->on_progress)
            return explain_failure(stream, -EBADMSG, ret_error);
        call->on_progress(call->context, doc_number(progress, "bytes"),
                          doc_number(progress, "total_bytes"));
        return 1;
    }
    doc = call->answer ? doc_find(parameters, call->answer) : parameters;
    if (!json_object_is_type(doc, json_type_object) || (call->format && !doc_is(doc, call->format)))
        return explain_failure(stream, -EBADMSG, ret_error);
    if (*served_host())
        doc_set_text(doc, "remote", served_host()); /* its paths are here, not there */
    *ret_doc = json_object_get(doc);
    return 0;
}

/* --- Calls. --- */

static void keep_idle(struct client *client, struct connection *connection)
{
    for (size_t i = 0; i < CALLS_MAX; i++) {
        if (client->idle[i])
            continue;
        client->idle[i] = connection;
        return;
    }
    (void)connection_free(connection);
}

struct client_stream *client_stream_free(struct client_stream *stream)
{
    if (!stream)
        return NULL;
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (stream->client->calls[i] == stream)
            stream->client->calls[i] = NULL;
    if (stream->error == -ENODATA)
        keep_idle(stream->client, stream->connection);
    else
        (void)connection_free(stream->connection);
    (void)doc_free(stream->reply);
    free(stream);
    return NULL;
}

static void client_stream_freep(struct client_stream **stream)
{
    *stream = client_stream_free(*stream);
}

/* CONNECTION is the call's from here on, even if this fails. */
static int begin_on(struct client *client, struct connection *connection,
                    const struct client_call *call, bool is_stream, const char *interface,
                    struct client_stream **ret_stream, char **ret_error)
{
    _cleanup_(client_stream_freep) struct client_stream *stream = calloc(1, sizeof(*stream));
    _cleanup_free_ char *method = str_format("%s.%s", interface, call->method);
    size_t i = 0;
    int r;

    if (!stream) {
        (void)connection_free(connection);
        return -ENOMEM;
    }
    stream->client = client;
    stream->connection = connection;
    stream->call = *call;
    stream->is_stream = is_stream;
    while (i < CALLS_MAX && client->calls[i])
        i++;
    assert(i < CALLS_MAX); /* no command makes that many */
    client->calls[i] = stream;
    if (!method)
        return -ENOMEM;
    r = connection_call(connection, method, call->parameters, call->fds, call->nr_fds,
                        is_stream || call->on_progress);
    if (r < 0) {
        stream->error = -ENODATA; /* the connection is as good as before */
        return explain_failure(stream, r, ret_error);
    }
    *ret_stream = TAKE_PTR(stream);
    return 0;
}

/* Asks the new CONNECTION for the service behind it. */
static int shake_hands(struct client *client, struct connection *connection, char **ret_error)
{
    const struct client_call question = {.method = SERVICE_GET_INFO};
    _cleanup_(client_stream_freep) struct client_stream *stream = NULL;
    _cleanup_doc_ struct json_object *info = NULL;
    struct json_object *interfaces;
    bool is_ours = false;
    int r;

    r = begin_on(client, connection, &question, false, SERVICE_INTERFACE, &stream, ret_error);
    if (r < 0)
        return r;
    r = client_wait(client, stream, false, CONNECT_TIMEOUT_SEC * USEC_PER_SEC);
    if (r == -EINTR)
        return r;
    if (r < 0)
        return explain_connect(client->path, r, ret_error);
    if (!stream->reply)
        return stream->error == -ECONNRESET ? explain_closed(client->path, ret_error)
                                            : explain_failure(stream, stream->error, ret_error);
    r = read_reply(stream, stream->reply, &info, ret_error);
    if (r < 0)
        return r;
    interfaces = doc_array(info, "interfaces");
    for (size_t i = 0; i < doc_length(interfaces); i++) {
        const char *name = json_object_get_string(doc_at(interfaces, i));

        is_ours |= name && strcmp(name, CONTROL_INTERFACE) == 0;
    }
    if (!is_ours)
        return str_refuse(-EBADMSG, ret_error,
                          "The service at %s is not xentraced, or another version than this "
                          "xentracectl understands (compare: xentracectl version).",
                          client->path);
    free(client->version);
    client->version = str_format("%.64s", doc_text(info, "version", "(unknown version)"));
    if (!client->version)
        return -ENOMEM;
    str_make_printable(client->version);
    return 0;
}

static int client_connect(struct client *client, char **ret_error)
{
    struct connection *connection;
    _cleanup_fd_ int fd = -1;
    int r;

    r = open_socket(client->path, &fd);
    if (r < 0)
        return explain_connect(client->path, r, ret_error);
    r = connection_new(fd_take(&fd), &connection);
    return r < 0 ? r : shake_hands(client, connection, ret_error);
}

static struct connection *take_idle(struct client *client)
{
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (client->idle[i])
            return TAKE_PTR(client->idle[i]);
    return NULL;
}

static int begin(struct client *client, const struct client_call *call, bool is_stream,
                 struct client_stream **ret_stream, char **ret_error)
{
    struct connection *connection = take_idle(client);
    int r;

    if (!connection) {
        r = client_connect(client, ret_error);
        if (r < 0)
            return r;
        connection = take_idle(client);
    }
    return begin_on(client, connection, call, is_stream, CONTROL_INTERFACE, ret_stream, ret_error);
}

/* Waits for a document; progress is not one. */
static int await_document(struct client_stream *stream, uint64_t timeout_usec,
                          struct json_object **ret_doc, char **ret_error)
{
    uint64_t now = monotonic_usec(), end = now + timeout_usec;
    int r;

    do {
        _cleanup_doc_ struct json_object *reply = NULL;

        r = client_wait(stream->client, stream, stream->is_stream, end > now ? end - now : 0);
        if (r < 0)
            return r;
        reply = TAKE_PTR(stream->reply);
        if (!reply && stream->error < 0)
            return explain_failure(stream, stream->error, ret_error);
        if (!reply)
            return -ETIMEDOUT; /* the child has ended */
        r = read_reply(stream, reply, ret_doc, ret_error);
        now = monotonic_usec();
    } while (r > 0);
    return r;
}

int client_call(struct client *client, const struct client_call *call, struct json_object **ret_doc,
                char **ret_error)
{
    _cleanup_(client_stream_freep) struct client_stream *stream = NULL;
    int r;

    r = begin(client, call, false, &stream, ret_error);
    if (r < 0)
        return r;
    r = await_document(stream, call->timeout_usec, ret_doc, ret_error);
    return r == -ETIMEDOUT ? explain_failure(stream, r, ret_error) : r;
}

int client_stream(struct client *client, const struct client_call *call,
                  struct client_stream **ret_stream, char **ret_error)
{
    return begin(client, call, true, ret_stream, ret_error);
}

int client_next(struct client_stream *stream, uint64_t timeout_usec, struct json_object **ret_doc,
                char **ret_error)
{
    int r = await_document(stream, timeout_usec, ret_doc, ret_error);

    if (r == -ETIMEDOUT && (timeout_usec == 0 || stream->client->child_has_ended))
        return 0;
    if (r == -ETIMEDOUT)
        return explain_failure(stream, r, ret_error);
    return r < 0 ? r : 1;
}

/* --- The client. --- */

int client_new(const char *path, struct client **ret_client, char **ret_error)
{
    _cleanup_client_ struct client *client = calloc(1, sizeof(*client));
    int r;

    if (!client)
        return -ENOMEM;
    client->signal_fd = client->child_fd = -1;
    client->path = strdup(path);
    if (!client->path)
        return -ENOMEM;
    r = client_connect(client, ret_error);
    if (r < 0)
        return r;
    *ret_client = TAKE_PTR(client);
    return 0;
}

struct client *client_free(struct client *client)
{
    if (!client)
        return NULL;
    for (size_t i = 0; i < CALLS_MAX; i++)
        (void)client_stream_free(client->calls[i]);
    for (size_t i = 0; i < CALLS_MAX; i++)
        (void)connection_free(client->idle[i]);
    fd_close(&client->signal_fd);
    fd_close(&client->child_fd);
    free(client->path);
    free(client->version);
    free(client);
    return NULL;
}

const char *client_version(const struct client *client)
{
    return client->version;
}

/* --- The daemon's methods. --- */

/* Parameters with the NAME, unless it is "". NULL: no memory. */
static struct json_object *name_parameters(const char *name)
{
    struct json_object *parameters = json_object_new_object();

    if (*name)
        doc_add_text(parameters, "name", name);
    return parameters;
}

static int call_by_name(struct client *client, const char *name, const struct client_call *how,
                        struct json_object **ret_doc, char **ret_error)
{
    _cleanup_doc_ struct json_object *parameters = name_parameters(name);
    struct client_call call = *how;

    if (!parameters)
        return -ENOMEM;
    call.parameters = parameters;
    if (!call.timeout_usec)
        call.timeout_usec = CLIENT_TIMEOUT_USEC;
    return client_call(client, &call, ret_doc, ret_error);
}

int client_stop(struct client *client, const char *name,
                int (*while_waiting)(struct client *client, const char *name),
                struct json_object **ret_doc, char **ret_error)
{
    _cleanup_doc_ struct json_object *parameters = name_parameters(name);
    const struct client_call call = {.method = PROTOCOL_STOP,
                                     .parameters = parameters,
                                     .answer = REPLY_SESSION,
                                     .format = DOC_FORMAT_SESSION};
    _cleanup_(client_stream_freep) struct client_stream *stream = NULL;
    uint64_t end = monotonic_usec() + CLIENT_LONG_TIMEOUT_USEC, step_usec = PATIENCE_USEC;
    int r;

    if (!parameters)
        return -ENOMEM;
    r = begin(client, &call, false, &stream, ret_error);
    if (r < 0)
        return r;
    while ((r = await_document(stream, step_usec, ret_doc, ret_error)) == -ETIMEDOUT) {
        int done = while_waiting(client, name);

        if (done == -EINTR)
            return done;
        if (monotonic_usec() >= end)
            return explain_failure(stream, r, ret_error);
        if (done > 0) {
            r = await_document(stream, CLIENT_LONG_TIMEOUT_USEC, ret_doc, ret_error);
            return r == -ETIMEDOUT ? explain_failure(stream, r, ret_error) : r;
        }
        step_usec = RETRY_USEC;
    }
    return r;
}

int client_stop_recorder(struct client *client, struct json_object **ret_doc, char **ret_error)
{
    /* A snapshot that is being written is waited for. */
    return client_call(client,
                       &(struct client_call){.method = PROTOCOL_STOP_RECORDER,
                                             .answer = REPLY_RECORDER,
                                             .timeout_usec = CLIENT_LONG_TIMEOUT_USEC},
                       ret_doc, ret_error);
}

int client_reload(struct client *client, const char *name, struct json_object **ret_doc,
                  char **ret_error)
{
    (void)name;
    return client_call(client,
                       &(struct client_call){.method = PROTOCOL_RELOAD,
                                             .answer = REPLY_CHANGES,
                                             .format = DOC_FORMAT_RELOAD,
                                             .timeout_usec = CLIENT_TIMEOUT_USEC},
                       ret_doc, ret_error);
}

int client_abort(struct client *client, const char *name, struct json_object **ret_doc,
                 char **ret_error)
{
    return call_by_name(client, name,
                        &(struct client_call){.method = PROTOCOL_ABORT,
                                              .answer = REPLY_SESSION,
                                              .format = DOC_FORMAT_SESSION},
                        ret_doc, ret_error);
}

static const char *status_format(const char *name)
{
    return *name ? DOC_FORMAT_SESSION : DOC_FORMAT_STATUS;
}

int client_status(struct client *client, const char *name, struct json_object **ret_doc,
                  char **ret_error)
{
    return call_by_name(client, name,
                        &(struct client_call){.method = PROTOCOL_STATUS,
                                              .answer = REPLY_STATUS,
                                              .format = status_format(name)},
                        ret_doc, ret_error);
}

int client_stream_status(struct client *client, const char *name, uint64_t interval_usec,
                         struct client_stream **ret_stream, char **ret_error)
{
    _cleanup_doc_ struct json_object *parameters = name_parameters(name);

    doc_add_number(parameters, FIELD_INTERVAL, interval_usec);
    return client_stream(client,
                         &(struct client_call){.method = PROTOCOL_STATUS,
                                               .parameters = parameters,
                                               .answer = REPLY_STATUS,
                                               .format = status_format(name)},
                         ret_stream, ret_error);
}

int client_rotate(struct client *client, const char *name, struct json_object **ret_doc,
                  char **ret_error)
{
    return call_by_name(client, name,
                        &(struct client_call){.method = PROTOCOL_ROTATE,
                                              .answer = REPLY_SEGMENT,
                                              .timeout_usec = CLIENT_LONG_TIMEOUT_USEC},
                        ret_doc, ret_error);
}

int client_trigger(struct client *client, const char *name, struct json_object **ret_doc,
                   char **ret_error)
{
    return call_by_name(client, name,
                        &(struct client_call){.method = PROTOCOL_TRIGGER, .answer = REPLY_TRIGGER},
                        ret_doc, ret_error);
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

int client_ask_briefly(const char *path, uint64_t timeout_usec, struct json_object **ret_doc,
                       char **ret_error)
{
    _cleanup_client_ struct client *client = NULL;
    int r;

    r = client_new(path, &client, ret_error);
    if (r < 0)
        return r;
    return client_call(client,
                       &(struct client_call){.method = PROTOCOL_STATUS,
                                             .answer = REPLY_STATUS,
                                             .format = DOC_FORMAT_STATUS,
                                             .timeout_usec = timeout_usec},
                       ret_doc, ret_error);
}

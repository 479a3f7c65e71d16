// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Nothing that comes before the marker is the command's: login scripts print to the same stream.
 * After it come frames, of which none is kept: text is cleaned line by line, records go to the file
 * that this command line names. So a host that sends anything for ever costs time, and no memory.
 *
 * ssh ignores Ctrl-C, which is ours: a capture ends cleanly only while its connection lives. It
 * asks for passwords on the terminal, not on its streams, and ends with this process.
 */

#include "ctl/remote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/page.h"
#include "ctl/served.h"
#include "ctl/str.h"
#include "ctl/target.h"

#define PREFIX            "ssh://"
#define SSH_FAILED        255   /* ssh(1), EXIT STATUS */
#define NOT_FOUND         127   /* the shell there */
#define END_STEPS         100   /* of 10 ms: how long ssh may take to end after its stream */
#define VALUES_BYTES      4096u /* more than any command's options take */
#define LINE_BYTES        4096u /* longer lines are cleaned in pieces */
#define LOGIN_LINES_SHOWN 20u
#define LOGIN_LINE_SHOWN  200
#define SIDECAR_MAX_BYTES (16u << 20) /* as readers of sidecars take */
#define LEAVE_SCREEN      "\033[0m\033[?25h\033[?1049l"

/* A text in lines, of which the last one is incomplete. */
struct text {
    char line[LINE_BYTES];
    size_t bytes;
};

/* One command line. */
struct remote {
    struct ctl *ctl;
    const char *host;
    const char *socket; /* a path there; NULL: the default one there */
    char **words;       /* of the command; NULL at the end */
    const char *output; /* as typed; NULL: none */
    bool is_page, has_sidecar, is_bundle, is_packed, force, is_live;
    char **command; /* runs here while it records; NULL: none */

    struct target target;
    pid_t ssh;
    int stop_fd; /* ssh's standard input; closed: the command there is to end */
    int out_fd, err_fd, signals_fd;
    uint8_t in[SERVED_HEAD_BYTES + SERVED_FRAME_BYTES]; /* came, and is not done yet */
    size_t in_bytes;
    struct text out, err, ssh_err;
    size_t sidecar_bytes;
    unsigned int interrupts;
    bool has_begun, has_ended; /* the marker, the exit status came */
    bool has_line;             /* of progress, to be cleared */
    int status;
    int write_error; /* of the file here; -EPIPE: its reader left */

    struct child *child; /* the command here; NULL: none */
    bool has_child_begun, has_child_ended;
    int child_status; /* as of waitpid() */
};

/* --- Which host. --- */

/* -EINVAL with a sentence if ssh could take HOST for something else. */
static int check_host(const char *host, char **ret_error)
{
    const char *at = strrchr(host, '@'), *name = at ? at + 1 : host;
    _cleanup_free_ char *printable = strdup(host);

    if (!printable)
        return -ENOMEM;
    str_make_printable(printable);
    if (*name && *name != '-' && *host != '-' && *host != '@' && !strpbrk(host, " \t\r\n") &&
        strcmp(printable, host) == 0)
        return 0;
    return str_refuse(-EINVAL, ret_error,
                      "\"%s\" is not a host: write HOST or USER@HOST, as for ssh.", printable);
}

static bool is_address(const char *socket)
{
    return strncmp(socket, PREFIX, strlen(PREFIX)) == 0;
}

/* 1 with the host, to be freed, and the path of the socket there, borrowed; 0: this machine. */
static int find_host(const struct ctl *ctl, char **ret_host, const char **ret_path,
                     char **ret_error)
{
    bool is_typed = ctl->socket != ctl->default_socket;
    const char *address = is_address(ctl->socket) ? ctl->socket + strlen(PREFIX) : NULL;
    const char *path = is_typed && !address ? ctl->socket : NULL;
    _cleanup_free_ char *host = NULL;
    int r;

    if (ctl->host && !is_typed)
        address = NULL;
    if (*served_host() && (ctl->host || address))
        return str_refuse(-EINVAL, ret_error,
                          "%s is not used for another host from here: -H reaches one host, and "
                          "XENTRACED_SOCKET there must be a path.",
                          ctl->host ? ctl->host : ctl->socket);
    if (!ctl->host && !address)
        return 0;
    if (ctl->host && address)
        return str_refuse(-EINVAL, ret_error, "-H %s and --socket %s both name a host: omit one.",
                          ctl->host, ctl->socket);
    host = address ? strndup(address, strcspn(address, "/")) : strdup(ctl->host);
    if (!host)
        return -ENOMEM;
    r = check_host(host, ret_error);
    if (r < 0)
        return r;
    *ret_path = address ? strchr(address, '/') : path;
    *ret_host = TAKE_PTR(host);
    return 1;
}

/* --- ssh. --- */

/* The path of the trace as it is shown; NULL: as typed. */
static char *path_here(const struct remote *remote)
{
    const struct output *output = remote->target.output;
    _cleanup_free_ char *directory = NULL;

    if (!output || output->is_stdout || remote->is_page || strcmp(remote->output, "-") == 0)
        return NULL;
    if (!remote->is_bundle)
        return strdup(output->trace.path);
    directory = *remote->output == '/' ? NULL : getcwd(NULL, 0);
    return directory ? str_format("%s/%s", directory, remote->output) : NULL;
}

/* "xentracectl status 'a name'", for the shell of the other host. */
static char *join_words(const struct remote *remote)
{
    const char *flags = remote->is_live ? "l" : isatty(STDERR_FILENO) ? "t" : "";
    _cleanup_free_ char *absolute = path_here(remote);
    const char *path = absolute ? absolute : remote->output ? remote->output : "";
    _cleanup_free_ char *host = str_shell_quote(remote->host), *file = str_shell_quote(path);
    _cleanup_free_ char *socket = str_shell_quote(remote->socket ? remote->socket : "");
    char *line = NULL;

    if (host && file && socket)
        line = str_format("xentracectl " SERVED_WORD SERVED_PROTOCOL "%s %s %s%s%s%s", flags, host,
                          *path ? file : "''", remote->ctl->json ? " --json" : "",
                          remote->socket ? " --socket=" : "", remote->socket ? socket : "");

    for (char **word = remote->words; line && *word; word++) {
        _cleanup_free_ char *next = str_shell_quote(*word), *shorter = line;

        line = next ? str_format("%s %s", shorter, next) : NULL;
    }
    return line;
}

/* In the child: does not return. */
static void exec_ssh(const struct remote *remote, int in, int out, int err, const char *line,
                     pid_t parent)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, reset = {.sa_handler = SIG_DFL};
    sigset_t none;

    (void)sigemptyset(&none); /* cannot fail */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent &&
        sigprocmask(SIG_SETMASK, &none, NULL) == 0 && sigaction(SIGINT, &ignore, NULL) == 0 &&
        sigaction(SIGPIPE, &reset, NULL) == 0 && (in < 0 || dup2(in, STDIN_FILENO) >= 0) &&
        dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
        (void)execlp("ssh", "ssh", remote->is_live ? "-xt" : "-xT", "--", remote->host, line, NULL);
    (void)fprintf(stderr, "Cannot run ssh: %s.\n", strerror(errno));
    _exit(SSH_FAILED);
}

static int open_pipe(int *ret_read_fd, int *ret_write_fd)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    *ret_read_fd = fds[0];
    *ret_write_fd = fds[1];
    return 0;
}

/* A live view has the terminal as its standard input. */
static int begin_ssh(struct remote *remote, char **ret_error)
{
    _cleanup_free_ char *line = join_words(remote);
    _cleanup_fd_ int in = -1, out = -1, err = -1;
    pid_t parent = getpid();

    if (!line)
        return -ENOMEM;
    if ((!remote->is_live && open_pipe(&in, &remote->stop_fd) < 0) ||
        open_pipe(&remote->out_fd, &out) < 0 || open_pipe(&remote->err_fd, &err) < 0)
        return str_refuse(-errno, ret_error, "Cannot begin ssh: %m.");
    remote->ssh = fork();
    if (remote->ssh < 0)
        return str_refuse(-errno, ret_error, "Cannot begin ssh: %m.");
    if (remote->ssh == 0)
        exec_ssh(remote, in, out, err, line, parent);
    return 0;
}

static bool ssh_has_ended(const struct remote *remote)
{
    siginfo_t info = {};

    return waitid(P_PID, (id_t)remote->ssh, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
}

/* Gives ssh the time to end after its stream. Returns its exit status. */
static int end_ssh(struct remote *remote)
{
    const struct timespec step = {.tv_nsec = 10 * USEC_PER_MSEC * NSEC_PER_USEC};
    int status = 0;

    if (remote->ssh <= 0)
        return SSH_FAILED;
    for (int i = 0; i < END_STEPS && remote->interrupts < 2 && !ssh_has_ended(remote); i++)
        (void)nanosleep(&step, NULL); /* a signal only shortens it */
    if (!ssh_has_ended(remote))
        (void)kill(remote->ssh, SIGTERM); /* our child: only a lack of it fails */
    while (waitpid(remote->ssh, &status, 0) < 0 && errno == EINTR)
        ;
    remote->ssh = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : SSH_FAILED;
}

/* --- Text. --- */

static void clear_progress(struct remote *remote)
{
    if (remote->has_line)
        (void)fputs("\r\033[K", stderr);
    remote->has_line = false;
}

/* FILE NULL: a line of ssh's, or of the login there. */
static void print_line(struct remote *remote, FILE *file, char *line, const char *end)
{
    clear_progress(remote);
    str_make_printable(line);
    if (file)
        (void)fprintf(file, "%s%s", line, end);
    else if (*line)
        ctl_warning("%s: %s", remote->host, line);
}

/* A full line ends before a character that may be incomplete. */
static void text_cut(struct remote *remote, struct text *text, FILE *file)
{
    size_t cut = text->bytes;
    char rest[4];

    while (cut > text->bytes - 3 && ((uint8_t)text->line[cut - 1] & 0xc0) == 0x80)
        cut--;
    cut -= (uint8_t)text->line[cut - 1] >= 0xc0;
    text->bytes -= cut;
    memcpy(rest, text->line + cut, text->bytes);
    text->line[cut] = '\0';
    print_line(remote, file, text->line, "");
    memcpy(text->line, rest, text->bytes);
}

static void text_put(struct remote *remote, struct text *text, FILE *file, const uint8_t *data,
                     size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] == '\n' || data[i] == '\t') {
            text->line[text->bytes] = '\0';
            print_line(remote, file, text->line, data[i] == '\n' ? "\n" : "\t");
            text->bytes = 0;
            continue;
        }
        if (text->bytes == LINE_BYTES - 1)
            text_cut(remote, text, file);
        text->line[text->bytes++] = (char)(data[i] ? data[i] : '?');
    }
}

static void text_end(struct remote *remote, struct text *text, FILE *file)
{
    text->line[text->bytes] = '\0';
    if (text->bytes > 0)
        print_line(remote, file, text->line, "");
    text->bytes = 0;
}

/* What ssh printed before the command began: the newest part is kept, for a sentence. */
static void keep_errors(struct text *text, const uint8_t *data, size_t bytes)
{
    size_t room = LINE_BYTES - 1, skip = bytes > room ? bytes - room : 0;
    size_t old = min_u64(text->bytes, room - (bytes - skip));

    memmove(text->line, text->line + text->bytes - old, old);
    for (size_t i = skip; i < bytes; i++)
        text->line[old++] = (char)(data[i] ? data[i] : '?');
    text->bytes = old;
}

/* Prints what came before the marker, in as many lines as a person reads. */
static void print_login(struct remote *remote, const uint8_t *data, size_t bytes)
{
    unsigned int lines = 0;

    for (size_t at = 0; at < bytes && lines <= LOGIN_LINES_SHOWN; lines++) {
        const uint8_t *end = memchr(data + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - data) - at : bytes - at;
        _cleanup_free_ char *line = strndup((const char *)data + at, length);

        if (line)
            line[strcspn(line, "\r")] = '\0';
        if (lines == LOGIN_LINES_SHOWN)
            ctl_warning("%s printed %zu bytes more at login.", remote->host, bytes - at);
        else if (line && *line)
            ctl_warning("%s printed at login: %.*s", remote->host, LOGIN_LINE_SHOWN, line);
        at += length + 1;
    }
}

/* --- The file here. --- */

/* Asks the command there to end: its capture is complete then. */
static void stop(struct remote *remote)
{
    fd_close(&remote->stop_fd);
}

static int take_signals(struct remote *remote, int timeout_msec);

/* Writes to the file, or to a pipe, whose reader may pause: signals are looked for meanwhile. */
static int write_file(struct remote *remote, int fd, const uint8_t *data, size_t bytes)
{
    size_t most = remote->target.output->is_stream ? PIPE_BUF : bytes;

    while (bytes > 0 && remote->write_error == 0) {
        struct pollfd polls[] = {{.fd = fd, .events = POLLOUT},
                                 {.fd = remote->signals_fd, .events = POLLIN}};
        ssize_t n;

        if (remote->target.output->is_stream && poll(polls, 2, -1) > 0 && polls[1].revents) {
            int r = take_signals(remote, 0);

            if (r < 0)
                return r;
            continue;
        }
        n = write(fd, data, min_u64(bytes, most));
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            remote->write_error = -errno;
            stop(remote);
        }
        data += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int open_target(struct remote *remote, char **ret_error)
{
    const struct output_options options = {
        .typed = remote->output,
        .nothing = "Nothing was started",
        .force = remote->force || remote->is_page,
        .may_copy = true,
        .is_packed = remote->is_packed,
        .is_archive = !remote->has_sidecar,
    };
    int r;

    r = remote->is_page && remote->output ? page_check_path(remote->output, ret_error) : 0;
    return r < 0 ? r : target_open(&remote->target, &options, remote->is_bundle, ret_error);
}

/* Records that arrived are kept, although the command failed. Returns the path, to be freed. */
static char *keep_broken_file(struct remote *remote)
{
    struct output *output = remote->target.output;
    struct output_file *trace = output ? &output->trace : NULL;
    struct stat st;

    if (!trace || !remote->has_sidecar || output->is_stream || !trace->path ||
        fstat(trace->fd, &st) < 0 || st.st_size == 0)
        return NULL;
    trace->is_new = false;
    return str_shell_quote(trace->temporary ? trace->temporary : trace->path);
}

static int report_break(struct remote *remote, const char *error)
{
    _cleanup_free_ char *path = keep_broken_file(remote);

    if (path)
        ctl_error("%s%sThe windows written so far are readable; see: xentracectl info %s",
                  error ? error : "", error ? " " : "", path);
    else if (error)
        ctl_error("%s", error);
    return CTL_FAILURE;
}

/* Puts the files in their places, and packs a bundle. Returns the exit code. */
static int complete_files(struct remote *remote)
{
    struct output *output = remote->target.output;
    _cleanup_free_ char *error = NULL;
    _cleanup_doc_ struct json_object *doc = NULL;
    bool is_complete;

    if (!output)
        return remote->status;
    if (remote->write_error && remote->write_error != -EPIPE) {
        _cleanup_free_ char *sentence = str_format(
            "Cannot write %s: %s.", output->trace.path ? output->trace.path : "standard output",
            strerror(-remote->write_error));

        return report_break(remote, sentence);
    }
    is_complete = output->sidecar.fd >= 0 ? remote->sidecar_bytes > 0 : remote->status == CTL_OK;
    if (!is_complete && !output->is_stdout) {
        (void)report_break(remote, NULL);
        return remote->status ? remote->status : CTL_FAILURE;
    }
    if (output_keep(output, &error) < 0 ||
        (remote->is_bundle && doc_read_file(output->sidecar.path, &doc) < 0) ||
        target_finish(&remote->target, doc, &error) < 0) {
        ctl_error_sentence(error ? error : "The sidecar is unreadable, so there is no bundle.");
        return CTL_FAILURE;
    }
    return remote->status;
}

/* --- The command here. --- */

static void reap_child(struct remote *remote)
{
    if (!remote->has_child_begun || remote->has_child_ended ||
        waitpid(child_pid(remote->child), &remote->child_status, WNOHANG) <= 0)
        return;
    remote->has_child_ended = true;
    stop(remote);
}

/* Lets it begin, as the capture there runs. */
static void begin_child(struct remote *remote)
{
    _cleanup_free_ char *error = NULL;

    if (!remote->child || remote->has_child_begun)
        return;
    remote->has_child_begun = true;
    if (child_begin(remote->child, &error) < 0)
        ctl_error_sentence(error); /* its exit status ends the capture */
}

/* The exit code with a command here, whose own comes first; CODE is the capture's. */
static int wait_for_child(struct remote *remote, int code)
{
    struct signalfd_siginfo info;

    if (!remote->has_child_begun)
        return code;
    reap_child(remote);
    if (!remote->has_child_ended)
        ctl_warning("The command continues without being recorded.");
    while (!remote->has_child_ended) {
        if (read(remote->signals_fd, &info, sizeof(info)) == sizeof(info) &&
            info.ssi_signo != SIGCHLD)
            (void)kill(child_pid(remote->child), SIGTERM); /* it is not reaped yet */
        reap_child(remote);
    }
    return remote->child_status ? child_exit_code(remote->child_status) : code;
}

/* --- Signals. --- */

static int catch_signals(struct remote *remote, char **ret_error)
{
    static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    struct sigaction action;
    sigset_t signals;

    (void)sigemptyset(&signals); /* none of these can fail */
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        if (sigaction(wanted[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)sigaddset(&signals, wanted[i]);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
        return str_refuse(-errno, ret_error, "Cannot catch signals: %m.");
    remote->signals_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    return remote->signals_fd < 0 ? str_refuse(-errno, ret_error, "Cannot catch signals: %m.") : 0;
}

/* Ends the command here, and with it the capture; without one, the command there: 0. -EINTR: now.
 */
static int interrupt(struct remote *remote, const struct signalfd_siginfo *info)
{
    bool runs = remote->has_child_begun && !remote->has_child_ended;

    remote->interrupts++;
    if (runs && remote->interrupts == 1) {
        if (info->ssi_code != SI_KERNEL) /* a terminal sends it to both */
            (void)kill(child_pid(remote->child), (int)info->ssi_signo); /* it is not reaped yet */
        return 0;
    }
    if (!remote->has_begun || remote->stop_fd < 0)
        return -EINTR;
    if (runs)
        (void)kill(child_pid(remote->child), SIGTERM); /* it is not reaped yet */
    stop(remote);
    return 0;
}

static int take_signals(struct remote *remote, int timeout_msec)
{
    struct pollfd polls[] = {{.fd = remote->signals_fd, .events = POLLIN}};
    struct signalfd_siginfo info;

    if (poll(polls, 1, timeout_msec) <= 0 ||
        read(remote->signals_fd, &info, sizeof(info)) != sizeof(info))
        return 0;
    if (info.ssi_signo != SIGCHLD)
        return interrupt(remote, &info);
    reap_child(remote);
    return 0;
}

/* --- What comes. --- */

static void show_progress(struct remote *remote, const uint8_t *data, size_t bytes)
{
    _cleanup_free_ char *line = strndup((const char *)data, min_u64(bytes, LINE_BYTES));
    struct winsize size = {};

    if (!line || !isatty(STDERR_FILENO))
        return;
    str_make_printable(line);
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 &&
        strlen(line) >= size.ws_col)
        line[size.ws_col - 1] = '\0';
    (void)fprintf(stderr, "\r%s\033[K", line);
    remote->has_line = true;
}

static int take_sidecar(struct remote *remote, const uint8_t *data, size_t bytes)
{
    const struct output *output = remote->target.output;

    if (!output || output->sidecar.fd < 0)
        return 0;
    remote->sidecar_bytes += bytes;
    if (remote->sidecar_bytes > SIDECAR_MAX_BYTES)
        return -EBADMSG;
    return write_file(remote, output->sidecar.fd, data, bytes);
}

/* Without a file here, what is for one is text: of `export` on a terminal. */
static int take_frame(struct remote *remote, uint8_t letter, const uint8_t *data, size_t bytes)
{
    switch (letter) {
    case SERVED_FILE:
        if (remote->target.output)
            return write_file(remote, remote->target.output->trace.fd, data, bytes);
        text_put(remote, &remote->out, stdout, data, bytes);
        return 0;
    case SERVED_OUT: /* with a command here, standard output is its own */
        text_put(remote, &remote->out, remote->command ? stderr : stdout, data, bytes);
        return 0;
    case SERVED_ERR:
        text_put(remote, &remote->err, stderr, data, bytes);
        return 0;
    case SERVED_SIDECAR:
        return take_sidecar(remote, data, bytes);
    case SERVED_STARTED:
        begin_child(remote);
        return 0;
    case SERVED_PROGRESS:
        show_progress(remote, data, bytes);
        return 0;
    case SERVED_EXIT:
        if (bytes != 1)
            return -EBADMSG;
        remote->status = data[0];
        remote->has_ended = true;
        return 0;
    }
    return -EBADMSG;
}

/* Returns the bytes of IN that are done, or a negative errno. */
static ssize_t take_frames(struct remote *remote)
{
    size_t at = 0;

    while (!remote->has_ended && remote->in_bytes - at >= SERVED_HEAD_BYTES) {
        const uint8_t *head = remote->in + at;
        uint32_t bytes;
        int r;

        memcpy(&bytes, head + 1, sizeof(bytes));
        bytes = ntohl(bytes);
        if (bytes > SERVED_FRAME_BYTES)
            return -EBADMSG;
        if (remote->in_bytes - at < SERVED_HEAD_BYTES + bytes)
            break;
        r = take_frame(remote, head[0], head + SERVED_HEAD_BYTES, bytes);
        if (r < 0)
            return r;
        at += SERVED_HEAD_BYTES + bytes;
    }
    (void)fflush(stdout); /* main() reports an error */
    return (ssize_t)at;
}

/* Compares the versions. VERSION is what follows the marker. -EPROTO was reported. */
static int check_version(struct remote *remote, char *version)
{
    size_t protocol = strcspn(version, " ");
    const char *rest = version + protocol + (version[protocol] == ' ');

    str_make_printable(version);
    if (protocol != strlen(SERVED_PROTOCOL) || strncmp(version, SERVED_PROTOCOL, protocol) != 0) {
        ctl_error("%s has xentracectl %.40s, whose -H differs from that of this one (%s): install "
                  "the same version on both hosts.",
                  remote->host, *rest ? rest : "unknown", PACKAGE_VERSION);
        return -EPROTO;
    }
    if (strcmp(rest, PACKAGE_VERSION) != 0)
        ctl_warning("%s has xentracectl %.40s, and this host %s: options and output may differ.",
                    remote->host, rest, PACKAGE_VERSION);
    return 0;
}

/* Looks for the marker line. Returns as take_frames(). */
static ssize_t find_marker(struct remote *remote)
{
    const size_t length = strlen(SERVED_MARKER);
    uint8_t *marker = memmem(remote->in, remote->in_bytes, SERVED_MARKER, length);
    uint8_t *end =
        marker ? memchr(marker, '\n', remote->in_bytes - (size_t)(marker - remote->in)) : NULL;
    char version[64];

    if (!end)
        return remote->in_bytes == sizeof(remote->in) ? -EFBIG : 0;
    print_login(remote, remote->in, (size_t)(marker - remote->in));
    (void)snprintf(version, sizeof(version), "%.*s", (int)(end - marker - (ssize_t)length),
                   (const char *)marker + length);
    version[strcspn(version, "\r")] = '\0';
    remote->has_begun = true;
    text_put(remote, &(struct text){}, NULL, (const uint8_t *)remote->ssh_err.line,
             remote->ssh_err.bytes);
    remote->ssh_err.bytes = 0;
    if (check_version(remote, version) < 0)
        return -EPROTO;
    return end + 1 - remote->in;
}

/* A live view is for the terminal as it is. */
static ssize_t take_live(const struct remote *remote)
{
    (void)fwrite(remote->in, 1, remote->in_bytes, stdout);
    (void)fflush(stdout); /* main() reports an error */
    return (ssize_t)remote->in_bytes;
}

/* Takes what ssh's standard output has: 1; 0 at its end; a negative errno. */
static int take_out(struct remote *remote)
{
    ssize_t n =
        read(remote->out_fd, remote->in + remote->in_bytes, sizeof(remote->in) - remote->in_bytes);

    if (n < 0)
        return errno == EINTR ? 1 : -errno;
    if (n == 0)
        return 0;
    remote->in_bytes += (size_t)n;
    n = remote->has_begun ? 0 : find_marker(remote);
    for (bool again = true; n >= 0 && again; again = n > 0 && remote->has_begun) {
        remote->in_bytes -= (size_t)n;
        memmove(remote->in, remote->in + n, remote->in_bytes);
        n = !remote->has_begun ? 0 : remote->is_live ? take_live(remote) : take_frames(remote);
    }
    return n < 0 ? (int)n : !remote->has_ended;
}

/* Takes what ssh's standard error has. */
static void take_err(struct remote *remote)
{
    uint8_t data[LINE_BYTES];
    ssize_t n = read(remote->err_fd, data, sizeof(data));

    if (n == 0 || (n < 0 && errno != EINTR))
        fd_close(&remote->err_fd);
    if (n > 0 && remote->has_begun)
        text_put(remote, &remote->ssh_err, NULL, data, (size_t)n);
    else if (n > 0)
        keep_errors(&remote->ssh_err, data, (size_t)n);
}

/* Until the command has ended, or the connection: 0; -EINTR if the user has given up. */
static int take_all(struct remote *remote)
{
    for (;;) {
        struct pollfd polls[] = {
            {.fd = remote->out_fd, .events = POLLIN},
            {.fd = remote->err_fd, .events = POLLIN},
            {.fd = remote->signals_fd, .events = POLLIN},
        };
        int r = 1;

        if (poll(polls, ARRAY_SIZE(polls), -1) < 0)
            continue; /* interrupted: its arguments are valid */
        if (polls[1].revents)
            take_err(remote);
        if (polls[2].revents)
            r = take_signals(remote, 0) < 0 ? -EINTR : 1;
        if (r > 0 && polls[0].revents)
            r = take_out(remote);
        if (r <= 0)
            return r;
    }
}

/* --- How it ended. --- */

/* The rest of ssh's standard error, which is complete as ssh has ended. */
static void take_last_errors(struct remote *remote)
{
    struct pollfd polls[] = {{.fd = remote->err_fd, .events = POLLIN}};

    for (int i = 0; i < 16 && remote->err_fd >= 0 && poll(polls, 1, 0) > 0; i++)
        take_err(remote);
}

/* The last line that ssh printed, and what came before it, printed. */
static const char *split_last_line(struct remote *remote)
{
    struct text *text = &remote->ssh_err;
    char *last;

    while (text->bytes > 0 && strchr("\r\n", text->line[text->bytes - 1]))
        text->bytes--;
    text->line[text->bytes] = '\0';
    last = strrchr(text->line, '\n');
    if (last)
        text_put(remote, &(struct text){}, NULL, (const uint8_t *)text->line,
                 (size_t)(last + 1 - text->line));
    last = last ? last + 1 : text->line;
    str_make_printable(last);
    return last;
}

static const char *full_stop(const char *text)
{
    return *text && text[strlen(text) - 1] != '.' ? "." : "";
}

/* No marker came. */
static int explain_silence(struct remote *remote, bool is_flood)
{
    int status = is_flood ? (kill(remote->ssh, SIGTERM), end_ssh(remote), 0) : end_ssh(remote);
    const char *line;

    take_last_errors(remote);
    print_login(remote, remote->in, remote->in_bytes);
    line = split_last_line(remote);
    if (is_flood)
        ctl_error("%s printed more than %u KiB, and no answer of xentracectl: end what its login "
                  "scripts print. To see it: ssh %s xentracectl version",
                  remote->host, SERVED_FRAME_BYTES >> 10, remote->host);
    else if (status == SSH_FAILED)
        ctl_error("Cannot reach %s through ssh%s%.500s%s", remote->host, *line ? ": " : ".", line,
                  full_stop(line));
    else if (status == NOT_FOUND)
        ctl_error("%s has no xentracectl in the PATH that ssh uses: install it there.",
                  remote->host);
    else if (strncmp(line, "xentracectl: ", strlen("xentracectl: ")) == 0)
        ctl_error("%s has an older xentracectl, which this one (%s) cannot use through -H: install "
                  "the same version there.",
                  remote->host, PACKAGE_VERSION);
    else
        ctl_error("xentracectl did not run on %s: its login shell ended first, with status %d%s%s"
                  "%s To see why: ssh %s xentracectl version",
                  remote->host, status, *line ? ": " : ".", line, full_stop(line), remote->host);
    return CTL_FAILURE;
}

/* Ends ssh, and reports what has to be reported. R is as of take_all(). */
static int report(struct remote *remote, int r)
{
    _cleanup_free_ char *error = NULL;
    int status;

    if (!remote->has_begun && r != -EINTR)
        return explain_silence(remote, r == -EFBIG);
    if (r < 0 && remote->ssh > 0)
        (void)kill(remote->ssh, SIGTERM); /* our child: only a lack of it fails */
    status = end_ssh(remote);
    take_last_errors(remote);
    text_end(remote, &remote->out, remote->command ? stderr : stdout);
    text_end(remote, &remote->err, stderr);
    text_end(remote, &remote->ssh_err, NULL);
    clear_progress(remote);
    if (r == -EPROTO)
        return CTL_FAILURE;
    if (r == 0 && remote->has_ended)
        return complete_files(remote);
    if (r == 0 && remote->is_live && status != SSH_FAILED)
        return status;
    if (remote->is_live)
        (void)fputs(LEAVE_SCREEN, stdout);
    if (r == -EINTR && !remote->has_begun)
        error = str_format("Interrupted before %s answered.", remote->host);
    else if (r == -EINTR)
        error = str_format("Gave up waiting; the command on %s ends.", remote->host);
    else if (r == -EBADMSG)
        error = str_format("%s sent what is no answer of xentracectl.", remote->host);
    else
        error = str_format("The connection to %s through ssh broke.", remote->host);
    return report_break(remote, error);
}

static int child_failure(int r)
{
    if (r == -ENOENT)
        return CHILD_NOT_FOUND;
    return r == -EACCES ? CHILD_NOT_RUN : CTL_FAILURE;
}

static int run(struct remote *remote)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    _cleanup_free_ char *error = NULL;
    int r, code;

    r = open_target(remote, &error);
    if (r >= 0 && remote->command) {
        r = child_new(remote->command, remote->output && output_talk(remote->output) == stderr,
                      &remote->child, &error);
        if (r < 0) {
            ctl_error_sentence(error);
            return child_failure(r);
        }
    }
    if (r >= 0)
        r = catch_signals(remote, &error);
    if (r >= 0)
        r = begin_ssh(remote, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    if (remote->target.output)
        (void)sigaction(SIGPIPE, &ignore, NULL); /* a reader that leaves ends the capture */
    code = report(remote, take_all(remote));
    return wait_for_child(remote, code);
}

static void remote_done(struct remote *remote)
{
    if (remote->ssh > 0)
        (void)kill(remote->ssh, SIGTERM); /* our child: only a lack of it fails */
    if (remote->ssh > 0)
        (void)end_ssh(remote);
    target_done(&remote->target);
    (void)child_free(remote->child);
    fd_close(&remote->stop_fd);
    fd_close(&remote->out_fd);
    fd_close(&remote->err_fd);
    fd_close(&remote->signals_fd);
}

/* --- The command line. --- */

/* The command line of VERB, taken apart. */
struct line {
    const struct verb *verb;
    int argc; /* up to "--" */
    char **argv;
    _Alignas(16) char values[VALUES_BYTES]; /* of its options */
    uint64_t given;
    char **command; /* after "--"; NULL: there is none */
};

static bool line_has(const struct line *line, const char *name)
{
    const struct args_option *option = args_find(line->verb->options, name);

    return option && (line->given & (UINT64_C(1) << (option - line->verb->options)));
}

/* The text of an option; NULL: it was not given. */
static const char *line_text(const struct line *line, const char *name)
{
    const struct args_option *option = args_find(line->verb->options, name);

    return line_has(line, name) ? *(const char *const *)(line->values + option->offset) : NULL;
}

static void line_done(struct line *line)
{
    const struct args_option *table = line->verb->options;

    for (size_t i = 0; i < args_count(table); i++) {
        if (table[i].name && table[i].type == ARGS_EVENTS)
            free(*(char **)(line->values + table[i].offset));
    }
    free(line->argv);
}

/* False: there is a mistake in it, or no memory. The words are borrowed from ARGV. */
static bool line_parse(struct line *line, struct ctl *ctl, int argc, char **argv)
{
    _cleanup_free_ char *error = NULL;

    line->argv = calloc((size_t)argc + 1, sizeof(*argv));
    for (; line->argv && line->argc < argc; line->argc++) {
        if (verb_takes_command(line->verb) && strcmp(argv[line->argc], "--") == 0)
            break;
        line->argv[line->argc] = argv[line->argc];
    }
    line->command = line->argc < argc ? argv + line->argc + 1 : NULL;
    return line->argv && args_parse(ctl, line->verb->options, line->argc, line->argv, line->argc,
                                    line->values, &line->given, &error) == 0;
}

/* Its options but the global ones, which may stand before the command. */
static int make_words(const struct line *line, char ***ret_words)
{
    static const char *const left_out[] = {"host", "socket", "json", "no-pager", NULL};
    const char *const added[] = {line->command && !line_has(line, "quiet") ? "--quiet" : NULL,
                                 NULL};

    return args_rebuild(line->verb->options, line->argc, line->argv, left_out, added, ret_words);
}

static int refuse(const struct verb *verb, const char *sentence)
{
    return args_exit(verb, -EINVAL, strdup(sentence));
}

static struct remote remote_of(struct ctl *ctl, const char *host, const char *socket)
{
    return (struct remote){
        .ctl = ctl,
        .host = host,
        .socket = socket,
        .stop_fd = -1,
        .out_fd = -1,
        .err_fd = -1,
        .signals_fd = -1,
    };
}

static int run_line(struct ctl *ctl, const struct line *line, const char *host, const char *path)
{
    bool is_screen = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !ctl->json;
    _cleanup_(remote_done) struct remote remote = remote_of(ctl, host, path);
    _cleanup_(args_free_words) char **words = NULL;
    const char *compress = line_text(line, "compress"), *page = line_text(line, "html");

    if (line->command && !*line->command)
        return refuse(line->verb, "A command is missing after --.");
    for (int i = optind; i < line->argc; i++)
        if (strcmp(line->argv[i], "-") == 0)
            return refuse(line->verb, "Standard input does not reach the other host: name a file "
                                      "there.");
    if (make_words(line, &words) < 0) {
        ctl_error_sentence(NULL);
        return CTL_FAILURE;
    }
    remote.words = words;
    remote.output = page ? page : line_text(line, "output");
    if (!remote.output && line->verb == &verb_export && !isatty(STDOUT_FILENO))
        remote.output = "-";
    remote.is_page = page;
    remote.has_sidecar = !page && line->verb != &verb_export;
    remote.is_bundle = line_has(line, "bundle");
    remote.is_packed = compress && strcmp(compress, "zstd") == 0;
    remote.force = line_has(line, "force");
    remote.is_live = line->verb->remote == VERB_LIVE && is_screen && !line_has(line, "once");
    remote.command = line->command;
    return run(&remote);
}

bool remote_run(struct ctl *ctl, const struct verb *verb, int argc, char **argv, int *ret_code)
{
    _cleanup_(line_done) struct line line = {.verb = verb};
    _cleanup_free_ char *host = NULL, *error = NULL;
    const char *path = NULL;
    int r;

    if (verb->remote == VERB_STAYS_HERE || !line_parse(&line, ctl, argc, argv))
        return false;
    r = find_host(ctl, &host, &path, &error);
    if (r == 0)
        return false;
    *ret_code = r < 0 ? args_exit(verb, r, TAKE_PTR(error)) : run_line(ctl, &line, host, path);
    return true;
}

bool remote_run_words(struct ctl *ctl, char **words, const char *output, bool force, int *ret_code)
{
    _cleanup_free_ char *host = NULL, *error = NULL;
    const char *path = NULL;
    int r = find_host(ctl, &host, &path, &error);

    if (r == 0)
        return false;
    if (r < 0) {
        *ret_code = args_exit(NULL, r, TAKE_PTR(error));
    } else {
        _cleanup_(remote_done) struct remote remote = remote_of(ctl, host, path);

        remote.words = words;
        remote.output = output;
        remote.has_sidecar = true;
        remote.force = force;
        *ret_code = run(&remote);
    }
    return true;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A bridge of our own and not systemd-stdio-bridge(1): the other host needs xentracectl anyway, for
 * outputs, it knows the socket's path there, and its sentence about a daemon that does not run is
 * better than a closed stream.
 *
 * ssh ignores Ctrl-C, which is ours: a capture ends cleanly only while its connection lives. It
 * asks for passwords on the terminal, not on its streams, and ends with this process.
 */

#include "ctl/remote.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "common/units.h"
#include "common/util.h"
#include "ctl/str.h"

#define PREFIX        "ssh://"
#define SSH_FAILED    255 /* ssh(1), EXIT STATUS */
#define EXPLAIN_STEPS 100 /* of 10 ms: how long ssh may take to end after its stream */
#define LAST_LINE_MAX 512u

struct remote {
    char *host;
    pid_t pid;  /* 0: waited for */
    int status; /* its exit status then */
    int errors; /* a file with its standard error; -1: not kept */
};

char *remote_address(const char *host, const char *socket)
{
    return str_format(PREFIX "%s%s", host, socket ? socket : "");
}

bool remote_is_address(const char *socket)
{
    return strncmp(socket, PREFIX, strlen(PREFIX)) == 0;
}

const char *remote_address_path(const char *address)
{
    return strchr(address + strlen(PREFIX), '/');
}

char *remote_address_host(const char *address)
{
    const char *host = address + strlen(PREFIX);

    return strndup(host, strcspn(host, "/"));
}

const char *remote_host(const struct remote *remote)
{
    return remote->host;
}

/* --- The process. --- */

/* "xentracectl status 'a name'", for the shell of the other host. */
static char *join_words(char *const *words)
{
    char *line = strdup("xentracectl");

    for (; line && *words; words++) {
        _cleanup_free_ char *quoted = str_shell_quote(*words), *shorter = line;

        line = quoted ? str_format("%s %s", shorter, quoted) : NULL;
    }
    return line;
}

static void take_place(int fd, int target)
{
    if (fd >= 0 && dup2(fd, target) < 0)
        _exit(SSH_FAILED);
}

/* In the child: does not return. */
static void exec_ssh(const struct remote *remote, const struct remote_command *command, char *line,
                     pid_t parent)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t none;

    (void)sigemptyset(&none); /* cannot fail */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent ||
        sigprocmask(SIG_SETMASK, &none, NULL) < 0 || sigaction(SIGINT, &ignore, NULL) < 0)
        _exit(SSH_FAILED);
    take_place(command->in, STDIN_FILENO);
    take_place(command->out, STDOUT_FILENO);
    take_place(command->err >= 0 ? command->err : remote->errors, STDERR_FILENO);
    (void)execlp("ssh", "ssh", "-xT", "--", remote->host, line, NULL);
    (void)fprintf(stderr, "Cannot run ssh: %s.\n", strerror(errno));
    _exit(SSH_FAILED);
}

int remote_new(const char *host, const struct remote_command *command, struct remote **ret_remote,
               char **ret_error)
{
    _cleanup_(remote_freep) struct remote *remote = calloc(1, sizeof(*remote));
    _cleanup_free_ char *line = join_words(command->words);
    pid_t parent = getpid();

    if (!remote || !line)
        return -ENOMEM;
    remote->errors = -1;
    remote->host = strdup(host);
    if (!remote->host)
        return -ENOMEM;
    if (command->err < 0) {
        remote->errors = memfd_create("ssh", MFD_CLOEXEC);
        if (remote->errors < 0)
            return str_refuse(-errno, ret_error, "Cannot begin ssh: %m.");
    }
    remote->pid = fork();
    if (remote->pid < 0)
        return str_refuse(-errno, ret_error, "Cannot begin ssh: %m.");
    if (remote->pid == 0)
        exec_ssh(remote, command, line, parent);
    *ret_remote = TAKE_PTR(remote);
    return 0;
}

void remote_kill(struct remote *remote)
{
    if (remote->pid > 0)
        (void)kill(remote->pid, SIGTERM); /* it is our child: only a lack of it fails */
}

int remote_wait(struct remote *remote)
{
    int status;
    pid_t pid;

    if (remote->pid <= 0)
        return remote->status;
    do
        pid = waitpid(remote->pid, &status, 0);
    while (pid < 0 && errno == EINTR);
    remote->pid = 0;
    remote->status = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : SSH_FAILED;
    return remote->status;
}

struct remote *remote_free(struct remote *remote)
{
    if (!remote)
        return NULL;
    remote_kill(remote);
    if (remote->pid > 0)
        (void)remote_wait(remote);
    fd_close(&remote->errors);
    free(remote->host);
    free(remote);
    return NULL;
}

/* --- The bridge. --- */

int remote_connect(const char *address, struct remote **ret_remote, int *ret_fd, char **ret_error)
{
    const char *path = remote_address_path(address);
    _cleanup_free_ char *host = remote_address_host(address);
    char bridge[] = "bridge", option[] = "--socket";
    char *const words[] = {bridge, path ? option : NULL, (char *)path, NULL};
    _cleanup_fd_ int ours = -1, theirs = -1;
    int fds[2], r;

    if (!host)
        return -ENOMEM;
    if (!*host || *host == '-') /* ssh would take it for an option */
        return str_refuse(-EINVAL, ret_error, "%s names no host: write ssh://USER@HOST.", address);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return str_refuse(-errno, ret_error, "Cannot begin ssh: %m.");
    ours = fds[0];
    theirs = fds[1];
    r = remote_new(host,
                   &(struct remote_command){.words = words, .in = theirs, .out = theirs, .err = -1},
                   ret_remote, ret_error);
    if (r < 0)
        return r;
    *ret_fd = fd_take(&ours);
    return 0;
}

/* --- Why it ended. --- */

bool remote_has_ended(const struct remote *remote)
{
    siginfo_t info = {};

    return remote->pid <= 0 ||
           waitid(P_PID, (id_t)remote->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
}

/* Gives ssh the time to end after its stream. */
static bool ends_soon(const struct remote *remote)
{
    const struct timespec step = {.tv_nsec = 10 * USEC_PER_MSEC * NSEC_PER_USEC};

    for (int i = 0; i < EXPLAIN_STEPS && !remote_has_ended(remote); i++)
        (void)nanosleep(&step, NULL); /* a signal only shortens it */
    return remote_has_ended(remote);
}

/* The last line of its standard error without the program's name, in BUFFER; "" if there is none.
 */
static const char *read_last_line(const struct remote *remote, char buffer[static LAST_LINE_MAX])
{
    static const char program[] = "xentracectl: ";
    off_t bytes = remote->errors < 0 ? 0 : lseek(remote->errors, 0, SEEK_END);
    off_t from = bytes > (off_t)LAST_LINE_MAX - 1 ? bytes - ((off_t)LAST_LINE_MAX - 1) : 0;
    ssize_t n = bytes > 0 ? pread(remote->errors, buffer, LAST_LINE_MAX - 1, from) : 0;
    char *line;

    while (n > 0 && (buffer[n - 1] == '\n' || buffer[n - 1] == '\r'))
        n--;
    buffer[n > 0 ? n : 0] = '\0';
    line = strrchr(buffer, '\n');
    line = line ? line + 1 : buffer;
    str_make_printable(line);
    return strncmp(line, program, strlen(program)) == 0 ? line + strlen(program) : line;
}

char *remote_errors(const struct remote *remote, size_t max_bytes)
{
    off_t end = remote->errors < 0 ? -1 : lseek(remote->errors, 0, SEEK_END);
    size_t bytes = end < 0 ? 0 : (size_t)min_u64((uint64_t)end, max_bytes);
    char *text = end < 0 ? NULL : malloc(bytes + 1);
    ssize_t n;

    if (!text)
        return NULL;
    n = pread(remote->errors, text, bytes, 0); /* of memory: all at once */
    text[n > 0 ? n : 0] = '\0';
    return text;
}

int remote_explain(struct remote *remote, char **ret_error)
{
    char buffer[LAST_LINE_MAX];
    const char *line;
    int status;

    if (!ends_soon(remote))
        remote_kill(remote);
    status = remote_wait(remote);
    line = read_last_line(remote, buffer);
    if (status == REMOTE_NOT_FOUND)
        return str_refuse(-ECONNRESET, ret_error,
                          "%s has no xentracectl in the PATH that ssh uses: install it there.",
                          remote->host);
    if (status == SSH_FAILED)
        return str_refuse(-ECONNRESET, ret_error, "Cannot reach %s through ssh%s%s%s", remote->host,
                          *line ? ": " : ".", line,
                          *line && line[strlen(line) - 1] != '.' ? "." : "");
    if (*line)
        return str_refuse(-ECONNRESET, ret_error, "%s: %s", remote->host, line);
    return str_refuse(-ECONNRESET, ret_error,
                      "The connection to xentraced on %s was closed. It is permitted to root, the "
                      "group xentrace (status and snapshots), and the group set by control-group=.",
                      remote->host);
}

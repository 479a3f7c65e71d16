// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xentracectl bridge: what `xentracectl -H` runs on the other host (ctl/remote.h).
 *
 * Without arguments it copies bytes between its streams and the daemon's socket. With arguments it
 * runs xentracectl with them, and interrupts that when standard input ends: ssh passes no signals,
 * so that this is how Ctrl-C and a lost connection arrive, and a capture ends cleanly.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/remote.h"
#include "ctl/str.h"

#define BUFFER_BYTES 65536u

/* --- Bytes. --- */

/* Copies what FROM has: the number of bytes, 0 at its end, or a negative errno. */
static ssize_t copy(int from, int to)
{
    char buffer[BUFFER_BYTES];
    ssize_t n, written;

    do
        n = read(from, buffer, sizeof(buffer));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    for (ssize_t done = 0; done < n; done += written) {
        written = write(to, buffer + done, (size_t)(n - done));
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written < 0)
            written = 0;
    }
    return n;
}

/* Until the daemon closes the connection. */
static int copy_both(int fd)
{
    struct pollfd polls[] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = fd, .events = POLLIN},
    };

    for (;;) {
        if (poll(polls, ARRAY_SIZE(polls), -1) < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        if (polls[1].revents && copy(fd, STDOUT_FILENO) <= 0)
            return 0;
        if (polls[0].revents && copy(STDIN_FILENO, fd) <= 0) {
            polls[0].fd = -1;
            if (shutdown(fd, SHUT_WR) < 0)
                return -errno;
        }
    }
}

static int bridge(struct ctl *ctl)
{
    _cleanup_free_ char *error = NULL;
    _cleanup_fd_ int fd = -1;
    int r;

    r = client_open_socket(ctl->socket, &fd, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    r = copy_both(fd);
    if (r < 0) {
        ctl_error("The connection to xentraced broke: %s.", strerror(-r));
        return CTL_FAILURE;
    }
    return CTL_OK;
}

/* --- A command. --- */

/* In the child: does not return. Standard input stays the bridge's, OUT becomes standard output. */
static void exec_command(const struct ctl *ctl, char **argv, pid_t parent, int out)
{
    _cleanup_fd_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        prctl(PR_SET_PDEATHSIG, SIGINT) == 0 && getppid() == parent &&
        setenv("XENTRACED_SOCKET", ctl->socket, 1) == 0 && setenv(REMOTE_BRIDGE, "1", 1) == 0)
        (void)execv("/proc/self/exe", argv);
    ctl_error("Cannot run xentracectl: %s.", strerror(errno));
    _exit(CTL_FAILURE);
}

/* Passes the command's output on, and interrupts it at the end of standard input. */
static void pass_output(pid_t pid, int out)
{
    struct pollfd polls[] = {
        {.fd = out, .events = POLLIN},
        {.fd = STDIN_FILENO, .events = POLLIN},
    };
    char ignored[64];

    for (;;) {
        if (poll(polls, ARRAY_SIZE(polls), -1) < 0) {
            if (errno == EINTR)
                continue;
            return;
        }
        if (polls[0].revents && copy(out, STDOUT_FILENO) <= 0)
            return;
        if (polls[1].revents && read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0) {
            polls[1].fd = -1;
            (void)kill(pid, SIGINT); /* our child: it may only have ended */
        }
    }
}

/*
 * The records go through a pipe: sshd's streams may be sockets, which the daemon does not write to.
 * The pipe ends when both the command and the daemon have closed it.
 */
static int run_command(struct ctl *ctl, char **words)
{
    _cleanup_fd_ int out = -1, theirs = -1;
    pid_t parent = getpid(), pid;
    int fds[2], status;

    if (pipe2(fds, O_CLOEXEC) < 0) {
        ctl_error("Cannot run xentracectl: %s.", strerror(errno));
        return CTL_FAILURE;
    }
    out = fds[0];
    theirs = fds[1];
    pid = fork();
    if (pid == 0)
        exec_command(ctl, words, parent, theirs);
    if (pid < 0) {
        ctl_error("Cannot run xentracectl: %s.", strerror(errno));
        return CTL_FAILURE;
    }
    fd_close(&theirs);
    pass_output(pid, out);
    fd_close(&out); /* if nobody reads any more, the daemon learns of it */
    if (waitpid(pid, &status, 0) < 0)
        return CTL_FAILURE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : CTL_FAILURE;
}

static int cmd_bridge(struct ctl *ctl, int argc, char **argv)
{
    char *error = NULL;
    int r;

    r = args_parse(ctl, NULL, argc, argv, -1, NULL, NULL, &error);
    if (r < 0)
        return args_exit(&verb_bridge, r, error);
    return optind < argc ? run_command(ctl, argv + optind - 1) : bridge(ctl);
}

const struct verb verb_bridge = {
    .name = "bridge",
    .run = cmd_bridge,
    .words = "[COMMAND...]",
    .summary = "serve xentracectl -H on the remote host",
    .help = "Connects standard input and output to the daemon's socket, or runs COMMAND until\n"
            "standard input ends. Used by xentracectl -H.\n",
    .remote = VERB_STAYS_HERE,
};

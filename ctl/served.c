// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process of its own passes the output on: records go through a pipe, as sshd's streams may be
 * sockets, to which the daemon does not write; and ssh passes no signals, so that Ctrl-C and a lost
 * connection arrive as the end of standard input, for which a command does not look.
 *
 * The facts about the other side are in the environment of the process that runs the command: it is
 * one of many commands, which have nothing else in common.
 */

#include "ctl/served.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/str.h"

#define ENV_HOST "XENTRACECTL_SERVED_HOST"
#define ENV_PATH "XENTRACECTL_SERVED_PATH"
#define ENV_FACTS                                                                                  \
    "XENTRACECTL_SERVED" /* descriptors: file, sidecar, messages; 1 with a terminal                \
                          */

enum { OUT, ERR, FILE_, SIDECAR, MESSAGES, CHANNELS };

static const char letters[CHANNELS] = {SERVED_OUT, SERVED_ERR, SERVED_FILE, SERVED_SIDECAR, 0};

/* --- The facts. --- */

static int fact(unsigned int i)
{
    const char *text = getenv(ENV_FACTS);
    int facts[] = {-1, -1, -1, 0};

    if (text)
        (void)sscanf(text, "%d %d %d %d", &facts[0], &facts[1], &facts[2], &facts[3]);
    return facts[i];
}

const char *served_host(void)
{
    const char *host = getenv(ENV_HOST);

    return host ? host : "";
}

const char *served_path(void)
{
    const char *path = getenv(ENV_PATH);

    return path && *path ? path : NULL;
}

int served_output_fd(void)
{
    return fact(0);
}

int served_sidecar_fd(void)
{
    return fact(1);
}

bool served_has_terminal(void)
{
    return fact(3);
}

void served_send(enum served_frame frame, const char *text)
{
    char letter = (char)frame;
    struct iovec parts[] = {{&letter, 1}, {(char *)text, strlen(text)}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts)};

    if (fact(2) >= 0) /* without a reader nobody is there any more, which the command will notice */
        (void)sendmsg(fact(2), &message, MSG_NOSIGNAL);
}

/* --- Passing on. --- */

/* Writes the frame of DATA, which has room for the head before it. */
static int write_frame(char letter, char *data, size_t bytes)
{
    uint32_t length = htonl((uint32_t)bytes);
    char *at = data - SERVED_HEAD_BYTES, *end = data + bytes;

    at[0] = letter;
    memcpy(at + 1, &length, sizeof(length));
    while (at < end) {
        ssize_t n = write(STDOUT_FILENO, at, (size_t)(end - at));

        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? n : 0;
    }
    return 0;
}

/* Passes on what a channel has: 1; 0 at its end; a negative errno if the connection is lost. */
static int pass_on(int fd, char letter)
{
    char buffer[SERVED_HEAD_BYTES + SERVED_FRAME_BYTES], *data = buffer + SERVED_HEAD_BYTES;
    ssize_t n = read(fd, data, SERVED_FRAME_BYTES);
    int r;

    if (n < 0 && errno == EINTR)
        return 1;
    if (n <= 0)
        return 0;
    r = letter ? write_frame(letter, data, (size_t)n) : write_frame(*data, data + 1, (size_t)n - 1);
    return r < 0 ? r : 1;
}

/* Until all channels have ended: those of the daemon, too. */
static void pass_all(pid_t pid, int fds[static CHANNELS])
{
    struct pollfd polls[CHANNELS + 1] = {[CHANNELS] = {.fd = STDIN_FILENO, .events = POLLIN}};
    int left = CHANNELS;
    char ignored[64];

    for (int i = 0; i < CHANNELS; i++)
        polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    while (left > 0) {
        if (poll(polls, ARRAY_SIZE(polls), -1) < 0)
            continue; /* interrupted: its arguments are valid */
        for (int i = 0; i < CHANNELS; i++) {
            int r = polls[i].revents ? pass_on(fds[i], letters[i]) : 1;

            if (r < 0) { /* nobody reads: the command is to end, and its records go nowhere */
                (void)kill(pid, SIGINT);
                return;
            }
            left -= r == 0;
            polls[i].fd = r == 0 ? -1 : polls[i].fd;
        }
        if (polls[CHANNELS].revents && read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0) {
            polls[CHANNELS].fd = -1;
            (void)kill(pid, SIGINT); /* our child: it may only have ended */
        }
    }
}

/* --- Beginning. --- */

static int open_channels(int ours[static CHANNELS], int theirs[static CHANNELS])
{
    for (int i = 0; i < CHANNELS; i++) {
        int fds[2];

        if ((i == MESSAGES ? socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)
                           : pipe2(fds, O_CLOEXEC)) < 0)
            return -errno;
        ours[i] = fds[0];
        theirs[i] = fds[1];
    }
    return 0;
}

static int become_command(int fds[static CHANNELS], pid_t parent, bool has_terminal)
{
    _cleanup_fd_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *facts =
        str_format("%d %d %d %d", fds[FILE_], fds[SIDECAR], fds[MESSAGES], has_terminal);

    if (!facts || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(fds[OUT], STDOUT_FILENO) < 0 ||
        dup2(fds[ERR], STDERR_FILENO) < 0 || prctl(PR_SET_PDEATHSIG, SIGINT) < 0 ||
        setenv(ENV_FACTS, facts, 1) < 0)
        return -errno;
    fd_close(&fds[OUT]);
    fd_close(&fds[ERR]);
    return getppid() == parent ? 0 : -ESRCH;
}

static int wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return CTL_FAILURE;
    return child_exit_code(status);
}

static bool serve(bool has_terminal, int *ret_code)
{
    int ours[CHANNELS], theirs[CHANNELS], r;
    pid_t parent = getpid(), pid;
    char status[SERVED_HEAD_BYTES + 1];

    r = open_channels(ours, theirs);
    pid = r < 0 ? r : fork();
    if (pid < 0) {
        ctl_error("Cannot run the command: %s.", strerror(errno));
        *ret_code = CTL_FAILURE;
        return true;
    }
    for (int i = 0; i < CHANNELS; i++)
        fd_close(pid == 0 ? &ours[i] : &theirs[i]);
    if (pid == 0) {
        r = become_command(theirs, parent, has_terminal);
        if (r == 0)
            return false;
        ctl_error("Cannot run the command: %s.", strerror(-r));
        _exit(CTL_FAILURE);
    }
    (void)signal(SIGPIPE, SIG_IGN); /* valid: cannot fail */
    pass_all(pid, ours);
    for (int i = 0; i < CHANNELS; i++)
        fd_close(&ours[i]); /* if nobody reads any more, the daemon learns of it */
    *ret_code = wait_for(pid);
    status[SERVED_HEAD_BYTES] = (char)*ret_code;
    (void)write_frame(SERVED_EXIT, status + SERVED_HEAD_BYTES,
                      1); /* without a connection nobody misses it */
    return true;
}

bool served_begin(char **words, int *ret_code)
{
    const char *flags;

    (void)unsetenv(ENV_FACTS); /* valid: none of these can fail */
    (void)unsetenv(ENV_HOST);
    (void)unsetenv(ENV_PATH);
    if (!words[0] || strncmp(words[0], SERVED_WORD, strlen(SERVED_WORD)) != 0)
        return false;
    flags = words[0] + strlen(SERVED_WORD);
    *ret_code = CTL_USAGE;
    (void)printf(SERVED_MARKER SERVED_PROTOCOL " " PACKAGE_VERSION "\n");
    if (fflush(stdout) != 0 || *flags++ != *SERVED_PROTOCOL || !words[1] || !*words[1] || !words[2])
        return true; /* the other side compares the versions */
    if (setenv(ENV_HOST, words[1], 1) < 0 || setenv(ENV_PATH, words[2], 1) < 0)
        return true;
    return strchr(flags, SERVED_LIVE) ? false : serve(strchr(flags, SERVED_TERMINAL), ret_code);
}

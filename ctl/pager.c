// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * If the user quits the pager before the end of the output, this is not an error: SIGPIPE is
 * ignored while the pager runs, and the stream's error is cleared. Ctrl-C is handled by the pager
 * as long as it runs.
 *
 * The pager runs with the rights of whoever called us. With raised rights (sudo) it should not let
 * the user start other programs: LESSSECURE is set unless $SYSTEMD_PAGERSECURE says otherwise, as
 * systemctl does.
 */

#include "ctl/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"

/*
 * As systemctl's, without -S: where lines are cut, less(1) does not end by itself (-F), and a
 * command in a cut line could not be copied. Tables fit the terminal.
 */
#define LESS_OPTIONS "FRXMK"

struct pager {
    pid_t pid;
    int stdout_fd; /* the terminal */
    struct sigaction old_pipe, old_interrupt;
};

/* What the user wants to be run; "": nothing. NULL: nothing is said. */
static const char *wanted_pager(void)
{
    const char *command = getenv("SYSTEMD_PAGER");

    if (!command)
        command = getenv("PAGER");
    if (command && strcmp(command, "cat") == 0)
        return "";
    return command;
}

/* With rights that are not the caller's own the environment is not to be trusted. */
static bool is_elevated(void)
{
    const char *secure = getenv("SYSTEMD_PAGERSECURE");

    if (secure && *secure)
        return strcmp(secure, "0") != 0 && strcmp(secure, "no") != 0 &&
               strcmp(secure, "false") != 0;
    return getenv("SUDO_UID") || getuid() != geteuid();
}

_Noreturn static void run_pager(int fd)
{
    const char *command = wanted_pager(), *options = getenv("SYSTEMD_LESS");
    const char *charset = getenv("SYSTEMD_LESSCHARSET");
    bool elevated = is_elevated();

    (void)dup2(fd, STDIN_FILENO);
    (void)setenv("LESS", options ? options : LESS_OPTIONS, 1);
    if (charset)
        (void)setenv("LESSCHARSET", charset, 1);
    if (elevated)
        (void)setenv("LESSSECURE", "1", 1);
    if (command && !elevated) /* it may have arguments, or be a pipeline */
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    (void)execlp("less", "less", (char *)NULL);
    if (!elevated) /* more(1) has no secure mode */
        (void)execlp("more", "more", (char *)NULL);
    (void)execlp("cat", "cat", (char *)NULL);
    _exit(127);
}

static bool is_wanted(void)
{
    const char *command = wanted_pager(), *term = getenv("TERM");

    if (!isatty(STDOUT_FILENO) || !isatty(STDERR_FILENO))
        return false;
    if (!term || strcmp(term, "dumb") == 0)
        return false;
    return !command || *command;
}

static void ignore_signals(struct pager *pager)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)sigaction(SIGPIPE, &ignore, &pager->old_pipe);
    (void)sigaction(SIGINT, &ignore, &pager->old_interrupt);
}

void pager_open(bool wanted, struct pager **ret_pager)
{
    struct pager *pager;
    int fds[2];

    *ret_pager = NULL;
    if (!wanted || !is_wanted())
        return;
    pager = calloc(1, sizeof(*pager));
    if (!pager)
        return;
    if (pipe2(fds, O_CLOEXEC) < 0) {
        free(pager);
        return;
    }
    (void)fflush(stdout);
    pager->stdout_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    pager->pid = pager->stdout_fd < 0 ? -1 : fork();
    if (pager->pid == 0)
        run_pager(fds[0]);
    (void)close(fds[0]);
    if (pager->pid > 0) {
        ignore_signals(pager);
        (void)dup2(fds[1], STDOUT_FILENO);
    }
    (void)close(fds[1]);
    if (pager->pid < 0) { /* then without one */
        fd_close(&pager->stdout_fd);
        free(pager);
        return;
    }
    *ret_pager = pager;
}

struct pager *pager_close(struct pager *pager)
{
    if (!pager)
        return NULL;
    (void)fflush(stdout);
    clearerr(stdout);                            /* the user left it early */
    (void)dup2(pager->stdout_fd, STDOUT_FILENO); /* the pipe's last end: the pager sees its end */
    fd_close(&pager->stdout_fd);
    while (waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    (void)sigaction(SIGPIPE, &pager->old_pipe, NULL);
    (void)sigaction(SIGINT, &pager->old_interrupt, NULL);
    free(pager);
    return NULL;
}

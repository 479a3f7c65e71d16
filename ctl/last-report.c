// SPDX-License-Identifier: GPL-2.0-or-later
/* As disk.c: SIGKILL ends a child in the kernel only when the disk answers, so nobody waits. */

#include "ctl/last-report.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "ctl/str.h"

#define READ_MAX     (64u * 1024u) /* the findings come after a screen of tables */
#define TIMEOUT_MSEC 200
#define HEAD         "\nFindings:\n"
#define NOTHING      "\nNothing stands out" /* the rest of the line depends on the version */

/* The bytes of the finding in TEXT; 0: there is none. */
static size_t find(const char *text, const char **ret_finding)
{
    const char *begin = strstr(text, HEAD);

    if (begin) {
        begin += strlen(HEAD);
    } else {
        begin = strstr(text, NOTHING);
        if (!begin)
            return 0;
        begin++;
    }
    begin += strspn(begin, " ");
    *ret_finding = begin;
    return strcspn(begin, "\n");
}

_Noreturn static void ask(const char *path, int to)
{
    static char text[READ_MAX + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    const char *finding;
    struct stat st;
    size_t bytes = 0;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        _exit(1);
    while (bytes < READ_MAX && (n = read(fd, text + bytes, READ_MAX - bytes)) > 0)
        bytes += (size_t)n;
    bytes = find(text, &finding);
    if (bytes > 0)
        (void)!write(to, finding, bytes < LAST_REPORT_MAX ? bytes : LAST_REPORT_MAX - 1);
    _exit(0);
}

bool last_report_read(const char *path, char ret_finding[static LAST_REPORT_MAX])
{
    struct pollfd poll_fd = {.events = POLLIN};
    _cleanup_fd_ int from = -1, to = -1;
    int fds[2];
    ssize_t n;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return false;
    from = fds[0];
    to = fds[1];
    pid = fork();
    if (pid < 0)
        return false;
    if (pid == 0)
        ask(path, to);
    fd_close(&to);
    poll_fd.fd = from;
    if (poll(&poll_fd, 1, TIMEOUT_MSEC) <= 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, WNOHANG); /* it may be stuck */
        return false;
    }
    n = read(from, ret_finding, LAST_REPORT_MAX - 1);
    (void)waitpid(pid, NULL, 0); /* it has answered and exits */
    if (n <= 0)
        return false;
    ret_finding[n] = '\0';
    str_make_printable(ret_finding);
    return true;
}

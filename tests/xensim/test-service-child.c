// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A service for tests of the service manager: does what its arguments say, one after the other,
 * with libsystemd's own functions. Run by test-service.sh.
 *
 *   memfd NAME TEXT    stores a memfd with TEXT; twice, by two descriptors of one open file
 *   pipe NAME          stores the read end of a pipe, polled, and keeps the write end
 *   notify TEXT        sends TEXT (\n is a line's end)
 *   remove NAME        removes from the store
 *   barrier            waits until the manager has read all of it
 *   list               prints NAME=CONTENT of each descriptor that was passed; - for no content
 *   bind               opens an event channel, binds VIRQ_TBUF, stores it as evtchn-PORT
 *   evtchn             goes on with that event channel: an interrupt is there, another comes
 *   exit N, kill N, wait   ends, dies of signal N, waits for a signal
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <xen/xen.h>
#include <xenevtchn.h>

#include "common/util.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: failed (%s): %s\n", __FILE__, __LINE__, strerror(errno), \
                          #condition);                                                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define BARRIER_USEC 10000000u

static char **passed_names;
static int passed;

static void notify(const char *text)
{
    char copy[256];
    size_t n = 0;

    for (const char *p = text; *p; p++) {
        if (p[0] == '\\' && p[1] == 'n') {
            copy[n++] = '\n';
            p++;
        } else {
            copy[n++] = *p;
        }
        CHECK(n < sizeof(copy));
    }
    copy[n] = '\0';
    CHECK(sd_notify(0, copy) > 0);
}

static void store(const char *name, int fd, const char *more)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s%s", name, more);
    CHECK(sd_pid_notify_with_fds(0, 0, text, &fd, 1) > 0);
}

static void do_memfd(const char *name, const char *text)
{
    int fd = memfd_create(name, MFD_CLOEXEC), again;

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    again = dup(fd);
    CHECK(again >= 0);
    store(name, fd, "\nFDPOLL=0");
    store(name, again, "\nFDPOLL=0");
}

static void do_pipe(const char *name)
{
    int ends[2];

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    store(name, ends[0], "");
}

static void do_remove(const char *name)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
    CHECK(sd_notify(0, text) > 0);
}

static void do_list(void)
{
    for (int i = 0; i < passed; i++) {
        char text[64] = "-";
        ssize_t n = pread(SD_LISTEN_FDS_START + i, text, sizeof(text) - 1, 0);

        if (n >= 0)
            text[n] = '\0';
        (void)printf("%s=%s\n", passed_names[i], text);
    }
    (void)printf("%d passed\n", passed);
    (void)fflush(stdout);
}

static void do_bind(void)
{
    xenevtchn_handle *evtchn = xenevtchn_open(NULL, 0);
    char name[32];
    int port;

    CHECK(evtchn && fcntl(xenevtchn_fd(evtchn), F_SETFL, O_NONBLOCK) == 0);
    port = xenevtchn_bind_virq(evtchn, VIRQ_TBUF);
    CHECK(port > 0);
    (void)snprintf(name, sizeof(name), "evtchn-%d", port);
    store(name, xenevtchn_fd(evtchn), "\nFDPOLL=0");
}

static void poke(void)
{
    char command[512];

    (void)snprintf(command, sizeof(command), "%s poke virq 0", getenv("XENSIM_COMMAND"));
    CHECK(system(command) == 0);
}

static bool is_readable(xenevtchn_handle *evtchn)
{
    struct pollfd p = {.fd = xenevtchn_fd(evtchn), .events = POLLIN};

    return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

static void do_evtchn(void)
{
    xenevtchn_handle *evtchn, *other = xenevtchn_open(NULL, 0);
    int i = 0, port;

    while (i < passed && strncmp(passed_names[i], "evtchn-", 7) != 0)
        i++;
    CHECK(i < passed && other);
    port = (int)strtol(passed_names[i] + 7, NULL, 10);
    evtchn = xenevtchn_fdopen(NULL, SD_LISTEN_FDS_START + i, 0);
    CHECK(evtchn && fcntl(xenevtchn_fd(evtchn), F_GETFL) & O_NONBLOCK);
    /* The port is bound for as long as anybody holds the handle. */
    CHECK(xenevtchn_bind_virq(other, VIRQ_TBUF) == -1 && errno == EEXIST);
    CHECK(xenevtchn_bind_virq(evtchn, VIRQ_TBUF) == -1 && errno == EEXIST);
    /* What was raised while nobody ran is there, once. */
    CHECK(is_readable(evtchn) && xenevtchn_pending(evtchn) == port && !is_readable(evtchn));
    poke();
    CHECK(!is_readable(evtchn)); /* still masked */
    CHECK(xenevtchn_unmask(evtchn, (evtchn_port_t)port) == 0);
    CHECK(is_readable(evtchn) && xenevtchn_pending(evtchn) == port);
    (void)printf("port %d goes on\n", port);
    (void)fflush(stdout);
}

/* Runs one word, and returns how many arguments it took. */
static int run_word(char **argv)
{
    const char *word = argv[0], *first = argv[1] ? argv[1] : "";

    if (strcmp(word, "memfd") == 0) {
        do_memfd(first, argv[2]);
        return 2;
    }
    if (strcmp(word, "pipe") == 0)
        do_pipe(first);
    else if (strcmp(word, "notify") == 0)
        notify(first);
    else if (strcmp(word, "remove") == 0)
        do_remove(first);
    else if (strcmp(word, "exit") == 0)
        exit((int)strtol(first, NULL, 10));
    else if (strcmp(word, "kill") == 0)
        (void)kill(getpid(), (int)strtol(first, NULL, 10));
    else {
        if (strcmp(word, "barrier") == 0)
            CHECK(sd_notify_barrier(0, BARRIER_USEC) > 0);
        else if (strcmp(word, "list") == 0)
            do_list();
        else if (strcmp(word, "bind") == 0)
            do_bind();
        else if (strcmp(word, "evtchn") == 0)
            do_evtchn();
        else
            CHECK(strcmp(word, "wait") == 0 && pause() == -1);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    passed = sd_listen_fds_with_names(0, &passed_names);
    CHECK(passed >= 0);
    for (int i = 1; i < argc; i++)
        i += run_word(argv + i);
    return 0;
}

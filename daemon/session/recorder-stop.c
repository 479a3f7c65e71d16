// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The note outlives an update of xentraced, so another version of it must be recognized as one:
 * its name in the fd store is enough.
 */

#include "daemon/session/recorder-stop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/utf8.h"
#include "common/util.h"
#include "daemon/base/clock.h"
#include "daemon/base/failure.h"
#include "daemon/base/requester.h"
#include "daemon/host/fd-store.h"

#define STORE_NAME "stopped"
#define MAGIC      UINT64_C(0x31706f7473637278) /* "xrcstop1" */

/* The content of a note. Another layout has another magic number. */
struct note {
    uint64_t magic;
    uint64_t realtime_ns;
    uint32_t uid;
    int32_t pid;
    char comm[RECORDER_STOP_COMM_MAX];
};

int recorder_stop_write(const struct recorder_stop *stop)
{
    _cleanup_fd_ int fd = memfd_create("xentraced-stopped", MFD_CLOEXEC);
    struct note note = {
        .magic = MAGIC,
        .realtime_ns = stop->realtime_ns,
        .uid = stop->uid,
        .pid = stop->pid,
    };
    ssize_t written;

    if (fd < 0)
        return -errno;
    memcpy(note.comm, stop->comm, sizeof(note.comm));
    written = pwrite(fd, &note, sizeof(note), 0);
    if (written < 0)
        return -errno;
    return written == sizeof(note) ? fd_take(&fd) : -EIO;
}

int recorder_stop_read(int fd, struct recorder_stop *ret_stop)
{
    struct recorder_stop stop = {.is_set = true, .is_kept = true};
    struct note note_untrusted;
    struct stat status;

    /* A pipe would be waited for. */
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return -EBADMSG;
    if (pread(fd, &note_untrusted, sizeof(note_untrusted), 0) != sizeof(note_untrusted) ||
        note_untrusted.magic != MAGIC)
        return -EBADMSG;
    note_untrusted.comm[sizeof(note_untrusted.comm) - 1] = '\0';
    stop.realtime_ns = note_untrusted.realtime_ns;
    stop.uid = note_untrusted.uid;
    stop.pid = note_untrusted.pid > 0 ? note_untrusted.pid : 0;
    (void)utf8_copy(stop.comm, sizeof(stop.comm), note_untrusted.comm);
    *ret_stop = stop;
    return 0;
}

void recorder_stop_take(struct fd_store *inherited, struct recorder_stop *ret_stop)
{
    const char *rest;
    _cleanup_fd_ int fd = fd_store_take(inherited, STORE_NAME, &rest);

    *ret_stop = (struct recorder_stop){0};
    if (fd >= 0 && recorder_stop_read(fd, ret_stop) < 0)
        *ret_stop = (struct recorder_stop){.is_set = true, .is_kept = true, .uid = (uid_t)-1};
}

void recorder_stop_keep(struct systemd *systemd, const struct recorder_stop *stop,
                        void (*done)(void *userdata, bool is_kept), void *userdata)
{
    _cleanup_fd_ int fd = recorder_stop_write(stop);

    if (fd < 0)
        done(userdata, false);
    else
        fd_store_keep(systemd, STORE_NAME, fd, done, userdata);
}

void recorder_stop_forget(struct systemd *systemd)
{
    fd_store_forget(systemd, STORE_NAME);
}

const char *recorder_stop_describe(char text[static RECORDER_STOP_TEXT_MAX],
                                   const struct recorder_stop *stop)
{
    struct requester requester = {.uid = stop->uid, .pid = stop->pid};

    (void)snprintf(requester.comm, sizeof(requester.comm), "%s", stop->comm);
    return requester_describe(text, &requester);
}

int recorder_stop_explain(const struct recorder_stop *stop, struct failure *failure)
{
    uint64_t now_ns = clock_pair_now().realtime_ns;
    uint64_t ago_sec = now_ns > stop->realtime_ns ? (now_ns - stop->realtime_ns) / NSEC_PER_SEC : 0;
    char who[RECORDER_STOP_TEXT_MAX], ago[UNITS_TEXT_MAX], when[UNITS_TEXT_MAX + 8] = "";

    if (stop->realtime_ns && ago_sec > 0)
        (void)snprintf(when, sizeof(when), " %s ago", duration_format(ago, ago_sec * USEC_PER_SEC));
    return failure_set(failure, -ENODATA, ERROR_NO_RING,
                       "The flight recorder was stopped by %s%s. To start it: xentracectl start %s",
                       recorder_stop_describe(who, stop), when, PROTOCOL_RECORDER);
}

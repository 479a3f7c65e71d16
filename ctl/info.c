/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file is judged by its own bytes; the sidecar adds what they cannot tell: how it ended, and
 * how much should be there. A capture that was cut between two windows is sound in itself: only the
 * ledger shows what is missing.
 */

#include "ctl/info.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/sidecar-path.h"
#include "ctl/session.h"
#include "ctl/snapshot.h"
#include "ctl/storage.h"
#include "ctl/str.h"

static int open_trace(const char *path)
{
    struct stat st;
    int fd;

    if (strcmp(path, "-") == 0)
        return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        fd_close(&fd);
        errno = EISDIR;
    }
    return fd;
}

static int read_trace(struct info *info)
{
    _cleanup_fd_ int fd = open_trace(info->path);
    int r;

    r = fd < 0 ? -errno : trace_file_scan(fd, &info->summary);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        errno = -r;
        (void)str_refuse(r, &info->error, "Cannot read %s: %m.", info->path);
        return info->error ? 0 : -ENOMEM;
    }
    return 0;
}

static int read_sidecar(struct info *info)
{
    int r;

    if (strcmp(info->path, "-") == 0)
        return 0;
    info->sidecar_path = sidecar_path_of(info->path);
    if (!info->sidecar_path)
        return -ENOMEM;
    r = doc_read_file(info->sidecar_path, &info->sidecar);
    if (r == 0 && !doc_is(info->sidecar, DOC_FORMAT_SESSION) && !snapshot_is(info->sidecar)) {
        info->sidecar = doc_free(info->sidecar);
        r = -EBADMSG;
    }
    if (r == -EBADMSG) {
        info->sidecar_error = strdup("not a session document");
        return info->sidecar_error ? 0 : -ENOMEM;
    }
    if (r < 0 && r != -ENOENT) {
        errno = -r;
        info->sidecar_error = str_format("%m");
    }
    return r == -ENOMEM ? r : 0;
}

int info_new(const char *path, struct info **ret_info)
{
    _cleanup_info_ struct info *info = calloc(1, sizeof(*info));
    int r;

    if (!info)
        return -ENOMEM;
    info->path = strdup(path);
    if (!info->path)
        return -ENOMEM;
    r = read_trace(info);
    if (r < 0)
        return r;
    r = info->summary ? read_sidecar(info) : 0;
    if (r < 0)
        return r;
    *ret_info = info;
    info = NULL;
    return 0;
}

struct info *info_free(struct info *info)
{
    if (!info)
        return NULL;
    (void)trace_file_summary_free(info->summary);
    (void)doc_free(info->sidecar);
    free(info->path);
    free(info->error);
    free(info->sidecar_path);
    free(info->sidecar_error);
    free(info);
    return NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* What the sidecar of a disk ring says of this segment; NULL if that is nothing. Files move, so
 * they are known by their names. */
static struct json_object *find_segment(const struct info *info)
{
    struct json_object *files = doc_array(info->sidecar, "segments.files");

    for (size_t i = 0; i < doc_length(files); i++) {
        struct json_object *segment = doc_at(files, i);

        if (strcmp(base_name(doc_text(segment, "path", "")), base_name(info->path)) == 0)
            return segment;
    }
    return NULL;
}

struct info_told info_read_told(const struct info *info)
{
    struct json_object *sidecar = info->sidecar, *counts = doc_find(sidecar, "ledger");
    struct info_told told = {
        .is_known = sidecar,
        .bytes = doc_number(sidecar, "output.bytes"),
        .records = doc_number(counts, "delivered"),
        .lost = doc_number(counts, "lost"),
    };

    if (snapshot_is(sidecar))
        counts = doc_find(sidecar, "snapshot");
    else if (storage_is_segmented(sidecar))
        counts = find_segment(info);
    else
        return told;
    told.is_known = counts;
    told.records = doc_number(counts, "records");
    told.lost = doc_number(counts, "lost");
    if (storage_is_segmented(sidecar))
        told.bytes = doc_number(counts, "bytes");
    return told;
}

bool info_is_running(const struct info *info)
{
    if (!info->sidecar || session_has_ended(info->sidecar))
        return false;
    /* a segment may be finished while its capture goes on */
    return !*doc_text(find_segment(info), "reason", "");
}

bool info_is_short(const struct info *info)
{
    struct info_told told = info_read_told(info);

    return told.is_known && !info_is_running(info) &&
           (told.bytes > info->summary->bytes || told.records > info->summary->records);
}

bool info_is_sound(const struct info *info)
{
    return info->summary &&
           (info->summary->damage == TRACE_FILE_SOUND ||
            info->summary->damage == TRACE_FILE_EMPTY) &&
           !info_is_short(info);
}

uint64_t info_tsc_khz(const struct info *info)
{
    return doc_number(info->sidecar, "host.tsc_khz");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sidecar says what its trace is; it is read once, and again when it has changed. It is ours only
 * if the trace is: a plain file of this user, with one name.
 */

#include "daemon/output/state-files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <json-c/json.h>

#include "common/json-text.h"
#include "common/sidecar-path.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/output/disk-call.h"
#include "daemon/output/held-files.h"
#include "daemon/output/output-file.h"

/* --- Names. --- */

bool state_name_is_segment(const char *name, const char *session)
{
    size_t length = strlen(session), digits;

    if (strncmp(name, session, length) != 0 || name[length] != '.')
        return false;
    digits = strspn(name + length + 1, "0123456789");
    return digits >= 5 && name[length + 1 + digits] == '\0';
}

const char *state_name_find_session(const char *name, const struct state_names *running)
{
    for (size_t i = 0; i < running->count; i++)
        if (strcmp(name, running->names[i]) == 0 || state_name_is_segment(name, running->names[i]))
            return running->names[i];
    return NULL;
}

/* --- What a sidecar says. --- */

static struct json_object *find(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;

    (void)json_object_object_get_ex(object, key, &value); /* NULL of what is no object */
    return value;
}

static void copy_text(char *to, size_t size, struct json_object *object, const char *key)
{
    struct json_object *value = find(object, key);

    if (value && json_object_is_type(value, json_type_string))
        (void)snprintf(to, size, "%s", json_object_get_string(value));
}

static bool text_is(struct json_object *object, const char *key, const char *expected)
{
    struct json_object *value = find(object, key);

    return value && json_object_is_type(value, json_type_string) &&
           strcmp(json_object_get_string(value), expected) == 0;
}

/* "Domain 3 (web) crashed.": web. */
static void take_domain(struct state_file *file, struct json_object *snapshot)
{
    struct json_object *reason = find(snapshot, "reason");
    const char *text = reason ? json_object_get_string(reason) : NULL;
    const char *begin, *end;

    copy_text(file->domain, sizeof(file->domain), snapshot, "domain");
    if (file->domain[0] || !text || strncmp(text, "Domain ", 7) != 0)
        return;
    begin = strchr(text, '(');
    end = begin ? strrchr(begin, ')') : NULL;
    if (end)
        (void)snprintf(file->domain, sizeof(file->domain), "%.*s", (int)(end - begin - 1),
                       begin + 1);
}

/* Root's, and what nobody asked for, are the host's. */
static bool is_of_user(struct json_object *sidecar)
{
    struct json_object *requester = find(sidecar, "requested_by"), *uid = find(requester, "uid");

    return requester &&
           !(json_object_is_type(uid, json_type_int) && json_object_get_int64(uid) == 0);
}

static void describe_snapshot(struct state_file *file, struct json_object *sidecar)
{
    struct json_object *snapshot = find(sidecar, "snapshot");

    file->kind = STATE_FILE_SNAPSHOT;
    copy_text(file->cause, sizeof(file->cause), snapshot, "cause");
    copy_text(file->session, sizeof(file->session), snapshot, "session");
    copy_text(file->label, sizeof(file->label), snapshot, "label");
    take_domain(file, snapshot);
}

static bool is_set(struct json_object *object, const char *key)
{
    return json_object_get_uint64(find(object, key)) > 0;
}

static void describe_capture(struct state_file *file, struct json_object *sidecar)
{
    struct json_object *segments = find(sidecar, "segments");
    bool is_configured = json_object_get_boolean(find(find(sidecar, "options"), "configured"));

    file->kind = find(sidecar, "segment") ? STATE_FILE_SEGMENT : STATE_FILE_CAPTURE;
    file->is_of_ring =
        file->kind == STATE_FILE_SEGMENT &&
        (is_configured || is_set(segments, "keep_files") || is_set(segments, "keep_size_bytes") ||
         text_is(find(sidecar, "limits"), "on_reserve", "rotate"));
    (void)snprintf(file->cause, sizeof(file->cause), "%s", is_configured ? "configured" : "start");
    copy_text(file->session, sizeof(file->session), sidecar, "name");
}

struct json_object *state_sidecar_read(int directory_fd, const char *name)
{
    _cleanup_fd_ int fd = -1;
    struct json_object *sidecar = NULL;
    char file[NAME_MAX + 8];

    (void)snprintf(file, sizeof(file), "%s.json", name);
    fd = openat(directory_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0)
        (void)json_text_read(fd, JSON_FILE_MAX_MEMORY, &sidecar); /* else there is none */
    return sidecar;
}

/* Whatever it holds, the worst is a file of unknown kind, which stays. */
static void read_sidecar(int directory_fd, struct state_file *file)
{
    struct json_object *sidecar = state_sidecar_read(directory_fd, file->name);

    if (text_is(sidecar, "format", "xentraced-snapshot"))
        describe_snapshot(file, sidecar);
    else if (text_is(sidecar, "format", "xentraced-session"))
        describe_capture(file, sidecar);
    file->is_of_user = is_of_user(sidecar);
    json_object_put(sidecar);
}

/* --- The directory. --- */

static bool has_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Of the files that xentraced-report@.service and xentraced-page@.service write. */
static const char *const report_suffixes[] = {STATE_REPORT_SUFFIX, STATE_PAGE_SUFFIX};

static void state_report_name(char file[static NAME_MAX + 1], const char *name, const char *suffix)
{
    (void)snprintf(file, NAME_MAX + 1, "%.*s%s", (int)(NAME_MAX - strlen(suffix)), name, suffix);
}

static const struct state_file *find_known(const struct state_files *before, const char *name)
{
    for (size_t i = 0; before && i < before->count; i++)
        if (strcmp(before->files[i].name, name) == 0)
            return &before->files[i];
    return NULL;
}

/* 0: there are none. */
static uint64_t report_bytes(int directory_fd, const char *name)
{
    char report[NAME_MAX + 1];
    uint64_t bytes = 0;
    struct stat st;

    for (size_t i = 0; i < ARRAY_SIZE(report_suffixes); i++) {
        state_report_name(report, name, report_suffixes[i]);
        if (fstatat(directory_fd, report, &st, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += (uint64_t)st.st_size;
    }
    return bytes;
}

static void state_file_describe(struct state_file *file, int directory_fd,
                                const struct state_files *before)
{
    const struct state_file *known = find_known(before, file->name);
    char sidecar[NAME_MAX + 8];
    struct stat st;

    (void)snprintf(sidecar, sizeof(sidecar), "%s.json", file->name);
    if (fstatat(directory_fd, sidecar, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    file->bytes += (uint64_t)st.st_size + report_bytes(directory_fd, file->name);
    file->sidecar_inode = st.st_ino;
    file->sidecar_time = st.st_mtim;
    if (known && known->sidecar_inode == st.st_ino && has_time(&known->sidecar_time, &st.st_mtim)) {
        uint64_t bytes = file->bytes, time_ns = file->time_ns;
        bool is_packed = file->is_packed, has_spare = file->has_spare;

        *file = *known;
        file->is_packed = is_packed;
        file->has_spare = has_spare;
        file->bytes = bytes;
        file->time_ns = time_ns;
        return;
    }
    read_sidecar(directory_fd, file);
}

/* -ENOENT: it is none of the files that this is about, or has just gone. */
static int state_file_read(struct state_file *file, int directory_fd, const char *entry,
                           const struct state_files *before, const struct state_names *running)
{
    struct stat st;

    if (entry[0] == '.' || !trace_path_is_trace(entry) ||
        fstatat(directory_fd, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -ENOENT;
    *file = (struct state_file){
        .bytes = output_file_has_spare(&st) ? (uint64_t)st.st_blocks * 512 : (uint64_t)st.st_size,
        .has_spare = output_file_has_spare(&st),
        .time_ns = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec,
    };
    (void)snprintf(file->name, sizeof(file->name), "%.*s", (int)trace_path_stem(entry), entry);
    file->is_packed = strlen(entry) > strlen(file->name) + strlen(TRACE_SUFFIX);
    if (S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1)
        state_file_describe(file, directory_fd, before);
    file->is_of_running = state_name_find_session(file->name, running);
    /* A segment has its sidecar when it is finished. */
    file->is_in_use = file->is_of_running && file->kind != STATE_FILE_SEGMENT;
    file->is_open = false;
    return 0;
}

static int compare_time(const void *a, const void *b)
{
    const struct state_file *left = a, *right = b;

    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    return strcmp(left->name, right->name);
}

static int state_files_add(struct state_files *files, size_t *room)
{
    struct state_file *longer;

    if (files->count < *room)
        return 0;
    *room = *room ? 2 * *room : 32;
    longer = reallocarray(files->files, *room, sizeof(*longer));
    if (!longer)
        return -ENOMEM;
    files->files = longer;
    return 0;
}

static int state_files_list(struct state_files *files, DIR *directory,
                            const struct state_files *before, const struct state_names *running)
{
    const struct dirent *entry;
    size_t room = 0;

    while ((entry = readdir(directory))) {
        if (state_files_add(files, &room) < 0)
            return -ENOMEM;
        if (state_file_read(&files->files[files->count], dirfd(directory), entry->d_name, before,
                            running) == 0)
            files->count++;
    }
    if (files->count > 0)
        qsort(files->files, files->count, sizeof(files->files[0]), compare_time);
    return 0;
}

int state_files_read(int directory_fd, const struct state_files *before,
                     const struct state_names *running, struct state_files **ret_files)
{
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    struct state_files *files;
    struct statvfs st;
    int r;

    if (!directory) {
        r = -errno;
        fd_close(&fd);
        return r;
    }
    files = calloc(1, sizeof(*files));
    r = files ? state_files_list(files, directory, before, running) : -ENOMEM;
    if (r >= 0 && fstatvfs(dirfd(directory), &st) == 0) {
        files->total_bytes = (uint64_t)st.f_blocks * st.f_frsize;
        files->free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
    }
    (void)closedir(directory);
    if (r < 0) {
        state_files_free(files);
        return r;
    }
    *ret_files = files;
    return 0;
}

struct state_files *state_files_free(struct state_files *files)
{
    if (files)
        free(files->files);
    free(files);
    return NULL;
}

/* --- Who uses them. --- */

void state_file_name(char file[static NAME_MAX + 1], const char *name, bool is_packed)
{
    const char *suffix = is_packed ? TRACE_SUFFIX TRACE_SUFFIX_PACKED : TRACE_SUFFIX;

    (void)snprintf(file, NAME_MAX + 1, "%.*s%s", (int)(NAME_MAX - strlen(suffix)), name, suffix);
}

static bool is_open(int directory_fd, const struct state_file *state_file)
{
    char file[NAME_MAX + 1];
    _cleanup_fd_ int fd = -1;

    state_file_name(file, state_file->name, state_file->is_packed);
    fd = openat(directory_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd < 0 ? errno != ENOENT : held_file_is_shared(fd);
}

void state_files_look_for_open(int directory_fd, struct state_files *files, uint64_t now_usec)
{
    for (size_t i = 0; i < files->count; i++) {
        struct state_file *file = &files->files[i];

        file->is_open = file->kind != STATE_FILE_UNKNOWN && is_open(directory_fd, file);
        if (!file->is_open)
            file->open_since_usec = 0;
        else if (!file->open_since_usec)
            file->open_since_usec = now_usec;
    }
}

void state_sidecar_remove(int directory_fd, const char *name)
{
    char file[NAME_MAX + 1];

    (void)snprintf(file, sizeof(file), "%.*s.json", (int)(NAME_MAX - strlen(TRACE_SUFFIX)), name);
    (void)DISK_CALL(unlinkat(directory_fd, file, 0)); /* there may be none */
}

void state_files_forget_open(struct state_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        files->files[i].open_since_usec = 0;
}

/* Opened for writing, so that it can be cut. Looked at when no other process can open it any more.
 */
static int remove_trace(int directory_fd, const char *file, struct held_files *held)
{
    _cleanup_fd_ int fd = openat(directory_fd, file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int r;

    r = DISK_CALL(unlinkat(directory_fd, file, 0));
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (fd >= 0 && held_file_is_shared(fd))
        held_files_add(held, fd_take(&fd));
    return 0;
}

/* Whether it is compressed is in no plan: a name is one trace, with one sidecar. */
int state_file_remove(int directory_fd, const char *name, struct held_files *held)
{
    char file[NAME_MAX + 1];
    int r;

    for (int is_packed = 1; is_packed >= 0; is_packed--) {
        state_file_name(file, name, is_packed);
        r = remove_trace(directory_fd, file, held);
        if (r < 0)
            return r;
    }
    state_sidecar_remove(directory_fd, name);
    for (size_t i = 0; i < ARRAY_SIZE(report_suffixes); i++) {
        state_report_name(file, name, report_suffixes[i]);
        (void)DISK_CALL(unlinkat(directory_fd, file, 0)); /* there may be none */
    }
    return 0;
}

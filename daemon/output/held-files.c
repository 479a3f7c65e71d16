// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A descriptor of ours keeps the file, too: it is closed as soon as it is the only one. Oldest
 * first.
 */

#include "daemon/output/held-files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

struct held_file {
    int fd;
    uint64_t since_usec; /* of the first look; 0: there was none */
};

struct held_files {
    unsigned int nr_refs;
    pthread_mutex_t mutex;
    struct held_file files[HELD_FILES_MAX];
    size_t count;
};

int held_files_new(struct held_files **ret_held)
{
    struct held_files *held = calloc(1, sizeof(*held));

    if (!held)
        return -ENOMEM;
    held->nr_refs = 1;
    (void)pthread_mutex_init(&held->mutex, NULL); /* cannot fail on Linux */
    *ret_held = held;
    return 0;
}

struct held_files *held_files_ref(struct held_files *held)
{
    if (held)
        held->nr_refs++;
    return held;
}

struct held_files *held_files_unref(struct held_files *held)
{
    if (!held || --held->nr_refs > 0)
        return NULL;
    for (size_t i = 0; i < held->count; i++)
        fd_close(&held->files[i].fd);
    (void)pthread_mutex_destroy(&held->mutex);
    free(held);
    return NULL;
}

bool held_file_is_shared(int fd)
{
    /*
     * The lease is released immediately: another process that opens the file in between waits only
     * for that.
     */
    if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK;
    (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

static uint64_t bytes_of(const struct held_file *file)
{
    struct stat st;

    return fstat(file->fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

static void held_files_forget(struct held_files *held, size_t i)
{
    fd_close(&held->files[i].fd);
    held->count--;
    memmove(&held->files[i], &held->files[i + 1], (held->count - i) * sizeof(held->files[0]));
}

static void sum_add(struct held_sum *sum, uint64_t bytes)
{
    sum->files++;
    sum->bytes += bytes;
}

void held_files_add(struct held_files *held, int fd)
{
    if (!held) {
        fd_close(&fd);
        return;
    }
    (void)pthread_mutex_lock(&held->mutex);
    if (held->count == HELD_FILES_MAX) {
        if (ftruncate(held->files[0].fd, 0) < 0)
            errno = 0; /* it stays as long as its reader: there is no room to count it */
        held_files_forget(held, 0);
    }
    held->files[held->count++] = (struct held_file){.fd = fd};
    (void)pthread_mutex_unlock(&held->mutex);
}

void held_files_look(struct held_files *held, uint64_t now_usec, struct held_sum *ret_held,
                     struct held_sum *ret_cut)
{
    struct held_sum stay = {0}, cut = {0};

    (void)pthread_mutex_lock(&held->mutex);
    for (size_t i = 0; i < held->count;) {
        struct held_file *file = &held->files[i];
        uint64_t bytes = bytes_of(file);

        if (!file->since_usec)
            file->since_usec = now_usec;
        if (!held_file_is_shared(file->fd)) {
            held_files_forget(held, i);
        } else if (now_usec - file->since_usec >= HELD_FILES_USEC && ftruncate(file->fd, 0) == 0) {
            sum_add(&cut, bytes);
            held_files_forget(held, i);
        } else {
            sum_add(&stay, bytes);
            i++;
        }
    }
    (void)pthread_mutex_unlock(&held->mutex);
    *ret_held = stay;
    *ret_cut = cut;
}

// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/output/live-files.h"

#include <errno.h>
#include <pthread.h>

static pthread_mutex_t directory_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct live_file *live_files;

void live_files_lock(void)
{
    (void)pthread_mutex_lock(&directory_mutex);
}

void live_files_unlock(void)
{
    (void)pthread_mutex_unlock(&directory_mutex);
}

int live_file_enter(struct live_file *file, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    file->device = st.st_dev;
    file->inode = st.st_ino;
    file->is_entered = true;
    (void)pthread_mutex_lock(&list_mutex);
    file->next = live_files;
    live_files = file;
    (void)pthread_mutex_unlock(&list_mutex);
    return 0;
}

void live_file_leave(struct live_file *file)
{
    struct live_file **link = &live_files;

    if (!file->is_entered)
        return;
    (void)pthread_mutex_lock(&list_mutex);
    while (*link != file)
        link = &(*link)->next;
    *link = file->next;
    (void)pthread_mutex_unlock(&list_mutex);
    file->is_entered = false;
}

bool live_files_have(const struct stat *st)
{
    const struct live_file *file;

    (void)pthread_mutex_lock(&list_mutex);
    for (file = live_files; file; file = file->next)
        if (file->device == st->st_dev && file->inode == st->st_ino)
            break;
    (void)pthread_mutex_unlock(&list_mutex);
    return file;
}

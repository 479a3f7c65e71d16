/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The files in the state directory that this process is writing, by device and inode. All other
 * unfinished files were left by an earlier daemon. (Times cannot show that: on some file systems
 * they are whole seconds.)
 *
 * A file is created and entered with the lock held, and looked up and removed with the lock held.
 * So none is removed in between. The lock is held for a few calls on that directory, which may
 * wait: it belongs to workers. Entries have a lock of their own, which waits for nothing.
 */

#include <stdbool.h>
#include <sys/stat.h>

/* Zeroed before its first use. The writer's. */
struct live_file {
    dev_t device;
    ino_t inode;
    bool is_entered;
    struct live_file *next;
};

void live_files_lock(void);
void live_files_unlock(void);

/* FD was opened with the lock held. Returns 0 or the error of fstat(2). */
int live_file_enter(struct live_file *file, int fd);
/* FILE will not be written any more. Nothing if it was not entered. */
void live_file_leave(struct live_file *file);

/* Whether it is one of them. With the lock held, to act on the answer. */
bool live_files_have(const struct stat *st);

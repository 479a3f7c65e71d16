// SPDX-License-Identifier: GPL-2.0-or-later
/* A copy of a stand-in has the same inode, whatever its number is. Files in memory do not wait. */

#include "daemon/control/passed.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/util.h"

int stand_ins_init(struct stand_ins *stand_ins)
{
    for (unsigned int i = 0; i < PASSED_MAX; i++)
        stand_ins->fds[i] = -1;
    for (unsigned int i = 0; i < PASSED_MAX; i++) {
        stand_ins->fds[i] = memfd_create("stand-in", MFD_CLOEXEC);
        if (stand_ins->fds[i] < 0)
            return -errno;
    }
    return 0;
}

void stand_ins_done(struct stand_ins *stand_ins)
{
    for (unsigned int i = 0; i < PASSED_MAX; i++)
        fd_close(&stand_ins->fds[i]);
}

static bool is_same_file(int a, int b)
{
    struct stat a_stat, b_stat;

    return fstat(a, &a_stat) == 0 && fstat(b, &b_stat) == 0 && a_stat.st_dev == b_stat.st_dev &&
           a_stat.st_ino == b_stat.st_ino;
}

int stand_ins_find(const struct stand_ins *stand_ins, const struct passed *passed, int fd)
{
    for (unsigned int i = 0; i < passed->count; i++)
        if (is_same_file(fd, stand_ins->fds[i]))
            return passed->fds[i];
    return -1;
}

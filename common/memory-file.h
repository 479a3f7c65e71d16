/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Files whose content is memory: their pages are charged to the process that writes them, and stay
 * charged for as long as the file exists. Any thread; the file system may block.
 */

#include <stdbool.h>

/*
 * Whether the regular file FD is on tmpfs (memfd_create(2) included), ramfs or hugetlbfs, or on a
 * stacked file system (overlayfs, ecryptfs) that does not show that its files are on a disk.
 */
bool memory_file_is(int fd);

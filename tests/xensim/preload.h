/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the preload-*.c files share. Their functions have the names, arguments and errno habits of
 * the Xen libraries'; unversioned definitions in a preloaded object satisfy versioned references.
 */

#include "sim.h"

#define EXPORT __attribute__((visibility("default")))

/* This process's Xen, attached on first use and kept; NULL with errno set if there is none. */
struct sim *preload_sim(void);

/* The same, where the calling library would open a device: NULL with errno as open() would. */
struct sim *preload_open(void);

/* RESULT as the libraries return it: -1 with errno if it is a negative errno. */
int preload_result(int result);

/* Maps COUNT pages of MFNs at ADDRESS, or anywhere. NULL with errno; ERR, if not NULL: per page. */
void *preload_map(void *address, int prot, size_t count, const unsigned long *mfns, int *err);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads a ring of RING_VERSION 2, so that its records can be carried over into a ring of the
 * current layout (ring-carry.h). Main thread.
 */

struct ring;

/*
 * A view of the ring in MEMFD, whose daemon has ended; nothing in MEMFD is changed. It is for
 * ring_carry(), the functions of ring.h that read, and ring_free(); ring_memfd() is -1. Checked as
 * ring_adopt() checks. Returns 0, or -EBADMSG, -EPROTO (not version 2), or what mmap(2) and
 * calloc(3) say, with a sentence part in *RET_PROBLEM, a constant.
 */
int ring_read_v2(int memfd, unsigned int nr_cpus, struct ring **ret_ring, const char **ret_problem);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A capture to break, for the tests of what must find it broken.
 */

#include "test-drain.h"

#define CAPTURE_WINDOWS 6 /* two CPUs, three rounds */

/* COUNT numbered records on CPU. */
void capture_insert(struct sim *sim, uint32_t cpu, int count);

/* A good one; in the third round CPU 0 tells of losses. */
struct test_file capture_new(void);

struct test_file capture_copy(const struct test_file *file, size_t from, size_t to);

void capture_save(const struct test_file *file, const char *path);

/* Offset of window NUMBER; that of the file's end for CAPTURE_WINDOWS. */
size_t capture_window(const struct test_file *file, int number);

/* Offset of record NUMBER of window WINDOW. */
size_t capture_record(const struct test_file *file, int window, int number);

/* Offset of the lost_records record. */
size_t capture_lost(const struct test_file *file);

uint32_t capture_word(const struct test_file *file, size_t at);
void capture_set_word(struct test_file *file, size_t at, uint32_t word);

void capture_cut(struct test_file *file, size_t at, size_t bytes);
void capture_paste(struct test_file *file, size_t at, const void *p, size_t bytes);

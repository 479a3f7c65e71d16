/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A trace whose records are read in their order, and then again by their numbers, in any order. It
 * knows libxentrace's public interface only.
 *
 * One thread at a time. Pointers are valid until the next call for the reader.
 */

#include <stddef.h>
#include <stdint.h>

#include "trace/xentrace.h"

struct reader;

/* Numbers of events that differ in the widths of addresses have one name, and are one event. */
struct reader_event {
    char *name; /* as `xentracectl dump` has it; "other" if there are too many */
    size_t nr_fields;
    char **fields; /* the names of all fields that its records have had */
};

/* A record as it is shown. */
struct reader_line {
    char *info; /* its fields, as `xentracectl dump` has them */
    uint32_t cpu;
    size_t event;
};

/* 0, or of xentrace_open(). */
int reader_new(const char *path, struct reader **ret_reader);
/* NULL is fine. Returns NULL. */
struct reader *reader_free(struct reader *reader);

/* For times, facts, and the fields of the record that was read last. */
struct xentrace *reader_trace(struct reader *reader);

/* Continues with record 0. What follows up to the end is what numbers mean from then on. */
int reader_begin(struct reader *reader);
/* The next record, and its event. 1; 0 at the end; or a negative errno. */
int reader_next(struct reader *reader, const struct xentrace_record **ret_record,
                size_t *ret_event);

/* Of the records that were read so far. */
size_t reader_nr_events(const struct reader *reader);
const struct reader_event *reader_event(const struct reader *reader, size_t event);

/*
 * Record NUMBER, which was on that CPU, and was that event, when it was read in order. NULL: it
 * cannot be read.
 */
const struct reader_line *reader_find(struct reader *reader, int64_t number, uint32_t cpu,
                                      size_t event);
/* The same record is the one that was read last, for reader_trace(). 0, or -ENODATA. */
int reader_stand_at(struct reader *reader, int64_t number, uint32_t cpu, size_t event);

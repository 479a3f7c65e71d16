/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The fake daemon's documents about a flight recorder, rings, segments, snapshots and triggers. The
 * documents are owned by the caller.
 */

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a capture was started with. */
struct fake_storage {
    uint64_t memory_bytes, max_age_usec;
    uint64_t segment_size_bytes, segment_time_usec, keep_size_bytes;
    uint32_t keep_files;
    char on_reserve[16];
    int persist;
};

/* What a snapshot was asked with, and what came of it. */
struct fake_snapshot {
    char name[64], session[64], label[64], path[4096];
    uint64_t last_usec, max_size_bytes;
    uint64_t since_ns, until_ns, until_ago_usec;
    uint64_t held_usec; /* less than last_usec: it is shorter */
    uint64_t records, lost, bytes;
    bool ok;
};

/* Adds kind, ring and segments to a session document, as the protocol says. */
void fake_add_storage(struct json_object *session, const struct fake_storage *storage,
                      uint64_t rounds, uint64_t now_ns);

/* The flight recorder, with more than 32 bits of everything. */
struct json_object *fake_recorder(uint64_t now_ns, bool ended);

/* What status and StopRecorder say of it: it was stopped 5 minutes ago. */
struct json_object *fake_recorder_object(uint64_t now_ns, bool ended);

struct json_object *fake_snapshot(const struct fake_snapshot *snapshot, uint64_t now_ns);

/* COUNT snapshots, as status has them. */
struct json_object *fake_snapshots(size_t count, uint64_t now_ns);

/* A trigger of each kind; "manual" fires, "tired" is suppressed. */
/* What a reload has changed: a key at once, one after a restart, a trigger that is gone. */
struct json_object *fake_reload(void);
struct json_object *fake_triggers(uint64_t now_ns);

/* One of them after it was fired; NULL if there is none. */
struct json_object *fake_fired(const char *name, uint64_t now_ns);

/* The segment that was just closed. */
struct json_object *fake_segment(uint64_t number, const char *reason, uint64_t now_ns);

/* When the disk stopped answering. */
uint64_t fake_stuck_since(uint64_t now_ns);

/* One snapshot that waits for that disk. */
struct json_object *fake_stuck_snapshots(uint64_t now_ns);

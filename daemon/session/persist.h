/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state with which the next daemon continues a segmented capture in its next segment: options,
 * the position in its files, and its ledger up to the last finished segment. It is a file in the
 * runtime directory, which is empty after a boot, next to the capture's account
 * (collector/account.h). That directory is in memory: reading it does not wait. It is written by
 * the session's worker, after the segment that it is about, and removed when the capture ends, also
 * by `systemctl stop`.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/ledger.h"
#include "collector/sink.h"
#include "daemon/base/clock.h"
#include "daemon/base/failure.h"
#include "daemon/base/name.h"

struct json_object;
struct session;
struct session_options;

/* As in struct session_options; the strings are its own. */
struct persist_state {
    char name[SESSION_NAME_MAX + 1];
    bool is_configured;
    char *events, *cpus, *on_reserve;
    uint64_t time_usec, reserve_bytes, poll_usec;
    uint64_t segment_size_bytes, segment_time_usec, keep_size_bytes;
    uint32_t keep_files;
    bool start_disabled;
    bool is_packed;

    struct clock_pair started;
    uint32_t continued;       /* times it was continued so far */
    uint32_t first_number;    /* of its first segment: those before are of an older capture */
    uint32_t finished_number; /* of the last segment that the ledger includes; 0: none */
    uint32_t written, deleted;
    unsigned int nr_cpus;
    struct ledger *past; /* [nr_cpus] */
    uint64_t *pending;   /* [nr_cpus]: records of these that the next segment reports as missing */
    struct sink_totals totals;
};

struct json_object *persist_to_json(const struct persist_state *state);
/* -EBADMSG: it is none of this version; -ENOMEM. */
int persist_from_json(struct json_object *json, struct persist_state **ret_state);
struct persist_state *persist_free(struct persist_state *state);

/* The options with which it continues; they point into STATE. */
struct session_options persist_options(const struct persist_state *state);

/*
 * Calls FN with the state of each capture that is to continue. What cannot be read is removed, and
 * reported in the log; so are files without a state, which a killed daemon may have left, silently.
 */
void persist_read_all(int runtime_dir_fd,
                      void (*fn)(void *userdata, const struct persist_state *state),
                      void *userdata);
/* The state of NAME, or NULL. */
struct persist_state *persist_read(int runtime_dir_fd, const char *name);
/* Removes what there is of NAME: it does not continue. */
void persist_remove(int runtime_dir_fd, const char *name);

/* SESSION, which is being made, is persistent: maps its account. */
int persist_map_account(struct session *session, bool is_new, struct failure *failure);

/* Has the state of SESSION written by its worker, unless it is ending for good. */
void persist_save(struct session *session);
/*
 * The same at once, into memory: the first state of SESSION, which is about to run. Fails with
 * ERROR_OUTPUT and the errors of open(2) and write(2), or -ENOMEM.
 */
int persist_save_now(const struct session *session, struct failure *failure);
/* It has ended, but for its sidecars: the same if the next daemon continues it, else it is removed.
 */
void persist_end(struct session *session);

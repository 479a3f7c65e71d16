/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The calls that have options, read from their messages. Main thread.
 */

#include "daemon/config/config.h"
#include "daemon/base/failure.h"
#include "daemon/session/session.h"
#include "daemon/session/snapshot.h"

struct json_object;
struct passed;

/* Strings are the message's. Descriptors are borrowed. */
struct start_request {
    const char *name; /* "": to be made up */
    struct session_options options;
    bool attached;    /* the session ends when the client goes */
    bool has_options; /* any, whatever their values */
};

/* Vacuum's: what is not given is not limited; without any limit: as the configuration says. */
struct clean_request {
    struct disk_limits limits;
    bool dry_run;
};

/* Likewise. */
struct snapshot_request {
    const char *session; /* "": manager_find_ring() decides */
    struct snapshot_options options;
    uint64_t interval_usec; /* of a live view */
};

/* Likewise. */
struct status_request {
    const char *name; /* "": everything */
    uint64_t interval_usec;
};

/* Likewise. */
struct remove_request {
    struct json_object *names; /* an array of strings */
};

/*
 * What is not said, or null, is as CONFIG says. PARAMETERS may be NULL: there are none. Any error
 * sets FAILURE; of a parameter that is unknown or has another type, with its name (parameter).
 */
int request_read_start(struct json_object *parameters, const struct passed *passed,
                       const struct config *config, struct start_request *ret_request,
                       struct failure *failure);
int request_read_clean(struct json_object *parameters, const struct config *config,
                       struct clean_request *ret_request, struct failure *failure);
int request_read_snapshot(struct json_object *parameters, const struct passed *passed,
                          const struct config *config, struct snapshot_request *ret_request,
                          struct failure *failure);
int request_read_status(struct json_object *parameters, struct status_request *ret_request,
                        struct failure *failure);
int request_read_remove(struct json_object *parameters, struct remove_request *ret_request,
                        struct failure *failure);
/* Of calls that have a name alone, or one string of another KEY. "": none is given. */
int request_read_text(struct json_object *parameters, const char *key, bool is_required,
                      const char **ret_text, struct failure *failure);
int request_read_nothing(struct json_object *parameters, struct failure *failure);

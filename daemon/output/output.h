/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The main thread's side of an output file: figures as of the last request, and requests to its
 * worker, which does everything that may wait for the disk (output-file.h). A session or snapshot
 * has one worker, and all its outputs share it: their requests are carried out in order.
 *
 * Main thread; nothing here waits. Each request calls DONE (NULL: nobody) from the event loop with
 * 0 or a negative errno, after the figures were brought up to date; not any more after
 * output_free(). Of each kind of request one may be under way for an output.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/failure.h"
#include "daemon/base/worker.h"
#include "daemon/output/output-file.h"

struct sidecar;

#define OUTPUT_NAME_MAX 96u /* of a file, without its ending */

/* FAILURE explains the error, if the request has words for it; else its name is NULL. */
typedef void (*output_done_fn)(void *userdata, int error, const struct failure *failure);

/* What is to be opened. Copied; strings may go afterwards, but DIRECTORY outlives the output. */
struct output_request {
    /* A client's: output_new() duplicates FD at once; PATH is the client's name for it. */
    bool is_adopted;
    bool by_root; /* the client is root's */
    int fd;
    const char *path;
    const struct sidecar *sidecar; /* checked, too; its worker is the same. NULL: none */
    /* Else one of our own in the state directory. */
    int directory_fd;
    const char *directory;
    const char *name;
    enum output_naming naming;
    bool is_packed;          /* compressed */
    bool is_buffered;        /* written without O_DIRECT */
    bool may_rename;         /* if NAME is in use, NAME-002 and so on will do */
    unsigned int number_max; /* ... up to that; 0: NAME_NUMBER_MAX */
    output_check_fn check;   /* NULL: none */

    uint64_t reserve_bytes; /* or DISK_RESERVE_AUTO, as keep_free says */
    struct disk_limit keep_free;
    uint64_t max_bytes;       /* UINT64_MAX: none */
    uint64_t aim_bytes;       /* see struct output_file */
    uint64_t first_aim_bytes; /* the same for the first grant; 0: as aim_bytes */
    uint64_t require_bytes;   /* that have to be granted, or it fails; 0: any */
    bool waits;
};

enum output_operation {
    OUTPUT_OPEN,
    OUTPUT_EXTEND,
    OUTPUT_PUBLISH,
    OUTPUT_RUN,
    OUTPUT_FINISH,
    OUTPUT_DROP_CACHE,
    OUTPUT_REMOVE,
    OUTPUT_CLOSE,
    OUTPUT_OPERATIONS,
};

/* See struct output_file for those that have the same names. */
struct output_figures {
    char *path; /* for people; NULL until it is open, and if it could not be opened */
    int fd;     /* -1 likewise */
    bool is_stream;
    bool is_direct;
    bool is_final;
    bool is_published;
    bool ran_out;
    uint64_t granted_bytes;
    uint64_t reserve_bytes;
    uint64_t headroom_bytes;  /* of the disk, beyond what is granted and the reserve */
    uint64_t next_step_bytes; /* how much the next request for space would like to grant */
};

typedef int (*output_run_fn)(struct output_file *file, void *argument, struct failure *failure);

struct output_job {
    struct job job;
    struct output *output;
    output_done_fn done;

    /* What the request asks for. */
    uint64_t bytes;
    uint64_t min_headroom_bytes;
    bool waits;
    char *name; /* owned */
    output_run_fn run;
    void *argument;

    /* The outcome. */
    int error;
    struct failure failure;
    struct output_figures figures;
};

/* Read only, up to `figures`. */
struct output {
    struct worker *worker;          /* lent */
    char name[OUTPUT_NAME_MAX + 1]; /* of one of our own, as it was created */
    uint64_t reserve_bytes;
    uint64_t max_bytes;
    struct output_figures figures; /* when the last request was done */

    /* output.c's own. */
    struct output_job jobs[OUTPUT_OPERATIONS];
    uint32_t under_way; /* a bit for each operation */
    bool is_closed;
    bool is_released;
    void *userdata;
    struct output_file file; /* the worker's while a job is under way, as all that follows */
    uint64_t written_bytes;  /* how far the writer had come at the last request for space */
    struct output_request request;
    char *request_name;
    char *request_path;
    int refused_fd;     /* a client's; -1: none */
    int sidecar_fd;     /* lent */
    char *sidecar_path; /* NULL: it is not a client's, or there is none */
};

/*
 * Begins to open what REQUEST says; USERDATA goes to every DONE. Returns 0, or -ENOMEM or the error
 * of fcntl(2), and nothing is under way. After a DONE with an error only output_free() is left.
 */
int output_new(struct worker *worker, const struct output_request *request, output_done_fn done,
               void *userdata, struct output **ret_output);

/*
 * No more requests come: what was requested is carried out, and then the file is closed. The
 * figures stay, and the worker may be freed.
 */
void output_close(struct output *output);

/*
 * No DONE is called any more. What was requested is carried out, and then the file is closed. Takes
 * NULL; returns NULL.
 */
struct output *output_free(struct output *output);

/* The DONE of the request of that kind that is under way, if there is one, is not called. */
void output_forget(struct output *output, enum output_operation operation);

/* Whether a request of that kind is under way. */
bool output_is_busy(const struct output *output, enum output_operation operation);

/*
 * Asks for more space; WRITTEN_BYTES is how far the writer has come, WAITS as in struct
 * output_file. With less than MIN_HEADROOM_BYTES to be had nothing changes. The figures show the
 * outcome: granted_bytes, is_final, ran_out.
 */
void output_extend(struct output *output, uint64_t written_bytes, bool waits,
                   uint64_t min_headroom_bytes, output_done_fn done);

/*
 * Gives a hidden file its place as NAME.xentrace; -EEXIST: there is one. Also has the directory on
 * the disk. -ENOMEM comes through DONE, too.
 */
void output_publish(struct output *output, const char *name, output_done_fn done);

/*
 * Has RUN called with the file on the worker: for writing it there. What ARGUMENT points to is the
 * worker's until DONE.
 */
void output_run(struct output *output, output_run_fn run, void *argument, output_done_fn done);

/* Cuts the file to BYTES, and has it and its directory entry on the disk. */
void output_finish(struct output *output, uint64_t bytes, output_done_fn done);

/* Pages that buffered writes have left up to BYTES leave the page cache; nothing while any other
 * request is under way: it is done every few seconds. */
void output_drop_cache(struct output *output, uint64_t bytes);

/* Removes the file of our own, under the name that it has now. */
void output_remove(struct output *output, output_done_fn done);

/* PATH is what it is called for people from now on; without memory for that the old one stays. */
void output_set_path(struct output *output, const char *path);

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The default of keep-free= is what was free when the daemon started, if that was less: as with
 * journald, a disk that others have filled is no reason to remove each snapshot as soon as it is
 * written, but what is written afterwards makes room for itself.
 *
 * The files of the last look are kept, so that sidecars are read once. A result points to them, so
 * one request is carried out at a time, until its `done` is over.
 */

#include "daemon/output/vacuum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/protocol.h"
#include "common/sidecar-path.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/base/worker.h"
#include "daemon/output/output-file.h"

#define LOOK_USEC        (60 * USEC_PER_SEC)
#define POKE_USEC        (500 * USEC_PER_MSEC) /* several files are often finished together */
#define SLACK_USEC       (250 * USEC_PER_MSEC)
#define EVICT_MAX        VACUUM_RUNNING_MAX
#define CLOCK_STEP_USEC  ((int64_t)(60 * USEC_PER_SEC)) /* more than NTP corrects in a minute */
#define CLOCK_TRUST_USEC (24 * 3600 * USEC_PER_SEC)

/*
 * State that is kept between jobs. It belongs to the job, including its `done`; requests that
 * arrive meanwhile wait.
 */
struct vacuum_memory {
    struct state_files *files;
    uint64_t first_free_bytes; /* when the daemon started */
    bool has_looked;
    struct vacuum_use base; /* when there was enough free space; or when the daemon started */
    bool has_base;
    uint64_t ahead_usec;      /* the wall clock, of CLOCK_BOOTTIME, at the last look */
    uint64_t clock_good_usec; /* since then it has run with that; 0: not looked yet */
};

struct vacuum {
    struct vacuum_context context;
    struct worker *worker;
    struct sd_event_source *source;
    struct vacuum_memory *memory;
    uint64_t last_ticket;
    bool is_looking; /* the timer's own job is under way */
    bool is_trying;  /* likewise, whether the disk can be written to */
    bool is_poked;   /* it looks soon */
    bool is_short_logged;
    struct vacuum_disk disk;   /* as of the last look */
    uint64_t lines_since_usec; /* of the log, about removed files; 0: none yet */
    unsigned int lines;
    bool is_freed;
    struct vacuum_job *current; /* on the worker, or in its `done`; NULL: none */
    struct vacuum_job *waiting; /* in order */
    size_t nr_waiting;
};

struct eviction {
    char session[SESSION_NAME_MAX + 1];
    unsigned int count;
};

struct vacuum_job {
    struct job job;
    struct vacuum_job *next;
    struct vacuum *vacuum;
    struct vacuum_memory *memory;
    struct vacuum_request request;
    char **names;
    int directory_fd;
    const char *directory;
    struct held_files *held;
    bool is_configured; /* keep_free is as configured, not a client's */
    char running_names[VACUUM_RUNNING_MAX][SESSION_NAME_MAX + 1];
    struct state_names running;

    /* The outcome. */
    struct vacuum_file *plan;
    struct vacuum_limits limits;
    struct vacuum_outcome outcome;
    struct held_sum removed_held; /* of those that still were open, now or earlier */
    struct held_sum cut;
    struct failure failure;
    struct eviction evictions[EVICT_MAX];
    size_t nr_evictions;

    void (*done)(void *userdata, uint64_t ticket, const struct vacuum_result *result);
    void *userdata;
    uint64_t ticket;
};

/* --- On the worker. --- */

static uint64_t realtime_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static uint64_t boottime_usec(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

/* Trims what the sweep could not, such as a file that was open. Returns whether it trimmed any. */
static bool job_trim(const struct vacuum_job *job)
{
    const struct state_files *files = job->memory->files;
    char name[NAME_MAX + 1];
    bool has_trimmed = false;

    for (size_t i = 0; i < files->count; i++) {
        const struct state_file *file = &files->files[i];

        if (!file->has_spare)
            continue;
        state_file_name(name, file->name, file->is_packed);
        if (output_file_trim(job->directory_fd, name))
            has_trimmed = true;
    }
    return has_trimmed;
}

static int job_read_files(struct vacuum_job *job)
{
    struct vacuum_memory *memory = job->memory;
    struct state_files *files;
    int r;

    r = state_files_read(job->directory_fd, memory->files, &job->running, &files);
    if (r < 0)
        return failure_set(&job->failure, r, ERROR_OUTPUT,
                           "Cannot read the state directory %s: %s.", job->directory, strerror(-r));
    state_files_free(memory->files);
    memory->files = files;
    if (!memory->has_looked)
        memory->first_free_bytes = files->free_bytes;
    memory->has_looked = true;
    return 0;
}

/*
 * By a clock that was set ahead, or is wrong since the host has booted, all files are old. It has a
 * day to be set right.
 */
static bool clock_is_settled(struct vacuum_memory *memory, uint64_t max_age_usec, uint64_t now_ns,
                             uint64_t now_usec)
{
    uint64_t ahead_usec = now_ns / NSEC_PER_USEC - now_usec;

    if (!memory->clock_good_usec || (int64_t)(ahead_usec - memory->ahead_usec) > CLOCK_STEP_USEC)
        memory->clock_good_usec = now_usec;
    memory->ahead_usec = ahead_usec;
    return now_usec - memory->clock_good_usec >= min_u64(max_age_usec, CLOCK_TRUST_USEC);
}

static struct vacuum_limits job_limits(const struct vacuum_job *job)
{
    const struct disk_limits *config = &job->request.limits;
    const struct vacuum_memory *memory = job->memory;
    uint64_t total_bytes = memory->files->total_bytes;
    struct vacuum_limits limits = {
        .max_use_bytes = disk_limit_bytes(config->max_use, total_bytes, DISK_MAX_USE_PERCENT),
        .keep_free_bytes = disk_limit_bytes(config->keep_free, total_bytes, DISK_KEEP_FREE_PERCENT),
        .max_age_usec = config->max_age_usec,
    };

    if (config->keep_free.kind == DISK_LIMIT_AUTO)
        limits.keep_free_bytes = min_u64(limits.keep_free_bytes, memory->first_free_bytes);
    if (job->is_configured && memory->has_base)
        limits.base = memory->base;
    else if (job->is_configured) /* nothing has grown yet */
        limits.base = (struct vacuum_use){UINT64_MAX / 2, UINT64_MAX / 2};
    return limits;
}

static enum vacuum_class class_of(const struct state_file *file, uint64_t now_ns)
{
    if (file->kind == STATE_FILE_SNAPSHOT)
        return vacuum_class_of_snapshot(file->is_of_user, strcmp(file->cause, "trigger") == 0,
                                        file->time_ns, now_ns);
    if (!file->is_of_ring)
        return VACUUM_NEVER;
    return file->is_of_user ? VACUUM_FIRST : VACUUM_ANY;
}

/* An open file may be read from for ever: that is no reason for it to stay. */
static void job_note_open(const struct vacuum_job *job, uint64_t now_usec)
{
    const struct state_files *files = job->memory->files;

    for (size_t i = 0; i < files->count; i++) {
        const struct state_file *file = &files->files[i];

        job->plan[i].is_in_use = file->is_in_use;
        job->plan[i].is_open = file->is_open;
        job->plan[i].is_spared =
            file->is_open && now_usec - file->open_since_usec < VACUUM_OPEN_USEC;
    }
}

static int job_make_plan(struct vacuum_job *job, uint64_t now_ns)
{
    const struct state_files *files = job->memory->files;

    job->plan = calloc(files->count + 1, sizeof(*job->plan));
    if (!job->plan)
        return failure_set(&job->failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    for (size_t i = 0; i < files->count; i++) {
        const struct state_file *file = &files->files[i];
        bool is_of_host = file->kind == STATE_FILE_SNAPSHOT && !file->is_of_user;
        bool is_triggered = strcmp(file->cause, "trigger") == 0;

        job->plan[i] = (struct vacuum_file){
            .vacuum_class = class_of(file, now_ns),
            .is_of_trigger = is_of_host && is_triggered,
            .is_of_root = is_of_host && !is_triggered,
            .bytes = file->bytes,
            .time_ns = file->time_ns,
        };
    }
    return 0;
}

/* A running session deletes its segments itself, oldest first, which are these. */
static void job_note_eviction(struct vacuum_job *job, const struct state_file *file)
{
    const char *session = state_name_find_session(file->name, &job->running);
    size_t i = 0;

    while (i < job->nr_evictions && strcmp(job->evictions[i].session, session) != 0)
        i++;
    if (i == EVICT_MAX)
        return; /* there are not so many sessions */
    if (i == job->nr_evictions)
        (void)snprintf(job->evictions[job->nr_evictions++].session, SESSION_NAME_MAX + 1, "%s",
                       session);
    job->evictions[i].count++;
}

/* SEGMENT has gone: with a capture's last one goes the sidecar of the capture. */
static void job_remove_capture(const struct vacuum_job *job, const struct state_file *segment)
{
    const struct state_files *files = job->memory->files;

    if (segment->kind != STATE_FILE_SEGMENT ||
        !state_name_is_segment(segment->name, segment->session))
        return;
    for (size_t i = 0; i < files->count; i++)
        if (!job->plan[i].goes && (strcmp(files->files[i].name, segment->session) == 0 ||
                                   state_name_is_segment(files->files[i].name, segment->session)))
            return;
    state_sidecar_remove(job->directory_fd, segment->session);
}

static void job_remove_chosen(struct vacuum_job *job)
{
    const struct state_files *files = job->memory->files;
    int r;

    for (size_t i = 0; i < files->count; i++) {
        const struct state_file *file = &files->files[i];

        if (!job->plan[i].goes)
            continue;
        if (file->is_of_running) {
            job_note_eviction(job, file);
            continue;
        }
        r = state_file_remove(job->directory_fd, file->name, job->held);
        if (r >= 0) {
            job_remove_capture(job, file);
            continue;
        }
        job->plan[i].goes = false;
        job->outcome.files--;
        job->outcome.bytes -= file->bytes;
        (void)failure_set(&job->failure, r, ERROR_OUTPUT, "Cannot remove %s/%s.xentrace: %s.",
                          job->directory, file->name, strerror(-r));
    }
}

static void job_choose(struct vacuum_job *job, uint64_t now_ns)
{
    const struct state_files *files = job->memory->files;

    job->outcome = vacuum_choose(job->plan, files->count, &job->limits, files->free_bytes, now_ns);
}

/* From here on, what the files grow by makes room for itself. */
static void job_note_base(struct vacuum_job *job)
{
    struct vacuum_memory *memory = job->memory;

    if (memory->has_base && memory->files->free_bytes < job->limits.keep_free_bytes)
        return;
    memory->base = job->limits.base = job->outcome.left;
    memory->has_base = true;
}

/* The first look goes without finding out what is open: mostly there is nothing to do. */
static void job_clean(struct vacuum_job *job)
{
    struct state_files *files = job->memory->files;
    uint64_t now_ns = realtime_ns(), now_usec = boottime_usec();

    job->limits = job_limits(job);
    if (!job->request.who.is_set && job->is_configured &&
        !clock_is_settled(job->memory, job->limits.max_age_usec, now_ns, now_usec))
        job->limits.max_age_usec = 0;
    if (job_make_plan(job, now_ns) < 0)
        return;
    job_choose(job, now_ns);
    if (job->outcome.files > 0) {
        state_files_look_for_open(job->directory_fd, files, now_usec);
        job_note_open(job, now_usec);
        job_choose(job, now_ns);
    } else {
        state_files_forget_open(files);
    }
    if (job->request.dry_run)
        return;
    if (job->is_configured)
        job_note_base(job);
    job_remove_chosen(job);
}

static void job_list(struct vacuum_job *job)
{
    job->limits = job_limits(job);
    state_files_look_for_open(job->directory_fd, job->memory->files, boottime_usec());
    (void)job_make_plan(job, realtime_ns());
}

/* As typed: a path in the directory, or a name, with or without its ending. */
static void strip_name(const struct vacuum_job *job, char *name)
{
    static const char *const endings[] = {TRACE_SUFFIX TRACE_SUFFIX_PACKED, TRACE_SUFFIX, ".json"};
    size_t length = strlen(job->directory);

    if (strncmp(name, job->directory, length) == 0 && name[length] == '/')
        memmove(name, name + length + 1, strlen(name + length + 1) + 1);
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        size_t ending = strlen(endings[i]), all = strlen(name);

        if (all > ending && strcmp(name + all - ending, endings[i]) == 0)
            name[all - ending] = '\0';
    }
}

/* Marks what NAME means: one trace, or the segments of a capture. Returns how many. */
static size_t job_mark(struct vacuum_job *job, const char *name)
{
    const struct state_files *files = job->memory->files;
    size_t count = 0;

    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->files[i].name, name) != 0 &&
            !state_name_is_segment(files->files[i].name, name))
            continue;
        count++;
        job->plan[i].goes = true;
    }
    return count;
}

static int job_check_name(struct vacuum_job *job, const char *name)
{
    const char *session = state_name_find_session(name, &job->running);

    if (session)
        return failure_set(&job->failure, -EBUSY, ERROR_BUSY,
                           "'%s' belongs to the running capture '%s'. Nothing was removed. To end "
                           "the capture: xentracectl stop %s",
                           name, session, session);
    if (!name[0] || name[0] == '.' || strchr(name, '/') || job_mark(job, name) == 0)
        return failure_set(&job->failure, -ENOENT, ERROR_NO_FILE,
                           "There is no trace '%s' in %s. Nothing was removed. To see all traces: "
                           "xentracectl list --files",
                           name, job->directory);
    return 0;
}

/* All of them, or none. */
static void job_remove_named(struct vacuum_job *job)
{
    const struct state_files *files = job->memory->files;

    job->limits = job_limits(job);
    if (job_make_plan(job, realtime_ns()) < 0)
        return;
    for (size_t i = 0; i < job->request.nr_names; i++) {
        strip_name(job, job->names[i]);
        if (job_check_name(job, job->names[i]) < 0)
            return;
    }
    for (size_t i = 0; i < files->count; i++) {
        job->outcome.files += job->plan[i].goes;
        job->outcome.bytes += job->plan[i].goes ? files->files[i].bytes : 0;
    }
    job_remove_chosen(job);
    for (size_t i = 0; i < job->request.nr_names; i++) /* of a capture with segments: its own */
        state_sidecar_remove(job->directory_fd, job->names[i]);
}

static void vacuum_run(struct job *base)
{
    struct vacuum_job *job = job_container(base, struct vacuum_job, job);

    if (job_read_files(job) < 0 || (job_trim(job) && job_read_files(job) < 0))
        return;
    switch (job->request.action) {
    case VACUUM_LIST:
        job_list(job);
        break;
    case VACUUM_CLEAN:
        job_clean(job);
        break;
    case VACUUM_REMOVE:
        job_remove_named(job);
        break;
    }
    held_files_look(job->held, boottime_usec(), &job->removed_held, &job->cut);
}

/* --- Main thread. --- */

static void vacuum_job_free(struct vacuum_job *job)
{
    for (size_t i = 0; i < job->request.nr_names && job->names; i++)
        free(job->names[i]);
    free(job->names);
    free(job->plan);
    held_files_unref(job->held);
    free(job);
}

/* Unless a job still needs it. */
static void vacuum_destroy(struct vacuum *vacuum)
{
    if (vacuum->current || vacuum->is_trying)
        return;
    if (vacuum->memory)
        state_files_free(vacuum->memory->files);
    free(vacuum->memory);
    free(vacuum);
}

static void vacuum_evict(const struct vacuum *vacuum, const struct vacuum_job *job)
{
    for (size_t i = 0; i < job->nr_evictions; i++)
        vacuum->context.evict(vacuum->context.userdata, job->evictions[i].session,
                              job->evictions[i].count);
}

/* The directory stays over its limits: reported once, and again after they were kept. */
static void vacuum_log_short(struct vacuum *vacuum, const struct vacuum_job *job)
{
    char use[UNITS_TEXT_MAX], keep[UNITS_TEXT_MAX], left[UNITS_TEXT_MAX];

    if (job->failure.name || job->outcome.is_enough) {
        vacuum->is_short_logged = vacuum->is_short_logged && !job->outcome.is_enough;
        return;
    }
    if (!vacuum->is_short_logged && job->outcome.is_of_others)
        log_warning("The disk of %s has %s free, less than keep-free=%s, because files that "
                    "xentraced may not remove fill it. Old traces stay, and are only removed to "
                    "make room for new ones. To see how full the disk is: df -h %s",
                    vacuum->context.state_dir, size_format(left, job->memory->files->free_bytes),
                    size_format(keep, job->limits.keep_free_bytes), vacuum->context.state_dir);
    else if (!vacuum->is_short_logged)
        log_warning("%s exceeds its limits (max-use=%s, keep-free=%s), and it contains nothing "
                    "more that xentraced may remove. To see all traces: xentracectl list --files",
                    vacuum->context.state_dir, size_format(use, job->limits.max_use_bytes),
                    size_format(keep, job->limits.keep_free_bytes));
    vacuum->is_short_logged = true;
}

/* Whether another line may name a removed file. */
static bool vacuum_admit_line(struct vacuum *vacuum)
{
    uint64_t now_usec = 0;

    /* Cannot fail for a clock that exists. */
    (void)sd_event_now(vacuum->context.event, CLOCK_MONOTONIC, &now_usec);
    if (!vacuum->lines_since_usec || now_usec - vacuum->lines_since_usec >= VACUUM_LINES_USEC) {
        vacuum->lines_since_usec = now_usec;
        vacuum->lines = 0;
    }
    return vacuum->lines++ < VACUUM_LINES_MAX;
}

/* A sentence without its stop. */
static const char *describe_reason(char *text, size_t size, const struct vacuum_job *job,
                                   enum vacuum_reason reason)
{
    char limit[UNITS_TEXT_MAX];

    switch (reason) {
    case VACUUM_TOO_OLD:
        (void)snprintf(text, size, "it was older than %s",
                       duration_format(limit, job->limits.max_age_usec));
        break;
    case VACUUM_MAX_USE:
        (void)snprintf(text, size, "the directory had more than %s that may be removed",
                       size_format(limit, job->limits.max_use_bytes));
        break;
    case VACUUM_KEEP_FREE:
        (void)snprintf(text, size, "the disk had less than %s free",
                       size_format(limit, job->limits.keep_free_bytes));
        break;
    }
    return text;
}

static void vacuum_log_file(const struct vacuum *vacuum, const struct vacuum_job *job, size_t i)
{
    const struct state_file *file = &job->memory->files->files[i];
    const struct requester *who = &job->request.who;
    char path[PATH_MAX + NAME_MAX], bytes[UNITS_TEXT_MAX], reason[128] = "";
    char name[NAME_MAX + 1];
    char requester[REQUESTER_TEXT_MAX] = "";

    state_file_name(name, file->name, file->is_packed);
    (void)snprintf(path, sizeof(path), "%s/%s", vacuum->context.state_dir, name);
    if (job->request.action == VACUUM_CLEAN)
        describe_reason(reason, sizeof(reason), job, job->plan[i].reason);
    if (who->is_set)
        requester_describe(requester, who);
    log_event(LOG_NOTICE, &(struct log_about){.file = path}, "%sRemoved %s (%s): %s%s%s%s.%s",
              who->is_set ? "Audit: " : "", path, size_format(bytes, file->bytes), reason,
              reason[0] && requester[0] ? ", " : "", requester[0] ? "asked for by " : "", requester,
              job->plan[i].is_open ? " A process still has it open, which delays the end of its "
                                     "space."
                                   : "");
}

/* Segments of a running session are deleted by it, in a moment. */
static void vacuum_log_removed(struct vacuum *vacuum, const struct vacuum_job *job)
{
    const struct state_files *files = job->memory->files;
    uint64_t left_out_bytes = 0;
    size_t left_out = 0;
    char bytes[UNITS_TEXT_MAX];

    for (size_t i = 0; i < files->count; i++) {
        if (!job->plan[i].goes)
            continue;
        if (vacuum_admit_line(vacuum)) {
            vacuum_log_file(vacuum, job, i);
        } else {
            left_out++;
            left_out_bytes += files->files[i].bytes;
        }
    }
    if (left_out > 0)
        log_line(LOG_NOTICE, NULL, "%sRemoved %zu more trace%s (%s) from %s.",
                 job->request.who.is_set ? "Audit: " : "", left_out, left_out == 1 ? "" : "s",
                 size_format(bytes, left_out_bytes), vacuum->context.state_dir);
}

static void vacuum_log_cut(const struct vacuum *vacuum, const struct vacuum_job *job)
{
    char bytes[UNITS_TEXT_MAX], time[UNITS_TEXT_MAX];

    if (job->cut.files > 0)
        log_line(LOG_NOTICE, NULL,
                 "%zu trace%s (%s) removed from %s %s still open in other processes after %s, and "
                 "%s cut: the space is free.",
                 job->cut.files, job->cut.files == 1 ? "" : "s", size_format(bytes, job->cut.bytes),
                 vacuum->context.state_dir, job->cut.files == 1 ? "was" : "were",
                 duration_format(time, HELD_FILES_USEC), job->cut.files == 1 ? "was" : "were");
}

static void vacuum_log(struct vacuum *vacuum, const struct vacuum_job *job)
{
    vacuum_log_cut(vacuum, job);
    if (job->failure.name && !job->done) /* else whoever asked has the reason */
        log_error("%s", job->failure.text);
    if (job->outcome.files > 0 && !job->request.dry_run)
        vacuum_log_removed(vacuum, job);
}

static void vacuum_end_look(struct vacuum *vacuum, const struct vacuum_job *job)
{
    vacuum->is_looking = false;
    vacuum_log_short(vacuum, job);
}

/* The first of those that wait, unless one is under way. */
static void vacuum_begin_next(struct vacuum *vacuum)
{
    const struct vacuum_context *context = &vacuum->context;
    struct vacuum_job *job = vacuum->waiting;

    if (vacuum->current || !job)
        return;
    vacuum->waiting = job->next;
    vacuum->nr_waiting--;
    vacuum->current = job;
    job->running = (struct state_names){
        .names = job->running_names,
        .count = context->list_running(context->userdata, job->running_names, VACUUM_RUNNING_MAX),
    };
    worker_send(vacuum->worker, &job->job);
}

static void vacuum_note_disk(struct vacuum *vacuum, const struct vacuum_job *job)
{
    vacuum->disk.held = job->removed_held;
    if (!job->plan || !job->is_configured || job->request.action != VACUUM_CLEAN)
        return;
    vacuum->disk.free_bytes = job->memory->files->free_bytes;
    vacuum->disk.keep_free_bytes = job->limits.keep_free_bytes;
    vacuum->disk.is_of_others = job->outcome.is_of_others;
}

const struct vacuum_disk *vacuum_disk(const struct vacuum *vacuum)
{
    return &vacuum->disk;
}

static void vacuum_report(struct vacuum *vacuum, const struct vacuum_job *job)
{
    const struct vacuum_result result = {
        .files = job->failure.name && !job->plan ? NULL : job->memory->files,
        .plan = job->plan,
        .limits = job->limits,
        .outcome = job->outcome,
        .held = job->removed_held,
        .dry_run = job->request.dry_run,
        .failure = &job->failure,
    };

    vacuum_log(vacuum, job);
    vacuum_note_disk(vacuum, job);
    vacuum_evict(vacuum, job);
    if (job->done)
        job->done(job->userdata, job->ticket, &result);
    else
        vacuum_end_look(vacuum, job);
}

static void vacuum_done(struct job *base)
{
    struct vacuum_job *job = job_container(base, struct vacuum_job, job);
    struct vacuum *vacuum = job->vacuum;

    if (!vacuum->is_freed)
        vacuum_report(vacuum, job);
    vacuum->current = NULL;
    vacuum_job_free(job);
    if (vacuum->is_freed)
        vacuum_destroy(vacuum);
    else
        vacuum_begin_next(vacuum);
}

static void vacuum_enqueue(struct vacuum *vacuum, struct vacuum_job *job)
{
    struct vacuum_job **end = &vacuum->waiting;

    while (*end)
        end = &(*end)->next;
    *end = job;
    vacuum->nr_waiting++;
}

static int job_copy_names(struct vacuum_job *job, const struct vacuum_request *request)
{
    job->names = calloc(request->nr_names + 1, sizeof(*job->names));
    if (!job->names)
        return -ENOMEM;
    for (size_t i = 0; i < request->nr_names; i++) {
        job->names[i] = strdup(request->names[i]);
        if (!job->names[i])
            return -ENOMEM;
    }
    return 0;
}

int vacuum_send(struct vacuum *vacuum, const struct vacuum_request *request,
                void (*done)(void *userdata, uint64_t ticket, const struct vacuum_result *result),
                void *userdata, uint64_t *ret_ticket)
{
    const struct vacuum_context *context = &vacuum->context;
    bool is_of_user = request->who.is_set && request->who.uid != 0;
    struct vacuum_job *job;

    if (vacuum->nr_waiting >= (is_of_user ? VACUUM_WAITING_MAX / 2 : VACUUM_WAITING_MAX))
        return -EAGAIN;
    job = calloc(1, sizeof(*job));
    if (!job)
        return -ENOMEM;
    job->job = (struct job){.run = vacuum_run, .done = vacuum_done};
    job->vacuum = vacuum;
    job->memory = vacuum->memory;
    job->request = *request;
    job->directory_fd = context->state_dir_fd;
    job->directory = context->state_dir;
    job->held = held_files_ref(context->held);
    job->is_configured = request->limits.keep_free.kind == context->limits.keep_free.kind &&
                         request->limits.keep_free.value == context->limits.keep_free.value;
    job->done = done;
    job->userdata = userdata;
    job->ticket = ++vacuum->last_ticket;
    if (job_copy_names(job, request) < 0) {
        vacuum_job_free(job);
        return -ENOMEM;
    }
    if (ret_ticket)
        *ret_ticket = job->ticket;
    vacuum_enqueue(vacuum, job);
    vacuum_begin_next(vacuum);
    return 0;
}

/* --- Whether the disk can be written to. --- */

struct disk_try {
    struct job job;
    struct vacuum *vacuum;
    int directory_fd;
    int error;
};

/*
 * Writes a file without a name. That the disk is full is found by other means, and a file system
 * may not support such files.
 */
static void disk_try_run(struct job *base)
{
    struct disk_try *try = job_container(base, struct disk_try, job);
    _cleanup_fd_ int fd = openat(try->directory_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

    if (fd >= 0 && write(fd, "", 1) >= 0 && fdatasync(fd) >= 0)
        return;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOSPC && errno != EDQUOT)
        try->error = -errno;
}

/* Each change once. */
static void vacuum_log_disk(const struct vacuum *vacuum, int error)
{
    if (error && !vacuum->disk.error)
        log_error("Cannot write to %s: %s. Captures and snapshots into it fail; the recorder "
                  "continues in memory. Check the disk: dmesg",
                  vacuum->context.state_dir, strerror(-error));
    else if (!error && vacuum->disk.error)
        log_line(LOG_NOTICE, NULL, "%s can be written again.", vacuum->context.state_dir);
}

static void disk_try_done(struct job *base)
{
    struct disk_try *try = job_container(base, struct disk_try, job);
    struct vacuum *vacuum = try->vacuum;

    vacuum->is_trying = false;
    if (vacuum->is_freed) {
        vacuum_destroy(vacuum);
    } else {
        vacuum_log_disk(vacuum, try->error);
        vacuum->disk.error = try->error;
    }
    free(try);
}

/*
 * A disk that has failed is found within a minute, and not only when a snapshot is needed. On a
 * thread of its own: a disk that does not answer must not hold up a list. Without memory for it,
 * the next look tries again.
 */
static void vacuum_try_disk(struct vacuum *vacuum)
{
    struct disk_try *try = vacuum->is_trying ? NULL : calloc(1, sizeof(*try));
    struct worker *worker;

    if (!try || worker_new(vacuum->context.workers, "disk", &worker) < 0) {
        free(try);
        return;
    }
    *try = (struct disk_try){
        .job = {.run = disk_try_run, .done = disk_try_done},
        .vacuum = vacuum,
        .directory_fd = vacuum->context.state_dir_fd,
    };
    vacuum->is_trying = true;
    worker_send(worker, &try->job);
    worker_free(worker); /* it ends with its job */
}

/* A disk that does not answer is asked once. */
static int vacuum_handle_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct vacuum *vacuum = userdata;
    const struct vacuum_request request = {
        .action = VACUUM_CLEAN,
        .limits = vacuum->context.limits,
    };

    (void)usec;
    vacuum->is_poked = false;
    vacuum_try_disk(vacuum);
    if (!vacuum->is_looking)
        vacuum->is_looking = vacuum_send(vacuum, &request, NULL, NULL, NULL) >= 0;
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time_relative(source, LOOK_USEC);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

int vacuum_new(const struct vacuum_context *context, struct vacuum **ret_vacuum)
{
    struct vacuum *vacuum = calloc(1, sizeof(*vacuum));
    int r;

    if (!vacuum)
        return -ENOMEM;
    vacuum->context = *context;
    vacuum->memory = calloc(1, sizeof(*vacuum->memory));
    r = vacuum->memory ? worker_new(context->workers, "vacuum", &vacuum->worker) : -ENOMEM;
    if (r >= 0)
        r = sd_event_add_time_relative(context->event, &vacuum->source, CLOCK_MONOTONIC, 0,
                                       SLACK_USEC, vacuum_handle_time, vacuum);
    if (r < 0) {
        vacuum_free(vacuum);
        return r;
    }
    *ret_vacuum = vacuum;
    return 0;
}

struct vacuum *vacuum_free(struct vacuum *vacuum)
{
    if (!vacuum)
        return NULL;
    vacuum->source = sd_event_source_disable_unref(vacuum->source);
    vacuum->worker = worker_free(vacuum->worker);
    vacuum->is_freed = true;
    while (vacuum->waiting) {
        struct vacuum_job *next = vacuum->waiting->next;

        vacuum_job_free(vacuum->waiting);
        vacuum->waiting = next;
    }
    vacuum_destroy(vacuum);
    return NULL;
}

void vacuum_poke(struct vacuum *vacuum)
{
    if (vacuum->is_poked)
        return; /* else one after the other would put it off */
    vacuum->is_poked = true;
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time_relative(vacuum->source, POKE_USEC);
    (void)sd_event_source_set_enabled(vacuum->source, SD_EVENT_ONESHOT);
}

void vacuum_set_limits(struct vacuum *vacuum, const struct disk_limits *limits)
{
    vacuum->context.limits = *limits;
    vacuum_poke(vacuum);
}

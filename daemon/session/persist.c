// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Temporary name, rename(): the state is the old one or the new one. It is not synced: the runtime
 * directory is in memory, and does not outlive the host.
 */

#include "daemon/session/persist.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "collector/account.h"
#include "common/json-text.h"
#include "common/protocol.h"
#include "common/util.h"
#include "daemon/base/json-put.h"
#include "daemon/base/log.h"
#include "daemon/output/compression.h"
#include "daemon/session/segments.h"
#include "daemon/session/session-data.h"

#define FORMAT       "xentraced-persist"
#define PREFIX       "persist-"
#define STATE_SUFFIX ".json"

/* The state goes first, and comes last: without it the others are of no use. */
static const char *const suffixes[] = {STATE_SUFFIX, ".account", ".new"};

static void state_file_name(char file[static NAME_MAX + 1], const char *name, const char *suffix)
{
    (void)snprintf(file, NAME_MAX + 1, PREFIX "%s%s", name, suffix);
}

/* --- As JSON. --- */

static json *ledger_to_json(const struct ledger *ledger)
{
    const uint64_t figures[] = {ledger->produced, ledger->delivered, ledger->lost,
                                ledger->dropped,  ledger->evicted,   ledger->first_tsc,
                                ledger->last_tsc};
    json *array = json_object_new_array();

    for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
        (void)json_object_array_add(array, json_object_new_uint64(figures[i]));
    return array;
}

static struct ledger ledger_from_json(json *array)
{
    uint64_t figures[7] = {0};

    for (size_t i = 0; json_object_is_type(array, json_type_array) && i < ARRAY_SIZE(figures); i++)
        figures[i] = json_object_get_uint64(json_object_array_get_idx(array, i));
    return (struct ledger){
        .produced = figures[0],
        .delivered = figures[1],
        .lost = figures[2],
        .dropped = figures[3],
        .evicted = figures[4],
        .first_tsc = figures[5],
        .last_tsc = figures[6],
    };
}

static void put_options(json *object, const struct persist_state *state)
{
    json_put_bool(object, "configured", state->is_configured);
    json_put_text(object, "events", state->events);
    json_put_text(object, "cpus", state->cpus);
    json_put_text(object, "on_reserve", state->on_reserve);
    json_put_count(object, "time_usec", state->time_usec);
    json_put_count(object, "reserve_bytes", state->reserve_bytes);
    json_put_count(object, "poll_usec", state->poll_usec);
    json_put_count(object, "segment_size_bytes", state->segment_size_bytes);
    json_put_count(object, "segment_time_usec", state->segment_time_usec);
    json_put_count(object, "keep_files", state->keep_files);
    json_put_count(object, "keep_size_bytes", state->keep_size_bytes);
    json_put_bool(object, "start_disabled", state->start_disabled);
    json_put_text(object, "compress", compression_name(state->is_packed));
}

json *persist_to_json(const struct persist_state *state)
{
    json *object = json_object_new_object(), *options = json_object_new_object();
    json *cpus = json_object_new_array(), *classes = json_object_new_array();
    json *pending = json_object_new_array(), *drops = json_object_new_object();

    json_put_text(object, "format", FORMAT);
    json_put_count(object, "version", 1);
    json_put_text(object, "name", state->name);
    put_options(options, state);
    json_put(object, "options", options);
    json_put_count(object, "started_ns", state->started.realtime_ns);
    json_put_count(object, "started_tsc", state->started.tsc);
    json_put_count(object, "continued", state->continued);
    json_put_count(object, "first_number", state->first_number);
    json_put_count(object, "finished_number", state->finished_number);
    json_put_count(object, "written", state->written);
    json_put_count(object, "deleted", state->deleted);
    for (unsigned int cpu = 0; cpu < state->nr_cpus; cpu++) {
        (void)json_object_array_add(cpus, ledger_to_json(&state->past[cpu]));
        (void)json_object_array_add(pending, json_object_new_uint64(state->pending[cpu]));
    }
    json_put(object, "ledger", cpus);
    json_put(object, "pending", pending);
    json_put_count(object, "output_bytes", state->totals.output_bytes);
    json_put_count(object, "plain_bytes", state->totals.plain_bytes);
    json_put_count(object, "raw_bytes", state->totals.raw_bytes);
    json_put_count(object, "windows", state->totals.windows);
    json_put_count(object, "complete_from_tsc", state->totals.complete_from_tsc);
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        (void)json_object_array_add(classes,
                                    json_object_new_uint64(state->totals.class_records[i]));
    json_put(object, "classes", classes);
    for (unsigned int i = 0; i < DROP_CAUSES; i++)
        json_put_count(drops, drop_causes[i].name, state->totals.drops[i]);
    json_put(object, "drops", drops);
    return object;
}

static json *member(json *object, const char *key)
{
    json *value = NULL;

    (void)json_object_object_get_ex(object, key, &value); /* NULL of what is no object */
    return value;
}

static uint64_t number_of(json *object, const char *key)
{
    return json_object_get_uint64(member(object, key));
}

static char *text_of(json *object, const char *key)
{
    json *value = member(object, key);

    return value && json_object_is_type(value, json_type_string)
               ? strdup(json_object_get_string(value))
               : NULL;
}

static int take_options(struct persist_state *state, json *options)
{
    struct failure failure;
    int r;

    state->is_configured = json_object_get_boolean(member(options, "configured"));
    state->events = text_of(options, "events");
    state->cpus = text_of(options, "cpus");
    state->on_reserve = text_of(options, "on_reserve");
    state->time_usec = number_of(options, "time_usec");
    state->reserve_bytes = number_of(options, "reserve_bytes");
    state->poll_usec = number_of(options, "poll_usec");
    state->segment_size_bytes = number_of(options, "segment_size_bytes");
    state->segment_time_usec = number_of(options, "segment_time_usec");
    state->keep_files = (uint32_t)number_of(options, "keep_files");
    state->keep_size_bytes = number_of(options, "keep_size_bytes");
    state->start_disabled = json_object_get_boolean(member(options, "start_disabled"));
    r = compression_parse(json_object_get_string(member(options, "compress")), &state->is_packed,
                          &failure); /* an older daemon has none: not compressed */
    if (r < 0)
        return -EBADMSG;
    return state->events && state->cpus && state->on_reserve ? 0 : -EBADMSG;
}

static int take_ledger(struct persist_state *state, json *object)
{
    json *cpus = member(object, "ledger"), *classes = member(object, "classes");
    json *pending = member(object, "pending");

    if (!json_object_is_type(cpus, json_type_array) || json_object_array_length(cpus) == 0 ||
        !json_object_is_type(pending, json_type_array))
        return -EBADMSG;
    state->nr_cpus = (unsigned int)json_object_array_length(cpus);
    state->past = calloc(state->nr_cpus, sizeof(*state->past));
    state->pending = calloc(state->nr_cpus, sizeof(*state->pending));
    if (!state->past || !state->pending)
        return -ENOMEM;
    for (unsigned int cpu = 0; cpu < state->nr_cpus; cpu++) {
        state->past[cpu] = ledger_from_json(json_object_array_get_idx(cpus, cpu));
        state->pending[cpu] = json_object_get_uint64(json_object_array_get_idx(pending, cpu));
    }
    for (unsigned int i = 0; i < EVENT_CLASSES && json_object_is_type(classes, json_type_array);
         i++)
        state->totals.class_records[i] =
            json_object_get_uint64(json_object_array_get_idx(classes, i));
    for (unsigned int i = 0; i < DROP_CAUSES; i++) /* an older daemon has none */
        state->totals.drops[i] = number_of(member(object, "drops"), drop_causes[i].name);
    state->totals.output_bytes = number_of(object, "output_bytes");
    state->totals.plain_bytes = number_of(object, "plain_bytes");
    state->totals.raw_bytes = number_of(object, "raw_bytes");
    state->totals.windows = number_of(object, "windows");
    state->totals.complete_from_tsc = number_of(object, "complete_from_tsc");
    return 0;
}

static int take_state(struct persist_state *state, json *object)
{
    _cleanup_free_ char *format = text_of(object, "format"), *name = text_of(object, "name");
    int r;

    if (!format || strcmp(format, FORMAT) != 0 || number_of(object, "version") != 1 || !name ||
        !name_is_valid(name, SESSION_NAME_MAX))
        return -EBADMSG;
    (void)strcpy(state->name, name); /* a valid one fits */
    r = take_options(state, member(object, "options"));
    if (r < 0)
        return r;
    state->started.realtime_ns = number_of(object, "started_ns");
    state->started.tsc = number_of(object, "started_tsc");
    state->continued = (uint32_t)number_of(object, "continued");
    state->first_number = (uint32_t)number_of(object, "first_number");
    state->finished_number = (uint32_t)number_of(object, "finished_number");
    state->written = (uint32_t)number_of(object, "written");
    state->deleted = (uint32_t)number_of(object, "deleted");
    return take_ledger(state, object);
}

int persist_from_json(json *object, struct persist_state **ret_state)
{
    struct persist_state *state = calloc(1, sizeof(*state));
    int r = state ? take_state(state, object) : -ENOMEM;

    if (r < 0)
        persist_free(state);
    else
        *ret_state = state;
    return r;
}

struct persist_state *persist_free(struct persist_state *state)
{
    if (!state)
        return NULL;
    free(state->events);
    free(state->cpus);
    free(state->on_reserve);
    free(state->past);
    free(state->pending);
    free(state);
    return NULL;
}

struct session_options persist_options(const struct persist_state *state)
{
    return (struct session_options){
        .events = state->events,
        .cpus = state->cpus,
        .on_reserve = state->on_reserve,
        .time_usec = state->time_usec,
        .reserve_bytes = state->reserve_bytes,
        .poll_usec = state->poll_usec,
        .segment_size_bytes = state->segment_size_bytes,
        .segment_time_usec = state->segment_time_usec,
        .keep_files = state->keep_files,
        .keep_size_bytes = state->keep_size_bytes,
        .start_disabled = state->start_disabled,
        .compress = compression_name(state->is_packed),
        .output_fd = -1,
        .sidecar_fd = -1,
        .output_path = "-",
        .persist = true,
        .is_configured = state->is_configured,
        .resume = state,
        .since = &state->started,
    };
}

/* --- In the runtime directory. --- */

static struct persist_state *read_file(int directory_fd, const char *file)
{
    _cleanup_fd_ int fd =
        openat(directory_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct persist_state *state = NULL;
    json *object = NULL;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
        json_text_read(fd, JSON_FILE_MAX_MEMORY, &object) == 0)
        (void)persist_from_json(object, &state);
    json_object_put(object);
    return state;
}

struct persist_state *persist_read(int runtime_dir_fd, const char *name)
{
    char file[NAME_MAX + 1];

    state_file_name(file, name, STATE_SUFFIX);
    return read_file(runtime_dir_fd, file);
}

/* "persist-NAME" and SUFFIX: NAME; or false. */
static bool read_name(const char *file, const char *suffix, char name[static SESSION_NAME_MAX + 1])
{
    size_t around = strlen(PREFIX) + strlen(suffix), length = strlen(file);

    if (length <= around || length - around > SESSION_NAME_MAX ||
        strncmp(file, PREFIX, strlen(PREFIX)) != 0 ||
        strcmp(file + length - strlen(suffix), suffix) != 0)
        return false;
    (void)snprintf(name, SESSION_NAME_MAX + 1, "%.*s", (int)(length - around),
                   file + strlen(PREFIX));
    return true;
}

/* Returns whether FILE is not there. */
static bool is_absent(int directory_fd, const char *file)
{
    return faccessat(directory_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* Removes FILE if it is what a daemon left that was killed before it had written, or while it
 * removed, the state. */
static void remove_stray(int directory_fd, const char *file)
{
    char name[SESSION_NAME_MAX + 1], state[NAME_MAX + 1];

    for (size_t i = 1; i < ARRAY_SIZE(suffixes); i++) {
        if (!read_name(file, suffixes[i], name))
            continue;
        state_file_name(state, name, STATE_SUFFIX);
        if (is_absent(directory_fd, state))
            (void)unlinkat(directory_fd, file, 0); /* if not, it is found again */
    }
}

void persist_read_all(int runtime_dir_fd,
                      void (*fn)(void *userdata, const struct persist_state *state), void *userdata)
{
    int fd = openat(runtime_dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    char name[SESSION_NAME_MAX + 1];
    const struct dirent *entry;

    if (!directory) {
        fd_close(&fd);
        return;
    }
    while ((entry = readdir(directory))) {
        struct persist_state *state;

        if (!read_name(entry->d_name, STATE_SUFFIX, name)) {
            remove_stray(runtime_dir_fd, entry->d_name);
            continue;
        }
        state = read_file(runtime_dir_fd, entry->d_name);
        if (state && strcmp(state->name, name) == 0) {
            fn(userdata, state);
        } else {
            log_line(LOG_WARNING, name,
                     "The capture is not continued: its state from before the restart, %s, is "
                     "damaged or from another version. Its existing segments are readable.",
                     entry->d_name);
            persist_remove(runtime_dir_fd, name);
        }
        persist_free(state);
    }
    (void)closedir(directory);
}

void persist_remove(int runtime_dir_fd, const char *name)
{
    char file[NAME_MAX + 1];

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        state_file_name(file, name, suffixes[i]);
        (void)unlinkat(runtime_dir_fd, file, 0); /* there may be none */
    }
}

static int refuse_state(const struct session *session, int error, struct failure *failure)
{
    return failure_set(failure, error, ERROR_OUTPUT,
                       "Cannot save the state of '%s' for a restart in the runtime directory: %s.",
                       session->name, strerror(-error));
}

int persist_map_account(struct session *session, bool is_new, struct failure *failure)
{
    const struct session_context *context = session->context;
    char file[NAME_MAX + 1];
    _cleanup_fd_ int fd = -1;
    int r;

    state_file_name(file, session->name, ".account");
    fd = openat(context->runtime_dir_fd, file,
                O_RDWR | O_CLOEXEC | O_NOFOLLOW | (is_new ? O_CREAT : 0), 0600);
    r = fd < 0 ? -errno : account_map(fd, session->selection.nr_cpus, is_new, &session->account);
    return r < 0 ? refuse_state(session, r, failure) : 0;
}

/* --- On the session's worker. --- */

struct persist_job {
    struct job job;
    struct json_object *state; /* NULL: remove it */
    int directory_fd;
    char name[SESSION_NAME_MAX + 1];
    int error;
};

static int write_state(const struct persist_job *job)
{
    char file[NAME_MAX + 1], temporary[NAME_MAX + 1];
    _cleanup_fd_ int fd = -1;

    state_file_name(file, job->name, ".account");
    if (is_absent(job->directory_fd, file))
        return 0; /* it was aborted meanwhile */
    state_file_name(file, job->name, STATE_SUFFIX);
    state_file_name(temporary, job->name, ".new");
    fd = openat(job->directory_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                0600);
    if (fd < 0)
        return -errno;
    errno = 0;
    if (json_object_to_fd(fd, job->state, JSON_C_TO_STRING_PLAIN) < 0)
        return errno ? -errno : -EIO;
    return renameat(job->directory_fd, temporary, job->directory_fd, file) < 0 ? -errno : 0;
}

static void persist_run(struct job *base)
{
    struct persist_job *job = job_container(base, struct persist_job, job);

    if (job->state)
        job->error = write_state(job);
    else
        persist_remove(job->directory_fd, job->name);
}

static void persist_done(struct job *base)
{
    struct persist_job *job = job_container(base, struct persist_job, job);

    if (job->error < 0)
        log_line(LOG_ERR, job->name,
                 "Cannot save the state for a restart: %s. The capture is running; after a "
                 "restart, it would continue from an older state.",
                 strerror(-job->error));
    json_object_put(job->state);
    free(job);
}

/* Takes over STATE. */
static void persist_send(const struct session *session, struct json_object *state)
{
    struct persist_job *job = session->worker ? calloc(1, sizeof(*job)) : NULL;

    if (!job) {
        json_object_put(state);
        return;
    }
    job->job = (struct job){.run = persist_run, .done = persist_done};
    job->state = state;
    job->directory_fd = session->context->runtime_dir_fd;
    (void)strcpy(job->name, session->name); /* of the same length */
    worker_send(session->worker, &job->job);
}

void persist_end(struct session *session)
{
    const struct segments *segments = segments_of(session->storage);

    if (session->is_handed_over && (!segments->is_new_run || segments->is_recovered))
        persist_save(session);
    else
        persist_send(session, NULL); /* after what is still to be written */
}

/* Returns NULL without memory. */
static struct json_object *persist_describe(const struct session *session)
{
    const struct settings *settings = &session->settings;
    const struct segments *segments = segments_of(session->storage);
    struct persist_state state = {
        .is_configured = settings->is_configured,
        .events = session->selection.events_spec,
        .cpus = session->selection.cpus_spec,
        .on_reserve = (char *)on_reserve_name(segments->storage.space.on_reserve),
        .time_usec = settings->time_usec,
        .reserve_bytes = settings->reserve_bytes,
        .poll_usec = settings->poll_usec,
        .segment_size_bytes = segments->size_bytes,
        .segment_time_usec = segments->time_usec,
        .keep_size_bytes = segments->keep_bytes,
        .keep_files = segments->keep_files,
        .start_disabled = settings->start_disabled,
        .is_packed = settings->is_packed,
        .started = session->started,
        .continued = session->continued,
        .first_number = segments->first_number,
        .finished_number = segments_finished_number(segments),
        .written = segments->written,
        .deleted = segments->deleted,
        .nr_cpus = segments->nr_cpus,
        .past = calloc(segments->nr_cpus, sizeof(struct ledger)),
        .pending = calloc(segments->nr_cpus, sizeof(uint64_t)),
    };
    struct json_object *described = NULL;

    if (state.past && state.pending) {
        (void)strcpy(state.name, session->name); /* of the same length */
        segments_read_finished(segments, state.past, state.pending, &state.totals);
        described = persist_to_json(&state);
    }
    free(state.past);
    free(state.pending);
    return described;
}

void persist_save(struct session *session)
{
    struct json_object *state;

    if (session->state > SESSION_RUNNING && !session->is_handed_over)
        return; /* it ends for good */
    state = persist_describe(session);

    if (state)
        persist_send(session, state);
}

int persist_save_now(const struct session *session, struct failure *failure)
{
    struct persist_job job = {
        .state = persist_describe(session),
        .directory_fd = session->context->runtime_dir_fd,
    };
    int r;

    (void)strcpy(job.name, session->name); /* of the same length */
    r = job.state ? write_state(&job) : -ENOMEM;
    json_object_put(job.state);
    return r < 0 ? refuse_state(session, r, failure) : 0;
}

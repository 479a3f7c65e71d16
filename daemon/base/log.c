// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * systemd says in JOURNAL_STREAM which device and inode its stream has (systemd.exec(5)): only if
 * standard error is that stream is it the journal's.
 *
 * Each line is a job of the log's worker. The main thread counts the jobs that are not done, which
 * limits the queue. The worker counts the lines that it has written, under a mutex, so that
 * log_stop() can wait for them without an event loop.
 *
 * Lines on standard error are written with write(2): a thread that hangs in stdio holds a lock that
 * exit(3) may want.
 */

#include "daemon/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-event.h>
#include <systemd/sd-journal.h>

#include "common/units.h"
#include "common/utf8.h"
#include "daemon/base/log-quota.h"
#include "daemon/base/name.h"
#include "daemon/base/requester.h"
#include "daemon/base/worker.h"

#define QUEUE_MAX     256u /* lines */
#define TEXT_MAX      1024u
#define FIELDS_MAX    2048u
#define STOP_WAIT_SEC 1

/* MESSAGE=, PRIORITY=, and those of struct log_about */
#define NR_FIELDS 8u

struct line {
    struct job job;
    int priority;
    bool has_session;
    char session[SESSION_NAME_MAX + 1];
    char text[TEXT_MAX];
    size_t fields_bytes;
    char fields[FIELDS_MAX]; /* "SESSION=a", each with its '\0' */
};

/* The one mutable state beside arg_*: where the log goes is a fact about the process. */
static struct {
    bool is_journal;
    int level;
    struct workers *workers;
    struct worker *worker; /* NULL: lines are written at once */
    bool hangs;            /* the worker did not end in time */
    unsigned int nr_queued;
    unsigned int nr_left_out; /* lines for which there was no room */

    struct log_quota quota;
    sd_event_source *sums_source; /* runs when the next sum is due */
    struct {
        char name[SESSION_NAME_MAX + 1]; /* "": free */
        uid_t person;
    } owners[LOG_OWNERS_MAX]; /* of sessions of users other than root */

    pthread_mutex_t mutex;
    pthread_cond_t written;
    unsigned int nr_unwritten; /* under the mutex */
} the_log = {
    .level = LOG_INFO,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .written = PTHREAD_COND_INITIALIZER,
};

/* --- Writing: the worker's thread, or the main thread while there is no worker. --- */

static void log_write_stderr(const struct line *line)
{
    char buffer[TEXT_MAX + SESSION_NAME_MAX + 32];
    int length = snprintf(buffer, sizeof(buffer), "xentraced: %s%s%s\n", line->session,
                          line->has_session ? ": " : "", line->text);
    const char *from = buffer;

    while (length > 0) {
        ssize_t n = write(STDERR_FILENO, from, (size_t)length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* a log that cannot be written is not worth dying for */
        from += n;
        length -= (int)n;
    }
}

static void log_write(const struct line *line)
{
    char message[sizeof("MESSAGE=: ") + SESSION_NAME_MAX + TEXT_MAX], priority[16];
    struct iovec fields[NR_FIELDS];
    size_t count = 0;

    if (!the_log.is_journal) {
        log_write_stderr(line);
        return;
    }
    (void)snprintf(message, sizeof(message), "MESSAGE=%s%s%s", line->session,
                   line->has_session ? ": " : "", line->text);
    (void)snprintf(priority, sizeof(priority), "PRIORITY=%i", line->priority);
    fields[count++] = (struct iovec){.iov_base = message, .iov_len = strlen(message)};
    fields[count++] = (struct iovec){.iov_base = priority, .iov_len = strlen(priority)};
    for (size_t at = 0; at < line->fields_bytes && count < NR_FIELDS; count++) {
        size_t length = strlen(line->fields + at);

        fields[count] = (struct iovec){.iov_base = (char *)line->fields + at, .iov_len = length};
        at += length + 1;
    }
    (void)sd_journal_sendv(fields, (int)count); /* a journal that is gone is not worth dying for */
}

static void log_run_job(struct job *job)
{
    log_write(job_container(job, struct line, job));
    (void)pthread_mutex_lock(&the_log.mutex);
    the_log.nr_unwritten--;
    (void)pthread_cond_signal(&the_log.written);
    (void)pthread_mutex_unlock(&the_log.mutex);
}

/* --- The main thread. --- */

static void log_send(struct line *line)
{
    (void)pthread_mutex_lock(&the_log.mutex);
    the_log.nr_unwritten++;
    (void)pthread_mutex_unlock(&the_log.mutex);
    the_log.nr_queued++;
    worker_send(the_log.worker, &line->job);
}

static void log_finish_job(struct job *job)
{
    unsigned int nr_left_out = the_log.nr_left_out;

    free(job_container(job, struct line, job));
    the_log.nr_queued--;
    if (nr_left_out == 0 || the_log.nr_queued > QUEUE_MAX / 2)
        return;
    the_log.nr_left_out = 0;
    log_warning("The log did not accept lines: %u lines were dropped.", nr_left_out);
}

/* "SESSION=" and a value, unless that does not fit: half a path is none. */
static void log_add_field(struct line *line, const char *name, const char *value)
{
    size_t room = sizeof(line->fields) - line->fields_bytes;
    int length;

    if (!value)
        return;
    length = snprintf(line->fields + line->fields_bytes, room, "%s%s", name, value);
    if (length > 0 && (size_t)length < room)
        line->fields_bytes += (size_t)length + 1;
}

static void log_add_fields(struct line *line, const struct log_about *about)
{
    line->fields_bytes = 0;
    log_add_field(line, "MESSAGE_ID=", about->id);
    log_add_field(line, "SESSION=", about->session);
    log_add_field(line, "CPU=", about->cpus);
    log_add_field(line, "DOMAIN=", about->domain);
    log_add_field(line, "TRIGGER=", about->trigger);
    log_add_field(line, "FILE=", about->file);
}

_printf_(4, 0) static void log_fill_line(struct line *line, int priority,
                                         const struct log_about *about, const char *format,
                                         va_list arguments)
{
    const char *session = about->session;
    char text[TEXT_MAX];

    line->job = (struct job){.run = log_run_job, .done = log_finish_job};
    line->priority = priority;
    line->has_session = session;
    (void)snprintf(line->session, sizeof(line->session), "%s", session ? session : "");
    (void)vsnprintf(text, sizeof(text), format, arguments);
    (void)utf8_copy(line->text, sizeof(line->text), text);
    log_add_fields(line, about);
}

_printf_(3, 0) static void log_put(int priority, const struct log_about *about, const char *format,
                                   va_list arguments)
{
    struct line at_once, *line = &at_once;

    if (priority > the_log.level || the_log.hangs)
        return;
    if (the_log.worker) {
        line = the_log.nr_queued < QUEUE_MAX ? malloc(sizeof(*line)) : NULL;
        if (!line) {
            the_log.nr_left_out++;
            return;
        }
    }
    log_fill_line(line, priority, about, format, arguments);
    if (the_log.worker)
        log_send(line);
    else
        log_write(line);
}

/* --- Lines on account of users. --- */

static uint64_t now_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC + 1;
}

static uid_t log_find_person(const struct log_about *about)
{
    if (about->who)
        return requester_is_user(about->who) ? about->who->person : PERSON_ROOT;
    for (size_t i = 0; about->session && i < LOG_OWNERS_MAX; i++)
        if (strcmp(the_log.owners[i].name, about->session) == 0)
            return the_log.owners[i].person;
    return PERSON_ROOT;
}

void log_set_owner(const char *name, const struct requester *owner)
{
    size_t i = 0, free_i = LOG_OWNERS_MAX;

    while (i < LOG_OWNERS_MAX && strcmp(the_log.owners[i].name, name) != 0) {
        if (!the_log.owners[i].name[0])
            free_i = i;
        i++;
    }
    if (i == LOG_OWNERS_MAX)
        i = free_i;
    if (i == LOG_OWNERS_MAX)
        return;
    the_log.owners[i].name[0] = '\0';
    if (!owner || !requester_is_user(owner))
        return;
    (void)snprintf(the_log.owners[i].name, sizeof(the_log.owners[i].name), "%s", name);
    the_log.owners[i].person = owner->person;
}

static void log_write_sum(uid_t person, uint64_t lines)
{
    char who[PERSON_TEXT_MAX];

    log_line(LOG_NOTICE, NULL, "%llu lines about calls and captures of %s were left out.",
             (unsigned long long)lines,
             person == LOG_QUOTA_SEVERAL ? "several users" : person_describe(who, person));
}

/* Neither can fail for a source that exists, in this process. */
static void log_set_timer(void)
{
    uint64_t next_usec = log_quota_next_usec(&the_log.quota);

    if (!the_log.sums_source || !next_usec)
        return;
    (void)sd_event_source_set_time(the_log.sums_source, next_usec);
    (void)sd_event_source_set_enabled(the_log.sums_source, SD_EVENT_ONESHOT);
}

static int log_handle_sums(sd_event_source *source, uint64_t usec, void *userdata)
{
    uint64_t lines;
    uid_t person;

    (void)source, (void)usec, (void)userdata;
    while (log_quota_take_sum(&the_log.quota, now_usec(), &person, &lines))
        log_write_sum(person, lines);
    log_set_timer();
    return 0;
}

/* Whether a line may be written. */
static bool log_admit(int priority, const struct log_about *about)
{
    uid_t person = log_find_person(about);

    if (priority > the_log.level || person == PERSON_ROOT ||
        log_quota_admit(&the_log.quota, person, now_usec()))
        return true;
    log_set_timer();
    return false;
}

void log_line(int priority, const char *session, const char *format, ...)
{
    const struct log_about about = {.session = session};
    va_list arguments;

    if (!log_admit(priority, &about))
        return;
    va_start(arguments, format);
    log_put(priority, &about, format, arguments);
    va_end(arguments);
}

void log_event(int priority, const struct log_about *about, const char *format, ...)
{
    va_list arguments;

    if (!log_admit(priority, about))
        return;
    va_start(arguments, format);
    log_put(priority, about, format, arguments);
    va_end(arguments);
}

/* --- Construction. --- */

void log_open(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uint64_t device, inode;
    struct stat st;

    the_log.is_journal = stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
                         fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device &&
                         st.st_ino == inode;
}

void log_set_level(int level)
{
    the_log.level = level;
}

int log_start(struct sd_event *event)
{
    struct workers *workers;
    int r;

    r = workers_new(event, &workers);
    if (r < 0)
        return r;
    r = sd_event_add_time_relative(event, &the_log.sums_source, CLOCK_MONOTONIC, 0, USEC_PER_SEC,
                                   log_handle_sums, NULL);
    if (r >= 0)
        r = sd_event_source_set_enabled(the_log.sums_source, SD_EVENT_OFF);
    if (r >= 0)
        r = worker_new(workers, "log", &the_log.worker);
    if (r < 0) {
        the_log.sums_source = sd_event_source_disable_unref(the_log.sums_source);
        workers_free(workers);
        return r;
    }
    the_log.workers = workers;
    return 0;
}

/* Whether everything was written in time. */
static bool log_wait(void)
{
    struct timespec end;
    bool is_written;
    int r = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &end); /* cannot fail for this clock */
    end.tv_sec += STOP_WAIT_SEC;
    (void)pthread_mutex_lock(&the_log.mutex);
    while (the_log.nr_unwritten > 0 && r == 0)
        r = pthread_cond_clockwait(&the_log.written, &the_log.mutex, CLOCK_MONOTONIC, &end);
    is_written = the_log.nr_unwritten == 0;
    (void)pthread_mutex_unlock(&the_log.mutex);
    return is_written;
}

void log_stop(void)
{
    unsigned int nr_left_out = the_log.nr_left_out;
    uint64_t lines;
    uid_t person;

    if (!the_log.worker)
        return;
    while (log_quota_take_sum(&the_log.quota, UINT64_MAX, &person, &lines))
        log_write_sum(person, lines);
    the_log.sums_source = sd_event_source_disable_unref(the_log.sums_source);
    the_log.hangs = !log_wait();
    the_log.nr_left_out = 0; /* no job is to be sent any more */
    the_log.worker = worker_free(the_log.worker);
    (void)workers_free(the_log.workers); /* abandons the lines that were not written */
    if (nr_left_out > 0)
        log_warning("The log did not accept lines: %u lines were dropped.", nr_left_out);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KernelShark's plug-in: an input that reads Xen's traces.
 *
 * KernelShark keeps an entry of 40 bytes for each record: its time, CPU, task and event. It asks
 * for the rest when it shows the record. The `offset` of an entry is the number of its record, by
 * which the reader finds it again.
 *
 * Tasks are those of export/perfetto.c: a domain is a process, a vCPU a thread, and the idle domain
 * is thread 0, as where nobody is known to run.
 *
 * KernelShark searches in several threads: what uses the reader holds the stream's input_mutex,
 * which is for that. Handlers of other plug-ins, which are called while entries are loaded, may
 * read the record's fields.
 *
 * Source: <kernelshark/libkshark.h> of KernelShark 2.2.
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <kernelshark/libkshark.h>

#include "common/util.h"
#include "kernelshark/reader.h"
#include "trace/xentrace.h"

#define CPUS_MAX          16384
#define DOMAIN_IDLE       32767u
#define THREADS_OF_DOMAIN 10000
#define NO_RECORD         (-1)

/* Of <xen/trace.h>. */
#define EVENT_LOST_RECORDS     0x1f001u
#define EVENT_CONTINUE_RUNNING 0x21002u
#define EVENT_RUNSTATE_CHANGE  0x21001u /* and the old runstate << 8, the new one << 4 */

/* A stream's. */
struct shark {
    struct reader *reader;
    int64_t first_nsec; /* when the trace begins */
    bool has_warned;
};

/* KernelShark finds these by their names, for which its headers have no prototypes. */
#define _export_ __attribute__((visibility("default")))
_export_ const char *KSHARK_INPUT_FORMAT(void);
_export_ bool KSHARK_INPUT_CHECK(const char *file);
_export_ int KSHARK_INPUT_INITIALIZER(struct kshark_data_stream *stream);
_export_ int KSHARK_INPUT_DEINITIALIZER(struct kshark_data_stream *stream);

/* --- Events. --- */

/* Lost records are the event for which KernelShark draws marks. */
static int16_t event_id(const struct reader *reader, size_t event)
{
    bool is_lost = strcmp(reader_event(reader, event)->name, "lost_records") == 0;

    return is_lost ? KS_EVENT_OVERFLOW : (int16_t)event;
}

/* False: there is none. */
static bool find_event(const struct reader *reader, int id, size_t *ret_event)
{
    for (size_t i = 0; id == KS_EVENT_OVERFLOW && i < reader_nr_events(reader); i++) {
        if (event_id(reader, i) == KS_EVENT_OVERFLOW) {
            *ret_event = i;
            return true;
        }
    }
    if (id < 0 || (size_t)id >= reader_nr_events(reader))
        return false;
    *ret_event = (size_t)id;
    return true;
}

/* NULL: there is none. */
static const struct reader_event *event_of(const struct reader *reader, int id)
{
    size_t event;

    return find_event(reader, id, &event) ? reader_event(reader, event) : NULL;
}

/* --- Tasks. --- */

static int32_t pid_of(uint32_t vcpu) /* domain << 16 | vCPU */
{
    uint32_t domid = vcpu >> 16;

    if (domid == DOMAIN_IDLE)
        return 0;
    return (int32_t)((domid + 1) * THREADS_OF_DOMAIN + (vcpu & 0xffff) % THREADS_OF_DOMAIN);
}

/*
 * The task of RECORD. *RUNNING is its CPU's, up to now and then from now on; NO_RECORD at first.
 * The records with which a vCPU begins and ends to run are its own.
 */
static int32_t follow_cpu(int32_t *running, const struct xentrace_record *record)
{
    bool is_change = (record->event & ~UINT32_C(0x330)) == EVENT_RUNSTATE_CHANGE;
    uint32_t old = record->event >> 8 & 3, new = record->event >> 4 & 3;
    int32_t pid;

    if (*running == NO_RECORD || record->event == EVENT_LOST_RECORDS)
        *running = 0; /* it is unknown who runs */
    if (record->nr_words == 0 || !(is_change || record->event == EVENT_CONTINUE_RUNNING))
        return *running;
    pid = pid_of(record->words[0]);
    if (!is_change || new == XENTRACE_RUNNING)
        return *running = pid;
    if (old != XENTRACE_RUNNING)
        return *running;
    *running = 0;
    return pid;
}

/* "web.1"; "d5v1" if the domain has no name. */
static char *task_name(const struct xentrace *trace, int pid)
{
    uint32_t domid = (uint32_t)pid / THREADS_OF_DOMAIN - 1,
             vcpu = (uint32_t)pid % THREADS_OF_DOMAIN;
    const char *domain;
    char *name;
    int r;

    if (pid < THREADS_OF_DOMAIN)
        return strdup("idle");
    domain = xentrace_domain_label(trace, domid, 0);
    if (domain)
        r = asprintf(&name, "%s.%" PRIu32, domain, vcpu);
    else
        r = asprintf(&name, "d%" PRIu32 "v%" PRIu32, domid, vcpu);
    return r < 0 ? NULL : name;
}

/* --- Loading. --- */

struct rows {
    struct kshark_entry **rows;
    size_t nr, max;
    int32_t running[CPUS_MAX]; /* follow_cpu() */
};

static void rows_free(struct rows *rows)
{
    for (size_t i = 0; i < rows->nr; i++)
        free(rows->rows[i]);
    free(rows->rows);
}

static struct kshark_entry *rows_add(struct rows *rows)
{
    struct kshark_entry *entry;

    if (rows->nr == rows->max) {
        size_t nr = rows->max > 0 ? 2 * rows->max : 1024;
        struct kshark_entry **larger = reallocarray(rows->rows, nr, sizeof(*larger));

        if (!larger)
            return NULL;
        rows->rows = larger;
        rows->max = nr;
    }
    entry = calloc(1, sizeof(*entry));
    if (entry)
        rows->rows[rows->nr++] = entry;
    return entry;
}

/* The wall clock at the trace's beginning, if it is known; and lengths of time from then on. */
static int64_t entry_time(struct shark *shark, const struct xentrace_record *record, bool is_first)
{
    const struct xentrace *trace = reader_trace(shark->reader);

    if (is_first)
        shark->first_nsec = (int64_t)min_u64(xentrace_realtime_nsec(trace, record->tsc), INT64_MAX);
    return shark->first_nsec +
           (int64_t)min_u64(record->nsec, (uint64_t)(INT64_MAX - shark->first_nsec));
}

static int add_row(struct shark *shark, struct kshark_data_stream *stream,
                   const struct xentrace_record *record, size_t event, struct rows *rows)
{
    struct kshark_entry *entry;

    if (record->cpu >= CPUS_MAX)
        return -EBADMSG; /* the library has no such CPU */
    entry = rows_add(rows);
    if (!entry)
        return -ENOMEM;
    entry->visible = 0xff;
    entry->stream_id = stream->stream_id;
    entry->event_id = event_id(shark->reader, event);
    entry->cpu = (int16_t)record->cpu;
    entry->pid = follow_cpu(&rows->running[record->cpu], record);
    entry->offset = (int64_t)rows->nr - 1;
    entry->ts = entry_time(shark, record, rows->nr == 1);
    if (entry->cpu >= stream->n_cpus)
        stream->n_cpus = entry->cpu + 1;
    kshark_hash_id_add(stream->tasks, entry->pid);
    return 0;
}

/* KernelShark leaves those out that have no records. */
static void add_idle_cpus(struct kshark_data_stream *stream, const struct rows *rows)
{
    for (int cpu = 0; cpu < stream->n_cpus; cpu++)
        if (rows->running[cpu] == NO_RECORD)
            kshark_hash_id_add(stream->idle_cpus, cpu);
}

static int load_rows(struct shark *shark, struct kshark_data_stream *stream,
                     struct kshark_context *context, struct rows *rows)
{
    const struct xentrace_record *record;
    size_t event;
    int r = reader_begin(shark->reader);

    for (size_t i = 0; i < CPUS_MAX; i++)
        rows->running[i] = NO_RECORD;
    while (r >= 0 && (r = reader_next(shark->reader, &record, &event)) > 0) {
        r = add_row(shark, stream, record, event, rows);
        if (r < 0)
            break;
        kshark_postprocess_entry(stream, shark, rows->rows[rows->nr - 1]);
        kshark_apply_filters(context, stream, rows->rows[rows->nr - 1]);
    }
    if (r < 0)
        return r;
    add_idle_cpus(stream, rows);
    stream->n_events = (int)reader_nr_events(shark->reader);
    return 0;
}

/* Says why there may be too few records, or wrong times. */
static void warn_once(struct shark *shark, const char *path)
{
    const struct xentrace *trace = reader_trace(shark->reader);
    uint64_t offset;

    if (shark->has_warned)
        return;
    shark->has_warned = true;
    if (xentrace_damage(trace, &offset) > 0)
        (void)fprintf(stderr,
                      "%s is damaged at offset %" PRIu64 ": what is after it is not shown. To read "
                      "it: xentracectl repair %s\n",
                      path, offset, path);
    if (xentrace_tsc_khz_is_assumed(trace))
        (void)fprintf(stderr,
                      "The TSC frequency of %s is unknown and is assumed to be %" PRIu64
                      " MHz: all times depend on it.\n",
                      path, xentrace_tsc_khz(trace) / 1000);
}

/* --- KernelShark's interface. Texts are the caller's to free. --- */

static struct shark *stream_lock(struct kshark_data_stream *stream)
{
    const struct kshark_generic_stream_interface *interface = stream->interface;

    (void)pthread_mutex_lock(&stream->input_mutex); /* of the default kind: it cannot fail */
    return interface->handle;
}

static void stream_unlock(struct kshark_data_stream *stream)
{
    (void)pthread_mutex_unlock(&stream->input_mutex);
}

static ssize_t load_entries(struct kshark_data_stream *stream, struct kshark_context *context,
                            struct kshark_entry ***ret_rows)
{
    struct shark *shark = stream_lock(stream);
    struct rows rows = {.nr = 0};
    int r = load_rows(shark, stream, context, &rows);

    if (r == 0)
        warn_once(shark, stream->file);
    stream_unlock(stream);
    if (r < 0) {
        rows_free(&rows);
        return r;
    }
    *ret_rows = rows.rows;
    return (ssize_t)rows.nr;
}

static int get_pid(struct kshark_data_stream *stream, const struct kshark_entry *entry)
{
    (void)stream;
    return entry->pid;
}

static int get_event_id(struct kshark_data_stream *stream, const struct kshark_entry *entry)
{
    (void)stream;
    return entry->event_id;
}

static char *get_event_name(struct kshark_data_stream *stream, const struct kshark_entry *entry)
{
    const struct reader_event *event = event_of(stream_lock(stream)->reader, entry->event_id);
    char *name = event ? strdup(event->name) : NULL;

    stream_unlock(stream);
    return name;
}

static char *get_task(struct kshark_data_stream *stream, const struct kshark_entry *entry)
{
    char *name = task_name(reader_trace(stream_lock(stream)->reader), entry->pid);

    stream_unlock(stream);
    return name;
}

static char *get_info(struct kshark_data_stream *stream, const struct kshark_entry *entry)
{
    struct reader *reader = stream_lock(stream)->reader;
    const struct reader_line *line = NULL;
    size_t event;
    char *info;

    if (find_event(reader, entry->event_id, &event))
        line = reader_find(reader, entry->offset, (uint32_t)entry->cpu, event);
    info = line ? strdup(line->info) : NULL;
    stream_unlock(stream);
    return info;
}

static char *dump_entry(struct kshark_data_stream *stream, const struct kshark_entry *entry)
{
    _cleanup_free_ char *task = get_task(stream, entry);
    _cleanup_free_ char *event = get_event_name(stream, entry);
    _cleanup_free_ char *info = get_info(stream, entry);
    char *text;

    if (asprintf(&text, "%" PRIi64 "; %s-%" PRIi32 "; CPU %d; ; %s; %s; 0x%x", entry->ts,
                 task ? task : "", entry->pid, entry->cpu, event ? event : "", info ? info : "",
                 entry->visible) < 0)
        return NULL;
    return text;
}

static int find_event_id(struct kshark_data_stream *stream, const char *name)
{
    const struct reader *reader = stream_lock(stream)->reader;
    int id = -EFAULT; /* KernelShark's "there is none" */

    for (size_t i = 0; i < reader_nr_events(reader) && id == -EFAULT; i++)
        if (strcmp(reader_event(reader, i)->name, name) == 0)
            id = event_id(reader, i);
    stream_unlock(stream);
    return id;
}

static int *get_all_event_ids(struct kshark_data_stream *stream)
{
    const struct reader *reader = stream_lock(stream)->reader;
    size_t nr = reader_nr_events(reader);
    int *ids = calloc(nr + 1, sizeof(*ids));

    for (size_t i = 0; ids && i < nr; i++)
        ids[i] = event_id(reader, i);
    stream_unlock(stream);
    return ids;
}

static char **copy_fields(const struct reader_event *event)
{
    char **names = calloc(event->nr_fields + 1, sizeof(*names));

    for (size_t i = 0; names && i < event->nr_fields; i++) {
        names[i] = strdup(event->fields[i]);
        if (names[i])
            continue;
        while (i > 0)
            free(names[--i]);
        free(names);
        return NULL;
    }
    return names;
}

static int get_field_names(struct kshark_data_stream *stream, const struct kshark_entry *entry,
                           char ***ret_names)
{
    const struct reader_event *event = event_of(stream_lock(stream)->reader, entry->event_id);
    int nr = event ? (int)event->nr_fields : 0;

    *ret_names = nr > 0 ? copy_fields(event) : NULL;
    stream_unlock(stream);
    return nr > 0 && !*ret_names ? -ENOMEM : nr;
}

static kshark_event_field_format get_field_type(struct kshark_data_stream *stream,
                                                const struct kshark_entry *entry, const char *name)
{
    const struct reader_event *event = event_of(stream_lock(stream)->reader, entry->event_id);
    kshark_event_field_format format = KS_INVALID_FIELD;

    for (size_t i = 0; event && i < event->nr_fields; i++)
        if (strcmp(event->fields[i], name) == 0)
            format = KS_INTEGER_FIELD;
    stream_unlock(stream);
    return format;
}

/* RECORD is what load_rows() passed on: the record is the one that was read last. */
static int read_record_field(struct kshark_data_stream *stream, void *record, const char *name,
                             int64_t *ret_value)
{
    const struct shark *shark = record;
    const struct xentrace_field *field = xentrace_field(reader_trace(shark->reader), name);

    (void)stream;
    if (!field)
        return -EINVAL;
    /* Of a vCPU, some events have other bits, too. */
    *ret_value = (int64_t)(field->type == XENTRACE_VCPU ? (uint32_t)field->value : field->value);
    return 0;
}

static int read_event_field(struct kshark_data_stream *stream, const struct kshark_entry *entry,
                            const char *name, int64_t *ret_value)
{
    struct shark *shark = stream_lock(stream);
    size_t event;
    int r = -EFAULT;

    if (find_event(shark->reader, entry->event_id, &event))
        r = reader_stand_at(shark->reader, entry->offset, (uint32_t)entry->cpu, event);
    if (r == 0)
        r = read_record_field(stream, shark, name, ret_value);
    stream_unlock(stream);
    return r;
}

/* --- The plug-in. --- */

const char *KSHARK_INPUT_FORMAT(void)
{
    return "xentrace";
}

bool KSHARK_INPUT_CHECK(const char *file)
{
    const struct xentrace_record *record;
    struct xentrace *trace;
    uint64_t first_tsc;
    bool has_record;

    if (xentrace_open(file, NULL, &trace) < 0)
        return false;
    first_tsc = xentrace_first_tsc(trace);
    if (first_tsc < UINT64_MAX) /* so that little of it is read; of what is read once, this fails */
        (void)xentrace_select(trace, 0, first_tsc + 1);
    has_record = xentrace_next(trace, &record) > 0;
    xentrace_close(trace);
    return has_record;
}

/* Results of KernelShark's types are `const`, for which compilers would warn of functions. */
static void fill_interface(struct kshark_generic_stream_interface *interface, struct shark *shark)
{
    *interface = (struct kshark_generic_stream_interface){
        .type = KS_GENERIC_DATA_INTERFACE,
        .get_pid = (stream_get_int_func)get_pid,
        .get_event_id = (stream_get_int_func)get_event_id,
        .get_event_name = get_event_name,
        .get_task = get_task,
        .get_info = get_info,
        .find_event_id = find_event_id,
        .get_all_event_ids = get_all_event_ids,
        .dump_entry = dump_entry,
        .get_all_event_field_names = get_field_names,
        .get_event_field_type = get_field_type,
        .read_event_field_int64 = (stream_read_event_field)read_event_field,
        .read_record_field_int64 = (stream_read_record_field)read_record_field,
        .load_entries = load_entries,
        .handle = shark,
    };
}

/* KernelShark frees the interface itself. */
int KSHARK_INPUT_INITIALIZER(struct kshark_data_stream *stream)
{
    void *interface = calloc(1, sizeof(struct kshark_generic_stream_interface));
    struct shark *shark = calloc(1, sizeof(*shark));
    int r = interface && shark ? reader_new(stream->file, &shark->reader) : -ENOMEM;

    if (r < 0) {
        free(interface);
        free(shark);
        return r;
    }
    fill_interface(interface, shark);
    stream->interface = interface;
    stream->idle_pid = 0;
    return 0;
}

int KSHARK_INPUT_DEINITIALIZER(struct kshark_data_stream *stream)
{
    struct kshark_generic_stream_interface *interface = stream->interface;
    struct shark *shark = interface ? interface->handle : NULL;

    if (!shark)
        return -EFAULT;
    reader_free(shark->reader);
    free(shark);
    interface->handle = NULL;
    return 0;
}

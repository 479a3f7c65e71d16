// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A trace as KernelShark sees it: what its window does with a plug-in, without the window. Made for
 * test-kernelshark.
 *
 * kshark-list PLUGIN FILE [ACTION]:
 *
 *     (none)    each entry: time, CPU, task's number, task, event, info
 *     dump      each entry, as KernelShark prints it
 *     shuffled  as without an action, but asked for in another order, by several threads
 *     fields    each entry's field `vcpu`, as it is loaded; then all fields of each
 *     stream    CPUs, those without records, tasks, events and their fields, CPUs with marks
 *     again     the bytes that are allocated, each time that it was closed
 *
 * Exit status: 3 if no input takes the file.
 */

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kernelshark/libkshark-model.h>
#include <kernelshark/libkshark.h>

#define THREADS 4
#define TIMES   6
#define BINS    1000

static const char *arg_plugin, *arg_file;

struct list {
    struct kshark_context *context;
    int stream;
    struct kshark_entry **rows;
    ssize_t nr;
};

static void load(struct list *list)
{
    list->nr = kshark_load_entries(list->context, list->stream, &list->rows);
    if (list->nr < 0) {
        fprintf(stderr, "load: %s\n", strerror((int)-list->nr));
        exit(1);
    }
}

static void unload(struct list *list)
{
    for (ssize_t i = 0; i < list->nr; i++)
        free(list->rows[i]);
    free(list->rows);
    list->nr = 0;
}

static void open_list(struct list *list)
{
    list->stream = kshark_open(list->context, arg_file);
    if (list->stream >= 0)
        return;
    fprintf(stderr, "open: %s\n", strerror(-list->stream));
    exit(3);
}

/* --- Entries. --- */

static void print_text(char *text, char after)
{
    printf("%s%c", text ? text : "(none)", after);
    free(text);
}

static void print_entry(const struct kshark_entry *entry, char *info)
{
    printf("%" PRIi64 "\t%d\t%d\t", entry->ts, entry->cpu, kshark_get_pid(entry));
    print_text(kshark_get_task(entry), '\t');
    print_text(kshark_get_event_name(entry), '\t');
    print_text(info, '\n');
}

static void print_entries(const struct list *list)
{
    for (ssize_t i = 0; i < list->nr; i++)
        print_entry(list->rows[i], kshark_get_info(list->rows[i]));
}

static void dump_entries(const struct list *list)
{
    for (ssize_t i = 0; i < list->nr; i++)
        print_text(kshark_dump_entry(list->rows[i]), '\n');
}

/* --- In another order. --- */

struct search {
    pthread_t thread;
    const struct list *list;
    ssize_t first;
    char **infos;
};

/* A prime number of steps: all entries of this thread, runs of 50 of them after one another. */
static void *search(void *argument)
{
    const struct search *search = argument;
    ssize_t runs = search->list->nr / 50 + 1;

    for (ssize_t i = search->first; i < runs; i += THREADS) {
        ssize_t run = (ssize_t)((uint64_t)i * 7919 % (uint64_t)runs);

        for (ssize_t j = run * 50; j < run * 50 + 50 && j < search->list->nr; j++)
            if (!search->infos[j])
                search->infos[j] = kshark_get_info(search->list->rows[j]);
    }
    return NULL;
}

static void print_shuffled(const struct list *list)
{
    char **infos = calloc((size_t)list->nr + 1, sizeof(*infos));
    struct search searches[THREADS];

    for (int i = 0; i < THREADS; i++) {
        searches[i] = (struct search){.list = list, .first = i, .infos = infos};
        pthread_create(&searches[i].thread, NULL, search, &searches[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(searches[i].thread, NULL);
    for (ssize_t i = list->nr - 1; i >= 0; i--)
        if (!infos[i])
            infos[i] = kshark_get_info(list->rows[i]);
    for (ssize_t i = 0; i < list->nr; i++)
        print_entry(list->rows[i], infos[i]);
    free(infos);
}

/* --- Fields. --- */

static void print_fields(const struct kshark_entry *entry)
{
    char **names;
    int nr = kshark_get_all_event_field_names(entry, &names);
    int64_t value;

    printf("fields");
    for (int i = 0; i < nr; i++) {
        if (kshark_read_event_field_int(entry, names[i], &value) == 0)
            printf("\t%s=%" PRIi64, names[i], value);
        free(names[i]);
    }
    if (nr > 0)
        free(names);
    printf("\n");
}

/* As KernelShark's plug-in for latencies does it. */
static void on_event(struct kshark_data_stream *stream, void *record, struct kshark_entry *entry)
{
    int64_t value;

    if (kshark_read_record_field_int(stream, record, "vcpu", &value) == 0)
        printf("vcpu\t%" PRIi64 "\t%" PRIi64 "\n", entry->offset, value);
}

/* Loaded again: events are known by then, as when a plug-in of KernelShark is configured. */
static void print_all_fields(struct list *list)
{
    struct kshark_data_stream *stream = kshark_get_data_stream(list->context, list->stream);
    int *ids = kshark_get_all_event_ids(stream);

    for (int i = 0; i < stream->n_events; i++)
        kshark_register_event_handler(stream, ids[i], on_event);
    free(ids);
    unload(list);
    load(list);
    kshark_free_event_handler_list(stream->event_handlers);
    stream->event_handlers = NULL;
    for (ssize_t i = 0; i < list->nr; i++)
        print_fields(list->rows[i]);
}

/* --- The stream. --- */

static void print_ids(const char *name, int *ids, ssize_t nr)
{
    printf("%s", name);
    for (ssize_t i = 0; i < nr; i++)
        printf("\t%d", ids[i]);
    printf("\n");
    free(ids);
}

static void print_event(int stream, int id)
{
    struct kshark_entry probe = {.stream_id = (int16_t)stream, .event_id = (int16_t)id};
    char **names, *name = kshark_event_from_id(stream, id);
    int nr = kshark_get_all_event_field_names(&probe, &names);

    printf("event\t%d\t%s", id, name);
    if (id >= 0 && kshark_find_event_id(kshark_get_stream_from_entry(&probe), name) != id)
        printf("\tnot found");
    for (int i = 0; i < nr; i++) {
        printf("\t%s%s", names[i],
               kshark_get_event_field_type(&probe, names[i]) == KS_INTEGER_FIELD ? "" : "?");
        free(names[i]);
    }
    printf("\n");
    if (nr > 0)
        free(names);
    free(name);
}

/* Of losses, in the plots of CPUs: as its window and its plug-in for missed events do it. */
static void print_marks(const struct list *list, int nr_cpus)
{
    struct kshark_trace_histo plot;

    ksmodel_init(&plot);
    ksmodel_set_bining(&plot, BINS, list->rows[0]->ts, list->rows[list->nr - 1]->ts);
    ksmodel_fill(&plot, list->rows, (size_t)list->nr);
    for (int cpu = 0; cpu < nr_cpus; cpu++)
        for (int bin = 0; bin < BINS; bin++)
            if (ksmodel_get_cpu_missed_events(&plot, bin, list->stream, cpu, NULL, NULL))
                printf("mark\t%d\n", cpu);
    ksmodel_clear(&plot);
}

static void print_stream(const struct list *list)
{
    struct kshark_data_stream *stream = kshark_get_data_stream(list->context, list->stream);
    int *ids, *pids;
    ssize_t nr = kshark_get_task_pids(list->context, list->stream, &pids);

    printf("format\t%s\n", stream->data_format);
    printf("cpus\t%d\n", stream->n_cpus);
    print_ids("idle", kshark_hash_ids(stream->idle_cpus), (ssize_t)stream->idle_cpus->count);
    for (ssize_t i = 0; i < nr; i++) {
        printf("task\t%d\t", pids[i]);
        print_text(kshark_comm_from_pid(list->stream, pids[i]), '\n');
    }
    free(pids);
    ids = kshark_get_all_event_ids(stream);
    for (int i = 0; i < stream->n_events; i++)
        print_event(list->stream, ids[i]);
    free(ids);
    print_marks(list, stream->n_cpus);
}

static void print_again(struct list *list)
{
    for (int i = 0; i < TIMES; i++) {
        unload(list);
        load(list);
        for (ssize_t j = 0; j < list->nr; j++)
            free(kshark_get_info(list->rows[j]));
        unload(list);
        kshark_close(list->context, list->stream);
        printf("%zu\n", mallinfo2().uordblks);
        open_list(list);
        load(list);
    }
}

int main(int argc, char **argv)
{
    struct list list = {0};
    const char *action = argc > 3 ? argv[3] : "";

    if (argc < 3)
        return 2;
    arg_plugin = argv[1];
    arg_file = argv[2];
    if (!kshark_instance(&list.context) ||
        !kshark_register_plugin(list.context, "xentrace", arg_plugin))
        return 1;
    open_list(&list);
    load(&list);
    if (strcmp(action, "dump") == 0)
        dump_entries(&list);
    else if (strcmp(action, "shuffled") == 0)
        print_shuffled(&list);
    else if (strcmp(action, "fields") == 0)
        print_all_fields(&list);
    else if (strcmp(action, "stream") == 0)
        print_stream(&list);
    else if (strcmp(action, "again") == 0)
        print_again(&list);
    else
        print_entries(&list);
    unload(&list);
    kshark_close(list.context, list.stream);
    kshark_free(list.context);
    return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The library finds records by their times, and several records may have the same. So they are
 * counted: each MARK_RECORDS records there is a mark, a number and the time from which the trace is
 * read to find it. The lines around those that were asked for last are kept, in pages. Marks are 16
 * bytes for MARK_RECORDS records; all else does not grow with the trace.
 *
 * A trace with damaged clocks may be in another order when it is read from a mark. Then a record is
 * on another CPU or another event than it was, and the marks are given up. A trace that is
 * compressed without a seek table has no marks either: it is opened again to go back.
 */

#include "kernelshark/reader.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define MARK_RECORDS 4096
#define PAGE_LINES   256
#define PAGES        16    /* KernelShark searches in several threads */
#define NUMBERS_MAX  16384 /* of events; only damaged traces have more */

struct mark {
    int64_t number;
    uint64_t tsc;
};

static const struct mark first_mark = {.number = 0, .tsc = 0};
static const struct mark last_mark = {.number = INT64_MAX, .tsc = UINT64_MAX};

struct page {
    int64_t first; /* its first record; -1: it is free */
    uint64_t last_used;
    size_t nr_lines;
    struct reader_line lines[PAGE_LINES];
};

/* A number of an event. */
struct slot {
    uint32_t number;
    uint16_t event; /* plus 1; 0: the slot is free */
};

struct reader {
    char *path;
    struct xentrace *trace;
    const struct xentrace_record *record;
    int64_t next; /* the number of the record that the trace has next; INT64_MAX: it has ended */
    int64_t end;  /* of the part that is read: the number after its last record */

    struct mark *marks;
    size_t nr_marks, max_marks;
    uint64_t last_tsc; /* of the record before, for marks */

    struct reader_event *events;
    size_t nr_events, max_events;
    size_t nr_numbers;
    struct slot slots[2 * NUMBERS_MAX]; /* open addressing */

    uint64_t clock; /* of last_used */
    struct page pages[PAGES];
};

/* --- Events. --- */

/* TEXT without its first words, which spaces separate. */
static const char *skip_words(const char *text, unsigned int words)
{
    for (; words > 0; words--) {
        const char *space = strchr(text, ' ');

        if (!space)
            return "";
        text = space + 1;
    }
    return text;
}

static int event_add_field(struct reader_event *event, const char *name)
{
    char **fields;

    for (size_t i = 0; i < event->nr_fields; i++)
        if (strcmp(event->fields[i], name) == 0)
            return 0;
    fields = reallocarray(event->fields, event->nr_fields + 1, sizeof(*fields));
    if (!fields)
        return -ENOMEM;
    event->fields = fields;
    fields[event->nr_fields] = strdup(name);
    if (!fields[event->nr_fields])
        return -ENOMEM;
    event->nr_fields++;
    return 0;
}

/* Those of the record that was read last. Records of one event may have different ones. */
static int reader_add_fields(struct reader *reader, struct reader_event *event)
{
    const struct xentrace_field *fields;
    size_t nr = xentrace_fields(reader->trace, &fields);
    int r = 0;

    for (size_t i = 0; i < nr && r == 0; i++)
        if (i >= event->nr_fields || strcmp(event->fields[i], fields[i].name) != 0)
            r = event_add_field(event, fields[i].name);
    return r;
}

/* Takes NAME. */
static int reader_add_event(struct reader *reader, char *name, size_t *ret_event)
{
    if (reader->nr_events == reader->max_events) {
        size_t nr = reader->max_events > 0 ? 2 * reader->max_events : 64;
        struct reader_event *events = reallocarray(reader->events, nr, sizeof(*events));

        if (!events) {
            free(name);
            return -ENOMEM;
        }
        reader->events = events;
        reader->max_events = nr;
    }
    *ret_event = reader->nr_events++;
    reader->events[*ret_event] = (struct reader_event){.name = name};
    return 0;
}

/* The event that has the name of the record that was read last. */
static int reader_name_event(struct reader *reader, size_t *ret_event)
{
    const char *text = skip_words(xentrace_text(reader->trace), 2); /* the time, the CPU */
    bool is_last = reader->nr_numbers == NUMBERS_MAX - 1;
    char *name = is_last ? strdup("other") : strndup(text, strcspn(text, " "));

    if (!name)
        return -ENOMEM;
    for (size_t i = 0; i < reader->nr_events; i++) {
        if (strcmp(reader->events[i].name, name) == 0) {
            free(name);
            *ret_event = i;
            return 0;
        }
    }
    return reader_add_event(reader, name, ret_event);
}

/* That of the record that was read last. */
static int reader_find_event(struct reader *reader, size_t *ret_event)
{
    const struct xentrace_record *record = reader->record;
    uint32_t at = record->event * UINT32_C(2654435761) >> 8;
    struct slot *slot = &reader->slots[at % ARRAY_SIZE(reader->slots)];
    int r;

    while (slot->event > 0 && slot->number != record->event)
        slot = &reader->slots[++at % ARRAY_SIZE(reader->slots)];
    if (slot->event == 0 && reader->nr_numbers == NUMBERS_MAX) {
        *ret_event = reader->nr_events - 1; /* "other", the last one */
        return 0;
    }
    if (slot->event == 0) {
        r = reader_name_event(reader, ret_event);
        if (r < 0)
            return r;
        *slot = (struct slot){.number = record->event, .event = (uint16_t)(*ret_event + 1)};
        reader->nr_numbers++;
    }
    *ret_event = slot->event - 1u;
    return 0;
}

size_t reader_nr_events(const struct reader *reader)
{
    return reader->nr_events;
}

const struct reader_event *reader_event(const struct reader *reader, size_t event)
{
    return &reader->events[event];
}

/* --- Reading by number. --- */

/* 1; 0 at the end of the part or the trace; or a negative errno. */
static int reader_read(struct reader *reader)
{
    int r = xentrace_next(reader->trace, &reader->record);

    reader->next = r > 0 ? reader->next + 1 : INT64_MAX;
    return r;
}

static int reader_reopen(struct reader *reader)
{
    struct xentrace *trace;
    int r = xentrace_open(reader->path, NULL, &trace);

    if (r < 0)
        return r;
    xentrace_close(reader->trace);
    reader->trace = trace;
    return 0;
}

/* Continues with the record at FROM, as far as the one before UNTIL. */
static int reader_select(struct reader *reader, struct mark from, struct mark until)
{
    int r = xentrace_select(reader->trace, from.tsc, until.tsc);

    reader->next = INT64_MAX; /* unless it succeeds */
    if (r == -ESPIPE) {
        r = reader_reopen(reader);
        from = first_mark;
        until = last_mark;
    }
    if (r < 0)
        return r;
    reader->next = from.number;
    reader->end = until.number;
    return 0;
}

/* Continues with the mark before record NUMBER. */
static int reader_seek(struct reader *reader, int64_t number)
{
    size_t low = 0, high = reader->nr_marks; /* of the first mark after it */

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (reader->marks[middle].number <= number)
            low = middle + 1;
        else
            high = middle;
    }
    return reader_select(reader, low > 0 ? reader->marks[low - 1] : first_mark,
                         low < reader->nr_marks ? reader->marks[low] : last_mark);
}

/* Record NUMBER is the one that was read last. */
static int reader_go_to(struct reader *reader, int64_t number)
{
    int r = 0;

    if (number < 0)
        return -ENODATA;
    if (number < reader->next - 1 || number >= reader->end)
        r = reader_seek(reader, number);
    while (r >= 0 && reader->next <= number) {
        r = reader_read(reader);
        if (r == 0)
            r = -ENODATA;
    }
    return r < 0 ? r : 0;
}

/* Of the record that was read last, if it is time for one: the first of those with its time. */
static int reader_add_mark(struct reader *reader)
{
    struct mark mark = {.number = reader->next - 1, .tsc = reader->record->tsc};
    int64_t last = reader->nr_marks > 0 ? reader->marks[reader->nr_marks - 1].number : 0;
    bool is_first = mark.tsc > reader->last_tsc;

    reader->last_tsc = mark.tsc;
    if (mark.number - last < MARK_RECORDS || !is_first)
        return 0;
    if (reader->nr_marks == reader->max_marks) {
        size_t nr = reader->max_marks > 0 ? 2 * reader->max_marks : 64;
        struct mark *marks = reallocarray(reader->marks, nr, sizeof(*marks));

        if (!marks)
            return -ENOMEM;
        reader->marks = marks;
        reader->max_marks = nr;
    }
    reader->marks[reader->nr_marks++] = mark;
    return 0;
}

/* --- Lines. --- */

static void page_clear(struct page *page)
{
    for (size_t i = 0; i < page->nr_lines; i++)
        free(page->lines[i].info);
    page->nr_lines = 0;
    page->first = -1;
}

static void reader_clear_pages(struct reader *reader)
{
    for (size_t i = 0; i < PAGES; i++)
        page_clear(&reader->pages[i]);
}

/* Of the record that was read last. */
static int reader_make_line(struct reader *reader, struct reader_line *ret_line)
{
    size_t event;
    int r = reader_find_event(reader, &event);
    char *info;

    if (r < 0)
        return r;
    info = strdup(skip_words(xentrace_text(reader->trace), 3)); /* the time, the CPU, the name */
    if (!info)
        return -ENOMEM;
    *ret_line = (struct reader_line){.info = info, .cpu = reader->record->cpu, .event = event};
    return 0;
}

static int reader_fill_page(struct reader *reader, struct page *page, int64_t first)
{
    int r = 0;

    page_clear(page);
    for (int64_t i = 0; i < PAGE_LINES; i++) {
        r = reader_go_to(reader, first + i);
        if (r == 0)
            r = reader_make_line(reader, &page->lines[i]);
        if (r < 0)
            break;
        page->nr_lines++;
    }
    page->first = first;
    return r == -ENODATA ? 0 : r; /* the trace ends here */
}

static const struct reader_line *reader_line(struct reader *reader, int64_t number)
{
    int64_t first = number - number % PAGE_LINES;
    struct page *oldest = &reader->pages[0], *page = NULL;

    for (size_t i = 0; i < PAGES; i++) {
        if (reader->pages[i].first == first)
            page = &reader->pages[i];
        if (reader->pages[i].last_used < oldest->last_used)
            oldest = &reader->pages[i];
    }
    if (!page) {
        page = oldest;
        if (reader_fill_page(reader, page, first) < 0) {
            page_clear(page);
            return NULL;
        }
    }
    page->last_used = ++reader->clock;
    return number - first < (int64_t)page->nr_lines ? &page->lines[number - first] : NULL;
}

const struct reader_line *reader_find(struct reader *reader, int64_t number, uint32_t cpu,
                                      size_t event)
{
    const struct reader_line *line = reader_line(reader, number);

    if ((line && line->cpu == cpu && line->event == event) || reader->nr_marks == 0)
        return line;
    reader->nr_marks = 0;
    reader->next = INT64_MAX;
    reader_clear_pages(reader);
    return reader_line(reader, number);
}

int reader_stand_at(struct reader *reader, int64_t number, uint32_t cpu, size_t event)
{
    return reader_find(reader, number, cpu, event) ? reader_go_to(reader, number) : -ENODATA;
}

/* --- The reader. --- */

struct xentrace *reader_trace(struct reader *reader)
{
    return reader->trace;
}

int reader_begin(struct reader *reader)
{
    reader->nr_marks = 0;
    reader->last_tsc = 0;
    reader_clear_pages(reader);
    return reader->next == 0 ? 0 : reader_select(reader, first_mark, last_mark);
}

int reader_next(struct reader *reader, const struct xentrace_record **ret_record, size_t *ret_event)
{
    int r = reader_read(reader);

    if (r <= 0)
        return r;
    r = reader_add_mark(reader);
    if (r < 0)
        return r;
    r = reader_find_event(reader, ret_event);
    if (r == 0)
        r = reader_add_fields(reader, &reader->events[*ret_event]);
    if (r < 0)
        return r;
    *ret_record = reader->record;
    return 1;
}

struct reader *reader_free(struct reader *reader)
{
    if (!reader)
        return NULL;
    reader_clear_pages(reader);
    for (size_t i = 0; i < reader->nr_events; i++) {
        for (size_t j = 0; j < reader->events[i].nr_fields; j++)
            free(reader->events[i].fields[j]);
        free(reader->events[i].fields);
        free(reader->events[i].name);
    }
    free(reader->events);
    free(reader->marks);
    xentrace_close(reader->trace);
    free(reader->path);
    free(reader);
    return NULL;
}

static void reader_freep(struct reader **reader)
{
    reader_free(*reader);
}

int reader_new(const char *path, struct reader **ret_reader)
{
    _cleanup_(reader_freep) struct reader *reader = calloc(1, sizeof(*reader));
    int r;

    if (!reader)
        return -ENOMEM;
    reader_clear_pages(reader);
    reader->end = INT64_MAX;
    reader->path = strdup(path);
    if (!reader->path)
        return -ENOMEM;
    r = xentrace_open(path, NULL, &reader->trace);
    if (r < 0)
        return r;
    *ret_reader = TAKE_PTR(reader);
    return 0;
}

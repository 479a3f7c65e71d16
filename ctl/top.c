// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Percentiles need each wait, so the rows of domains are made with those of their vCPUs, while the
 * waits are there. The picture and the table have the same cells.
 */

#include "ctl/top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "ctl/args-table.h"
#include "ctl/frame.h"
#include "ctl/input.h"
#include "ctl/number.h"
#include "ctl/screen.h"
#include "ctl/table.h"
#include "trace/activity.h"
#include "trace/source.h"

#define LABEL_COLS     11u /* of the fields above the table, as of those of the other pages */
#define NAME_COLS      17u /* at least */
#define NAME_COLS_MAX  40u
#define ROW_COLS       80u /* with a name of NAME_COLS */
#define CELL_MAX       INPUT_TEXT_MAX
#define LONG_WAIT_NSEC (10 * NSEC_PER_SEC / 1000) /* as a finding of report */
#define GAP_MSEC       20u /* between two seconds that are taken to follow each other */

/* --- Names. --- */

/* Of the domains of a document. */
struct name {
    uint32_t domid;
    uint64_t last_seen_ns;
    const char *text, *uuid; /* "": unknown */
};

struct names {
    struct name *list;
    size_t nr;
};

static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;

    if (x->domid != y->domid)
        return x->domid < y->domid ? -1 : 1;
    return (x->last_seen_ns < y->last_seen_ns) - (x->last_seen_ns > y->last_seen_ns);
}

/* The newest name of each domain comes first. */
static int names_read(struct names *names, struct json_object *doc)
{
    struct json_object *domains = doc_array(doc, "domains");
    size_t max = doc_length(domains);

    *names = (struct names){.list = calloc(max + 1, sizeof(*names->list))};
    if (!names->list)
        return -ENOMEM;
    for (size_t i = 0; i < max; i++) {
        struct json_object *domain = doc_at(domains, i);
        names->list[names->nr++] =
            (struct name){(uint32_t)doc_number(domain, "domid"), doc_number(domain, "last_seen_ns"),
                          doc_text(domain, "name", ""), doc_text(domain, "uuid", "")};
    }
    qsort(names->list, names->nr, sizeof(*names->list), compare_names);
    return 0;
}

static struct name names_find(const struct names *names, uint32_t domid)
{
    const struct name unknown = {.domid = domid, .text = "", .uuid = ""};
    size_t low = 0, high = names->nr;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (names->list[middle].domid < domid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < names->nr && names->list[low].domid == domid ? names->list[low] : unknown;
}

/* --- Figures. --- */

static int compare_vcpus(const void *a, const void *b)
{
    const struct state_vcpu *x = *(struct state_vcpu *const *)a;
    const struct state_vcpu *y = *(struct state_vcpu *const *)b;

    return (x->key > y->key) - (x->key < y->key);
}

static void fill_vcpu(struct top *top, struct top_row *row, const struct state_vcpu *vcpu)
{
    struct activity_vcpu *activity = activity_of(vcpu);

    row->running = vcpu->cycles[STATE_RUNNING];
    row->runnable = vcpu->cycles[STATE_RUNNABLE];
    row->migrations = vcpu->migrations;
    if (vcpu->runstate == STATE_RUNNABLE)
        row->open = row->waits_since = top->last_tsc - vcpu->since;
    if (!activity)
        return;
    row->waits = activity->waits.count;
    row->p99 = sample_percentile(&activity->waits, 99, 100);
    row->most = activity->waits.most;
    row->wakes = activity->wakes;
    row->exits = activity->exits;
    top->has_exits = top->has_exits || row->exits > 0;
}

static void domain_add(struct top_row *domain, const struct top_row *vcpu)
{
    domain->nr_vcpus++;
    domain->running += vcpu->running;
    domain->runnable += vcpu->runnable;
    domain->migrations += vcpu->migrations;
    domain->waits += vcpu->waits;
    domain->most = max_u64(domain->most, vcpu->most);
    domain->wakes += vcpu->wakes;
    domain->exits += vcpu->exits;
    domain->waits_since = max_u64(domain->waits_since, vcpu->waits_since);
    domain->open += vcpu->open;
}

static int sample_add_all(struct sample *sample, struct sample_budget *budget,
                          const struct state_vcpu *vcpu)
{
    const struct activity_vcpu *activity = activity_of(vcpu);
    int r = 0;

    for (size_t i = 0; activity && i < activity->waits.nr_values && r == 0; i++)
        r = sample_add(sample, budget, activity->waits.values[i]);
    return r;
}

/* Rows of the NR vCPUs of one domain, and of it. */
static int top_add_domain(struct top *top, struct state_vcpu **vcpus, size_t nr, struct name name)
{
    struct sample_budget budget = {.left = SAMPLE_VALUES};
    struct top_row *domain = &top->domains[top->nr_domains++];
    struct sample waits = {0};
    int r = 0;

    *domain = (struct top_row){.domid = vcpus[0]->key >> 16,
                               .vcpu = TOP_WHOLE_DOMAIN,
                               .name = name.text,
                               .uuid = name.uuid};
    for (size_t i = 0; i < nr && r == 0; i++) {
        struct top_row *row = &top->vcpus[top->nr_vcpus++];

        *row = (struct top_row){.domid = domain->domid,
                                .vcpu = vcpus[i]->key & 0xffff,
                                .nr_vcpus = 1,
                                .name = name.text,
                                .uuid = name.uuid};
        fill_vcpu(top, row, vcpus[i]);
        domain_add(domain, row);
        if (nr > 1)
            r = sample_add_all(&waits, &budget, vcpus[i]);
    }
    domain->p99 = nr > 1 ? sample_percentile(&waits, 99, 100) : top->vcpus[top->nr_vcpus - 1].p99;
    sample_done(&waits);
    return r;
}

static int top_add_rows(struct top *top, struct state *state)
{
    struct names names = {0};
    int r;

    top->vcpus = calloc(state->nr_vcpus + 1u, sizeof(*top->vcpus));
    top->domains = calloc(state->nr_vcpus + 1u, sizeof(*top->domains));
    if (!top->vcpus || !top->domains)
        return -ENOMEM;
    r = names_read(&names, top->doc);
    qsort(state->vcpus, state->nr_vcpus, sizeof(struct state_vcpu *), compare_vcpus);
    for (size_t i = 0, next; i < state->nr_vcpus && r == 0; i = next) {
        uint32_t domid = state->vcpus[i]->key >> 16;

        for (next = i + 1; next < state->nr_vcpus && state->vcpus[next]->key >> 16 == domid;)
            next++;
        if (domid < STATE_DOMAIN_IDLE)
            r = top_add_domain(top, state->vcpus + i, next - i, names_find(&names, domid));
    }
    free(names.list);
    return r;
}

static int compare_cpus(const void *a, const void *b)
{
    const struct top_cpu *x = a, *y = b;

    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static int top_add_cpus(struct top *top, const struct activity *activity)
{
    const struct state *state = &activity->state;

    top->cpus = calloc(state->nr_cpus + 1u, sizeof(*top->cpus));
    if (!top->cpus)
        return -ENOMEM;
    for (unsigned int i = 0; i < state->nr_cpus; i++) {
        top->cpus[top->nr_cpus++] = (struct top_cpu){
            .cpu = merge_cpu_of(activity->merge, i),
            .busy = state->cpus[i].busy_cycles,
            .idle = state->cpus[i].idle_cycles,
        };
        top->busy += state->cpus[i].busy_cycles;
    }
    qsort(top->cpus, top->nr_cpus, sizeof(*top->cpus), compare_cpus);
    return 0;
}

static int top_fill(struct top *top, struct activity *activity)
{
    int r;

    if (activity->records == 0)
        return -ENODATA;
    top->first_tsc = activity->first_tsc;
    top->last_tsc = activity->last_tsc;
    top->records = activity->records;
    top->gaps = activity->gaps;
    top->lost = activity->lost;
    r = top_add_rows(top, &activity->state);
    return r < 0 ? r : top_add_cpus(top, activity);
}

static int top_read(struct top *top, const void *data, size_t bytes)
{
    _cleanup_activity_ struct activity *activity = NULL;
    struct source *source;
    struct merge merge;
    int r;

    r = source_new_memory(data, bytes, &source);
    if (r < 0)
        return r;
    r = merge_init(&merge, source, MERGE_ALL);
    if (r == 0)
        r = activity_new(&merge, &activity);
    if (r == 0)
        r = top_fill(top, activity);
    merge_done(&merge);
    source_free(source);
    return r;
}

int top_new(const void *data, size_t bytes, struct json_object *doc, struct top **ret_top)
{
    _cleanup_top_ struct top *top = calloc(1, sizeof(*top));
    int r;

    if (!top)
        return -ENOMEM;
    top->doc = json_object_get(doc);
    top->khz = doc_number(doc, "host.tsc_khz");
    top->khz_is_assumed = top->khz == 0;
    if (top->khz_is_assumed)
        top->khz = INPUT_ASSUMED_KHZ;
    top->bytes = bytes;
    r = top_read(top, data, bytes);
    if (r < 0)
        return r;
    *ret_top = TAKE_PTR(top);
    return 0;
}

static struct top_row *find_row(struct top_row *rows, size_t nr, const struct top_row *wanted)
{
    for (size_t i = 0; i < nr; i++)
        if (rows[i].domid == wanted->domid && rows[i].vcpu == wanted->vcpu)
            return &rows[i];
    return NULL;
}

/* Appends ROW to the NR rows. */
static struct top_row *append(struct top_row **rows, size_t *nr, struct top_row row)
{
    struct top_row *more = reallocarray(*rows, *nr + 1, sizeof(*more));

    if (!more)
        return NULL;
    *rows = more;
    more[*nr] = row;
    return &more[(*nr)++];
}

static int top_add_waiting(struct top *top, const struct top_row *vcpu, uint64_t waits_since,
                           struct name name)
{
    struct top_row row = {.domid = vcpu->domid,
                          .vcpu = vcpu->vcpu,
                          .nr_vcpus = 1,
                          .name = name.text,
                          .uuid = name.uuid,
                          .waits_since = waits_since,
                          .open = min_u64(waits_since, top->last_tsc - top->first_tsc)};
    struct top_row whole = {
        .domid = vcpu->domid, .vcpu = TOP_WHOLE_DOMAIN, .name = name.text, .uuid = name.uuid};
    struct top_row *domain = find_row(top->domains, top->nr_domains, &whole);

    if (!domain)
        domain = append(&top->domains, &top->nr_domains, whole);
    if (!domain || !append(&top->vcpus, &top->nr_vcpus, row))
        return -ENOMEM;
    domain_add(domain, &row);
    return 0;
}

int top_follow(struct top *top, const struct top *before)
{
    struct names names;
    int r;

    /* In a time in between that nobody has seen, it may have run. */
    if (!before || top->gaps > 0 || top->last_tsc <= before->last_tsc ||
        top->first_tsc > before->last_tsc + top->khz * GAP_MSEC)
        return 0;
    r = names_read(&names, top->doc);
    for (size_t i = 0; i < before->nr_vcpus && r == 0; i++) {
        const struct top_row *vcpu = &before->vcpus[i];

        if (vcpu->waits_since > 0 && !find_row(top->vcpus, top->nr_vcpus, vcpu))
            r = top_add_waiting(top, vcpu, vcpu->waits_since + top->last_tsc - before->last_tsc,
                                names_find(&names, vcpu->domid));
    }
    free(names.list);
    return r;
}

struct top *top_free(struct top *top)
{
    if (!top)
        return NULL;
    top->doc = doc_free(top->doc);
    free(top->domains);
    free(top->vcpus);
    free(top->cpus);
    free(top);
    return NULL;
}

static uint64_t top_span(const struct top *top)
{
    return max_u64(top->last_tsc - top->first_tsc, 1);
}

static double percent(const struct top *top, uint64_t ticks)
{
    return 100.0 * (double)ticks / (double)top_span(top);
}

static uint64_t per_second(const struct top *top, uint64_t count)
{
    unsigned __int128 ticks = (unsigned __int128)top->khz * 1000;

    return (uint64_t)((ticks * count + top_span(top) / 2) / top_span(top));
}

static uint64_t top_nsec(const struct top *top, uint64_t ticks)
{
    return input_nsec(&(struct input){.tsc_khz = top->khz}, ticks);
}

static const char *format_span(const struct top *top, char text[static CELL_MAX], uint64_t ticks)
{
    return input_span(&(struct input){.tsc_khz = top->khz}, text, ticks);
}

/* --- Columns. --- */

typedef void (*cell_fn)(const struct top *top, const struct top_row *row,
                        char text[static CELL_MAX]);

static void cell_name(const struct top *top, const struct top_row *row, char text[static CELL_MAX])
{
    (void)top;
    if (*row->name)
        (void)snprintf(text, CELL_MAX, "%.*s", (int)CELL_MAX - 1, row->name);
    else
        (void)snprintf(text, CELL_MAX, "d%" PRIu32, row->domid);
}

/* Of a domain: how many. */
static void cell_vcpu(const struct top *top, const struct top_row *row, char text[static CELL_MAX])
{
    (void)top;
    if (row->vcpu == TOP_WHOLE_DOMAIN)
        (void)snprintf(text, CELL_MAX, "%u", row->nr_vcpus);
    else
        (void)snprintf(text, CELL_MAX, "v%" PRIu32, row->vcpu);
}

static void cell_cpu(const struct top *top, const struct top_row *row, char text[static CELL_MAX])
{
    (void)snprintf(text, CELL_MAX, "%.1f", percent(top, row->running));
}

static void cell_wait(const struct top *top, const struct top_row *row, char text[static CELL_MAX])
{
    (void)snprintf(text, CELL_MAX, "%.1f", percent(top, row->runnable + row->open));
}

static void cell_p99(const struct top *top, const struct top_row *row, char text[static CELL_MAX])
{
    if (row->waits)
        (void)format_span(top, text, row->p99);
    else
        (void)strcpy(text, "-");
}

/* A wait that is not over may be the longest: ">12.3ms". */
static void cell_max(const struct top *top, const struct top_row *row, char text[static CELL_MAX])
{
    bool is_open = row->waits_since > row->most;

    text[0] = '>';
    if (row->waits || is_open)
        (void)format_span(top, is_open ? text + 1 : text, max_u64(row->most, row->waits_since));
    else
        (void)strcpy(text, "-");
}

static void cell_wakes(const struct top *top, const struct top_row *row, char text[static CELL_MAX])
{
    (void)number_format_short(text, per_second(top, row->wakes));
}

static void cell_exits(const struct top *top, const struct top_row *row, char text[static CELL_MAX])
{
    if (top->has_exits)
        (void)number_format_short(text, per_second(top, row->exits));
    else
        (void)strcpy(text, "-"); /* they are not recorded */
}

static void cell_migrations(const struct top *top, const struct top_row *row,
                            char text[static CELL_MAX])
{
    (void)number_format_short(text, per_second(top, row->migrations));
}

static const struct column {
    const char *name; /* in TOP_SORTS */
    const char *head;
    unsigned int cols; /* with the gap before it */
    cell_fn cell;
} columns[] = {
    [TOP_CPU] = {"cpu", "CPU%", 8, cell_cpu},
    [TOP_WAIT] = {"wait", "WAIT%", 8, cell_wait},
    [TOP_P99] = {"p99", "P99", 9, cell_p99},
    [TOP_MAX] = {"max", "MAX", 9, cell_max},
    [TOP_WAKES] = {"wakes", "WAKES/S", 8, cell_wakes},
    [TOP_EXITS] = {"exits", "EXITS/S", 8, cell_exits},
    [TOP_MIGRATIONS] = {"migrations", "MIGR/S", 7, cell_migrations},
    [TOP_NAME] = {"name", "DOMAIN", NAME_COLS, cell_name},
    [TOP_VCPU] = {"vcpu", "VCPU", 6, cell_vcpu},
};
_Static_assert(ARRAY_SIZE(columns) == TOP_NR_SORTS, "each has a column");

/* From left to right: the name comes first. */
static enum top_sort column_at(unsigned int i)
{
    return (enum top_sort)((i + TOP_NAME) % TOP_NR_SORTS);
}

enum top_sort top_sort_of(const char *name)
{
    for (unsigned int i = 0; i < TOP_NR_SORTS; i++)
        if (strcmp(columns[i].name, name) == 0)
            return (enum top_sort)i;
    return TOP_CPU;
}

/* --- Which rows, and in which order. --- */

/* Whether WORD, of LENGTH, is its name, its UUID, or its number: "5", "d5". */
static bool is_called(const struct top_row *row, const char *word, size_t length)
{
    char number[16];

    (void)snprintf(number, sizeof(number), "d%" PRIu32, row->domid);
    return (strlen(row->name) == length && strncmp(row->name, word, length) == 0) ||
           (strlen(row->uuid) == length && strncasecmp(row->uuid, word, length) == 0) ||
           (strlen(number) == length && strncmp(number, word, length) == 0) ||
           (strlen(number + 1) == length && strncmp(number + 1, word, length) == 0);
}

static bool is_of_domains(const struct top_row *row, const struct args_list *domains)
{
    for (size_t i = 0; i < domains->nr; i++) {
        for (const char *word = domains->values[i]; *word;) {
            size_t length = strcspn(word, ",");

            if (length > 0 && is_called(row, word, length))
                return true;
            word += length;
            word += *word == ',';
        }
    }
    return false;
}

static bool is_shown(const struct top_row *row, const struct top_view *view)
{
    char name[CELL_MAX];

    if ((view->has_domid && row->domid != view->domid) ||
        (view->domains && view->domains->nr > 0 && !is_of_domains(row, view->domains)))
        return false;
    cell_name(NULL, row, name);
    return strcasestr(name, view->filter);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

/* The most first, but names and vCPUs in their order. */
static int compare_by(const struct top_row *a, const struct top_row *b, enum top_sort sort)
{
    switch (sort) {
    case TOP_CPU:
        return compare_numbers(a->running, b->running);
    case TOP_WAIT:
        return compare_numbers(a->runnable + a->open, b->runnable + b->open);
    case TOP_P99:
        return compare_numbers(a->p99, b->p99);
    case TOP_MAX:
        return compare_numbers(max_u64(a->most, a->waits_since), max_u64(b->most, b->waits_since));
    case TOP_WAKES:
        return compare_numbers(a->wakes, b->wakes);
    case TOP_EXITS:
        return compare_numbers(a->exits, b->exits);
    case TOP_MIGRATIONS:
        return compare_numbers(a->migrations, b->migrations);
    case TOP_NAME:
        return strcmp(a->name, b->name);
    case TOP_VCPU:
        return a->vcpu == TOP_WHOLE_DOMAIN ? compare_numbers(a->nr_vcpus, b->nr_vcpus)
                                           : -compare_numbers(a->vcpu, b->vcpu);
    }
    return 0;
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct top_row *x = *(const struct top_row *const *)a;
    const struct top_row *y = *(const struct top_row *const *)b;
    const struct top_view *view = context;
    int order = compare_by(x, y, view->sort);

    if (order == 0)
        order = -compare_numbers((uint64_t)x->domid << 32 | x->vcpu,
                                 (uint64_t)y->domid << 32 | y->vcpu);
    return view->reverse ? -order : order;
}

/* To be freed; NULL: no memory. */
static const struct top_row **select_rows(const struct top *top, const struct top_view *view,
                                          size_t *ret_nr)
{
    const struct top_row *rows = view->of_vcpus ? top->vcpus : top->domains;
    size_t nr = view->of_vcpus ? top->nr_vcpus : top->nr_domains;
    const struct top_row **selected = calloc(nr + 1, sizeof(*selected));
    struct top_view copy = *view;

    *ret_nr = 0;
    for (size_t i = 0; selected && i < nr; i++)
        if (is_shown(&rows[i], view))
            selected[(*ret_nr)++] = &rows[i];
    if (selected)
        qsort_r(selected, *ret_nr, sizeof(*selected), compare_rows, &copy);
    return selected;
}

/* --- The picture. --- */

#define COLUMN_HELP                                                                                \
    "CPU%        time in which it ran: 100 is one CPU",                                            \
        "WAIT%       time in which it was ready to run, but waited for a CPU",                     \
        "P99, MAX    lengths of its waits; with a \">\", it is waiting still",                     \
        "WAKES/S     waits after a wake-up; EXITS/S: VM exits; MIGR/S: migrations", NULL

static const char *const column_help[] = {COLUMN_HELP};

static bool has_room(const struct frame *frame)
{
    return frame_left(frame) > 1;
}

static void draw_second(struct frame *frame, const struct top *top, const struct palette *palette)
{
    char span[CELL_MAX], records[NUMBER_MAX], lost[NUMBER_MAX], size[UNITS_TEXT_MAX];

    frame_put(frame, "%*s  the newest %s: %s records, %s; ", (int)LABEL_COLS - 2, "Shown",
              format_span(top, span, top_span(top)), number_format(records, top->records),
              size_format(size, top->bytes));
    if (top->gaps)
        frame_add(frame, "%s%s lost in %" PRIu64 " gap%s%s", palette->bad,
                  number_format_short(lost, top->lost), top->gaps, top->gaps == 1 ? "" : "s",
                  palette->end);
    else
        frame_add(frame, "none lost");
}

/* Why the figures may be wrong. */
static void draw_doubts(struct frame *frame, const struct top *top, const struct palette *palette)
{
    if (top->gaps && has_room(frame))
        frame_add(frame, "%*s  %srecords are missing: the figures are too low%s",
                  (int)LABEL_COLS - 2, "Lost", palette->bad, palette->end);
    if (top->khz_is_assumed && has_room(frame))
        frame_add(frame, "%*s  %sthe TSC's frequency is unknown: %" PRIu64 " MHz are assumed%s",
                  (int)LABEL_COLS - 2, "Times", palette->warn, top->khz / 1000, palette->end);
}

/* Those that are waiting for a CPU now, and have for long. */
static void draw_waiting(struct frame *frame, const struct top *top, const struct palette *palette)
{
    const struct top_row *longest = NULL;
    char name[CELL_MAX], span[CELL_MAX];
    size_t nr = 0;

    for (size_t i = 0; i < top->nr_vcpus; i++) {
        const struct top_row *row = &top->vcpus[i];

        if (top_nsec(top, row->waits_since) < LONG_WAIT_NSEC)
            continue;
        nr++;
        if (!longest || row->waits_since > longest->waits_since)
            longest = row;
    }
    if (!longest || !has_room(frame))
        return;
    cell_name(top, longest, name);
    frame_put(frame, "%*s  %s%s v%" PRIu32 " has been waiting for a CPU for %s",
              (int)LABEL_COLS - 2, "Waiting", palette->bad, name, longest->vcpu,
              format_span(top, span, longest->waits_since));
    if (nr > 1)
        frame_put(frame, "; %zu more vCPU%s for over 10ms", nr - 1, nr == 2 ? "" : "s");
    frame_add(frame, "%s", palette->end);
}

/* The busiest that fit on the line. */
static void draw_busy(struct frame *frame, const struct top *top)
{
    uint64_t below = UINT64_MAX;
    const char *gap = "; busiest: ";

    frame_put(frame, "%*s  %zu, %.0f%% busy", (int)LABEL_COLS - 2, "CPUs", top->nr_cpus,
              top->nr_cpus ? percent(top, top->busy) / (double)top->nr_cpus : 0.0);
    while (below > 0 && frame_column(frame) + 20 < frame->cols) {
        uint64_t most = 0;

        for (size_t i = 0; i < top->nr_cpus; i++)
            if (top->cpus[i].busy < below)
                most = max_u64(most, top->cpus[i].busy);
        for (size_t i = 0; i < top->nr_cpus && most > 0; i++) {
            if (top->cpus[i].busy != most || frame_column(frame) + 20 >= frame->cols)
                continue;
            frame_put(frame, "%sCPU %" PRIu32 " %.0f%%", gap, top->cpus[i].cpu, percent(top, most));
            gap = ", ";
        }
        below = most;
    }
    frame_end_line(frame);
}

static unsigned int name_cols(const struct frame *frame)
{
    unsigned int more = frame->cols > ROW_COLS ? frame->cols - ROW_COLS : 0;

    return (unsigned int)min_u64(NAME_COLS + more, NAME_COLS_MAX);
}

/* The bytes of the first COLS characters of TEXT, of UTF-8. */
static size_t fit(const char *text, unsigned int cols)
{
    const char *p = text;

    while (*p) {
        if (((unsigned char)*p & 0xc0) != 0x80 && cols-- == 0)
            break;
        p++;
    }
    return (size_t)(p - text);
}

static void draw_cell(struct frame *frame, enum top_sort column, const char *text,
                      const char *color, const char *end)
{
    if (column == TOP_NAME) {
        unsigned int cols = name_cols(frame);

        frame_put(frame, "%s%.*s%s", color, (int)fit(text, cols - 1), text, end);
        frame_tab(frame, cols);
    } else {
        frame_put(frame, "%s%*s%s", color, (int)columns[column].cols, text, end);
    }
}

static void draw_heads(struct frame *frame, const struct top_view *view,
                       const struct palette *palette)
{
    for (unsigned int i = 0; i < TOP_NR_SORTS; i++) {
        enum top_sort column = column_at(i);
        bool is_sorted = column == view->sort;

        draw_cell(frame, column,
                  column == TOP_VCPU && !view->of_vcpus ? "VCPUS" : columns[column].head,
                  is_sorted ? palette->inverse : palette->strong, palette->end);
    }
    frame_end_line(frame);
}

static void draw_row(struct frame *frame, const struct top *top, const struct top_row *row,
                     bool is_selected, const struct palette *palette)
{
    char text[CELL_MAX];

    frame_put(frame, "%s", is_selected ? palette->inverse : "");
    for (unsigned int i = 0; i < TOP_NR_SORTS; i++) {
        columns[column_at(i)].cell(top, row, text);
        draw_cell(frame, column_at(i), text, "", "");
    }
    frame_add(frame, "%s", is_selected ? palette->end : "");
}

static uint64_t key_of(const struct top_row *row)
{
    return (uint64_t)row->domid << 32 | row->vcpu;
}

/* The selection stays with its row, wherever that is now, once it was moved from the first one. */
static void keep_selection(struct top_view *view, const struct top_row **rows, size_t nr)
{
    view->nr_rows = (unsigned int)nr;
    for (size_t i = 0; view->is_kept && i < nr; i++)
        if (key_of(rows[i]) == view->selected)
            view->row = (unsigned int)i;
    if (view->row >= nr)
        view->row = nr ? (unsigned int)nr - 1 : 0;
    view->is_kept = view->row > 0;
    view->selected = nr ? key_of(rows[view->row]) : 0;
}

static void draw_rows(struct frame *frame, const struct top *top, const struct top_row **rows,
                      size_t nr, struct top_view *view, const struct palette *palette)
{
    unsigned int fit = frame_left(frame) > 1 ? frame_left(frame) - 1 : 0, first = 0;

    view->a_page = fit > 1 ? fit - 1 : 1;
    if (fit > 0 && view->row >= fit)
        first = view->row + 1 - fit;
    for (size_t i = first; i < nr && has_room(frame); i++) {
        if (frame_left(frame) == 2 && i + 1 < nr && view->row < i)
            frame_add(frame, "%s%zu more below%s", palette->dim, nr - i, palette->end);
        else
            draw_row(frame, top, rows[i], i == view->row, palette);
    }
}

/* What is shown, if that is not everything; and the filter while it is typed. */
static void draw_filter(struct frame *frame, const struct top_view *view, size_t nr,
                        const struct palette *palette)
{
    if (view->is_typing)
        frame_put(frame, "%*s  %s%s_%s", (int)LABEL_COLS - 2, "Filter", palette->strong,
                  view->filter, palette->end);
    else if (view->filter[0])
        frame_put(frame, "%*s  \"%s\": %zu shown; / changes it", (int)LABEL_COLS - 2, "Filter",
                  view->filter, nr);
    else if (view->has_domid)
        frame_put(frame, "%*s  one domain; Escape shows all", (int)LABEL_COLS - 2, "Filter");
    frame_end_line(frame);
}

/* What the columns mean, if there is room below the rows. */
static void draw_legend(struct frame *frame, const struct palette *palette)
{
    unsigned int nr = 0;

    while (column_help[nr])
        nr++;
    if (frame_left(frame) < nr + 2)
        return;
    frame_skip_to(frame, frame->rows - 1 - nr);
    for (unsigned int i = 0; i < nr; i++)
        frame_add(frame, "%s%s%s", palette->dim, column_help[i], palette->end);
}

void top_draw(struct frame *frame, const struct top *top, struct top_view *view,
              const struct palette *palette)
{
    const struct top_row **rows = NULL;
    size_t nr = 0;

    if (!top || !has_room(frame))
        return;
    rows = select_rows(top, view, &nr);
    if (!rows)
        return;
    keep_selection(view, rows, nr);
    draw_second(frame, top, palette);
    draw_doubts(frame, top, palette);
    draw_waiting(frame, top, palette);
    if (has_room(frame))
        draw_busy(frame, top);
    if (has_room(frame))
        draw_filter(frame, view, nr, palette);
    if (has_room(frame))
        draw_heads(frame, view, palette);
    draw_rows(frame, top, rows, nr, view, palette);
    draw_legend(frame, palette);
    free(rows);
}

/* --- Keys. --- */

const char *const *top_help(void)
{
    static const char *const lines[] = {
        "",
        "up, down    select a row; also page up, page down, Home, End",
        "Enter       show the vCPUs of the domain that is selected; Escape: all domains",
        "v           show vCPUs, or domains",
        "s, S        sort by the next column, or the one before",
        "r           reverse the order",
        "/           show only domains with a text in their name; Enter ends it",
        "",
        COLUMN_HELP,
    };

    return lines;
}

static void type(struct top_view *view, int key)
{
    size_t length = strlen(view->filter);

    if (key == '\r' || key == '\n') {
        view->is_typing = false;
    } else if (key == SCREEN_KEY_ESCAPE) {
        view->is_typing = false;
        view->filter[0] = '\0';
    } else if (key == '\b' || key == 0x7f) {
        while (length > 0 && ((unsigned char)view->filter[length - 1] & 0xc0) == 0x80)
            length--;
        view->filter[length > 0 ? length - 1 : 0] = '\0';
    } else if (key >= ' ' && key < 0x100 && length < TOP_FILTER_MAX) {
        view->filter[length] = (char)key;
        view->filter[length + 1] = '\0';
    }
}

static void move(struct top_view *view, int64_t by)
{
    int64_t row = (int64_t)view->row + by;

    if (row >= view->nr_rows)
        row = (int64_t)view->nr_rows - 1;
    view->row = row > 0 ? (unsigned int)row : 0;
    view->is_kept = false; /* until it is drawn */
}

static void show(struct top_view *view, bool of_vcpus)
{
    view->of_vcpus = of_vcpus;
    view->has_domid = false;
    view->row = 0;
    view->is_kept = false;
}

static void enter(struct top_view *view)
{
    uint32_t domid = (uint32_t)(view->selected >> 32);

    if (view->of_vcpus || view->nr_rows == 0)
        return;
    show(view, true);
    view->has_domid = true;
    view->domid = domid;
}

bool top_press(struct top_view *view, int key)
{
    if (view->is_typing) {
        type(view, key);
        return true;
    }
    switch (key) {
    case SCREEN_KEY_UP:
        move(view, -1);
        return true;
    case SCREEN_KEY_DOWN:
        move(view, 1);
        return true;
    case SCREEN_KEY_PAGE_UP:
        move(view, -(int64_t)view->a_page);
        return true;
    case SCREEN_KEY_PAGE_DOWN:
        move(view, view->a_page);
        return true;
    case SCREEN_KEY_HOME:
        move(view, INT32_MIN);
        return true;
    case SCREEN_KEY_END:
        move(view, INT32_MAX);
        return true;
    case SCREEN_KEY_ESCAPE:
        if (view->has_domid)
            show(view, false);
        view->filter[0] = '\0';
        return true;
    case '\r':
    case '\n':
        enter(view);
        return true;
    case 'v':
        show(view, !view->of_vcpus);
        return true;
    case 's':
    case 'S':
        view->sort =
            (enum top_sort)((view->sort + (key == 's' ? 1 : TOP_NR_SORTS - 1)) % TOP_NR_SORTS);
        return true;
    case 'r':
        view->reverse = !view->reverse;
        return true;
    case '/':
        view->is_typing = true;
        return true;
    default:
        return false;
    }
}

/* --- The table. --- */

static void print_rows(FILE *file, const struct top *top, const struct top_row **rows, size_t nr,
                       bool of_vcpus)
{
    _cleanup_table_ struct table *table = NULL;
    char text[CELL_MAX];

    if (table_new(of_vcpus ? "DOMAIN >VCPU >CPU% >WAIT% >P99 >MAX >WAKES/S >EXITS/S >MIGR/S"
                           : "DOMAIN >VCPUS >CPU% >WAIT% >P99 >MAX >WAKES/S >EXITS/S >MIGR/S",
                  &table) < 0)
        return;
    for (size_t i = 0; i < nr; i++) {
        for (unsigned int j = 0; j < TOP_NR_SORTS; j++) {
            columns[column_at(j)].cell(top, rows[i], text);
            table_add(table, "%s", text);
        }
    }
    table_print(table, file, 0, 0);
}

void top_print(FILE *file, const struct top *top, const struct top_view *view)
{
    _cleanup_frame_ struct frame frame = {0};
    const struct top_row **rows;
    size_t nr;

    rows = select_rows(top, view, &nr);
    if (!rows || frame_init(&frame, 6, ROW_COLS * 2) < 0) {
        free(rows);
        return;
    }
    draw_second(&frame, top, palette_of(0));
    draw_doubts(&frame, top, palette_of(0));
    draw_waiting(&frame, top, palette_of(0));
    draw_busy(&frame, top);
    frame_print(&frame, file, "\n");
    print_rows(file, top, rows, nr, view->of_vcpus);
    free(rows);
}

/* --- The document. --- */

static void add_row(struct json_object *array, const struct top *top, const struct top_row *row)
{
    struct json_object *entry = doc_append_object(array), *waits;

    doc_add_number(entry, "domid", row->domid);
    if (row->vcpu == TOP_WHOLE_DOMAIN)
        doc_add_number(entry, "vcpus", row->nr_vcpus);
    else
        doc_add_number(entry, "vcpu", row->vcpu);
    doc_add_text(entry, "name", row->name);
    doc_add_number(entry, "running_ns", top_nsec(top, row->running));
    doc_add_number(entry, "runnable_ns", top_nsec(top, row->runnable));
    waits = doc_add_object(entry, "waits");
    doc_add_number(waits, "count", row->waits);
    doc_add_number(waits, "p99_ns", top_nsec(top, row->p99));
    doc_add_number(waits, "max_ns", top_nsec(top, row->most));
    doc_add_number(waits, "open_ns", top_nsec(top, row->waits_since));
    doc_add_number(entry, "wakes", row->wakes);
    doc_add_number(entry, "exits", row->exits);
    doc_add_number(entry, "migrations", row->migrations);
}

static void add_rows(struct json_object *doc, const char *key, const struct top *top,
                     const struct top_view *view, bool of_vcpus)
{
    struct json_object *array = doc_add_array(doc, key);
    struct top_view copy = *view;
    const struct top_row **rows;
    size_t nr;

    copy.of_vcpus = of_vcpus;
    rows = select_rows(top, &copy, &nr);
    for (size_t i = 0; rows && i < nr; i++)
        add_row(array, top, rows[i]);
    free(rows);
}

struct json_object *top_document(const struct top *top, const struct top_view *view)
{
    struct json_object *doc = doc_new("xentraced-top"), *cpus;

    doc_add_number(doc, "first_ns", doc_number(top->doc, "snapshot.first_ns"));
    doc_add_number(doc, "last_ns", doc_number(top->doc, "snapshot.last_ns"));
    doc_add_number(doc, "span_ns", top_nsec(top, top->last_tsc - top->first_tsc));
    doc_add_number(doc, "tsc_khz", top->khz);
    doc_add_flag(doc, "tsc_khz_assumed", top->khz_is_assumed);
    doc_add_number(doc, "records", top->records);
    doc_add_number(doc, "bytes", top->bytes);
    doc_add_number(doc, "gaps", top->gaps);
    doc_add_number(doc, "lost", top->lost);
    cpus = doc_add_array(doc, "cpus");
    for (size_t i = 0; i < top->nr_cpus; i++) {
        struct json_object *cpu = doc_append_object(cpus);

        doc_add_number(cpu, "cpu", top->cpus[i].cpu);
        doc_add_number(cpu, "busy_ns", top_nsec(top, top->cpus[i].busy));
        doc_add_number(cpu, "idle_ns", top_nsec(top, top->cpus[i].idle));
    }
    add_rows(doc, "domains", top, view, false);
    add_rows(doc, "vcpus", top, view, true);
    return doc;
}

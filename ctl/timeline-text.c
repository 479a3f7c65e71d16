// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * By CPU, a cell is the letter of the vCPU that ran, and the lines below a CPU have the letters of
 * those that waited for it: one sees who ran instead of whom. A vCPU that waits stays in its line.
 * By vCPU, a cell is a sign for its runstate.
 */

#include "ctl/timeline-text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "common/units.h"
#include "common/util.h"
#include "ctl/input.h"
#include "ctl/number.h"
#include "trace/sidecar.h"

#define COLUMNS_MIN   10u
#define LABEL_OF_CPU  10u /* "CPU 16383 " */
#define LABEL_OF_VCPU 17u /* "webserver-12 v10 " */
#define LABEL_WIDE    29u /* the same where there is room */
#define WIDE          120u
#define SHARE_COLUMNS 5u /* " 100%" */
#define TICK_GAP      3u /* between two times of the axis */
#define NO_LETTER     '*'
#define MORE          '+'
#define QUIET_PART    5u /* a fifth of the time is worth a line */
#define QUIET_SHOWN   2u

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
#define LETTERS (sizeof(letters) - 1)

/* A vCPU that is seen in the picture. */
struct seen {
    uint32_t key;
    uint64_t cells;
};

struct drawing {
    FILE *file;
    const struct input *input;
    const struct timeline *timeline;
    uint64_t first_tsc;
    const struct timeline_style *style;
    struct seen *seen; /* by key; those that have a letter */
    size_t nr_seen;
    bool has_more, has_others, has_idle, has_lost, has_unknown; /* for the legend */
};

/* A sign, in UTF-8 and in ASCII, and how it is colored. */
struct sign {
    const char *utf8;
    char ascii;
    const char *name;
};

static const struct sign idle_sign = {"·", '.', "idle"};
static const struct sign state_signs[TIMELINE_STATES] = {
    [STATE_RUNNING] = {"█", '#', "ran"},
    [STATE_RUNNABLE] = {"w", 'w', "waited for a CPU"},
    [STATE_BLOCKED] = {"·", '.', "slept"},
    [STATE_OFFLINE] = {"-", '-', "paused or offline"},
    [STATE_UNKNOWN] = {" ", ' ', "(blank) unknown"},
    [TIMELINE_LOST] = {"╱", '/', "records lost"},
};

static unsigned int label_width(enum timeline_by by, unsigned int width)
{
    if (by == TIMELINE_BY_CPU)
        return LABEL_OF_CPU;
    return width >= WIDE ? LABEL_WIDE : LABEL_OF_VCPU;
}

unsigned int timeline_text_columns(enum timeline_by by, unsigned int width)
{
    unsigned int rest = label_width(by, width) + 2 + SHARE_COLUMNS;

    if (by == TIMELINE_BY_VCPU)
        rest += SHARE_COLUMNS + 2; /* " waited" */
    return (unsigned int)min_u64(max_u64(width, rest + COLUMNS_MIN) - rest, TIMELINE_COLUMNS_MAX);
}

/* --- Signs. --- */

/* Begins and ends a color only where it changes. */
struct pen {
    const struct drawing *drawing;
    const char *color;
};

static void pen_take(struct pen *pen, const char *color)
{
    if (pen->color == color)
        return;
    if (pen->color && *pen->color)
        (void)fputs(pen->drawing->style->palette->end, pen->drawing->file);
    if (color)
        (void)fputs(color, pen->drawing->file);
    pen->color = color;
}

static void print_sign(const struct drawing *drawing, const struct sign *sign)
{
    if (drawing->style->is_ascii)
        (void)fputc(sign->ascii, drawing->file);
    else
        (void)fputs(sign->utf8, drawing->file);
}

static void print_border(const struct drawing *drawing)
{
    print_sign(drawing, &(struct sign){"│", '|', NULL});
}

static const char *state_color(const struct drawing *drawing, unsigned int state)
{
    const struct palette *palette = drawing->style->palette;

    if (state == STATE_RUNNABLE)
        return palette->bad;
    if (state == TIMELINE_LOST)
        return palette->warn;
    return state == STATE_RUNNING ? "" : palette->dim;
}

/* How many characters TEXT has. */
static unsigned int text_width(const char *text)
{
    unsigned int width = 0;
    uint32_t character;

    for (; *text; text += max_u64(utf8_read(text, &character), 1))
        width++;
    return width;
}

/* TEXT in WIDTH columns, cut at its end if it is longer. */
static void print_label(const struct drawing *drawing, const char *text, unsigned int width)
{
    uint32_t character;

    while (width > 0 && *text) {
        size_t bytes = max_u64(utf8_read(text, &character), 1);

        (void)fwrite(text, 1, bytes, drawing->file);
        text += bytes;
        width--;
    }
    (void)fprintf(drawing->file, "%*s", (int)width, "");
}

/* --- Letters. --- */

static int compare_keys(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

static int compare_cells(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    if (x->cells != y->cells)
        return x->cells < y->cells ? 1 : -1;
    return compare_keys(a, b);
}

static bool is_guest(uint32_t key)
{
    return key >> 16 < STATE_DOMAIN_IDLE;
}

/* Counts KEY. In the list it is one of those behind drawing->nr_seen, which are not sorted. */
static int see(struct drawing *drawing, size_t *nr, size_t *max, uint32_t key)
{
    struct seen *more;

    if (!is_guest(key))
        return 0;
    if (*nr > 0 && drawing->seen[*nr - 1].key == key) {
        drawing->seen[*nr - 1].cells++;
        return 0;
    }
    if (*nr == *max) {
        *max = max_u64(*max * 2, 64);
        more = reallocarray(drawing->seen, *max, sizeof(*more));
        if (!more)
            return -ENOMEM;
        drawing->seen = more;
    }
    drawing->seen[(*nr)++] = (struct seen){key, 1};
    return 0;
}

static int see_row(struct drawing *drawing, const struct timeline_row *row, size_t *nr, size_t *max)
{
    int r = 0;

    for (unsigned int k = 0; k < drawing->timeline->columns && r == 0; k++)
        if (row->cells[k].state == STATE_RUNNING)
            r = see(drawing, nr, max, row->cells[k].key);
    for (unsigned int k = 0; row->waiters && k < drawing->timeline->columns && r == 0; k++)
        for (unsigned int i = 0; i < min_u64(row->waiters[k].nr, TIMELINE_WAITERS) && r == 0; i++)
            r = see(drawing, nr, max, row->waiters[k].list[i].key);
    return r;
}

/* Those that are seen most have letters, in the order of domains. */
static int give_letters(struct drawing *drawing)
{
    size_t nr = 0, max = 0, kept = 0;
    int r = 0;

    for (size_t i = 0; i < drawing->timeline->nr_rows && r == 0; i++)
        r = see_row(drawing, &drawing->timeline->rows[i], &nr, &max);
    if (r < 0 || nr == 0)
        return r;
    qsort(drawing->seen, nr, sizeof(*drawing->seen), compare_keys);
    for (size_t i = 0; i < nr; i++) {
        if (kept > 0 && drawing->seen[kept - 1].key == drawing->seen[i].key)
            drawing->seen[kept - 1].cells += drawing->seen[i].cells;
        else
            drawing->seen[kept++] = drawing->seen[i];
    }
    qsort(drawing->seen, kept, sizeof(*drawing->seen), compare_cells);
    drawing->nr_seen = min_u64(kept, LETTERS);
    drawing->has_others = kept > LETTERS;
    qsort(drawing->seen, drawing->nr_seen, sizeof(*drawing->seen), compare_keys);
    return 0;
}

static char letter_of(const struct drawing *drawing, uint32_t key)
{
    const struct seen wanted = {.key = key};
    const struct seen *found = NULL;

    if (drawing->nr_seen > 0)
        found = bsearch(&wanted, drawing->seen, drawing->nr_seen, sizeof(wanted), compare_keys);
    return found ? letters[found - drawing->seen] : NO_LETTER;
}

/* --- The head. --- */

/* As input_when(), with microseconds where milliseconds are too coarse for the columns. */
static const char *print_when(const struct drawing *drawing, char buffer[static INPUT_TEXT_MAX],
                              uint64_t tsc)
{
    const struct timeline *timeline = drawing->timeline;
    uint64_t width = (timeline->until - timeline->from) / timeline->columns;

    if (input_nsec(drawing->input, width) >= NSEC_PER_SEC / 1000)
        return input_when(drawing->input, buffer, tsc, drawing->first_tsc);
    return input_when_usec(drawing->input, buffer, tsc, drawing->first_tsc);
}

static void print_head(const struct drawing *drawing)
{
    const struct timeline *timeline = drawing->timeline;
    const struct input *input = drawing->input;
    char span[INPUT_TEXT_MAX], when[INPUT_TEXT_MAX], width[INPUT_TEXT_MAX], lost[NUMBER_MAX];
    uint64_t cycles = timeline->until - timeline->from;

    (void)fprintf(drawing->file, "%s: %s from %s; a column is %s.\n", input_name(input),
                  input_span(input, span, cycles), print_when(drawing, when, timeline->from),
                  input_span(input, width, cycles / timeline->columns));
    input_print_cause(drawing->file, input, drawing->first_tsc);
    if (input->shown)
        (void)fprintf(drawing->file, "  Shown: %s.\n", input->shown);
    if (timeline->gaps > 0)
        (void)fprintf(drawing->file, "  %s records were lost in %u gap%s.\n",
                      number_format(lost, timeline->lost), timeline->gaps,
                      timeline->gaps == 1 ? "" : "s");
    input_print_assumed(drawing->file, input);
    if (timeline->nr_omitted > 0)
        (void)fprintf(drawing->file, "  %zu rows are left out.\n", timeline->nr_omitted);
}

/* Times, each at the column that begins then. */
static void print_axis(const struct drawing *drawing, unsigned int label)
{
    const struct timeline *timeline = drawing->timeline;
    unsigned int at = 0, next = 0;
    char when[INPUT_TEXT_MAX];

    (void)fprintf(drawing->file, "\n%*s", (int)label + 1, "");
    for (; next < timeline->columns; next = at + TICK_GAP) {
        const char *text = print_when(drawing, when, timeline_column(timeline, next));
        unsigned int length = (unsigned int)strlen(text) + 1;

        if (next + length > timeline->columns)
            break;
        (void)fprintf(drawing->file, "%*s|%s", (int)(next - at), "", text);
        at = next + length;
    }
    (void)fprintf(drawing->file, "%*s%s\n", (int)(timeline->columns - at) + 1, "",
                  timeline->by == TIMELINE_BY_CPU ? " busy" : "  ran waited");
}

static void print_share(const struct drawing *drawing, uint64_t cycles)
{
    const struct timeline *timeline = drawing->timeline;
    uint64_t span = timeline->until - timeline->from;

    (void)fprintf(drawing->file, " %3.0f%%", 100.0 * (double)cycles / (double)span);
}

/* --- By CPU. --- */

static void print_cpu_cell(struct drawing *drawing, struct pen *pen, struct timeline_cell cell)
{
    if (cell.state == STATE_RUNNING && is_guest(cell.key)) {
        pen_take(pen, "");
        (void)fputc(letter_of(drawing, cell.key), drawing->file);
        return;
    }
    if (cell.state == TIMELINE_LOST)
        drawing->has_lost = true;
    else if (cell.state != STATE_RUNNING)
        drawing->has_unknown = true;
    if (cell.state == STATE_RUNNING && cell.key >> 16 == STATE_DOMAIN_IDLE) {
        drawing->has_idle = true;
        pen_take(pen, drawing->style->palette->dim);
        print_sign(drawing, &idle_sign);
        return;
    }
    pen_take(pen, state_color(drawing, cell.state));
    print_sign(drawing, cell.state == TIMELINE_LOST ? &state_signs[TIMELINE_LOST]
                                                    : &state_signs[STATE_UNKNOWN]);
}

/* The vCPU that waits in each line below a CPU; lanes[] hold it from column to column. */
struct lanes {
    uint32_t keys[TIMELINE_WAITERS];
    bool is_taken[TIMELINE_WAITERS];
};

static bool waits_on(const struct timeline_waiters *waiters, uint32_t key)
{
    for (unsigned int i = 0; i < min_u64(waiters->nr, TIMELINE_WAITERS); i++)
        if (waiters->list[i].key == key)
            return true;
    return false;
}

static bool has_lane(const struct lanes *lanes, uint32_t key)
{
    for (unsigned int i = 0; i < TIMELINE_WAITERS; i++)
        if (lanes->is_taken[i] && lanes->keys[i] == key)
            return true;
    return false;
}

/* Those that wait on keep their lanes; others take the first that is free. */
static void advance_lanes(struct lanes *lanes, const struct timeline_waiters *waiters)
{
    for (unsigned int i = 0; i < TIMELINE_WAITERS; i++)
        lanes->is_taken[i] = lanes->is_taken[i] && waits_on(waiters, lanes->keys[i]);
    for (unsigned int i = 0; i < min_u64(waiters->nr, TIMELINE_WAITERS); i++) {
        unsigned int free_lane = 0;

        if (has_lane(lanes, waiters->list[i].key))
            continue;
        while (lanes->is_taken[free_lane])
            free_lane++;
        lanes->is_taken[free_lane] = true;
        lanes->keys[free_lane] = waiters->list[i].key;
    }
}

/* Whether anybody is in LANE. */
static bool print_lane(struct drawing *drawing, const struct timeline_row *row, unsigned int lane,
                       char *text)
{
    struct lanes lanes = {0};
    bool is_used = false;

    for (unsigned int k = 0; k < drawing->timeline->columns; k++) {
        advance_lanes(&lanes, &row->waiters[k]);
        text[k] = ' ';
        if (lane == TIMELINE_WAITERS - 1 && row->waiters[k].nr > TIMELINE_WAITERS) {
            text[k] = MORE;
            drawing->has_more = true;
        } else if (lanes.is_taken[lane]) {
            text[k] = letter_of(drawing, lanes.keys[lane]);
        }
        is_used = is_used || text[k] != ' ';
    }
    return is_used;
}

static int print_waiters(struct drawing *drawing, const struct timeline_row *row)
{
    _cleanup_free_ char *text = calloc(drawing->timeline->columns + 1u, 1);

    if (!text)
        return -ENOMEM;
    for (unsigned int lane = 0; lane < TIMELINE_WAITERS; lane++) {
        if (!print_lane(drawing, row, lane, text))
            continue;
        print_label(drawing, lane == 0 ? "  waiting" : "", LABEL_OF_CPU);
        print_border(drawing);
        (void)fprintf(drawing->file, "%s%s%s", drawing->style->palette->bad, text,
                      drawing->style->palette->end);
        print_border(drawing);
        (void)fputc('\n', drawing->file);
    }
    return 0;
}

/* Below the row of the longest wait: where in it. */
static void print_mark(const struct drawing *drawing, unsigned int label)
{
    const struct timeline *timeline = drawing->timeline;
    const struct timeline_wait *wait = &timeline->longest;
    unsigned int last = 0;

    if (wait->from == wait->to)
        return;
    for (unsigned int k = 0; k < timeline->columns; k++)
        if (timeline_column(timeline, k) < wait->to &&
            timeline_column(timeline, k + 1) > wait->from)
            last = k + 1;
    print_label(drawing, "  longest", label < LABEL_OF_CPU ? label : LABEL_OF_CPU);
    (void)fprintf(drawing->file, "%*s", (int)(label - LABEL_OF_CPU) + 1, "");
    for (unsigned int k = 0; k < last; k++)
        (void)fputc(timeline_column(timeline, k + 1) > wait->from ? '^' : ' ', drawing->file);
    (void)fputc('\n', drawing->file);
}

static int print_cpu(struct drawing *drawing, const struct timeline_row *row)
{
    struct pen pen = {drawing, NULL};
    char label[32];
    int r;

    (void)snprintf(label, sizeof(label), "CPU %" PRIu32, row->id);
    print_label(drawing, label, LABEL_OF_CPU);
    print_border(drawing);
    for (unsigned int k = 0; k < drawing->timeline->columns; k++)
        print_cpu_cell(drawing, &pen, row->cells[k]);
    pen_take(&pen, NULL);
    print_border(drawing);
    print_share(drawing, row->cycles[STATE_RUNNING]);
    (void)fputc('\n', drawing->file);
    r = row->waiters ? print_waiters(drawing, row) : 0;
    if (row->id == drawing->timeline->longest.cpu)
        print_mark(drawing, LABEL_OF_CPU);
    return r;
}

/* --- By vCPU. --- */

/* Its number stays, however long the domain's name is. */
static void print_vcpu_label(const struct drawing *drawing, uint32_t key, unsigned int label)
{
    char domain[INPUT_TEXT_MAX], *number;
    unsigned int width;

    (void)input_vcpu(drawing->input, domain, key, drawing->timeline->until - 1);
    number = strrchr(domain, ' ');
    if (!number) {
        print_label(drawing, domain, label);
        return;
    }
    *number++ = '\0';
    width = label - 2 - (unsigned int)strlen(number);
    if (text_width(domain) < width)
        width = text_width(domain);
    print_label(drawing, domain, width);
    (void)fprintf(drawing->file, " %-*s", (int)(label - width - 1), number);
}

static void print_vcpu(struct drawing *drawing, const struct timeline_row *row, unsigned int label)
{
    struct pen pen = {drawing, NULL};

    print_vcpu_label(drawing, row->id, label);
    print_border(drawing);
    for (unsigned int k = 0; k < drawing->timeline->columns; k++) {
        unsigned int state = row->cells[k].state;

        drawing->has_lost = drawing->has_lost || state == TIMELINE_LOST;
        drawing->has_unknown = drawing->has_unknown || state == STATE_UNKNOWN;
        pen_take(&pen, state_color(drawing, state));
        print_sign(drawing, &state_signs[state]);
    }
    pen_take(&pen, NULL);
    print_border(drawing);
    print_share(drawing, row->cycles[STATE_RUNNING]);
    (void)fputs("  ", drawing->file);
    print_share(drawing, row->cycles[STATE_RUNNABLE]);
    (void)fputc('\n', drawing->file);
    if (row->id == drawing->timeline->longest.key)
        print_mark(drawing, label);
}

/* --- The legend. --- */

/* Entries, as many as a line has room for. */
struct legend {
    const struct drawing *drawing;
    unsigned int used;
};

static void legend_add(struct legend *legend, const struct sign *sign, const char *name)
{
    unsigned int width = text_width(name) + (sign ? 2 : 0);
    FILE *file = legend->drawing->file;

    if (legend->used > 0 && legend->used + 3 + width > legend->drawing->style->width) {
        (void)fputc('\n', file);
        legend->used = 0;
    }
    legend->used += (unsigned int)fprintf(file, "%*s", legend->used > 0 ? 3 : 0, "") + width;
    if (sign) {
        print_sign(legend->drawing, sign);
        (void)fputc(' ', file);
    }
    (void)fputs(name, file);
}

static void print_legend_of_cpus(const struct drawing *drawing, struct legend *legend)
{
    char name[INPUT_TEXT_MAX];

    for (size_t i = 0; i < drawing->nr_seen; i++) {
        const char letter[2] = {letters[i], '\0'};

        legend_add(
            legend, &(struct sign){letter, letters[i], NULL},
            input_vcpu(drawing->input, name, drawing->seen[i].key, drawing->timeline->until - 1));
    }
    if (drawing->has_others)
        legend_add(legend, &(struct sign){"*", NO_LETTER, NULL}, "another vCPU");
    if (drawing->has_more)
        legend_add(legend, &(struct sign){"+", MORE, NULL}, "several more");
    if (drawing->has_idle)
        legend_add(legend, &idle_sign, idle_sign.name);
}

static void print_legend(const struct drawing *drawing)
{
    struct legend legend = {.drawing = drawing};

    (void)fputc('\n', drawing->file);
    if (drawing->timeline->by == TIMELINE_BY_CPU)
        print_legend_of_cpus(drawing, &legend);
    for (unsigned int i = 0; drawing->timeline->by == TIMELINE_BY_VCPU && i <= STATE_OFFLINE; i++)
        legend_add(&legend, &state_signs[i], state_signs[i].name);
    if (drawing->has_lost)
        legend_add(&legend, &state_signs[TIMELINE_LOST], state_signs[TIMELINE_LOST].name);
    if (drawing->has_unknown)
        legend_add(&legend, NULL, state_signs[STATE_UNKNOWN].name);
    (void)fputc('\n', drawing->file);
}

/* CPUs that are drawn as idle, of which nothing is known: an offline CPU has no records either. */
static void print_quiet(const struct drawing *drawing)
{
    const struct timeline *timeline = drawing->timeline;
    uint64_t enough = (timeline->until - timeline->from) / QUIET_PART;
    char when[INPUT_TEXT_MAX];
    unsigned int count = 0;

    for (size_t i = 0; i < timeline->nr_rows; i++) {
        const struct timeline_row *row = &timeline->rows[i];

        if (row->quiet_since == 0 || timeline->until - row->quiet_since < enough)
            continue;
        if (count++ < QUIET_SHOWN)
            (void)fprintf(drawing->file, "%s %" PRIu32 " since %s",
                          count == 1 ? "Idle or offline, without a record: CPU" : ",", row->id,
                          print_when(drawing, when, max_u64(row->quiet_since, drawing->first_tsc)));
    }
    if (count > QUIET_SHOWN)
        (void)fprintf(drawing->file, ", %u more", count - QUIET_SHOWN);
    if (count > 0)
        (void)fputs(".\n", drawing->file);
}

static void print_longest(const struct drawing *drawing)
{
    const struct timeline_wait *wait = &drawing->timeline->longest;
    const struct input *input = drawing->input;
    _cleanup_free_ char *path = NULL, *vcpu = NULL;
    char name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX], when[INPUT_TEXT_MAX];

    if (wait->from == wait->to)
        return;
    (void)fprintf(drawing->file, "Longest wait (^): %s waited %s for CPU %" PRIu32 " from %s%s.\n",
                  input_vcpu(input, name, wait->key, wait->from),
                  input_span(input, span, wait->to - wait->from), wait->cpu,
                  print_when(drawing, when, max_u64(wait->from, drawing->first_tsc)),
                  wait->is_open ? ", and was not over" : "");
    path = input_argument(input);
    vcpu = input_vcpu_argument(input, wait->key, wait->from);
    if (path && vcpu)
        (void)fprintf(drawing->file, "  xentracectl why --at %s %s %s\n",
                      print_when(drawing, when, max_u64(wait->from, drawing->first_tsc)), vcpu,
                      path);
}

int timeline_text_print(FILE *file, const struct input *input, const struct timeline *timeline,
                        uint64_t first_tsc, const struct timeline_style *style)
{
    struct drawing drawing = {
        .file = file,
        .input = input,
        .timeline = timeline,
        .first_tsc = first_tsc,
        .style = style,
    };
    unsigned int label = label_width(timeline->by, style->width);
    int r = timeline->by == TIMELINE_BY_CPU ? give_letters(&drawing) : 0;

    if (r == 0) {
        print_head(&drawing);
        print_axis(&drawing, label);
    }
    for (size_t i = 0; i < timeline->nr_rows && r == 0; i++) {
        if (timeline->by == TIMELINE_BY_CPU)
            r = print_cpu(&drawing, &timeline->rows[i]);
        else
            print_vcpu(&drawing, &timeline->rows[i], label);
    }
    if (r == 0) {
        print_legend(&drawing);
        print_quiet(&drawing);
        print_longest(&drawing);
    }
    free(drawing.seen);
    return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each page has a title, the health and the keys. That about recording has a summary and three
 * sections, of captures, CPUs and triggers, which share the rows that are left. Few CPUs have a bar
 * each; many are one character each, and a line for the one that is selected.
 */

#include "ctl/monitor.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "ctl/cpu-lines.h"
#include "ctl/frame.h"
#include "ctl/health.h"
#include "ctl/number.h"
#include "ctl/screen.h"
#include "ctl/session.h"
#include "ctl/storage.h"
#include "ctl/str.h"
#include "ctl/top.h"

#define SUMMARY_COLUMN 11u
#define CELL_COLS      40u /* of a CPU with a bar, and the gap after it */
#define BAR_COLS       8u
#define GRID_LABEL     6u /* columns before a row of the grid */
#define GRID_GROUP     8u
#define SECTION_MIN    2u /* rows that a section has at least, if it needs them */

/* One drawing. */
struct picture {
    struct frame *frame;
    const struct monitor_facts *facts;
    struct monitor_view *view;
    const struct palette *palette;
    struct cpu_lines cpus;
    struct health health;
};

/* The last row is the keys'. */
static bool has_room(const struct picture *picture)
{
    return frame_left(picture->frame) > 1;
}

static struct json_object *find_host(struct json_object *status)
{
    struct json_object *sessions = doc_array(status, "sessions");

    return doc_length(sessions) ? doc_find(doc_at(sessions, 0), "host") : NULL;
}

static void draw_title(const struct picture *picture)
{
    struct json_object *status = picture->facts->status;
    struct frame *frame = picture->frame;
    const char *time = picture->facts->time ? picture->facts->time : "";
    unsigned int width = (unsigned int)strlen(time) + 1;

    frame_put(frame, "%s xentracectl %s", picture->palette->inverse,
              picture->view->page == MONITOR_VCPUS ? "top" : "monitor");
    if (status)
        frame_put(frame, "  %s: Xen %s, %" PRIu64 " CPUs",
                  doc_text(find_host(status), "hostname", "xentraced"),
                  doc_text(status, "xen.version", "unknown"), doc_number(status, "xen.cpus"));
    frame_tab(frame, frame->cols > width ? frame->cols - width : 0);
    frame_add(frame, "%s %s", time, picture->palette->end);
}

/* TEXT in one line, or in two if it is long. */
static void draw_wrapped(const struct picture *picture, const char *color, const char *text)
{
    const char *end = *color ? picture->palette->end : "";
    unsigned int cols = picture->frame->cols;
    size_t first = strlen(text);

    if (first > cols) {
        first = cols;
        while (first > 0 && text[first] != ' ')
            first--;
    }
    if (first == 0)
        first = strlen(text); /* one long word: it is cut */
    frame_add(picture->frame, "%s%.*s%s", color, (int)first, text, end);
    if (text[first])
        frame_add(picture->frame, "%s%s%s", color, text + first + 1, end);
}

/* The headline, and as many warnings as a tall screen has room for. */
static void draw_health(const struct picture *picture)
{
    const struct health *health = &picture->health;
    const struct palette *palette = picture->palette;
    const char *const colors[] = {
        [HEALTH_GOOD] = palette->good,
        [HEALTH_WARN] = palette->warn,
        [HEALTH_BAD] = palette->bad,
    };
    size_t room = picture->frame->rows / 20;

    if (picture->facts->error)
        draw_wrapped(picture, palette->bad, picture->facts->error);
    else if (picture->view->page != MONITOR_VCPUS || health->level != HEALTH_GOOD)
        draw_wrapped(picture, colors[health->level],
                     health->headline ? health->headline : "Out of memory.");
    for (size_t i = 0; i < health->nr_warnings && i < room && has_room(picture); i++)
        frame_add(picture->frame, "  %sWarning:%s %s", palette->warn, palette->end,
                  health->warnings[i]);
}

static void label(const struct picture *picture, const char *text)
{
    frame_put(picture->frame, "%*s  ", (int)SUMMARY_COLUMN - 2, text);
}

static void draw_rates(const struct picture *picture)
{
    const struct cpu_lines *cpus = &picture->cpus;
    const struct palette *palette = picture->palette;
    char rate[NUMBER_MAX], lost[NUMBER_MAX], sum[NUMBER_MAX];

    label(picture, "Records");
    if (cpus->has_rates)
        frame_put(picture->frame, "%s/s", number_format(rate, cpus->sum.records_per_second));
    else
        frame_put(picture->frame, "-");
    frame_tab(picture->frame, 32);
    frame_put(picture->frame, "Lost  %s", cpus->sum.loses ? palette->bad : "");
    if (cpus->has_rates)
        frame_put(picture->frame, "%s/s, ", number_format(lost, cpus->sum.lost_per_second));
    frame_add(picture->frame, "%s in all%s", number_format(sum, cpus->sum.lost),
              cpus->sum.loses ? palette->end : "");
}

static struct json_object *find_recorder(struct json_object *status)
{
    struct json_object *sessions = doc_array(status, "sessions");

    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);

        if (storage_is_recorder(session) && !doc_session_has_ended(session))
            return session;
    }
    return NULL;
}

static void draw_history(const struct picture *picture)
{
    struct json_object *recorder = find_recorder(picture->facts->status);
    _cleanup_free_ char *history = recorder ? storage_history(recorder) : NULL;
    _cleanup_free_ char *memory = recorder ? storage_memory(recorder) : NULL;
    const char *state = doc_text(picture->facts->status, "recorder.state", "unknown");

    label(picture, "History");
    if (!recorder)
        frame_add(picture->frame, "none: the flight recorder is %s", state);
    else
        frame_add(picture->frame, "%s (%s)", history && *history ? history : "none yet",
                  memory ? memory : "unknown memory");
}

static void draw_pool(const struct picture *picture)
{
    struct json_object *status = picture->facts->status;
    uint64_t refusals = doc_number(status, "daemon.pool_refusals");
    char bytes[UNITS_TEXT_MAX], left[UNITS_TEXT_MAX], max[UNITS_TEXT_MAX], count[NUMBER_MAX];

    label(picture, "Pool");
    frame_put(picture->frame, "%s of %s free, at most %s",
              size_format(left, doc_number(status, "daemon.pool_free_bytes")),
              size_format(bytes, doc_number(status, "daemon.pool_bytes")),
              size_format(max, doc_number(status, "daemon.pool_max_bytes")));
    if (refusals)
        frame_put(picture->frame, "; could not grow %s time%s", number_format(count, refusals),
                  refusals == 1 ? "" : "s");
    frame_end_line(picture->frame);
}

/* Bytes that all captures together write in a second. */
static uint64_t written_per_second(const struct monitor_facts *facts)
{
    struct json_object *sessions = doc_array(facts->status, "sessions");
    uint64_t sum = 0;

    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);
        struct json_object *before = cpu_lines_find_session(facts->before, session);

        if (before)
            sum += cpu_lines_per_second(doc_number(before, "output.bytes"),
                                        doc_number(session, "output.bytes"), facts->elapsed_usec);
    }
    return sum;
}

static void draw_disk(const struct picture *picture)
{
    const struct monitor_facts *facts = picture->facts;
    const struct palette *palette = picture->palette;
    char left[UNITS_TEXT_MAX], bytes[UNITS_TEXT_MAX], rate[UNITS_TEXT_MAX];

    label(picture, "Disk");
    if (facts->disk_result == 0)
        frame_put(picture->frame, "%s of %s free in ", size_format(left, facts->disk.free_bytes),
                  size_format(bytes, facts->disk.bytes));
    else if (facts->disk_result == -ETIMEDOUT)
        frame_put(picture->frame, "%sno answer%s from ", palette->bad, palette->end);
    frame_put(picture->frame, "%s", doc_text(facts->status, "daemon.state_dir", "unknown"));
    if (picture->cpus.has_rates)
        frame_put(picture->frame, "; captures write %s/s",
                  size_format(rate, written_per_second(facts)));
    frame_end_line(picture->frame);
}

/* The rows that each section has. */
struct rows {
    unsigned int captures, cpus, triggers;
};

/* Gives ROWS up to what it NEEDs of what is LEFT. */
static void take_rows(unsigned int *rows, unsigned int need, unsigned int *left)
{
    unsigned int more = need > *rows ? need - *rows : 0;

    if (more > *left)
        more = *left;
    *rows += more;
    *left -= more;
}

/* All have their least first. The CPUs come next, then captures, then triggers. */
static struct rows share_rows(struct rows need, unsigned int left)
{
    struct rows rows = {0};

    take_rows(&rows.cpus, need.cpus < SECTION_MIN ? need.cpus : SECTION_MIN, &left);
    take_rows(&rows.captures, need.captures < SECTION_MIN ? need.captures : SECTION_MIN, &left);
    take_rows(&rows.triggers, need.triggers < SECTION_MIN ? need.triggers : SECTION_MIN, &left);
    take_rows(&rows.cpus, need.cpus, &left);
    take_rows(&rows.captures, need.captures, &left);
    take_rows(&rows.triggers, need.triggers, &left);
    return rows;
}

/* The head of a section, after an empty line. */
static void draw_head(const struct picture *picture, const char *text)
{
    if (has_room(picture))
        frame_end_line(picture->frame);
    if (has_room(picture))
        frame_add(picture->frame, "%s%s%s", picture->palette->strong, text, picture->palette->end);
}

/* --- Captures. --- */

static unsigned int count_running(struct json_object *sessions)
{
    unsigned int count = 0;

    for (size_t i = 0; i < doc_length(sessions); i++)
        count += !doc_session_has_ended(doc_at(sessions, i));
    return count;
}

static const char *session_condition(struct json_object *session)
{
    if (doc_number(session, "output.waiting_since_ns"))
        return "waiting";
    if (doc_flag(session, "output.paused") || doc_flag(session, "segments.paused"))
        return "paused";
    return doc_text(session, "state", "unknown");
}

/* Screens are narrow; status shows the path. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void draw_session(const struct picture *picture, struct json_object *session)
{
    const struct monitor_facts *facts = picture->facts;
    struct json_object *before = cpu_lines_find_session(facts->before, session);
    _cleanup_free_ char *place = storage_place(session), *memory = storage_memory(session);
    const char *condition = session_condition(session);
    bool is_odd = strcmp(condition, "waiting") == 0 || strcmp(condition, "paused") == 0;
    uint64_t records =
                 doc_number(session, "ledger.delivered") + doc_number(session, "ledger.evicted"),
             lost = doc_number(session, "ledger.lost") + doc_number(session, "ledger.dropped");
    char rate[NUMBER_MAX] = "-", count[NUMBER_MAX], size[UNITS_TEXT_MAX];
    const char *color = health_loses_now(session) ? picture->palette->bad
                        : lost                    ? picture->palette->warn
                                                  : "";

    if (before)
        (void)number_format(rate, cpu_lines_per_second(doc_number(before, "ledger.delivered") +
                                                           doc_number(before, "ledger.evicted"),
                                                       records, facts->elapsed_usec));
    frame_put(picture->frame, "%-16.16s %s%-9s%s %11s %s%9s%s  ", doc_text(session, "name", "-"),
              is_odd ? picture->palette->warn : "", condition, is_odd ? picture->palette->end : "",
              rate, color, number_format_short(count, lost), *color ? picture->palette->end : "");
    frame_add(picture->frame, "%-12s  %s",
              memory && strcmp(memory, "-") != 0 ? memory
                                                 : size_format(size, storage_bytes(session)),
              place ? base_name(place) : "-");
}

static void draw_captures(const struct picture *picture, unsigned int rows)
{
    struct json_object *sessions = doc_array(picture->facts->status, "sessions");
    unsigned int count = count_running(sessions), shown = 0;

    draw_head(picture, "CAPTURE          STATE       RECORDS/S      LOST  SIZE          FILE");
    for (size_t i = 0; i < 2 * doc_length(sessions) && has_room(picture); i++) {
        struct json_object *session = doc_at(sessions, i % doc_length(sessions));
        bool is_turn = storage_is_recorder(session) == (i < doc_length(sessions));

        if (!is_turn || doc_session_has_ended(session)) /* the recorder is the first one */
            continue;
        if (shown + 1 == rows && count > rows) {
            frame_add(picture->frame, "and %u more: xentracectl list", count - shown);
            return;
        }
        draw_session(picture, session);
        shown++;
    }
    if (count == 0 && has_room(picture))
        frame_add(picture->frame, "none: xentracectl start -e sched -T 10");
}

/* --- CPUs. --- */

static const char *cpu_color(const struct picture *picture, const struct cpu_line *cpu)
{
    if (cpu->loses)
        return picture->palette->bad;
    return cpu->fill_percent > SESSION_FULL_PERCENT || cpu->lost ? picture->palette->warn : "";
}

static unsigned int bars_across(const struct frame *frame)
{
    return frame->cols + 2 > CELL_COLS ? (frame->cols + 2) / CELL_COLS : 1;
}

static unsigned int bar_rows(const struct picture *picture)
{
    unsigned int across = bars_across(picture->frame);

    return (picture->cpus.count + across - 1) / across;
}

/* "    0 [##      ]  21%  12.3k/s lost 0": CELL_COLS - 2 columns. */
static void draw_bar(const struct picture *picture, unsigned int i)
{
    static const char full[] = "########";
    const struct cpu_line *cpu = &picture->cpus.lines[i];
    const char *color = cpu_color(picture, cpu), *end = *color ? picture->palette->end : "";
    bool is_selected = i == picture->view->cpu;
    int marks = (int)((cpu->fill_percent * BAR_COLS + 99) / 100);
    char rate[NUMBER_MAX] = "-", lost[NUMBER_MAX];

    if (picture->cpus.has_rates)
        (void)number_format_short(rate, cpu->records_per_second);
    frame_put(picture->frame, "%s%5u%s ", is_selected ? picture->palette->inverse : "", cpu->cpu,
              is_selected ? picture->palette->end : "");
    if (cpu->has_buffer)
        frame_put(picture->frame, "%s[%.*s%*s]%4" PRIu64 "%%%s", color, marks, full,
                  (int)BAR_COLS - marks, "", cpu->fill_percent, end);
    else
        frame_put(picture->frame, "no buffer      ");
    frame_put(picture->frame, "%7s/s %s%6s%s", rate, color, number_format_short(lost, cpu->lost),
              end);
}

/* Columns of CPUs, each from top to bottom; scrolled by rows to show the one that is selected. */
static void draw_bars(const struct picture *picture, unsigned int rows)
{
    unsigned int across = bars_across(picture->frame), down = bar_rows(picture);
    unsigned int first;

    picture->view->across = down;
    picture->view->down = 1;
    picture->view->a_page = rows;
    first =
        down > rows && picture->view->cpu % down >= rows ? picture->view->cpu % down + 1 - rows : 0;
    for (unsigned int row = first; row < first + rows && row < down && has_room(picture); row++) {
        for (unsigned int column = 0; column < across; column++) {
            unsigned int i = column * down + row;

            if (i >= picture->cpus.count)
                break;
            frame_tab(picture->frame, column * CELL_COLS);
            draw_bar(picture, i);
        }
        frame_end_line(picture->frame);
    }
}

/* As many groups of CPUs in a row as fit: a power of two of them. */
static unsigned int grid_across(const struct frame *frame)
{
    unsigned int across = GRID_GROUP;

    while (GRID_LABEL + 2 * across + 2 * across / GRID_GROUP <= frame->cols)
        across *= 2;
    return across;
}

static unsigned int grid_rows(const struct picture *picture)
{
    unsigned int across = grid_across(picture->frame);

    return (picture->cpus.count + across - 1) / across;
}

static char grid_mark(const struct cpu_line *cpu)
{
    if (!cpu->has_buffer)
        return '-';
    if (cpu->loses)
        return '!';
    if (cpu->fill_percent < 10)
        return '.';
    return (char)('0' + min_u64(cpu->fill_percent / 10, 9));
}

static void draw_grid_row(const struct picture *picture, unsigned int row, unsigned int across)
{
    frame_put(picture->frame, "%*u", (int)GRID_LABEL - 1, picture->cpus.lines[row * across].cpu);
    for (unsigned int i = row * across; i < (row + 1) * across && i < picture->cpus.count; i++) {
        const struct cpu_line *cpu = &picture->cpus.lines[i];
        const char *color =
            i == picture->view->cpu ? picture->palette->inverse : cpu_color(picture, cpu);

        if (i % GRID_GROUP == 0)
            frame_put(picture->frame, " ");
        frame_put(picture->frame, "%s%c%s", color, grid_mark(cpu),
                  *color ? picture->palette->end : "");
    }
    frame_end_line(picture->frame);
}

/* The last row is about the CPU that is selected. */
static void draw_grid(const struct picture *picture, unsigned int rows)
{
    const struct cpu_line *cpu = &picture->cpus.lines[picture->view->cpu];
    unsigned int across = grid_across(picture->frame), all = grid_rows(picture), first = 0;
    unsigned int selected = picture->view->cpu / across;
    char rate[NUMBER_MAX] = "-", lost[NUMBER_MAX];

    rows = rows > 1 ? rows - 1 : 1;
    picture->view->across = 1;
    picture->view->down = across;
    picture->view->a_page = across * rows;
    if (all > rows && selected >= rows)
        first = selected + 1 - rows;
    for (unsigned int row = first; row < first + rows && row < all && has_room(picture); row++)
        draw_grid_row(picture, row, across);
    if (!has_room(picture))
        return;
    if (picture->cpus.has_rates)
        (void)number_format(rate, cpu->records_per_second);
    frame_add(picture->frame, "CPU %u: buffer %" PRIu64 "%% full, %s records/s, %s lost", cpu->cpu,
              cpu->fill_percent, rate, number_format(lost, cpu->lost));
}

/* GRID: they are too many for bars. */
static void draw_cpus(const struct picture *picture, unsigned int rows, bool grid)
{
    static const char head[] = "  CPU BUFFER         RECORDS/S   LOST   ";
    unsigned int across = bars_across(picture->frame);

    if (grid) {
        draw_head(picture, "  CPU BUFFERS: how full, in tenths (. less than one); ! losing, - no "
                           "buffer");
        draw_grid(picture, rows);
        return;
    }
    if (has_room(picture))
        frame_end_line(picture->frame);
    frame_put(picture->frame, "%s", picture->palette->strong);
    for (unsigned int i = 0; i < across && i < picture->cpus.count; i++)
        frame_put(picture->frame, "%s", head);
    if (has_room(picture))
        frame_add(picture->frame, "%s", picture->palette->end);
    draw_bars(picture, rows);
}

/* --- Triggers. --- */

static void draw_triggers(const struct picture *picture, unsigned int rows)
{
    struct json_object *triggers = doc_array(picture->facts->status, "triggers");
    size_t count = doc_length(triggers);

    draw_head(picture, "TRIGGER          CONDITION              STATE      FIRED  WRITTEN  LAST");
    for (size_t i = 0; i < count && has_room(picture); i++) {
        struct json_object *trigger = doc_at(triggers, i);
        char fired[NUMBER_MAX], written[NUMBER_MAX], ago[STR_AGO_MAX];

        if (i + 1 == rows && count > rows) {
            frame_add(picture->frame, "and %zu more: xentracectl list --triggers", count - i);
            return;
        }
        frame_add(picture->frame, "%-16.16s %-22.22s %-9s %6s %8s  %s",
                  doc_text(trigger, "name", "-"), doc_text(trigger, "condition", "-"),
                  doc_text(trigger, "state", "-"),
                  number_format(fired, doc_number(trigger, "fired")),
                  number_format(written, doc_number(trigger, "written")),
                  str_ago(ago, doc_number(trigger, "last_fired_ns")));
    }
}

/* --- Pages. --- */

static void draw_recording(struct picture *picture)
{
    struct json_object *status = picture->facts->status;
    unsigned int triggers = (unsigned int)doc_length(doc_array(status, "triggers"));
    unsigned int captures = count_running(doc_array(status, "sessions"));
    struct rows need = {captures ? captures : 1, bar_rows(picture), triggers}, rows;
    unsigned int heads, left;
    bool grid;

    draw_rates(picture);
    draw_history(picture);
    draw_pool(picture);
    draw_disk(picture);
    heads = 2 + (need.cpus ? 2u : 0u) + (triggers ? 2u : 0u);
    left = frame_left(picture->frame) > heads + 1 ? frame_left(picture->frame) - heads - 1 : 0;
    rows = share_rows(need, left);
    grid = rows.cpus < need.cpus;
    if (grid) {
        need.cpus = grid_rows(picture) + 1;
        rows = share_rows(need, left);
    }
    draw_captures(picture, rows.captures);
    if (need.cpus)
        draw_cpus(picture, rows.cpus, grid);
    if (triggers)
        draw_triggers(picture, rows.triggers);
}

/* The newest second, or why there is none; both, if the newest one could not be taken. */
static void draw_vcpus(struct picture *picture)
{
    const struct monitor_facts *facts = picture->facts;

    if (facts->top_error)
        draw_wrapped(picture, picture->palette->warn, facts->top_error);
    else if (!facts->top)
        frame_add(picture->frame, "Waiting for the first second.");
    top_draw(picture->frame, facts->top, &picture->view->top, picture->palette);
}

static const char *const *recording_help(void)
{
    static const char *const lines[] = {
        "arrows      select a CPU; also page up, page down, Home, End",
        "",
        "Records     of all CPUs; those that several captures record count once",
        "Lost        by Xen, whose buffer was full, or dropped by xentraced",
        "History     time span in the flight recorder, now and when it is full",
        "Pool        memory for records that are not yet written",
        "BUFFER      fill of Xen's trace buffer; when it is full, records are lost",
        NULL,
    };

    return lines;
}

static void move_selection(struct monitor_view *view, int64_t by)
{
    int64_t cpu = (int64_t)view->cpu + by;

    if (view->nr_cpus == 0)
        return;
    if (cpu < 0)
        cpu = 0;
    if (cpu >= view->nr_cpus)
        cpu = view->nr_cpus - 1;
    view->cpu = (unsigned int)cpu;
}

static bool press_recording(struct monitor_view *view, int key)
{
    switch (key) {
    case SCREEN_KEY_UP:
        move_selection(view, -(int64_t)view->down);
        return true;
    case SCREEN_KEY_DOWN:
        move_selection(view, view->down);
        return true;
    case SCREEN_KEY_LEFT:
        move_selection(view, -(int64_t)view->across);
        return true;
    case SCREEN_KEY_RIGHT:
        move_selection(view, view->across);
        return true;
    case SCREEN_KEY_PAGE_UP:
        move_selection(view, -(int64_t)view->a_page);
        return true;
    case SCREEN_KEY_PAGE_DOWN:
        move_selection(view, view->a_page);
        return true;
    case SCREEN_KEY_HOME:
        view->cpu = 0;
        return true;
    case SCREEN_KEY_END:
        move_selection(view, INT32_MAX);
        return true;
    default:
        return false;
    }
}

static bool press_vcpus(struct monitor_view *view, int key)
{
    return top_press(&view->top, key);
}

static const struct page {
    const char *name;
    const char *keys; /* those of the bottom row */
    void (*draw)(struct picture *picture);
    bool (*press)(struct monitor_view *view, int key); /* whether it was one of the page's */
    const char *const *(*help)(void);
} pages[] = {
    [MONITOR_RECORDING] = {"recorder page", "arrows CPU", draw_recording, press_recording,
                           recording_help},
    [MONITOR_VCPUS] = {"vCPU page", "v vCPUs   s sort   / filter", draw_vcpus, press_vcpus,
                       top_help},
};

static void draw_help(const struct picture *picture)
{
    static const char *const lines[] = {
        "",
        "q, Ctrl-C   quit",
        "h, ?        show or leave this page",
        "space       freeze the display; recording continues",
        "1, 2        the recorder page, the page of domains and vCPUs",
        NULL,
    };
    const char *const *const parts[] = {lines, pages[picture->view->page].help()};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        for (size_t j = 0; parts[i][j] && has_room(picture); j++)
            frame_add(picture->frame, "  %s", parts[i][j]);
    if (has_room(picture))
        frame_end_line(picture->frame);
    if (has_room(picture))
        frame_add(picture->frame,
                  "  See also: xentracectl status, xentracectl doctor, man xentracectl");
}

/* The bottom row. */
static void draw_keys(const struct picture *picture)
{
    const struct palette *palette = picture->palette;

    frame_skip_to(picture->frame, picture->frame->rows - 1);
    if (picture->view->paused)
        frame_put(picture->frame, "%s PAUSED %s ", palette->inverse, palette->end);
    frame_put(picture->frame, "%s q quit   h %s   space %s   %s", palette->dim,
              picture->view->help ? "back" : "help", picture->view->paused ? "continue" : "pause",
              pages[picture->view->page].keys);
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
        if (i != picture->view->page)
            frame_put(picture->frame, "   %zu %s", i + 1, pages[i].name);
    frame_add(picture->frame, "%s", palette->end);
}

static void keep_selection(struct monitor_view *view, unsigned int nr_cpus)
{
    view->nr_cpus = nr_cpus;
    if (view->cpu >= nr_cpus)
        view->cpu = nr_cpus ? nr_cpus - 1 : 0;
}

void monitor_draw(struct frame *frame, const struct monitor_facts *facts, struct monitor_view *view,
                  const struct palette *palette)
{
    struct picture picture = {.frame = frame, .facts = facts, .view = view, .palette = palette};

    draw_title(&picture);
    if (facts->status) {
        health_read(&picture.health, facts->status);
        (void)cpu_lines_read(&picture.cpus, facts->status, facts->before,
                             facts->elapsed_usec); /* else none is shown */
        keep_selection(view, picture.cpus.count);
        draw_health(&picture);
        if (!view->help)
            pages[view->page].draw(&picture);
    } else if (facts->error) {
        draw_wrapped(&picture, palette->bad, facts->error);
        frame_add(frame, "It is tried again every second.");
    }
    if (view->help)
        draw_help(&picture);
    draw_keys(&picture);
    cpu_lines_done(&picture.cpus);
    health_done(&picture.health);
}

/* --- Keys. --- */

bool monitor_press(struct monitor_view *view, int key)
{
    if (view->help && key == SCREEN_KEY_ESCAPE) {
        view->help = false;
        return false;
    }
    if (!view->help && pages[view->page].press(view, key))
        return false;
    switch (key) {
    case 'q':
    case 'Q':
        return true;
    case 'h':
    case '?':
        view->help = !view->help;
        break;
    case ' ':
        view->paused = !view->paused;
        break;
    default:
        if (key >= '1' && key < '1' + (int)ARRAY_SIZE(pages))
            view->page = (enum monitor_page)(key - '1');
        break;
    }
    return false;
}

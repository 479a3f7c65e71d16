// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cells are kept as text until the widths are known. Widths are counted in characters of UTF-8;
 * wide and combining characters do not occur in what is shown here.
 *
 * What is too wide is first put on lines of its own, then shortened, then left out: in this order
 * the least is lost. Numbers and states are never touched.
 */

#include "ctl/table.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl/number.h"
#include "ctl/str.h"

#define COLUMNS_MAX      12u
#define GAP              2  /* between two columns */
#define NAME_WIDTH       24 /* what is left of a first column that is shortened: its two ends */
#define SHORT_WIDTH      10 /* ... and of another */
#define BELOW_INDENT     4
#define DOTS             "..." /* also on a console without UTF-8 */
#define DEFAULT_TERMINAL 80    /* of a serial console, which does not know its size */

struct column {
    bool is_right, is_short, is_optional, is_below; /* its marks */
    bool is_hidden;
    int full_width; /* of its widest cell */
    int width;      /* as it is printed */
};

struct table {
    size_t nr_columns;
    struct column columns[COLUMNS_MAX];
    bool has_below; /* columns with that mark have lines of their own */
    char **cells;
    size_t nr_cells, room;
};

static bool begins_character(char byte)
{
    return (byte & 0xc0) != 0x80;
}

static int text_width(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += begins_character(*text);
    return width;
}

/* Returns where the name begins. */
static const char *read_marks(struct column *column, const char *text)
{
    for (;; text++) {
        switch (*text) {
        case '>':
            column->is_right = true;
            break;
        case '~':
            column->is_short = true;
            break;
        case '?':
            column->is_optional = true;
            break;
        case '/':
            column->is_below = true;
            break;
        default:
            return text;
        }
    }
}

int table_new(const char *columns, struct table **ret_table)
{
    struct table *table = calloc(1, sizeof(*table));
    size_t length;

    if (!table)
        return -ENOMEM;
    while (*columns && table->nr_columns < COLUMNS_MAX) {
        columns = read_marks(&table->columns[table->nr_columns++], columns);
        length = strcspn(columns, " ");
        table_add(table, "%.*s", (int)length, columns);
        columns += length;
        columns += strspn(columns, " ");
    }
    *ret_table = table;
    return 0;
}

struct table *table_free(struct table *table)
{
    if (!table)
        return NULL;
    for (size_t i = 0; i < table->nr_cells; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
    return NULL;
}

static bool make_room(struct table *table)
{
    size_t room = table->room ? 2 * table->room : 64;
    char **cells;

    if (table->nr_cells < table->room)
        return true;
    cells = reallocarray(table->cells, room, sizeof(*cells));
    if (!cells)
        return false;
    table->cells = cells;
    table->room = room;
    return true;
}

void table_add(struct table *table, const char *format, ...)
{
    va_list ap;
    char *text;
    int r;

    if (!make_room(table))
        return;
    va_start(ap, format);
    r = vasprintf(&text, format, ap);
    va_end(ap);
    if (r >= 0)
        str_make_printable(text); /* paths; all other text has been cleaned where it was read */
    table->cells[table->nr_cells++] = r < 0 ? NULL : text;
}

void table_add_count(struct table *table, uint64_t count)
{
    char text[NUMBER_MAX];

    table_add(table, "%s", number_format(text, count));
}

/* --- How wide. --- */

static void measure(struct table *table)
{
    for (size_t i = 0; i < table->nr_cells; i++) {
        int width = table->cells[i] ? text_width(table->cells[i]) : 0;
        struct column *column = &table->columns[i % table->nr_columns];

        if (width > column->full_width)
            column->full_width = width;
    }
    for (size_t i = 0; i < table->nr_columns; i++)
        table->columns[i].width = table->columns[i].full_width;
}

static bool is_in_row(const struct table *table, const struct column *column)
{
    return !column->is_hidden && !(table->has_below && column->is_below);
}

static int row_width(const struct table *table)
{
    int width = -GAP;

    for (size_t i = 0; i < table->nr_columns; i++) {
        if (is_in_row(table, &table->columns[i]))
            width += table->columns[i].width + GAP;
    }
    return width;
}

/* The widest column that may be shorter still; NULL: none. */
static struct column *find_widest(struct table *table)
{
    struct column *widest = NULL;

    for (size_t i = 0; i < table->nr_columns; i++) {
        struct column *column = &table->columns[i];

        if (is_in_row(table, column) && column->is_short &&
            column->width > (i == 0 ? NAME_WIDTH : SHORT_WIDTH) &&
            (!widest || column->width > widest->width))
            widest = column;
    }
    return widest;
}

/* Returns whether that is enough. */
static bool shorten(struct table *table, int width)
{
    struct column *column;

    while (row_width(table) > width && (column = find_widest(table)))
        column->width--;
    return row_width(table) <= width;
}

/* Returns false if nothing may be left out any more. */
static bool leave_out(struct table *table)
{
    for (size_t i = table->nr_columns; i-- > 0;) {
        struct column *column = &table->columns[i];

        if (!is_in_row(table, column) || !column->is_optional)
            continue;
        column->is_hidden = true;
        return true;
    }
    return false;
}

static void fit(struct table *table, int width)
{
    if (row_width(table) <= width)
        return;
    table->has_below = true;
    while (!shorten(table, width) && leave_out(table)) {
        for (size_t i = 0; i < table->nr_columns; i++)
            table->columns[i].width = table->columns[i].full_width;
    }
}

int table_terminal_width(bool full)
{
    struct winsize size = {0};

    if (full || !isatty(STDOUT_FILENO))
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col)
        return DEFAULT_TERMINAL;
    return size.ws_col;
}

/* --- The picture. --- */

/* How many bytes the first COUNT characters of TEXT have. */
static size_t characters_bytes(const char *text, int count)
{
    size_t bytes = 0;

    for (; text[bytes]; bytes++) {
        if (begins_character(text[bytes]) && count-- == 0)
            break;
    }
    return bytes;
}

/* TEXT in at most WIDTH characters: "snapshot-w...5-003". Returns how many. */
static int print_short(FILE *file, const char *text, int width)
{
    int full = text_width(text), dots = (int)strlen(DOTS);
    int head = (width - dots + 1) / 2, tail = width - dots - head;

    if (full <= width || tail <= 0) {
        (void)fputs(text, file);
        return full;
    }
    (void)fprintf(file, "%.*s" DOTS "%s", (int)characters_bytes(text, head), text,
                  text + characters_bytes(text, full - tail));
    return width;
}

static void print_row(const struct table *table, FILE *file, char *const *cells, int indent)
{
    int blanks = indent;

    for (size_t i = 0; i < table->nr_columns; i++) {
        const struct column *column = &table->columns[i];
        const char *text = cells[i] ? cells[i] : "";

        if (!is_in_row(table, column))
            continue;
        if (column->is_right)
            blanks += column->width - text_width(text);
        (void)fprintf(file, "%*s", blanks, "");
        blanks = column->width - print_short(file, text, column->width) + GAP;
        if (column->is_right)
            blanks = GAP;
    }
    (void)fputc('\n', file);
}

/* The cells that have a line of their own, but those that only say that there is nothing. */
static void print_below(const struct table *table, FILE *file, char *const *cells, int indent,
                        int width)
{
    for (size_t i = 0; i < table->nr_columns; i++) {
        const struct column *column = &table->columns[i];

        if (column->is_hidden || !column->is_below || !cells[i] || strcmp(cells[i], "-") == 0)
            continue;
        (void)fprintf(file, "%*s", indent + BELOW_INDENT, "");
        (void)print_short(file, cells[i], width - indent - BELOW_INDENT);
        (void)fputc('\n', file);
    }
}

void table_print(struct table *table, FILE *file, int indent, int width)
{
    measure(table);
    if (width)
        fit(table, width - indent);
    for (size_t i = 0; i + table->nr_columns <= table->nr_cells; i += table->nr_columns) {
        print_row(table, file, table->cells + i, indent);
        if (i && table->has_below)
            print_below(table, file, table->cells + i, indent, width);
    }
}

void table_print_field(FILE *file, const char *label, const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list ap;

    va_start(ap, format);
    if (vasprintf(&text, format, ap) < 0)
        text = NULL;
    va_end(ap);
    if (text)
        str_make_printable(text); /* paths */
    (void)fprintf(file, "%9s: %s\n", label, text ? text : "");
}

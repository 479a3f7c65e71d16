// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cells are kept as text until the widths are known. Widths are counted in characters of UTF-8;
 * wide and combining characters do not occur in what is shown here.
 */

#include "ctl/table.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "ctl/number.h"

#define COLUMNS_MAX 12u

struct table {
    size_t nr_columns;
    bool right[COLUMNS_MAX];
    int width[COLUMNS_MAX];
    char **cells;
    size_t nr_cells, room;
};

static int text_width(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

int table_new(const char *columns, struct table **ret_table)
{
    struct table *table = calloc(1, sizeof(*table));

    if (!table)
        return -ENOMEM;
    while (*columns && table->nr_columns < COLUMNS_MAX) {
        size_t column = table->nr_columns++, length;

        table->right[column] = *columns == '>';
        columns += *columns == '>';
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
    table->cells[table->nr_cells++] = r < 0 ? NULL : text;
}

void table_add_count(struct table *table, uint64_t count)
{
    char text[NUMBER_MAX];

    table_add(table, "%s", number_format(text, count));
}

static void measure(struct table *table)
{
    for (size_t i = 0; i < table->nr_cells; i++) {
        int width = table->cells[i] ? text_width(table->cells[i]) : 0;
        int *widest = &table->width[i % table->nr_columns];

        if (width > *widest)
            *widest = width;
    }
}

void table_print(struct table *table, FILE *file, int indent)
{
    measure(table);
    for (size_t i = 0; i < table->nr_cells; i++) {
        size_t column = i % table->nr_columns;
        bool last = column + 1 == table->nr_columns;
        const char *text = table->cells[i] ? table->cells[i] : "";
        int blanks = table->width[column] - text_width(text);

        if (column == 0)
            (void)fprintf(file, "%*s", indent, "");
        if (table->right[column])
            (void)fprintf(file, "%*s%s", blanks, "", text);
        else
            (void)fprintf(file, "%s%*s", text, last ? 0 : blanks, "");
        (void)fputs(last ? "\n" : "  ", file);
    }
}

void table_print_field(FILE *file, const char *label, const char *format, ...)
{
    va_list ap;

    (void)fprintf(file, "%9s: ", label);
    va_start(ap, format);
    (void)vfprintf(file, format, ap);
    va_end(ap);
    (void)fputc('\n', file);
}

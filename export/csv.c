// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Comma-separated values (RFC 4180, but with a newline alone at the end of a line): a line of
 * names, then a line for each record or interval. An unknown value is empty.
 */

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/units.h"
#include "common/util.h"
#include "export/export.h"
#include "export/formats.h"

/* The text of the last second. */
struct csv {
    uint64_t second;
    char text[24]; /* "2026-11-21T06:00:12" */
};

static uint8_t *put_text(uint8_t *p, const char *text)
{
    return put_bytes(p, text, strlen(text));
}

static uint8_t *put_number(uint8_t *p, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return put_bytes(p, digits + at, sizeof(digits) - at);
}

/* A number, or nothing, and a comma. */
static uint8_t *put_number_field(uint8_t *p, uint32_t number)
{
    if (number != EXPORT_NOBODY)
        p = put_number(p, number);
    return put_u8(p, ',');
}

/*
 * Whether a spreadsheet would take the cell at TEXT for a formula: it begins with = + - or @, which
 * may be full-width, after blanks; or with the apostrophe that marks such a cell.
 */
static bool needs_apostrophe(const char *text)
{
    static const char *const begins[] = {"=", "+", "-", "@", "'", "＝", "＋", "－", "＠"};

    text += strspn(text, " ");
    for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
        if (strncmp(text, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

/*
 * Text from the sidecar. Some spreadsheets end cells at semicolons, also in quotes that do not
 * begin what they take for the cell.
 */
static uint8_t *put_name(uint8_t *p, const char *text)
{
    bool begins_cell = true;

    p = put_u8(p, '"');
    for (; *text; text++) {
        if (begins_cell && needs_apostrophe(text))
            p = put_u8(p, '\'');
        begins_cell = *text == ';';
        if (*text == '"')
            p = put_u8(p, '"');
        p = put_u8(p, (uint8_t)*text);
    }
    return put_u8(p, '"');
}

/* In quotes. */
static uint8_t *put_quoted(uint8_t *p, const char *text, size_t length)
{
    p = put_u8(p, '"');
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            p = put_u8(p, '"');
        p = put_u8(p, (uint8_t)text[i]);
    }
    return put_u8(p, '"');
}

/* "2026-11-21T06:00:12.123456789Z", or nothing, and a comma. */
static uint8_t *put_time(struct export *export, uint8_t *p, uint64_t tsc)
{
    struct csv *csv = export->state;
    uint64_t nsec = xentrace_realtime_nsec(export->trace, tsc);
    uint64_t second = nsec / NSEC_PER_SEC;

    if (nsec == 0)
        return put_u8(p, ',');
    if (second != csv->second) {
        time_t seconds = (time_t)second;
        struct tm utc;

        if (!gmtime_r(&seconds, &utc))
            return put_u8(p, ',');
        (void)strftime(csv->text, sizeof(csv->text), "%Y-%m-%dT%H:%M:%S", &utc);
        csv->second = second;
    }
    p = put_text(p, csv->text);
    nsec = nsec % NSEC_PER_SEC + NSEC_PER_SEC; /* its digits, after one more */
    p = put_number(p, nsec);
    p[-10] = '.';
    return put_text(p, "Z,");
}

static int csv_begin(struct export *export)
{
    static const char *const names[] = {
        [EXPORT_RECORDS] = "time,nsec,tsc,cpu,event,name,fields\n",
        [EXPORT_INTERVALS] = "time,nsec,from_tsc,to_tsc,kind,domain,vcpu,domain_name,cpu,begin_cpu,"
                             "wait,next,value,name,cycles,complete,lost\n",
    };
    uint8_t *p = export_buffer_reserve(&export->buffer, EXPORT_ROW_MAX);

    export_buffer_take(&export->buffer, put_text(p, names[export->table]));
    return 0;
}

/* The object that `dump --json` has, which is the last of its line, before a brace. */
static uint8_t *put_fields(struct export *export, uint8_t *p)
{
    static const char key[] = "\"fields\":";
    const char *object = strstr(xentrace_json(export->trace), key);

    if (!object)
        return p;
    object += strlen(key);
    return put_quoted(p, object, strlen(object) - 1);
}

static int csv_record(struct export *export, const struct xentrace_record *record)
{
    uint8_t *p = export_buffer_reserve(&export->buffer, EXPORT_ROW_MAX);
    char event[16];

    p = put_time(export, p, record->tsc);
    p = put_u8(put_number(p, record->nsec), ',');
    p = put_u8(put_number(p, record->tsc), ',');
    p = put_number_field(p, record->cpu);
    (void)snprintf(event, sizeof(event), "0x%08" PRIx32 ",", record->event);
    p = put_text(p, event);
    p = put_u8(put_text(p, record->name ? record->name : ""), ',');
    p = put_fields(export, p);
    export_buffer_take(&export->buffer, put_u8(p, '\n'));
    return 0;
}

static int csv_interval(struct export *export, const struct export_interval *interval)
{
    uint8_t *p = export_buffer_reserve(&export->buffer, EXPORT_ROW_MAX);
    char buffer[EXPORT_NAME_MAX];
    const char *name;

    p = put_time(export, p, interval->from_tsc);
    p = put_u8(put_number(p, export_nsec(export, interval->from_tsc)), ',');
    p = put_u8(put_number(p, interval->from_tsc), ',');
    p = put_u8(put_number(p, interval->to_tsc), ',');
    p = put_u8(put_text(p, export_kind_name(interval->kind)), ',');
    p = put_number_field(p, interval->domid);
    p = put_number_field(p, interval->vcpu);
    if (interval->domid != EXPORT_NOBODY) {
        name = export_domain_name(export, interval->domid, interval->from_tsc, buffer);
        p = put_name(p, name);
    }
    p = put_u8(p, ',');
    p = put_number_field(p, interval->cpu);
    p = put_number_field(p, interval->begin_cpu);
    p = put_u8(put_text(p, export_wait_name(interval->wait)), ',');
    p = put_u8(put_text(p, export_runstate_name(interval->next)), ',');
    if (interval->kind >= EXPORT_EXIT)
        p = put_number(p, interval->value);
    p = put_u8(p, ',');
    p = put_u8(put_text(p, interval->name), ',');
    p = put_u8(put_number(p, interval->cycles), ',');
    p = put_text(p, interval->is_complete ? "1," : "0,");
    p = put_text(p, interval->ends_in_loss ? "1\n" : "0\n");
    export_buffer_take(&export->buffer, p);
    return 0;
}

const struct export_format export_csv = {
    .name = "csv",
    .summary = "comma-separated values: spreadsheets, Python, DuckDB, Parquet",
    .has_tables = true,
    .state_bytes = sizeof(struct csv),
    .begin = csv_begin,
    .record = csv_record,
    .interval = csv_interval,
};

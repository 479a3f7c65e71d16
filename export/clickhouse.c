// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ClickHouse's RowBinary: the columns of a row one after the other, numbers little-endian, a text
 * or an array after its length as LEB128. There is no header: the schema below has the same columns
 * in the same order. Source: ClickHouse's documentation, "Formats for input and output data".
 *
 * Most of a record's row is the same in all rows of its event, and is copied whole.
 */

#include "common/text.h"
#include "common/units.h"
#include "export/export.h"
#include "export/formats.h"

#define PREFIX_MAX 512u /* host and boot */
#define SLOTS      512u
#define TEXTS_MAX  256u
#define TEXT_MAX   255u /* longer ones are cut */

/* The texts of an event's rows: its name, and the array of its fields' names. */
struct slot {
    bool is_used;
    uint32_t event, nr_words;
    size_t bytes;
    uint8_t texts[TEXTS_MAX];
};

struct clickhouse {
    size_t prefix_bytes;
    uint8_t prefix[PREFIX_MAX];
    struct slot slots[SLOTS];
};

static uint8_t *put_text(uint8_t *p, const char *text)
{
    size_t length = text ? strlen(text) : 0;

    if (length > TEXT_MAX)
        length = TEXT_MAX;
    return put_bytes(put_varint(p, length), text ? text : "", length);
}

/* An Int32, -1 for nobody. */
static uint8_t *put_id(uint8_t *p, uint32_t id)
{
    return put_u32(p, id);
}

/*
 * A UUID: two numbers of 8 bytes, the high one first; zeroes without one. The ID of a boot has 32
 * hexadecimal digits, maybe with dashes.
 */
static uint8_t *put_uuid(uint8_t *p, const char *text)
{
    uint64_t halves[2] = {0, 0};
    unsigned int nr = 0;

    for (; text && *text && nr < 32; text++) {
        unsigned int digit = text_hex_digit(*text);

        if (digit == 16)
            continue;
        halves[nr / 16] = halves[nr / 16] << 4 | digit;
        nr++;
    }
    if (nr < 32)
        halves[0] = halves[1] = 0;
    return put_u64(put_u64(p, halves[0]), halves[1]);
}

static int clickhouse_begin(struct export *export)
{
    struct clickhouse *clickhouse = export->state;
    uint8_t *p = clickhouse->prefix;

    p = put_text(p, xentrace_hostname(export->trace));
    p = put_uuid(p, xentrace_boot_id(export->trace));
    clickhouse->prefix_bytes = (size_t)(p - clickhouse->prefix);
    return 0;
}

/* By the wall clock; without one since the first record. */
static uint64_t time_of(const struct export *export, uint64_t tsc)
{
    uint64_t nsec = xentrace_realtime_nsec(export->trace, tsc);

    return nsec > 0 ? nsec : export_nsec(export, tsc);
}

static uint8_t *put_begin(const struct export *export, uint8_t *p, uint64_t nsec)
{
    const struct clickhouse *clickhouse = export->state;

    p = put_bytes(p, clickhouse->prefix, clickhouse->prefix_bytes);
    p = put_u16(p, (uint16_t)(nsec / (86400 * NSEC_PER_SEC))); /* Date: days since 1970 */
    return put_u64(p, nsec);
}

/* --- Records. --- */

static void fill_slot(struct slot *slot, const struct xentrace_record *record,
                      const struct xentrace_field *fields, size_t nr)
{
    uint8_t *p = put_text(slot->texts, record->name);

    p = put_varint(p, nr);
    for (size_t i = 0; i < nr; i++)
        p = put_text(p, fields[i].name);
    slot->bytes = (size_t)(p - slot->texts);
    slot->event = record->event;
    slot->nr_words = record->nr_words;
    slot->is_used = true;
}

/* The number of an event and that of its words decide its layout. */
static uint8_t *put_texts(struct export *export, uint8_t *p, const struct xentrace_record *record,
                          const struct xentrace_field *fields, size_t nr)
{
    struct clickhouse *clickhouse = export->state;
    uint32_t hash = (record->event ^ record->nr_words << 28) * UINT32_C(2654435761);
    struct slot *slot = &clickhouse->slots[hash >> 23];

    if (!slot->is_used || slot->event != record->event || slot->nr_words != record->nr_words)
        fill_slot(slot, record, fields, nr);
    return put_bytes(p, slot->texts, slot->bytes);
}

static int clickhouse_record(struct export *export, const struct xentrace_record *record)
{
    uint8_t *p = export_buffer_reserve(&export->buffer, EXPORT_ROW_MAX);
    const struct xentrace_field *fields;
    size_t nr = xentrace_fields(export->trace, &fields);
    uint64_t nsec = xentrace_realtime_nsec(export->trace, record->tsc);

    p = put_begin(export, p, nsec > 0 ? nsec : record->nsec);
    p = put_u64(p, record->tsc);
    p = put_u16(p, (uint16_t)record->cpu);
    p = put_u32(p, record->event);
    p = put_texts(export, p, record, fields, nr);
    p = put_varint(p, nr);
    for (size_t i = 0; i < nr; i++)
        p = put_u64(p, fields[i].value);
    export_buffer_take(&export->buffer, p);
    return 0;
}

/* --- Intervals. --- */

static int clickhouse_interval(struct export *export, const struct export_interval *interval)
{
    uint8_t *p = export_buffer_reserve(&export->buffer, EXPORT_ROW_MAX);
    char name[EXPORT_NAME_MAX] = "";

    if (interval->domid != EXPORT_NOBODY)
        (void)export_domain_name(export, interval->domid, interval->from_tsc, name);
    p = put_begin(export, p, time_of(export, interval->from_tsc));
    p = put_u64(p, time_of(export, interval->to_tsc));
    p = put_u64(p, interval->from_tsc);
    p = put_u64(p, interval->to_tsc);
    p = put_text(p, export_kind_name(interval->kind));
    p = put_id(p, interval->domid);
    p = put_id(p, interval->vcpu);
    p = put_text(p, name);
    p = put_id(p, interval->cpu);
    p = put_id(p, interval->begin_cpu);
    p = put_text(p, export_wait_name(interval->wait));
    p = put_text(p, export_runstate_name(interval->next));
    p = put_u64(p, interval->value);
    p = put_text(p, interval->name);
    p = put_u64(p, interval->cycles);
    p = put_u8(p, interval->is_complete);
    export_buffer_take(&export->buffer, put_u8(p, interval->ends_in_loss));
    return 0;
}

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS records (\n"
    "    host LowCardinality(String),\n"
    "    boot_id UUID,\n"
    "    day Date,\n"
    "    time_ns UInt64,\n"
    "    tsc UInt64,\n"
    "    cpu UInt16,\n"
    "    event UInt32,\n"
    "    name LowCardinality(String),\n"
    "    field Nested(name LowCardinality(String), value UInt64)\n"
    ") ENGINE = MergeTree PARTITION BY day ORDER BY (host, time_ns);\n"
    "CREATE TABLE IF NOT EXISTS intervals (\n"
    "    host LowCardinality(String),\n"
    "    boot_id UUID,\n"
    "    day Date,\n"
    "    from_ns UInt64,\n"
    "    to_ns UInt64,\n"
    "    from_tsc UInt64,\n"
    "    to_tsc UInt64,\n"
    "    kind LowCardinality(String),\n"
    "    domain Int32,\n"
    "    vcpu Int32,\n"
    "    domain_name LowCardinality(String),\n"
    "    cpu Int32,\n"
    "    begin_cpu Int32,\n"
    "    wait LowCardinality(String),\n"
    "    next LowCardinality(String),\n"
    "    value UInt64,\n"
    "    name LowCardinality(String),\n"
    "    cycles UInt64,\n"
    "    complete UInt8,\n"
    "    lost UInt8\n"
    ") ENGINE = ReplacingMergeTree PARTITION BY day\n"
    "  ORDER BY (host, boot_id, from_tsc, kind, domain, vcpu, cpu, to_tsc, value);\n";

const struct export_format export_clickhouse = {
    .name = "clickhouse",
    .summary = "rows for ClickHouse (RowBinary); --schema prints its tables",
    .is_binary = true,
    .has_tables = true,
    .state_bytes = sizeof(struct clickhouse),
    .begin = clickhouse_begin,
    .record = clickhouse_record,
    .interval = clickhouse_interval,
    .schema = schema,
};

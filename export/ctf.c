// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The Common Trace Format 1.8: a directory with a stream for each CPU, and a file of metadata in
 * TSDL, which describes each event that is there. Source: the specification at
 * https://diamon.org/ctf/v1.8.3/.
 *
 * The metadata is written at the end, from the layouts of the records that were seen: a record may
 * lack fields that others of its event have. Unknown events, and those that guests make, share one
 * layout, in which the event's number is a field; so there are few, whatever the trace says.
 *
 * Timestamps are the TSC; the clock's offset is the wall clock at the trace's first record. Records
 * that were lost are counted in the context of the next packet of their CPU.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/util.h"
#include "common/write-all.h"
#include "export/export.h"
#include "export/formats.h"

#define MAGIC        UINT32_C(0xc1fc1fc1)
#define PACKET_BYTES 65536u
#define FIRST_BYTES  2048u /* before it has grown to that */
#define EVENT_MAX    128u
#define HEAD_BYTES   52u /* of a packet: its header and its context */
#define FIELDS_MAX   9u
#define LAYOUTS_MAX  8192u
#define SLOTS        16384u
#define CPUS_MAX     65536u
#define LOST_RECORDS 0x1f001u

struct field {
    const char *name;
    uint8_t type; /* enum xentrace_type */
    uint8_t bytes;
};

/* An event class: what records look like that have the same fields. */
struct layout {
    uint32_t event;
    const char *name; /* NULL: the event is a field */
    unsigned int nr;
    struct field fields[FIELDS_MAX];
};

/* A stream. Its packet is written when it is full. */
struct stream {
    int fd; /* 0: there is none */
    uint64_t begin_tsc, end_tsc, discarded;
    size_t used, size;
    uint8_t *bytes; /* [size], up to PACKET_BYTES: of 16384 CPUs most have few records */
};

struct ctf {
    struct stream **streams; /* [nr_streams], by CPU; NULL: it has no record */
    uint32_t nr_streams;
    struct layout
        *layouts; /* [LAYOUTS_MAX], of which nr_layouts; their numbers are the events' IDs */
    unsigned int nr_layouts;
    uint16_t slots[SLOTS]; /* a layout's number plus 1; 0: free */
};

/* --- Streams. --- */

static int stream_flush(struct export *export, struct stream *stream, uint32_t cpu)
{
    uint8_t *p = stream->bytes;
    int r;

    p = put_u32(put_u32(p, MAGIC), 0);
    p = put_u64(put_u64(p, stream->begin_tsc), stream->end_tsc);
    p = put_u64(put_u64(p, stream->used * 8), stream->used * 8);
    (void)put_u32(put_u64(p, stream->discarded), cpu);
    r = write_all(stream->fd, stream->bytes, stream->used);
    if (r < 0)
        return r;
    export->buffer.written += stream->used;
    stream->used = HEAD_BYTES;
    return 0;
}

static int grow_streams(struct ctf *ctf, uint32_t nr)
{
    struct stream **streams;

    if (nr <= ctf->nr_streams)
        return 0;
    streams = reallocarray(ctf->streams, nr, sizeof(struct stream *));
    if (!streams)
        return -ENOMEM;
    memset(streams + ctf->nr_streams, 0, (nr - ctf->nr_streams) * sizeof(struct stream *));
    ctf->streams = streams;
    ctf->nr_streams = nr;
    return 0;
}

static int find_stream(struct export *export, uint32_t cpu, struct stream **ret_stream)
{
    struct ctf *ctf = export->state;
    struct stream *stream;
    char name[32];
    int r;

    if (cpu >= CPUS_MAX)
        return -EBADMSG; /* no trace has them */
    r = grow_streams(ctf, cpu + 1);
    if (r < 0)
        return r;
    *ret_stream = ctf->streams[cpu];
    if (*ret_stream)
        return 0;
    stream = calloc(1, sizeof(*stream));
    if (!stream)
        return -ENOMEM;
    (void)snprintf(name, sizeof(name), "cpu_%" PRIu32, cpu);
    stream->fd = openat(export->buffer.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (stream->fd < 0) {
        r = -errno;
        free(stream);
        return r;
    }
    stream->used = HEAD_BYTES;
    ctf->streams[cpu] = *ret_stream = stream;
    return 0;
}

/* Room for an event at TSC. Losses before it begin a packet, which counts them. */
static int begin_event(struct export *export, const struct xentrace_record *record,
                       struct stream **ret_stream)
{
    struct stream *stream;
    int r;

    r = find_stream(export, record->cpu, &stream);
    if (r < 0)
        return r;
    if (stream->used > HEAD_BYTES &&
        (stream->used > PACKET_BYTES - EVENT_MAX || record->event == LOST_RECORDS))
        r = stream_flush(export, stream, record->cpu);
    if (r < 0)
        return r;
    if (record->event == LOST_RECORDS && record->nr_words > 0)
        stream->discarded += record->words[0];
    if (stream->used + EVENT_MAX > stream->size) {
        size_t size = stream->size ? 2 * stream->size : FIRST_BYTES;
        uint8_t *bytes = realloc(stream->bytes, size);

        if (!bytes)
            return -ENOMEM;
        stream->bytes = bytes;
        stream->size = size;
    }
    if (stream->used == HEAD_BYTES)
        stream->begin_tsc = record->tsc;
    stream->end_tsc = record->tsc;
    *ret_stream = stream;
    return 0;
}

/* --- Layouts. --- */

static uint8_t bytes_of(uint32_t bits)
{
    if (bits > 32)
        return 8;
    return bits > 16 ? 4 : bits > 8 ? 2 : 1;
}

/* Events that share a layout: their number is a field. */
static bool is_nameless(const struct xentrace_record *record)
{
    return !record->name || (record->event & ~UINT32_C(0xfff)) == 0x0800f000;
}

static void make_layout(const struct xentrace_record *record, const struct xentrace_field *fields,
                        size_t nr, struct layout *ret_layout)
{
    struct layout layout = {.event = record->event, .name = record->name};

    if (is_nameless(record)) {
        layout.event = 0;
        layout.name = NULL;
        layout.fields[layout.nr++] = (struct field){"event", XENTRACE_HEX, 4};
    }
    for (size_t i = 0; i < nr && layout.nr < FIELDS_MAX; i++)
        layout.fields[layout.nr++] = (struct field){
            .name = fields[i].name,
            .type = (uint8_t)fields[i].type,
            .bytes = fields[i].type == XENTRACE_VCPU ? 4 : bytes_of(fields[i].bits),
        };
    *ret_layout = layout;
}

/* The names are the library's own texts: the same pointer is the same name. */
static bool is_layout(const struct layout *layout, const struct xentrace_record *record,
                      const struct xentrace_field *fields, size_t nr)
{
    unsigned int first = layout->name ? 0 : 1;

    if (layout->event != (first ? 0 : record->event) || layout->nr != first + nr)
        return false;
    for (size_t i = 0; i < nr; i++)
        if (layout->fields[first + i].name != fields[i].name)
            return false;
    return true;
}

static int find_layout(struct ctf *ctf, const struct xentrace_record *record,
                       const struct xentrace_field *fields, size_t nr, uint16_t *ret_id)
{
    uint32_t event = is_nameless(record) ? 0 : record->event;
    uint32_t hash = (event ^ (uint32_t)nr << 28) * UINT32_C(2654435761) >> 16;

    for (;; hash++) {
        uint16_t *slot = &ctf->slots[hash % SLOTS];

        if (*slot == 0) {
            if (ctf->nr_layouts == LAYOUTS_MAX)
                return -EOVERFLOW;
            make_layout(record, fields, nr, &ctf->layouts[ctf->nr_layouts]);
            *slot = (uint16_t)++ctf->nr_layouts;
        }
        *ret_id = (uint16_t)(*slot - 1);
        if (is_layout(&ctf->layouts[*ret_id], record, fields, nr))
            return 0;
    }
}

/* --- Records. --- */

static uint8_t *put_field(uint8_t *p, const struct field *field, uint64_t value)
{
    if (field->type == XENTRACE_VCPU)
        return put_u16(put_u16(p, (uint16_t)(value >> 16)), (uint16_t)value);
    return put_bytes(p, &value, field->bytes); /* little-endian: the low ones */
}

static int ctf_record(struct export *export, const struct xentrace_record *record)
{
    struct ctf *ctf = export->state;
    const struct xentrace_field *fields;
    size_t nr = xentrace_fields(export->trace, &fields);
    const struct field *field;
    struct stream *stream;
    uint16_t id;
    uint8_t *p;
    int r;

    r = begin_event(export, record, &stream);
    if (r < 0)
        return r;
    r = find_layout(ctf, record, fields, nr, &id);
    if (r < 0)
        return r;
    p = stream->bytes + stream->used;
    p = put_u64(put_u16(p, id), record->tsc);
    field = ctf->layouts[id].fields;
    if (!ctf->layouts[id].name)
        p = put_field(p, field++, record->event);
    for (size_t i = 0; i < nr; i++)
        p = put_field(p, field++, fields[i].value);
    stream->used = (size_t)(p - stream->bytes);
    return 0;
}

/* --- Metadata. --- */

static void print_string(FILE *file, const char *key, const char *text)
{
    if (!text)
        return;
    (void)fprintf(file, "\t%s = \"", key);
    for (; *text; text++)
        (void)fprintf(file, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    (void)fputs("\";\n", file);
}

static void print_clock(FILE *file, const struct export *export)
{
    uint64_t first_tsc = xentrace_first_tsc(export->trace);
    uint64_t realtime = xentrace_realtime_nsec(export->trace, first_tsc);
    uint64_t khz = xentrace_tsc_khz(export->trace), offset = 0, offset_sec = 0;
    __int128 ticks;

    if (realtime > 0) {
        ticks = (__int128)realtime * (__int128)khz / 1000000 - (__int128)first_tsc;
        if (ticks > 0) {
            offset_sec = (uint64_t)(ticks / (__int128)(khz * 1000));
            offset = (uint64_t)(ticks % (__int128)(khz * 1000));
        }
    }
    (void)fprintf(file,
                  "clock {\n\tname = tsc;\n\tdescription = \"Time Stamp Counter\";\n"
                  "\tfreq = %" PRIu64 ";\n\toffset_s = %" PRIu64 ";\n\toffset = %" PRIu64 ";\n"
                  "\tabsolute = %s;\n};\n",
                  khz * 1000, offset_sec, offset, realtime > 0 ? "true" : "false");
}

static void print_head(FILE *file, const struct export *export)
{
    static const char types[] =
        "typealias integer { size = 8; align = 8; signed = false; } := u8;\n"
        "typealias integer { size = 16; align = 8; signed = false; } := u16;\n"
        "typealias integer { size = 32; align = 8; signed = false; } := u32;\n"
        "typealias integer { size = 64; align = 8; signed = false; } := u64;\n"
        "typealias integer { size = 64; align = 8; signed = false; map = clock.tsc.value; } := "
        "tsc_t;\n";

    (void)fputs("/* CTF 1.8 */\n", file);
    (void)fputs("trace {\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = le;\n"
                "\tpacket.header := struct {\n"
                "\t\tinteger { size = 32; align = 8; signed = false; } magic;\n"
                "\t\tinteger { size = 32; align = 8; signed = false; } stream_id;\n\t};\n};\n",
                file);
    (void)fputs("env {\n\tdomain = \"xen\";\n\ttracer_name = \"xentraced\";\n", file);
    print_string(file, "hostname", xentrace_hostname(export->trace));
    print_string(file, "boot_id", xentrace_boot_id(export->trace));
    print_string(file, "xen_version", xentrace_xen_version(export->trace));
    print_string(file, "scheduler", xentrace_scheduler(export->trace));
    (void)fputs("};\n", file);
    print_clock(file, export);
    (void)fputs(types, file);
    (void)fputs("stream {\n\tid = 0;\n\tpacket.context := struct {\n\t\ttsc_t timestamp_begin;\n"
                "\t\ttsc_t timestamp_end;\n\t\tu64 content_size;\n\t\tu64 packet_size;\n"
                "\t\tu64 events_discarded;\n\t\tu32 cpu_id;\n\t};\n"
                "\tevent.header := struct {\n\t\tu16 id;\n\t\ttsc_t timestamp;\n\t};\n};\n",
                file);
}

/* A name begins with an underscore, which readers take away: it may be a word of TSDL. */
static void print_field(FILE *file, const struct field *field)
{
    bool is_hex = field->type == XENTRACE_HEX || field->type == XENTRACE_ADDRESS ||
                  field->type == XENTRACE_REASON || field->type == XENTRACE_ARGUMENT;

    if (field->type == XENTRACE_VCPU)
        (void)fprintf(file, "\t\tstruct { u16 _domain; u16 _vcpu; } _%s;\n", field->name);
    else
        (void)fprintf(file, "\t\tinteger { size = %u; align = 8; signed = %s; base = %u; } _%s;\n",
                      field->bytes * 8u, field->type == XENTRACE_SIGNED ? "true" : "false",
                      is_hex ? 16u : 10u, field->name);
}

static int ctf_write_metadata(struct export *export)
{
    const struct ctf *ctf = export->state;
    int fd = openat(export->buffer.fd, "metadata", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok;

    if (!file)
        return -errno;
    print_head(file, export);
    for (unsigned int i = 0; i < ctf->nr_layouts; i++) {
        const struct layout *layout = &ctf->layouts[i];

        (void)fprintf(file, "event {\n\tid = %u;\n\tname = \"%s\";\n\tstream_id = 0;\n", i,
                      layout->name ? layout->name : "other");
        (void)fputs("\tfields := struct {\n", file);
        for (unsigned int j = 0; j < layout->nr; j++)
            print_field(file, &layout->fields[j]);
        (void)fputs("\t};\n};\n", file);
    }
    ok = fflush(file) == 0 && !ferror(file);
    export->buffer.written += ok ? (uint64_t)ftell(file) : 0;
    return fclose(file) == 0 && ok ? 0 : -errno;
}

/* --- The format. --- */

static int ctf_begin(struct export *export)
{
    struct ctf *ctf = export->state;

    ctf->layouts = calloc(LAYOUTS_MAX, sizeof(*ctf->layouts));
    return ctf->layouts ? 0 : -ENOMEM;
}

static int ctf_finish(struct export *export)
{
    struct ctf *ctf = export->state;
    int r = 0;

    for (uint32_t cpu = 0; cpu < ctf->nr_streams && r == 0; cpu++)
        if (ctf->streams[cpu] && ctf->streams[cpu]->used > HEAD_BYTES)
            r = stream_flush(export, ctf->streams[cpu], cpu);
    return r < 0 ? r : ctf_write_metadata(export);
}

static void ctf_done(struct export *export)
{
    struct ctf *ctf = export->state;

    for (uint32_t cpu = 0; cpu < ctf->nr_streams; cpu++) {
        if (!ctf->streams[cpu])
            continue;
        (void)close(ctf->streams[cpu]->fd); /* all was written, or the export has failed */
        free(ctf->streams[cpu]->bytes);
        free(ctf->streams[cpu]);
    }
    free(ctf->streams);
    free(ctf->layouts);
}

const struct export_format export_ctf = {
    .name = "ctf",
    .summary = "a directory for babeltrace2 and Trace Compass (CTF 1.8)",
    .is_binary = true,
    .is_directory = true,
    .state_bytes = sizeof(struct ctf),
    .begin = ctf_begin,
    .record = ctf_record,
    .finish = ctf_finish,
    .done = ctf_done,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A text is cut into literals and numbers once. What Python's % operator would refuse while it
 * prints is refused when the file is read.
 *
 * Source: xentrace_format(1); printf-style formatting in the Python documentation, whose flags
 * differ from C's.
 */

#include "ctl/format-file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/event-set.h"
#include "common/record.h"
#include "common/trace-open.h"
#include "ctl/str.h"
#include "trace/merge.h"
#include "trace/source.h"

#define EVENT_TRACE_IRQ 0x1f004u /* as xentrace wrote it long ago: vector, begin, end */
#define IRQ_VECTORS     256u

/* Their upper bits say which arguments follow; the second is as xentrace_format has it. */
#define EVENT_HYPERCALL_V2      0x20100du
#define EVENT_HYPERCALL_SUBCALL 0x20100eu
#define HYPERCALL_MASK          0xfffffu

#define FILE_BYTES_MAX (1u << 20)
#define WIDTH_MAX      1000u

enum variable {
    CPU,
    TSC,
    RELTSC,
    EVENT,
    WORD_1,
    WORDS = 7,
    NR_VARIABLES = WORD_1 + WORDS,
};

struct piece {
    const char *literal; /* before the number */
    size_t length;
    enum variable variable; /* NR_VARIABLES: there is no number */
    unsigned int base;      /* 8, 10, 16 */
    bool is_upper, is_alternate, is_left, is_zero, is_space, is_plus;
    unsigned int width, precision; /* digits at least */
};

struct format {
    uint32_t event;
    struct piece *pieces;
    size_t nr_pieces;
};

struct format_file {
    char *path, *text;
    unsigned int line;      /* while it is read */
    struct format *formats; /* by event */
    size_t nr_formats;
};

struct format_file *format_file_free(struct format_file *formats)
{
    if (!formats)
        return NULL;
    for (size_t i = 0; i < formats->nr_formats; i++)
        free(formats->formats[i].pieces);
    free(formats->formats);
    free(formats->path);
    free(formats->text);
    free(formats);
    return NULL;
}

/* --- Reading the file. --- */

static int refuse(const struct format_file *formats, char **ret_error, const char *what)
{
    return str_refuse(-EINVAL, ret_error, "%s:%u: %s", formats->path, formats->line, what);
}

/* "cpu", LENGTH characters of it */
static enum variable find_variable(const char *name, size_t length)
{
    static const char *const names[] = {
        [CPU] = "cpu", [TSC] = "tsc", [RELTSC] = "reltsc", [EVENT] = "event"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return (enum variable)i;
    }
    if (length == 1 && *name >= '1' && *name <= '7')
        return (enum variable)(WORD_1 + (*name - '1'));
    return NR_VARIABLES;
}

static bool parse_flag(struct piece *piece, char flag)
{
    switch (flag) {
    case '#':
        piece->is_alternate = true;
        return true;
    case '0':
        piece->is_zero = true;
        return true;
    case '-':
        piece->is_left = true;
        return true;
    case ' ':
        piece->is_space = true;
        return true;
    case '+':
        piece->is_plus = true;
        return true;
    default:
        return false;
    }
}

static const char *parse_width(const char *p, unsigned int *ret_width)
{
    *ret_width = 0;
    while (*p >= '0' && *p <= '9' && *ret_width <= WIDTH_MAX)
        *ret_width = *ret_width * 10 + (unsigned int)(*p++ - '0');
    return p;
}

/* From after the '%' on. Returns what follows, or NULL with a sentence in *RET_WHAT. */
static const char *parse_number(const char *p, struct piece *piece, const char **ret_what)
{
    const char *end = *p == '(' ? strchr(p, ')') : NULL;

    if (!end) {
        *ret_what = "a % must be followed by the name of a field: %(cpu)d; %% is a percent sign.";
        return NULL;
    }
    piece->variable = find_variable(p + 1, (size_t)(end - p) - 1);
    if (piece->variable == NR_VARIABLES) {
        *ret_what = "unknown field: there are cpu, tsc, reltsc, event, and 1 to 7.";
        return NULL;
    }
    for (p = end + 1; parse_flag(piece, *p); p++)
        ;
    p = parse_width(p, &piece->width);
    if (*p == '.')
        p = parse_width(p + 1, &piece->precision);
    if (piece->width > WIDTH_MAX || piece->precision > WIDTH_MAX) {
        *ret_what = "a number cannot have more than 1000 characters.";
        return NULL;
    }
    if (*p && strchr("hlL", *p))
        p++;
    if (!*p || !strchr("diuoxX", *p)) {
        *ret_what = "a number ends with d, i, u, o, x or X: %(1)08x.";
        return NULL;
    }
    piece->base = *p == 'o' ? 8 : *p == 'x' || *p == 'X' ? 16 : 10;
    piece->is_upper = *p == 'X';
    return p + 1;
}

static int format_parse(const struct format_file *formats, struct format *format, const char *text,
                        char **ret_error)
{
    size_t nr_percents = 0;

    for (const char *p = text; *p; p++)
        nr_percents += *p == '%';
    format->pieces = calloc(nr_percents + 1, sizeof(*format->pieces));
    if (!format->pieces)
        return -ENOMEM;
    for (;;) {
        struct piece *piece = &format->pieces[format->nr_pieces++];
        const char *what;

        *piece =
            (struct piece){.literal = text, .length = strcspn(text, "%"), .variable = NR_VARIABLES};
        text += piece->length;
        if (!*text)
            return 0;
        if (text[1] == '%') {
            piece->length++;
            text += 2;
            continue;
        }
        text = parse_number(text + 1, piece, &what);
        if (!text)
            return refuse(formats, ret_error, what);
    }
}

static int compare_formats(const void *a, const void *b)
{
    const struct format *x = a, *y = b;

    return (x->event > y->event) - (x->event < y->event);
}

static struct format *find_format(const struct format_file *formats, uint32_t event)
{
    if (formats->nr_formats == 0)
        return NULL;
    return bsearch(&(struct format){.event = event}, formats->formats, formats->nr_formats,
                   sizeof(*formats->formats), compare_formats);
}

/* Of several lines of an event, the last one counts. */
static struct format *add_format(struct format_file *formats, uint32_t event)
{
    for (size_t i = 0; i < formats->nr_formats; i++) {
        if (formats->formats[i].event == event) {
            free(formats->formats[i].pieces);
            formats->formats[i] = (struct format){.event = event};
            return &formats->formats[i];
        }
    }
    formats->formats[formats->nr_formats] = (struct format){.event = event};
    return &formats->formats[formats->nr_formats++];
}

static int parse_line(struct format_file *formats, char *line, char **ret_error)
{
    static const char blanks[] = " \t\r\f\v";
    size_t length = strcspn(line, blanks);
    char *text = line + length + strspn(line + length, blanks), *end;
    unsigned long event;

    if (*line == '#' || *line == '\0')
        return 0;
    if (length == 0 || !*text)
        return refuse(formats, ret_error, "a line needs the number of an event and a text.");
    line[length] = '\0';
    errno = 0;
    event = strtoul(line, &end, 0);
    if (*end || errno || event > RECORD_EVENT_MASK || *line == '-')
        return refuse(formats, ret_error, "a line begins with the number of an event: 0x00021011.");
    return format_parse(formats, add_format(formats, (uint32_t)event), text, ret_error);
}

static int read_text(struct format_file *formats, char **ret_error)
{
    _cleanup_fd_ int fd = trace_open(formats->path); /* a FIFO hangs here as well */
    FILE *file;
    size_t length;
    bool failed;

    if (fd < 0)
        return str_refuse(fd, ret_error, "Cannot read %s: %s.", formats->path,
                          trace_open_problem(fd));
    file = fdopen(fd, "re");
    if (!file)
        return -ENOMEM;
    (void)fd_take(&fd);
    formats->text = calloc(1, FILE_BYTES_MAX + 1);
    length = formats->text ? fread(formats->text, 1, FILE_BYTES_MAX + 1, file) : 0;
    failed = ferror(file);
    (void)fclose(file); /* only read */
    if (!formats->text)
        return -ENOMEM;
    if (failed)
        return str_refuse(-EIO, ret_error, "Cannot read %s.", formats->path);
    if (length > FILE_BYTES_MAX || memchr(formats->text, '\0', length))
        return str_refuse(-EINVAL, ret_error, "%s is no file of formats.", formats->path);
    return 0;
}

int format_file_new(const char *path, struct format_file **ret_formats, char **ret_error)
{
    _cleanup_format_file_ struct format_file *formats = calloc(1, sizeof(*formats));
    size_t nr_lines = 1;
    char *rest, *line;
    int r;

    if (!formats)
        return -ENOMEM;
    formats->path = strdup(path);
    r = formats->path ? read_text(formats, ret_error) : -ENOMEM;
    if (r < 0)
        return r;
    for (const char *p = formats->text; *p; p++)
        nr_lines += *p == '\n';
    formats->formats = calloc(nr_lines, sizeof(*formats->formats));
    if (!formats->formats)
        return -ENOMEM;
    rest = formats->text;
    while ((line = strsep(&rest, "\n"))) {
        formats->line++;
        r = parse_line(formats, line, ret_error);
        if (r < 0)
            return r;
    }
    qsort(formats->formats, formats->nr_formats, sizeof(*formats->formats), compare_formats);
    *ret_formats = TAKE_PTR(formats);
    return 0;
}

/* --- Printing. --- */

/* A number, as far as Python's have more than 64 bits: a difference of two TSCs. */
struct number {
    bool is_negative;
    uint64_t magnitude;
};

struct printing {
    const struct format_file *formats;
    FILE *out;
    struct number values[NR_VARIABLES];
    uint64_t *last_tsc;                       /* [SOURCE_CPUS_MAX] */
    uint64_t irq_count, irq_cycles, irq_most; /* of all vectors: it has one counter for them */
};

static void put_padding(FILE *out, char with, size_t count)
{
    while (count-- > 0)
        (void)putc_unlocked(with, out);
}

static void put_number(FILE *out, const struct piece *piece, struct number number)
{
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    const char *digits_of = piece->is_upper ? upper : lower;
    const char *prefix = !piece->is_alternate || piece->base == 10 ? ""
                         : piece->base == 8                        ? "0o"
                         : piece->is_upper                         ? "0X"
                                                                   : "0x";
    char sign = number.is_negative ? '-' : piece->is_plus ? '+' : piece->is_space ? ' ' : '\0';
    char digits[24];
    size_t nr_digits = 0, length, zeroes, padding;

    do {
        digits[nr_digits++] = digits_of[number.magnitude % piece->base];
        number.magnitude /= piece->base;
    } while (number.magnitude > 0);
    zeroes = piece->precision > nr_digits ? piece->precision - nr_digits : 0;
    length = (sign ? 1 : 0) + strlen(prefix) + zeroes + nr_digits;
    padding = piece->width > length ? piece->width - length : 0;
    if (piece->is_zero && !piece->is_left) {
        zeroes += padding;
        padding = 0;
    }
    if (!piece->is_left)
        put_padding(out, ' ', padding);
    if (sign)
        (void)putc_unlocked(sign, out);
    (void)fputs(prefix, out);
    put_padding(out, '0', zeroes);
    while (nr_digits > 0)
        (void)putc_unlocked(digits[--nr_digits], out);
    if (piece->is_left)
        put_padding(out, ' ', padding);
}

static void put_format(FILE *out, const struct format *format, const struct number *values)
{
    for (size_t i = 0; i < format->nr_pieces; i++) {
        const struct piece *piece = &format->pieces[i];

        (void)fwrite(piece->literal, 1, piece->length, out);
        if (piece->variable != NR_VARIABLES)
            put_number(out, piece, values[piece->variable]);
    }
    (void)putc_unlocked('\n', out);
}

/* Puts the sums in place of the words. False: the original program ends here. */
static bool count_irq(struct printing *printing)
{
    struct number *words = &printing->values[WORD_1];
    uint64_t cycles = words[2].magnitude - words[1].magnitude;

    if (words[2].magnitude < words[1].magnitude || words[0].magnitude >= IRQ_VECTORS)
        return false;
    printing->irq_count++;
    printing->irq_cycles += cycles;
    if (cycles > printing->irq_most)
        printing->irq_most = cycles;
    words[1].magnitude = printing->irq_count;
    words[2].magnitude = printing->irq_cycles;
    words[3].magnitude = printing->irq_most;
    return true;
}

static void set_times(struct printing *printing, uint32_t cpu, uint64_t tsc)
{
    uint64_t *last = &printing->last_tsc[cpu];
    struct number *reltsc = &printing->values[RELTSC];

    printing->values[TSC].magnitude = tsc;
    *reltsc = (struct number){0};
    if (tsc < *last)
        (void)fprintf(printing->out,
                      "TSC stepped backward cpu %" PRIu32 " !  %" PRIu64 " %" PRIu64 "\n", cpu, tsc,
                      *last);
    if (*last > 0) {
        reltsc->is_negative = tsc < *last;
        reltsc->magnitude = tsc < *last ? *last - tsc : tsc - *last;
    }
    *last = tsc;
}

/* Returns false at the end. P has the whole record. */
static bool print_record(struct printing *printing, uint32_t cpu, const uint8_t *p)
{
    uint32_t header, event, words[WORDS] = {0};
    const struct format *format;
    bool has_tsc;

    memcpy(&header, p, sizeof(header));
    event = record_event(header);
    has_tsc = header >> 31;
    memcpy(words, p + RECORD_MIN_BYTES + (has_tsc ? 8 : 0),
           record_bytes(header) - RECORD_MIN_BYTES - (has_tsc ? 8 : 0));
    for (unsigned int i = 0; i < WORDS; i++)
        printing->values[WORD_1 + i] = (struct number){.magnitude = words[i]};
    if (event == EVENT_TRACE_IRQ && !count_irq(printing))
        return false;
    if (event == EVENT_HYPERCALL_V2 || event == EVENT_HYPERCALL_SUBCALL)
        printing->values[WORD_1].magnitude &= HYPERCALL_MASK;
    printing->values[CPU].magnitude = cpu;
    printing->values[EVENT].magnitude = event;
    printing->values[TSC] = printing->values[RELTSC] = (struct number){0};
    if (has_tsc)
        set_times(printing, cpu, record_tsc(p));
    format = find_format(printing->formats, event);
    if (!format)
        format = find_format(printing->formats, 0);
    if (format)
        put_format(printing->out, format, printing->values);
    return true;
}

/* Returns false at the end. */
static bool print_window(struct printing *printing, struct source *source,
                         const struct source_window *window, const struct event_set *events)
{
    const struct window_header header = {WINDOW_HEADER, window->cpu, window->bytes};
    uint32_t at = 0;

    if ((!events || event_set_has(events, header.header)) &&
        !print_record(printing, window->cpu, (const uint8_t *)&header))
        return false;
    while (at < window->bytes) {
        uint32_t bytes, word;
        const uint8_t *p = source_look(source, window, at, &bytes);

        if (!p || !merge_has_record(p, p + bytes))
            break; /* of an error, source_next() reports it */
        memcpy(&word, p, sizeof(word));
        if ((!events || event_set_has(events, record_event(word))) &&
            !print_record(printing, window->cpu, p))
            return false;
        at += record_bytes(word);
    }
    return true;
}

int format_file_print(const struct format_file *formats, struct source *source,
                      const struct event_set *events, FILE *out)
{
    struct printing printing = {.formats = formats, .out = out};
    struct source_window window;
    int r;

    printing.last_tsc = calloc(SOURCE_CPUS_MAX, sizeof(*printing.last_tsc));
    if (!printing.last_tsc)
        return -ENOMEM;
    while ((r = source_next(source, &window)) > 0) {
        bool more = print_window(&printing, source, &window, events);

        source_release(source, &window);
        if (ferror(out))
            r = -EPIPE;
        if (!more || r < 0)
            break;
    }
    free(printing.last_tsc);
    if (r < 0)
        return r;
    return fflush(out) == EOF ? -EPIPE : 0;
}

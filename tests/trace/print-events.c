// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints docs/events.md, from the table of events and the names of its classes. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/event-set.h"
#include "trace/events.h"

#define COLUMNS 118u

static void print_heading(uint32_t subclass)
{
    size_t count;
    const struct event_name *names = event_names(&count);
    const struct event_name *found = NULL;

    /* a subclass by its own name, else by its class */
    for (size_t i = 0; i < count; i++) {
        bool is_of_class = (names[i].mask & 0x0fff0000) == (subclass & 0x0fff0000);
        bool is_same = is_of_class && (names[i].mask & 0xf000) == (subclass & 0xf000);

        if (is_same || (is_of_class && !found))
            found = &names[i];
    }
    if (found)
        (void)printf("\n## %s\n\n%s (0x%08" PRIx32 ").\n", found->name, found->meaning, found->mask);
    else
        (void)printf("\n## 0x%08" PRIx32 "\n", subclass);
}

static void print_versions(const struct event_info *info)
{
    if (info->since == EVENT_NO_VERSIONS)
        (void)printf("  (not written)");
    else if (info->since && info->until)
        (void)printf("  (Xen %d.%d to %d.%d)", info->since >> 8, info->since & 0xff,
                     info->until >> 8, info->until & 0xff);
    else if (info->since)
        (void)printf("  (since Xen %d.%d)", info->since >> 8, info->since & 0xff);
    else if (info->until)
        (void)printf("  (until Xen %d.%d)", info->until >> 8, info->until & 0xff);
}

/* Where it is: "0", "2-3", "1:16-31". */
static size_t describe(char *text, size_t size, const struct event_field *field)
{
    char place[32];

    if (field->type == EVENT_ARGUMENT)
        (void)snprintf(place, sizeof(place), "if present");
    else if (field->width > 32)
        (void)snprintf(place, sizeof(place), "%u-%u", field->word, field->word + 1u);
    else if (field->width == 32)
        (void)snprintf(place, sizeof(place), "%u", field->word);
    else
        (void)snprintf(place, sizeof(place), "%u:%u-%u", field->word, field->shift,
                       field->shift + field->width - 1u);
    return (size_t)snprintf(text, size, "%s[%s] %s%s%s", field->name, place,
                            event_type_name(field->type), *event_type_unit(field->type) ? " " : "",
                            event_type_unit(field->type));
}

static void print_fields(const struct event_info *info)
{
    size_t column = 0;

    for (const struct event_field *field = info->fields; field->name; field++) {
        char text[80];
        size_t length = describe(text, sizeof(text), field);

        if (column > 0 && column + length + 3 > COLUMNS) {
            (void)printf(",\n");
            column = 0;
        }
        (void)printf("%s%s", column > 0 ? ", " : "           ", text);
        column += length + (column > 0 ? 2 : 11);
    }
    if (column > 0)
        (void)putchar('\n');
}

int main(void)
{
    size_t count;
    const struct event_info *all = event_info_all(&count);

    (void)printf(
        "# Events\n\n"
        "Xen's trace events from Xen 4.13 to 4.22, as `xentracectl dump` prints them. This page is made from the\n"
        "table in `trace/events.c`: `tests/trace/print-events >docs/events.md` in a build directory.\n\n"
        "An event has its number, its name, and its fields: `NAME[WORD] TYPE UNIT`. `[0]` is the first word after the\n"
        "TSC, `[2-3]` are two words, the low one first, and `[1:0-15]` are bits of word 1. A record that ends before a\n"
        "field does not have it. If an event is listed several times, its layout has changed: the length of the record\n"
        "says which one it has, or else the version of Xen in the sidecar; without a sidecar, the newest is assumed.\n"
        "\"Not written\" are events that are in Xen's header, but which no version since 4.13 writes. With bit 0x100, most\n"
        "events have 64-bit addresses; with bit 0x400, VM entries and exits are those of a nested guest.\n\n"
        "| type | |\n|---|---|\n"
        "| number, signed | decimal |\n"
        "| hex, address, argument | hexadecimal; in JSON a number, as all others but the following |\n"
        "| vcpu | `d1v2` is vCPU 2 of domain 1; `none` |\n"
        "| reason | of a VM exit: its name, which depends on the vendor of the CPU |\n"
        "| hypercall, shutdown | its name, or a number if it has none |\n"
        "| ticks | of the TSC; one word has the low 32 bits |\n"
        "| flag | 0 or 1 |\n");
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || all[i].event >> 12 != all[i - 1].event >> 12) {
            if (i > 0)
                (void)puts("```");
            print_heading(all[i].event & ~0xfffu);
            (void)puts("\n```");
        }
        (void)printf("0x%08" PRIx32 " %s", all[i].event, all[i].name);
        print_versions(&all[i]);
        (void)putchar('\n');
        print_fields(&all[i]);
    }
    (void)puts("```");
    return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Small parts of what people see: numbers, colors, frames of text, rates of CPUs, disks. */

#include <limits.h>

#include "common/units.h"
#include "ctl/color.h"
#include "ctl/cpu-lines.h"
#include "ctl/ctl.h"
#include "ctl/disk.h"
#include "ctl/frame.h"
#include "ctl/number.h"
#include "tests/unit/test.h"

/* Of main.c, which is not linked. */
void ctl_error(const char *format, ...)
{
    (void)format;
}

void ctl_error_sentence(const char *sentence)
{
    (void)sentence;
}

static void test_numbers(void)
{
    static const struct {
        uint64_t number;
        const char *full, *brief;
    } cases[] = {
        {0, "0", "0"},
        {999, "999", "999"},
        {1000, "1,000", "1.0k"},
        {12345, "12,345", "12.3k"},
        {999999, "999,999", "999k"},
        {1234567, "1,234,567", "1.2M"},
        {120000000, "120,000,000", "120M"},
        {UINT64_MAX, "18,446,744,073,709,551,615", "18.4E"},
    };
    char text[NUMBER_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_case(cases[i].full);
        CHECK_STR(number_format(text, cases[i].number), cases[i].full);
        CHECK_STR(number_format_short(text, cases[i].number), cases[i].brief);
    }
}

static void test_colors(void)
{
    static const struct {
        const char *name, *no_color, *systemd_colors;
        bool want; /* of what is no terminal */
    } cases[] = {
        {"no terminal", NULL, NULL, false},     {"an empty wish", NULL, "", false},
        {"SYSTEMD_COLORS=1", NULL, "1", true},  {"SYSTEMD_COLORS=256", NULL, "256", true},
        {"SYSTEMD_COLORS=0", NULL, "0", false}, {"SYSTEMD_COLORS=no", NULL, "no", false},
        {"NO_COLOR", "1", NULL, false},         {"both", "1", "1", true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_file_ FILE *null = fopen("/dev/null", "we");

        test_case(cases[i].name);
        (void)unsetenv("NO_COLOR");
        (void)unsetenv("SYSTEMD_COLORS");
        if (cases[i].no_color)
            (void)setenv("NO_COLOR", cases[i].no_color, 1);
        if (cases[i].systemd_colors)
            (void)setenv("SYSTEMD_COLORS", cases[i].systemd_colors, 1);
        if (CHECK(null))
            CHECK_INT(*palette_for(fileno(null))->bad != 0, cases[i].want);
    }
}

static void test_frames(void)
{
    static const struct {
        const char *name;
        unsigned int cols;
        const char *text, *want;
    } cases[] = {
        {"it fits", 5, "abcde", "abcde"},
        {"it is cut", 4, "abcde", "abcd"},
        {"UTF-8", 2, "\303\244\303\266\303\274", "\303\244\303\266"},
        {"a color takes no room", 2, "\033[1mab\033[0m", "\033[1mab\033[0m"},
        {"a color ends with the line", 1, "\033[1mab\033[0m", "\033[1ma\033[0m"},
        {"no column", 0, "a", ""},
    };
    _cleanup_frame_ struct frame frame = {0};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_case(cases[i].name);
        CHECK_INT(frame_init(&frame, 2, cases[i].cols), 0);
        frame_add(&frame, "%s", cases[i].text);
        CHECK_STR(frame.lines[0], cases[i].want);
        frame_done(&frame);
    }
    test_case("more lines than rows");
    CHECK_INT(frame_init(&frame, 2, 9), 0);
    for (int i = 0; i < 5; i++)
        frame_add(&frame, "%d", i);
    CHECK_UINT(frame.used, 2);
    CHECK_STR(frame.lines[1], "1");
    CHECK_UINT(frame_left(&frame), 0);
    frame_done(&frame);

    test_case("columns");
    CHECK_INT(frame_init(&frame, 3, 20), 0);
    frame_put(&frame, "\033[1mab\033[0m");
    CHECK_UINT(frame_column(&frame), 2);
    frame_tab(&frame, 5);
    frame_put(&frame, "c");
    frame_tab(&frame, 5);
    frame_add(&frame, "d");
    CHECK_STR(frame.lines[0], "\033[1mab\033[0m   c d");
    frame_skip_to(&frame, 2);
    CHECK_UINT(frame_left(&frame), 1);
}

#define CPU(cpu, delivered, lost, fill)                                                            \
    "{\"cpu\":" cpu ",\"delivered\":" delivered ",\"evicted\":10,\"lost\":" lost                   \
    ",\"dropped\":1,\"fill_percent\":" fill "}"
#define SESSION(name, cpus)                                                                        \
    "{\"name\":\"" name "\",\"state\":\"running\",\"started\":{\"realtime_ns\":5},"                \
    "\"buffers\":{\"cpus\":\"0-3\"},\"ledger\":{\"cpus\":[" cpus "]}}"

static void read_lines(struct cpu_lines *lines, const char *before, const char *now)
{
    _cleanup_doc_ struct json_object *a = NULL, *b = NULL;

    if (before)
        CHECK_INT(doc_parse(before, strlen(before), &a), 0);
    CHECK_INT(doc_parse(now, strlen(now), &b), 0);
    CHECK_INT(cpu_lines_read(lines, b, a, 2 * USEC_PER_SEC), 0);
}

static void test_cpus(void)
{
    static const char before[] = "{\"sessions\":[" SESSION(
        "a", CPU("1", "100", "0",
                 "5") "," CPU("7", "9", "0", "1")) "," SESSION("b", CPU("1", "50", "0", "5")) "]}";
    static const char now[] = "{\"sessions\":[" SESSION(
        "a", CPU("1", "300", "0", "7") "," CPU(
                 "7", "9", "4", "1")) "," SESSION("b", CPU("1", "70", "0",
                                                           "9")) "," SESSION("c", CPU("2", "1", "0",
                                                                                      "0")) "]}";
    _cleanup_cpu_lines_ struct cpu_lines lines = {0};

    test_case("CPUs of several sessions");
    read_lines(&lines, before, now);
    if (!CHECK_UINT(lines.count, 3))
        return;
    CHECK_UINT(lines.lines[0].cpu, 1);
    CHECK_UINT(lines.lines[0].records_per_second, 100);
    CHECK_UINT(lines.lines[0].fill_percent, 9);
    CHECK(lines.lines[0].has_buffer && !lines.lines[0].loses);
    CHECK_UINT(lines.lines[1].cpu, 2);
    CHECK_UINT(lines.lines[1].records_per_second, 0);
    CHECK_UINT(lines.lines[2].cpu, 7);
    CHECK(lines.lines[2].loses && !lines.lines[2].has_buffer);
    CHECK_UINT(lines.lines[2].lost_per_second, 2);
    CHECK_UINT(lines.sum.records_per_second, 100);
    CHECK_UINT(lines.sum.lost, 1 + 1 + 5);
    cpu_lines_done(&lines);

    test_case("CPUs without a document before");
    read_lines(&lines, NULL, now);
    CHECK(!lines.has_rates && lines.count == 3);
    cpu_lines_done(&lines);

    test_case("CPUs of an odd document");
    read_lines(&lines, "{\"sessions\":7}",
               "{\"sessions\":[1,{\"ledger\":[]},{\"ledger\":{\"cpus\":[2,{\"cpu\":99999},"
               "{\"cpu\":-1}]}}]}");
    CHECK(lines.count <= 1);
}

static void test_disk(void)
{
    struct disk disk = {0};

    test_case("a disk");
    CHECK_INT(disk_read("/", 5 * USEC_PER_SEC, &disk), 0);
    CHECK(disk.bytes > 0 && disk.free_bytes <= disk.bytes);
    test_case("no such path");
    CHECK_INT(disk_read("/nonexistent/path", 5 * USEC_PER_SEC, &disk), -ENOENT);
}

int main(void)
{
    test_numbers();
    test_colors();
    test_frames();
    test_cpus();
    test_disk();
    return test_end();
}

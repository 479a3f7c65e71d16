// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `xensim rules` finds every form that a reader dies of: a good trace, one thing wrong in each
 * case.
 */

#include <fcntl.h>
#include <getopt.h>
#include <string.h>

#include "commands.h"
#include "common/record.h"
#include "test-capture.h"

static char directory[] = "/tmp/xensim-rules.XXXXXX";

/* Times of no machine: rounds begin a million ticks apart, both CPUs at once. */
static void set_times(struct test_file *file)
{
    for (int w = 0; w < CAPTURE_WINDOWS; w++) {
        uint32_t tsc = (uint32_t)(w / 2 + 1) * 1000000 + (uint32_t)(w % 2) * 5;
        size_t end = capture_window(file, w + 1);

        for (size_t at = capture_record(file, w, 0); at < end;) {
            uint32_t header = capture_word(file, at);

            tsc += 10;
            if (record_has_tsc(header)) {
                capture_set_word(file, at + 4, tsc);
                capture_set_word(file, at + 8, 0);
            }
            if (record_is_lost(header)) {
                capture_set_word(file, at + 20, tsc - 5);
                capture_set_word(file, at + 24, 0);
            }
            at += record_bytes(header);
        }
    }
}

static struct test_file make(void)
{
    struct test_file file = capture_new();

    set_times(&file);
    return file;
}

static void add_word(struct test_file *file, size_t at, uint32_t change)
{
    capture_set_word(file, at, capture_word(file, at) + change);
}

static void move_window(struct test_file *file, int from, int to)
{
    size_t at = capture_window(file, from), end = capture_window(file, from + 1);
    struct test_file window = capture_copy(file, at, end);

    capture_cut(file, at, end - at);
    capture_paste(file, capture_window(file, to), window.data, window.bytes);
    free(window.data);
}

static void remove_window(struct test_file *file, int number)
{
    size_t at = capture_window(file, number);

    capture_cut(file, at, capture_window(file, number + 1) - at);
}

static void add_zeroes(struct test_file *file, size_t bytes)
{
    unsigned char zeroes[PAGE_BYTES] = {0};

    capture_paste(file, file->bytes, zeroes, bytes);
}

/* --- One thing wrong. --- */

static void end_in_record(struct test_file *file)
{
    size_t at = capture_window(file, 3);

    capture_cut(file, capture_window(file, 4) - 4, 4);
    add_word(file, at + 8, -4u);
}

static void end_in_window(struct test_file *file)
{
    file->bytes -= 24;
}

static void end_in_cpu_change(struct test_file *file)
{
    file->bytes = capture_window(file, 5) + 8;
}

static void pad_word(struct test_file *file)
{
    add_zeroes(file, 4);
}

static void pad_page(struct test_file *file)
{
    add_zeroes(file, PAGE_BYTES);
}

static void pad_window(struct test_file *file)
{
    add_word(file, capture_window(file, 5) + 8, 8);
    add_zeroes(file, 8);
}

static void odd_window(struct test_file *file)
{
    add_word(file, capture_window(file, 2) + 8, -2u);
}

static void start_in_window(struct test_file *file)
{
    capture_cut(file, 0, capture_record(file, 0, 3));
}

static void swallow_window(struct test_file *file)
{
    add_word(file, 8, (uint32_t)(capture_window(file, 2) - capture_window(file, 1)));
}

static void unknown_cpu(struct test_file *file)
{
    capture_set_word(file, capture_window(file, 3) + 4, 20000);
}

static void two_in_a_row(struct test_file *file)
{
    move_window(file, 2, 1);
}

static void cpu_after_cpu(struct test_file *file)
{
    move_window(file, 2, 1);
    move_window(file, 4, 2);
}

static void cut_in_first_round(struct test_file *file)
{
    remove_window(file, 0);
}

static void cut_unevenly(struct test_file *file)
{
    remove_window(file, 3);
    remove_window(file, 1);
}

static void swap_rounds(struct test_file *file)
{
    move_window(file, 2, 0);
    move_window(file, 3, 1);
}

static void time_back_in_window(struct test_file *file)
{
    add_word(file, capture_record(file, 3, 20) + 4, -500u);
}

static void time_back_in_windows(struct test_file *file)
{
    add_word(file, capture_record(file, 3, 0) + 4, -999800u);
}

static void lost_in_future(struct test_file *file)
{
    add_word(file, capture_lost(file) + 20, 5); /* its own TSC */
}

static void lost_before_record(struct test_file *file)
{
    add_word(file, capture_lost(file) + 20, -2000000u);
}

static void lost_nothing(struct test_file *file)
{
    capture_set_word(file, capture_lost(file) + 12, 0);
}

static void lost_in_short(struct test_file *file)
{
    size_t at = capture_lost(file), window = capture_window(file, 4);

    CHECK(window < at);
    capture_set_word(file, at, capture_word(file, at) - (1u << TRACE_EXTRA_SHIFT));
    capture_cut(file, at + LOST_RECORD_BYTES - 4, 4);
    add_word(file, window + 8, -4u);
}

static void guest_event(struct test_file *file)
{
    size_t at = capture_record(file, 1, 5);

    capture_set_word(file, at, (capture_word(file, at) & 0xf0000000) | 0x0800f001);
}

/* --- Nothing wrong. --- */

static void nothing(struct test_file *file)
{
    (void)file;
}

static void empty_file(struct test_file *file)
{
    file->bytes = 0;
}

static void empty_window(struct test_file *file)
{
    const struct window_header header = {.header = WINDOW_HEADER, .cpu = 1};

    capture_paste(file, capture_window(file, 1), &header, sizeof(header));
}

static void wrap_records(struct test_file *file)
{
    const uint32_t wraps[] = {TRC_TRACE_WRAP_BUFFER, TRC_TRACE_WRAP_BUFFER | 0xf0000000};
    unsigned char records[44] = {0};

    memcpy(records, wraps, sizeof(wraps)); /* of 4 and of 40 bytes, this one at TSC 0 */
    capture_paste(file, capture_record(file, 3, 7), records, sizeof(records));
    add_word(file, capture_window(file, 3) + 8, sizeof(records));
}

static void start_at_round(struct test_file *file)
{
    capture_cut(file, 0, capture_window(file, 2));
}

static void end_unevenly(struct test_file *file)
{
    remove_window(file, 5);
    remove_window(file, 3);
}

static void idle_cpu(struct test_file *file)
{
    remove_window(file, 0);
    remove_window(file, 1); /* what was in the second round: CPU 0 was idle */
}

static const struct form {
    const char *name;
    void (*change)(struct test_file *file);
    const char *option; /* NULL: none */
    const char *rule;   /* NULL: a good one */
} forms[] = {
    {"good: as it is", nothing, "--even-start=200000", NULL},
    {"good: an empty file", empty_file, NULL, NULL},
    {"good: a window of size 0", empty_window, NULL, NULL},
    {"good: wrap_buffer records within a window", wrap_records, NULL, NULL},
    {"good: starts at a round", start_at_round, "--even-start=200000", NULL},
    {"good: ends unevenly", end_unevenly, NULL, NULL},
    {"good: a CPU that was idle at first", idle_cpu, NULL, NULL},
    {"good: a guest's event that was asked for", guest_event, "--guest", NULL},
    {"a window ends inside a record", end_in_record, NULL, "record"},
    {"the last window is truncated", end_in_window, NULL, "truncated"},
    {"the last cpu_change is truncated", end_in_cpu_change, NULL, "truncated"},
    {"4 zero bytes at the end", pad_word, NULL, "zeroes"},
    {"a page of zeroes at the end", pad_page, NULL, "zeroes"},
    {"zeroes at the end of a window", pad_window, NULL, "class"},
    {"a window's size is no multiple of 4", odd_window, NULL, "window-size"},
    {"no cpu_change at the start", start_in_window, NULL, "cpu-change"},
    {"a cpu_change inside a window", swallow_window, NULL, "record"},
    {"a CPU that cannot be", unknown_cpu, NULL, "cpu"},
    {"two windows of one CPU in a row at the start", two_in_a_row, NULL, "late"},
    {"all of CPU 0, then all of CPU 1", cpu_after_cpu, NULL, "late"},
    {"starts in the middle of a round", cut_in_first_round, "--even-start=200000", "start"},
    {"starts unevenly", cut_unevenly, "--even-start=200000", "start"},
    {"rounds in the wrong order", swap_rounds, NULL, "tsc"},
    {"time goes back in a window", time_back_in_window, NULL, "tsc"},
    {"time goes back between windows", time_back_in_windows, NULL, "tsc"},
    {"lost_records not after its first loss", lost_in_future, NULL, "lost"},
    {"lost_records of before the record in front", lost_before_record, NULL, "lost"},
    {"lost_records of nothing", lost_nothing, NULL, "lost"},
    {"lost_records that is too short", lost_in_short, NULL, "lost"},
    {"a guest's event", guest_event, NULL, "class"},
};

/* Runs the command on N files of the directory; its sentences go to RET_TEXT. */
static int run(const char *option, int n, char *ret_text, size_t room)
{
    char name[] = "rules", paths[3][64], text[64] = "";
    char *argv[8] = {name};
    int argc = 1, saved = dup(STDERR_FILENO), fd, r;
    ssize_t bytes;

    (void)snprintf(text, sizeof(text), "%s", option ? option : "");
    if (option)
        argv[argc++] = text;
    for (int i = 0; i < n; i++) {
        (void)snprintf(paths[i], sizeof(paths[i]), "%s/%d", directory, i);
        argv[argc++] = paths[i];
    }
    fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    CHECK(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    optind = 0;
    r = command_rules(argc, argv);
    CHECK(dup2(saved, STDERR_FILENO) >= 0);
    bytes = pread(fd, ret_text, room - 1, 0);
    CHECK(bytes >= 0);
    ret_text[bytes] = '\0';
    fd_close(&fd);
    fd_close(&saved);
    return r;
}

static void save(const struct test_file *file, int number)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%s/%d", directory, number);
    capture_save(file, path);
}

/* 0, or 1 after a sentence. */
static int expect(const char *name, const char *option, int files, const char *rule)
{
    char text[4096], expected[32];
    int status = run(option, files, text, sizeof(text));

    (void)snprintf(expected, sizeof(expected), ": %s: ", rule ? rule : "");
    if (rule ? status == 1 && strstr(text, expected) : status == 0 && !*text) {
        (void)printf("ok - %s\n", name);
        return 0;
    }
    (void)printf("not ok - %s (status %d)\n%s", name, status, text);
    return 1;
}

static int test_forms(void)
{
    int failed = 0;

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        struct test_file file = make();

        forms[i].change(&file);
        save(&file, 0);
        failed += expect(forms[i].name, forms[i].option, 1, forms[i].rule);
        free(file.data);
    }
    return failed;
}

/* Two files that joined are the trace, cut in front of window CUT. */
static void save_segments(int cut, int first, int second)
{
    struct test_file file = make(), a, b;

    a = capture_copy(&file, 0, capture_window(&file, cut));
    b = capture_copy(&file, capture_window(&file, cut), file.bytes);
    save(&a, first);
    save(&b, second);
    free(a.data);
    free(b.data);
    free(file.data);
}

static int test_joined(void)
{
    struct test_file file = make();
    int failed = 0;

    save_segments(2, 0, 1);
    failed += expect("good: joined, cut between rounds", "--joined", 2, NULL);
    save_segments(3, 0, 1);
    failed += expect("joined, cut in the middle of a round", "--joined", 2, "late");
    save_segments(4, 1, 0);
    failed += expect("joined, in the wrong order", "--joined", 2, "overlap");
    failed += expect("good: the same files, each for itself", NULL, 2, NULL);
    save(&file, 0);
    save(&file, 1);
    failed += expect("joined, twice the same", "--joined", 2, "overlap");
    add_zeroes(&file, 8);
    save(&file, 1);
    failed += expect("the second of two files is broken", NULL, 2, "zeroes");
    free(file.data);
    return failed;
}

int main(void)
{
    int failed;

    CHECK(mkdtemp(directory));
    failed = test_forms() + test_joined();
    for (int i = 0; i < 2; i++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "%s/%d", directory, i);
        CHECK(unlink(path) == 0);
    }
    CHECK(rmdir(directory) == 0);
    return failed != 0;
}

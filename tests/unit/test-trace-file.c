// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The reader of trace files: every damage, every count, and what ends a walk. How it stands reads
 * and files that are cut anywhere is test-trace-file-cuts.c.
 */

#include "common/trace-file.h"

#include <errno.h>

#include "common/cpu-set.h"
#include "tests/unit/test.h"
#include "tests/unit/trace-bytes.h"

#define WINDOW_OF(cpu, bytes) WINDOW_HEADER, (cpu), (bytes)
#define RECORD                0x10021001u, 7u /* 8 bytes, no TSC */

struct damage_case {
    const char *name;
    size_t bytes; /* of words, where not all */
    enum trace_file_damage damage;
    uint64_t damage_offset, sound_bytes, windows, rounds;
    uint32_t words[20];
};

static const struct damage_case damage_cases[] = {
    {"nothing", 0, TRACE_FILE_EMPTY, 0, 0, 0, 0, {0}},
    {"one window", 20, TRACE_FILE_SOUND, 0, 20, 1, 1, {WINDOW_OF(0, 8), RECORD}},
    {"size 0", 12, TRACE_FILE_SOUND, 0, 12, 1, 1, {WINDOW_OF(3, 0)}},
    {"size 0 between",
     52,
     TRACE_FILE_SOUND,
     0,
     52,
     3,
     1,
     {WINDOW_OF(0, 8), RECORD, WINDOW_OF(1, 0), WINDOW_OF(2, 8), RECORD}},
    {"two rounds",
     36,
     TRACE_FILE_SOUND,
     0,
     36,
     3,
     2,
     {WINDOW_OF(0, 0), WINDOW_OF(2, 0), WINDOW_OF(1, 0)}},
    {"a CPU twice is two rounds",
     24,
     TRACE_FILE_SOUND,
     0,
     24,
     2,
     2,
     {WINDOW_OF(1, 0), WINDOW_OF(1, 0)}},
    {"highest CPU", 12, TRACE_FILE_SOUND, 0, 12, 1, 1, {WINDOW_OF(CPU_SET_MAX - 1, 0)}},

    {"text", 8, TRACE_FILE_NOT_A_TRACE, 0, 0, 0, 0, {0x2e736559, 0x0a0a0a0a}},
    {"a record first", 8, TRACE_FILE_NOT_A_TRACE, 0, 0, 0, 0, {RECORD}},
    {"one byte", 1, TRACE_FILE_NOT_A_TRACE, 0, 0, 0, 0, {0xff}},
    {"cpu_change of another size", 12, TRACE_FILE_NOT_A_TRACE, 0, 0, 0, 0, {0x1001f003, 0, 0}},

    {"one byte of a header", 1, TRACE_FILE_TORN_WINDOW, 0, 0, 0, 0, {WINDOW_HEADER}},
    {"a header less a byte", 11, TRACE_FILE_TORN_WINDOW, 0, 0, 0, 0, {WINDOW_OF(0, 0)}},
    {"a header without its window", 12, TRACE_FILE_TORN_WINDOW, 0, 0, 0, 0, {WINDOW_OF(0, 8)}},
    {"second header cut",
     23,
     TRACE_FILE_TORN_WINDOW,
     20,
     20,
     1,
     1,
     {WINDOW_OF(0, 8), RECORD, WINDOW_HEADER}},
    {"record cut",
     26,
     TRACE_FILE_TORN_WINDOW,
     12,
     12,
     1,
     1,
     {WINDOW_OF(0, 0), WINDOW_OF(1, 8), RECORD}},
    {"cut between records", 20, TRACE_FILE_TORN_WINDOW, 0, 0, 0, 0, {WINDOW_OF(0, 16), RECORD}},
    {"window of 1 GiB, cut",
     20,
     TRACE_FILE_TORN_WINDOW,
     0,
     0,
     0,
     0,
     {WINDOW_OF(0, 1u << 30), RECORD}},

    {"zeroes only", 40, TRACE_FILE_ZEROES, 0, 0, 0, 0, {0}},
    {"one zero", 1, TRACE_FILE_ZEROES, 0, 0, 0, 0, {0}},
    {"zeroes behind", 40, TRACE_FILE_ZEROES, 20, 20, 1, 1, {WINDOW_OF(0, 8), RECORD}},
    {"one zero behind", 21, TRACE_FILE_ZEROES, 20, 20, 1, 1, {WINDOW_OF(0, 8), RECORD}},
    {"zeroes for records", 36, TRACE_FILE_ZEROES, 20, 0, 0, 0, {WINDOW_OF(0, 24), RECORD}},

    {"CPU too high", 12, TRACE_FILE_NO_WINDOW, 0, 0, 0, 0, {WINDOW_OF(CPU_SET_MAX, 0)}},
    {"CPU far too high", 12, TRACE_FILE_NO_WINDOW, 0, 0, 0, 0, {WINDOW_OF(UINT32_MAX, 0)}},
    {"odd size", 24, TRACE_FILE_NO_WINDOW, 0, 0, 0, 0, {WINDOW_OF(0, 9), RECORD}},
    {"more than 1 GiB",
     24,
     TRACE_FILE_NO_WINDOW,
     0,
     0,
     0,
     0,
     {WINDOW_OF(0, (1u << 30) + 4), RECORD}},
    {"largest size", 24, TRACE_FILE_NO_WINDOW, 0, 0, 0, 0, {WINDOW_OF(0, UINT32_MAX - 3), RECORD}},
    {"records without a window",
     28,
     TRACE_FILE_NO_WINDOW,
     20,
     20,
     1,
     1,
     {WINDOW_OF(0, 8), RECORD, RECORD}},

    {"record beyond its window",
     36,
     TRACE_FILE_RECORD_OVERLAP,
     20,
     0,
     0,
     0,
     {WINDOW_OF(0, 12), RECORD, 0x10021001, WINDOW_OF(1, 0)}},
    {"record beyond its window and the file",
     16,
     TRACE_FILE_RECORD_OVERLAP,
     12,
     0,
     0,
     0,
     {WINDOW_OF(0, 4), RECORD_40}},
    {"record beyond the second window",
     40,
     TRACE_FILE_RECORD_OVERLAP,
     32,
     20,
     1,
     1,
     {WINDOW_OF(0, 8), RECORD, WINDOW_OF(0, 4), RECORD_40}},

    {"window in a window",
     32,
     TRACE_FILE_NESTED_WINDOW,
     20,
     0,
     0,
     0,
     {WINDOW_OF(0, 20), RECORD, WINDOW_OF(1, 0)}},
    {"cpu_change of another size in a window",
     16,
     TRACE_FILE_NESTED_WINDOW,
     12,
     0,
     0,
     0,
     {WINDOW_OF(0, 4), TRC_TRACE_CPU_CHANGE}},
};

static void test_damages(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(damage_cases); i++) {
        const struct damage_case *c = &damage_cases[i];
        _cleanup_summary_ struct trace_file_summary *summary = NULL;

        test_case(c->name);
        if (!CHECK_INT(scan_bytes(c->words, c->bytes, BUFFER_BYTES, NULL, NULL, &summary), 0))
            continue;
        CHECK_STR(trace_file_damage_text(summary->damage), trace_file_damage_text(c->damage));
        CHECK_UINT(summary->damage_offset, c->damage_offset);
        CHECK_UINT(summary->bytes, c->bytes);
        CHECK_UINT(summary->sound_bytes, c->sound_bytes);
        CHECK_UINT(summary->windows, c->windows);
        CHECK_UINT(summary->rounds, c->rounds);
    }
}

static void test_damage_texts(void)
{
    test_case("every damage has its own text");
    for (int i = TRACE_FILE_SOUND; i <= TRACE_FILE_NESTED_WINDOW; i++) {
        const char *text = trace_file_damage_text((enum trace_file_damage)i);

        CHECK(text[0] != '\0' && strcmp(text, trace_file_damage_text((enum trace_file_damage)99)));
        for (int j = TRACE_FILE_SOUND; j < i; j++)
            CHECK(strcmp(text, trace_file_damage_text((enum trace_file_damage)j)) != 0);
    }
}

/* Every number of a summary, on a file small enough to count by hand. */
static void test_counts(void)
{
    struct file *file = file_new();
    _cleanup_summary_ struct trace_file_summary *summary = NULL;

    begin_window(file, 1);
    put_record(file, 0xb0021001, 500, 0); /* sched */
    put_record(file, LOST_RECORD_HEADER, 400, 70000);
    put_record(file, 0xf001f002, 1, 0);   /* wrap_buffer: its TSC is no TSC */
    put_record(file, 0x8001f001, 600, 0); /* lost_records of another size: an ordinary record */
    put_record(file, 0x10000123, 0, 9);   /* no class, no TSC */
    begin_window(file, 3);
    put_record(file, 0x10801003, 0, 9); /* hw, no TSC */
    begin_window(file, 1);
    put_record(file, 0x800ff001, UINT64_C(1) << 40, 0); /* several classes: the lowest, gen */
    put_record(file, 0x8008f001, 450, 0);               /* hvm, behind in time */
    put_record(file, LOST_RECORD_HEADER, 460, UINT32_MAX);

    test_case("counts");
    CHECK_INT(scan_bytes(file->bytes, file->length, BUFFER_BYTES, NULL, NULL, &summary), 0);
    CHECK_INT(summary->damage, TRACE_FILE_SOUND);
    CHECK_UINT(summary->sound_bytes, file->length);
    CHECK_UINT(summary->windows, 3);
    CHECK_UINT(summary->rounds, 2);
    CHECK_UINT(summary->records, 6);
    CHECK_UINT(summary->lost, UINT64_C(70000) + UINT32_MAX);
    CHECK_UINT(summary->lost_records, 2);
    CHECK_UINT(summary->first_tsc, 400);
    CHECK_UINT(summary->last_tsc, UINT64_C(1) << 40);
    CHECK_UINT(summary->class_records[0], 2);
    CHECK_UINT(summary->class_records[1], 1);
    CHECK_UINT(summary->class_records[3], 1);
    CHECK_UINT(summary->class_records[7], 1);
    CHECK_UINT(summary->nr_cpus, 4);
    CHECK(!summary->cpus[0].present && summary->cpus[1].present && !summary->cpus[2].present);
    CHECK_UINT(summary->cpus[0].first_tsc, 0);
    CHECK_UINT(summary->cpus[1].windows, 2);
    CHECK_UINT(summary->cpus[1].records, 5);
    CHECK_UINT(summary->cpus[1].lost, UINT64_C(70000) + UINT32_MAX);
    CHECK_UINT(summary->cpus[1].lost_records, 2);
    CHECK_UINT(summary->cpus[1].bytes, file->length - 3 * 12 - 8);
    CHECK_UINT(summary->cpus[1].first_tsc, 400);
    CHECK_UINT(summary->cpus[3].records, 1);
    CHECK_UINT(summary->cpus[3].first_tsc, 0);
    CHECK_UINT(summary->cpus[3].last_tsc, 0);
    free(file);
}

static int stop_at_third(void *context, unsigned int cpu, const void *record, uint32_t bytes)
{
    (void)cpu, (void)record, (void)bytes;
    return ++*(int *)context == 3 ? 42 : 0;
}

static void test_ends(void)
{
    struct trace_file_summary *untouched = NULL;
    _cleanup_summary_ struct trace_file_summary *summary = NULL, *rest = NULL;
    _cleanup_fd_ int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int sparse = memfd_create("sparse", MFD_CLOEXEC);
    _cleanup_fd_ int middle = -1;
    struct file *file = file_new();
    int calls = 0;

    put_rounds(file, 2, 9);
    test_case("the function ends the walk");
    CHECK_INT(scan_bytes(file->bytes, file->length, 64, stop_at_third, &calls, &untouched), 42);
    CHECK_INT(calls, 3);
    CHECK(!untouched);

    test_case("read() fails");
    CHECK_INT(trace_file_scan(-1, &untouched), -EBADF);
    CHECK_INT(trace_file_scan(directory, &untouched), -EISDIR);
    CHECK(!untouched);

    test_case("4 GiB of zeroes are not read");
    CHECK_INT(ftruncate(sparse, (off_t)1 << 32), 0);
    CHECK_INT(trace_file_scan(sparse, &summary), 0);
    CHECK_INT(summary->damage, TRACE_FILE_ZEROES);
    CHECK_UINT(summary->bytes, UINT64_C(1) << 32);
    CHECK(lseek(sparse, 0, SEEK_CUR) <= (off_t)BUFFER_BYTES);

    test_case("from where the descriptor stands");
    middle = open_bytes(file->bytes, file->length - 1);
    CHECK_INT(lseek(middle, (off_t)file->window, SEEK_SET), (off_t)file->window);
    CHECK_INT(trace_file_scan(middle, &rest), 0);
    CHECK_INT(rest->damage, TRACE_FILE_TORN_WINDOW);
    CHECK_UINT(rest->bytes, file->length - 1 - file->window);

    CHECK(!trace_file_summary_free(NULL));
    free(file);
}

int main(void)
{
    test_damages();
    test_damage_texts();
    test_counts();
    test_ends();
    return test_end();
}

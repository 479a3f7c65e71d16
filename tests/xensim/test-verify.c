// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `xensim verify` finds what it must find: captures with one thing wrong in each.
 */

#include "test-capture.h"

#include <getopt.h>
#include <string.h>

#include "commands.h"
#include "common/record.h"
#include "numbered.h"

static char path[] = "/tmp/xensim-verify.XXXXXX";

/* Exit status of xensim verify; its sentences are not of interest here. */
static int verify(const struct test_file *file, const char *option, const char *value)
{
    char name[] = "verify";
    char *argv[] = {name, path, (char *)(uintptr_t)option, (char *)(uintptr_t)value, NULL};

    capture_save(file, path);
    optind = 0;
    return command_verify(value ? 4 : option ? 3 : 2, argv);
}

/* Adds CHANGE to a word. */
static void add_word(struct test_file *file, size_t at, uint32_t change)
{
    capture_set_word(file, at, capture_word(file, at) + change);
}

static void remove_record(struct test_file *file)
{
    size_t at = capture_record(file, 3, 10);
    uint32_t bytes = record_bytes(capture_word(file, at));

    add_word(file, capture_window(file, 3) + 8, -bytes);
    capture_cut(file, at, bytes);
}

static void remove_window(struct test_file *file)
{
    size_t at = capture_window(file, 3);

    capture_cut(file, at, capture_window(file, 4) - at);
}

static void tell_one_more(struct test_file *file)
{
    add_word(file, capture_lost(file) + 12, 1);
}

static void tell_one_less(struct test_file *file)
{
    add_word(file, capture_lost(file) + 12, UINT32_MAX);
}

/* The words after the TSC of two records of the same event: only their numbers tell. */
static void reorder(struct test_file *file)
{
    size_t a = capture_record(file, 1, 0), b = capture_record(file, 1, 12);
    unsigned char saved[16];

    memcpy(saved, file->data + a + 12, sizeof(saved));
    memcpy(file->data + a + 12, file->data + b + 12, sizeof(saved));
    memcpy(file->data + b + 12, saved, sizeof(saved));
}

static void damage_framing(struct test_file *file)
{
    add_word(file, capture_record(file, 1, 59), 1u << 28);
}

static void truncate_file(struct test_file *file)
{
    file->bytes -= 4;
}

static void pad_file(struct test_file *file)
{
    const unsigned char zeroes[12] = {0};

    capture_paste(file, file->bytes, zeroes, sizeof(zeroes));
}

static void swap_cpu(struct test_file *file)
{
    add_word(file, 4, 1);
}

static void start_late(struct test_file *file)
{
    capture_cut(file, 0, WINDOW_HEADER_BYTES);
}

static void test_damage(void)
{
    static const struct {
        const char *name;
        void (*damage)(struct test_file *file);
    } cases[] = {
        {"removed record", remove_record},
        {"removed window", remove_window},
        {"one more told lost", tell_one_more},
        {"one less told lost", tell_one_less},
        {"reordered records", reorder},
        {"bad framing", damage_framing},
        {"truncated file", truncate_file},
        {"padded file", pad_file},
        {"wrong CPU", swap_cpu},
        {"no cpu_change at the start", start_late},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct test_file file = capture_new();

        CHECK(verify(&file, NULL, NULL) == 0);
        cases[i].damage(&file);
        if (verify(&file, NULL, NULL) != 1) {
            (void)fprintf(stderr, "not found: %s\n", cases[i].name);
            exit(1);
        }
        free(file.data);
    }
}

/* CPU 1's records of the first round come in the second: a round was split. */
static void test_split_round(void)
{
    struct sim sim = test_sim_new(2, 1);
    struct test_file file = {0};

    capture_insert(&sim, 1, 20);
    capture_insert(&sim, 0, 20);
    (void)test_drain(&sim, 0, UINT32_MAX, &file);
    capture_insert(&sim, 0, 20);
    (void)test_drain(&sim, 0, UINT32_MAX, &file);
    (void)test_drain(&sim, 1, UINT32_MAX, &file);
    CHECK(verify(&file, NULL, NULL) == 1);
    CHECK(verify(&file, "--warn-rounds", NULL) == 0);
    free(file.data);
    test_sim_free(&sim);
}

static void test_options(void)
{
    struct test_file file = capture_new();
    struct sim sim = test_sim_new(1, 4);
    struct test_file masked = {0};

    CHECK(verify(&file, "--from-start", NULL) == 0);
    CHECK(verify(&file, "--cpus", "0-1") == 0);
    CHECK(verify(&file, "--cpus", "0") == 1);
    CHECK(verify(&file, "--cpus", "0-2") == 1);
    CHECK(verify(&file, "--kinds", "0x00021f01") == 1);
    CHECK(verify(&file, "--cpus", "x") == 2);
    free(file.data);

    /* Xen's own mask leaves no gap. */
    CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_set_evt_mask, TRC_SCHED) == 0);
    capture_insert(&sim, 0, 500);
    (void)test_drain(&sim, 0, UINT32_MAX, &masked);
    CHECK(verify(&masked, "--from-start", NULL) == 0);
    CHECK(verify(&masked, "--kinds", "0x0002f000") == 0);
    CHECK(verify(&masked, "--kinds", "0x00021f01,0x00022f07,0x00028f02") == 0);
    CHECK(verify(&masked, "--kinds", "0x0002f000,0x0010f000") == 1); /* no record of mem */
    CHECK(verify(&masked, "--kinds", "0x00021000") == 1);
    free(masked.data);
    test_sim_free(&sim);
}

/* A capture that was filtered after Xen has gaps in the numbers, none in the events' own. */
static void test_filtered(void)
{
    struct sim sim = test_sim_new(1, 4);
    struct test_file all = {0}, kept = {0};
    uint32_t window;

    capture_insert(&sim, 0, 400);
    window = test_drain(&sim, 0, UINT32_MAX, &all);
    kept.data = malloc(all.bytes);
    CHECK(kept.data);
    memcpy(kept.data, all.data, kept.bytes = 12);
    for (size_t at = 12; at < 12 + window;) {
        uint32_t header;

        memcpy(&header, all.data + at, 4);
        if (record_event(header) == 0x00021f01) {
            memcpy(kept.data + kept.bytes, all.data + at, record_bytes(header));
            kept.bytes += record_bytes(header);
        }
        at += record_bytes(header);
    }
    add_word(&kept, 8, (uint32_t)kept.bytes - 12 - window);
    CHECK(verify(&kept, NULL, NULL) == 1);
    CHECK(verify(&kept, "--kinds", "0x00021f01") == 0);
    add_word(&kept, 8, -(uint32_t)24);
    capture_cut(&kept, 12 + 24 * 5, 24);
    CHECK(verify(&kept, "--kinds", "0x00021f01") == 1);
    free(all.data);
    free(kept.data);
    test_sim_free(&sim);
}

/* Exit status of xensim verify on two parts of a capture: from window A up to B, from C up to D. */
static int verify_parts(const struct test_file *file, const char *option, int a, int b, int c,
                        int d)
{
    char name[] = "verify", second[64];
    char *argv[] = {name, path, second, (char *)(uintptr_t)option, NULL};
    struct test_file part = capture_copy(file, capture_window(file, a), capture_window(file, b));

    (void)snprintf(second, sizeof(second), "%s.2", path);
    capture_save(&part, path);
    free(part.data);
    part = capture_copy(file, capture_window(file, c), capture_window(file, d));
    capture_save(&part, second);
    free(part.data);
    optind = 0;
    b = command_verify(option ? 4 : 3, argv);
    CHECK(unlink(second) == 0);
    return b;
}

/* Segments, and snapshots of a ring: several files, which need not begin with the first record. */
static void test_files(void)
{
    static const struct {
        const char *name, *option;
        int a, b, c, d, status;
    } cases[] = {
        {"segments", "--from-start", 0, 2, 2, 6, 0},
        {"segments in the wrong order", NULL, 2, 6, 0, 2, 1},
        {"one segment of the middle is missing", NULL, 0, 2, 4, 6, 1},
        {"the first segment is missing", NULL, 2, 4, 4, 6, 0},
        {"the first segment is missing, and should not", "--from-start", 2, 4, 4, 6, 1},
        {"snapshots that overlap", "--overlap", 0, 4, 2, 6, 0},
        {"snapshots that overlap are no segments", NULL, 0, 4, 2, 6, 1},
        {"snapshots that touch", "--overlap", 0, 2, 2, 6, 0},
        {"snapshots with a gap", "--overlap", 0, 2, 4, 6, 1},
        {"the same snapshot twice", "--overlap", 0, 6, 0, 6, 0},
    };
    struct test_file file = capture_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (verify_parts(&file, cases[i].option, cases[i].a, cases[i].b, cases[i].c, cases[i].d) ==
            cases[i].status)
            continue;
        (void)fprintf(stderr, "not as it should be: %s\n", cases[i].name);
        exit(1);
    }
    free(file.data);
}

/* Exit status of xensim verify on PART of ALL: with --complete-from TSC; 0: with --one-start. */
static int verify_beside(const struct test_file *all, const struct test_file *part, uint64_t tsc)
{
    char name[] = "verify", beside[] = "--beside", second[64], from[] = "--complete-from";
    char one_start[] = "--one-start", number[32];
    char *with_tsc[] = {name, beside, second, from, number, path, NULL};
    char *without[] = {name, beside, second, one_start, path, NULL};
    int status;

    (void)snprintf(second, sizeof(second), "%s.2", path);
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)tsc);
    capture_save(all, second);
    capture_save(part, path);
    optind = 0;
    status = tsc ? command_verify(6, with_tsc) : command_verify(5, without);
    CHECK(unlink(second) == 0);
    return status;
}

/* A part begins with the second round; another one does so on one CPU only. */
static void test_beside(void)
{
    struct test_file all = capture_new();
    size_t begin = capture_window(&all, 2);
    struct test_file part = capture_copy(&all, begin, capture_window(&all, CAPTURE_WINDOWS));
    struct test_file uneven = capture_copy(&all, begin, capture_window(&all, CAPTURE_WINDOWS));
    uint64_t tsc = (uint64_t)capture_word(&all, begin + 20) << 32 | capture_word(&all, begin + 16);

    capture_cut(&uneven, capture_window(&all, 3) - begin,
                capture_window(&all, 4) - capture_window(&all, 3));
    CHECK(verify(&uneven, NULL, NULL) == 0);
    CHECK(verify(&part, "--one-start", NULL) == 2);
    CHECK(verify_beside(&all, &part, 0) == 0);
    CHECK(verify_beside(&all, &uneven, 0) == 1);
    CHECK(verify_beside(&all, &part, tsc) == 0);
    CHECK(verify_beside(&all, &part, tsc - 1) == 0);
    CHECK(verify_beside(&all, &uneven, tsc) == 1);
    CHECK(verify_beside(&part, &part, tsc) == 1); /* it does not show what came before */
    CHECK(verify_beside(&part, &part, 0) == 1);
    free(uneven.data);
    free(part.data);
    free(all.data);
}

/* A window that the consumer dropped itself, told at the head of the CPU's next one. */
static void test_dropped(void)
{
    for (uint32_t more = 0; more < 3; more++) {
        struct test_file file = capture_new();
        size_t next = capture_window(&file, 5) + WINDOW_HEADER_BYTES;
        size_t dropped = capture_window(&file, 3);
        struct lost_record lost = {.header = LOST_RECORD_HEADER, .count = 59 + more};

        memcpy(lost.tsc, file.data + next + 4, sizeof(lost.tsc));
        memcpy(lost.first_tsc, file.data + dropped + WINDOW_HEADER_BYTES + 4, sizeof(lost.tsc));
        capture_paste(&file, next, &lost, sizeof(lost));
        add_word(&file, capture_window(&file, 5) + 8, sizeof(lost));
        remove_window(&file);
        CHECK(verify(&file, "--from-start", NULL) == (more == 1 ? 0 : 1)); /* it had 60 */
        free(file.data);
    }
}

static void test_json(void)
{
    struct test_file file = capture_new();
    char json[64], text[4096] = "";
    FILE *f;

    (void)snprintf(json, sizeof(json), "%s.json", path);
    CHECK(verify(&file, "--json", json) == 0);
    f = fopen(json, "re");
    CHECK(f && fread(text, 1, sizeof(text) - 1, f) > 0 && fclose(f) == 0);
    CHECK(strstr(text, "{\"files\":[\n{\"path\":\"/tmp/"));
    CHECK(strstr(text, "\"total\":{\"bytes\":"));
    CHECK(
        strstr(text, "\"1\":{\"records\":180,\"lost\":0,\"first\":0,\"last\":179,\"first_tsc\":"));
    CHECK(unlink(json) == 0);
    CHECK(verify(&file, "--json", "/nonexistent/file") == 1);
    free(file.data);
}

int main(void)
{
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    fd_close(&fd);
    test_damage();
    test_split_round();
    test_options();
    test_filtered();
    test_files();
    test_beside();
    test_dropped();
    test_json();
    CHECK(unlink(path) == 0);
    return 0;
}

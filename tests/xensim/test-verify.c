/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `xensim verify` finds what it must find: captures with one thing wrong in each.
 */

#include "test-drain.h"

#include <fcntl.h>
#include <getopt.h>
#include <string.h>

#include "commands.h"
#include "common/record.h"
#include "numbered.h"

static char path[] = "/tmp/xensim-verify.XXXXXX";

static void insert(struct sim *sim, uint32_t cpu, int count)
{
    uint64_t bytes = 0;

    while (count-- > 0)
        CHECK(numbered_insert(sim, cpu, &bytes) != TBUF_DISABLED);
}

/* Two CPUs, three rounds; in the second one CPU 0 tells of losses. */
static struct test_file make_capture(void)
{
    struct sim sim = test_sim_new(2, 1);
    struct test_file file = {0};

    for (int round = 0; round < 3; round++) {
        insert(&sim, 0, round == 1 ? 200 : 50);
        insert(&sim, 1, 60);
        (void)test_drain(&sim, 0, UINT32_MAX, &file);
        (void)test_drain(&sim, 1, UINT32_MAX, &file);
    }
    CHECK(sim.shared->cpus[0].counts.told > 0);
    test_sim_free(&sim);
    return file;
}

/* Exit status of xensim verify; its sentences are not of interest here. */
static int verify(const struct test_file *file, const char *option, const char *value)
{
    char name[] = "verify";
    char *argv[] = {name, path, (char *)(uintptr_t)option, (char *)(uintptr_t)value, NULL};
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    CHECK(fd >= 0 && write(fd, file->data, file->bytes) == (ssize_t)file->bytes);
    fd_close(&fd);
    optind = 0;
    return command_verify(value ? 4 : option ? 3 : 2, argv);
}

/* Offset of record NUMBER of window WINDOW; the window's in *RET_WINDOW. */
static size_t find_record(const struct test_file *file, int window, int number, size_t *ret_window)
{
    size_t at = 0;
    uint32_t word;

    while (window-- > 0) {
        memcpy(&word, file->data + at + 8, 4);
        at += 12 + word;
    }
    *ret_window = at;
    at += 12;
    while (number-- > 0) {
        memcpy(&word, file->data + at, 4);
        at += record_bytes(word);
    }
    CHECK(at < file->bytes);
    return at;
}

static void cut(struct test_file *file, size_t at, size_t bytes)
{
    memmove(file->data + at, file->data + at + bytes, file->bytes - at - bytes);
    file->bytes -= bytes;
}

static void set_word(struct test_file *file, size_t at, uint32_t change)
{
    uint32_t word;

    memcpy(&word, file->data + at, 4);
    word += change;
    memcpy(file->data + at, &word, 4);
}

static void remove_record(struct test_file *file)
{
    size_t window, at = find_record(file, 3, 10, &window);
    uint32_t header;

    memcpy(&header, file->data + at, 4);
    set_word(file, window + 8, -record_bytes(header));
    cut(file, at, record_bytes(header));
}

static void remove_window(struct test_file *file)
{
    size_t from, to;

    (void)find_record(file, 3, 0, &from);
    (void)find_record(file, 4, 0, &to);
    cut(file, from, to - from);
}

static size_t find_lost(const struct test_file *file)
{
    for (size_t at = 0; at < file->bytes; at += 4) {
        uint32_t word;

        memcpy(&word, file->data + at, 4);
        if (word == LOST_RECORD_HEADER)
            return at;
    }
    CHECK(false); /* there is a lost_records record */
    return 0;
}

static void tell_one_more(struct test_file *file)
{
    set_word(file, find_lost(file) + 12, 1);
}

static void tell_one_less(struct test_file *file)
{
    set_word(file, find_lost(file) + 12, UINT32_MAX);
}

/* The words after the TSC of two records of the same event: only their numbers tell. */
static void reorder(struct test_file *file)
{
    size_t window, a = find_record(file, 1, 0, &window), b = find_record(file, 1, 12, &window);
    unsigned char saved[16];

    memcpy(saved, file->data + a + 12, sizeof(saved));
    memcpy(file->data + a + 12, file->data + b + 12, sizeof(saved));
    memcpy(file->data + b + 12, saved, sizeof(saved));
}

static void damage_framing(struct test_file *file)
{
    size_t window, at = find_record(file, 1, 59, &window);

    set_word(file, at, 1u << 28);
}

static void truncate_file(struct test_file *file)
{
    file->bytes -= 4;
}

static void pad_file(struct test_file *file)
{
    file->data = realloc(file->data, file->bytes + 12);
    CHECK(file->data);
    memset(file->data + file->bytes, 0, 12);
    file->bytes += 12;
}

static void swap_cpu(struct test_file *file)
{
    set_word(file, 4, 1);
}

static void start_late(struct test_file *file)
{
    size_t window, at = find_record(file, 0, 0, &window);

    cut(file, 0, at);
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
        struct test_file file = make_capture();

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

    insert(&sim, 1, 20);
    insert(&sim, 0, 20);
    (void)test_drain(&sim, 0, UINT32_MAX, &file);
    insert(&sim, 0, 20);
    (void)test_drain(&sim, 0, UINT32_MAX, &file);
    (void)test_drain(&sim, 1, UINT32_MAX, &file);
    CHECK(verify(&file, NULL, NULL) == 1);
    CHECK(verify(&file, "--warn-rounds", NULL) == 0);
    free(file.data);
    test_sim_free(&sim);
}

static void test_options(void)
{
    struct test_file file = make_capture();
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
    insert(&sim, 0, 500);
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

    insert(&sim, 0, 400);
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
    set_word(&kept, 8, (uint32_t)kept.bytes - 12 - window);
    CHECK(verify(&kept, NULL, NULL) == 1);
    CHECK(verify(&kept, "--kinds", "0x00021f01") == 0);
    set_word(&kept, 8, -(uint32_t)24);
    cut(&kept, 12 + 24 * 5, 24);
    CHECK(verify(&kept, "--kinds", "0x00021f01") == 1);
    free(all.data);
    free(kept.data);
    test_sim_free(&sim);
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
    CHECK(unlink(path) == 0);
    return 0;
}

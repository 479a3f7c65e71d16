// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The reader of trace files on bytes that are cut: every way in which a read can cut a record, a
 * file that ends at every byte, and random damage, of which only is asked that it is survived and
 * that what is called sound is sound.
 */

#include "common/trace-file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include "tests/unit/test.h"
#include "tests/unit/trace-bytes.h"

/* All that a walk gave: records one after another behind their CPU numbers, as one hash (FNV-1a).
 */
struct heard {
    uint64_t records;
    uint64_t hash;
};

static void heard_add(struct heard *heard, const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        heard->hash = (heard->hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static int hear(void *context, unsigned int cpu, const void *record, uint32_t bytes)
{
    struct heard *heard = context;
    uint32_t header;

    memcpy(&header, record, sizeof(header));
    if (record_bytes(header) != bytes || (uintptr_t)record % 4 != 0)
        return -EBADMSG;
    heard->records++;
    heard_add(heard, &cpu, sizeof(cpu));
    heard_add(heard, record, bytes);
    return 0;
}

/* What hear() must have heard of a sound file in memory. */
static struct heard heard_of(const struct file *file)
{
    struct heard heard = {0};

    for (size_t at = 0; at < file->length;) {
        struct window_header window;
        size_t end;

        memcpy(&window, file->bytes + at, sizeof(window));
        at += sizeof(window);
        for (end = at + window.bytes; at < end; heard.records++) {
            uint32_t header;

            memcpy(&header, file->bytes + at, sizeof(header));
            heard_add(&heard, &window.cpu, sizeof(window.cpu));
            heard_add(&heard, file->bytes + at, record_bytes(header));
            at += record_bytes(header);
        }
    }
    return heard;
}

static void check_heard(const struct file *file, size_t buffer_bytes)
{
    _cleanup_summary_ struct trace_file_summary *summary = NULL;
    struct heard expected = heard_of(file), heard = {0};

    if (!CHECK_INT(scan_bytes(file->bytes, file->length, buffer_bytes, hear, &heard, &summary), 0))
        return;
    CHECK_INT(summary->damage, TRACE_FILE_SOUND);
    CHECK_UINT(summary->sound_bytes, file->length);
    CHECK_UINT(heard.records, expected.records);
    CHECK_UINT(heard.hash, expected.hash);
}

/* The buffer's end cuts headers, TSCs and windows everywhere. */
static void test_straddling(void)
{
    struct file *file = file_new();

    test_case("small buffers");
    put_rounds(file, 5, 17);
    for (size_t bytes = TRACE_FILE_BUFFER_MIN_BYTES; bytes < 400; bytes++)
        check_heard(file, bytes);

    test_case("a window larger than the buffer");
    for (uint32_t shift = 0; shift < 12; shift++) {
        file->length = 0;
        begin_window(file, 0);
        for (uint32_t i = 0; i < shift; i++)
            put_record(file, 0x00021001, 0, 0);
        while (file->length < 3 * BUFFER_BYTES)
            put_record(file, RECORD_40, 1, (uint32_t)file->length);
        put_rounds(file, 1, 30);
        check_heard(file, BUFFER_BYTES);
    }
    free(file);
}

/* What is called sound is sound when it is scanned alone, and ends where a window ends. */
static void check_sound_part(const unsigned char *bytes, const struct trace_file_summary *summary)
{
    _cleanup_summary_ struct trace_file_summary *again = NULL;

    CHECK(summary->sound_bytes <= summary->bytes);
    CHECK(summary->damage_offset >= summary->sound_bytes || summary->damage == TRACE_FILE_SOUND);
    CHECK_INT(summary->damage == TRACE_FILE_SOUND,
              summary->bytes > 0 && summary->sound_bytes == summary->bytes);
    CHECK_INT(scan_bytes(bytes, summary->sound_bytes, BUFFER_BYTES, NULL, NULL, &again), 0);
    CHECK_INT(again->damage, summary->sound_bytes ? TRACE_FILE_SOUND : TRACE_FILE_EMPTY);
    CHECK_UINT(again->windows, summary->windows);
    CHECK_UINT(again->rounds, summary->rounds);
    CHECK_UINT(again->records, summary->records);
    CHECK_UINT(again->lost, summary->lost);
    CHECK_UINT(again->first_tsc, summary->first_tsc);
    CHECK_UINT(again->last_tsc, summary->last_tsc);
    CHECK_UINT(again->nr_cpus, summary->nr_cpus);
}

/* Cut at every byte: what remains is every whole window in front, and nothing else. */
static void test_truncation(void)
{
    struct file *file = file_new();
    uint64_t boundary = 0;

    test_case("truncation");
    put_rounds(file, 2, 9);
    for (size_t length = 0; length < file->length; length++) {
        _cleanup_summary_ struct trace_file_summary *summary = NULL;
        struct window_header window;

        memcpy(&window, file->bytes + boundary, sizeof(window));
        if (length == boundary + sizeof(window) + window.bytes)
            boundary = length;
        CHECK_INT(scan_bytes(file->bytes, length, 64, NULL, NULL, &summary), 0);
        CHECK_UINT(summary->sound_bytes, boundary);
        CHECK_UINT(summary->bytes, length);
        if (length > boundary) {
            CHECK_INT(summary->damage, TRACE_FILE_TORN_WINDOW);
            CHECK_UINT(summary->damage_offset, boundary);
        }
        check_sound_part(file->bytes, summary);
    }
    free(file);
}

static void mutate(struct file *file, uint64_t *random)
{
    static const uint32_t words[] = {0,          WINDOW_HEADER, LOST_RECORD_HEADER, UINT32_MAX,
                                     0x80000000, RECORD_40,     0x0001f002,         4095};
    size_t at = test_random(random) % file->length;
    size_t length = 1 + test_random(random) % 64;
    uint32_t word = words[test_random(random) % ARRAY_SIZE(words)];

    length = min_u64(length, file->length - at);
    switch (test_random(random) % 5) {
    case 0:
        file->bytes[at] ^= (unsigned char)(1u << (test_random(random) % 8));
        break;
    case 1:
        memset(file->bytes + at, 0, length);
        break;
    case 2:
        memcpy(file->bytes + at / 4 * 4, &word, sizeof(word));
        break;
    case 3: /* a piece is missing */
        memmove(file->bytes + at, file->bytes + at + length, file->length - at - length);
        file->length -= length;
        break;
    case 4: /* a piece is there twice */
        memmove(file->bytes + at + length, file->bytes + at, file->length - at);
        file->length += length;
        break;
    }
}

static void test_mutation(void)
{
    uint64_t random = test_seed();
    struct file *original = file_new(), *file = file_new();
    unsigned int seen[TRACE_FILE_NESTED_WINDOW + 1] = {0};

    test_case("mutation");
    put_rounds(original, 2, 12);
    for (unsigned int i = 0; i < 15000; i++) {
        _cleanup_summary_ struct trace_file_summary *summary = NULL;
        struct heard heard = {0};

        file->length = original->length;
        memcpy(file->bytes, original->bytes, original->length);
        for (uint64_t n = 1 + test_random(&random) % 4; n > 0 && file->length > 0; n--)
            mutate(file, &random);
        CHECK_INT(scan_bytes(file->bytes, file->length, 64 + test_random(&random) % 300, hear,
                             &heard, &summary),
                  0);
        CHECK_UINT(summary->bytes, file->length);
        CHECK(heard.records >= summary->records + summary->lost_records);
        check_sound_part(file->bytes, summary);
        seen[summary->damage]++;
    }
    for (int damage = TRACE_FILE_SOUND; damage <= TRACE_FILE_NESTED_WINDOW; damage++) {
        test_case(trace_file_damage_text((enum trace_file_damage)damage));
        if (damage != TRACE_FILE_EMPTY)
            CHECK(seen[damage] > 0); /* else the fuzzing has missed it */
    }
    free(original);
    free(file);
}

/* Gives a file away in pieces, with a signal for the reader in front of each. */
struct feeder {
    const struct file *file;
    size_t piece_bytes;
    pthread_t reader;
    int fd;
};

static void *feed(void *context)
{
    struct feeder *feeder = context;

    for (size_t at = 0; at < feeder->file->length; at += feeder->piece_bytes) {
        size_t left = feeder->file->length - at;

        if (feeder->piece_bytes > 20)
            usleep(50); /* long enough for the reader to be waiting */
        pthread_kill(feeder->reader, SIGUSR1);
        if (send(feeder->fd, feeder->file->bytes + at, min_u64(left, feeder->piece_bytes), 0) < 0)
            break; /* the reader misses it and says so */
    }
    fd_close(&feeder->fd);
    return NULL;
}

static volatile sig_atomic_t signals; /* a handler can count nowhere else */

static void count_signal(int signal)
{
    (void)signal;
    signals++;
}

/* Packets, since a read gives no more than one: every read is short, and many are interrupted. */
static void test_short_reads(void)
{
    struct sigaction action = {.sa_handler = count_signal}; /* no SA_RESTART */
    struct file *file = file_new();

    test_case("short reads");
    put_rounds(file, 3, 20);
    CHECK_INT(sigaction(SIGUSR1, &action, NULL), 0);
    for (size_t piece = 1; piece <= 41; piece += 2) {
        _cleanup_summary_ struct trace_file_summary *summary = NULL;
        struct heard expected = heard_of(file), heard = {0};
        int fds[2];
        struct feeder feeder = {.file = file, .piece_bytes = piece, .reader = pthread_self()};
        pthread_t thread;

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        feeder.fd = fds[0];
        CHECK_INT(pthread_create(&thread, NULL, feed, &feeder), 0);
        CHECK_INT(trace_file_walk(fds[1], hear, &heard, &summary), 0);
        CHECK_INT(pthread_join(thread, NULL), 0);
        fd_close(&fds[1]);
        CHECK_INT(summary->damage, TRACE_FILE_SOUND);
        CHECK_UINT(summary->bytes, file->length);
        CHECK_UINT(heard.hash, expected.hash);
    }
    CHECK(signals > 0);
    free(file);
}

int main(void)
{
    test_straddling();
    test_truncation();
    test_mutation();
    test_short_reads();
    return test_end();
}

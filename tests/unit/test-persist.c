// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a capture leaves to the next daemon: the state as JSON, what is found on the disk, and the
 * ledger that follows from both and the account.
 */

#include "daemon/session/persist.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>
#include <zstd.h>

#include "common/record.h"
#include "common/unpack.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/base/worker.h"
#include "daemon/session/segment-recovery.h"
#include "daemon/session/segments-state.h"
#include "tests/unit/test.h"

#define CPUS 2u

static char path[64];
static int directory_fd;

/* --- The state. --- */

static void test_state(void)
{
    struct ledger past[CPUS] = {{.produced = 10,
                                 .delivered = 5,
                                 .lost = 2,
                                 .dropped = 2,
                                 .evicted = 1,
                                 .first_tsc = 3,
                                 .last_tsc = UINT64_MAX},
                                {.produced = UINT64_C(1) << 40}};
    uint64_t pending[CPUS] = {0, 77};
    char events[] = "sched", cpus[] = "0-1", on_reserve[] = "rotate";
    const struct persist_state state = {
        .name = "long",
        .is_configured = true,
        .events = events,
        .cpus = cpus,
        .on_reserve = on_reserve,
        .segment_size_bytes = 4096,
        .keep_files = 7,
        .reserve_bytes = UINT64_C(5) << 30,
        .started = {.realtime_ns = 5, .tsc = 6},
        .continued = 3,
        .first_number = 2,
        .finished_number = 9,
        .written = 8,
        .deleted = 1,
        .nr_cpus = CPUS,
        .past = past,
        .pending = pending,
        .totals = {.output_bytes = 99,
                   .windows = 4,
                   .class_records = {1, 2},
                   .drops = {[DROP_RESTART] = 2}},
    };
    json_object *json = persist_to_json(&state), *broken;
    struct persist_state *back = NULL;

    test_case("a state is read as it was written");
    if (!CHECK_INT(persist_from_json(json, &back), 0))
        return;
    CHECK_STR(back->name, "long");
    CHECK(back->is_configured);
    CHECK_STR(back->events, "sched");
    CHECK_STR(back->cpus, "0-1");
    CHECK_STR(back->on_reserve, "rotate");
    CHECK_UINT(back->segment_size_bytes, 4096);
    CHECK_UINT(back->keep_files, 7);
    CHECK_UINT(back->reserve_bytes, UINT64_C(5) << 30);
    CHECK_UINT(back->started.tsc, 6);
    CHECK_UINT(back->continued, 3);
    CHECK_UINT(back->first_number, 2);
    CHECK_UINT(back->finished_number, 9);
    CHECK_UINT(back->nr_cpus, CPUS);
    CHECK_INT(memcmp(back->past, past, sizeof(past)), 0);
    CHECK_INT(memcmp(back->pending, pending, sizeof(pending)), 0);
    CHECK_UINT(back->totals.output_bytes, 99);
    CHECK_UINT(back->totals.class_records[1], 2);
    CHECK_INT(memcmp(back->totals.drops, state.totals.drops, sizeof(state.totals.drops)), 0);
    CHECK(persist_options(back).persist && persist_options(back).resume == back);
    persist_free(back);

    test_case("what is none is refused");
    json_object_object_add(json, "version", json_object_new_int(2));
    CHECK_INT(persist_from_json(json, &back), -EBADMSG);
    json_object_put(json);
    broken =
        json_tokener_parse("{\"format\":\"xentraced-persist\",\"version\":1,\"name\":\"../x\"}");
    CHECK_INT(persist_from_json(broken, &back), -EBADMSG);
    json_object_put(broken);
    broken = json_tokener_parse("[1]");
    CHECK_INT(persist_from_json(broken, &back), -EBADMSG);
    json_object_put(broken);
}

/* --- The ledger. --- */

static const struct {
    const char *name;
    struct ledger past;
    struct account_sum taken;
    struct recovered_sums sums;
    struct ledger expected;
    uint64_t missing;
} ledgers[] = {
    {"nothing happened", {0}, {0}, {0}, {0}, 0},
    {"all of it is on the disk",
     {.produced = 10, .delivered = 10},
     {30, 0},
     {.read = 20},
     {.produced = 30, .delivered = 30},
     0},
    {"some was in memory",
     {.produced = 10, .delivered = 10},
     {30, 0},
     {.read = 15},
     {.produced = 30, .delivered = 25, .dropped = 5},
     5},
    {"Xen had lost some, and a file reports it",
     {0},
     {30, 4},
     {.read = 20, .told = 4},
     {.produced = 30, .delivered = 20, .lost = 4, .dropped = 6},
     6},
    {"... or none does",
     {0},
     {30, 4},
     {.read = 20},
     {.produced = 30, .delivered = 20, .lost = 4, .dropped = 6},
     10},
    {"the file had to report what the one before had missed",
     {.produced = 50, .delivered = 40, .dropped = 10},
     {80, 0},
     {.read = 25, .told = 10, .pending = 10},
     {.produced = 80, .delivered = 65, .dropped = 15},
     5},
    {"... but it did not come to that",
     {.produced = 50, .delivered = 40, .dropped = 10},
     {80, 0},
     {.pending = 10},
     {.produced = 80, .delivered = 40, .dropped = 40},
     40},
    {"an account that is behind the disk",
     {.produced = 10, .delivered = 10},
     {5, 0},
     {.read = 7},
     {.produced = 17, .delivered = 17},
     0},
};

static void test_ledgers(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(ledgers); i++) {
        struct ledger past = ledgers[i].past, added;
        uint64_t missing;

        test_case(ledgers[i].name);
        missing = segments_settle_ledger(&past, ledgers[i].taken, &ledgers[i].sums, &added);
        CHECK_UINT(missing, ledgers[i].missing);
        CHECK_UINT(past.produced, ledgers[i].expected.produced);
        CHECK_UINT(past.delivered, ledgers[i].expected.delivered);
        CHECK_UINT(past.lost, ledgers[i].expected.lost);
        CHECK_UINT(past.dropped, ledgers[i].expected.dropped);
        CHECK_UINT(past.evicted, ledgers[i].expected.evicted);
        CHECK_UINT(past.produced, past.delivered + past.lost + past.dropped + past.evicted);
        CHECK_UINT(added.produced, added.delivered + added.lost + added.dropped);
    }
}

/* --- The disk. --- */

/* WINDOWS of two records each, of CPUs in turn, and TAIL zero bytes. */
static void write_trace(const char *file, unsigned int windows, off_t tail)
{
    int fd = openat(directory_fd, file, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    uint32_t tsc = 0;

    for (uint32_t i = 0; i < windows; i++) {
        uint32_t words[3 + 6] = {WINDOW_HEADER, i % CPUS, 24};

        for (unsigned int n = 0; n < 2; n++) {
            words[3 + 3 * n] = 0x80021002u;
            words[4 + 3 * n] = ++tsc;
        }
        if (write(fd, words, sizeof(words)) != sizeof(words))
            exit(EXIT_FAILURE);
    }
    if (tail && ftruncate(fd, (off_t)(windows * 36) + tail) < 0)
        exit(EXIT_FAILURE);
    close(fd);
}

/*
 * The same file, compressed: a frame for each two windows, and a part of one more. Returns where
 * that begins.
 */
static off_t write_packed_trace(const char *file, unsigned int frames)
{
    int fd = openat(directory_fd, file, O_WRONLY | O_CREAT | O_TRUNC, 0640), plain_fd;
    char plain[72], packed[256];
    size_t bytes = 0;
    off_t end;

    write_trace("plain", 2 * frames, 0);
    plain_fd = openat(directory_fd, "plain", O_RDONLY);
    for (unsigned int i = 0; i < frames; i++) {
        if (read(plain_fd, plain, sizeof(plain)) != sizeof(plain))
            exit(EXIT_FAILURE);
        bytes = ZSTD_compress(packed, sizeof(packed), plain, sizeof(plain), 1);
        if (ZSTD_isError(bytes) || write(fd, packed, bytes) != (ssize_t)bytes)
            exit(EXIT_FAILURE);
    }
    end = lseek(fd, 0, SEEK_CUR);
    if (write(fd, packed, bytes / 2) != (ssize_t)(bytes / 2))
        exit(EXIT_FAILURE);
    close(plain_fd);
    close(fd);
    return end;
}

static void write_text(const char *file, const char *text)
{
    int fd = openat(directory_fd, file, O_WRONLY | O_CREAT | O_TRUNC, 0640);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        exit(EXIT_FAILURE);
    close(fd);
}

static bool is_there(const char *file)
{
    return faccessat(directory_fd, file, F_OK, 0) == 0;
}

static off_t size_of(const char *file)
{
    struct stat st;

    return fstatat(directory_fd, file, &st, 0) == 0 ? st.st_size : -1;
}

/* By the seek table. */
static unsigned int frames_of(const char *file)
{
    int fd = openat(directory_fd, file, O_RDONLY);
    struct unpack *unpack = NULL;
    unsigned int frames = 0;

    if (unpack_new_fd(fd, NULL, 0, &unpack) == 0 && unpack_can_seek(unpack))
        for (uint64_t at = 0; at < unpack_bytes(unpack); frames++)
            at = unpack_next_frame(unpack, at + 1);
    unpack_free(unpack);
    close(fd);
    return frames;
}

/* The fifth segment is compressed. */
static void check_packed_recovery(const struct recovery_request *request)
{
    struct recovery recovery;
    struct failure failure = {0};
    struct rlimit limit;

    CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_IGN); /* EFBIG instead, as ENOSPC on a full disk */

    test_case("a compressed one is cut after its last whole frame, and can be sought in");
    write_packed_trace("long.00007.xentrace.zst", 3);
    for (unsigned int again = 0; again < 2; again++) {
        CHECK_INT(recovery_read(request, &recovery, &failure), 0);
        CHECK_UINT(recovery.last_number, 7);
        CHECK_UINT(recovery.segments[4].segment.records, 12);
        CHECK_UINT(recovery.segments[4].segment.plain_bytes, 6 * 36);
        CHECK_INT(size_of("long.00007.xentrace.zst"), (off_t)recovery.segments[4].segment.bytes);
        CHECK_UINT(frames_of("long.00007.xentrace.zst"), 3);
        recovery_done(&recovery);
    }

    test_case("... without, where there is no space for a table");
    limit.rlim_cur = (rlim_t)write_packed_trace("long.00007.xentrace.zst", 3) + 5;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_INT(recovery_read(request, &recovery, &failure), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_UINT(recovery.segments[4].segment.records, 12);
    CHECK_INT(size_of("long.00007.xentrace.zst"), (off_t)recovery.segments[4].segment.bytes);
    CHECK_UINT(frames_of("long.00007.xentrace.zst"), 0);
    recovery_done(&recovery);
    unlinkat(directory_fd, "long.00007.xentrace.zst", 0);
}

static unsigned int nr_waits;

/* The fake of nanosleep(2), with which the last writes are waited for. */
int nanosleep(const struct timespec *requested, struct timespec *remaining)
{
    (void)requested, (void)remaining;
    nr_waits++;
    return 0;
}

static void test_recovery(void)
{
    struct recovery_request request = {
        .directory_fd = directory_fd,
        .directory = path,
        .name = "long",
        .nr_cpus = CPUS,
        .has_state = true,
        .finished_number = 2,
    };
    struct recovery recovery;
    struct failure failure = {0};
    int reader_fd;

    test_case("nothing is there");
    CHECK_INT(recovery_read(&request, &recovery, &failure), 0);
    CHECK_UINT(recovery.count, 0);
    CHECK_UINT(recovery.last_number, 0);
    recovery_done(&recovery);

    write_trace("long.00001.xentrace", 4, 0);
    write_text(
        "long.00001.json",
        "{\"segment\":{\"bytes\":144,\"records\":8,\"reason\":\"size\",\"ledger\":{\"cpus\":["
        "{\"cpu\":0,\"delivered\":5},{\"cpu\":1,\"delivered\":3,\"last_tsc\":9}]}}}");
    write_trace("long.00002.xentrace", 2, 0); /* finished, but its sidecar is lost */
    write_trace("long.00003.xentrace", 6, 0);
    write_trace(".long.00004.xentrace.next", 3, 5000); /* not named yet */
    write_text(".long.00005.xentrace.next", "");       /* prepared */
    write_trace("longer.00009.xentrace", 1, 0);        /* another's */
    write_trace("long.2.xentrace", 1, 0);

    test_case("unfinished ones are read and cut, of finished ones only the size");
    reader_fd = openat(directory_fd, "long.00003.xentrace", O_RDONLY);
    CHECK_INT(recovery_read(&request, &recovery, &failure), 0);
    CHECK_UINT(nr_waits, 0); /* for the reader */
    close(reader_fd);
    if (!CHECK_UINT(recovery.count, 4))
        return;
    CHECK_UINT(recovery.last_number, 4);
    CHECK(recovery.segments[0].is_unread && recovery.segments[1].is_unread);
    CHECK_UINT(recovery.segments[0].segment.bytes, 4 * 36);
    CHECK_UINT(recovery.segments[0].cpus[0].delivered, 0);

    test_case("... which are known by their sidecars, afterwards");
    for (size_t i = 0; i < recovery.count; i++)
        CHECK_INT(recovery_complete(&request, &recovery.segments[i]), 0);
    CHECK(!recovery.segments[0].is_unread && !recovery.segments[1].is_unread);
    CHECK(!recovery.segments[0].is_read && !recovery.segments[1].is_read);
    CHECK_UINT(recovery.segments[0].cpus[0].delivered, 5);
    CHECK_UINT(recovery.segments[0].cpus[1].last_tsc, 9);
    CHECK_INT(recovery.segments[0].segment.reason, SEGMENT_SIZE);
    CHECK_UINT(recovery.segments[1].cpus[0].delivered, 2);
    CHECK(recovery.segments[2].is_read && recovery.segments[3].is_read);
    CHECK_UINT(recovery.segments[2].cpus[1].delivered, 6);
    CHECK_UINT(recovery.segments[3].segment.records, 6);
    CHECK_INT(recovery.segments[3].segment.reason, SEGMENT_RESTART);
    CHECK_INT(size_of("long.00004.xentrace"), 3 * 36);
    CHECK(!is_there(".long.00004.xentrace.next") && !is_there(".long.00005.xentrace.next"));
    recovery_done(&recovery);

    test_case("one that may still be written is waited for");
    reader_fd = openat(directory_fd, "long.00003.xentrace", O_WRONLY);
    CHECK_INT(recovery_read(&request, &recovery, &failure), 0);
    CHECK(nr_waits > 0);
    close(reader_fd);
    recovery_done(&recovery);

    test_case("one in which nothing is goes");
    write_trace("long.00006.xentrace", 0, 4096);
    CHECK_INT(recovery_read(&request, &recovery, &failure), 0);
    CHECK_UINT(recovery.last_number, 4);
    CHECK(!is_there("long.00006.xentrace"));
    recovery_done(&recovery);

    check_packed_recovery(&request);

    test_case("without a state, none is waited for, and those with a sidecar are finished");
    request.has_state = false;
    request.finished_number = 0;
    CHECK_INT(recovery_read(&request, &recovery, &failure), 0);
    if (!CHECK_UINT(recovery.count, 4))
        return;
    for (size_t i = 0; i < recovery.count; i++) {
        CHECK(recovery.segments[i].is_unread);
        CHECK_INT(recovery_complete(&request, &recovery.segments[i]), 0);
    }
    CHECK(!recovery.segments[0].is_read && recovery.segments[1].is_read);
    recovery_done(&recovery);

    test_case("... and one in which nothing is goes afterwards");
    write_trace("long.00006.xentrace", 0, 4096);
    CHECK_INT(recovery_read(&request, &recovery, &failure), 0);
    if (!CHECK_UINT(recovery.count, 5))
        return;
    CHECK_INT(recovery_complete(&request, &recovery.segments[4]), 1);
    CHECK(recovery.segments[4].is_unread && !is_there("long.00006.xentrace"));

    test_case("... as does one that was removed meanwhile");
    unlinkat(directory_fd, "long.00004.xentrace", 0);
    CHECK_INT(recovery_complete(&request, &recovery.segments[3]), -ENOENT);
    CHECK(recovery.segments[3].is_unread);
    recovery_done(&recovery);
}

/* --- In the runtime directory. --- */

static void count_state(void *userdata, const struct persist_state *state)
{
    unsigned int *count = userdata;

    CHECK_STR(state->name, "whole");
    (*count)++;
}

static void test_strays(void)
{
    struct ledger past = {0};
    uint64_t pending = 0;
    struct persist_state state = {
        .name = "whole",
        .events = "sched",
        .cpus = "0",
        .on_reserve = "end",
        .nr_cpus = 1,
        .past = &past,
        .pending = &pending,
    };
    json_object *json = persist_to_json(&state);
    unsigned int count = 0;

    test_case("what a killed daemon left without a state goes");
    write_text("persist-whole.json", json_object_to_json_string(json));
    write_text("persist-whole.account", "");
    write_text("persist-stray.account", "");
    write_text("persist-half.new", "{");
    write_text("persist-.account", "");
    write_text("other.account", "");
    persist_read_all(directory_fd, count_state, &count);
    CHECK_UINT(count, 1);
    CHECK(is_there("persist-whole.json"));
    CHECK(is_there("persist-whole.account"));
    CHECK(!is_there("persist-stray.account"));
    CHECK(!is_there("persist-half.new"));
    CHECK(is_there("persist-.account") && is_there("other.account")); /* not ours */
    json_object_put(json);
}

static void save(struct session *session)
{
    persist_save(session);
    while (!workers_are_idle(session->context->workers))
        CHECK(sd_event_run(session->context->event, UINT64_MAX) >= 0);
}

static void test_aborted(void)
{
    struct session_context context = {.runtime_dir_fd = directory_fd};
    struct ledger past[CPUS] = {0};
    struct segments segments = {.storage.kind = &storage_segments, .nr_cpus = CPUS, .past = past};
    struct session session = {
        .context = &context, .state = SESSION_RUNNING, .storage = &segments.storage};

    test_case("an aborted one leaves no state, even if it was to be saved");
    segments.storage.session = &session;
    (void)strcpy(session.name, "gone");
    session.selection.events_spec = session.selection.cpus_spec = (char *)"all";
    if (!CHECK(sd_event_new(&context.event) >= 0) ||
        !CHECK_INT(workers_new(context.event, &context.workers), 0) ||
        !CHECK_INT(worker_new(context.workers, "test", &session.worker), 0))
        return;
    write_text("persist-gone.account", "");
    save(&session);
    CHECK(is_there("persist-gone.json"));
    persist_remove(directory_fd, "gone");
    save(&session);
    CHECK(!is_there("persist-gone.json") && !is_there("persist-gone.new"));
    write_text("persist-gone.account", "");
    session.state = SESSION_DRAINING;
    save(&session);
    CHECK(!is_there("persist-gone.json"));
    worker_free(session.worker);
    workers_free(context.workers);
    sd_event_unref(context.event);
}

int main(void)
{
    char command[128];

    strcpy(path, "/tmp/test-persist.XXXXXX");
    if (!mkdtemp(path))
        return TEST_SKIPPED;
    directory_fd = open(path, O_RDONLY | O_DIRECTORY);
    if (directory_fd < 0)
        return EXIT_FAILURE;
    test_state();
    test_ledgers();
    test_recovery();
    test_strays();
    test_aborted();
    snprintf(command, sizeof(command), "rm -rf %s", path);
    CHECK_INT(system(command), 0);
    return test_end();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments: what can be asked for; how one follows the other, as a dialogue with the worker, the
 * collector and the session (segments-rig.h); what is kept; and their files before they have their
 * names.
 */

#include "daemon/session/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/protocol.h"
#include "common/units.h"
#include "daemon/base/clock-history.h"
#include "daemon/output/output-file.h"
#include "tests/unit/segments-rig.h"
#include "tests/unit/test.h"

/* --- What can be asked for: cases. --- */

struct option_case {
    const char *name;
    struct session_options options;
    const char *says;       /* part of the sentence; NULL: it is taken */
    bool segmented;         /* if it is */
    uint64_t segment_bytes; /* if it is segmented */
};

static const struct option_case option_cases[] = {
    {"none", {0}, NULL, false, 0},
    {"size", {.segment_size_bytes = MIB}, NULL, true, MIB},
    {"time", {.segment_time_usec = USEC_PER_SEC}, NULL, true, 0},
    {"time and keep-size",
     {.segment_time_usec = USEC_PER_SEC, .keep_size_bytes = 80 * MIB},
     NULL,
     true,
     10 * MIB},
    {"time and little",
     {.segment_time_usec = USEC_PER_SEC, .keep_size_bytes = 3 * MIB},
     NULL,
     true,
     MIB},
    {"time and too little",
     {.segment_time_usec = USEC_PER_SEC, .keep_size_bytes = 3 * MIB - 1},
     "at least 3M",
     false,
     0},
    {"keep-size just enough",
     {.segment_size_bytes = 10 * MIB, .keep_size_bytes = 21 * MIB},
     NULL,
     true,
     10 * MIB},
    {"keep-size not enough",
     {.segment_size_bytes = 10 * MIB, .keep_size_bytes = 21 * MIB - 1},
     "at least 21M",
     false,
     0},
    {"two files", {.segment_size_bytes = MIB, .keep_files = 2}, NULL, true, MIB},
    {"one file", {.segment_size_bytes = MIB, .keep_files = 1}, "from 2", false, 0},
    {"six digits", {.segment_size_bytes = MIB, .keep_files = 100000}, "to 99999", false, 0},
    {"small", {.segment_size_bytes = MIB - 1}, "at least 1M", false, 0},
    {"huge", {.segment_size_bytes = UINT64_MAX}, "that large", false, 0},
    {"huge keep-size",
     {.segment_size_bytes = MIB, .keep_size_bytes = UINT64_MAX},
     "that large",
     false,
     0},
    {"short", {.segment_time_usec = USEC_PER_SEC - 1}, "at least 1 s", false, 0},
    {"keep-files alone", {.keep_files = 3}, "need --segment-size", false, 0},
    {"keep-size alone", {.keep_size_bytes = 99 * MIB}, "need --segment-size", false, 0},
    {"rotate alone", {.on_reserve = "rotate"}, "needs --segment-size", false, 0},
    {"pause alone", {.on_reserve = "pause"}, NULL, false, 0},
    {"output", {.segment_size_bytes = MIB, .has_output = true}, "omit --output", false, 0},
    {"memory", {.segment_size_bytes = MIB, .memory_bytes = MIB}, "either --memory", false, 0},
    {"max-size", {.segment_size_bytes = MIB, .max_size_bytes = MIB}, "--keep-size", false, 0},
};

/* --- What can be asked for. --- */

static void test_options(void)
{
    struct session session = {.context = &context, .name = "a"};

    for (size_t i = 0; i < ARRAY_SIZE(option_cases); i++) {
        const struct option_case *c = &option_cases[i];
        struct storage *storage = NULL;
        struct failure failure = {0};
        bool segmented = false;
        int r;

        test_case(c->name);
        r = segments_check_options(&c->options, &segmented, &failure);
        if (r >= 0 && segmented)
            r = segments_new(&session, &c->options, &storage, &failure);
        CHECK_INT(r < 0, c->says != NULL);
        CHECK_INT(storage_is_segmented(storage), c->segmented);
        if (c->says) {
            CHECK_STR(failure.name, ERROR_INVALID);
            CHECK(strstr(failure.text, c->says));
        }
        if (storage) {
            CHECK_UINT(segments_of(storage)->size_bytes, c->segment_bytes);
            CHECK_INT(segments_aim_bytes(segments_of(storage)) > 0, c->segment_bytes > 0);
            storage->kind->free(storage);
        }
    }
}

/* --- One after the other. --- */

static void test_succession(void)
{
    struct rig rig;

    test_case("succession");
    rig_run(&rig, &by_size);
    says(""); /* nothing is offered before its file is open */
    asks("prepare a.00002", 0);
    says("2 after 1");
    asks_nothing();

    rig_succeed(&rig, 10);
    hears("space reset, handover");
    CHECK_UINT(rig.segments->number, 2);
    CHECK_UINT(rig.segments->before_number, 1);
    check_balance(&rig, 10, 0);
    rig_send(&rig, MESSAGE_GRANT_WANTED, rig.segments->before, 0);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("publish a.00002 as a.00002", 0);
    asks("prepare a.00003", 0);
    says(""); /* the one before is not finished */
    CHECK(!rig.storage->kind->is_quiet(rig.storage));
    asks("finish a.00001 at 1000", 0);
    says("3 after 2");
    hears(""); /* its sidecar is not written */
    check_balance(&rig, 10, 0);
    CHECK_UINT(rig.segments->files[0]->segment.bytes, 1000);
    CHECK(rig.session.is_sidecar_due);
    asks("sidecar a.00001", 0);
    hears("segment 1 size 10");

    test_case("succession: the end");
    record(rig.storage->sink, 5);
    rig_stop(&rig);
    rig_close(&rig);
    asks("take back a.00003", 0);
    asks("finish a.00002 at 500", 0);
    hears("finished");
    CHECK(rig.segments->is_over);
    CHECK_UINT(rig.segments->written, 2);
    rig.storage->kind->seal(rig.storage);
    hears("seals");
    asks("sidecar a.00002", 0);
    hears("segment 2 end 5, sealed");
    check_balance(&rig, 15, 0);
    rig_done(&rig);
}

static void test_totals(void)
{
    struct sink_totals totals = {0};
    struct rig rig;

    test_case("totals");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig.storage->sink->totals = (struct sink_totals){
        .held_bytes = 10,
        .writing_since_usec = 3,
        .complete_from_tsc = 5,
    };
    rig_succeed(&rig, 10);
    sink_read_totals(rig.storage->sink, &totals);
    CHECK_UINT(totals.writing_since_usec, 0);
    totals.complete_from_tsc = 7;
    rig.storage->kind->add_totals(rig.storage, &totals);
    CHECK_UINT(totals.output_bytes, 1000);
    CHECK_UINT(totals.complete_from_tsc, 5); /* of the first */
    CHECK_UINT(totals.held_bytes, 10);
    CHECK_UINT(totals.writing_since_usec, 3); /* the segment before may wait for the disk, too */
    rig_stop(&rig);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    record(rig.storage->sink, 1);
    rig_close(&rig);
    grants_until("finish a.00001 at 1000");
    asks("finish a.00001 at 1000", 0);
    totals = (struct sink_totals){0};
    rig.storage->kind->add_totals(rig.storage, &totals);
    CHECK_UINT(totals.output_bytes, 1000);
    CHECK_UINT(totals.complete_from_tsc, 5);
    CHECK_UINT(totals.held_bytes, 0);
    CHECK_UINT(totals.writing_since_usec, 0);
    grants_until("finish a.00002 at 100");
    asks("finish a.00002 at 100", 0);
    rig_done(&rig);
}

static void test_start_fails(void)
{
    struct failure failure = {0};
    struct rig rig;

    test_case("start: the file cannot be created");
    rig_open(&rig, &by_size);
    CHECK(requests[0].output->request.check == segments_check_none);
    CHECK(!requests[0].output->request.may_rename);
    asks("create a.00001", -EEXIST);
    hears("opened a -17");
    rig.session.start_failure.name = ERROR_NAME_IN_USE;
    rig.storage->kind->finish(rig.storage);
    hears("finished");
    asks_nothing(); /* what is there is somebody else's */
    rig_done(&rig);

    test_case("start: it fails later");
    rig_open(&rig, &by_size);
    asks("create a.00001", 0);
    hears("opened a 0");
    CHECK_INT(rig.storage->kind->make_sink(rig.storage, NULL, &failure), 0);
    rig.session.start_failure.name = ERROR_XEN;
    rig.storage->kind->finish(rig.storage);
    hears("");
    asks("take back a.00001", 0);
    hears("finished");
    rig_done(&rig);

    test_case("start: no memory for the sink");
    rig_open(&rig, &by_size);
    asks("create a.00001", 0);
    fails_sink = true;
    CHECK_INT(rig.storage->kind->make_sink(rig.storage, NULL, &failure), -ENOMEM);
    fails_sink = false;
    rig.session.start_failure.name = ERROR_NO_MEMORY;
    rig.storage->kind->finish(rig.storage);
    asks("take back a.00001", 0);
    rig_done(&rig);
}

static void test_empty(void)
{
    unsigned int number;
    struct failure failure = {0};
    struct rig rig;

    test_case("empty: its number is used again");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    says("2 after 1");
    CHECK_INT(segments_rotate(&rig.session, &number, &failure), 0);
    CHECK_UINT(number, 1);
    says("2 after 1, now");
    rig_succeed(&rig, 0);
    hears("space reset, segment 1 empty, handover");
    CHECK_UINT(rig.segments->number, 1);
    asks("remove a.00001", 0);
    asks("publish a.00002 as a.00001", 0);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("prepare a.00002", 0);
    says("3 after 2");
    CHECK_UINT(rig.segments->written, 0);

    test_case("empty: the last one");
    rig_pass(&rig, 1);
    rig_stop(&rig);
    rig_close(&rig);
    asks("take back a.00003", 0);
    asks("finish a.00002 at 0", 0);
    hears("");
    asks("remove a.00002", 0);
    hears("segment 2 empty, finished");
    CHECK(strstr(rig.storage->output->figures.path, "/a.00001.xentrace"));
    rig.storage->kind->seal(rig.storage);
    hears("");
    rig_done(&rig);

    test_case("empty: the only one stays");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_stop(&rig);
    rig_close(&rig);
    asks("take back a.00002", 0);
    asks("finish a.00001 at 0", 0);
    hears("finished");
    CHECK_UINT(rig.segments->nr_files, 1);
    rig_done(&rig);
}

static void test_names_taken(void)
{
    struct failure failure = {0};
    unsigned int number;
    struct rig rig;

    test_case("name: taken by somebody else");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_succeed(&rig, 1);
    asks("publish a.00002 as a.00002", -EEXIST);
    asks("prepare a.00003", 0);
    CHECK_INT(segments_rotate(&rig.session, &number, &failure), 0);
    CHECK_UINT(number, 3);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    session_text[0] = '\0';
    asks("publish a.00002 as a.00003", -EEXIST);
    hears("segment 3 empty"); /* nobody waits for it in vain */
    asks("finish a.00001 at 100", 0);
    says("2 after 1"); /* the next number is not known yet */
    asks("publish a.00002 as a.00004", 0);
    CHECK_UINT(rig.segments->number, 4);
    says("3 after 2, now");
    asks("sidecar a.00001", 0);

    test_case("name: the disk fails");
    rig_succeed(&rig, 1);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    session_text[0] = '\0';
    asks("publish a.00003 as a.00005", -EROFS);
    hears("ends");
    CHECK(strstr(rig.session.message, "it failed"));
    CHECK(strstr(rig.session.message, ".a.00003.xentrace.next"));
    collector_text[0] = '\0';
    rig_close(&rig);
    CHECK_UINT(nr_requests, 2); /* not before the rest has come back */
    asks("prepare a.00006", 0);
    asks("finish a.00002 at 100", 0);
    says("");
    session_text[0] = '\0';
    asks("sidecar a.00004", 0);
    hears("segment 4 rotate 1");
    asks("take back a.00006", 0);
    asks("finish a.00003 at 0", 0);
    asks("take back a.00003", 0); /* empty, and hidden: nothing else is removed */
    hears("segment 5 empty, finished");
    rig_done(&rig);

    test_case("name: the disk fails for a moment");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_succeed(&rig, 1);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("publish a.00002 as a.00002", -EIO);
    grants_until("nothing else");
    says("2 after 1");
    asks_nothing(); /* but waits; the segment continues */
    session_text[0] = '\0';
    expire(rig.segments->name_source);
    asks("publish a.00002 as a.00002", -EIO);
    expire(rig.segments->name_source);
    asks("publish a.00002 as a.00002", 0);
    hears("");
    says("3 after 2");
    CHECK(rig.segments->is_named && rig.segments->name_tries == 0);
    rig_stop(&rig);
    rig_close(&rig);
    grants_until("nothing else");
    rig_done(&rig);

    test_case("name: the session's end tries once more");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_succeed(&rig, 1);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("publish a.00002 as a.00002", -EIO);
    grants_until("nothing else");
    rig_stop(&rig);
    asks("publish a.00002 as a.00002", -EIO);
    CHECK(strstr(rig.session.message, ".a.00002.xentrace.next"));
    rig_close(&rig);
    grants_until("nothing else");
    rig_done(&rig);

    test_case("name: the disk fails for longer than a minute");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_succeed(&rig, 1);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("publish a.00002 as a.00002", -EIO);
    grants_until("nothing else");
    session_text[0] = '\0';
    for (unsigned int i = 0; i < 60 && rig.segments->name_source; i++) {
        expire(rig.segments->name_source);
        asks("publish a.00002 as a.00002", -EIO);
    }
    hears("ends");
    rig_close(&rig);
    grants_until("nothing else");
    rig_done(&rig);

    test_case("name: the session's end waits for it");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_stop(&rig);
    rig_succeed(&rig, 1);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    record(rig.storage->sink, 1);
    rig_close(&rig);
    asks("publish a.00002 as a.00002", -EEXIST);
    asks("finish a.00001 at 100", 0);
    asks("publish a.00002 as a.00003", -EEXIST);
    asks("sidecar a.00001", 0);
    CHECK_UINT(nr_requests, 1);
    asks("publish a.00002 as a.00004", 0);
    asks("finish a.00002 at 100", 0);
    rig_done(&rig);
}

static void test_names_all_taken(void)
{
    struct rig rig;

    test_case("name: all are taken");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_succeed(&rig, 1);
    for (unsigned int i = 0; i < 1000; i++) {
        CHECK_STR(rig.session.message, "");
        if (strncmp(requests[0].text, "publish", 7) != 0)
            asks("prepare a.00003", 0);
        if (!asks(requests[0].text, -EEXIST))
            break;
    }
    session_text[0] = '\0';
    asks("publish a.00002 as a.01002", -EEXIST);
    hears("ends");
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("finish a.00001 at 100", 0);
    asks("sidecar a.00001", 0);
    record(rig.storage->sink, 1);
    rig_close(&rig);
    asks("take back a.00003", 0);
    asks("finish a.00002 at 100", 0);
    rig_done(&rig);
}

static void test_next_fails(void)
{
    struct failure failure = {0};
    unsigned int number;
    struct rig rig;

    test_case("next: it cannot be made");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", -EIO);
    CHECK(strstr(log_text, "Segment 1 exceeds its limit"));
    log_text[0] = '\0';
    asks_nothing();
    CHECK_INT(segments_rotate(&rig.session, &number, &failure), -EIO);
    CHECK_STR(failure.text, "It failed.");
    asks("prepare a.00002", -EIO); /* tried again at once */
    CHECK_STR(log_text, "");       /* but logged once */
    asks_nothing();
    expire(last_timer);
    fails_sink = true;
    asks("prepare a.00002", 0);
    fails_sink = false;
    asks("take back a.00002", 0);
    expire(last_timer);
    CHECK_INT(segments_rotate(&rig.session, &number, &failure), -ENOMEM);
    asks("prepare a.00002", 0);
    says("2 after 1");
    CHECK_INT(segments_rotate(&rig.session, &number, &failure), 0);
    says("2 after 1, now");

    test_case("next: stopped while it waits to try again");
    rig_succeed(&rig, 1);
    CHECK_INT(segments_rotate(&rig.session, &number, &failure), 0); /* that one has not failed */
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("publish a.00002 as a.00002", 0);
    asks("prepare a.00003", -EIO);
    asks("finish a.00001 at 100", 0);
    asks("sidecar a.00001", 0);
    record(rig.storage->sink, 1);
    rig_stop(&rig);
    rig_close(&rig);
    asks("finish a.00002 at 100", 0);
    asks_nothing();
    rig_done(&rig);

    test_case("next: stopped while it is opened");
    for (int error = 0; error >= -EIO; error -= EIO) {
        rig_run(&rig, &by_size);
        rig_stop(&rig);
        CHECK_INT(segments_rotate(&rig.session, &number, &failure), -EINVAL);
        CHECK_STR(failure.name, ERROR_NO_SESSION);
        record(rig.storage->sink, 1);
        rig_close(&rig);
        asks("prepare a.00002", error); /* finish() has waited for it */
        if (error == 0)
            asks("take back a.00002", 0);
        asks("finish a.00001 at 100", 0);
        says("");
        rig_done(&rig);
    }
}

static void test_before_fails(void)
{
    struct rig rig;

    test_case("before: it cannot be finished");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_succeed(&rig, 1);
    rig_send(&rig, MESSAGE_FAILED, rig.segments->before, -EIO);
    hears("space reset, handover, a.00001 failed -5");
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("publish a.00002 as a.00002", 0);
    asks("prepare a.00003", 0);
    asks("finish a.00001 at 100", -EIO);
    hears("a.00001 not finished, ends");
    asks("sidecar a.00001", -EIO);
    CHECK(strstr(log_text, "a.00001.json"));
    hears("segment 1 size 1");
    record(rig.storage->sink, 1);
    rig_close(&rig);
    asks("take back a.00003", 0);
    asks("finish a.00002 at 100", -EIO);
    hears("a.00002 not finished, finished");
    rig_done(&rig);
}

/* It has been stopped, but the collector had handed over before it heard of that. */
static void test_stop_crosses(void)
{
    struct rig rig;

    test_case("stop crosses with the hand-over");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_stop(&rig);
    rig_succeed(&rig, 1);
    hears("space reset, handover");
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    record(rig.storage->sink, 2);
    rig_close(&rig);
    asks("publish a.00002 as a.00002", 0);
    asks("finish a.00001 at 100", 0);
    CHECK(!rig.storage->kind->is_quiet(rig.storage));
    asks("sidecar a.00001", 0);
    asks("finish a.00002 at 200", 0);
    asks_nothing(); /* no next one was prepared */
    hears("segment 1 size 1, finished");
    says("2 after 1");
    check_balance(&rig, 3, 0);
    rig_done(&rig);
}

static void test_abort(void)
{
    struct rig rig;

    test_case("abort: beside the one before");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_succeed(&rig, 1);
    asks("publish a.00002 as a.00002", 0);
    asks("prepare a.00003", 0);
    says("2 after 1");
    rig_abort(&rig);
    says("abort 1"); /* the session's own sink is the session's to abort */
    rig_close(&rig);
    asks_nothing();
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    session_text[0] = '\0';
    asks("finish a.00001 at 100", -EIO);
    hears("a.00001 not finished"); /* which is no reason any more */
    asks("sidecar a.00001", 0);
    asks("take back a.00003", 0);
    asks("finish a.00002 at 0", 0);
    asks("remove a.00002", 0);
    says("");
    rig_done(&rig);

    test_case("abort: the one before is being finished");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    rig_succeed(&rig, 1);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    says("2 after 1");
    rig_abort(&rig);
    says(""); /* it has come back */
    rig_close(&rig);
    session_text[0] = '\0';
    asks("publish a.00002 as a.00002", -EIO);
    hears(""); /* not the reason for the end */
    CHECK_STR(rig.session.message, "");
    CHECK(strstr(log_text, "Cannot rename the current segment"));
    asks("prepare a.00003", 0);
    asks("finish a.00001 at 100", 0);
    asks("sidecar a.00001", 0);
    asks("take back a.00003", 0);
    asks("finish a.00002 at 0", 0);
    asks("take back a.00002", 0);
    rig_done(&rig);

    test_case("abort crosses with the hand-over");
    rig_run(&rig, &by_size);
    asks("prepare a.00002", 0);
    says("2 after 1");
    rig_abort(&rig);
    says("");
    rig_succeed(&rig, 1);
    says("abort 2"); /* the sink before has it already */
    CHECK(!rig.storage->is_sink_closed);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    rig_close(&rig);
    asks("publish a.00002 as a.00002", 0);
    asks("finish a.00001 at 100", 0);
    asks("sidecar a.00001", 0);
    asks("finish a.00002 at 0", 0);
    asks("remove a.00002", 0);
    asks_nothing();
    rig_done(&rig);

    test_case("abort: while the next one is opened");
    rig_run(&rig, &by_size);
    rig_abort(&rig);
    record(rig.storage->sink, 1);
    rig_close(&rig);
    asks("prepare a.00002", 0);
    asks("take back a.00002", 0);
    asks("finish a.00001 at 100", 0);
    says("");
    rig_done(&rig);
}

static void test_time(void)
{
    static const struct session_options by_time = {.segment_time_usec = USEC_PER_SEC};
    struct rig rig;

    test_case("by time");
    rig_run(&rig, &by_time);
    asks("prepare a.00002", 0);
    says(""); /* not for its size */
    expire(last_timer);
    says(""); /* nothing was recorded */
    record(rig.storage->sink, 1);
    expire(last_timer);
    says("2 after 1, now");
    expire(last_timer);
    says(""); /* once */
    rig_succeed(&rig, 0);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("publish a.00002 as a.00002", 0);
    record(rig.storage->sink, 1);
    expire(last_timer);
    says(""); /* the next one is not there */
    asks("prepare a.00003", 0);
    says(""); /* nor is the one before finished */
    asks("finish a.00001 at 100", 0);
    says("3 after 2, now");
    session_text[0] = '\0';
    asks("sidecar a.00001", 0);
    hears("segment 1 time 1");
    rig_stop(&rig);
    rig_close(&rig);
    asks("take back a.00003", 0);
    asks("finish a.00002 at 100", 0);
    rig_done(&rig);
}

/* --- What is kept. --- */

static bool is_there(int directory_fd, const char *file)
{
    return faccessat(directory_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make(int directory_fd, const char *file, const char *content)
{
    _cleanup_fd_ int fd = openat(directory_fd, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content));
}

static int room_made; /* -1: no answer yet; else whether anything was deleted */

static void handle_room(struct storage *storage, bool has_deleted)
{
    (void)storage;
    CHECK_INT(room_made, -1);
    room_made = has_deleted;
}

static void ask_room(struct rig *rig, uint64_t bytes, bool disk_is_full)
{
    room_made = -1;
    rig->storage->kind->make_room(rig->storage, bytes, disk_is_full, handle_room);
}

static void test_keep_files(int directory_fd)
{
    static const struct session_options options = {.segment_size_bytes = MIB, .keep_files = 3};
    struct rig rig;

    test_case("keep-files");
    make(directory_fd, "a.00001.xentrace", "");
    make(directory_fd, "a.00001.json", "");
    rig_run(&rig, &options);
    asks("prepare a.00002", 0);
    rig_pass(&rig, 1);
    rig_pass(&rig, 2); /* 1 and 2 are finished, 3 is written */
    rig_succeed(&rig, 10);
    asks("remove a.00001", 0); /* 2, 3 and 4 */
    CHECK(!is_there(directory_fd, "a.00001.xentrace") && !is_there(directory_fd, "a.00001.json"));
    CHECK_UINT(rig.segments->deleted, 1);
    check_balance(&rig, 30, 10);
    asks("publish a.00004 as a.00004", 0);

    test_case("keep-files: others who need room wait for what is being deleted");
    ask_room(&rig, 0, false);
    CHECK_INT(room_made, false);

    test_case("keep-files: one that cannot be deleted");
    CHECK_INT(mkdirat(directory_fd, "a.00002.xentrace", 0700), 0);
    asks("prepare a.00005", 0);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("finish a.00003 at 1000", 0);
    asks("sidecar a.00003", 0);
    rig_succeed(&rig, 10);
    check_balance(&rig, 40, 10); /* the request alone changes nothing */
    ask_room(&rig, 0, false);
    CHECK_INT(room_made, -1); /* before it is known what is there */
    rig_stop(&rig);
    asks("remove a.00002", 0);
    CHECK(strstr(log_text, "Cannot delete segment 2"));
    CHECK_UINT(rig.segments->deleted, 1);
    CHECK_UINT(rig.segments->files[0]->segment.number, 3);
    check_balance(&rig, 40, 10);
    CHECK_INT(unlinkat(directory_fd, "a.00002.xentrace", AT_REMOVEDIR), 0);
    rig_close(&rig);
    asks("publish a.00005 as a.00005", 0);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("finish a.00004 at 1000", 0);
    asks("sidecar a.00004", 0);
    asks("finish a.00005 at 0", 0);
    asks("remove a.00005", 0);
    rig_done(&rig);
}

static const struct session_options keep_size = {
    .segment_size_bytes = MIB,
    .keep_size_bytes = 32 * MIB,
};

static const struct session_options rotate = {
    .segment_size_bytes = MIB,
    .on_reserve = "rotate",
};

static void test_room_keep_size(void)
{
    struct rig rig;

    test_case("room: keep-size");
    rig_run(&rig, &keep_size);
    asks("prepare a.00002", 0);
    ask_room(&rig, MIB, false);
    CHECK_INT(room_made, false); /* at once: there is room */
    rig_pass(&rig, 1);
    rig_pass(&rig, 2);
    ask_room(&rig, 32 * MIB - 1500, false); /* there is nothing that would do */
    CHECK_INT(room_made, -1);
    asks("remove a.00001", 0);
    CHECK_INT(room_made, -1);
    ask_room(&rig, 0, true); /* the disk is full, but nothing is deleted for that here */
    CHECK_INT(room_made, -1);
    asks("remove a.00002", 0);
    CHECK_INT(room_made, true);
    CHECK_UINT(rig.segments->deleted, 2);
    check_balance(&rig, 20, 20);
    ask_room(&rig, 33 * MIB, false); /* none is left */
    CHECK_INT(room_made, false);
    rig_stop(&rig);
    rig_close(&rig);
    asks("take back a.00004", 0);
    asks("finish a.00003 at 0", 0);
    rig_done(&rig);
}

static void test_room_while_next_is_opened(void)
{
    struct rig rig;

    test_case("room: keep-size, while the next one is opened");
    rig_run(&rig, &keep_size);
    asks("prepare a.00002", 0);
    rig_pass(&rig, 1);
    ask_room(&rig, 0, true); /* the disk is full: nothing is deleted for that */
    CHECK_INT(room_made, false);
    rig_succeed(&rig, 10);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("publish a.00003 as a.00003", 0);
    CHECK_STR(requests[0].text, "prepare a.00004");
    ask_room(&rig, 32 * MIB - 3 * segments_aim_bytes(rig.segments), false);
    CHECK_INT(room_made, -1); /* the next one will have been granted something */
    grants_until("remove a.00001");
    asks("remove a.00001", 0);
    CHECK_INT(room_made, true);
    record(rig.storage->sink, 1);
    rig_stop(&rig);
    rig_close(&rig);
    grants_until("finish a.00003 at 100");
    asks("finish a.00003 at 100", 0);
    rig_done(&rig);
}

static void test_room_not_for_next(void)
{
    struct rig rig;

    test_case("room: nothing is deleted for the next one unless asked for");
    rig_run(&rig, &keep_size);
    asks("prepare a.00002", 0);
    rig_pass(&rig, 1);
    rig_succeed(&rig, 10);
    asks("publish a.00003 as a.00003", 0);
    asks("prepare a.00004", -ENOSPC);
    asks_nothing();
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    record(rig.storage->sink, 1);
    rig_stop(&rig);
    rig_close(&rig);
    grants_until("finish a.00003 at 100");
    asks("finish a.00003 at 100", 0);
    rig_done(&rig);
}

static void test_room_for_two_of_keep_size(void)
{
    struct rig rig;

    test_case("room: keep-size, for what is requested at the same time");
    rig_run(&rig, &keep_size);
    asks("prepare a.00002", 0);
    rig_pass(&rig, 1);
    rig.storage->output->under_way = UINT32_C(1) << OUTPUT_EXTEND;
    rig.storage->output->figures.next_step_bytes = 30 * MIB;
    rig_succeed(&rig, 10);
    asks("publish a.00003 as a.00003", 0);
    asks("remove a.00001", 0); /* for the next one to be prepared */
    asks("prepare a.00004", 0);
    rig.segments->before_output->under_way = 0;
    rig_stop(&rig);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("finish a.00002 at 1000", 0);
    asks("sidecar a.00002", 0);
    rig_close(&rig);
    asks("take back a.00004", 0);
    asks("finish a.00003 at 0", 0);
    asks("remove a.00003", 0);
    rig_done(&rig);
}

static void test_room_rotate(void)
{
    struct rig rig;

    test_case("room: rotate at the reserve");
    rig_run(&rig, &rotate);
    asks("prepare a.00002", 0);
    rig_pass(&rig, 1);
    rig_pass(&rig, 2);
    ask_room(&rig, MIB, true);
    asks("remove a.00001", 0);
    CHECK_INT(room_made, true); /* one at a time */
    rig_stop(&rig);             /* at the end, too */
    ask_room(&rig, MIB, true);
    asks("remove a.00002", 0);
    CHECK_INT(room_made, true);
    ask_room(&rig, MIB, true);
    CHECK_INT(room_made, false); /* none is left */
    rig_close(&rig);
    asks("take back a.00004", 0);
    asks("finish a.00003 at 0", 0);
    rig_done(&rig);
}

static void test_room_rotate_for_next(void)
{
    struct rig rig;

    test_case("room: the disk is full when the next one is prepared");
    rig_run(&rig, &rotate);
    asks("prepare a.00002", 0);
    rig_pass(&rig, 1);
    rig_succeed(&rig, 10);
    ask_room(&rig, MIB, true);
    asks("publish a.00003 as a.00003", 0);
    asks("prepare a.00004", -ENOSPC);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    asks("remove a.00001", 0); /* for both */
    CHECK_INT(room_made, true);
    asks("finish a.00002 at 1000", 0);
    asks("prepare a.00004", -ENOSPC);
    asks("sidecar a.00002", 0);
    asks("remove a.00002", 0);
    asks("prepare a.00004", -ENOSPC);
    CHECK(strstr(log_text, "Segment 3 exceeds its limit"));
    asks_nothing();
    rig_stop(&rig);
    rig_close(&rig);
    asks("finish a.00003 at 0", 0);
    rig_done(&rig);
}

static void test_room_rotate_for_two(void)
{
    struct rig rig;

    test_case("room: one is deleted for two who need space");
    rig_run(&rig, &rotate);
    asks("prepare a.00002", 0);
    rig_pass(&rig, 1);
    rig_pass(&rig, 2);
    rig_succeed(&rig, 10);
    ask_room(&rig, MIB, true);
    asks("publish a.00004 as a.00004", 0);
    asks("prepare a.00005", -ENOSPC);
    CHECK_INT(room_made, -1);
    asks("remove a.00001", 0);
    CHECK_INT(room_made, true);
    asks("prepare a.00005", 0);
    asks_nothing();
    rig_stop(&rig);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    record(rig.storage->sink, 1);
    rig_close(&rig);
    grants_until("finish a.00004 at 100");
    asks("finish a.00004 at 100", 0);
    rig_done(&rig);
}

static void test_room_is_void(void)
{
    struct rig rig;

    test_case("room: void after the hand-over");
    rig_run(&rig, &rotate);
    asks("prepare a.00002", 0);
    rig_pass(&rig, 1);
    ask_room(&rig, MIB, true);
    rig_succeed(&rig, 10);
    asks("remove a.00001", 0);
    CHECK_INT(room_made, -1); /* it was for the one before */
    rig_stop(&rig);
    rig_send(&rig, MESSAGE_CLOSED, rig.segments->before, 0);
    record(rig.storage->sink, 1);
    rig_close(&rig);
    grants_until("finish a.00003 at 100");
    asks("finish a.00003 at 100", 0);
    rig_done(&rig);
}

/* The process ends while a worker is stuck with a part of it: nothing is used after it was freed.
 */
static void test_stuck(void)
{
    static const struct session_options options = {.segment_size_bytes = MIB, .keep_files = 2};
    struct segments *segments;
    struct rig rig;

    test_case("stuck");
    rig_run(&rig, &options);
    asks("prepare a.00002", 0);
    rig_pass(&rig, 1);
    rig_succeed(&rig, 10);
    CHECK_STR(requests[0].text, "remove a.00001");
    rig_abort(&rig);
    session_text[0] = collector_text[0] = '\0';
    segments = (struct segments *)rig.segments;
    rig.storage->kind->free(rig.storage);
    asks("remove a.00001", 0);
    grants_until("");
    hears("");
    CHECK_UINT(segments->deleted, 0);
    free(segments->files[0]);
    free(segments->files);
    free(segments->past);
    free(segments);
}

/* --- Their files before they have their names. --- */

static void test_prepare(int directory_fd)
{
    struct failure failure = {0};
    struct output_file output;

    test_case("prepare");
    output_file_init(&output, 0, UINT64_MAX);
    output.aim_bytes = 2 * MIB;
    output.waits = true;
    CHECK_INT(output_file_create(&output, directory_fd, directory, "a.00002", OUTPUT_PREPARED, NULL,
                                 &failure),
              0);
    CHECK(is_there(directory_fd, ".a.00002.xentrace.next"));
    CHECK(!is_there(directory_fd, "a.00002.xentrace"));
    CHECK_UINT(output.granted_bytes, 2 * MIB);
    CHECK(!output.is_final && !output.ran_out);
    output_file_extend(&output, 0); /* longer than it was to be: in small steps */
    CHECK_UINT(output.granted_bytes, 3 * MIB);

    test_case("publish");
    make(directory_fd, "a.00002.xentrace", "other");
    CHECK_INT(output_file_publish(&output, directory_fd, directory, "a.00002"), -EEXIST);
    CHECK(!output.is_published);
    CHECK_INT(output_file_publish(&output, directory_fd, directory, "a.00003"), 0);
    CHECK(output.is_published);
    CHECK(strstr(output.path, "/a.00003.xentrace"));
    CHECK(is_there(directory_fd, "a.00003.xentrace"));
    CHECK(!is_there(directory_fd, ".a.00002.xentrace.next"));
    output_file_done(&output);

    test_case("discard");
    output_file_init(&output, 0, UINT64_MAX);
    CHECK_INT(output_file_create(&output, directory_fd, directory, "a.00004", OUTPUT_PREPARED, NULL,
                                 &failure),
              0);
    output_file_remove(&output, directory_fd);
    output_file_done(&output);
    CHECK(!is_there(directory_fd, ".a.00004.xentrace.next"));
}

static void test_sweep(int directory_fd)
{
    struct failure failure = {0};
    struct output_file output;

    test_case("sweep");
    make(directory_fd, ".b.00001.xentrace.next", "records");
    make(directory_fd, ".b.00002.xentrace.next", "");
    make(directory_fd, ".b.00003.xentrace.next", "records");
    make(directory_fd, "b.00003.xentrace", "other");
    make(directory_fd, ".b.json.new", "half");
    make(directory_fd, ".snapshot.xentrace.new", "half");
    make(directory_fd, ".xentrace.next", "somebody's");
    output_file_init(&output, 0, UINT64_MAX);
    CHECK_INT(output_file_create(&output, directory_fd, directory, "b.00004", OUTPUT_PREPARED, NULL,
                                 &failure),
              0);
    output_file_sweep(directory_fd);
    CHECK(is_there(directory_fd, ".b.00004.xentrace.next")); /* it is being written */
    output_file_sweep_segments(directory_fd, "b");
    CHECK(is_there(directory_fd, ".b.00004.xentrace.next"));
    output_file_done(&output);
    output_file_sweep(directory_fd);
    CHECK(!is_there(directory_fd, ".b.00004.xentrace.next"));
    CHECK(is_there(directory_fd, "b.00001.xentrace"));
    CHECK(!is_there(directory_fd, ".b.00001.xentrace.next"));
    CHECK(!is_there(directory_fd, ".b.00002.xentrace.next"));
    CHECK(!is_there(directory_fd, "b.00002.xentrace"));
    CHECK(is_there(directory_fd, ".b.00003.xentrace.next")); /* its place is taken: for people */
    CHECK(!is_there(directory_fd, ".b.json.new"));
    CHECK(!is_there(directory_fd, ".snapshot.xentrace.new"));
    CHECK(is_there(directory_fd, ".xentrace.next"));
}

/* A full disk, as far as a reserve goes that is larger than any: it may be waited for. */
static void test_wait(int directory_fd)
{
    struct failure failure = {0};
    struct output_file output;

    test_case("wait");
    output_file_init(&output, 0, UINT64_MAX);
    output.aim_bytes = MIB;
    output.waits = true;
    CHECK_INT(
        output_file_create(&output, directory_fd, directory, "w", OUTPUT_NAMED, NULL, &failure), 0);
    output.reserve_bytes = UINT64_C(1) << 60;
    output_file_extend(&output, 0);
    CHECK(output.ran_out && !output.is_final);
    CHECK_UINT(output_file_headroom_bytes(&output, 0), 0);
    CHECK_UINT(output.granted_bytes, MIB);
    output.reserve_bytes = 0;
    output_file_extend(&output, 0);
    CHECK(!output.ran_out && !output.is_final);
    CHECK_UINT(output.granted_bytes, 2 * MIB);
    output.reserve_bytes = UINT64_C(1) << 60;
    output.waits = false;
    output_file_extend(&output, 0);
    CHECK(output.ran_out && output.is_final);
    output_file_done(&output);
}

static void test_check_none(int directory_fd)
{
    struct failure failure = {0};

    test_case("older segments");
    make(directory_fd, "c.xentrace", "");
    make(directory_fd, "c.0001.xentrace", "");
    make(directory_fd, "c.00001.xentrace.gz", "");
    make(directory_fd, "cc.00001.xentrace", "");
    make(directory_fd, "c.d.00001.xentrace", "");
    CHECK_INT(segments_check_none(directory_fd, directory, "c.00001", &failure), 0);
    make(directory_fd, "c.00012.json", "");
    CHECK_INT(segments_check_none(directory_fd, directory, "c.00001", &failure), -EEXIST);
    CHECK_STR(failure.name, ERROR_NAME_IN_USE);
    CHECK(strstr(failure.text, "c.00012.json"));
    CHECK_INT(segments_check_none(directory_fd, directory, "c.d.00001", &failure), -EEXIST);
    CHECK(strstr(failure.text, "c.d.00001.xentrace"));
    make(directory_fd, "packed.00002.xentrace.zst", "");
    CHECK_INT(segments_check_none(directory_fd, directory, "packed.00001", &failure), -EEXIST);
    CHECK(strstr(failure.text, "packed.00002.xentrace.zst"));

    test_case("older sidecar");
    CHECK_INT(segments_check_none(directory_fd, directory, "old.00001", &failure), -EEXIST);
    CHECK_STR(failure.text, "its sidecar");
}

int main(void)
{
    char command[64];
    int directory_fd;

    if (!mkdtemp(directory))
        return EXIT_FAILURE;
    directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd < 0)
        return EXIT_FAILURE;
    context.state_dir_fd = directory_fd;
    if (clock_history_new(1000000, clock_pair_now(), &context.clock) < 0)
        return EXIT_FAILURE;
    test_options();
    test_succession();
    test_totals();
    test_start_fails();
    test_empty();
    test_names_taken();
    test_names_all_taken();
    test_next_fails();
    test_before_fails();
    test_stop_crosses();
    test_abort();
    test_time();
    test_keep_files(directory_fd);
    test_room_keep_size();
    test_room_while_next_is_opened();
    test_room_not_for_next();
    test_room_for_two_of_keep_size();
    test_room_rotate();
    test_room_rotate_for_next();
    test_room_rotate_for_two();
    test_room_is_void();
    test_stuck();
    test_prepare(directory_fd);
    test_sweep(directory_fd);
    test_wait(directory_fd);
    test_check_none(directory_fd);
    (void)close(directory_fd);
    context.clock = clock_history_free(context.clock);
    (void)snprintf(command, sizeof(command), "rm -rf %s", directory);
    if (system(command) != 0)
        return EXIT_FAILURE;
    return test_end();
}

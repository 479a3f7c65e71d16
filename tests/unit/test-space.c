// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Grants, as words: what the sink, the worker and the clock answer.
 *
 *   wanted         the sink comes near the end of its grant
 *   more, last     the disk has more; so much, and never more
 *   none, nothing  it has no more now; and there is no waiting for it
 *   kept, deleted  the storage has made the room that it can: nothing was deleted for it, or was
 *   second         time passes
 *   stop, abort, closed    the session ends; the sink has come back
 *   reset          the storage writes to another file
 *
 * What is done about it: room or room:full (the storage deletes for it), extend or extend:waits (of
 * the worker), look (the same, if it is worth it), forget, grant or grant:last (of the collector).
 * The log has: paused, continues.
 */

#include "daemon/session/space.h"

#include <stdarg.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/sink.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/output/output.h"
#include "daemon/session/session.h"
#include "daemon/session/storage.h"
#include "tests/unit/test.h"

#define MIB UINT64_C(1048576)

static struct {
    char text[256]; /* what happened */
    output_done_fn extended;
    void (*room_made)(struct storage *storage, bool has_deleted);
    sd_event_time_handler_t look; /* NULL: no timer */
    void *userdata;
    uint64_t now_usec;
    uint64_t look_usec;
    bool is_on;
    uint64_t granted_bytes; /* as the collector knows */
    unsigned int nr_expected;
} fake;

_printf_(1, 2) static void note(const char *format, ...)
{
    size_t length = strlen(fake.text);
    va_list arguments;

    if (length > 0 && length + 1 < sizeof(fake.text)) {
        fake.text[length++] = ' ';
        fake.text[length] = '\0';
    }
    va_start(arguments, format);
    (void)vsnprintf(fake.text + length, sizeof(fake.text) - length, format, arguments);
    va_end(arguments);
}

/* --- The fakes. --- */

void log_event(int priority, const struct log_about *about, const char *format, ...)
{
    (void)format;
    CHECK(about->id && about->session && about->file);
    note(priority == LOG_WARNING ? "paused" : "continues");
}

void session_expect_answer(struct session *session)
{
    (void)session;
    fake.nr_expected++;
}

/* All that was granted is written. */
void sink_read_totals(const struct sink *sink, struct sink_totals *ret_totals)
{
    (void)sink;
    *ret_totals = (struct sink_totals){.output_bytes = fake.granted_bytes};
}

void collector_send(struct collector *collector, enum message_type type, struct sink *sink,
                    bool flag, int64_t value)
{
    (void)collector, (void)sink;
    CHECK_INT(type, MESSAGE_GRANT);
    CHECK((uint64_t)value > fake.granted_bytes || flag);
    fake.granted_bytes = (uint64_t)value;
    note(flag ? "grant:last" : "grant");
}

void output_extend(struct output *output, uint64_t written_bytes, bool waits,
                   uint64_t min_headroom_bytes, output_done_fn done)
{
    (void)output;
    CHECK(!fake.extended); /* one at a time, or the output's assertion fails */
    CHECK_UINT(written_bytes, fake.granted_bytes);
    fake.extended = done;
    if (min_headroom_bytes > 0)
        note("look");
    else
        note(waits ? "extend:waits" : "extend");
}

void output_forget(struct output *output, enum output_operation operation)
{
    (void)output;
    CHECK_INT(operation, OUTPUT_EXTEND);
    fake.extended = NULL;
    note("forget");
}

int sd_event_add_time_relative(sd_event *event, sd_event_source **ret_source, clockid_t clock,
                               uint64_t usec, uint64_t accuracy, sd_event_time_handler_t handler,
                               void *userdata)
{
    (void)event, (void)clock, (void)accuracy;
    CHECK(!fake.look);
    fake.look = handler;
    fake.userdata = userdata;
    fake.look_usec = fake.now_usec + usec;
    fake.is_on = true;
    *ret_source = (sd_event_source *)&fake;
    return 0;
}

int sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec)
{
    (void)source;
    CHECK(fake.look);
    fake.look_usec = fake.now_usec + usec;
    return 0;
}

int sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
    (void)source;
    fake.is_on = enabled != SD_EVENT_OFF;
    return 0;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
    if (source)
        fake.look = NULL;
    return NULL;
}

static void pass_second(void)
{
    fake.now_usec += USEC_PER_SEC;
    if (!fake.look || !fake.is_on || fake.look_usec > fake.now_usec)
        return;
    fake.is_on = false; /* once */
    (void)fake.look((sd_event_source *)&fake, fake.now_usec, fake.userdata);
}

/* --- A storage. --- */

struct rig {
    struct session_context context;
    struct session session;
    struct output output;
    struct storage storage;
};

static void make_room(struct storage *storage, uint64_t bytes, bool disk_is_full,
                      void (*done)(struct storage *storage, bool has_deleted))
{
    (void)storage;
    CHECK(disk_is_full || bytes > 0);
    CHECK(!fake.room_made);
    fake.room_made = done;
    note(disk_is_full ? "room:full" : "room");
}

static void answer_extend(struct rig *rig, uint64_t bytes, bool is_last)
{
    output_done_fn done = fake.extended;
    struct output_figures *figures = &rig->output.figures;
    const struct failure failure = {0};

    if (!CHECK(done))
        return;
    fake.extended = NULL;
    figures->granted_bytes += bytes;
    figures->is_final = is_last;
    figures->ran_out = bytes == 0;
    done(&rig->storage, 0, &failure);
}

static void answer_room(struct rig *rig, bool has_deleted)
{
    void (*done)(struct storage * storage, bool has_deleted) = fake.room_made;

    if (!CHECK(done))
        return;
    fake.room_made = NULL;
    done(&rig->storage, has_deleted);
}

/* As session_stop() does. */
static void stop(struct rig *rig)
{
    bool waits = rig->storage.space.source;

    space_stop_waiting(&rig->storage);
    rig->session.state = SESSION_DRAINING;
    if (waits)
        space_extend(&rig->storage);
}

static void play(struct rig *rig, const char *word)
{
    if (strcmp(word, "wanted") == 0)
        space_extend(&rig->storage);
    else if (strcmp(word, "more") == 0)
        answer_extend(rig, MIB, false);
    else if (strcmp(word, "last") == 0)
        answer_extend(rig, MIB, true);
    else if (strcmp(word, "none") == 0)
        answer_extend(rig, 0, false);
    else if (strcmp(word, "nothing") == 0)
        answer_extend(rig, 0, true);
    else if (strcmp(word, "kept") == 0 || strcmp(word, "deleted") == 0)
        answer_room(rig, word[0] == 'd');
    else if (strcmp(word, "second") == 0)
        pass_second();
    else if (strcmp(word, "stop") == 0)
        stop(rig);
    else if (strcmp(word, "abort") == 0)
        rig->session.is_aborted = true;
    else if (strcmp(word, "closed") == 0)
        rig->storage.is_sink_closed = true;
    else if (strcmp(word, "reset") == 0)
        space_reset(&rig->storage);
    else
        CHECK_NEVER("a word");
}

static const struct space_case {
    const char *name;
    enum on_reserve on_reserve;
    const char *words;
    const char *expected;
} space_cases[] = {
    {"there is more", ON_RESERVE_STOP, "wanted more wanted more", "extend grant extend grant"},
    {"it is wanted again meanwhile", ON_RESERVE_STOP, "wanted wanted wanted more more",
     "extend grant extend grant"},
    {"the last grant", ON_RESERVE_STOP, "wanted wanted last", "extend grant:last"},
    {"there is no more", ON_RESERVE_STOP, "wanted nothing", "extend grant:last"},
    {"the session is aborted meanwhile", ON_RESERVE_STOP, "wanted abort more", "extend"},
    {"the sink comes back meanwhile", ON_RESERVE_STOP, "wanted closed more", "extend"},
    {"another file", ON_RESERVE_STOP, "wanted wanted reset wanted more",
     "extend forget extend grant"},

    {"it pauses, and continues", ON_RESERVE_PAUSE, "wanted none second more",
     "extend:waits paused look continues grant"},
    {"it pauses for long", ON_RESERVE_PAUSE, "wanted none second none second none second more",
     "extend:waits paused look look look continues grant"},
    {"it pauses, and the disk is slow", ON_RESERVE_PAUSE, "wanted none second second second more",
     "extend:waits paused look continues grant"},
    {"it does not look any more after that", ON_RESERVE_PAUSE,
     "wanted none second more second second", "extend:waits paused look continues grant"},
    {"it is stopped while it pauses", ON_RESERVE_PAUSE, "wanted none stop last",
     "extend:waits paused extend grant:last"},
    {"it is stopped while it looks", ON_RESERVE_PAUSE, "wanted none second stop none nothing",
     "extend:waits paused look extend grant:last"},
    {"it is stopped, and does not pause any more", ON_RESERVE_PAUSE, "wanted stop none nothing",
     "extend:waits extend grant:last"},
    {"another file while it pauses", ON_RESERVE_PAUSE, "wanted none reset second second",
     "extend:waits paused forget"},

    {"nothing has to be deleted", ON_RESERVE_ROTATE, "wanted kept more", "room extend:waits grant"},
    {"the oldest is deleted", ON_RESERVE_ROTATE, "wanted kept none deleted more",
     "room extend:waits room:full extend:waits grant"},
    {"two are", ON_RESERVE_ROTATE, "wanted kept none deleted none deleted more",
     "room extend:waits room:full extend:waits room:full extend:waits grant"},
    {"there is none left", ON_RESERVE_ROTATE, "wanted kept none kept nothing",
     "room extend:waits room:full extend grant:last"},
    {"wanted again while one is deleted", ON_RESERVE_ROTATE, "wanted wanted kept more kept more",
     "room extend:waits grant room extend:waits grant"},
};

static void test_space(const struct space_case *space)
{
    struct storage_kind kind = {
        .make_room = space->on_reserve == ON_RESERVE_ROTATE ? make_room : NULL,
    };
    struct rig rig = {
        .session = {.state = SESSION_RUNNING, .name = "s"},
        .output = {.figures = {.granted_bytes = MIB, .next_step_bytes = MIB, .path = "s.xentrace"}},
    };
    char words[128], *word, *rest = words;

    test_case(space->name);
    memset(&fake, 0, sizeof(fake));
    fake.granted_bytes = MIB;
    rig.session.context = &rig.context;
    rig.session.storage = &rig.storage;
    rig.storage = (struct storage){
        .kind = &kind,
        .session = &rig.session,
        .output = &rig.output,
        .space = {.on_reserve = space->on_reserve},
    };
    (void)snprintf(words, sizeof(words), "%s", space->words);
    while ((word = strsep(&rest, " ")))
        play(&rig, word);
    CHECK_STR(fake.text, space->expected);
    CHECK(fake.nr_expected > 0); /* a disk that does not answer is seen in time */
    CHECK(!fake.extended);
    CHECK(!fake.room_made);
    space_stop_waiting(&rig.storage);
    CHECK(!fake.look);
}

int main(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(space_cases); i++)
        test_space(&space_cases[i]);
    return test_end();
}

// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/session/loss-report.h"

#include <stdarg.h>

#include <systemd/sd-event.h>

#include "collector/ledger.h"
#include "collector/sink.h"
#include "common/units.h"
#include "daemon/base/log.h"
#include "daemon/base/log-id.h"
#include "daemon/session/session-data.h"
#include "tests/unit/test.h"

#define NR_CPUS 4u

static struct {
    struct ledger ledger[NR_CPUS];
    uint64_t drops[DROP_CAUSES];
    char log[4096];
    char cpus[64];
    unsigned int nr_lines;
    bool timer_is_set;
    bool timer_is_on;
    uint64_t timer_usec;
    int timer_error;
} fake;

/* --- The fakes. --- */

void session_read_ledger(const struct session *session, unsigned int cpu, struct ledger *ret_ledger)
{
    (void)session;
    *ret_ledger = fake.ledger[cpu];
}

void session_read_totals(const struct session *session, struct sink_totals *ret_totals)
{
    (void)session;
    *ret_totals = (struct sink_totals){0};
    memcpy(ret_totals->drops, fake.drops, sizeof(fake.drops));
}

void log_event(int priority, const struct log_about *about, const char *format, ...)
{
    va_list arguments;

    CHECK_INT(priority, LOG_WARNING);
    CHECK_STR(about->session, "a");
    CHECK(about->cpus && strlen(about->cpus) < sizeof(fake.cpus));
    (void)snprintf(fake.cpus, sizeof(fake.cpus), "%s", about->cpus);
    va_start(arguments, format);
    (void)vsnprintf(fake.log, sizeof(fake.log), format, arguments);
    va_end(arguments);
    CHECK_STR(about->id,
              strstr(fake.log, " dropped: ") ? LOG_ID_RECORDS_DROPPED : LOG_ID_RECORDS_LOST);
    fake.nr_lines++;
}

int sd_event_add_time(sd_event *event, sd_event_source **ret_source, clockid_t clock, uint64_t usec,
                      uint64_t accuracy, sd_event_time_handler_t handler, void *userdata)
{
    (void)event, (void)clock, (void)accuracy, (void)handler, (void)userdata;
    CHECK(!fake.timer_is_set);
    if (fake.timer_error)
        return fake.timer_error;
    fake.timer_is_set = true;
    fake.timer_is_on = true;
    fake.timer_usec = usec;
    *ret_source = (sd_event_source *)&fake;
    return 0;
}

int sd_event_source_set_time(sd_event_source *source, uint64_t usec)
{
    CHECK((void *)source == &fake);
    fake.timer_usec = usec;
    return 0;
}

int sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
    CHECK((void *)source == &fake && enabled == SD_EVENT_ONESHOT);
    fake.timer_is_on = true;
    return 0;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
    if (source)
        fake.timer_is_set = false;
    return NULL;
}

/* --- The tests. --- */

static struct session_context context;
static struct session session;

static void begin(const char *name)
{
    test_case(name);
    loss_report_done(&session.losses);
    memset(&fake, 0, sizeof(fake));
    session = (struct session){
        .context = &context,
        .name = "a",
        .state = SESSION_RUNNING,
        .selection = {.nr_cpus = NR_CPUS},
    };
}

static void look(uint64_t msec)
{
    loss_report_look(&session, msec * USEC_PER_MSEC);
}

static void test_first(void)
{
    begin("nothing is missing");
    look(1000);
    CHECK_UINT(fake.nr_lines, 0);
    CHECK(!fake.timer_is_set);

    begin("the first loss is reported at once");
    fake.ledger[2].lost = 5;
    look(1000);
    CHECK_UINT(fake.nr_lines, 1);
    CHECK(strstr(fake.log, "5 records of CPU 2 were lost: "));
    CHECK_STR(fake.cpus, "2");

    begin("one record");
    fake.ledger[0].lost = 1;
    look(1000);
    CHECK(strstr(fake.log, "1 record of CPU 0 was lost: "));

    begin("several CPUs");
    fake.ledger[0].lost = 5;
    fake.ledger[1].lost = 5;
    fake.ledger[3].lost = 1;
    look(1000);
    CHECK(strstr(fake.log, "11 records of CPUs 0-1,3 were lost: "));
    CHECK_STR(fake.cpus, "0-1,3");

    begin("dropped records have a line of their own");
    fake.ledger[0] = (struct ledger){.lost = 2, .dropped = 3};
    fake.drops[DROP_SLOW_OUTPUT] = 3;
    look(1000);
    CHECK_UINT(fake.nr_lines, 2);
    CHECK(strstr(fake.log, "3 records of CPU 0 were dropped: the output does not keep up"));
}

static void test_causes(void)
{
    for (unsigned int i = 0; i < DROP_CAUSES; i++) {
        begin(drop_causes[i].name);
        fake.ledger[1].dropped = 5;
        fake.drops[i] = 5;
        look(1000);
        CHECK_UINT(fake.nr_lines, 1);
        CHECK(strstr(fake.log, "5 records of CPU 1 were dropped: "));
        CHECK(strstr(fake.log, drop_causes[i].why) && strstr(fake.log, drop_causes[i].advice));
        CHECK(!strstr(fake.log, "pool-max=") == (i > DROP_PINNED));
        look(2000);
        CHECK_UINT(fake.nr_lines, 1);
    }

    begin("two causes at once");
    fake.ledger[0].dropped = 5;
    fake.ledger[3].dropped = 2;
    fake.drops[DROP_SLOW_OUTPUT] = 4;
    fake.drops[DROP_ABORTED] = 3;
    look(1000);
    CHECK_UINT(fake.nr_lines, 1);
    CHECK(strstr(fake.log, "7 records of CPUs 0,3 were dropped: 4 because the output does not"));
    CHECK(strstr(fake.log, " 3 because the session was aborted"));

    begin("a cause whose CPU is not known yet is reported later");
    fake.drops[DROP_SLOW_OUTPUT] = 4;
    look(1000);
    CHECK_UINT(fake.nr_lines, 0);
    fake.ledger[0].dropped = 4;
    look(1000);
    CHECK(strstr(fake.log, "4 records of CPU 0 were dropped: the output"));
}

static void test_rate(void)
{
    begin("not twice in a second");
    fake.ledger[0].lost = 1;
    look(1000);
    fake.ledger[0].lost = 2;
    look(1500);
    CHECK_UINT(fake.nr_lines, 1);
    test_case("but a second later, without a message");
    CHECK(fake.timer_is_on);
    CHECK_UINT(fake.timer_usec, 2000 * USEC_PER_MSEC);
    look(2000);
    CHECK_UINT(fake.nr_lines, 2);
    CHECK(strstr(fake.log, "1 record of CPU 0 was lost: "));

    begin("a loss that lasts: ever more rarely, and at least once a minute");
    for (uint64_t msec = 0; msec < 3600 * 1000; msec += 500) {
        fake.ledger[0].lost++;
        look(msec);
    }
    CHECK(fake.nr_lines >= 60);
    CHECK(fake.nr_lines <= 70);

    begin("at once again after a quiet time");
    fake.ledger[0].lost = 1;
    look(1000);
    look(2000); /* the timer: nothing new */
    fake.ledger[0].lost = 2;
    look(2010);
    CHECK_UINT(fake.nr_lines, 2);

    begin("without a timer");
    fake.timer_error = -ENOMEM;
    fake.ledger[0].lost = 1;
    look(1000);
    fake.ledger[0].lost = 2;
    look(2500);
    CHECK_UINT(fake.nr_lines, 2);
}

static void test_ends(void)
{
    begin("the end reports what is left");
    fake.ledger[0].lost = 1;
    look(1000);
    fake.ledger[0].lost = 4;
    session.state = SESSION_ENDED;
    loss_report_finish(&session);
    CHECK_UINT(fake.nr_lines, 2);
    CHECK(strstr(fake.log, "3 records of CPU 0 were lost: "));
    CHECK(!fake.timer_is_set);
    test_case("and nothing is reported afterwards");
    look(5000);
    CHECK_UINT(fake.nr_lines, 2);

    begin("what an earlier daemon has reported is not reported again");
    fake.ledger[1].lost = 100;
    loss_report_begin(&session);
    look(1000);
    CHECK_UINT(fake.nr_lines, 0);
    fake.ledger[1].lost = 101;
    look(2000);
    CHECK(strstr(fake.log, "1 record of CPU 1 was lost: "));
}

int main(void)
{
    test_first();
    test_causes();
    test_rate();
    test_ends();
    loss_report_done(&session.losses);
    return test_end();
}

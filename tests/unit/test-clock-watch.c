// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * On a timer that the test fires, or cancels: a pipe of its own.
 */

#include "daemon/base/clock-watch.h"

#include <fcntl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "daemon/base/clock-history.h"
#include "tests/unit/test.h"

static int pipe_fds[2];
static struct itimerspec timer; /* as it was set last */
static int timer_flags;
static bool is_cancelled; /* ... and a read finds that */
static struct clock_need need;

int timerfd_create(clockid_t clock, int flags)
{
    CHECK_INT(clock, CLOCK_REALTIME);
    CHECK(flags & TFD_NONBLOCK);
    return pipe2(pipe_fds, flags & TFD_NONBLOCK ? O_NONBLOCK : 0) < 0 ? -1 : pipe_fds[0];
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old_value)
{
    CHECK_INT(fd, pipe_fds[0]);
    CHECK(!old_value);
    timer = *value;
    timer_flags = flags;
    return 0;
}

ssize_t __real_read(int fd, void *buffer, size_t bytes);
ssize_t __wrap_read(int fd, void *buffer, size_t bytes);

ssize_t __wrap_read(int fd, void *buffer, size_t bytes)
{
    ssize_t r = __real_read(fd, buffer, bytes);

    if (fd != pipe_fds[0] || r < 0 || !is_cancelled)
        return r;
    errno = ECANCELED;
    return -1;
}

static struct clock_need read_need(void *userdata)
{
    CHECK(userdata == &need);
    return need;
}

static void fire(sd_event *event, bool cancelled)
{
    uint64_t expirations = 1;

    is_cancelled = cancelled;
    timer = (struct itimerspec){0};
    CHECK(write(pipe_fds[1], &expirations, sizeof(expirations)) == sizeof(expirations));
    CHECK(sd_event_run(event, 0) > 0);
}

static bool is_set_for_a_minute(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return timer_flags == (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) &&
           timer.it_value.tv_sec - now.tv_sec >= 59 && timer.it_value.tv_sec - now.tv_sec <= 60 &&
           timer.it_interval.tv_sec == 0;
}

/*
 * A history to which the wall clock of now is a step, but only one that was reported. Its frequency
 * is about that of a real TSC, so that it is still true when the test was held up.
 */
static struct clock_history *make_history(void)
{
    struct clock_pair past = clock_pair_now();
    struct clock_history *history;

    past.tsc -= UINT64_C(3000000000000); /* 1000 s */
    past.realtime_ns -= UINT64_C(1000500000000);
    CHECK_INT(clock_history_new(3000000, past, &history), 0);
    return history;
}

static size_t count_pairs(const struct clock_history *history)
{
    struct clock_pair pairs[CLOCK_PAIRS_MAX];

    return clock_history_read(history, 0, 0, pairs);
}

static void test_watch(sd_event *event, bool cancelled)
{
    struct clock_history *history = make_history();
    struct clock_watch *watch;

    timer = (struct itimerspec){0};
    CHECK_INT(clock_watch_new(event, history, read_need, &need, &watch), 0);
    CHECK_INT(timer.it_value.tv_sec, 0);
    need = (struct clock_need){.is_recording = true};

    test_case(cancelled ? "a clock that was set is looked at at once"
                        : "while something is recorded, the clocks are looked at each minute");
    fire(event, cancelled);
    CHECK_INT(count_pairs(history), cancelled ? 3 : 1);
    CHECK(is_set_for_a_minute());
    clock_watch_start(watch);
    CHECK(is_set_for_a_minute());

    test_case("when nothing is recorded any more, the timer is off");
    need = (struct clock_need){.oldest_tsc = UINT64_MAX};
    fire(event, false);
    CHECK_INT(timer.it_value.tv_sec, 0);
    CHECK_INT(count_pairs(history), 1); /* what is needed no more is forgotten */
    need.is_recording = true;
    clock_watch_start(watch);
    CHECK(is_set_for_a_minute());
    CHECK(!clock_watch_free(watch));
    CHECK(!clock_watch_free(NULL));
    clock_history_free(history);
    (void)close(pipe_fds[1]);
}

int main(void)
{
    sd_event *event;

    if (sd_event_new(&event) < 0)
        return EXIT_FAILURE;
    test_watch(event, false);
    test_watch(event, true);
    sd_event_unref(event);
    return test_end();
}

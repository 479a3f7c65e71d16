// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The watchdog with a collector of the test's own, which can hang; the service manager is a socket.
 */

#include "daemon/watchdog.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "common/units.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define WATCHDOG_USEC (60 * USEC_PER_MSEC)

/* --- The collector, instead of the real one. --- */

struct collector {
    uint64_t wakeups;
    bool hangs;
    unsigned int pokes;
};

void collector_poke(struct collector *collector)
{
    collector->pokes++;
    collector->wakeups += !collector->hangs;
}

void collector_read_stats(const struct collector *collector, struct collector_stats *ret_stats)
{
    *ret_stats = (struct collector_stats){.wakeups = collector->wakeups};
}

/* --- The service manager. --- */

static int notify_fd;
static unsigned int nr_feeds;

static void open_notify_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length;

    /* Abstract: nothing is left over. */
    length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "test-watchdog-%d",
                      (int)getpid());
    notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (notify_fd < 0 ||
        bind(notify_fd, (struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) < 0)
        exit(EXIT_FAILURE);
    address.sun_path[0] = '@';
    (void)setenv("NOTIFY_SOCKET", address.sun_path, 1);
}

/* How many there were since the last call. */
static unsigned int count_feeds(void)
{
    static unsigned int counted;
    unsigned int feeds = nr_feeds - counted;

    counted = nr_feeds;
    return feeds;
}

static void read_feeds(void)
{
    char message[128];
    ssize_t n;

    while ((n = recv(notify_fd, message, sizeof(message) - 1, 0)) > 0) {
        message[n] = '\0';
        CHECK_STR(message, "WATCHDOG=1");
        nr_feeds++;
    }
}

static uint64_t usec_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC;
}

static void run_for(sd_event *event, uint64_t usec, bool reads)
{
    uint64_t end = usec_now() + usec;

    for (uint64_t now = usec_now(); now < end; now = usec_now()) {
        CHECK(sd_event_run(event, end - now) >= 0);
        if (reads)
            read_feeds();
    }
}

/* --- Cases. --- */

static void test_none(sd_event *event)
{
    struct collector collector = {0};
    struct watchdog *watchdog;

    test_case("no service manager waits for it");
    (void)unsetenv("WATCHDOG_USEC");
    CHECK_INT(watchdog_new(event, &collector, &watchdog), 0);
    CHECK(!watchdog);
    CHECK_UINT(collector.pokes, 0);
    CHECK(!watchdog_free(NULL));
}

static void test_feeds(sd_event *event)
{
    struct collector collector = {0};
    struct watchdog *watchdog;
    unsigned int feeds, pokes;
    char text[32];

    (void)snprintf(text, sizeof(text), "%u", (unsigned int)WATCHDOG_USEC);
    (void)setenv("WATCHDOG_USEC", text, 1);
    (void)unsetenv("WATCHDOG_PID");
    if (!CHECK_INT(watchdog_new(event, &collector, &watchdog), 0) || !CHECK(watchdog))
        return;

    test_case("it is fed while the collector runs, and no more often than needed");
    run_for(event, 20 * WATCHDOG_USEC, true);
    feeds = count_feeds();
    CHECK(feeds >= 2 && feeds <= 40);
    CHECK(collector.pokes > feeds);

    test_case("a collector that hangs: it is not fed");
    collector.hangs = true;
    run_for(event, WATCHDOG_USEC, true); /* the poke before was answered */
    (void)count_feeds();
    run_for(event, 10 * WATCHDOG_USEC, true);
    CHECK_UINT(count_feeds(), 0);

    test_case("a collector that runs again: it is fed");
    collector.hangs = false;
    collector.wakeups++; /* it was poked before */
    run_for(event, 20 * WATCHDOG_USEC, true);
    pokes = collector.pokes;
    CHECK(count_feeds() >= 2);

    test_case("a service manager that does not read: nothing waits for it");
    run_for(event, 20 * WATCHDOG_USEC, false); /* its queue has room for about ten */
    CHECK(collector.pokes > pokes + 15);
    run_for(event, 2 * WATCHDOG_USEC, true); /* else the worker's memory is abandoned */
    watchdog_free(watchdog);
}

int main(void)
{
    sd_event *event = NULL;

    if (sd_event_new(&event) < 0)
        return EXIT_FAILURE;
    open_notify_socket();
    test_none(event);
    test_feeds(event);
    sd_event_unref(event);
    fd_close(&notify_fd);
    return test_end();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * daemon/host/domain-watch.c over domains and a xenstore of the test's own. The worker's jobs run
 * when the test says so: until then xenstored hangs.
 */

#include "daemon/host/domain-watch.h"

#include <errno.h>
#include <sys/eventfd.h>

#include <systemd/sd-event.h>

#include "collector/xen.h"
#include "common/util.h"
#include "daemon/base/worker.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/xenstore.h"
#include "tests/unit/test.h"

#define DOMAINS_MAX 8u
#define JOBS_MAX    8u

static struct {
    size_t count;
    struct xen_domain_state state[DOMAINS_MAX];
    struct xen_domain name[DOMAINS_MAX]; /* as they are known, "" included */
    int list_error;
    int watch_error;
    int read_error;
    int watches;   /* open */
    int refreshes; /* asked for */
    int fd;        /* an eventfd: readable while an event waits */
    struct job *jobs[JOBS_MAX];
    size_t nr_jobs;
} host;

int xen_host_list_domain_states(struct xen_host *xen, struct xen_domain_state *ret_states,
                                unsigned int max)
{
    CHECK(!xen && max >= host.count);
    if (host.list_error)
        return host.list_error;
    memcpy(ret_states, host.state, host.count * sizeof(host.state[0]));
    return (int)host.count;
}

/* --- Of domain-names.h, what the watch calls. --- */

void domain_names_refresh(struct domain_names *names)
{
    CHECK(!names);
    host.refreshes++;
}

const char *domain_names_of(const struct domain_names *names, uint32_t domid)
{
    CHECK(!names);
    for (size_t i = 0; i < DOMAINS_MAX; i++)
        if (host.name[i].domid == domid)
            return host.name[i].name;
    return "";
}

void domain_names_send(struct domain_names *names, struct job *job)
{
    CHECK(!names && host.nr_jobs < JOBS_MAX);
    host.jobs[host.nr_jobs++] = job;
}

/* Xenstored answers: what waits for it is done, in order. */
static void run_jobs(void)
{
    for (size_t i = 0; i < host.nr_jobs; i++)
        host.jobs[i]->run(host.jobs[i]);
    for (size_t i = 0; i < host.nr_jobs; i++)
        host.jobs[i]->done(host.jobs[i]);
    host.nr_jobs = 0;
}

/* --- Of xenstore.h. --- */

struct xenstore_watch {
    int unused;
};

int xenstore_watch_new(struct xenstore_watch **ret_watch)
{
    static struct xenstore_watch only;

    if (host.watch_error)
        return host.watch_error;
    host.watches++;
    *ret_watch = &only;
    return 0;
}

struct xenstore_watch *xenstore_watch_free(struct xenstore_watch *watch)
{
    host.watches -= !!watch;
    return NULL;
}

int xenstore_watch_fd(const struct xenstore_watch *watch)
{
    CHECK(watch);
    return host.fd;
}

int xenstore_watch_read(struct xenstore_watch *watch)
{
    eventfd_t count = 0;

    CHECK(watch);
    if (host.read_error)
        return host.read_error;
    return eventfd_read(host.fd, &count) < 0 ? 0 : (int)count;
}

/* --- A host whose domains come and go. --- */

static void set_domain(size_t index, uint32_t domid, bool shut_down, bool crashed, const char *name)
{
    host.state[index] =
        (struct xen_domain_state){.domid = domid, .shut_down = shut_down, .crashed = crashed};
    host.name[index].domid = domid;
    (void)snprintf(host.name[index].name, sizeof(host.name[index].name), "%s", name);
}

static char told[256];

/* "3(web) ", and the first letter of its UUID before that, if it has one. */
static void note_crash(void *userdata, const struct xen_domain *domain)
{
    size_t length = strlen(told);

    CHECK(userdata == &host);
    (void)snprintf(told + length, sizeof(told) - length, "%.1s%u(%s) ", (const char *)domain->uuid,
                   domain->domid, domain->name);
}

/* Xenstore's event comes; what is reported. */
static const char *fire(sd_event *event)
{
    told[0] = '\0';
    CHECK(eventfd_write(host.fd, 1) == 0);
    CHECK(sd_event_run(event, 1000000) > 0);
    return told;
}

static void test_crashes(sd_event *event)
{
    struct domain_watch *watch = NULL;

    test_case("crashed before the start, and kept");
    host.count = 3;
    set_domain(0, 0, false, false, "Domain-0");
    set_domain(1, 2, true, true, "old");
    set_domain(2, 3, false, false, "web");
    CHECK_INT(domain_watch_new(event, NULL, NULL, note_crash, &host, &watch), 0);
    run_jobs();
    CHECK_STR(told, "");

    test_case("nothing new");
    CHECK_STR(fire(event), "");

    test_case("a domain that shuts down");
    set_domain(2, 3, true, false, "web");
    CHECK_STR(fire(event), "");
    set_domain(2, 3, false, false, "web");
    CHECK_STR(fire(event), "");

    test_case("a crash is reported, and the names are asked for afterwards");
    set_domain(2, 3, true, true, "web");
    host.refreshes = 0;
    CHECK_STR(fire(event), "3(web) ");
    CHECK_INT(host.refreshes, 1);

    test_case("reported once");
    CHECK_STR(fire(event), "");

    test_case("gone");
    host.count = 2;
    CHECK_STR(fire(event), "");

    test_case("started anew, and crashed before anybody looked; two at once, one without a name");
    host.count = 4;
    set_domain(2, 4, true, true, "web");
    set_domain(3, 5, true, true, "");
    CHECK_STR(fire(event), "4(web) 5() ");

    test_case("its UUID is reported although nobody knew of the domain");
    host.count = 5;
    set_domain(4, 8, true, true, "");
    memcpy(host.state[4].uuid, "u-u-u-u-u-u-u-u-", sizeof(host.state[4].uuid));
    CHECK_STR(fire(event), "u8() ");
    host.count = 4;

    test_case("Xen does not answer");
    set_domain(3, 6, true, true, "db");
    host.list_error = -EACCES;
    CHECK_STR(fire(event), "");
    host.list_error = 0;
    CHECK_STR(fire(event), "6(db) ");

    test_case("xenstore goes away");
    host.read_error = -EINVAL;
    CHECK_STR(fire(event), "");
    run_jobs();
    CHECK_INT(host.watches, 0);
    host.read_error = 0;
    CHECK(!domain_watch_free(watch));
    run_jobs();
}

static void test_no_store(sd_event *event)
{
    struct domain_watch *watch = NULL;

    test_case("no xenstored at the start");
    host.watch_error = -ECONNREFUSED;
    CHECK_INT(domain_watch_new(event, NULL, NULL, note_crash, &host, &watch), 0);
    run_jobs();
    CHECK_INT(sd_event_run(event, 0), 0);
    CHECK(!domain_watch_free(watch));
    run_jobs();
    CHECK_INT(host.watches, 0);
    CHECK(!domain_watch_free(NULL));
    host.watch_error = 0;
}

static void test_hanging_store(sd_event *event)
{
    struct domain_watch *watch = NULL;

    test_case("xenstored hangs at the start; a crash meanwhile is reported when it answers");
    host.count = 2;
    set_domain(0, 0, false, false, "Domain-0");
    set_domain(1, 2, false, false, "web");
    told[0] = '\0';
    CHECK_INT(domain_watch_new(event, NULL, NULL, note_crash, &host, &watch), 0);
    set_domain(1, 2, true, true, "web");
    CHECK_INT(sd_event_run(event, 0), 0);
    CHECK_STR(told, "");
    run_jobs();
    CHECK_STR(told, "2(web) ");
    CHECK(!domain_watch_free(watch));
    run_jobs();
    CHECK_INT(host.watches, 0);

    test_case("freed while xenstored hangs: the connection is closed when it answers");
    told[0] = '\0';
    CHECK_INT(domain_watch_new(event, NULL, NULL, note_crash, &host, &watch), 0);
    CHECK(!domain_watch_free(watch));
    CHECK_INT(host.watches, 0);
    run_jobs();
    CHECK_INT(host.watches, 0);
    CHECK_STR(told, "");
}

int main(void)
{
    sd_event *event = NULL;

    host.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host.fd < 0 || sd_event_new(&event) < 0)
        return EXIT_FAILURE;
    test_crashes(event);
    test_no_store(event);
    test_hanging_store(event);
    sd_event_unref(event);
    return test_end();
}

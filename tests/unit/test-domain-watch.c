/* SPDX-License-Identifier: GPL-2.0-or-later */

/* daemon/host/domain-watch.c over domains and a xenstore of the test's own. */

#include "daemon/host/domain-watch.h"

#include <errno.h>
#include <sys/eventfd.h>

#include <systemd/sd-event.h>

#include "collector/xen.h"
#include "collector/xenstore.h"
#include "common/util.h"
#include "tests/unit/test.h"

/* --- Of the collector, what the watch calls. --- */

#define DOMAINS_MAX 8u

static struct {
    size_t count;
    struct xen_domain_state state[DOMAINS_MAX];
    struct xen_domain name[DOMAINS_MAX]; /* what xenstore knows, "" included */
    int list_error;
    int watch_error;
    int read_error;
    int watches; /* open */
    int fd;      /* an eventfd: readable while an event waits */
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

void xenstore_name_domains(struct xen_domain *domains, unsigned int n)
{
    for (unsigned int i = 0; i < n; i++) {
        domains[i].name[0] = '\0';
        for (size_t k = 0; k < DOMAINS_MAX; k++)
            if (host.name[k].domid == domains[i].domid && host.name[k].name[0])
                domains[i] = host.name[k];
    }
}

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

static void note_crash(void *userdata, uint32_t domid, const char *name)
{
    size_t length = strlen(told);

    CHECK(userdata == &host);
    (void)snprintf(told + length, sizeof(told) - length, "%u(%s) ", domid, name);
}

/* Xenstore's event comes; what is told of it. */
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
    CHECK_INT(domain_watch_new(event, NULL, note_crash, &host, &watch), 0);
    CHECK_STR(told, "");
    CHECK_STR(domain_watch_name(watch, 3), "web");
    CHECK_STR(domain_watch_name(watch, 4), "");

    test_case("nothing new");
    CHECK_STR(fire(event), "");

    test_case("a domain that shuts down");
    set_domain(2, 3, true, false, "web");
    CHECK_STR(fire(event), "");
    set_domain(2, 3, false, false, "web");
    CHECK_STR(fire(event), "");

    test_case("a crash, and xenstore has forgotten the name");
    set_domain(2, 3, true, true, "");
    CHECK_STR(fire(event), "3(web) ");
    CHECK_STR(domain_watch_name(watch, 3), "web");

    test_case("told once");
    CHECK_STR(fire(event), "");

    test_case("gone");
    host.count = 2;
    CHECK_STR(fire(event), "");
    CHECK_STR(domain_watch_name(watch, 3), "");

    test_case("started anew, and crashed before anybody looked; two at once");
    host.count = 4;
    set_domain(2, 4, true, true, "web");
    set_domain(3, 5, true, true, "");
    CHECK_STR(fire(event), "4(web) 5() ");

    test_case("Xen does not answer");
    set_domain(3, 6, true, true, "db");
    host.list_error = -EACCES;
    CHECK_STR(fire(event), "");
    host.list_error = 0;
    CHECK_STR(fire(event), "6(db) ");

    test_case("renamed");
    set_domain(2, 7, false, false, "new--incoming");
    CHECK_STR(fire(event), "");
    set_domain(2, 7, false, false, "new");
    CHECK_STR(fire(event), "");
    CHECK_STR(domain_watch_name(watch, 7), "new");

    test_case("xenstore goes away");
    host.read_error = -EINVAL;
    CHECK_STR(fire(event), "");
    CHECK_INT(host.watches, 0);
    host.read_error = 0;
    CHECK(!domain_watch_free(watch));
}

static void test_no_store(sd_event *event)
{
    struct domain_watch *watch = NULL;

    test_case("no xenstored at the start");
    host.watch_error = -ECONNREFUSED;
    CHECK_INT(domain_watch_new(event, NULL, note_crash, &host, &watch), 0);
    CHECK_STR(domain_watch_name(watch, 0), "");
    CHECK_INT(sd_event_run(event, 0), 0);
    CHECK(!domain_watch_free(watch));
    CHECK_INT(host.watches, 0);
    CHECK(!domain_watch_free(NULL));
}

int main(void)
{
    sd_event *event = NULL;

    host.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host.fd < 0 || sd_event_new(&event) < 0)
        return EXIT_FAILURE;
    test_crashes(event);
    test_no_store(event);
    sd_event_unref(event);
    return test_end();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * daemon/host/domain-names.c over domains and a xenstore of the test's own. Xenstore may hang: then
 * everything returns at once, and what was known is known still.
 */

#include "daemon/host/domain-names.h"

#include <errno.h>
#include <pthread.h>

#include <systemd/sd-event.h>

#include "collector/xen.h"
#include "common/util.h"
#include "daemon/base/worker.h"
#include "tests/unit/test.h"

#define DOMAINS_MAX 8u

static pthread_t main_thread;

/* --- Who runs: Xen's part. --- */

static struct {
    unsigned int count;
    uint32_t domid[DOMAINS_MAX];
    uint8_t uuid; /* all bytes of all of them */
    int error;
} xen;

int xen_host_list_domain_states(struct xen_host *host, struct xen_domain_state *ret_states,
                                unsigned int max)
{
    CHECK(!host && max >= xen.count && pthread_equal(pthread_self(), main_thread));
    if (xen.error)
        return xen.error;
    for (unsigned int i = 0; i < xen.count; i++) {
        ret_states[i] = (struct xen_domain_state){.domid = xen.domid[i]};
        memset(ret_states[i].uuid, xen.uuid, sizeof(ret_states[i].uuid));
    }
    return (int)xen.count;
}

static void runs(unsigned int count, const uint32_t domid[])
{
    xen.count = count;
    memcpy(xen.domid, domid, count * sizeof(*domid));
}

/* --- Their names: xenstore's, on the worker. --- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool hangs;
    bool asked_on_main_thread;
    int error;
    unsigned int asked; /* times */
    struct xen_domain name[DOMAINS_MAX];
} store = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int xenstore_name_domains(struct xen_domain *domains, unsigned int n)
{
    int r;

    (void)pthread_mutex_lock(&store.mutex);
    store.asked_on_main_thread |= pthread_equal(pthread_self(), main_thread);
    store.asked++;
    (void)pthread_cond_signal(&store.changed);
    while (store.hangs)
        (void)pthread_cond_wait(&store.changed, &store.mutex);
    for (unsigned int i = 0; i < n; i++) {
        domains[i].name[0] = '\0';
        for (size_t k = 0; k < DOMAINS_MAX && !store.error; k++)
            if (store.name[k].name[0] && store.name[k].domid == domains[i].domid)
                domains[i] = store.name[k];
    }
    r = store.error;
    (void)pthread_mutex_unlock(&store.mutex);
    return r;
}

static void name(size_t index, uint32_t domid, const char *text)
{
    (void)pthread_mutex_lock(&store.mutex);
    store.name[index].domid = domid;
    (void)snprintf(store.name[index].name, sizeof(store.name[index].name), "%s", text);
    (void)pthread_mutex_unlock(&store.mutex);
}

static void set_hangs(bool hangs)
{
    (void)pthread_mutex_lock(&store.mutex);
    store.hangs = hangs;
    (void)pthread_cond_signal(&store.changed);
    (void)pthread_mutex_unlock(&store.mutex);
}

static void wait_until_asked(unsigned int times)
{
    (void)pthread_mutex_lock(&store.mutex);
    while (store.asked < times)
        (void)pthread_cond_wait(&store.changed, &store.mutex);
    (void)pthread_mutex_unlock(&store.mutex);
}

static unsigned int times_asked(void)
{
    unsigned int times;

    (void)pthread_mutex_lock(&store.mutex);
    times = store.asked;
    (void)pthread_mutex_unlock(&store.mutex);
    return times;
}

/* Of no use while a job runs. */
static void set_error(int error)
{
    store.error = error;
    store.asked = 0;
}

/* --- Tests. --- */

static unsigned int nr_changes;

static void note_change(void *userdata)
{
    CHECK(userdata == &nr_changes);
    nr_changes++;
}

/* "0=Domain-0 3=web " */
static const char *known(const struct domain_names *names)
{
    static char text[256];
    const struct xen_domain *domains;
    unsigned int n = domain_names_read(names, &domains);
    size_t length = 0;

    text[0] = '\0';
    for (unsigned int i = 0; i < n; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%u=%s ", domains[i].domid,
                                   domains[i].name);
    return text;
}

static void test_names(struct workers *workers, struct domain_names *names)
{
    test_case("nobody is known before the first refresh");
    CHECK_STR(known(names), "");
    CHECK_STR(domain_names_of(names, 0), "");

    test_case("who runs is known at once, the names when xenstore has answered");
    runs(2, (uint32_t[]){0, 3});
    name(0, 0, "Domain-0");
    name(1, 3, "web");
    domain_names_refresh(names);
    CHECK_STR(known(names), "0= 3= ");
    CHECK_UINT(nr_changes, 0);
    workers_run_all(workers);
    CHECK_STR(known(names), "0=Domain-0 3=web ");
    CHECK_STR(domain_names_of(names, 3), "web");
    CHECK_STR(domain_names_of(names, 4), "");
    CHECK_UINT(nr_changes, 1);

    test_case("nothing new");
    domain_names_refresh(names);
    workers_run_all(workers);
    CHECK_STR(known(names), "0=Domain-0 3=web ");
    CHECK_UINT(nr_changes, 1);

    test_case("xenstore has forgotten a name: it is kept");
    name(1, 3, "");
    domain_names_refresh(names);
    workers_run_all(workers);
    CHECK_STR(known(names), "0=Domain-0 3=web ");

    test_case("... for as long as the domain lives");
    runs(1, (uint32_t[]){0});
    domain_names_refresh(names);
    CHECK_STR(known(names), "0=Domain-0 ");
    CHECK_UINT(nr_changes, 2);
    runs(2, (uint32_t[]){0, 3});
    domain_names_refresh(names);
    workers_run_all(workers);
    CHECK_STR(known(names), "0=Domain-0 3= ");
    CHECK_UINT(nr_changes, 2);

    test_case("renamed");
    name(0, 0, "dom0");
    domain_names_refresh(names);
    workers_run_all(workers);
    CHECK_STR(known(names), "0=dom0 3= ");
    CHECK_UINT(nr_changes, 3);

    test_case("UUIDs are known at once");
    CHECK_UINT(domain_names_find(names, 3)->uuid[15], 0);
    xen.uuid = 0xab;
    domain_names_refresh(names);
    CHECK_UINT(nr_changes, 4);
    CHECK_UINT(domain_names_find(names, 3)->uuid[15], 0xab);
    CHECK(!domain_names_find(names, 4));
    workers_run_all(workers);
    CHECK_UINT(domain_names_find(names, 3)->uuid[0], 0xab);
    domain_names_refresh(names);
    workers_run_all(workers);
    CHECK_UINT(nr_changes, 4);
    xen.uuid = 0;
    domain_names_refresh(names);
    workers_run_all(workers);
    nr_changes = 2;

    test_case("Xen does not answer: what was known is known still");
    xen.error = -EACCES;
    domain_names_refresh(names);
    xen.error = 0;
    CHECK_STR(known(names), "0=dom0 3= ");
    workers_run_all(workers);
}

static void test_hanging_store(struct workers *workers, struct domain_names *names)
{
    test_case("xenstored hangs: who runs is known, with the names of before");
    nr_changes = 0;
    store.asked = 0;
    set_hangs(true);
    runs(3, (uint32_t[]){0, 3, 5});
    name(1, 3, "web");
    domain_names_refresh(names);
    wait_until_asked(1);
    CHECK_STR(known(names), "0=dom0 3= 5= ");

    test_case("xenstored hangs: domains come and go meanwhile; it is asked once");
    runs(2, (uint32_t[]){0, 6});
    name(2, 5, "gone");
    name(3, 6, "new");
    for (unsigned int i = 0; i < 100; i++)
        domain_names_refresh(names);
    CHECK_STR(known(names), "0=dom0 6= ");
    CHECK_UINT(times_asked(), 1);

    test_case("it answers again: it is asked once more, for those that came meanwhile");
    set_hangs(false);
    workers_run_all(workers);
    CHECK_UINT(times_asked(), 2);
    CHECK_STR(known(names), "0=dom0 6=new ");
    CHECK_UINT(nr_changes, 2); /* one had gone */
    CHECK(domain_names_are_available(names));
}

/* Takes the seconds after which it is asked again. */
static void test_absent_store(sd_event *event, struct workers *workers, struct domain_names *names)
{
    test_case("no xenstored: what was known is known still");
    set_error(-ECONNREFUSED);
    domain_names_refresh(names);
    workers_run_all(workers);
    CHECK_UINT(times_asked(), 1);
    CHECK_STR(known(names), "0=dom0 6=new ");
    CHECK(!domain_names_are_available(names));

    test_case("... and it is asked again, without anybody's doing, until it answers");
    set_error(0);
    name(3, 6, "newer");
    nr_changes = 0;
    while (nr_changes == 0 && CHECK(sd_event_run(event, UINT64_C(20000000)) > 0))
        ;
    CHECK_STR(known(names), "0=dom0 6=newer ");
}

static void test_freed_while_hanging(sd_event *event, struct workers *workers)
{
    struct domain_names *names;

    test_case("freed while xenstored hangs");
    CHECK_INT(domain_names_new(event, workers, NULL, &names), 0);
    domain_names_listen(names, note_change, &nr_changes);
    nr_changes = store.asked = 0;
    set_hangs(true);
    domain_names_refresh(names);
    wait_until_asked(1);
    CHECK(!domain_names_free(names));
    set_hangs(false);
    workers_run_all(workers);
    CHECK_UINT(nr_changes, 0);
    CHECK(!domain_names_free(NULL));
}

int main(void)
{
    struct domain_names *names;
    struct workers *workers;
    sd_event *event = NULL;

    main_thread = pthread_self();
    if (!CHECK(sd_event_new(&event) >= 0) || !CHECK_INT(workers_new(event, &workers), 0) ||
        !CHECK_INT(domain_names_new(event, workers, NULL, &names), 0))
        return test_end();
    domain_names_listen(names, note_change, &nr_changes);
    test_names(workers, names);
    test_hanging_store(workers, names);
    test_absent_store(event, workers, names);
    domain_names_free(names);
    test_freed_while_hanging(event, workers);
    workers_free(workers);
    CHECK(!store.asked_on_main_thread);
    sd_event_unref(event);
    return test_end();
}

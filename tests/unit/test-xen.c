// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * collector/xen.c over libraries of the test's own: how a host is opened, with a VIRQ of its own
 * and with an inherited one, and how domains are listed. Masks, buffers and tracing are tested on
 * the stand-in (tests/xensim).
 */

#define __XEN_TOOLS__ 1 /* <xenctrl.h> is for the tools' side only */

#include "collector/xen.h"

#include <errno.h>
#include <fcntl.h>

#include <xen/xen.h>
#include <xen/sched.h>
#include <xen/version.h>
#include <xencall.h>
#include <xenctrl.h>
#include <xenevtchn.h>
#include <xenforeignmemory.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define PORT 17

static struct {
    int handles;    /* open, of all libraries */
    int bind_error; /* 0: it can be bound */
    bool is_unmasked;
    unsigned int unread; /* events of PORT */
    bool unmasked_unread;
    uint32_t nr_domains; /* 0: Xen refuses */
    xc_domaininfo_t domains[4];
    int nr_idle; /* CPUs whose idle time Xen tells; -1: it refuses */
    xen_extraversion_t extraversion;
    xen_changeset_info_t changeset;
    xen_commandline_t commandline;
} fake;

static int fail(int error)
{
    errno = error;
    return -1;
}

static void *open_handle(void)
{
    fake.handles++;
    return &fake;
}

static int close_handle(void)
{
    fake.handles--;
    return 0;
}

/* --- libxenctrl and libxencall, as far as opening goes. --- */

xc_interface *xc_interface_open(xentoollog_logger *logger, xentoollog_logger *dombuild,
                                unsigned int flags)
{
    CHECK(!logger && !dombuild && !flags);
    return open_handle();
}

int xc_interface_close(xc_interface *xch)
{
    CHECK(xch);
    return close_handle();
}

int xc_physinfo(xc_interface *xch, xc_physinfo_t *info)
{
    CHECK(xch);
    info->max_cpu_id = 3;
    info->cpu_khz = 2300000;
    return 0;
}

int xc_version(xc_interface *xch, int cmd, void *arg)
{
    (void)xch;
    switch (cmd) {
    case XENVER_version:
        return 4 << 16 | 17;
    case XENVER_extraversion: /* Xen ends it, but for us it is what it is */
        memcpy(arg, fake.extraversion, sizeof(xen_extraversion_t));
        return 0;
    case XENVER_changeset:
        memcpy(arg, fake.changeset, sizeof(xen_changeset_info_t));
        return 0;
    case XENVER_commandline:
        memcpy(arg, fake.commandline, sizeof(xen_commandline_t));
        return 0;
    default:
        return fail(ENOSYS);
    }
}

int xc_sched_id(xc_interface *xch, int *sched_id)
{
    (void)xch;
    *sched_id = 6;
    return 0;
}

int xc_domain_getinfolist(xc_interface *xch, uint32_t first, unsigned int max,
                          xc_domaininfo_t *info)
{
    uint32_t n = (uint32_t)min_u64(max, fake.nr_domains);

    CHECK(xch && first == 0);
    memcpy(info, fake.domains, n * sizeof(*info));
    return fake.nr_domains ? (int)n : fail(EACCES);
}

int xc_getcpuinfo(xc_interface *xch, int max_cpus, xc_cpuinfo_t *info, int *nr_cpus)
{
    CHECK(xch && max_cpus == 4);
    if (fake.nr_idle < 0)
        return fail(EPERM);
    for (int cpu = 0; cpu < fake.nr_idle; cpu++)
        info[cpu].idletime = (uint64_t)cpu * 1000 + 1;
    *nr_cpus = fake.nr_idle;
    return 0;
}

xencall_handle *xencall_open(struct xentoollog_logger *logger, unsigned int flags)
{
    (void)logger;
    (void)flags;
    return open_handle();
}

int xencall_close(xencall_handle *xcall)
{
    CHECK(xcall);
    return close_handle();
}

void *xencall_alloc_buffer(xencall_handle *xcall, size_t size)
{
    (void)xcall;
    return malloc(size);
}

void xencall_free_buffer(xencall_handle *xcall, void *p)
{
    (void)xcall;
    free(p);
}

int xencall1(xencall_handle *xcall, unsigned int op, uint64_t arg1)
{
    CHECK(xcall && op == __HYPERVISOR_sysctl && arg1);
    return 0;
}

xenforeignmemory_handle *xenforeignmemory_open(struct xentoollog_logger *logger,
                                               unsigned int open_flags)
{
    (void)logger;
    (void)open_flags;
    return open_handle();
}

int xenforeignmemory_close(xenforeignmemory_handle *fmem)
{
    CHECK(fmem);
    return close_handle();
}

/* --- libxenevtchn: any descriptor will do, and PORT is its port. --- */

struct xenevtchn_handle {
    int fd;
};

xenevtchn_handle *xenevtchn_open(struct xentoollog_logger *logger, unsigned int flags)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    CHECK(!flags);
    return fd < 0 ? NULL : xenevtchn_fdopen(logger, fd, 0);
}

xenevtchn_handle *xenevtchn_fdopen(struct xentoollog_logger *logger, int fd,
                                   unsigned int open_flags)
{
    xenevtchn_handle *xce = malloc(sizeof(*xce));

    (void)logger;
    CHECK(!open_flags && fd >= 0);
    if (!xce)
        return NULL;
    xce->fd = fd;
    fake.handles++;
    return xce;
}

int xenevtchn_close(xenevtchn_handle *xce)
{
    CHECK(close(xce->fd) == 0);
    free(xce);
    return close_handle();
}

int xenevtchn_fd(xenevtchn_handle *xce)
{
    return xce->fd;
}

xenevtchn_port_or_error_t xenevtchn_bind_virq(xenevtchn_handle *xce, unsigned int virq)
{
    CHECK(xce && virq == VIRQ_TBUF);
    return fake.bind_error ? fail(fake.bind_error) : PORT;
}

int xenevtchn_notify(xenevtchn_handle *xce, evtchn_port_t port)
{
    CHECK(xce);
    return port == PORT ? 0 : fail(ENOTCONN);
}

int xenevtchn_unmask(xenevtchn_handle *xce, evtchn_port_t port)
{
    CHECK(xce && port == PORT);
    fake.is_unmasked = true;
    fake.unmasked_unread |= fake.unread > 0;
    return 0;
}

xenevtchn_port_or_error_t xenevtchn_pending(xenevtchn_handle *xce)
{
    CHECK(xce);
    if (fake.unread == 0)
        return fail(EAGAIN);
    fake.unread--;
    return PORT;
}

/* --- Tests. --- */

static void test_bind(void)
{
    struct xen_host *host = NULL;
    enum xen_step step;

    test_case("bind");
    CHECK_INT(xen_host_open(NULL, &host, &step), 0);
    CHECK_INT(xen_host_virq_port(host), PORT);
    CHECK(fcntl(xen_host_virq_fd(host), F_GETFL) & O_NONBLOCK);
    CHECK_UINT(xen_host_info(host)->nr_cpus, 4);
    CHECK_STR(xen_host_info(host)->version, "4.17");
    host = xen_host_free(host);
    CHECK_INT(fake.handles, 0);

    test_case("taken");
    fake.bind_error = EEXIST;
    CHECK_INT(xen_host_open(NULL, &host, &step), -EEXIST);
    CHECK_INT(step, XEN_STEP_BIND_VIRQ);
    CHECK(!host);
    CHECK_INT(fake.handles, 0);
}

/* Texts that fill their field, are cut inside a character, or are none of UTF-8. */
static void test_texts(void)
{
    struct xen_host *host = NULL;
    const struct xen_host_info *info;
    enum xen_step step;

    test_case("texts of any bytes");
    fake.bind_error = 0;
    memcpy(fake.extraversion,
           ".1-g\xfc"
           "9876543\x1b[1\xe2\x82",
           sizeof(fake.extraversion));
    memcpy(fake.changeset, "Tue\xff 5\x9b", sizeof("Tue\xff 5\x9b"));
    memset(fake.commandline, 'x', sizeof(fake.commandline));
    memcpy(fake.commandline, "sched-gran=123456789012\xe2\x82\xac\xe2\x82\xac ",
           strlen("sched-gran=123456789012\xe2\x82\xac\xe2\x82\xac "));
    CHECK_INT(xen_host_open(NULL, &host, &step), 0);
    info = xen_host_info(host);
    CHECK_STR(info->version, "4.17.1-g\xef\xbf\xbd"
                             "9876543");
    CHECK_STR(info->changeset, "Tue\xef\xbf\xbd 5\xef\xbf\xbd");
    CHECK_STR(info->granularity, "123456789012\xe2\x82\xac");
    CHECK_UINT(strlen(info->commandline), sizeof(info->commandline) - 1);
    xen_host_free(host);
    memset(fake.extraversion, 0, sizeof(fake.extraversion));
    memset(fake.changeset, 0, sizeof(fake.changeset));
    memset(fake.commandline, 0, sizeof(fake.commandline));
}

/* Binding fails all the while: a copy of the descriptor is open somewhere. */
static void test_adopt(void)
{
    struct xen_virq virq = {.fd = open("/dev/null", O_RDWR | O_CLOEXEC), .port = PORT};
    struct xen_host *host = NULL;
    enum xen_step step;

    test_case("adopt");
    fake.is_unmasked = false;
    CHECK_INT(xen_host_open(&virq, &host, &step), 0);
    CHECK_INT(xen_host_virq_port(host), PORT);
    CHECK(xen_host_virq_fd(host) != virq.fd);
    CHECK(fcntl(xen_host_virq_fd(host), F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(xen_host_virq_fd(host), F_GETFD) & FD_CLOEXEC);
    CHECK(fake.is_unmasked);
    host = xen_host_free(host);
    CHECK(fcntl(virq.fd, F_GETFD) >= 0); /* still the caller's */

    test_case("a port that is not its own");
    virq.port = PORT + 1;
    CHECK_INT(xen_host_open(&virq, &host, &step), -ENOTCONN);
    CHECK_INT(step, XEN_STEP_ADOPT_VIRQ);
    virq.port = -1;
    CHECK_INT(xen_host_open(&virq, &host, &step), -ENOTCONN);
    CHECK(fcntl(virq.fd, F_GETFD) >= 0);

    test_case("not a descriptor");
    fd_close(&virq.fd);
    CHECK_INT(xen_host_open(&virq, &host, &step), -EBADF);
    CHECK_INT(step, XEN_STEP_ADOPT_VIRQ);
    CHECK(!host);
    CHECK_INT(fake.handles, 0);
}

/* Linux wakes nobody for an event that it adds to an unread one, so there must never be two. */
static void test_rearm(void)
{
    struct xen_virq virq = {.fd = open("/dev/null", O_RDWR | O_CLOEXEC), .port = PORT};
    struct xen_host *host = NULL;
    enum xen_step step;

    test_case("adopted with an unread event");
    fake.unread = 1;
    fake.unmasked_unread = false;
    CHECK_INT(xen_host_open(&virq, &host, &step), 0);
    CHECK(!fake.unmasked_unread);

    test_case("rearmed with two unread events");
    fake.unread = 2;
    fake.is_unmasked = false;
    CHECK(xen_host_virq_rearm(host));
    CHECK(!fake.unmasked_unread);
    CHECK(fake.is_unmasked);

    test_case("rearmed without one");
    fake.is_unmasked = false;
    CHECK(!xen_host_virq_rearm(host));
    CHECK(!fake.is_unmasked);
    xen_host_free(host);
    fd_close(&virq.fd);
}

struct domain_case {
    const char *name;
    uint32_t flags;
    bool shut_down;
    bool crashed;
};

#define REASON(r) ((uint32_t)(r) << XEN_DOMINF_shutdownshift)

static const struct domain_case domain_cases[] = {
    {"running", XEN_DOMINF_running, false, false},
    {"shut down", XEN_DOMINF_shutdown | REASON(SHUTDOWN_poweroff), true, false},
    {"suspended", XEN_DOMINF_shutdown | REASON(SHUTDOWN_suspend), true, false},
    {"crashed", XEN_DOMINF_shutdown | REASON(SHUTDOWN_crash), true, true},
    {"crashed, and being destroyed",
     XEN_DOMINF_dying | XEN_DOMINF_shutdown | REASON(SHUTDOWN_crash), true, true},
    {"watchdog", XEN_DOMINF_shutdown | REASON(SHUTDOWN_watchdog), true, false},
    {"a reason without a shutdown", XEN_DOMINF_blocked | REASON(SHUTDOWN_crash), false, false},
    {"a guest's own flags", XEN_DOMINF_shutdown | REASON(0xff), true, false},
};

static void test_domains(void)
{
    struct xen_domain_state states[4];
    struct xen_host *host = NULL;
    enum xen_step step;

    fake.bind_error = 0;
    CHECK_INT(xen_host_open(NULL, &host, &step), 0);
    for (size_t i = 0; i < ARRAY_SIZE(domain_cases); i++) {
        test_case(domain_cases[i].name);
        fake.nr_domains = 2;
        fake.domains[1].domain = 7;
        memcpy(fake.domains[1].handle, "0123456789abcdef", XEN_UUID_BYTES);
        fake.domains[1].flags = domain_cases[i].flags;
        CHECK_INT(xen_host_list_domain_states(host, states, 4), 2);
        CHECK_UINT(states[0].domid, 0);
        CHECK_UINT(states[1].domid, 7);
        CHECK(memcmp(states[1].uuid, "0123456789abcdef", XEN_UUID_BYTES) == 0);
        CHECK(states[1].shut_down == domain_cases[i].shut_down);
        CHECK(states[1].crashed == domain_cases[i].crashed);
    }
    test_case("more than there is room for");
    CHECK_INT(xen_host_list_domain_states(host, states, 1), 1);

    test_case("refused");
    fake.nr_domains = 0;
    CHECK_INT(xen_host_list_domain_states(host, states, 4), -EACCES);
    xen_host_free(host);
    CHECK_INT(fake.handles, 0);
}

static void test_idle(void)
{
    uint64_t idle_ns[4] = {9, 9, 9, 9};
    struct xen_host *host = NULL;
    enum xen_step step;

    CHECK_INT(xen_host_open(NULL, &host, &step), 0);
    test_case("idle times");
    fake.nr_idle = 3;
    CHECK_INT(xen_host_read_idle(host, idle_ns, 4), 0);
    CHECK_UINT(idle_ns[0], 1);
    CHECK_UINT(idle_ns[2], 2001);
    CHECK_UINT(idle_ns[3], 0); /* Xen has no such CPU */

    test_case("idle times are refused");
    fake.nr_idle = -1;
    CHECK_INT(xen_host_read_idle(host, idle_ns, 4), -EPERM);
    CHECK_UINT(idle_ns[2], 2001); /* untouched */
    xen_host_free(host);
    CHECK_INT(fake.handles, 0);
}

int main(void)
{
    test_bind();
    test_adopt();
    test_rearm();
    test_texts();
    test_domains();
    test_idle();
    return test_end();
}

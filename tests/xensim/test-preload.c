// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The preloaded library as a consumer sees it. Linked with the real Xen libraries and run by
 * `xensim run`: what is called here is the simulation or the test fails.
 *
 * usage: test-preload [fault NAME]
 */

#define XC_WANT_COMPAT_MAP_FOREIGN_API

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <xenctrl.h>
#include <xen/trace.h>
#include <xencall.h>
#include <xenevtchn.h>
#include <xenforeignmemory.h>
#include <xenstore.h>

#include "common/util.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: failed (%s): %s\n", __FILE__, __LINE__, strerror(errno), \
                          #condition);                                                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* `xensim ARGUMENTS`, inside this run. */
static void xensim(const char *arguments)
{
    char command[512];

    (void)snprintf(command, sizeof(command), "%s %s >/dev/null", getenv("XENSIM_COMMAND"),
                   arguments);
    CHECK(system(command) == 0);
}

static int tbuf_op(xencall_handle *call, struct xen_sysctl_tbuf_op *op, uint32_t version)
{
    struct xen_sysctl *sysctl = xencall_alloc_buffer(call, sizeof(*sysctl));
    int r;

    CHECK(sysctl);
    sysctl->cmd = XEN_SYSCTL_tbuf_op;
    sysctl->interface_version = version;
    sysctl->u.tbuf_op = *op;
    r = xencall1(call, __HYPERVISOR_sysctl, (uintptr_t)sysctl);
    *op = sysctl->u.tbuf_op;
    xencall_free_buffer(call, sysctl);
    return r;
}

static bool is_readable(xenevtchn_handle *evtchn)
{
    struct pollfd p = {.fd = xenevtchn_fd(evtchn), .events = POLLIN};

    return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

static void test_delivery(xenevtchn_handle *evtchn, int port)
{
    CHECK(fcntl(xenevtchn_fd(evtchn), F_SETFL, O_NONBLOCK) == 0);
    CHECK(!is_readable(evtchn));
    CHECK(xenevtchn_pending(evtchn) == -1 && errno == EAGAIN);
    xensim("poke virq 0");
    CHECK(is_readable(evtchn) && xenevtchn_pending(evtchn) == port);
    xensim("poke virq 0"); /* masked: remembered, once */
    xensim("poke virq 0");
    CHECK(!is_readable(evtchn));
    CHECK(xenevtchn_unmask(evtchn, (evtchn_port_t)port) == 0);
    CHECK(is_readable(evtchn) && xenevtchn_pending(evtchn) == port);
    CHECK(xenevtchn_unmask(evtchn, (evtchn_port_t)port) == 0);
    CHECK(!is_readable(evtchn));
}

/* As in Linux, an event that comes while another is unread wakes nobody. */
static void test_unread(xenevtchn_handle *evtchn, evtchn_port_t port)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};

    CHECK(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, xenevtchn_fd(evtchn), &event) == 0);
    xensim("poke virq 0");
    CHECK(epoll_wait(epoll, &event, 1, 0) == 1);
    CHECK(xenevtchn_unmask(evtchn, port) == 0); /* although it was not read */
    xensim("poke virq 0");
    CHECK(epoll_wait(epoll, &event, 1, 0) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(is_readable(evtchn) && xenevtchn_pending(evtchn) == (int)port);
    CHECK(!is_readable(evtchn) && xenevtchn_pending(evtchn) == -1 && errno == EAGAIN);
    CHECK(xenevtchn_unmask(evtchn, port) == 0);
    xensim("poke virq 0");
    CHECK(epoll_wait(epoll, &event, 1, 0) == 1 && xenevtchn_pending(evtchn) == (int)port);
    CHECK(xenevtchn_unmask(evtchn, port) == 0);
    CHECK(close(epoll) == 0);
}

static void test_event_channel(void)
{
    xenevtchn_handle *first = xenevtchn_open(NULL, 0), *second = xenevtchn_open(NULL, 0);
    int port, kept;

    CHECK(first && second);
    port = xenevtchn_bind_virq(first, VIRQ_TBUF);
    CHECK(port > 0);
    CHECK(xenevtchn_bind_virq(second, VIRQ_TBUF) == -1 && errno == EEXIST);
    CHECK(xenevtchn_bind_virq(first, VIRQ_TBUF) == -1 && errno == EEXIST);
    test_delivery(first, port);
    test_unread(first, (evtchn_port_t)port);

    /* A descriptor that somebody keeps holds the binding, and works when it comes back. */
    kept = dup(xenevtchn_fd(first));
    CHECK(xenevtchn_close(first) == 0);
    CHECK(xenevtchn_bind_virq(second, VIRQ_TBUF) == -1 && errno == EEXIST);
    first = xenevtchn_fdopen(NULL, kept, 0);
    CHECK(first);
    CHECK(xenevtchn_notify(first, (evtchn_port_t)port) == 0);
    CHECK(xenevtchn_notify(first, (evtchn_port_t)port + 1) == -1 && errno == ENOTCONN);
    CHECK(xenevtchn_notify(second, (evtchn_port_t)port) == -1 && errno == ENOTCONN);
    test_delivery(first, port);
    CHECK(xenevtchn_unbind(first, (evtchn_port_t)port) == 0);
    port = xenevtchn_bind_virq(second, VIRQ_TBUF);
    CHECK(port > 0);
    CHECK(xenevtchn_close(second) == 0);
    port = xenevtchn_bind_virq(first, VIRQ_TBUF);
    CHECK(port > 0);
    test_delivery(first, port);
    CHECK(xenevtchn_close(first) == 0);
}

/* A holder that is killed holds nothing any more. */
static void test_killed_holder(void)
{
    xenevtchn_handle *evtchn;
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        evtchn = xenevtchn_open(NULL, 0);
        (void)kill(getpid(),
                   evtchn && xenevtchn_bind_virq(evtchn, VIRQ_TBUF) > 0 ? SIGKILL : SIGTERM);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGKILL);
    evtchn = xenevtchn_open(NULL, 0);
    CHECK(evtchn && xenevtchn_bind_virq(evtchn, VIRQ_TBUF) > 0);
    CHECK(xenevtchn_close(evtchn) == 0);
}

static void test_mapping(xencall_handle *call)
{
    struct xen_sysctl_tbuf_op op = {.cmd = XEN_SYSCTL_TBUFOP_get_info};
    xenforeignmemory_handle *memory = xenforeignmemory_open(NULL, 0);
    xen_pfn_t mfns[64] = {0};
    const struct t_info *info;
    struct t_buf *buf;
    int err[64];
    size_t pages;

    CHECK(memory && tbuf_op(call, &op, XEN_SYSCTL_INTERFACE_VERSION) == 0 && op.buffer_mfn);
    pages = op.size / PAGE_BYTES;
    for (size_t i = 0; i < pages; i++)
        mfns[i] = op.buffer_mfn + i;
    CHECK(!xenforeignmemory_map(memory, DOMID_XEN, PROT_READ | PROT_WRITE, pages, mfns, NULL));
    CHECK(!xenforeignmemory_map(memory, 0, PROT_READ, pages, mfns, NULL));
    info = xenforeignmemory_map(memory, DOMID_XEN, PROT_READ, pages, mfns, err);
    CHECK(info && err[0] == 0 && info->tbuf_size == 4);
    for (size_t i = 0; i < 4; i++)
        mfns[i] = ((const uint32_t *)info + info->mfn_offset[1])[i];
    buf = xenforeignmemory_map(memory, DOMID_XEN, PROT_READ | PROT_WRITE, 4, mfns, NULL);
    CHECK(buf);
    xensim("insert 1 100");
    CHECK(buf->prod > 2400 && buf->cons == 0);
    buf->cons = buf->prod;
    xensim("insert 1 1");
    mfns[2] = 1;
    CHECK(!xenforeignmemory_map(memory, DOMID_XEN, PROT_READ, 4, mfns, NULL) && errno == EINVAL);
    CHECK(xenforeignmemory_unmap(memory, buf, 4) == 0);
    CHECK(xenforeignmemory_close(memory) == 0);
}

static void test_calls(void)
{
    struct xen_sysctl_tbuf_op op = {.cmd = XEN_SYSCTL_TBUFOP_get_info};
    xencall_handle *call = xencall_open(NULL, 0);
    xc_interface *xch = xc_interface_open(NULL, NULL, 0);
    xc_domaininfo_t domains[8];
    xc_physinfo_t physinfo;

    CHECK(call && xch);
    CHECK(xc_physinfo(xch, &physinfo) == 0 && physinfo.max_cpu_id == 3 &&
          physinfo.cpu_khz > 100000);
    CHECK(xc_get_max_cpus(xch) == 4 && xc_get_cpumap_size(xch) == 1);
    CHECK(xc_version(xch, XENVER_version, NULL) >> 16 == 4);
    CHECK(xc_domain_getinfolist(xch, 1, 8, domains) == 2 && domains[0].domain == 1);
    CHECK(tbuf_op(call, &op, 1) == -1 && errno == EACCES);
    CHECK(tbuf_op(call, &op, XEN_SYSCTL_INTERFACE_VERSION) == 0 && op.buffer_mfn == 0);
    CHECK(xc_tbuf_set_size(xch, 4) == 0);
    CHECK(xc_tbuf_set_size(xch, 4) == -1 && errno == EBUSY);
    CHECK(xc_tbuf_set_size(xch, 5) == -1 && errno == EINVAL);
    test_mapping(call);
    CHECK(xc_tbuf_disable(xch) == 0);
    CHECK(xencall_close(call) == 0 && xc_interface_close(xch) == 0);
}

static void test_store(void)
{
    struct xs_handle *xs = xs_open(0);
    unsigned int length;
    char *name;

    CHECK(xs);
    name = xs_read(xs, XBT_NULL, "/local/domain/0/name", &length);
    CHECK(name && strcmp(name, "Domain-0") == 0 && length == 8);
    free(name);
    CHECK(!xs_read(xs, XBT_NULL, "/local/domain/9/name", &length) && errno == ENOENT);
    xs_close(xs);
}

/* The next event of the connection is of that path and token. */
static void expect_event(struct xs_handle *xs, const char *path, const char *token)
{
    struct pollfd p = {.fd = xs_fileno(xs), .events = POLLIN};
    char **event;

    CHECK(poll(&p, 1, 0) == 1 && p.revents == POLLIN);
    event = xs_check_watch(xs);
    CHECK(event && strcmp(event[XS_WATCH_PATH], path) == 0 &&
          strcmp(event[XS_WATCH_TOKEN], token) == 0);
    free(event);
}

static void expect_nothing(struct xs_handle *xs)
{
    struct pollfd p = {.fd = xs_fileno(xs), .events = POLLIN};

    CHECK(poll(&p, 1, 0) == 0);
    CHECK(!xs_check_watch(xs) && errno == EAGAIN);
}

static void expect_domain(xc_interface *xch, uint32_t domid, uint32_t flags)
{
    xc_domaininfo_t info;

    CHECK(xc_domain_getinfolist(xch, domid, 1, &info) == 1);
    CHECK(info.domain == domid && info.flags == flags);
}

static void test_watches(void)
{
    struct xs_handle *xs = xs_open(0), *other = xs_open(XS_OPEN_SOCKETONLY);

    CHECK(xs && other);
    CHECK(!xs_unwatch(xs, "@releaseDomain", "r") && errno == ENOENT);
    CHECK(xs_watch(xs, "@releaseDomain", "r") && xs_watch(xs, "@introduceDomain", "i"));
    CHECK(!xs_watch(xs, "@releaseDomain", "r") && errno == EEXIST);
    expect_event(xs, "@releaseDomain", "r"); /* each fires once when it is set */
    expect_event(xs, "@introduceDomain", "i");
    expect_nothing(xs);
    expect_nothing(other);
    CHECK(xs_watch(other, "@releaseDomain", "a token of its own"));
    expect_event(other, "@releaseDomain", "a token of its own");
    xensim("domain add 7 mail");
    expect_event(xs, "@introduceDomain", "i");
    expect_nothing(other);
    xensim("domain crash 1");
    expect_event(xs, "@releaseDomain", "r");
    expect_event(other, "@releaseDomain", "a token of its own");
    xensim("domain shutdown 7 reboot");
    xensim("domain remove 7");
    expect_event(xs, "@releaseDomain", "r"); /* once for each */
    expect_event(xs, "@releaseDomain", "r");
    expect_nothing(xs);
    CHECK(xs_unwatch(xs, "@releaseDomain", "r"));
    xensim("domain shutdown 2");
    expect_nothing(xs);
    xs_close(xs);
    xs = xs_open(0);
    CHECK(xs && xs_fileno(xs) >= 0);
    expect_nothing(xs); /* what an earlier connection left is not there */
    xs_close(xs);
    xs_close(other);
}

static void test_domains(void)
{
    xc_interface *xch = xc_interface_open(NULL, NULL, 0);
    struct xs_handle *xs = xs_open(0);
    char command[512], **event;
    xc_domaininfo_t infos[8];
    unsigned int n = 0;
    void *name;

    /* What test_watches() left: one that crashed, one that shut down. */
    CHECK(xch && xs && xc_domain_getinfolist(xch, 0, 8, infos) == 3);
    expect_domain(xch, 0, XEN_DOMINF_running);
    expect_domain(xch, 1, XEN_DOMINF_shutdown | 3u << XEN_DOMINF_shutdownshift);
    expect_domain(xch, 2, XEN_DOMINF_shutdown);
    xensim("domain add 5 mail");
    expect_domain(xch, 5, XEN_DOMINF_running);
    name = xs_read(xs, XBT_NULL, "/local/domain/5/name", NULL);
    CHECK(name && strcmp(name, "mail") == 0);
    free(name);
    xensim("domain remove 1");
    expect_domain(xch, 2, XEN_DOMINF_shutdown);
    CHECK(xc_domain_getinfolist(xch, 1, 8, infos) == 2 && infos[1].domain == 5);
    CHECK(xc_domain_getinfolist(xch, 6, 8, infos) == 0);

    /* A reader that waits. */
    CHECK(xs_watch(xs, "@releaseDomain", "r"));
    expect_event(xs, "@releaseDomain", "r");
    (void)snprintf(command, sizeof(command), "(sleep 0.2; %s domain crash 5) &",
                   getenv("XENSIM_COMMAND"));
    CHECK(system(command) == 0);
    event = xs_read_watch(xs, &n);
    CHECK(event && n == 2 && strcmp(event[XS_WATCH_PATH], "@releaseDomain") == 0);
    expect_domain(xch, 5, XEN_DOMINF_shutdown | 3u << XEN_DOMINF_shutdownshift);
    free(event);
    xs_close(xs);
    CHECK(xc_interface_close(xch) == 0);
}

static uint64_t now_msec(void)
{
    struct timespec ts;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* While xenstored hangs, calls wait, and events; asking Xen does not. */
static void test_hanging_store(void)
{
    xc_interface *xch = xc_interface_open(NULL, NULL, 0);
    struct xs_handle *xs = xs_open(0);
    struct pollfd fd = {.fd = xs_fileno(xs), .events = POLLIN};
    uint64_t begin;
    xc_domaininfo_t infos[8];
    char command[512];
    void *name;

    CHECK(xch && xs && xs_watch(xs, "@releaseDomain", "r"));
    expect_event(xs, "@releaseDomain", "r");
    xensim("fault xenstore-hangs on");
    xensim("domain remove 2");
    expect_nothing(xs);
    CHECK(xc_domain_getinfolist(xch, 0, 8, infos) == 2);
    (void)snprintf(command, sizeof(command), "(sleep 0.3; %s fault xenstore-hangs off) &",
                   getenv("XENSIM_COMMAND"));
    begin = now_msec();
    CHECK(system(command) == 0);
    name = xs_read(xs, XBT_NULL, "/local/domain/0/name", NULL);
    CHECK(name && now_msec() - begin >= 250);
    free(name);
    CHECK(poll(&fd, 1, 5000) == 1);
    expect_event(xs, "@releaseDomain", "r");
    expect_nothing(xs);
    xs_close(xs);
    CHECK(xc_interface_close(xch) == 0);
}

/* Which call fails with which errno; 0: it works. */
static const struct fault {
    const char *name;
    int open, physinfo, set_size, bind, store;
} faults[] = {
    {"no-xen", ENOENT, 0, 0, 0, ENOENT},
    {"not-root", EACCES, 0, 0, 0, EACCES},
    {"no-xenstore", 0, 0, 0, 0, ENOENT},
    {"not-dom0", 0, EPERM, EPERM, 0, 0},
    {"version-mismatch", 0, EACCES, EACCES, 0, 0},
    {"no-tbuf", 0, 0, ENOSYS, 0, 0},
    {"flask", 0, 0, EACCES, 0, 0},
    {"no-memory", 0, 0, ENOMEM, 0, 0},
    {"virq-taken", 0, 0, 0, EEXIST, 0},
    {"virq-busy", 0, 0, 0, EBUSY, 0},
};

static int result_of(int r)
{
    return r < 0 ? errno : 0;
}

static void test_fault(const struct fault *f)
{
    xc_interface *xch = xc_interface_open(NULL, NULL, 0);
    xenevtchn_handle *evtchn = xenevtchn_open(NULL, 0);
    struct xs_handle *xs = xs_open(0);
    int store_error = xs ? 0 : errno;
    xc_physinfo_t physinfo;

    CHECK(store_error == f->store);
    xs_close(xs);
    if (f->open) {
        CHECK(!xch && !evtchn && errno == f->open);
        CHECK(!xencall_open(NULL, 0) && errno == f->open);
        CHECK(!xenforeignmemory_open(NULL, 0) && errno == f->open);
        return;
    }
    CHECK(xch && evtchn);
    CHECK(result_of(xc_physinfo(xch, &physinfo)) == f->physinfo);
    CHECK(result_of(xc_tbuf_set_size(xch, 1)) == f->set_size);
    CHECK(result_of(xenevtchn_bind_virq(evtchn, VIRQ_TBUF)) == f->bind);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
            if (strcmp(faults[i].name, argv[2]) != 0)
                continue;
            test_fault(&faults[i]);
            return 0;
        }
        return 1;
    }
    test_event_channel();
    test_killed_holder();
    test_calls();
    test_store();
    test_watches();
    test_domains();
    test_hanging_store();
    return 0;
}

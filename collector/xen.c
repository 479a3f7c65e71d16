// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All calls of Xen's libraries, each as thin as it can be: the decisions are elsewhere.
 *
 * Two things libxenctrl cannot do. There is no call for XEN_SYSCTL_TBUFOP_get_info alone
 * (xc_tbuf_get_size() maps t_info writable, which Xen refuses; xc_tbuf_enable() enables), so that
 * one sysctl is made with libxencall, as libxenctrl itself does. And xc_tbuf_enable() hides the
 * errors of set_size, so the size is set first and read back from t_info.
 */

#define __XEN_TOOLS__ 1 /* <xen/sysctl.h> is for the tools' side only */

#include "collector/xen.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xen/xen.h>
#include <xen/sched.h>
#include <xen/sysctl.h>
#include <xen/trace.h>
#include <xen/version.h>
#include <xencall.h>
#include <xenctrl.h>
#include <xenevtchn.h>
#include <xenforeignmemory.h>

#include "common/utf8.h"
#include "common/util.h"

struct xen_host {
    xc_interface *xc;
    xencall_handle *xcall;
    xenforeignmemory_handle *fmem;
    xenevtchn_handle *evtchn;
    int virq_port;
    struct xen_host_info info;
    bool buffers_mapped;
    const struct t_info *t_info; /* untrusted memory of Xen's */
    size_t t_info_pages;
    struct xen_trace_buffers buffers;
};

/* Xen's libraries report errors as -1 with errno. */
static int result_of(int rc)
{
    if (rc >= 0)
        return 0;
    return errno > 0 ? -errno : -EIO;
}

/* One of Xen's texts; "" if Flask denies it. */
static void read_text(struct xen_host *host, int what, char *text, size_t size)
{
    char raw[sizeof(xen_commandline_t) + 1] = ""; /* the longest of them, and an end */

    (void)xc_version(host->xc, what, raw);
    (void)utf8_copy(text, size, raw);
}

static int read_version(struct xen_host *host)
{
    struct xen_host_info *info = &host->info;
    char extra[sizeof(xen_extraversion_t) + 1];
    int version;

    version = xc_version(host->xc, XENVER_version, NULL);
    if (version < 0)
        return result_of(version);
    read_text(host, XENVER_extraversion, extra, sizeof(extra));
    (void)snprintf(info->version, sizeof(info->version), "%d.%d%s", version >> 16, version & 0xffff,
                   extra);
    read_text(host, XENVER_changeset, info->changeset, sizeof(info->changeset));
    read_text(host, XENVER_commandline, info->commandline, sizeof(info->commandline));
    return 0;
}

/* Scheduler ids: <xen/domctl.h>. The granularity is only in Xen's command line. */
static void read_scheduler(struct xen_host *host)
{
    static const char *const names[] = {
        [XEN_SCHEDULER_CREDIT] = "credit",     [XEN_SCHEDULER_CREDIT2] = "credit2",
        [XEN_SCHEDULER_ARINC653] = "arinc653", [XEN_SCHEDULER_RTDS] = "rtds",
        [XEN_SCHEDULER_NULL] = "null",
    };
    struct xen_host_info *info = &host->info;
    const char *option = strstr(info->commandline, "sched-gran=");
    const char *granularity = option ? option + strlen("sched-gran=") : "cpu";
    char value[sizeof(info->commandline)];
    const char *name = NULL;
    int id = -1;

    if (xc_sched_id(host->xc, &id) == 0 && id >= 0 && (size_t)id < ARRAY_SIZE(names))
        name = names[id];
    (void)snprintf(info->scheduler, sizeof(info->scheduler), "%s", name ? name : "unknown");
    (void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(granularity, " "), granularity);
    (void)utf8_copy(info->granularity, sizeof(info->granularity), value);
}

/* libxenctrl has no call that returns its version, but a separate file for each version of Xen. */
static void read_library(struct xen_host *host)
{
    int (*const call)(xc_interface * xch, int cmd, void *arg) = xc_version;
    const char *name;
    Dl_info found;

    if (dladdr(*(void *const *)&call, &found) == 0 || !found.dli_fname)
        return;
    name = strrchr(found.dli_fname, '/');
    (void)utf8_copy(host->info.library, sizeof(host->info.library),
                    name ? name + 1 : found.dli_fname);
}

static int read_host_info(struct xen_host *host)
{
    xc_physinfo_t physinfo = {0};
    int r;

    r = result_of(xc_physinfo(host->xc, &physinfo));
    if (r < 0)
        return r;
    host->info.nr_cpus = physinfo.max_cpu_id + 1;
    if (host->info.nr_cpus == 0 || host->info.nr_cpus > CPU_SET_MAX)
        return -EBADMSG;
    host->info.tsc_khz = physinfo.cpu_khz;

    r = read_version(host);
    if (r < 0)
        return r;
    read_scheduler(host);
    read_library(host);
    return 0;
}

int xen_host_free_bytes(struct xen_host *host, uint64_t *ret_bytes)
{
    xc_physinfo_t physinfo = {0};
    int r = result_of(xc_physinfo(host->xc, &physinfo));

    if (r < 0)
        return r;
    *ret_bytes = physinfo.free_pages * PAGE_BYTES;
    return 0;
}

int xen_host_read_idle(struct xen_host *host, uint64_t *ret_idle_ns, unsigned int nr_cpus)
{
    xc_cpuinfo_t *infos = calloc(nr_cpus, sizeof(*infos));
    int r, n = 0;

    if (!infos)
        return -ENOMEM;
    r = result_of(xc_getcpuinfo(host->xc, (int)nr_cpus, infos, &n));
    for (unsigned int cpu = 0; r >= 0 && cpu < nr_cpus; cpu++)
        ret_idle_ns[cpu] = (int)cpu < n ? infos[cpu].idletime : 0;
    free(infos);
    return r;
}

/* A read must never block: the collector looks whether something is pending by trying. */
static int make_virq_non_blocking(struct xen_host *host)
{
    int fd = xenevtchn_fd(host->evtchn);
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

static int bind_virq(struct xen_host *host)
{
    int port = xenevtchn_bind_virq(host->evtchn, VIRQ_TBUF);

    if (port < 0)
        return result_of(port);
    host->virq_port = port;
    return make_virq_non_blocking(host);
}

/*
 * Reads all events up to EAGAIN; returns whether there was one. Linux wakes nobody for an event
 * that it adds to an unread one (evtchn_interrupt() in drivers/xen/evtchn.c). If one were left when
 * the port is unmasked, no later one would ever wake the collector.
 */
static bool take_virq(struct xen_host *host)
{
    bool has_fired = false;

    while (xenevtchn_pending(host->evtchn) == host->virq_port)
        has_fired = true;
    return has_fired;
}

/*
 * Takes over a port that is bound already. Whether it is bound to this descriptor is shown by a
 * notification, which Xen does not deliver on a VIRQ's port but Linux refuses on a foreign one. The
 * previous owner may have died before it took an event, or between taking and unmasking it;
 * unmasking twice is harmless. An event taken here is not lost, because each session begins with a
 * round.
 */
static int adopt_virq(struct xen_host *host, const struct xen_virq *inherited)
{
    evtchn_port_t port = (evtchn_port_t)inherited->port;
    int r;

    if (inherited->port < 0)
        return -ENOTCONN;
    r = result_of(xenevtchn_notify(host->evtchn, port));
    if (r < 0)
        return r;
    r = make_virq_non_blocking(host);
    if (r < 0)
        return r;
    host->virq_port = inherited->port;
    (void)take_virq(host);
    return result_of(xenevtchn_unmask(host->evtchn, port));
}

/* A failure of Xen's open functions leaves errno, sometimes 0. */
static int open_error(void)
{
    return errno > 0 ? -errno : -ENOENT;
}

static int open_handles(struct xen_host *host)
{
    errno = 0;
    host->xc = xc_interface_open(NULL, NULL, 0);
    if (!host->xc)
        return open_error();
    host->xcall = xencall_open(NULL, 0);
    if (!host->xcall)
        return open_error();
    host->fmem = xenforeignmemory_open(NULL, 0);
    return host->fmem ? 0 : open_error();
}

static int open_evtchn(struct xen_host *host)
{
    errno = 0;
    host->evtchn = xenevtchn_open(NULL, 0);
    return host->evtchn ? 0 : open_error();
}

/* The handle closes its descriptor: give it a copy. */
static int reopen_evtchn(struct xen_host *host, const struct xen_virq *inherited)
{
    int fd = fcntl(inherited->fd, F_DUPFD_CLOEXEC, 3);

    if (fd < 0)
        return -errno;
    errno = 0;
    host->evtchn = xenevtchn_fdopen(NULL, fd, 0);
    if (!host->evtchn) {
        int r = open_error();

        fd_close(&fd);
        return r;
    }
    return 0;
}

/* Steps without an effect on other programs come first, VIRQ_TBUF last. */
static int open_host(struct xen_host *host, const struct xen_virq *inherited,
                     enum xen_step *ret_step)
{
    uint32_t mask;
    bool allocated;
    int r;

    *ret_step = XEN_STEP_OPEN;
    r = open_handles(host);
    if (r < 0)
        return r;
    *ret_step = inherited ? XEN_STEP_ADOPT_VIRQ : XEN_STEP_OPEN_EVTCHN;
    r = inherited ? reopen_evtchn(host, inherited) : open_evtchn(host);
    if (r < 0)
        return r;
    *ret_step = XEN_STEP_HOST_INFO;
    r = read_host_info(host);
    if (r < 0)
        return r;
    *ret_step = XEN_STEP_TRACE_INFO;
    r = xen_host_trace_info(host, &mask, &allocated);
    if (r < 0)
        return r;
    *ret_step = inherited ? XEN_STEP_ADOPT_VIRQ : XEN_STEP_BIND_VIRQ;
    return inherited ? adopt_virq(host, inherited) : bind_virq(host);
}

int xen_host_open(const struct xen_virq *inherited, struct xen_host **ret_host,
                  enum xen_step *ret_step)
{
    struct xen_host *host;
    int r;

    host = calloc(1, sizeof(*host));
    if (!host)
        return -ENOMEM;
    host->virq_port = -1;
    r = open_host(host, inherited, ret_step);
    if (r < 0) {
        xen_host_free(host);
        return r;
    }
    *ret_host = host;
    return 0;
}

struct xen_host *xen_host_free(struct xen_host *host)
{
    if (!host)
        return NULL;
    for (unsigned int cpu = 0; cpu < host->buffers.nr_cpus; cpu++)
        if (host->buffers.buffer[cpu])
            (void)xenforeignmemory_unmap(host->fmem, host->buffers.buffer[cpu],
                                         host->buffers.pages);
    free(host->buffers.buffer);
    if (host->t_info)
        (void)xenforeignmemory_unmap(host->fmem, (void *)(uintptr_t)host->t_info,
                                     host->t_info_pages);
    if (host->evtchn)
        (void)xenevtchn_close(host->evtchn);
    if (host->fmem)
        (void)xenforeignmemory_close(host->fmem);
    if (host->xcall)
        (void)xencall_close(host->xcall);
    if (host->xc)
        (void)xc_interface_close(host->xc);
    free(host);
    return NULL;
}

const struct xen_host_info *xen_host_info(const struct xen_host *host)
{
    return &host->info;
}

int xen_host_list_domain_states(struct xen_host *host, struct xen_domain_state *ret_states,
                                unsigned int max)
{
    xc_domaininfo_t *infos;
    int n;

    infos = calloc(max, sizeof(*infos));
    if (!infos)
        return -ENOMEM;
    n = xc_domain_getinfolist(host->xc, 0, max, infos);
    if (n < 0)
        n = result_of(n);
    for (int i = 0; i < n; i++) {
        bool shut_down = infos[i].flags & XEN_DOMINF_shutdown;
        uint32_t reason = infos[i].flags >> XEN_DOMINF_shutdownshift & XEN_DOMINF_shutdownmask;

        ret_states[i] = (struct xen_domain_state){
            .domid = infos[i].domain,
            .shut_down = shut_down,
            .crashed = shut_down && reason == SHUTDOWN_crash,
        };
        memcpy(ret_states[i].uuid, infos[i].handle, XEN_UUID_BYTES);
    }
    free(infos);
    return n;
}

/* XEN_SYSCTL_TBUFOP_get_info: <xen/sysctl.h>. */
static int tbuf_get_info(struct xen_host *host, struct xen_sysctl_tbuf_op *ret_op)
{
    struct xen_sysctl *sysctl;
    int r;

    sysctl = xencall_alloc_buffer(host->xcall, sizeof(*sysctl));
    if (!sysctl)
        return -ENOMEM;
    memset(sysctl, 0, sizeof(*sysctl));
    sysctl->cmd = XEN_SYSCTL_tbuf_op;
    sysctl->interface_version = XEN_SYSCTL_INTERFACE_VERSION;
    sysctl->u.tbuf_op.cmd = XEN_SYSCTL_TBUFOP_get_info;
    r = result_of(xencall1(host->xcall, __HYPERVISOR_sysctl, (uint64_t)(uintptr_t)sysctl));
    if (r >= 0)
        *ret_op = sysctl->u.tbuf_op;
    xencall_free_buffer(host->xcall, sysctl);
    return r;
}

int xen_host_trace_info(struct xen_host *host, uint32_t *ret_event_mask, bool *ret_allocated)
{
    struct xen_sysctl_tbuf_op op;
    int r;

    r = tbuf_get_info(host, &op);
    if (r < 0)
        return r;
    *ret_event_mask = op.evt_mask;
    *ret_allocated = op.buffer_mfn != 0;
    return 0;
}

/* Xen enables tracing when it has allocated the buffers. */
static int allocate_disabled(struct xen_host *host, uint32_t pages, enum xen_step *ret_step)
{
    int r;

    *ret_step = XEN_STEP_BUFFER_SIZE;
    r = result_of(xc_tbuf_set_size(host->xc, pages));
    if (r < 0)
        return r;
    *ret_step = XEN_STEP_DISABLE;
    return xen_host_disable(host);
}

int xen_host_allocate_buffers(struct xen_host *host, uint32_t pages, enum xen_step *ret_step)
{
    uint32_t mask;
    bool allocated;
    int r, q;

    *ret_step = XEN_STEP_TRACE_INFO;
    r = xen_host_trace_info(host, &mask, &allocated);
    if (r < 0)
        return r;

    *ret_step = XEN_STEP_EVENT_MASK;
    r = xen_host_set_event_mask(host, 0);
    if (r < 0)
        return r;

    r = allocate_disabled(host, pages, ret_step);
    q = xen_host_set_event_mask(host, mask); /* in any case */
    if (r < 0)
        return r;
    *ret_step = XEN_STEP_EVENT_MASK;
    return q;
}

/* Maps one CPU's buffer, whose MFNs t_info lists at OFFSET, in 32-bit words. */
static int map_cpu_buffer(struct xen_host *host, size_t offset, void **ret_buffer)
{
    const volatile uint32_t *mfns_untrusted = (const volatile uint32_t *)host->t_info + offset;
    uint32_t pages = host->buffers.pages;
    xen_pfn_t *pfns;
    void *buffer;

    if ((offset + pages) * sizeof(uint32_t) > host->t_info_pages * PAGE_BYTES)
        return -EBADMSG;
    pfns = calloc(pages, sizeof(*pfns));
    if (!pfns)
        return -ENOMEM;
    for (uint32_t i = 0; i < pages; i++)
        pfns[i] = mfns_untrusted[i];
    buffer = xenforeignmemory_map(host->fmem, DOMID_XEN, PROT_READ | PROT_WRITE, pages, pfns, NULL);
    free(pfns);
    if (!buffer)
        return -errno;
    *ret_buffer = buffer;
    return 0;
}

static int map_t_info(struct xen_host *host)
{
    struct xen_sysctl_tbuf_op op;
    xen_pfn_t *pfns;
    size_t pages;
    int r;

    r = tbuf_get_info(host, &op);
    if (r < 0)
        return r;
    pages = op.size / PAGE_BYTES;
    if (op.buffer_mfn == 0 || pages == 0)
        return -ENODATA;

    pfns = calloc(pages, sizeof(*pfns));
    if (!pfns)
        return -ENOMEM;
    for (size_t i = 0; i < pages; i++)
        pfns[i] = op.buffer_mfn + i;
    host->t_info = xenforeignmemory_map(host->fmem, DOMID_XEN, PROT_READ, pages, pfns, NULL);
    free(pfns);
    if (!host->t_info)
        return -errno;
    host->t_info_pages = pages;
    return 0;
}

int xen_host_map_buffers(struct xen_host *host, const struct xen_trace_buffers **ret_buffers)
{
    struct xen_trace_buffers *buffers = &host->buffers;
    int r;

    if (!host->t_info) {
        r = map_t_info(host);
        if (r < 0)
            return r;
    }
    if (!buffers->buffer) {
        buffers->buffer = calloc(host->info.nr_cpus, sizeof(*buffers->buffer));
        if (!buffers->buffer)
            return -ENOMEM;
        buffers->nr_cpus = host->info.nr_cpus;
        buffers->pages = host->t_info->tbuf_size;
        if (buffers->pages == 0)
            return -EBADMSG;
    }
    for (unsigned int cpu = 0; cpu < buffers->nr_cpus && !host->buffers_mapped; cpu++) {
        uint16_t offset = ((const volatile struct t_info *)host->t_info)->mfn_offset[cpu];

        if (offset == 0 || buffers->buffer[cpu])
            continue;
        r = map_cpu_buffer(host, offset, &buffers->buffer[cpu]);
        if (r < 0)
            return r;
    }
    host->buffers_mapped = true;
    *ret_buffers = buffers;
    return 0;
}

int xen_host_set_cpu_mask(struct xen_host *host, const struct cpu_set *set)
{
    xc_cpumap_t map;
    int r;

    map = xc_cpumap_alloc(host->xc); /* zeroed, as wide as Xen's own mask */
    if (!map)
        return -ENOMEM;
    for (unsigned int cpu = 0; cpu < host->info.nr_cpus; cpu++)
        if (cpu_set_has(set, cpu))
            map[cpu / 8] = (uint8_t)(map[cpu / 8] | 1u << (cpu % 8));
    r = result_of(xc_tbuf_set_cpu_mask(host->xc, map));
    free(map);
    return r;
}

int xen_host_set_event_mask(struct xen_host *host, uint32_t mask)
{
    return result_of(xc_tbuf_set_evt_mask(host->xc, mask));
}

int xen_host_enable(struct xen_host *host)
{
    unsigned long mfn, bytes;

    /* It sets the size first and ignores the error: the size stands since allocation. */
    return result_of(xc_tbuf_enable(host->xc, host->buffers.pages, &mfn, &bytes));
}

int xen_host_disable(struct xen_host *host)
{
    return result_of(xc_tbuf_disable(host->xc));
}

int xen_host_virq_fd(const struct xen_host *host)
{
    return xenevtchn_fd(host->evtchn);
}

int xen_host_virq_port(const struct xen_host *host)
{
    return host->virq_port;
}

bool xen_host_virq_rearm(struct xen_host *host)
{
    if (!take_virq(host))
        return false;
    /* The fallback timer makes up for a failure. */
    (void)xenevtchn_unmask(host->evtchn, (evtchn_port_t)host->virq_port);
    return true;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libxenctrl: handles, CPU maps, facts about the host, trace buffer control. All go through the
 * same sysctls that libxencall's users call, so that faults and rules stand in one place.
 */

#include "preload.h"
#include "domains.h"
#include "sysctl.h"

#include <errno.h>
#include <string.h>

#include <xenctrl.h>

struct xc_interface_core {
    struct sim *sim;
};

static int call(xc_interface *xch, struct xen_sysctl *sysctl)
{
    sysctl->interface_version = XEN_SYSCTL_INTERFACE_VERSION;
    return preload_result(sysctl_call(xch->sim, sysctl));
}

EXPORT xc_interface *xc_interface_open(xentoollog_logger *logger,
                                       xentoollog_logger *dombuild_logger, unsigned int open_flags)
{
    struct sim *sim = preload_open();
    xc_interface *xch;

    (void)logger; /* nothing is logged */
    (void)dombuild_logger;
    (void)open_flags;
    if (!sim)
        return NULL;
    xch = malloc(sizeof(*xch));
    if (xch)
        xch->sim = sim;
    return xch;
}

EXPORT int xc_interface_close(xc_interface *xch)
{
    free(xch);
    return 0;
}

EXPORT int xc_physinfo(xc_interface *xch, xc_physinfo_t *info)
{
    struct xen_sysctl sysctl = {.cmd = XEN_SYSCTL_physinfo};
    int r = call(xch, &sysctl);

    if (r == 0)
        *info = sysctl.u.physinfo;
    return r;
}

EXPORT int xc_getcpuinfo(xc_interface *xch, int max_cpus, xc_cpuinfo_t *info, int *nr_cpus)
{
    struct xen_sysctl sysctl = {.cmd = XEN_SYSCTL_getcpuinfo};
    int r;

    sysctl.u.getcpuinfo.max_cpus = (uint32_t)max_cpus;
    sysctl.u.getcpuinfo.info.p = info;
    r = call(xch, &sysctl);
    if (r == 0)
        *nr_cpus = (int)sysctl.u.getcpuinfo.nr_cpus;
    return r;
}

EXPORT int xc_get_max_cpus(xc_interface *xch)
{
    xc_physinfo_t info;

    return xc_physinfo(xch, &info) < 0 ? -1 : (int)info.max_cpu_id + 1;
}

EXPORT int xc_get_online_cpus(xc_interface *xch)
{
    xc_physinfo_t info;

    return xc_physinfo(xch, &info) < 0 ? -1 : (int)info.nr_cpus;
}

EXPORT int xc_get_cpumap_size(xc_interface *xch)
{
    int cpus = xc_get_max_cpus(xch);

    return cpus < 0 ? -1 : (cpus + 7) / 8;
}

EXPORT xc_cpumap_t xc_cpumap_alloc(xc_interface *xch)
{
    int bytes = xc_get_cpumap_size(xch);

    return bytes <= 0 ? NULL : calloc(1, (size_t)bytes);
}

EXPORT void xc_cpumap_setcpu(int cpu, xc_cpumap_t map)
{
    map[cpu / 8] = (uint8_t)(map[cpu / 8] | 1u << (cpu % 8));
}

EXPORT void xc_cpumap_clearcpu(int cpu, xc_cpumap_t map)
{
    map[cpu / 8] = (uint8_t)(map[cpu / 8] & ~(1u << (cpu % 8)));
}

EXPORT int xc_cpumap_testcpu(int cpu, xc_cpumap_t map)
{
    return map[cpu / 8] >> (cpu % 8) & 1;
}

EXPORT int xc_sched_id(xc_interface *xch, int *sched_id)
{
    struct xen_sysctl sysctl = {.cmd = XEN_SYSCTL_sched_id};
    int r = call(xch, &sysctl);

    if (r == 0)
        *sched_id = (int)sysctl.u.sched_id.sched_id;
    return r;
}

EXPORT int xc_version(xc_interface *xch, int cmd, void *arg)
{
    (void)xch; /* every domain may ask */
    switch (cmd) {
    case XENVER_version:
        return 4 << 16 | 17;
    case XENVER_pagesize:
        return (int)PAGE_BYTES;
    case XENVER_extraversion:
        (void)snprintf(arg, sizeof(xen_extraversion_t), ".0-xensim");
        return 0;
    case XENVER_changeset:
        (void)snprintf(arg, sizeof(xen_changeset_info_t), "xensim");
        return 0;
    case XENVER_commandline:
        (void)snprintf(arg, sizeof(xen_commandline_t), "placeholder xensim");
        return 0;
    case XENVER_capabilities:
        (void)snprintf(arg, sizeof(xen_capabilities_info_t), "xen-3.0-x86_64 hvm-3.0-x86_64 ");
        return 0;
    case XENVER_compile_info:
        memset(arg, 0, sizeof(xen_compile_info_t));
        return 0;
    default:
        return preload_result(-ENOSYS);
    }
}

static uint32_t domain_flags(const struct sim_domain *d)
{
    if (!d->has_shut_down)
        return XEN_DOMINF_running;
    return XEN_DOMINF_shutdown | d->reason << XEN_DOMINF_shutdownshift;
}

EXPORT int xc_domain_getinfolist(xc_interface *xch, uint32_t first_domain, unsigned int max_domains,
                                 xc_domaininfo_t *info)
{
    struct sim_domain domains[SIM_MAX_DOMAINS];
    uint32_t count = domains_list(xch->sim, domains);
    unsigned int n = 0;

    if (sim_has_fault(xch->sim, SIM_FAULT_NOT_DOM0))
        return preload_result(-EPERM);
    if (sim_has_fault(xch->sim, SIM_FAULT_VERSION_MISMATCH))
        return preload_result(-EACCES);
    for (uint32_t i = 0; i < count && n < max_domains; i++) {
        if (domains[i].domid < first_domain)
            continue;
        info[n] = (xc_domaininfo_t){
            .domain = (domid_t)domains[i].domid,
            .flags = domain_flags(&domains[i]),
            .nr_online_vcpus = domains[i].vcpus,
            .max_vcpu_id = domains[i].vcpus - 1,
        };
        if (domains[i].domid > 0)
            memcpy(info[n].handle, domains[i].name, sizeof(info[n].handle));
        n++;
    }
    return (int)n;
}

static int tbuf_op(xc_interface *xch, uint32_t cmd, uint32_t size, uint32_t evt_mask)
{
    struct xen_sysctl sysctl = {.cmd = XEN_SYSCTL_tbuf_op};

    sysctl.u.tbuf_op.cmd = cmd;
    sysctl.u.tbuf_op.size = size;
    sysctl.u.tbuf_op.evt_mask = evt_mask;
    return call(xch, &sysctl);
}

EXPORT int xc_tbuf_set_size(xc_interface *xch, unsigned long size)
{
    return tbuf_op(xch, XEN_SYSCTL_TBUFOP_set_size, (uint32_t)size, 0);
}

EXPORT int xc_tbuf_set_evt_mask(xc_interface *xch, uint32_t mask)
{
    return tbuf_op(xch, XEN_SYSCTL_TBUFOP_set_evt_mask, 0, mask);
}

EXPORT int xc_tbuf_disable(xc_interface *xch)
{
    return tbuf_op(xch, XEN_SYSCTL_TBUFOP_disable, 0, 0);
}

EXPORT int xc_tbuf_set_cpu_mask(xc_interface *xch, xc_cpumap_t mask)
{
    struct xen_sysctl sysctl = {.cmd = XEN_SYSCTL_tbuf_op};
    int cpus = xc_get_max_cpus(xch);

    if (cpus <= 0)
        return -1;
    sysctl.u.tbuf_op.cmd = XEN_SYSCTL_TBUFOP_set_cpu_mask;
    sysctl.u.tbuf_op.cpu_mask.nr_bits = (uint32_t)cpus;
    sysctl.u.tbuf_op.cpu_mask.bitmap.p = mask;
    return call(xch, &sysctl);
}

/* The library's own trap is kept: set_size's error is swallowed. */
EXPORT int xc_tbuf_enable(xc_interface *xch, unsigned long pages, unsigned long *mfn,
                          unsigned long *size)
{
    struct xen_sysctl sysctl = {.cmd = XEN_SYSCTL_tbuf_op};

    (void)xc_tbuf_set_size(xch, pages);
    if (tbuf_op(xch, XEN_SYSCTL_TBUFOP_enable, 0, 0) < 0)
        return -1;
    sysctl.u.tbuf_op.cmd = XEN_SYSCTL_TBUFOP_get_info;
    if (call(xch, &sysctl) == 0) {
        *size = sysctl.u.tbuf_op.size;
        *mfn = (unsigned long)sysctl.u.tbuf_op.buffer_mfn;
    }
    return 0;
}

/* Fails even for root on a real Xen: it maps t_info writable. */
EXPORT int xc_tbuf_get_size(xc_interface *xch, unsigned long *size)
{
    (void)xch;
    (void)size;
    return preload_result(-EBUSY);
}

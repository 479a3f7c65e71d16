// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sysctls that tracing needs. Order of the checks as in Xen's do_sysctl(): the interface's
 * version first (EACCES), then the caller's right (EPERM), then the security module (EACCES).
 */

#include "sysctl.h"
#include "tbuf.h"

#include <errno.h>
#include <time.h>

int sysctl_may_open(const struct sim *sim)
{
    if (sim_has_fault(sim, SIM_FAULT_NO_XEN))
        return -ENOENT;
    if (sim_has_fault(sim, SIM_FAULT_NOT_ROOT))
        return -EACCES;
    return 0;
}

static void get_physinfo(const struct sim *sim, struct xen_sysctl_physinfo *info)
{
    const struct sim_shared *s = sim->shared;

    *info = (struct xen_sysctl_physinfo){
        .threads_per_core = 1,
        .cores_per_socket = s->nr_cpus,
        .max_cpu_id = s->nr_cpus - 1,
        .nr_nodes = 1,
        .cpu_khz = s->cpu_khz,
        .capabilities = XEN_SYSCTL_PHYSCAP_hvm | XEN_SYSCTL_PHYSCAP_pv,
        .total_pages = 1u << 20,
        .free_pages = 1u << 19,
        .max_mfn = sim_page_to_mfn(sim->pool_page + SIM_POOL_PAGES),
    };
    for (uint32_t i = 0; i < s->nr_cpus; i++)
        info->nr_cpus += s->cpus[i].online;
}

/* Every online CPU is idle half of the time, since the boot; as in Xen, an offline one never. */
static void get_cpuinfo(const struct sim *sim, struct xen_sysctl_getcpuinfo *op)
{
    const struct sim_shared *s = sim->shared;
    struct xen_sysctl_cpuinfo *info = op->info.p;
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    op->nr_cpus = (uint32_t)min_u64(op->max_cpus, s->nr_cpus);
    for (uint32_t cpu = 0; cpu < op->nr_cpus; cpu++)
        info[cpu].idletime = s->cpus[cpu].online
                                 ? ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) / 2
                                 : 0;
}

static int tbuf_op(struct sim *sim, struct xen_sysctl_tbuf_op *op)
{
    if (sim_has_fault(sim, SIM_FAULT_FLASK))
        return -EACCES;
    if (sim_has_fault(sim, SIM_FAULT_NO_TBUF))
        return -ENOSYS;
    return tbuf_control(sim, op);
}

int sysctl_call(struct sim *sim, struct xen_sysctl *sysctl)
{
    if (sysctl->interface_version != XEN_SYSCTL_INTERFACE_VERSION ||
        sim_has_fault(sim, SIM_FAULT_VERSION_MISMATCH))
        return -EACCES;
    if (sim_has_fault(sim, SIM_FAULT_NOT_DOM0))
        return -EPERM;
    switch (sysctl->cmd) {
    case XEN_SYSCTL_tbuf_op:
        return tbuf_op(sim, &sysctl->u.tbuf_op);
    case XEN_SYSCTL_physinfo:
        get_physinfo(sim, &sysctl->u.physinfo);
        return 0;
    case XEN_SYSCTL_getcpuinfo:
        get_cpuinfo(sim, &sysctl->u.getcpuinfo);
        return 0;
    case XEN_SYSCTL_sched_id:
        sysctl->u.sched_id.sched_id = 6; /* XEN_SCHEDULER_CREDIT2 */
        return 0;
    default:
        return -ENOSYS;
    }
}

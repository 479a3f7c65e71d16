/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The hypervisor: the only module that talks to Xen's libraries (libxenctrl, libxencall,
 * libxenforeignmemory, libxenevtchn) and includes their headers.
 *
 * Source: <xenctrl.h>, <xenevtchn.h>, <xenforeignmemory.h>, <xen/sysctl.h>; Xen's common/trace.c.
 *
 * Threads: all functions are for the main thread and may allocate and block, except
 * xen_host_virq_*(), which are for the collector thread once it runs, and do neither.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/cpu-set.h"

struct xen_host;

/* The step that Xen refused: with the errno it makes the sentence for the user. */
enum xen_step {
    XEN_STEP_OPEN,        /* /dev/xen/privcmd, /dev/xen/hypercall */
    XEN_STEP_OPEN_EVTCHN, /* /dev/xen/evtchn */
    XEN_STEP_HOST_INFO,   /* XEN_SYSCTL_physinfo */
    XEN_STEP_TRACE_INFO,  /* XEN_SYSCTL_TBUFOP_get_info */
    XEN_STEP_BIND_VIRQ,   /* VIRQ_TBUF */
    XEN_STEP_ADOPT_VIRQ,  /* an inherited event channel */
    XEN_STEP_BUFFER_SIZE, /* XEN_SYSCTL_TBUFOP_set_size */
    XEN_STEP_MAP,         /* t_info and the buffers */
    XEN_STEP_CPU_MASK,    /* XEN_SYSCTL_TBUFOP_set_cpu_mask */
    XEN_STEP_EVENT_MASK,  /* XEN_SYSCTL_TBUFOP_set_evt_mask */
    XEN_STEP_ENABLE,      /* XEN_SYSCTL_TBUFOP_enable */
    XEN_STEP_DISABLE,     /* XEN_SYSCTL_TBUFOP_disable */
};

struct xen_host_info {
    unsigned int nr_cpus; /* highest possible CPU + 1 */
    uint32_t tsc_khz;
    char version[64];
    char library[64]; /* file that libxenctrl is loaded from: "libxenctrl.so.4.17"; "" if unknown */
    char changeset[64];
    char commandline[1024];
    char scheduler[16];   /* "credit2" */
    char granularity[16]; /* "cpu", "core", "socket" */
};

/* The trace buffers as mapped: valid until xen_host_free(). */
struct xen_trace_buffers {
    unsigned int nr_cpus;
    uint32_t pages; /* of each buffer */
    void **buffer;  /* [cpu]: struct t_buf, or NULL for a CPU without one */
};

/* VIRQ_TBUF as an earlier process bound it: xen_host_virq_fd() and _port() of its host. */
struct xen_virq {
    int fd; /* of /dev/xen/evtchn */
    int port;
};

/*
 * Opens the hypervisor and binds VIRQ_TBUF, so that this process is the only consumer. Does not
 * affect another consumer. Returns 0 or a negative errno, with the failed step in *RET_STEP.
 * -EEXIST or -EBUSY at XEN_STEP_BIND_VIRQ: another program is tracing.
 *
 * With INHERITED (not NULL), nothing is bound, and its port is taken over: Xen refuses to bind the
 * VIRQ again while any copy of its descriptor is open. The host duplicates the descriptor; the
 * caller must close its own. An error at XEN_STEP_ADOPT_VIRQ means that INHERITED is unusable
 * (-ENOTCONN: not its port; -ENOTTY, -EBADF: not an event channel): close every copy of it, and
 * call again without it.
 */
int xen_host_open(const struct xen_virq *inherited, struct xen_host **ret_host,
                  enum xen_step *ret_step);
struct xen_host *xen_host_free(struct xen_host *host);

/* Facts that do not change while Xen runs. Texts are valid UTF-8 without control characters. */
const struct xen_host_info *xen_host_info(const struct xen_host *host);

/*
 * Free memory of the host, from which Xen allocates its trace buffers. Returns 0 or a negative
 * errno.
 */
int xen_host_free_bytes(struct xen_host *host, uint64_t *ret_bytes);

/*
 * For how long each of the first NR_CPUS CPUs was idle since the boot, by Xen's clock; 0: it is
 * offline, or there is none. One hypercall; main thread. Returns 0 or a negative errno.
 */
int xen_host_read_idle(struct xen_host *host, uint64_t *ret_idle_ns, unsigned int nr_cpus);

#define XEN_UUID_BYTES 16u

/* Whether a domain still runs. Its kernel reports a crash, or Xen caused it. */
struct xen_domain_state {
    uint32_t domid;
    uint8_t uuid[XEN_UUID_BYTES]; /* the toolstack's; all 0 for dom0 and where it gives none */
    bool shut_down; /* for whatever reason; it is there until the toolstack destroys it */
    bool crashed;
};

/*
 * The running domains, by ascending ids, at most MAX of them: one system call. Returns how many, or
 * a negative errno.
 */
int xen_host_list_domain_states(struct xen_host *host, struct xen_domain_state *ret_states,
                                unsigned int max);

/* The event mask in force, and whether trace buffers are allocated. */
int xen_host_trace_info(struct xen_host *host, uint32_t *ret_event_mask, bool *ret_allocated);

/*
 * Allocates the buffers, PAGES for each CPU, without tracing anything: Xen turns tracing on when it
 * allocates them (alloc_trace_bufs()), so the event mask is empty meanwhile, and it is disabled
 * again. To be called only if they are not allocated. -ENOMEM may be tried again.
 */
int xen_host_allocate_buffers(struct xen_host *host, uint32_t pages, enum xen_step *ret_step);

/* Maps the buffers, once; later calls return the same. The caller owns nothing. */
int xen_host_map_buffers(struct xen_host *host, const struct xen_trace_buffers **ret_buffers);

/* CPUs not in SET are not traced. An empty set is valid. */
int xen_host_set_cpu_mask(struct xen_host *host, const struct cpu_set *set);
int xen_host_set_event_mask(struct xen_host *host, uint32_t mask);
int xen_host_enable(struct xen_host *host);
/* Also zeroes the counts of lost records that Xen has not reported yet. */
int xen_host_disable(struct xen_host *host);

/* The event channel's descriptor, non-blocking: readable when VIRQ_TBUF has fired. */
int xen_host_virq_fd(const struct xen_host *host);
/* The port on it: with it, a copy of the descriptor can be taken over by another process. */
int xen_host_virq_port(const struct xen_host *host);

/*
 * Takes what has fired and lets it fire again; returns whether anything had. Call it before
 * draining: what crosses half full during the drain then fires anew. Three system calls, none
 * blocks. Collector thread.
 */
bool xen_host_virq_rearm(struct xen_host *host);

/* The processor's time stamp counter, which is also Xen's clock in records (platform: x86). */
static inline uint64_t xen_read_tsc(void)
{
    return __builtin_ia32_rdtsc();
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The simulated Xen's memory: one memfd that every process of a run maps whole.
 *
 *   page 0 ..          struct sim_shared: the hypervisor's variables, locks, counters
 *   t_info_page ..     struct t_info, SIM_T_INFO_PAGES of room
 *   pool_page ..       the pages of the trace buffers, handed out in a permuted order
 *
 * "MFNs" are SIM_MFN_BASE + the page's number in the memfd. `xensim run` creates it; the preloaded
 * library, the producer and the controls (`xensim stat`, ...) attach through the environment. Any
 * thread; results are 0 or a negative errno. Whoever dies with a lock in hand leaves it usable.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xen/trace.h>

#include "common/util.h"

#define SIM_ENV "XENSIM" /* the directory of a run: evtchn.N, and `memory`, a link to the memfd */

#define SIM_MAGIC        0x584e5331u
#define SIM_MAX_CPUS     16383u /* Xen 4.19 and later; 4.17: 4095 */
#define SIM_MFN_BASE     0x48000u
#define SIM_T_INFO_PAGES 80u    /* 16-bit word offsets reach 256 KiB, then one CPU's list */
#define SIM_POOL_PAGES   70000u /* the same limit, in pages of buffers; the memfd is sparse */
#define SIM_MAX_KINDS    32u
#define SIM_MAX_HANDLES  64u /* event channel handles open at one time */
#define SIM_MAX_DOMAINS  32u
#define SIM_MAX_STORES   16u /* connections to xenstore with watches, open at one time */
#define SIM_MAX_WATCHES  4u  /* of one connection */
#define SIM_TOKEN_BYTES  96u

enum sim_fault {
    SIM_FAULT_NO_XEN,           /* open: ENOENT */
    SIM_FAULT_NOT_ROOT,         /* open: EACCES */
    SIM_FAULT_NOT_DOM0,         /* sysctl: EPERM */
    SIM_FAULT_VERSION_MISMATCH, /* sysctl: EACCES */
    SIM_FAULT_NO_TBUF,          /* tbuf_op: ENOSYS */
    SIM_FAULT_FLASK,            /* tbuf_op: EACCES */
    SIM_FAULT_NO_MEMORY,        /* set_size: ENOMEM */
    SIM_FAULT_VIRQ_TAKEN,       /* bind: EEXIST, this domain has it */
    SIM_FAULT_VIRQ_BUSY,        /* bind: EBUSY, another domain has it (Xen >= 4.21) */
    SIM_FAULT_VIRQ_DROP,        /* every VIRQ_TBUF is lost on its way */
    SIM_FAULT_NO_EVTCHN,        /* xenevtchn_open: ENOENT, the rest works */
    SIM_FAULT_MAP_DENIED,       /* mapping of foreign pages: EPERM */
    SIM_FAULT_NO_XENSTORE,      /* xs_open: ENOENT */
    SIM_FAULT_XENSTORE_HANGS,   /* calls of libxenstore wait until this is off */
    _SIM_FAULT_N,
};

/* What the producer did on one CPU; written under the CPU's lock. */
struct sim_counts {
    uint64_t attempted; /* records that passed the masks, on a CPU with a buffer */
    uint64_t inserted;
    uint64_t inserted_bytes; /* lost and wrap records included */
    uint64_t lost;           /* did not fit; ever */
    uint64_t told;           /* of these, told by a lost_records record */
    uint64_t vanished;       /* of these, forgotten by a disable */
    uint64_t lost_records;   /* records inserted to tell */
    uint64_t wrap_records;
};

struct sim_cpu {
    pthread_mutex_t lock; /* Xen's per-CPU t_lock */
    uint32_t online;
    uint32_t has_buffer; /* Xen's per-CPU t_bufs pointer */
    uint64_t lost_records;
    uint64_t lost_records_first_tsc;
    struct sim_counts counts;
    /* the workload `numbered` */
    uint64_t generated; /* records made, before any mask */
    uint64_t next_number;
    uint32_t next_kind_number[SIM_MAX_KINDS];
} __attribute__((aligned(128)));

/* One open /dev/xen/evtchn: a FIFO whose only readers are the handle's descriptors. */
struct sim_handle {
    uint64_t inode;
    uint64_t channel; /* atomic: the port, and whether it is masked and pending (virq.c) */
    uint32_t unread;  /* atomic: events in the driver's ring; of them, one is in the FIFO */
    uint32_t used;
};

struct sim_domain {
    uint32_t domid;
    uint32_t vcpus;
    uint32_t has_shut_down;
    uint32_t reason; /* SHUTDOWN_*, if it has */
    char name[128];
};

/* What `xensim starve` asks `sched` for. */
struct sim_starve {
    uint32_t number; /* of requests; atomic, and last */
    uint32_t domid, by, msec;
};

struct sim_watch {
    char path[32];
    char token[SIM_TOKEN_BYTES];
};

/* A connection to xenstore: a FIFO, as for event channels. */
struct sim_store {
    uint32_t nr_watches;
    struct sim_watch watches[SIM_MAX_WATCHES];
};

struct sim_shared {
    uint32_t magic;
    uint32_t nr_cpus;        /* nr_cpu_ids: possible CPUs */
    uint32_t nr_cpus_config; /* NR_CPUS: sizes t_info's table */
    uint32_t cpu_khz;
    uint64_t tsc_offset; /* Xen's clock is ahead of the processor's TSC by so many ticks */
    uint32_t max_pages;  /* memory that is there, in pages per CPU; 0: no limit of its own */
    uint32_t faults;     /* bits of enum sim_fault; atomic */
    uint32_t fault_hits; /* no-memory: how often still; UINT32_MAX: for ever */

    pthread_mutex_t control_lock; /* tb_control()'s */
    uint32_t opt_tbuf_size;       /* pages per buffer once allocated */
    uint32_t t_info_pages;        /* 0: not allocated */
    uint32_t data_size;
    uint32_t highwater;
    uint32_t tb_init_done; /* atomic: tracing is on */
    uint32_t tb_event_mask;
    uint64_t tb_cpu_mask[(SIM_MAX_CPUS + 63) / 64];
    uint32_t bogus_cpu; /* 1 + the CPU whose cons or prod made Xen disable tracing */

    pthread_mutex_t virq_lock; /* for opening, binding, unbinding */
    struct sim_handle handles[SIM_MAX_HANDLES];
    uint32_t virq_handle; /* atomic: 1 + the handle that VIRQ_TBUF is bound to; 0: none */
    uint32_t last_port;
    uint64_t virqs_raised; /* these are atomic; crossings of the high-water mark */
    uint64_t virqs_unbound;
    uint64_t virqs_delivered; /* written to a handle */

    uint32_t wake; /* futex: tells the producer that something below or above changed */
    uint32_t paused;
    uint32_t stop;
    uint32_t producer_idle; /* the producer waits on `wake` */
    uint32_t producer_finished;
    uint32_t producer_pid;

    uint32_t nr_kinds; /* `numbered`'s events */
    uint32_t kinds[SIM_MAX_KINDS];

    pthread_mutex_t domains_lock;
    uint32_t nr_domains;
    struct sim_domain domains[SIM_MAX_DOMAINS]; /* ascending ids */
    struct sim_starve starve;                   /* under domains_lock */
    uint32_t held_events; /* bits of domains.c: not fired, for xenstored hangs */
    struct sim_store stores[SIM_MAX_STORES];

    struct sim_cpu cpus[SIM_MAX_CPUS];
};

/* One process's view. The directory has the FIFOs evtchn.N and store.N (fifo.h). */
struct sim {
    struct sim_shared *shared;
    unsigned char *memory; /* the whole memfd */
    int fd;
    int writers[SIM_MAX_HANDLES]; /* the FIFOs' write ends, in the processes of xensim run; or -1 */
    int store_writers[SIM_MAX_STORES];
    uint32_t t_info_page;
    uint32_t pool_page;
    char directory[256];
};

/* A new Xen with NR_CPUS possible CPUs, in DIRECTORY (which exists and is empty). */
int sim_create(const char *directory, uint32_t nr_cpus, struct sim *ret_sim);

/* The Xen that the environment names. -ENOENT: none. */
int sim_attach(struct sim *ret_sim);

void sim_done(struct sim *sim);

/* Empties DIRECTORY of what sim_create() made. */
void sim_remove_files(const char *directory);

/* A mutex of the shared memory; recovers from an owner that died. */
void sim_lock(pthread_mutex_t *lock);
void sim_unlock(pthread_mutex_t *lock);

/* Tells the producer that it should look again. */
void sim_wake(struct sim *sim);

/* The page of an MFN, or NULL if there is no such page to share. */
void *sim_mfn_to_page(const struct sim *sim, uint64_t mfn);

const char *sim_fault_name(enum sim_fault fault);

/* Bit of the fault called NAME, 0 if there is none. */
uint32_t sim_fault_parse(const char *name);

static inline bool sim_has_fault(const struct sim *sim, enum sim_fault fault)
{
    return __atomic_load_n(&sim->shared->faults, __ATOMIC_RELAXED) >> fault & 1;
}

static inline const struct t_info *sim_t_info(const struct sim *sim)
{
    return (const struct t_info *)(sim->memory + (size_t)sim->t_info_page * PAGE_BYTES);
}

static inline uint32_t sim_page_to_mfn(uint32_t page)
{
    return SIM_MFN_BASE + page;
}

/* What Xen's clock says now: that of every record. */
uint64_t sim_tsc(void);

/* Before anybody else attaches: sets Xen's clock ahead of the processor's TSC, as a PVH dom0 sees
 * it. */
void sim_set_tsc_offset(const struct sim *sim, double seconds);

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Creating and attaching the simulated Xen's memory.
 *
 * A memfd and not a file in /dev/shm: containers give that 64 MiB. It is reached by other processes
 * through a link to /proc/PID/fd/N in the run's directory, so it lives exactly as long as `xensim
 * run` and whoever has it mapped. Locks are robust mutexes: a daemon that is killed inside a
 * "hypercall" must not hang its successor, as it would not on Xen.
 */

#include "fifo.h"
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <x86intrin.h>

#define CALIBRATE_NSEC 50000000L

static const char *const fault_names[_SIM_FAULT_N] = {
    [SIM_FAULT_NO_XEN] = "no-xen",           [SIM_FAULT_NOT_ROOT] = "not-root",
    [SIM_FAULT_NOT_DOM0] = "not-dom0",       [SIM_FAULT_VERSION_MISMATCH] = "version-mismatch",
    [SIM_FAULT_NO_TBUF] = "no-tbuf",         [SIM_FAULT_FLASK] = "flask",
    [SIM_FAULT_NO_MEMORY] = "no-memory",     [SIM_FAULT_VIRQ_TAKEN] = "virq-taken",
    [SIM_FAULT_VIRQ_BUSY] = "virq-busy",     [SIM_FAULT_VIRQ_DROP] = "virq-drop",
    [SIM_FAULT_NO_EVTCHN] = "no-evtchn",     [SIM_FAULT_MAP_DENIED] = "map-denied",
    [SIM_FAULT_NO_XENSTORE] = "no-xenstore", [SIM_FAULT_XENSTORE_HANGS] = "xenstore-hangs",
};

const char *sim_fault_name(enum sim_fault fault)
{
    return fault_names[fault];
}

uint32_t sim_fault_parse(const char *name)
{
    for (unsigned int i = 0; i < _SIM_FAULT_N; i++)
        if (strcmp(fault_names[i], name) == 0)
            return 1u << i;
    return 0;
}

/* Of the one Xen that a process sees. */
static uint64_t tsc_offset;

uint64_t sim_tsc(void)
{
    return __rdtsc() + tsc_offset;
}

void sim_set_tsc_offset(const struct sim *sim, double seconds)
{
    tsc_offset = (uint64_t)(seconds * 1e3 * sim->shared->cpu_khz);
    sim->shared->tsc_offset = tsc_offset;
}

/* The TSC's frequency, measured: CPUID does not tell it on every machine. */
static uint32_t calibrate_khz(void)
{
    const struct timespec pause = {.tv_nsec = CALIBRATE_NSEC};
    struct timespec before, after;
    uint64_t tsc, nsec;

    clock_gettime(CLOCK_MONOTONIC_RAW, &before);
    tsc = sim_tsc();
    (void)nanosleep(&pause, NULL); /* a shorter pause is measured as such */
    clock_gettime(CLOCK_MONOTONIC_RAW, &after);
    tsc = sim_tsc() - tsc;
    nsec = (uint64_t)(after.tv_sec - before.tv_sec) * 1000000000u;
    nsec += (uint64_t)after.tv_nsec;
    nsec -= (uint64_t)before.tv_nsec;
    return (uint32_t)(tsc * 1000000u / nsec);
}

void sim_lock(pthread_mutex_t *lock)
{
    if (pthread_mutex_lock(lock) == EOWNERDEAD)
        (void)pthread_mutex_consistent(lock); /* fails only if it is not robust, and it is */
}

void sim_unlock(pthread_mutex_t *lock)
{
    pthread_mutex_unlock(lock);
}

void sim_wake(struct sim *sim)
{
    __atomic_add_fetch(&sim->shared->wake, 1, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &sim->shared->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void *sim_mfn_to_page(const struct sim *sim, uint64_t mfn)
{
    uint64_t page = mfn - SIM_MFN_BASE;

    if (mfn < SIM_MFN_BASE + sim->t_info_page || page >= sim->pool_page + SIM_POOL_PAGES)
        return NULL;
    return sim->memory + page * PAGE_BYTES;
}

static size_t sim_bytes(const struct sim *sim)
{
    return (size_t)(sim->pool_page + SIM_POOL_PAGES) * PAGE_BYTES;
}

static void sim_lay_out(struct sim *sim)
{
    sim->t_info_page = (uint32_t)(align_up(sizeof(struct sim_shared), PAGE_BYTES) / PAGE_BYTES);
    sim->pool_page = sim->t_info_page + SIM_T_INFO_PAGES;
}

static int sim_map(struct sim *sim)
{
    void *p = mmap(NULL, sim_bytes(sim), PROT_READ | PROT_WRITE, MAP_SHARED, sim->fd, 0);

    if (p == MAP_FAILED)
        return -errno;
    sim->memory = p;
    sim->shared = p;
    return 0;
}

static void init_shared(struct sim_shared *shared, uint32_t nr_cpus)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->control_lock, &attr);
    pthread_mutex_init(&shared->virq_lock, &attr);
    pthread_mutex_init(&shared->domains_lock, &attr);
    for (uint32_t i = 0; i < nr_cpus; i++) {
        pthread_mutex_init(&shared->cpus[i].lock, &attr);
        shared->cpus[i].online = 1;
    }
    pthread_mutexattr_destroy(&attr);

    shared->nr_cpus = nr_cpus;
    /* Debian's, the most until Xen 4.18, and the most. */
    shared->nr_cpus_config = nr_cpus <= 256 ? 256 : nr_cpus <= 4095 ? 4095 : SIM_MAX_CPUS;
    shared->cpu_khz = calibrate_khz();
    shared->tb_event_mask = TRC_ALL;
    memset(shared->tb_cpu_mask, 0xff, sizeof(shared->tb_cpu_mask));
    shared->last_port = 16;
    shared->fault_hits = UINT32_MAX;
    shared->magic = SIM_MAGIC;
}

static int create_handles(struct sim *sim)
{
    int r = 0;

    for (unsigned int i = 0; i < SIM_MAX_HANDLES && r == 0; i++)
        r = fifo_create(sim->directory, "evtchn", i, &sim->writers[i],
                        &sim->shared->handles[i].inode);
    for (unsigned int i = 0; i < SIM_MAX_STORES && r == 0; i++) {
        uint64_t inode;

        r = fifo_create(sim->directory, "store", i, &sim->store_writers[i], &inode);
    }
    return r;
}

static void sim_init(struct sim *sim)
{
    *sim = (struct sim){.fd = -1};
    memset(sim->writers, 0xff, sizeof(sim->writers));
    memset(sim->store_writers, 0xff, sizeof(sim->store_writers));
    sim_lay_out(sim);
}

static int link_memory(const struct sim *sim)
{
    char path[320], target[64];

    (void)snprintf(path, sizeof(path), "%s/memory", sim->directory);
    (void)snprintf(target, sizeof(target), "/proc/%d/fd/%d", getpid(), sim->fd);
    return symlink(target, path) < 0 ? -errno : 0;
}

int sim_create(const char *directory, uint32_t nr_cpus, struct sim *ret_sim)
{
    struct sim sim;
    int r;

    sim_init(&sim);
    if (nr_cpus == 0 || nr_cpus > SIM_MAX_CPUS || strlen(directory) >= sizeof(sim.directory))
        return -EINVAL;
    (void)snprintf(sim.directory, sizeof(sim.directory), "%s", directory);
    sim.fd = memfd_create("xensim", MFD_CLOEXEC);
    if (sim.fd < 0)
        return -errno;
    if (ftruncate(sim.fd, (off_t)sim_bytes(&sim)) < 0)
        r = -errno;
    else
        r = sim_map(&sim);
    if (r == 0) {
        init_shared(sim.shared, nr_cpus);
        r = create_handles(&sim);
    }
    if (r == 0)
        r = link_memory(&sim);
    if (r < 0) {
        sim_done(&sim);
        return r;
    }
    *ret_sim = sim;
    return 0;
}

int sim_attach(struct sim *ret_sim)
{
    const char *directory = getenv(SIM_ENV);
    char path[320];
    struct sim sim;
    int r;

    sim_init(&sim);
    if (!directory || strlen(directory) >= sizeof(sim.directory))
        return -ENOENT;
    (void)snprintf(sim.directory, sizeof(sim.directory), "%s", directory);
    (void)snprintf(path, sizeof(path), "%s/memory", directory);
    sim.fd = open(path, O_RDWR | O_CLOEXEC);
    if (sim.fd < 0)
        return -errno;
    r = sim_map(&sim);
    if (r == 0 && sim.shared->magic != SIM_MAGIC)
        r = -EBADMSG;
    if (r < 0) {
        sim_done(&sim);
        return r;
    }
    tsc_offset = sim.shared->tsc_offset;
    *ret_sim = sim;
    return 0;
}

void sim_done(struct sim *sim)
{
    if (sim->memory)
        (void)munmap(sim->memory, sim_bytes(sim)); /* fails for bad addresses only */
    for (unsigned int i = 0; i < SIM_MAX_HANDLES; i++)
        fd_close(&sim->writers[i]);
    for (unsigned int i = 0; i < SIM_MAX_STORES; i++)
        fd_close(&sim->store_writers[i]);
    fd_close(&sim->fd);
    sim->memory = NULL;
    sim->shared = NULL;
}

void sim_remove_files(const char *directory)
{
    char path[320];

    for (unsigned int i = 0; i < SIM_MAX_HANDLES; i++)
        fifo_remove(directory, "evtchn", i);
    for (unsigned int i = 0; i < SIM_MAX_STORES; i++)
        fifo_remove(directory, "store", i);
    (void)snprintf(path, sizeof(path), "%s/memory", directory);
    (void)unlink(path); /* what is left over is seen */
}

// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Preloaded into xentraced: counts each call that can fail by its call site, and lets the n-th call
 * of a site fail as tests/faults asks. The file that FAULTY names is mapped by both: struct table
 * below, whose layout tests/faults repeats. Counts outlive the daemon, which may be killed and
 * started again.
 *
 * A site is a function and a return address in the daemon's own program. All calls from libraries
 * are one site for each function. Writes by io_uring are sites of their own: to files, and to all
 * else.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <liburing.h>
#include <xencall.h>
#include <xenctrl.h>
#include <xenevtchn.h>
#include <xenforeignmemory.h>

#include "common/util.h"

#define EXPORT __attribute__((visibility("default")))

#define SITES_MAX   4096u
#define PLANS_MAX   16u
#define LIBRARY     1u /* the address of all calls from libraries */
#define URING_FILE  2u /* and those of writes by io_uring */
#define URING_OTHER 3u

enum kind {
    KIND_NONE,
    KIND_ERRNO,      /* the call fails with this error */
    KIND_SHORT,      /* it moves half of the bytes */
    KIND_DELAY,      /* it takes so many milliseconds longer */
    KIND_KILL,       /* SIGKILL before it */
    KIND_KILL_AFTER, /* SIGKILL after it */
    KIND_KILL_LATER, /* SIGKILL so many microseconds after it: amid what follows */
};

struct plan {
    char name[40];
    uint64_t address;
    uint32_t nth; /* from 1 */
    uint32_t kind;
    uint32_t value;
    uint32_t fired;
};

struct site {
    uint64_t key; /* 0: free */
    uint32_t count;
    uint32_t reserved;
    char name[40];
    uint64_t address;
};

struct table {
    uint32_t ready; /* the plans may be read */
    uint32_t reserved;
    struct plan plans[PLANS_MAX];
    struct site sites[SITES_MAX];
};

static struct table *table;
static uintptr_t text_begin, text_end, text_base;
static uint32_t
    outstanding; /* requests whose completion is to be changed, see change_completions() */
static int outstanding_errno;

/* The C library's own. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);

static int find_text(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)bytes;
    (void)data;
    text_base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            text_begin = text_base + info->dlpi_phdr[i].p_vaddr;
            text_end = text_begin + info->dlpi_phdr[i].p_memsz;
        }
    return 1; /* the first one is the program */
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("FAULTY");
    void *map;
    int fd;

    if (!path || strcmp(program_invocation_short_name, "xentraced") != 0)
        return;
    fd = openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        _exit(127); /* without it the test means nothing */
    map = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        _exit(127);
    (void)close(fd);
    (void)dl_iterate_phdr(find_text, NULL);
    table = map;
}

/* Finds the site, or adds it. */
static struct site *find_site(const char *name, uint64_t address)
{
    uint64_t key = address * UINT64_C(0x9E3779B97F4A7C15);

    for (const char *p = name; *p; p++)
        key = (key ^ (uint8_t)*p) * UINT64_C(0x100000001B3);
    key |= 1;
    for (uint32_t i = 0; i < SITES_MAX; i++) {
        struct site *site = &table->sites[(key >> 20) % SITES_MAX + i < SITES_MAX
                                              ? (key >> 20) % SITES_MAX + i
                                              : (key >> 20) % SITES_MAX + i - SITES_MAX];
        uint64_t found = 0;

        if (__atomic_compare_exchange_n(&site->key, &found, key, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            site->address = address;
            (void)strncpy(site->name, name, sizeof(site->name) - 1);
            return site;
        }
        if (found == key)
            return site;
    }
    return NULL;
}

/* Counts a call. Returns the plan that it is to follow. */
static struct plan *counted(const char *name, uint64_t address)
{
    struct site *site = find_site(name, address);
    uint32_t n;

    if (!site)
        return NULL;
    n = __atomic_add_fetch(&site->count, 1, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&table->ready, __ATOMIC_ACQUIRE))
        return NULL;
    for (uint32_t i = 0; i < PLANS_MAX && table->plans[i].kind; i++) {
        struct plan *plan = &table->plans[i];

        if (plan->nth == n && plan->address == address && strcmp(plan->name, name) == 0) {
            plan->fired = 1;
            return plan;
        }
    }
    return NULL;
}

static uint64_t site_address(const void *caller)
{
    uintptr_t address = (uintptr_t)caller;

    return address >= text_begin && address < text_end ? address - text_base : LIBRARY;
}

/* Does what can be done before a call. Returns the error with which it is to fail, or 0. */
static int before(const char *name, const void *caller, struct plan **ret_plan)
{
    struct plan *plan;

    *ret_plan = NULL;
    if (!table)
        return 0;
    plan = counted(name, site_address(caller));
    if (!plan)
        return 0;
    *ret_plan = plan;
    if (plan->kind == KIND_KILL)
        (void)kill(getpid(), SIGKILL);
    if (plan->kind == KIND_DELAY) {
        struct timespec t = {plan->value / 1000, plan->value % 1000 * 1000000L};

        (void)nanosleep(&t, NULL);
    }
    return plan->kind == KIND_ERRNO ? (int)plan->value : 0;
}

/* The timer is the kernel's: it needs no thread that could be late. */
static void kill_later(uint32_t usec)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec t = {.it_value = {usec / 1000000, usec % 1000000 * 1000L + 1}};
    timer_t timer;

    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        (void)timer_settime(timer, 0, &t, NULL);
}

static void after(const struct plan *plan)
{
    int saved = errno;

    if (plan && plan->kind == KIND_KILL_AFTER)
        (void)kill(getpid(), SIGKILL);
    if (plan && plan->kind == KIND_KILL_LATER)
        kill_later(plan->value);
    errno = saved;
}

static size_t shortened(const struct plan *plan, size_t bytes)
{
    return plan && plan->kind == KIND_SHORT && bytes > 1 ? bytes / 2 : bytes;
}

static void *next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (!function)
        _exit(127);
    return function;
}

#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    struct plan *plan;                                                                             \
    int error = before(#name, __builtin_return_address(0), &plan);                                 \
    if (!real)                                                                                     \
    real = (__typeof__(real))next(#name)

/* A function that fails with FAILED and errno. */
#define FORWARD(type, name, failed, parameters, arguments)                                         \
    EXPORT type name parameters                                                                    \
    {                                                                                              \
        type result;                                                                               \
                                                                                                   \
        REAL(name);                                                                                \
        if (error) {                                                                               \
            errno = error;                                                                         \
            return failed;                                                                         \
        }                                                                                          \
        result = real arguments;                                                                   \
        after(plan);                                                                               \
        return result;                                                                             \
    }

/* --- Memory. --- */

#define ALLOCATE(name, call)                                                                       \
    struct plan *plan;                                                                             \
                                                                                                   \
    if (before(name, __builtin_return_address(0), &plan)) {                                        \
        errno = ENOMEM;                                                                            \
        return NULL;                                                                               \
    }                                                                                              \
    return call

EXPORT void *malloc(size_t bytes)
{
    ALLOCATE("malloc", __libc_malloc(bytes));
}

EXPORT void *calloc(size_t n, size_t bytes)
{
    ALLOCATE("calloc", __libc_calloc(n, bytes));
}

EXPORT void *realloc(void *p, size_t bytes)
{
    ALLOCATE("realloc", __libc_realloc(p, bytes));
}

EXPORT void *reallocarray(void *p, size_t n, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(n, bytes, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    ALLOCATE("reallocarray", __libc_realloc(p, total));
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
    ALLOCATE("aligned_alloc", __libc_memalign(align, bytes));
}

EXPORT char *strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy;
    struct plan *plan;

    if (before("strdup", __builtin_return_address(0), &plan)) {
        errno = ENOMEM;
        return NULL;
    }
    copy = __libc_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

_printf_(3, 4) int __asprintf_chk(char **ret, int flag, const char *format, ...);
_printf_(3, 0) int __vasprintf_chk(char **ret, int flag, const char *format, va_list arguments);

EXPORT int __asprintf_chk(char **ret, int flag, const char *format, ...)
{
    struct plan *plan;
    va_list arguments;
    int r;

    (void)flag;
    if (before("asprintf", __builtin_return_address(0), &plan)) {
        errno = ENOMEM;
        return -1;
    }
    va_start(arguments, format);
    r = vasprintf(ret, format, arguments);
    va_end(arguments);
    return r;
}

EXPORT int __vasprintf_chk(char **ret, int flag, const char *format, va_list arguments)
{
    struct plan *plan;

    (void)flag;
    if (before("vasprintf", __builtin_return_address(0), &plan)) {
        errno = ENOMEM;
        return -1;
    }
    return vasprintf(ret, format, arguments);
}

FORWARD(void *, mmap, MAP_FAILED,
        (void *address, size_t bytes, int protection, int flags, int fd, off_t offset),
        (address, bytes, protection, flags, fd, offset))
FORWARD(int, mlock, -1, (const void *p, size_t bytes), (p, bytes))
FORWARD(int, memfd_create, -1, (const char *name, unsigned int flags), (name, flags))

EXPORT int pthread_create(pthread_t *ret, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument)
{
    REAL(pthread_create);
    return error ? error : real(ret, attributes, function, argument);
}

/* --- Files. --- */

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

EXPORT int open(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;
    int fd;

    REAL(open);
    va_start(arguments, flags);
    mode = mode_of(flags, arguments);
    va_end(arguments);
    if (error) {
        errno = error;
        return -1;
    }
    fd = real(path, flags, mode);
    after(plan);
    return fd;
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;
    int fd;

    REAL(openat);
    va_start(arguments, flags);
    mode = mode_of(flags, arguments);
    va_end(arguments);
    if (error) {
        errno = error;
        return -1;
    }
    fd = real(dir, path, flags, mode);
    after(plan);
    return fd;
}

EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    ssize_t n;

    REAL(write);
    if (error) {
        errno = error;
        return -1;
    }
    n = real(fd, data, shortened(plan, bytes));
    after(plan);
    return n;
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    ssize_t n;

    REAL(pwrite);
    if (error) {
        errno = error;
        return -1;
    }
    n = real(fd, data, shortened(plan, bytes), offset);
    after(plan);
    return n;
}

EXPORT ssize_t pread(int fd, void *data, size_t bytes, off_t offset)
{
    REAL(pread);
    if (error) {
        errno = error;
        return -1;
    }
    return real(fd, data, shortened(plan, bytes), offset);
}

EXPORT int fsync(int fd)
{
    static int (*real)(int);
    struct plan *plan;
    struct stat st;
    int error, r;

    error = before(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? "fsync-dir" : "fsync",
                   __builtin_return_address(0), &plan);
    if (!real)
        real = (int (*)(int))next("fsync");
    if (error) {
        errno = error;
        return -1;
    }
    r = real(fd);
    after(plan);
    return r;
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    REAL(posix_fallocate);
    return error ? error : real(fd, offset, bytes);
}

FORWARD(FILE *, fopen, NULL, (const char *path, const char *mode), (path, mode))
FORWARD(int, fdatasync, -1, (int fd), (fd))
FORWARD(int, fallocate, -1, (int fd, int mode, off_t offset, off_t bytes),
        (fd, mode, offset, bytes))
FORWARD(int, ftruncate, -1, (int fd, off_t bytes), (fd, bytes))
FORWARD(int, rename, -1, (const char *from, const char *to), (from, to))
FORWARD(int, renameat, -1, (int from_dir, const char *from, int to_dir, const char *to),
        (from_dir, from, to_dir, to))
FORWARD(int, renameat2, -1,
        (int from_dir, const char *from, int to_dir, const char *to, unsigned int flags),
        (from_dir, from, to_dir, to, flags))
FORWARD(int, linkat, -1, (int from_dir, const char *from, int to_dir, const char *to, int flags),
        (from_dir, from, to_dir, to, flags))
FORWARD(int, unlink, -1, (const char *path), (path))
FORWARD(int, unlinkat, -1, (int dir, const char *path, int flags), (dir, path, flags))
FORWARD(int, mkdir, -1, (const char *path, mode_t mode), (path, mode))
FORWARD(int, eventfd, -1, (unsigned int value, int flags), (value, flags))
FORWARD(int, timerfd_create, -1, (clockid_t clock, int flags), (clock, flags))
FORWARD(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))

/* --- io_uring: submission, and the results of writes. --- */

/*
 * Lets a queued write fail. Its completion is recognized by EBADF, which a write to descriptor -1
 * has and no other; change_completions() puts the error there.
 */
static void change_request(struct io_uring_sqe *sqe)
{
    struct stat st;
    struct plan *plan;

    if (sqe->opcode != IORING_OP_WRITE && sqe->opcode != IORING_OP_WRITE_FIXED)
        return;
    if (fstat(sqe->fd, &st) != 0 || sqe->len == sizeof(uint64_t)) /* an eventfd */
        return;
    plan = counted("uring-write", S_ISREG(st.st_mode) ? URING_FILE : URING_OTHER);
    if (!plan)
        return;
    switch ((enum kind)plan->kind) {
    case KIND_ERRNO:
        outstanding_errno = (int)plan->value;
        outstanding++;
        sqe->fd = -1;
        break;
    case KIND_SHORT:
        sqe->len = sqe->len / 2 & ~4095u ? sqe->len / 2 & ~4095u : sqe->len;
        break;
    case KIND_KILL:
    case KIND_KILL_AFTER:
        (void)kill(getpid(), SIGKILL);
        break;
    case KIND_KILL_LATER:
        kill_later(plan->value);
        break;
    case KIND_NONE:
    case KIND_DELAY:
        break;
    }
}

static void change_requests(struct io_uring *ring)
{
    if (!table)
        return;
    for (unsigned int i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++)
        change_request(&ring->sq.sqes[i & *ring->sq.kring_mask]);
}

static void change_completions(struct io_uring *ring)
{
    struct io_uring_cqe *cqe;
    unsigned int head;

    if (!outstanding)
        return;
    io_uring_for_each_cqe(ring, head, cqe)
    {
        if (cqe->res != -EBADF || !outstanding)
            continue;
        cqe->res = -outstanding_errno;
        outstanding--;
    }
}

#define SUBMIT(name, arguments)                                                                    \
    int r;                                                                                         \
                                                                                                   \
    REAL(name);                                                                                    \
    if (error)                                                                                     \
        return -error;                                                                             \
    change_requests(ring);                                                                         \
    r = real arguments;                                                                            \
    change_completions(ring);                                                                      \
    after(plan);                                                                                   \
    return r

EXPORT int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
                                            unsigned int nr, struct __kernel_timespec *timeout,
                                            sigset_t *signals)
{
    SUBMIT(io_uring_submit_and_wait_timeout, (ring, cqe, nr, timeout, signals));
}

EXPORT int io_uring_submit_and_wait(struct io_uring *ring, unsigned int nr)
{
    SUBMIT(io_uring_submit_and_wait, (ring, nr));
}

EXPORT int io_uring_submit_and_get_events(struct io_uring *ring)
{
    SUBMIT(io_uring_submit_and_get_events, (ring));
}

#define FORWARD_URING(name, parameters, arguments)                                                 \
    EXPORT int name parameters                                                                     \
    {                                                                                              \
        REAL(name);                                                                                \
        return error ? -error : real arguments;                                                    \
    }

FORWARD_URING(io_uring_queue_init_params,
              (unsigned int entries, struct io_uring *ring, struct io_uring_params *params),
              (entries, ring, params))
FORWARD_URING(io_uring_register_buffers,
              (struct io_uring * ring, const struct iovec *iov, unsigned int n), (ring, iov, n))

/* --- Xen. --- */

FORWARD(xc_interface *, xc_interface_open, NULL,
        (xentoollog_logger * logger, xentoollog_logger *dombuild, unsigned int flags),
        (logger, dombuild, flags))
FORWARD(int, xc_physinfo, -1, (xc_interface * xch, xc_physinfo_t *info), (xch, info))
FORWARD(int, xc_getcpuinfo, -1, (xc_interface * xch, int max, xc_cpuinfo_t *info, int *n),
        (xch, max, info, n))
FORWARD(int, xc_sched_id, -1, (xc_interface * xch, int *id), (xch, id))
FORWARD(int, xc_version, -1, (xc_interface * xch, int command, void *argument),
        (xch, command, argument))
FORWARD(int, xc_tbuf_set_size, -1, (xc_interface * xch, unsigned long pages), (xch, pages))
FORWARD(int, xc_tbuf_set_evt_mask, -1, (xc_interface * xch, uint32_t mask), (xch, mask))
FORWARD(int, xc_tbuf_set_cpu_mask, -1, (xc_interface * xch, xc_cpumap_t mask), (xch, mask))
FORWARD(int, xc_tbuf_enable, -1,
        (xc_interface * xch, unsigned long pages, unsigned long *mfn, unsigned long *bytes),
        (xch, pages, mfn, bytes))
FORWARD(int, xc_tbuf_disable, -1, (xc_interface * xch), (xch))
FORWARD(int, xencall1, -1, (xencall_handle * xcall, unsigned int op, uint64_t argument),
        (xcall, op, argument))
FORWARD(void *, xenforeignmemory_map, NULL,
        (xenforeignmemory_handle * fmem, uint32_t domain, int protection, size_t pages,
         const xen_pfn_t *arr, int *err),
        (fmem, domain, protection, pages, arr, err))
FORWARD(xenevtchn_port_or_error_t, xenevtchn_bind_virq, -1,
        (xenevtchn_handle * xce, unsigned int virq), (xce, virq))
FORWARD(int, xenevtchn_unmask, -1, (xenevtchn_handle * xce, evtchn_port_t port), (xce, port))

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the collector thread uses is in memory and stays there; and if it cannot be locked, that is
 * known.
 */

#include "collector/memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "tests/unit/test.h"

/* The sanitizers' runtime passes over mlock(2): it would lock their shadow. */
#ifdef __has_feature /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool under_sanitizer = true;
#else
static const bool under_sanitizer;
#endif

#define BYTES (UINT64_C(3) << 20)

static uint64_t locked_bytes(void)
{
    _cleanup_file_ FILE *file = fopen("/proc/self/status", "re");
    unsigned long long kib = 0;
    char line[128];

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "VmLck: %llu kB", &kib) == 1)
            break;
    return kib * 1024;
}

static bool is_resident(const void *base, uint64_t bytes)
{
    const uint8_t *page = (const uint8_t *)base - (uintptr_t)base % PAGE_BYTES;
    unsigned char resident;

    for (; page < (const uint8_t *)base + bytes; page += PAGE_BYTES)
        if (mincore((void *)page, PAGE_BYTES, &resident) < 0 || !(resident & 1))
            return false;
    return true;
}

static void test_object(void)
{
    uint64_t before = locked_bytes();
    uint8_t *object;

    test_case("an object is zero, touched and locked");
    object = memory_alloc(3, BYTES / 3);
    if (!CHECK(object))
        return;
    CHECK(is_resident(object, BYTES));
    CHECK(locked_bytes() >= before + BYTES);
    CHECK_INT(object[0] | object[BYTES - 1], 0);
    free(object);
}

static void test_code(void)
{
    uint64_t before = locked_bytes();

    test_case("the code of the program and of the C library is locked");
    CHECK_INT(memory_lock_code(), 0);
    CHECK(locked_bytes() > before + (1u << 20)); /* the C library alone has more */
}

static void *lock_stack(void *argument)
{
    uint8_t deep[64 * 1024];

    CHECK_INT(memory_lock_stack(), 0);
    CHECK(is_resident(deep, sizeof(deep))); /* which nobody has touched */
    return argument;
}

static void test_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    test_case("a thread's stack is touched and locked");
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, 512 * 1024);
    CHECK_INT(pthread_create(&thread, &attributes, lock_stack, NULL), 0);
    (void)pthread_join(thread, NULL);
    (void)pthread_attr_destroy(&attributes);
}

/* Without CAP_IPC_LOCK, as a daemon may run. */
static int lock_beyond_the_limit(void)
{
    const struct rlimit none = {0};
    bool was_locked = memory_is_locked();
    void *object;

    if (setrlimit(RLIMIT_MEMLOCK, &none) < 0 || (geteuid() == 0 && setuid(65534) < 0))
        return TEST_SKIPPED;
    object = memory_alloc(1, BYTES);
    return was_locked && object && !memory_is_locked() ? 0 : 1;
}

static void test_limit(void)
{
    int status = -1;
    pid_t pid;

    test_case("beyond the limit an object is there, not locked, and it is known");
    CHECK(memory_is_locked());
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        _exit(lock_beyond_the_limit());
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}

int main(void)
{
    if (under_sanitizer) {
        printf("# SKIP the sanitizers' runtime does not lock anything\n");
        return TEST_SKIPPED;
    }
    test_object();
    test_code();
    test_stack();
    test_limit();
    return test_end();
}

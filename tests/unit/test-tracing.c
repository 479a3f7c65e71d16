// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What Xen is told about tracing, over a Xen of the test's own: the event mask that Xen was booted
 * with is known to every daemon until the next boot, however the one before ended; and when the
 * collector has died, tracing is disabled whoever uses it.
 */

#include "daemon/host/tracing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/xen.h"
#include "tests/unit/test.h"

#define BOOT_MASK  0x0001f000u
#define SCHED_MASK 0x0002f000u

static struct {
    uint32_t event_mask;
    struct cpu_set cpus;
    bool is_enabled;
    unsigned int calls;
    bool refuses_disable;
    bool refuses_mask;
    bool refuses_cpus;
    bool is_unallocated;
    char note[64]; /* the file, while the buffers were allocated */
} xen;

static char directory[] = "/tmp/test-tracing.XXXXXX";
static char path[sizeof(directory) + 32];

/* --- Xen and the collector. --- */

int xen_host_trace_info(struct xen_host *host, uint32_t *ret_event_mask, bool *ret_allocated)
{
    (void)host;
    *ret_event_mask = xen.event_mask;
    *ret_allocated = !xen.is_unallocated;
    return 0;
}

int xen_host_set_event_mask(struct xen_host *host, uint32_t mask)
{
    (void)host;
    xen.calls++;
    if (xen.refuses_mask)
        return -EPERM;
    xen.event_mask = mask;
    return 0;
}

int xen_host_set_cpu_mask(struct xen_host *host, const struct cpu_set *set)
{
    (void)host;
    xen.calls++;
    if (xen.refuses_cpus)
        return -EPERM;
    xen.cpus = *set;
    return 0;
}

int xen_host_enable(struct xen_host *host)
{
    (void)host;
    xen.is_enabled = true;
    return 0;
}

int xen_host_disable(struct xen_host *host)
{
    (void)host;
    xen.calls++;
    if (xen.refuses_disable)
        return -EACCES;
    xen.is_enabled = false;
    return 0;
}

static const char *file_text(void);

int xen_host_allocate_buffers(struct xen_host *host, uint32_t pages, enum xen_step *ret_step)
{
    (void)host, (void)pages, (void)ret_step;
    (void)snprintf(xen.note, sizeof(xen.note), "%s", file_text());
    return 0;
}

int xen_host_map_buffers(struct xen_host *host, const struct xen_trace_buffers **ret_buffers)
{
    (void)host, (void)ret_buffers;
    return -ENOSYS;
}

int xen_host_free_bytes(struct xen_host *host, uint64_t *ret_bytes)
{
    (void)host, (void)ret_bytes;
    return -ENOSYS;
}

const struct xen_host_info *xen_host_info(const struct xen_host *host)
{
    (void)host;
    return NULL;
}

int collector_set_buffers(struct collector *collector, const struct xen_trace_buffers *buffers)
{
    (void)collector, (void)buffers;
    return 0;
}

/* --- The file. --- */

static void put_file(const char *text)
{
    FILE *file = fopen(path, "we");

    if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

static const char *file_text(void)
{
    static char text[64];
    FILE *file = fopen(path, "re");
    size_t length = 0;

    if (file) {
        length = fread(text, 1, sizeof(text) - 1, file);
        (void)fclose(file);
    }
    text[length] = '\0';
    return text;
}

/* --- A host that has booted, and daemons on it. --- */

static void boot(uint32_t mask)
{
    memset(&xen, 0, sizeof(xen));
    xen.event_mask = mask;
    (void)unlink(path);
}

static struct tracing *start_daemon(void)
{
    struct tracing *tracing = NULL;

    if (tracing_new(NULL, NULL, path, &tracing) < 0)
        exit(EXIT_FAILURE);
    return tracing;
}

static void start_use(struct tracing *tracing, struct tracing_use *use)
{
    struct failure failure = {0};

    *use = (struct tracing_use){.event_mask = SCHED_MASK, .enable = true};
    cpu_set_add(&use->cpus, 1);
    CHECK_INT(tracing_start(tracing, use, &failure), 0);
}

static void check_as_booted(void)
{
    CHECK(!xen.is_enabled);
    CHECK_UINT(xen.event_mask, BOOT_MASK);
    CHECK(cpu_set_has(&xen.cpus, 0) && cpu_set_has(&xen.cpus, 1));
}

/* --- Cases. --- */

static void test_noted(void)
{
    struct tracing_use use;
    struct tracing *tracing;
    struct stat status;

    test_case("the first daemon notes the mask when it sets another");
    boot(BOOT_MASK);
    tracing = start_daemon();
    CHECK_UINT(tracing_boot_event_mask(tracing), BOOT_MASK);
    CHECK_STR(file_text(), ""); /* a daemon that cannot start leaves nothing */
    start_use(tracing, &use);
    CHECK_STR(file_text(), "0x0001f000 used\n");
    tracing_free(tracing);
    CHECK(stat(path, &status) == 0); /* it outlives the daemon */
}

static void test_killed(void)
{
    struct tracing_use use;
    struct tracing *tracing;

    test_case("a daemon is killed while it records");
    boot(BOOT_MASK);
    tracing = start_daemon();
    start_use(tracing, &use);
    tracing_free(tracing); /* which tells Xen nothing */
    CHECK_UINT(xen.event_mask, SCHED_MASK);
    tracing = start_daemon();
    CHECK_UINT(tracing_event_mask(tracing), SCHED_MASK);
    CHECK_UINT(tracing_boot_event_mask(tracing), BOOT_MASK);
    CHECK(tracing_is_left_on(tracing));
    start_use(tracing, &use);
    CHECK(!tracing_is_left_on(tracing));
    CHECK_INT(tracing_mute(tracing, &use), 0);
    CHECK_INT(tracing_stop(tracing), 0);
    check_as_booted();
    CHECK(!tracing_is_left_on(tracing));
    tracing_free(tracing);
    tracing = start_daemon();
    CHECK(!tracing_is_left_on(tracing));
    tracing_free(tracing);
}

/* Xen's mask is 0 meanwhile, so that nothing is recorded before the buffers are mapped. */
static void test_killed_while_allocating(void)
{
    struct failure failure = {0};
    struct tracing *tracing;

    test_case("a daemon is killed while it has the buffers allocated");
    boot(BOOT_MASK);
    xen.is_unallocated = true;
    tracing = start_daemon();
    CHECK_INT(tracing_prepare(tracing, 0, 32, &failure), -ENOSYS); /* they cannot be mapped here */
    CHECK_STR(file_text(), "");
    tracing_free(tracing);
    put_file(xen.note);
    xen.is_unallocated = false;
    xen.is_enabled = true;
    xen.event_mask = 0;
    tracing = start_daemon();
    CHECK_UINT(tracing_boot_event_mask(tracing), BOOT_MASK);
    CHECK(tracing_is_left_on(tracing));
    CHECK_INT(tracing_stop(tracing), 0);
    check_as_booted();
    tracing_free(tracing);
}

/* What a boot parameter or a user wants traced is nobody's leftover. */
static void test_kept(void)
{
    struct tracing_use use = {.event_mask = SCHED_MASK, .enable = true};
    struct failure failure = {0};
    struct tracing *tracing;

    test_case("a session has left it enabled for good");
    boot(BOOT_MASK);
    tracing = start_daemon();
    start_use(tracing, &use);
    tracing_leave(tracing, &use, true);
    CHECK_STR(file_text(), "0x0001f000 kept\n");
    tracing_free(tracing);
    tracing = start_daemon();
    CHECK(!tracing_is_left_on(tracing));
    CHECK_UINT(tracing_boot_event_mask(tracing), BOOT_MASK);
    tracing_free(tracing);

    test_case("a session is handed over");
    boot(BOOT_MASK);
    tracing = start_daemon();
    start_use(tracing, &use);
    tracing_leave(tracing, &use, false);
    tracing_free(tracing);
    tracing = start_daemon();
    CHECK(tracing_is_left_on(tracing));
    tracing_free(tracing);

    test_case("a session could not start");
    boot(BOOT_MASK);
    tracing = start_daemon();
    xen.refuses_mask = true;
    CHECK(tracing_start(tracing, &use, &failure) < 0);
    tracing_free(tracing);
    tracing = start_daemon();
    CHECK(!tracing_is_left_on(tracing));
    tracing_free(tracing);

    test_case("the note of an older version");
    boot(SCHED_MASK);
    put_file("0x0001f000\n");
    tracing = start_daemon();
    CHECK(!tracing_is_left_on(tracing));
    CHECK_UINT(tracing_boot_event_mask(tracing), BOOT_MASK);
    tracing_free(tracing);
}

/* The ring that systemd kept knows the mask, too, and may come from a daemon that had no file. */
static void test_set(void)
{
    struct tracing *tracing;

    test_case("a kept ring knows the mask");
    boot(SCHED_MASK);
    tracing = start_daemon();
    tracing_set_boot_event_mask(tracing, BOOT_MASK);
    CHECK_UINT(tracing_boot_event_mask(tracing), BOOT_MASK);
    tracing_free(tracing);
    CHECK_STR(file_text(), "0x0001f000 unused\n");
    tracing = start_daemon();
    CHECK_UINT(tracing_boot_event_mask(tracing), BOOT_MASK);
    tracing_free(tracing);
}

/* Whatever is not a whole mask is replaced by the mask in force. */
static void test_garbage(void)
{
    static const struct {
        const char *name;
        const char *text;
    } cases[] = {
        {"an empty file", ""},
        {"half a file", "0x0001f0"},
        {"no end of line", "0x00020000"},
        {"a use that there is not", "0x00020000 borrowed\n"},
        {"a text", "none\n"},
        {"a negative number", "-0x0000001\n"},
        {"too large a number", "0x100020000\n"},
        {"something after the mask", "0x00020000\n\n"},
        {"a mask and a text", "0x00020000 or so\n"},
        {"a long file", "0x000200000000000000000000000000000000000000000000000000000000\n"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tracing_use use;
        struct tracing *tracing;

        test_case(cases[i].name);
        boot(BOOT_MASK);
        put_file(cases[i].text);
        tracing = start_daemon();
        CHECK_UINT(tracing_boot_event_mask(tracing), BOOT_MASK);
        start_use(tracing, &use);
        CHECK_STR(file_text(), "0x0001f000 used\n");
        tracing_free(tracing);
    }
}

/* A file that can be neither read nor replaced costs a line in the log. */
static void test_unreadable(void)
{
    struct tracing_use use;
    struct tracing *tracing;

    test_case("a file that cannot be read or written");
    boot(BOOT_MASK);
    CHECK_INT(mkdir(path, 0700), 0);
    tracing = start_daemon();
    start_use(tracing, &use);
    CHECK_UINT(tracing_boot_event_mask(tracing), BOOT_MASK);
    tracing_free(tracing);
    CHECK_INT(rmdir(path), 0);
}

static void test_force_stop(void)
{
    static const struct {
        const char *name;
        bool refuses_disable, refuses_mask, refuses_cpus;
        int error;
    } cases[] = {
        {"forced to stop while in use", .error = 0},
        {"forced, and Xen refuses to disable", .refuses_disable = true, .error = -EACCES},
        {"forced, and Xen refuses the event mask", .refuses_mask = true, .error = -EPERM},
        {"forced, and Xen refuses the CPU mask", .refuses_cpus = true, .error = -EPERM},
        {"forced, and Xen refuses everything", true, true, true, -EACCES},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tracing_use use;
        struct tracing *tracing;

        test_case(cases[i].name);
        boot(BOOT_MASK);
        tracing = start_daemon();
        start_use(tracing, &use);
        CHECK_INT(tracing_stop(tracing), 0); /* not while it is in use */
        CHECK(xen.is_enabled);
        xen.calls = 0;
        xen.refuses_disable = cases[i].refuses_disable;
        xen.refuses_mask = cases[i].refuses_mask;
        xen.refuses_cpus = cases[i].refuses_cpus;
        CHECK_INT(tracing_force_stop(tracing), cases[i].error);
        CHECK_UINT(xen.calls, 3); /* each is tried */
        CHECK(xen.is_enabled == cases[i].refuses_disable);
        CHECK(tracing_state(tracing) == (cases[i].refuses_disable ? TRACING_ON : TRACING_OFF));
        CHECK_UINT(xen.event_mask, cases[i].refuses_mask ? SCHED_MASK : BOOT_MASK);
        CHECK(cpu_set_has(&xen.cpus, 0) == !cases[i].refuses_cpus);
        tracing_free(tracing);
    }
}

int main(void)
{
    if (!mkdtemp(directory)) {
        perror(directory);
        return EXIT_FAILURE;
    }
    (void)snprintf(path, sizeof(path), "%s/boot-event-mask", directory);
    test_noted();
    test_killed();
    test_killed_while_allocating();
    test_kept();
    test_set();
    test_garbage();
    test_unreadable();
    test_force_stop();
    (void)unlink(path);
    CHECK_INT(rmdir(directory), 0); /* nothing is left over beside it */
    return test_end();
}

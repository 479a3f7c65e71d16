// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The vacuum on a real directory: what is listed as what, what is removed by itself and on request,
 * what stays.
 */

#include "daemon/output/vacuum.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/base/worker.h"
#include "tests/unit/test.h"

#define FILE_BYTES 100000

static struct {
    char path[64];
    int fd;
    sd_event *event;
    struct workers *workers;
    struct vacuum_context context;
    struct held_files *held_files;
    struct held_sum held; /* of the last answer */
    struct vacuum *vacuum;
    const char *running; /* NULL: none */
    unsigned int evicted;
    char text[512]; /* the names of the last answer that go, or all of a list */
    char error[128];
    struct vacuum_outcome outcome;
} rig;

static struct {
    uint64_t later_sec;    /* of CLOCK_BOOTTIME */
    uint64_t ahead_sec;    /* of CLOCK_REALTIME */
    uint64_t free_bytes;   /* of the disk; 0: what it has */
    atomic_int sync_error; /* of fdatasync(); 0: it succeeds */
    atomic_bool hangs;     /* ... once `thawed` is posted */
    sem_t thawed;
    atomic_uint syncs; /* begun */
} fake;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_fstatvfs(int fd, struct statvfs *fs);
int __wrap_fstatvfs(int fd, struct statvfs *fs);
int __wrap_fdatasync(int fd);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int r = __real_clock_gettime(clock, now);

    if (clock == CLOCK_BOOTTIME)
        now->tv_sec += (time_t)fake.later_sec;
    if (clock == CLOCK_REALTIME)
        now->tv_sec += (time_t)fake.ahead_sec;
    return r;
}

int __wrap_fstatvfs(int fd, struct statvfs *fs)
{
    int r = __real_fstatvfs(fd, fs);

    if (fake.free_bytes)
        fs->f_bavail = fake.free_bytes / fs->f_frsize;
    return r;
}

int __wrap_fdatasync(int fd)
{
    (void)fd;
    fake.syncs++;
    if (fake.hangs)
        (void)sem_wait(&fake.thawed);
    errno = fake.sync_error;
    return fake.sync_error ? -1 : 0;
}

static struct {
    unsigned int begun; /* requests that asked what is running */
    unsigned int ended;
    size_t files; /* in the last list */
} turns;

/* The log: a character for each line about a removed file, '+' for one about several; the last. */
static char lines[64];
static char last_line[512];

_printf_(1, 0) static void note_line(const char *format, va_list arguments)
{
    (void)vsnprintf(last_line, sizeof(last_line), format, arguments);
    if (strstr(last_line, "Removed ") && strlen(lines) < sizeof(lines) - 1)
        strcat(lines, strstr(last_line, " more trace") ? "+" : ".");
}

void log_line(int priority, const char *session, const char *format, ...)
{
    va_list arguments;

    (void)priority, (void)session;
    va_start(arguments, format);
    note_line(format, arguments);
    va_end(arguments);
}

void log_event(int priority, const struct log_about *about, const char *format, ...)
{
    va_list arguments;

    (void)priority;
    CHECK(about->file && strncmp(about->file, rig.path, strlen(rig.path)) == 0);
    va_start(arguments, format);
    note_line(format, arguments);
    va_end(arguments);
}

static void write_file(const char *name, const char *ending, const char *text, size_t bytes,
                       unsigned int hours)
{
    char file[128];
    struct timespec times[2];
    int fd;

    snprintf(file, sizeof(file), "%s%s", name, ending);
    fd = openat(rig.fd, file, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    if (fd < 0 || (text && write(fd, text, strlen(text)) < 0) ||
        (bytes && ftruncate(fd, (off_t)bytes) < 0))
        exit(EXIT_FAILURE);
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= hours * 3600;
    times[1] = times[0];
    futimens(fd, times);
    close(fd);
}

static void make_trace(const char *name, const char *sidecar, unsigned int hours)
{
    if (sidecar)
        write_file(name, ".json", sidecar, 0, hours);
    write_file(name, ".xentrace", NULL, FILE_BYTES, hours);
}

#define SNAPSHOT(cause)                                                                            \
    "{\"format\":\"xentraced-snapshot\",\"snapshot\":{\"cause\":\"" cause                          \
    "\",\"session\":\"flight-recorder\",\"label\":\"crash\","                                      \
    "\"reason\":\"Domain 3 (web (2)) crashed.\"}}"
#define REQUESTED(cause, uid)                                                                      \
    "{\"format\":\"xentraced-snapshot\",\"requested_by\":{\"uid\":" uid                            \
    ",\"comm\":\"x\"},\"snapshot\":{\"cause\":\"" cause "\"}}"
#define SEGMENT(keep)                                                                              \
    "{\"format\":\"xentraced-session\",\"name\":\"disk\",\"segment\":{},"                          \
    "\"segments\":{\"keep_files\":" keep "}}"
#define CAPTURE "{\"format\":\"xentraced-session\",\"name\":\"mine\"}"

static bool is_there(const char *name)
{
    char file[128];

    snprintf(file, sizeof(file), "%s.xentrace", name);
    return faccessat(rig.fd, file, F_OK, 0) == 0;
}

static size_t list_running(void *userdata, char (*names)[SESSION_NAME_MAX + 1], size_t room)
{
    (void)userdata, (void)room;
    turns.begun++;
    if (!rig.running)
        return 0;
    strcpy(names[0], rig.running);
    return 1;
}

static void evict(void *userdata, const char *session, unsigned int count)
{
    (void)userdata;
    CHECK_STR(session, rig.running);
    rig.evicted += count;
}

static void done(void *userdata, uint64_t ticket, const struct vacuum_result *result)
{
    (void)userdata, (void)ticket;
    rig.text[0] = '\0';
    snprintf(rig.error, sizeof(rig.error), "%s",
             result->failure->name ? result->failure->name : "");
    rig.outcome = result->outcome;
    rig.held = result->held;
    for (size_t i = 0; result->files && i < result->files->count; i++) {
        const struct state_file *file = &result->files->files[i];
        size_t length = strlen(rig.text);

        if (result->plan[i].goes)
            snprintf(rig.text + length, sizeof(rig.text) - length, "%s ", file->name);
    }
}

/* --- One request after the other. --- */

static void done_in_turn(void *userdata, uint64_t ticket, const struct vacuum_result *result)
{
    (void)userdata, (void)ticket;
    turns.ended++;
    CHECK_UINT(turns.begun, turns.ended);
    usleep(20000); /* a request that is carried out meanwhile would free what is read here */
    turns.files = 0;
    for (size_t i = 0; result->files && i < result->files->count; i++)
        turns.files += result->files->files[i].name[0] != '\0';
}

static void ask(const struct vacuum_request *request)
{
    CHECK_INT(vacuum_send(rig.vacuum, request, done, NULL, NULL), 0);
    workers_run_all(rig.workers);
}

static void clean(uint64_t max_use_bytes, bool dry_run)
{
    const struct vacuum_request request = {
        .action = VACUUM_CLEAN,
        .limits = {.max_use = {.kind = DISK_LIMIT_BYTES, .value = max_use_bytes},
                   .keep_free = {.kind = DISK_LIMIT_NONE}},
        .dry_run = dry_run,
    };

    ask(&request);
}

static void remove_one(const char *name)
{
    const struct vacuum_request request = {.action = VACUUM_REMOVE, .names = &name, .nr_names = 1};

    ask(&request);
}

static void fill(void)
{
    make_trace("snapshot-a", SNAPSHOT("request"), 9);
    make_trace("snapshot-b", SNAPSHOT("trigger"), 8);
    make_trace("snapshot-c", SNAPSHOT("trigger"), 30);
    make_trace("disk.00001", SEGMENT("3"), 7);
    make_trace("disk.00002", SEGMENT("3"), 6);
    make_trace("kept.00001", SEGMENT("0"), 99);
    make_trace("mine", CAPTURE, 99);
    make_trace("foreign", NULL, 99);
    make_trace("odd", "[1, 2", 99);
    write_file("notes", ".txt", "mine", 0, 99);
}

static void begin(const char *name)
{
    test_case(name);
    rig.running = NULL;
    rig.evicted = 0;
    fill();
}

static const struct state_file *find(struct state_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->files[i].name, name) == 0)
            return &files->files[i];
    return NULL;
}

static void test_list(void)
{
    const struct state_names running = {0};
    struct state_files *files = NULL;
    const struct state_file *file;

    begin("the directory is read");
    CHECK_INT(state_files_read(rig.fd, NULL, &running, &files), 0);
    CHECK_UINT(files->count, 9);
    CHECK(files->total_bytes > 0);
    file = find(files, "snapshot-b");
    if (CHECK(file)) {
        CHECK_INT(file->kind, STATE_FILE_SNAPSHOT);
        CHECK_STR(file->cause, "trigger");
        CHECK_STR(file->label, "crash");
        CHECK_STR(file->domain, "web (2)");
        CHECK(file->bytes > FILE_BYTES);
        CHECK(!file->is_open);
    }
    CHECK(find(files, "disk.00001")->is_of_ring);
    CHECK(!find(files, "kept.00001")->is_of_ring);
    CHECK_INT(find(files, "mine")->kind, STATE_FILE_CAPTURE);
    CHECK_INT(find(files, "foreign")->kind, STATE_FILE_UNKNOWN);
    CHECK_INT(find(files, "odd")->kind, STATE_FILE_UNKNOWN);
    state_files_free(files);
}

static void test_clean(void)
{
    begin("within the limit nothing goes");
    clean(100 * FILE_BYTES, false);
    CHECK_STR(rig.text, "");
    CHECK_UINT(rig.outcome.files, 0);

    begin("a dry run removes nothing");
    clean(3 * FILE_BYTES + 2000, true);
    CHECK_STR(rig.text, "snapshot-c snapshot-a ");
    CHECK(is_there("snapshot-c"));

    begin("the oldest go, with their sidecars");
    clean(3 * FILE_BYTES + 2000, false);
    CHECK(!is_there("snapshot-c") && !is_there("snapshot-a"));
    CHECK(faccessat(rig.fd, "snapshot-a.json", F_OK, 0) < 0);
    CHECK(is_there("snapshot-b") && is_there("disk.00001"));

    begin("what is not ours to remove stays");
    clean(1, false);
    CHECK(!is_there("snapshot-b") && !is_there("disk.00002"));
    CHECK(is_there("mine") && is_there("kept.00001") && is_there("foreign") && is_there("odd"));
    CHECK(faccessat(rig.fd, "notes.txt", F_OK, 0) == 0);

    begin("with the last segment goes the capture's sidecar");
    write_file("disk", ".json", CAPTURE, 0, 0);
    write_file("mine", ".json", CAPTURE, 0, 0);
    clean(3 * FILE_BYTES + 2000, false);
    CHECK(faccessat(rig.fd, "disk.json", F_OK, 0) == 0);
    clean(1, false);
    CHECK(faccessat(rig.fd, "disk.json", F_OK, 0) < 0);
    CHECK(faccessat(rig.fd, "mine.json", F_OK, 0) == 0);

    begin("what users asked for goes first, however new");
    make_trace("snapshot-user", REQUESTED("request", "1000"), 1);
    make_trace("snapshot-fired", REQUESTED("trigger", "1000"), 2);
    make_trace("snapshot-root", REQUESTED("request", "0"), 20);
    clean(6 * FILE_BYTES + 3000, false);
    CHECK_STR(rig.text, "snapshot-fired snapshot-user ");
    CHECK(is_there("snapshot-root") && is_there("snapshot-c"));
    remove_one("snapshot-root");

    begin("a running ring deletes its own");
    rig.running = "disk";
    clean(1, false);
    CHECK_UINT(rig.evicted, 2);
    CHECK(is_there("disk.00001") && !is_there("snapshot-a"));
}

static void test_open(void)
{
    int fd, lease;

    begin("a file that somebody reads stays");
    fd = openat(rig.fd, "snapshot-c.xentrace", O_RDONLY);
    lease = fcntl(fd, F_SETLEASE, F_RDLCK); /* whether there are leases here at all */
    fcntl(fd, F_SETLEASE, F_UNLCK);
    if (lease == 0) {
        clean(1, false);
        CHECK(is_there("snapshot-c") && !is_there("snapshot-a"));
    }
    close(fd);
    clean(1, false);
    CHECK(!is_there("snapshot-c"));
}

/* A new one may name as many files again. */
static void begin_log(const char *name)
{
    struct vacuum_context context = rig.context;

    begin(name);
    vacuum_free(rig.vacuum);
    workers_run_all(rig.workers);
    CHECK_INT(vacuum_new(&context, &rig.vacuum), 0);
}

/* Blocks on the disk, for fstat(2). */
static void fill_trace(const char *name)
{
    char file[128], bytes[FILE_BYTES];
    int fd;

    (void)snprintf(file, sizeof(file), "%s.xentrace", name);
    memset(bytes, 'x', sizeof(bytes));
    fd = openat(rig.fd, file, O_WRONLY);
    CHECK_INT(pwrite(fd, bytes, sizeof(bytes), 0), FILE_BYTES);
    (void)fsync(fd);
    (void)close(fd);
}

static void test_held(void)
{
    char byte;
    int fd;

    begin_log("a file that is open for too long goes");
    make_trace("snapshot-c", SNAPSHOT("trigger"), 30);
    fill_trace("snapshot-c");
    fd = openat(rig.fd, "snapshot-c.xentrace", O_RDONLY);
    clean(1, false);
    CHECK(is_there("snapshot-c"));
    fake.later_sec += 59;
    clean(1, false);
    CHECK(is_there("snapshot-c"));
    fake.later_sec += 1;
    clean(1, false);
    CHECK(!is_there("snapshot-c"));
    CHECK(strstr(last_line, "snapshot-c.xentrace") &&
          strstr(last_line, "A process still has it open"));

    test_case("... its reader reads on, and its space is counted");
    CHECK_INT(pread(fd, &byte, 1, FILE_BYTES - 1), 1);
    CHECK_UINT(rig.held.files, 1);
    CHECK(rig.held.bytes >= FILE_BYTES && rig.held.bytes < 2 * FILE_BYTES);
    CHECK_UINT(vacuum_disk(rig.vacuum)->held.files, 1);

    test_case("... until it is cut");
    fake.later_sec += 599;
    clean(1, false);
    CHECK_UINT(rig.held.files, 1);
    fake.later_sec += 1;
    clean(1, false);
    CHECK_UINT(rig.held.files, 0);
    CHECK_INT(pread(fd, &byte, 1, 0), 0);
    CHECK(strstr(last_line, "1 trace (") && strstr(last_line, "still open in other processes "
                                                              "after 10min, and was cut"));
    (void)close(fd);

    begin("a file that is closed again is not counted any more");
    fd = openat(rig.fd, "snapshot-c.xentrace", O_RDONLY);
    remove_one("snapshot-c");
    CHECK_UINT(rig.held.files, 1);
    (void)close(fd);
    clean(100 * FILE_BYTES, false);
    CHECK_UINT(rig.held.files, 0);

    begin("another time it is open is another time");
    fd = openat(rig.fd, "snapshot-c.xentrace", O_RDONLY);
    clean(1, false);
    (void)close(fd);
    fill();
    clean(100 * FILE_BYTES, false); /* nothing is to go: who reads does not matter */
    fake.later_sec += 100;
    fd = openat(rig.fd, "snapshot-c.xentrace", O_RDONLY);
    clean(1, false);
    CHECK(is_there("snapshot-c"));
    (void)close(fd);

    begin("only so many are held: the oldest is cut at once");
    {
        int fds[HELD_FILES_MAX + 1];
        char trace[32];

        for (unsigned int i = 0; i <= HELD_FILES_MAX; i++) {
            (void)snprintf(trace, sizeof(trace), "snapshot-x%u", i);
            make_trace(trace, SNAPSHOT("request"), 40);
            fill_trace(trace);
            (void)snprintf(trace, sizeof(trace), "snapshot-x%u.xentrace", i);
            fds[i] = openat(rig.fd, trace, O_RDONLY);
            remove_one(trace);
        }
        CHECK_UINT(rig.held.files, HELD_FILES_MAX);
        CHECK_INT(pread(fds[0], &byte, 1, 0), 0);
        CHECK_INT(pread(fds[1], &byte, 1, 0), 1);
        for (unsigned int i = 0; i <= HELD_FILES_MAX; i++)
            (void)close(fds[i]);
    }
    clean(100 * FILE_BYTES, false);
    CHECK_UINT(rig.held.files, 0);
}

static void test_remove(void)
{
    char path[128];

    begin("a trace is removed by its name");
    remove_one("mine");
    CHECK_STR(rig.error, "");
    CHECK(!is_there("mine"));
    CHECK(faccessat(rig.fd, "mine.json", F_OK, 0) < 0);

    begin("by its path");
    snprintf(path, sizeof(path), "%s/foreign.xentrace", rig.path);
    remove_one(path);
    CHECK(!is_there("foreign"));

    begin("a capture with all its segments");
    write_file("disk", ".json", CAPTURE, 0, 0);
    remove_one("disk");
    CHECK_UINT(rig.outcome.files, 2);
    CHECK(!is_there("disk.00001") && !is_there("disk.00002"));
    CHECK(faccessat(rig.fd, "disk.json", F_OK, 0) < 0);

    begin("not what there is not");
    remove_one("nothing");
    CHECK_STR(rig.error, ERROR_NO_FILE);
    remove_one("../etc/passwd");
    CHECK_STR(rig.error, ERROR_NO_FILE);
    remove_one("notes.txt");
    CHECK_STR(rig.error, ERROR_NO_FILE);

    begin("not what is running");
    rig.running = "disk";
    remove_one("disk.00001");
    CHECK_STR(rig.error, ERROR_BUSY);
    remove_one("disk");
    CHECK_STR(rig.error, ERROR_BUSY);
    CHECK(is_there("disk.00001"));
}

/* Requests that wait are answered in turn: the list that is being read stays. */
static void test_turns(void)
{
    const struct vacuum_request of_user = {.action = VACUUM_LIST,
                                           .who = {.is_set = true, .uid = 1000}};
    const struct vacuum_request list = {.action = VACUUM_LIST};
    const char *name = "mine";
    const struct vacuum_request removal = {.action = VACUUM_REMOVE, .names = &name, .nr_names = 1};

    begin("two lists in a row");
    memset(&turns, 0, sizeof(turns));
    CHECK_INT(vacuum_send(rig.vacuum, &list, done_in_turn, NULL, NULL), 0);
    CHECK_INT(vacuum_send(rig.vacuum, &list, done_in_turn, NULL, NULL), 0);
    workers_run_all(rig.workers);
    CHECK_UINT(turns.ended, 2);
    CHECK_UINT(turns.files, 9);

    begin("a list, a removal and a list");
    memset(&turns, 0, sizeof(turns));
    CHECK_INT(vacuum_send(rig.vacuum, &list, done_in_turn, NULL, NULL), 0);
    CHECK_INT(vacuum_send(rig.vacuum, &removal, done_in_turn, NULL, NULL), 0);
    CHECK_INT(vacuum_send(rig.vacuum, &list, done_in_turn, NULL, NULL), 0);
    workers_run_all(rig.workers);
    CHECK_UINT(turns.ended, 3);
    CHECK_UINT(turns.files, 8);

    begin("only so many wait, and users leave places for root");
    memset(&turns, 0, sizeof(turns));
    for (unsigned int i = 0; i < VACUUM_WAITING_MAX / 2 + 1; i++)
        CHECK_INT(vacuum_send(rig.vacuum, &of_user, done, NULL, NULL), 0);
    CHECK_INT(vacuum_send(rig.vacuum, &of_user, done, NULL, NULL), -EAGAIN);
    for (unsigned int i = 0; i < VACUUM_WAITING_MAX / 2; i++)
        CHECK_INT(vacuum_send(rig.vacuum, &list, done, NULL, NULL), 0);
    CHECK_INT(vacuum_send(rig.vacuum, &list, done, NULL, NULL), -EAGAIN);
    workers_run_all(rig.workers);
    CHECK_INT(vacuum_send(rig.vacuum, &list, done, NULL, NULL), 0);
    workers_run_all(rig.workers);
}

static void clean_for(const struct requester *who, unsigned int max_files, unsigned int max_hours)
{
    const struct vacuum_request request = {
        .action = VACUUM_CLEAN,
        .who = *who,
        .limits = {.max_use = {.kind = DISK_LIMIT_BYTES, .value = (max_files + 1) * FILE_BYTES - 1},
                   .keep_free = {.kind = DISK_LIMIT_NONE},
                   .max_age_usec = max_hours * 3600 * USEC_PER_SEC},
    };

    lines[0] = '\0';
    ask(&request);
}

static void test_log(void)
{
    const struct requester nobody = {0};
    const struct requester root = {.is_set = true, .uid = 0, .pid = 7, .comm = "xentracectl"};
    const char *name = "mine";
    const struct vacuum_request removal = {
        .action = VACUUM_REMOVE, .who = root, .names = &name, .nr_names = 1};
    char trace[32], wanted[256];

    begin_log("what is removed is named, with its size and why");
    clean_for(&nobody, 99, 20);
    CHECK_STR(lines, ".");
    (void)snprintf(wanted, sizeof(wanted),
                   "Removed %s/snapshot-c.xentrace (%s): it was older than 20h.", rig.path,
                   "97.8K");
    CHECK_STR(last_line, wanted);
    clean_for(&nobody, 4, 0);
    CHECK_STR(lines, "");
    make_trace("snapshot-c", SNAPSHOT("trigger"), 30);
    clean_for(&nobody, 4, 0);
    CHECK_STR(lines, ".");
    CHECK(strstr(last_line, "snapshot-c.xentrace (97.8K): the directory had more than "));

    begin_log("what was asked for is in the audit");
    clean_for(&root, 99, 20);
    CHECK(strstr(last_line, "Audit: Removed ") &&
          strstr(last_line, ": it was older than 20h, asked "
                            "for by root, UID 0 (xentracectl, PID 7)."));
    lines[0] = '\0';
    ask(&removal);
    CHECK_STR(lines, ".");
    CHECK(
        strstr(last_line, "mine.xentrace (97.7K): asked for by root, UID 0 (xentracectl, PID 7)."));

    begin_log("of many, some are named");
    for (unsigned int i = 0; i < VACUUM_LINES_MAX + 5; i++) {
        (void)snprintf(trace, sizeof(trace), "snapshot-%u", i);
        make_trace(trace, SNAPSHOT("request"), 40);
    }
    clean_for(&nobody, 99, 35);
    CHECK_STR(lines, "....................+");
    CHECK(strncmp(last_line, "Removed 5 more traces (489K) from ", 34) == 0);

    begin_log("a dry run is not logged, nor is a list");
    lines[0] = '\0';
    clean(1, true);
    CHECK_STR(lines, "");
}

/* As the timer's own request, with the limits of the configuration. */
static void look(void)
{
    const struct vacuum_request request = {.action = VACUUM_CLEAN, .limits = rig.context.limits};

    ask(&request);
}

static void test_keep_free(void)
{
    const struct disk_limits limits = {.max_use = {.kind = DISK_LIMIT_NONE},
                                       .keep_free = {.kind = DISK_LIMIT_BYTES, .value = 1 << 20}};

    begin("there is enough free space");
    make_trace("snapshot-new", SNAPSHOT("request"), 1);
    rig.context.limits = limits;
    vacuum_set_limits(rig.vacuum, &limits);
    fake.free_bytes = 1 << 20;
    look();
    CHECK_STR(rig.text, "");
    CHECK(!vacuum_disk(rig.vacuum)->is_of_others);

    test_case("others fill the disk: nothing goes");
    fake.free_bytes = 65536;
    look();
    look();
    CHECK_STR(rig.text, "");
    CHECK(vacuum_disk(rig.vacuum)->is_of_others);
    CHECK_UINT(vacuum_disk(rig.vacuum)->keep_free_bytes, 1 << 20);

    test_case("a new one makes room for itself");
    make_trace("snapshot-newer", SNAPSHOT("request"), 0);
    look();
    CHECK_STR(rig.text, "snapshot-c ");
    look();
    CHECK_STR(rig.text, "");

    begin_log("a daemon that starts on a full disk");
    look();
    CHECK_STR(rig.text, "");
    make_trace("snapshot-newest", SNAPSHOT("request"), 0);
    look();
    CHECK_STR(rig.text, "snapshot-c ");

    test_case("by hand, all but the newest of triggers and of root");
    {
        const struct vacuum_request request = {
            .action = VACUUM_CLEAN,
            .limits = {.max_use = {.kind = DISK_LIMIT_NONE},
                       .keep_free = {.kind = DISK_LIMIT_BYTES, .value = 1 << 30}}};

        ask(&request);
    }
    CHECK(!is_there("snapshot-a") && !is_there("snapshot-new") && is_there("snapshot-newest"));
    CHECK(is_there("snapshot-b")); /* a trigger's */
    remove_one("snapshot-newest");
    remove_one("snapshot-b");
    fake.free_bytes = 0;
    rig.context.limits = (struct disk_limits){0};
    vacuum_set_limits(rig.vacuum, &rig.context.limits);
}

/* SEC pass. */
static void wait_sec(uint64_t sec)
{
    fake.later_sec += sec;
    fake.ahead_sec += sec;
    look();
}

static void test_age(void)
{
    const struct disk_limits limits = {.max_use = {.kind = DISK_LIMIT_NONE},
                                       .keep_free = {.kind = DISK_LIMIT_NONE},
                                       .max_age_usec = 40 * 24 * 3600 * USEC_PER_SEC};
    const uint64_t day = 24 * 3600;

    begin_log("a clock that is wrong from the start has a day to be set right");
    rig.context.limits = limits;
    vacuum_set_limits(rig.vacuum, &limits);
    fake.ahead_sec = 20 * 365 * day;
    look();
    CHECK_STR(rig.text, "");
    wait_sec(day - 60);
    CHECK_STR(rig.text, "");
    fake.ahead_sec = day;
    look();
    wait_sec(day);
    CHECK_STR(rig.text, "");

    test_case("old files go when it has been right for a day");
    wait_sec(36 * day);
    CHECK_STR(rig.text, "");
    wait_sec(3 * day);
    CHECK(rig.outcome.files > 0);

    begin_log("a clock that is set ahead");
    vacuum_set_limits(rig.vacuum, &limits);
    look();
    wait_sec(2 * day);
    fake.ahead_sec += 41 * day;
    look();
    CHECK_STR(rig.text, "");
    wait_sec(day - 60);
    CHECK_STR(rig.text, "");
    wait_sec(120);
    CHECK(rig.outcome.files > 0);
    fake.ahead_sec = fake.later_sec = 0;
    rig.context.limits = (struct disk_limits){0};
    vacuum_set_limits(rig.vacuum, &rig.context.limits);
}

static bool is_listed;

static void note_list(void *userdata, uint64_t ticket, const struct vacuum_result *result)
{
    (void)userdata, (void)ticket, (void)result;
    is_listed = true;
}

static bool has_begun_sync(void)
{
    return fake.syncs > 0;
}
static bool has_listed(void)
{
    return is_listed;
}
static bool has_failed(void)
{
    return vacuum_disk(rig.vacuum)->error < 0;
}
static bool is_well(void)
{
    return vacuum_disk(rig.vacuum)->error == 0;
}

/* Runs the event loop until IS_SO; false: that takes too long. */
static bool run_until(bool (*is_so)(void))
{
    for (unsigned int i = 0; i < 600 && !is_so(); i++)
        (void)sd_event_run(rig.event, 100 * USEC_PER_MSEC);
    return is_so();
}

/* Lets the vacuum look soon; its write ends with ERROR. */
static void try_disk(int error)
{
    fake.sync_error = error;
    last_line[0] = '\0';
    vacuum_poke(rig.vacuum);
}

static void test_disk(void)
{
    const struct vacuum_request list = {.action = VACUUM_LIST};

    begin("a disk that does not answer holds up no list");
    fake.syncs = 0;
    fake.hangs = true;
    CHECK_INT(sem_init(&fake.thawed, 0, 0), 0);
    try_disk(0);
    CHECK(run_until(has_begun_sync));
    CHECK_INT(vacuum_send(rig.vacuum, &list, note_list, NULL, NULL), 0);
    CHECK(run_until(has_listed));
    fake.hangs = false;
    CHECK_INT(sem_post(&fake.thawed), 0);
    workers_run_all(rig.workers);

    test_case("a disk that has failed, and is repaired");
    try_disk(EIO);
    CHECK(run_until(has_failed));
    CHECK(strstr(last_line, "Cannot write to /tmp/test-vacuum."));
    CHECK(strstr(last_line, ": Input/output error. "));
    workers_run_all(rig.workers);
    try_disk(0);
    CHECK(run_until(is_well));
    CHECK(strstr(last_line, " can be written again."));
    workers_run_all(rig.workers);

    test_case("one that is full has not failed");
    try_disk(ENOSPC);
    fake.syncs = 0;
    CHECK(run_until(has_begun_sync));
    workers_run_all(rig.workers);
    CHECK(is_well());
    fake.sync_error = 0;
}

/* Those that wait are dropped with it. */
static void test_free(void)
{
    const struct vacuum_request list = {.action = VACUUM_LIST};

    begin("freed while requests wait, and the disk does not answer");
    fake.syncs = 0;
    fake.hangs = true;
    is_listed = false;
    try_disk(0);
    CHECK(run_until(has_begun_sync));
    CHECK_INT(vacuum_send(rig.vacuum, &list, note_list, NULL, NULL), 0);
    CHECK(run_until(has_listed)); /* after the look */
    memset(&turns, 0, sizeof(turns));
    for (unsigned int i = 0; i < 3; i++)
        CHECK_INT(vacuum_send(rig.vacuum, &list, done_in_turn, NULL, NULL), 0);
    vacuum_free(rig.vacuum);
    CHECK_INT(sem_post(&fake.thawed), 0);
    workers_run_all(rig.workers);
    CHECK_UINT(turns.begun, 1);
    CHECK_UINT(turns.ended, 0);
}

int main(void)
{
    struct vacuum_context *context = &rig.context;
    char command[128];

    signal(SIGIO, SIG_IGN);
    strcpy(rig.path, "/tmp/test-vacuum.XXXXXX");
    if (!mkdtemp(rig.path))
        return TEST_SKIPPED;
    rig.fd = open(rig.path, O_RDONLY | O_DIRECTORY);
    if (rig.fd < 0 || sd_event_new(&rig.event) < 0 || workers_new(rig.event, &rig.workers) < 0)
        return EXIT_FAILURE;
    if (held_files_new(&rig.held_files) < 0)
        return EXIT_FAILURE;
    *context = (struct vacuum_context){
        .event = rig.event,
        .workers = rig.workers,
        .state_dir_fd = rig.fd,
        .state_dir = rig.path,
        .held = rig.held_files,
        .list_running = list_running,
        .evict = evict,
    };
    if (vacuum_new(context, &rig.vacuum) < 0)
        return EXIT_FAILURE;
    test_list();
    test_clean();
    test_open();
    test_held();
    test_remove();
    test_turns();
    test_log();
    test_keep_free();
    test_age();
    test_disk();
    test_free();
    workers_run_all(rig.workers);
    workers_free(rig.workers);
    held_files_unref(rig.held_files);
    sd_event_unref(rig.event);
    snprintf(command, sizeof(command), "rm -rf %s", rig.path);
    CHECK_INT(system(command), 0);
    return test_end();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The vacuum on a real directory: what is listed as what, what is removed by itself and on request,
 * what stays.
 */

#include "daemon/output/vacuum.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
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
    struct vacuum *vacuum;
    const char *running; /* NULL: none */
    unsigned int evicted;
    char text[512]; /* the names of the last answer that go, or all of a list */
    char error[128];
    struct vacuum_outcome outcome;
} rig;

void log_line(int priority, const char *session, const char *format, ...)
{
    (void)priority, (void)session, (void)format;
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
    for (size_t i = 0; result->files && i < result->files->count; i++) {
        const struct state_file *file = &result->files->files[i];
        size_t length = strlen(rig.text);

        if (result->plan[i].goes)
            snprintf(rig.text + length, sizeof(rig.text) - length, "%s ", file->name);
    }
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

int main(void)
{
    struct vacuum_context context = {.list_running = list_running, .evict = evict};
    char command[128];

    signal(SIGIO, SIG_IGN);
    strcpy(rig.path, "/tmp/test-vacuum.XXXXXX");
    if (!mkdtemp(rig.path))
        return TEST_SKIPPED;
    rig.fd = open(rig.path, O_RDONLY | O_DIRECTORY);
    if (rig.fd < 0 || sd_event_new(&rig.event) < 0 || workers_new(rig.event, &rig.workers) < 0)
        return EXIT_FAILURE;
    context.event = rig.event;
    context.workers = rig.workers;
    context.state_dir_fd = rig.fd;
    context.state_dir = rig.path;
    if (vacuum_new(&context, &rig.vacuum) < 0)
        return EXIT_FAILURE;
    test_list();
    test_clean();
    test_open();
    test_remove();
    vacuum_free(rig.vacuum);
    workers_run_all(rig.workers);
    workers_free(rig.workers);
    sd_event_unref(rig.event);
    snprintf(command, sizeof(command), "rm -rf %s", rig.path);
    CHECK_INT(system(command), 0);
    return test_end();
}

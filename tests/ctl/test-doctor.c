// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The checks of doctor, each outcome of each: on machines that are a few files below a temporary
 * root, with status documents that are a few keys.
 */

#include <ftw.h>
#include <sys/stat.h>

#include "ctl/ctl.h"
#include "ctl/doctor.h"
#include "tests/unit/test.h"

/* Of main.c, which is not linked. */
void ctl_error(const char *format, ...)
{
    (void)format;
}

void ctl_error_sentence(const char *sentence)
{
    (void)sentence;
}

#define PASS DOCTOR_PASS
#define WARN DOCTOR_WARN
#define FAIL DOCTOR_FAIL
#define NONE DOCTOR_NOT_CHECKED

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* The answers of calls. */
static int uring_result, disk_result, clock_result;
static struct disk disk_answer;

static int try_uring(void)
{
    return uring_result;
}

static int read_disk(const char *path, struct disk *ret_disk)
{
    (void)path;
    if (disk_result == 0)
        *ret_disk = disk_answer;
    return disk_result;
}

static int is_synchronized(void)
{
    return clock_result;
}

struct doctor_case {
    const char *name;
    const char *check;
    enum doctor_verdict verdict;
    const char *text;   /* part of the sentence; NULL: any */
    const char *advice; /* part of it; NULL: there is none */
    const char *files;  /* "PATH=TEXT|PATH=TEXT"; a path that ends with / is a folder */
    const char *status; /* JSON; NULL: the daemon is not reached */
    const char *groups;
    uid_t uid;
    bool is_running;
    int uring, disk, clock;
    uint64_t free_bytes;
};

#define SYS         "/sys/hypervisor/"
#define RUNS(more)  "{\"sessions\":[{\"name\":\"a\",\"state\":\"running\"," more "}]}"
#define ENDED(more) "{\"sessions\":[{\"name\":\"a\",\"state\":\"ended\"," more "}]}"

static const struct doctor_case cases[] = {
    {"dom0", "control-domain", PASS, "control domain", NULL,
     .files = "/proc/xen/capabilities=control_d\n"},
    {"dom0 without xenfs", "control-domain", PASS, "control domain", NULL,
     .files = SYS "type=xen\n|" SYS "properties/features=00002b75\n"},
    {"a guest", "control-domain", FAIL, "guest", "dom0",
     .files = SYS "type=xen\n|" SYS "properties/features=00000705\n|/proc/xen/capabilities=\n"},
    {"a guest without xenfs", "control-domain", FAIL, "guest", "dom0", .files = SYS "type=xen\n"},
    {"no Xen", "control-domain", FAIL, "does not run under Xen", "boot entry", .uid = 0},
    {"another hypervisor", "control-domain", FAIL, "does not run under Xen", "boot entry",
     .files = SYS "type=other\n"},

    {"devices", "devices", PASS, NULL, NULL, .files = "/dev/xen/privcmd=|/dev/xen/evtchn="},
    {"no privcmd", "devices", FAIL, "/dev/xen/privcmd is missing", "modprobe xen-privcmd",
     .files = "/dev/xen/evtchn="},
    {"no evtchn", "devices", FAIL, "/dev/xen/evtchn is missing", "modprobe xen-evtchn",
     .files = "/dev/xen/privcmd="},

    {"Xen and its library", "xen", PASS, "Xen 4.20.1, library libxenctrl.so.4.20", NULL,
     .files = SYS "version/major=4\n|" SYS "version/minor=20\n|" SYS "version/extra=.1\n",
     .status = "{\"xen\":{\"version\":\"4.20.1\",\"library\":\"libxenctrl.so.4.20\"}}"},
    {"Xen alone", "xen", PASS, "Xen 4.17.", NULL,
     .files = SYS "version/major=4\n|" SYS "version/minor=17\n"},
    {"Xen as the daemon sees it", "xen", PASS, "Xen 4.17.6.", NULL,
     .status = "{\"xen\":{\"version\":\"4.17.6\"}}"},
    {"another library", "xen", FAIL, "Xen 4.20.1 runs, but xentraced uses the library of Xen 4.17",
     "systemctl restart xentraced",
     .status = "{\"xen\":{\"version\":\"4.20.1\",\"library\":\"libxenctrl.so.4.17\"}}"},
    {"an unknown library", "xen", PASS, NULL, NULL,
     .status = "{\"xen\":{\"version\":\"4.20.1\",\"library\":\"libxensim.so\"}}"},
    {"an old Xen", "xen", WARN, "Xen 4.14.1 is older than 4.17", "Upgrade",
     .status = "{\"xen\":{\"version\":\"4.14.1\"}}"},
    {"no version", "xen", NONE, NULL, NULL, .uid = 0},

    {"Linux 6.1", "kernel", PASS, "6.1.0-13-amd64", NULL,
     .files = "/proc/sys/kernel/osrelease=6.1.0-13-amd64\n"},
    {"Linux 5.19", "kernel", PASS, NULL, NULL, .files = "/proc/sys/kernel/osrelease=5.19.0\n"},
    {"Linux 5.18", "kernel", FAIL, "5.18.2 is too old", "newer kernel",
     .files = "/proc/sys/kernel/osrelease=5.18.2\n"},
    {"an unknown kernel", "kernel", NONE, NULL, NULL, .files = "/proc/sys/kernel/osrelease=odd\n"},

    {"io_uring", "io-uring", PASS, NULL, NULL, .uring = -EFAULT,
     .files = "/proc/sys/kernel/io_uring_disabled=0\n"},
    {"io_uring, an older kernel", "io-uring", PASS, NULL, NULL, .uring = -EINVAL},
    {"io_uring disabled", "io-uring", FAIL, "disabled", "sysctl kernel.io_uring_disabled=0",
     .files = "/proc/sys/kernel/io_uring_disabled=2\n"},
    {"io_uring disabled later", "io-uring", WARN, "will not start again", "sysctl",
     .files = "/proc/sys/kernel/io_uring_disabled=2\n", .is_running = true},
    {"io_uring restricted", "io-uring", FAIL, "privileged", "io_uring_group",
     .files = "/proc/sys/kernel/io_uring_disabled=1\n"},
    {"io_uring restricted later", "io-uring", WARN, "privileged", "io_uring_group",
     .files = "/proc/sys/kernel/io_uring_disabled=1\n", .is_running = true},
    {"no io_uring", "io-uring", FAIL, "has no io_uring", "CONFIG_IO_URING", .uring = -ENOSYS},

    {"the daemon has the VIRQ", "virq", PASS, "xentraced holds", NULL, .status = "{}"},
    {"nobody has the VIRQ", "virq", PASS, "No other", NULL,
     .files = "/proc/interrupts= 40: 7 xen-dyn-lateeoi evtchn:xenstored\n"},
    {"xentrace has the VIRQ", "virq", FAIL, "xentrace is running", "pgrep -a xentrace",
     .files = "/proc/interrupts= 40: 7 xen-dyn-lateeoi evtchn:xentrace\n 41: 0 x y\n"},
    {"xenbaked runs, too", "virq", WARN, "xenbaked is running", "pgrep -a xenbaked",
     .files = "/proc/interrupts= 40: 7 xen-dyn-lateeoi evtchn:xenbaked\n", .status = "{}"},
    {"a daemon that is not reached", "virq", PASS, "seems to", NULL,
     .files = "/proc/interrupts= 40: 7 xen-dyn-lateeoi evtchn:xentraced\n"},
    {"no interrupts", "virq", NONE, NULL, NULL, .uid = 0},

    {"the daemon", "daemon", PASS, "PID 7", NULL,
     .status = "{\"daemon\":{\"version\":\"" PACKAGE_VERSION "\",\"pid\":7}}"},
    {"no daemon", "daemon", FAIL, "not running", "systemctl start xentraced", .uid = 0},
    {"not permitted", "daemon", FAIL, "Not permitted", NULL, .is_running = true},
    {"another version", "daemon", WARN, "xentraced 0.0.1 is running", "systemctl restart",
     .status = "{\"daemon\":{\"version\":\"0.0.1\"}}"},

    {"the recorder runs", "recorder", PASS, "is running", NULL,
     .status = "{\"recorder\":{\"state\":\"running\"}}"},
    {"the recorder is off", "recorder", PASS, "off by configuration", NULL,
     .status = "{\"recorder\":{\"state\":\"off\"}}"},
    {"the recorder was stopped", "recorder", WARN, "stopped", "start flight-recorder",
     .status = "{\"recorder\":{\"state\":\"stopped\"}}"},
    {"the recorder failed", "recorder", FAIL, "failed", "journalctl",
     .status = "{\"recorder\":{\"state\":\"failed\"}}"},
    {"a daemon without a recorder", "recorder", NONE, NULL, NULL, .status = "{}"},
    {"no daemon, no recorder", "recorder", NONE, NULL, NULL, .uid = 0},

    {"the size in force", "buffers", PASS, "32 pages (128K)", NULL,
     .status = "{\"xen\":{\"buffer_pages\":32,\"buffer_pages_wanted\":0}}"},
    {"no buffers yet", "buffers", PASS, "no trace buffers yet", NULL,
     .status = "{\"xen\":{\"buffer_pages\":0,\"buffer_pages_wanted\":64}}"},
    {"another size", "buffers", WARN, "32 pages per CPU, but buffer-pages= is 64", "reboot",
     .status = "{\"xen\":{\"buffer_pages\":32,\"buffer_pages_wanted\":64}}"},

    {"all CPUs", "cpus", PASS, NULL, NULL,
     .status = RUNS("\"buffers\":{\"set_aside\":\"\",\"missing\":\"\",\"silent\":\"\"}")},
    {"a CPU without a buffer", "cpus", WARN, "no trace buffer and are not recorded: 5", "reboot",
     .status = RUNS("\"buffers\":{\"missing\":\"5\"}")},
    {"a silent CPU", "cpus", WARN, "Xen does not record them: 3", "reboot",
     .status = RUNS("\"buffers\":{\"silent\":\"3\"}")},
    {"a damaged buffer", "cpus", FAIL, "damaged and not read: 2", "xl dmesg",
     .status = RUNS("\"buffers\":{\"set_aside\":\"2\",\"missing\":\"5\",\"silent\":\"3\"}")},
    {"nothing is recorded", "cpus", NONE, NULL, NULL,
     .status = ENDED("\"buffers\":{\"missing\":\"5\"}")},

    {"no losses", "losses", PASS, NULL, NULL, .status = RUNS("\"ledger\":{\"lost\":0}")},
    {"losses of Xen", "losses", WARN, "a has lost records: 1,234 by Xen, 0 by",
     "buffer-pages=", .status = RUNS("\"ledger\":{\"lost\":1234,\"dropped\":0}")},
    {"losses of ours", "losses", WARN, "0 by Xen, 7 by xentraced",
     "pool-max=", .status = RUNS("\"ledger\":{\"lost\":0,\"dropped\":7}")},
    {"losses of ours by another cause", "losses", WARN, "0 by Xen, 7 by xentraced",
     "Most were dropped because the output failed",
     .status = RUNS("\"ledger\":{\"lost\":0,\"dropped\":7,\"dropped_by\":{\"slow-output\":2,"
                    "\"output-failed\":5}}")},
    {"losses now", "losses", FAIL, "a is losing records", "buffer-pages=",
     .status = RUNS("\"ledger\":{\"lost\":1,\"last_loss_ns\":1000000000000000000},"
                    "\"clock\":[{\"realtime_ns\":1000000001000000000}]")},

    {"memory", "memory", PASS, "2G of dom0's memory", NULL,
     .files = "/proc/meminfo=MemTotal: 1 kB\nMemAvailable:  2097152 kB\n"},
    {"little memory", "memory", FAIL, "Only 32M", "xl mem-set 0",
     .files = "/proc/meminfo=MemAvailable: 32768 kB\n"},
    {"less memory than the pool may take", "memory", WARN, "may grow by 448M",
     "pool-max=", .files = "/proc/meminfo=MemAvailable: 262144 kB\n",
     .status = "{\"daemon\":{\"pool_bytes\":67108864,\"pool_max_bytes\":536870912}}"},
    {"the pool was too small", "memory", WARN, "3 times",
     "pool-max=", .files = "/proc/meminfo=MemAvailable: 2097152 kB\n",
     .status = "{\"daemon\":{\"pool_refusals\":3}}"},
    {"unknown memory", "memory", NONE, NULL, NULL, .uid = 0},

    {"locked", "memory-lock", PASS, NULL, NULL, .status = "{\"daemon\":{\"memory_locked\":true}}"},
    {"not locked", "memory-lock", WARN, "Not all memory",
     "LimitMEMLOCK=", .status = "{\"daemon\":{\"memory_locked\":false}}"},
    {"a ring is not locked", "memory-lock", WARN, "memory of a", "LimitMEMLOCK=",
     .status = "{\"daemon\":{\"memory_locked\":true},\"sessions\":[{\"name\":\"a\",\"state\":"
               "\"running\",\"ring\":{\"memory_bytes\":1,\"locked\":false}}]}"},

    {"disk", "disk", PASS, "12G of 40G are free", NULL,
     .files = XENTRACED_STATE_DIR "/=", .free_bytes = 12 * GIB},
    {"the daemon's own folder", "disk", PASS, "free in /srv/traces", NULL,
     .status = "{\"daemon\":{\"state_dir\":\"/srv/traces\"}}", .free_bytes = 12 * GIB},
    {"a disk nearly full", "disk", WARN, "Only 1.5G of 40G", "not needed",
     .free_bytes = 1536 * MIB},
    {"a full disk", "disk", FAIL, "Only 10M is free", "not needed", .free_bytes = 10 * MIB},
    {"a disk that others fill", "disk", WARN, "keep-free=4G is not kept", "df -h",
     .status = "{\"disk\":{\"filled_by_others\":true,\"keep_free_bytes\":4294967296}}",
     .free_bytes = 12 * GIB},
    {"removed, but open", "disk", WARN, "2 removed traces (4G) still take up space", "lsof",
     .status = "{\"disk\":{\"held_files\":2,\"held_bytes\":4294967296}}", .free_bytes = 12 * GIB},
    {"a disk that hangs", "disk", FAIL, "does not answer", "dmesg", .disk = -ETIMEDOUT},
    {"no folder", "disk", WARN, "xentraced creates it", NULL, .disk = -ENOENT},
    {"no right", "disk", WARN, "Permission denied", NULL, .disk = -EACCES},
    {"a folder for everybody", "disk", FAIL, "is world-writable", "chmod o-w", .files = "/open/=",
     .status = "{\"daemon\":{\"state_dir\":\"/open\"}}", .free_bytes = 12 * GIB},

    {"outputs", "outputs", PASS, NULL, NULL, .status = RUNS("\"output\":{\"paused\":false}")},
    {"an output waits", "outputs", FAIL, "of a does not answer", "status a",
     .status = RUNS("\"output\":{\"waiting_since_ns\":5}")},
    {"a capture is paused", "outputs", WARN, "a is paused", "Free some space",
     .status = RUNS("\"output\":{\"paused\":true}")},

    {"no trigger", "triggers", PASS, "No trigger", NULL, .status = "{}"},
    {"a trigger", "triggers", PASS, "1 trigger is", NULL,
     .status = "{\"triggers\":[{\"name\":\"t\",\"state\":\"armed\",\"last_error\":\"\"}]}"},
    {"a trigger failed", "triggers", WARN, "trigger t failed: Full.", NULL,
     .status = "{\"triggers\":[{\"name\":\"t\",\"last_error\":\"Full.\"}]}"},
    {"a trigger without a ring", "triggers", WARN, "t has no ring", "start flight-recorder",
     .status = "{\"triggers\":[{\"name\":\"t\",\"state\":\"off\"}]}"},

    {"root", "rights", PASS, "You are root", NULL, .files = "/etc/group=xentrace:x:1:\n"},
    {"a viewer", "rights", PASS, "see the status", NULL, .files = "/etc/group=xentrace:x:1:a\n",
     .uid = 1000, .groups = " users xentrace "},
    {"an operator", "rights", PASS, "start and stop captures (group adm)", NULL,
     .files = "/etc/group=adm:x:2:\nxentrace:x:1:\n", .uid = 1000, .groups = " adm ",
     .status = "{\"daemon\":{\"control_group\":\"adm\"}}"},
    {"nobody", "rights", WARN, "have no access", "usermod -aG xentrace",
     .files = "/etc/group=xentrace:x:1:\nmyxentrace:x:3:\n", .uid = 1000,
     .groups = " users myxentrace xentracex "},
    {"no group", "rights", WARN, "group xentrace, whose", "systemd-sysusers",
     .files = "/etc/group=adm:x:2:\n"},
    {"no control group", "rights", WARN, "group adm, set by", "groupadd",
     .files = "/etc/group=xentrace:x:1:\n", .status = "{\"daemon\":{\"control_group\":\"adm\"}}"},

    {"clock", "clock", PASS, "synchronized; clock source: tsc", NULL, .clock = 1,
     .files = "/sys/devices/system/clocksource/clocksource0/current_clocksource=tsc\n"},
    {"an unknown clock", "clock", PASS, "running", NULL, .clock = -EPERM},
    {"nobody sets the clock", "clock", WARN, "not synchronized", "timedatectl", .clock = 0},
    {"another clock source", "clock", WARN, "hpet", "TSC", .clock = 1,
     .files = "/sys/devices/system/clocksource/clocksource0/current_clocksource=hpet\n"},
    {"a clock that is not learned", "clock", WARN, "only to within 5ms", "improves while",
     .clock = 1, .status = RUNS("\"host\":{\"tsc_offset_uncertainty_ns\":5000000}")},

    {"control characters", "triggers", WARN, "trigger t failed: ?[31m", NULL,
     .status = "{\"triggers\":[{\"name\":\"t\",\"last_error\":\"\\u001b[31m\"}]}"},
    {"wrong types", "losses", PASS, NULL, NULL,
     .status = "{\"sessions\":[7,{\"state\":[],\"ledger\":{\"lost\":\"x\"},\"buffers\":3}],"
               "\"xen\":[],\"daemon\":\"no\",\"triggers\":{}}"},
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void make_directories(const char *path)
{
    char part[512];

    for (const char *p = path + 1; (p = strchr(p, '/')); p++) {
        (void)snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
        (void)mkdir(part, 0755); /* or it is there */
    }
}

/* Files as in a case. */
static void make_files(const char *root, const char *files)
{
    _cleanup_free_ char *text = strdup(files);
    char *rest = NULL;

    for (char *item = strtok_r(text, "|", &rest); item; item = strtok_r(NULL, "|", &rest)) {
        char path[512], *content = strchr(item, '=');
        _cleanup_file_ FILE *file = NULL;

        *content++ = 0;
        (void)snprintf(path, sizeof(path), "%s%s", root, item);
        make_directories(path);
        if (path[strlen(path) - 1] == '/') {
            path[strlen(path) - 1] = 0;
            if (strcmp(item, "/open/") == 0)
                CHECK_INT(chmod(path, 0777), 0);
            continue;
        }
        file = fopen(path, "we");
        if (CHECK(file))
            CHECK(fputs(content, file) >= 0);
    }
}

static const struct doctor_finding *find(const struct doctor_report *report, const char *check)
{
    for (size_t i = 0; i < report->count; i++) {
        if (strcmp(report->findings[i].name, check) == 0)
            return &report->findings[i];
    }
    return NULL;
}

static void check_finding(const struct doctor_case *c, const struct doctor_finding *finding)
{
    if (!CHECK(finding))
        return;
    CHECK_STR(doctor_verdict_name(finding->verdict), doctor_verdict_name(c->verdict));
    CHECK((finding->verdict == NONE) == !finding->text);
    if (c->text && !CHECK(finding->text && strstr(finding->text, c->text)))
        TEST_SAY("the text is: %s", finding->text ? finding->text : "-");
    if (c->advice)
        CHECK(finding->advice && strstr(finding->advice, c->advice));
    else
        CHECK_STR(finding->advice, NULL);
}

static void run(const struct doctor_case *c)
{
    char root[] = "/tmp/test-doctor-XXXXXX";
    _cleanup_doctor_report_ struct doctor_report report = {0};
    _cleanup_doc_ struct json_object *status = NULL;
    struct doctor_env env = {
        .root = mkdtemp(root),
        .is_running = c->is_running || c->status,
        .unreachable = "Not permitted to reach xentraced.",
        .uid = c->uid,
        .groups = c->groups ? c->groups : " ",
        .try_uring = try_uring,
        .read_disk = read_disk,
        .is_synchronized = is_synchronized,
    };

    test_case(c->name);
    if (!CHECK(env.root))
        return;
    if (c->files)
        make_files(root, c->files);
    if (c->status)
        CHECK_INT(doc_parse(c->status, strlen(c->status), &status), 0);
    env.status = status;
    uring_result = c->uring;
    disk_result = c->disk;
    clock_result = c->clock;
    disk_answer = (struct disk){.free_bytes = c->free_bytes, .bytes = 40 * GIB};
    doctor_examine(&env, &report);
    check_finding(c, find(&report, c->check));
    CHECK(report.failures + report.warnings <= report.count);
    CHECK_INT(nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        run(&cases[i]);
    return test_end();
}

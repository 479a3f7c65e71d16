// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the machine shows of itself, to any user. Sources: Linux' Documentation/ABI/
 * (sysfs-hypervisor-xen), drivers/xen/evtchn.c (names of interrupts), Documentation/admin-guide/
 * sysctl/kernel.rst (io_uring_disabled), Xen's public/features.h.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/units.h"
#include "ctl/doctor-internal.h"
#include "ctl/str.h"

#define XENFEAT_DOM0 11u /* the bit in /sys/hypervisor/properties/features */

#define XEN_MAJOR_MIN    4u /* 4.17: older ones were never tried */
#define XEN_MINOR_MIN    17u
#define KERNEL_MAJOR_MIN 5u /* 5.19: io_uring with SINGLE_ISSUER and COOP_TASKRUN */
#define KERNEL_MINOR_MIN 19u

#define MEMORY_LEAST (64 * 1024 * 1024ull) /* that dom0 needs for itself */
#define DISK_LEAST   (64 * 1024 * 1024ull) /* of free space: fail; 16 times that: warn */

void doctor_check_control_domain(const struct doctor_env *env, struct doctor_finding *finding)
{
    _cleanup_free_ char *type = doctor_read_line(env, "/sys/hypervisor/type");
    _cleanup_free_ char *capabilities = doctor_read_line(env, "/proc/xen/capabilities");
    _cleanup_free_ char *features = doctor_read_line(env, "/sys/hypervisor/properties/features");
    bool is_dom0 = features && strtoul(features, NULL, 16) >> XENFEAT_DOM0 & 1;

    if ((capabilities && strstr(capabilities, "control_d")) || is_dom0) {
        doctor_say(finding, DOCTOR_PASS, "This is Xen's control domain.");
    } else if (!capabilities && (!type || strcmp(type, "xen") != 0)) {
        doctor_say(finding, DOCTOR_FAIL, "This system does not run under Xen.");
        doctor_advise(finding, "Reboot, and choose the boot entry that starts Xen.");
    } else {
        doctor_say(finding, DOCTOR_FAIL, "This is a guest of Xen, which may not trace the host.");
        doctor_advise(finding, "Use xentraced in the control domain (dom0).");
    }
}

/* Newer ones have /dev/xen/hypercall, too; libxencall does without it. */
void doctor_check_devices(const struct doctor_env *env, struct doctor_finding *finding)
{
    static const struct {
        const char *path, *module;
    } devices[] = {
        {"/dev/xen/privcmd", "xen-privcmd"},
        {"/dev/xen/evtchn", "xen-evtchn"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
        _cleanup_free_ char *path = doctor_path(env, devices[i].path);

        if (path && access(path, F_OK) == 0)
            continue;
        doctor_say(finding, DOCTOR_FAIL, "%s is missing.", devices[i].path);
        doctor_advise(finding, "modprobe %s", devices[i].module);
    }
    doctor_say(finding, DOCTOR_PASS, "Xen's device nodes exist.");
}

/* Of "4.17.6-rc1" or "libxenctrl.so.4.17", what begins at the first digit. */
static bool read_version(const char *text, unsigned int *ret_major, unsigned int *ret_minor)
{
    text += strcspn(text, "0123456789");
    return sscanf(text, "%u.%u", ret_major, ret_minor) == 2;
}

static char *read_xen_version(const struct doctor_env *env)
{
    _cleanup_free_ char *major = doctor_read_line(env, "/sys/hypervisor/version/major");
    _cleanup_free_ char *minor = doctor_read_line(env, "/sys/hypervisor/version/minor");
    _cleanup_free_ char *extra = doctor_read_line(env, "/sys/hypervisor/version/extra");
    const char *told = doc_text(env->status, "xen.version", NULL);

    if (major && minor)
        return str_format("%s.%s%s", major, minor, extra ? extra : "");
    return told ? strdup(told) : NULL;
}

/* Sysctls differ between versions of Xen: libxenctrl works with its own one only. */
void doctor_check_xen(const struct doctor_env *env, struct doctor_finding *finding)
{
    const char *library = doc_text(env->status, "xen.library", "");
    _cleanup_free_ char *version = read_xen_version(env);
    unsigned int major, minor, library_major, library_minor;
    bool is_known;

    if (!version || !read_version(version, &major, &minor))
        return;
    is_known = read_version(library, &library_major, &library_minor);
    if (is_known && (library_major != major || library_minor != minor)) {
        doctor_say(finding, DOCTOR_FAIL,
                   "Xen %s runs, but xentraced uses the library of Xen %u.%u.", version,
                   library_major, library_minor);
        doctor_advise(finding, "Boot the Xen that is installed, or install the libraries of the "
                               "Xen that runs; then: systemctl restart xentraced");
    }
    if (major < XEN_MAJOR_MIN || (major == XEN_MAJOR_MIN && minor < XEN_MINOR_MIN)) {
        doctor_say(finding, DOCTOR_WARN,
                   "Xen %s is older than %u.%u, with which xentraced was "
                   "tested.",
                   version, XEN_MAJOR_MIN, XEN_MINOR_MIN);
        doctor_advise(finding, "Upgrade Xen.");
    }
    doctor_say(finding, DOCTOR_PASS, "Xen %s%s%s.", version, *library ? ", library " : "", library);
}

void doctor_check_kernel(const struct doctor_env *env, struct doctor_finding *finding)
{
    _cleanup_free_ char *release = doctor_read_line(env, "/proc/sys/kernel/osrelease");
    unsigned int major, minor;

    if (!release || !read_version(release, &major, &minor))
        return;
    if (major < KERNEL_MAJOR_MIN || (major == KERNEL_MAJOR_MIN && minor < KERNEL_MINOR_MIN)) {
        doctor_say(finding, DOCTOR_FAIL, "Linux %s is too old: xentraced needs %u.%u.", release,
                   KERNEL_MAJOR_MIN, KERNEL_MINOR_MIN);
        doctor_advise(finding, "Boot a newer kernel in dom0.");
        return;
    }
    doctor_say(finding, DOCTOR_PASS, "Linux %s.", release);
}

/*
 * While the daemon runs it has its io_uring; a restriction that came later hits its next start. Our
 * own try tells nothing then but that the kernel has io_uring at all.
 */
void doctor_check_uring(const struct doctor_env *env, struct doctor_finding *finding)
{
    _cleanup_free_ char *disabled = doctor_read_line(env, "/proc/sys/kernel/io_uring_disabled");
    enum doctor_verdict verdict = env->is_running ? DOCTOR_WARN : DOCTOR_FAIL;
    const char *later = env->is_running ? "; xentraced will not start again" : "";

    if (disabled && strcmp(disabled, "2") == 0) {
        doctor_say(finding, verdict, "io_uring is disabled (kernel.io_uring_disabled = 2)%s.",
                   later);
        doctor_advise(finding, "sysctl kernel.io_uring_disabled=0, and the same in /etc/sysctl.d/");
    } else if (disabled && strcmp(disabled, "1") == 0) {
        doctor_say(finding, verdict,
                   "io_uring is for privileged processes only (kernel.io_uring_disabled = 1)%s.",
                   later);
        doctor_advise(finding, "sysctl kernel.io_uring_disabled=0, or set kernel.io_uring_group to "
                               "the group that xentraced runs as");
    } else if (env->try_uring() == -ENOSYS) {
        doctor_say(finding, DOCTOR_FAIL, "The kernel has no io_uring.");
        doctor_advise(finding, "Boot a kernel with CONFIG_IO_URING=y.");
    }
    doctor_say(finding, DOCTOR_PASS, "io_uring is available.");
}

/* A user's event channel is an interrupt named after the program: "evtchn:xentrace". */
void doctor_check_virq(const struct doctor_env *env, struct doctor_finding *finding)
{
    static const char *const others[] = {"xentrace", "xenbaked"};
    _cleanup_free_ char *interrupts = doctor_read_file(env, "/proc/interrupts");
    char name[32];

    if (interrupts) /* its lines end with the name */
        for (char *p = interrupts; *p; p++)
            if (*p == '\n' || *p == '\t')
                *p = ' ';
    for (size_t i = 0; interrupts && i < ARRAY_SIZE(others); i++) {
        (void)snprintf(name, sizeof(name), "evtchn:%s", others[i]);
        if (!doctor_has_word(interrupts, name))
            continue;
        doctor_say(finding, env->status ? DOCTOR_WARN : DOCTOR_FAIL,
                   "%s is running, and may hold VIRQ_TBUF: Xen gives its records to one program.",
                   others[i]);
        doctor_advise(finding,
                      "Find it with: pgrep -a %s. End it if it is not needed. xentraced, if it "
                      "waits for that, starts within 5 s, else with: systemctl start xentraced",
                      others[i]);
    }
    if (env->status)
        doctor_say(finding, DOCTOR_PASS, "xentraced holds VIRQ_TBUF.");
    else if (env->is_running || (interrupts && doctor_has_word(interrupts, "evtchn:xentraced")))
        doctor_say(finding, DOCTOR_PASS, "xentraced seems to hold VIRQ_TBUF.");
    else if (interrupts)
        doctor_say(finding, DOCTOR_PASS, "No other tracer holds VIRQ_TBUF.");
}

void doctor_check_memory(const struct doctor_env *env, struct doctor_finding *finding)
{
    _cleanup_free_ char *meminfo = doctor_read_file(env, "/proc/meminfo");
    const char *line = meminfo ? strstr(meminfo, "MemAvailable:") : NULL;
    uint64_t refusals = doc_number(env->status, "daemon.pool_refusals"), available = 0, kib;
    uint64_t pool = doc_number(env->status, "daemon.pool_bytes");
    uint64_t pool_max = doc_number(env->status, "daemon.pool_max_bytes");
    char left[UNITS_TEXT_MAX], more[UNITS_TEXT_MAX];

    if (!line || sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1)
        return;
    available = kib * 1024;
    (void)size_format(left, available);
    if (available < MEMORY_LEAST) {
        doctor_say(finding, DOCTOR_FAIL, "Only %s of dom0's memory is available.", left);
        doctor_advise(finding, "Give dom0 more memory: xl mem-set 0 SIZE, and dom0_mem= for Xen.");
    } else if (pool_max > pool && available < pool_max - pool + MEMORY_LEAST) {
        doctor_say(finding, DOCTOR_WARN,
                   "%s of dom0's memory is available, but the pool may grow by %s.", left,
                   size_format(more, pool_max - pool));
        doctor_advise(finding, "Give dom0 more memory, or set a lower pool-max= in "
                               "/etc/xentraced/xentraced.conf.");
    } else if (refusals) {
        doctor_say(finding, DOCTOR_WARN,
                   "The pool needed more memory %" PRIu64 " time%s, and had "
                   "reached its limit.",
                   refusals, refusals == 1 ? "" : "s");
        doctor_advise(finding, "Set a higher pool-max= in /etc/xentraced/xentraced.conf, or write "
                               "to a faster disk.");
    }
    doctor_say(finding, DOCTOR_PASS, "%s of dom0's memory is available.", left);
}

static void check_directory(const struct doctor_env *env, struct doctor_finding *finding,
                            const char *path)
{
    _cleanup_free_ char *full = doctor_path(env, path);
    struct stat st;

    if (!full || stat(full, &st) < 0 || !(st.st_mode & S_IWOTH))
        return;
    doctor_say(finding, DOCTOR_FAIL, "%s is world-writable.", path);
    doctor_advise(finding, "chmod o-w %s", path);
}

/* What the daemon cannot do about a full disk. */
static void check_limits(const struct doctor_env *env, struct doctor_finding *finding,
                         const char *path)
{
    uint64_t held = doc_number(env->status, "disk.held_files");
    char size[UNITS_TEXT_MAX];

    if (doc_flag(env->status, "disk.filled_by_others")) {
        doctor_say(finding, DOCTOR_WARN,
                   "Files that xentraced may not remove fill the disk of %s: keep-free=%s is not "
                   "kept, and old traces are only removed to make room for new ones.",
                   path, size_format(size, doc_number(env->status, "disk.keep_free_bytes")));
        doctor_advise(finding, "Free some space: df -h %s", path);
    }
    if (held) {
        doctor_say(finding, DOCTOR_WARN,
                   "%" PRIu64 " removed trace%s (%s) still take%s up space: other processes have "
                   "%s open.",
                   held, held == 1 ? "" : "s",
                   size_format(size, doc_number(env->status, "disk.held_bytes")),
                   held == 1 ? "s" : "", held == 1 ? "it" : "them");
        doctor_advise(finding, "To see which: lsof +L1. The space is free after 10 minutes.");
    }
}

void doctor_check_disk(const struct doctor_env *env, struct doctor_finding *finding)
{
    const char *path = doc_text(env->status, "daemon.state_dir", XENTRACED_STATE_DIR);
    _cleanup_free_ char *full = doctor_path(env, path);
    char left[UNITS_TEXT_MAX], all[UNITS_TEXT_MAX];
    struct disk disk;
    int r;

    r = full ? env->read_disk(full, &disk) : -ENOMEM;
    if (r == -ETIMEDOUT) {
        doctor_say(finding, DOCTOR_FAIL, "The file system of %s does not answer.", path);
        doctor_advise(finding,
                      "See: dmesg. The file system may be frozen, or its server unreachable.");
        return;
    }
    if (r == -ENOENT) {
        doctor_say(finding, DOCTOR_WARN, "%s does not exist; xentraced creates it when it starts.",
                   path);
        return;
    }
    if (r < 0) {
        errno = -r;
        doctor_say(finding, DOCTOR_WARN, "Cannot examine %s: %m.", path);
        return;
    }
    check_directory(env, finding, path);
    (void)size_format(left, disk.free_bytes);
    if (disk.free_bytes < DISK_LEAST) {
        doctor_say(finding, DOCTOR_FAIL, "Only %s is free in %s.", left, path);
        doctor_advise(finding, "Remove captures that are not needed: ls -lt %s", path);
    } else if (disk.free_bytes < 16 * DISK_LEAST || disk.free_bytes < disk.bytes / 20) {
        doctor_say(finding, DOCTOR_WARN, "Only %s of %s is free in %s.", left,
                   size_format(all, disk.bytes), path);
        doctor_advise(finding, "Remove captures that are not needed: ls -lt %s", path);
    }
    check_limits(env, finding, path);
    doctor_say(finding, DOCTOR_PASS, "%s of %s are free in %s.", left, size_format(all, disk.bytes),
               path);
}

/* A line "NAME:..." of /etc/group; groups of a directory service are not looked for. */
static bool has_group(const char *groups, const char *name)
{
    size_t length = strlen(name);

    for (const char *p = groups; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        if (strncmp(p, name, length) == 0 && p[length] == ':')
            return true;
    }
    return false;
}

void doctor_check_rights(const struct doctor_env *env, struct doctor_finding *finding)
{
    const char *control = doc_text(env->status, "daemon.control_group", "");
    _cleanup_free_ char *groups = doctor_read_file(env, "/etc/group");

    if (groups && !has_group(groups, "xentrace") && !doctor_has_word(env->groups, "xentrace")) {
        doctor_say(finding, DOCTOR_WARN,
                   "The group xentrace, whose members may see the status, does not exist.");
        doctor_advise(finding, "systemd-sysusers");
    }
    if (groups && *control && !has_group(groups, control) &&
        !doctor_has_word(env->groups, control)) {
        doctor_say(finding, DOCTOR_WARN, "The group %s, set by control-group=, does not exist.",
                   control);
        doctor_advise(finding,
                      "groupadd --system %s, or correct "
                      "/etc/xentraced/xentraced.conf",
                      control);
    }
    if (env->uid == 0) {
        doctor_say(finding, DOCTOR_PASS, "You are root and have full access.");
    } else if (*control && doctor_has_word(env->groups, control)) {
        doctor_say(finding, DOCTOR_PASS, "You may start and stop captures (group %s).", control);
    } else if (doctor_has_word(env->groups, "xentrace")) {
        doctor_say(finding, DOCTOR_PASS,
                   "You may see the status and take snapshots (group "
                   "xentrace).");
    } else {
        doctor_say(finding, DOCTOR_WARN,
                   "You have no access to xentraced: you are neither root nor a member of the "
                   "group xentrace.");
        doctor_advise(finding, "As root: usermod -aG xentrace USER; then log in again.");
    }
}

/* By the newest session: its records are dated with it. */
static uint64_t read_uncertainty_ns(const struct doctor_env *env)
{
    struct json_object *sessions = doc_array(env->status, "sessions");

    return doc_length(sessions) ? doc_number(doc_at(sessions, 0), "host.tsc_offset_uncertainty_ns")
                                : 0;
}

void doctor_check_clock(const struct doctor_env *env, struct doctor_finding *finding)
{
    _cleanup_free_ char *source =
        doctor_read_line(env, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    uint64_t uncertainty_ns = read_uncertainty_ns(env);
    char time[UNITS_TEXT_MAX];

    if (env->is_synchronized() == 0) {
        doctor_say(finding, DOCTOR_WARN, "The wall clock is not synchronized: dates may be wrong.");
        doctor_advise(finding, "timedatectl set-ntp true");
    }
    if (source && strcmp(source, "tsc") != 0 && strcmp(source, "xen") != 0) {
        doctor_say(finding, DOCTOR_WARN, "The kernel keeps time with %s, not with the TSC.",
                   source);
        doctor_advise(finding, "See: dmesg | grep -i tsc; the TSC may be unstable, and the times "
                               "of records may be wrong.");
    }
    if (uncertainty_ns > NSEC_PER_SEC / 1000) {
        doctor_say(finding, DOCTOR_WARN, "The times of records are accurate only to within %s.",
                   duration_format(time, uncertainty_ns / NSEC_PER_USEC));
        doctor_advise(finding, "The accuracy improves while records are captured.");
    }
    doctor_say(finding, DOCTOR_PASS, "The wall clock is %s%s%s.",
               env->is_synchronized() == 1 ? "synchronized" : "running",
               source ? "; clock source: " : "", source ? source : "");
}

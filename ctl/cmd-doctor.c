// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl doctor: the checks of ctl/doctor.h, on this machine. */

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timex.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/color.h"
#include "ctl/ctl.h"
#include "ctl/doctor.h"
#include "ctl/str.h"

#define ANSWER_USEC (5 * USEC_PER_SEC)
#define DISK_USEC   (2 * USEC_PER_SEC)
#define GROUPS_MAX  1024 /* of a user; with more, none but the main one is known */
#define TEXT_COLUMN 22

/* With arguments that are refused, unless there is no such system call. */
static int try_uring(void)
{
    long fd = syscall(SYS_io_uring_setup, 0, NULL);

    if (fd < 0)
        return -errno;
    (void)close((int)fd);
    return 0;
}

static int read_disk(const char *path, struct disk *ret_disk)
{
    return disk_read(path, DISK_USEC, ret_disk);
}

static int is_synchronized(void)
{
    struct timex timex = {0};
    int state = adjtimex(&timex);

    if (state < 0)
        return -errno;
    return state != TIME_ERROR && !(timex.status & STA_UNSYNC);
}

/* Adds the name of a group to TEXT, which may be NULL and is freed. */
static char *add_group(char *text, gid_t id)
{
    const struct group *group = getgrgid(id);
    char *longer;

    if (!group || !text)
        return text;
    longer = str_format("%s%s ", text, group->gr_name);
    free(text);
    return longer;
}

/* " xentrace adm ": what the process has, which is what the daemon sees. NULL: no memory. */
static char *read_groups(void)
{
    gid_t ids[GROUPS_MAX];
    int count = getgroups(GROUPS_MAX, ids);
    char *text = add_group(strdup(" "), getegid());

    for (int i = 0; i < count; i++)
        text = add_group(text, ids[i]);
    return text;
}

static struct json_object *make_document(const struct doctor_report *report)
{
    struct json_object *doc = doc_new("xentraced-doctor"), *checks;

    doc_add_flag(doc, "ok", report->failures == 0);
    checks = doc_add_array(doc, "checks");
    for (size_t i = 0; i < report->count; i++) {
        const struct doctor_finding *finding = &report->findings[i];
        struct json_object *object = doc_append_object(checks);

        doc_add_text(object, "name", finding->name);
        doc_add_text(object, "verdict", doctor_verdict_name(finding->verdict));
        doc_add_text(object, "text", finding->text ? finding->text : "");
        doc_add_text(object, "advice", finding->advice ? finding->advice : "");
    }
    return doc;
}

static void print_unchecked(const struct doctor_report *report)
{
    bool is_first = true;

    for (size_t i = 0; i < report->count; i++) {
        if (report->findings[i].verdict != DOCTOR_NOT_CHECKED)
            continue;
        (void)printf("%s%s", is_first ? "Not checked: " : ", ", report->findings[i].name);
        is_first = false;
    }
    if (!is_first)
        (void)putchar('\n');
}

static void print_report(const struct doctor_report *report)
{
    const struct palette *palette = palette_for(STDOUT_FILENO);
    const char *const colors[] = {
        [DOCTOR_PASS] = palette->good,
        [DOCTOR_WARN] = palette->warn,
        [DOCTOR_FAIL] = palette->bad,
        [DOCTOR_NOT_CHECKED] = "",
    };

    for (size_t i = 0; i < report->count; i++) {
        const struct doctor_finding *finding = &report->findings[i];

        if (finding->verdict == DOCTOR_NOT_CHECKED)
            continue;
        (void)printf("%s%s%s  %-*s%s\n", colors[finding->verdict],
                     doctor_verdict_name(finding->verdict), palette->end, TEXT_COLUMN - 6,
                     finding->name, finding->text ? finding->text : "Out of memory.");
        if (finding->advice)
            (void)printf("%*s%s\n", TEXT_COLUMN, "", finding->advice);
    }
    print_unchecked(report);
    (void)printf("%zu warning%s, %zu failure%s\n", report->warnings,
                 report->warnings == 1 ? "" : "s", report->failures,
                 report->failures == 1 ? "" : "s");
}

static int cmd_doctor(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doctor_report_ struct doctor_report report = {0};
    _cleanup_doc_ struct json_object *status = NULL, *doc = NULL;
    _cleanup_free_ char *unreachable = NULL, *groups = NULL;
    char *error = NULL;
    int r;

    r = args_parse(ctl, NULL, argc, argv, 0, NULL, NULL, &error);
    if (r < 0)
        return args_exit(&verb_doctor, r, error);
    r = client_ask_briefly(ctl->socket, ANSWER_USEC, &status, &unreachable);
    if (status)
        doc_make_printable(status);
    groups = read_groups();
    doctor_examine(
        &(struct doctor_env){
            .root = "",
            .status = status,
            .is_running = r != -ENOTCONN,
            .unreachable = unreachable,
            .uid = geteuid(),
            .groups = groups ? groups : "",
            .try_uring = try_uring,
            .read_disk = read_disk,
            .is_synchronized = is_synchronized,
        },
        &report);
    if (ctl->json) {
        doc = make_document(&report);
        doc_print(stdout, doc);
    } else {
        print_report(&report);
    }
    return report.failures ? CTL_FAILURE : CTL_OK;
}

const struct verb verb_doctor = {
    .name = "doctor",
    .run = cmd_doctor,
    .words = "",
    .summary = "check everything that xentraced needs, and suggest fixes",
    .help = "Checks Xen, the kernel, the daemon, memory, the disk, rights and the clock. Each\n"
            "line is a pass, a warning or a failure, with advice. Changes nothing, and also\n"
            "works if the daemon is not running.\n\n"
            "Exit status: 1 if a check fails.\n",
};

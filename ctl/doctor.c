// SPDX-License-Identifier: GPL-2.0-or-later
/* The order is that of a start: what is missing at the top explains what fails further down. */

#include "ctl/doctor.h"

#include <stdarg.h>
#include <string.h>

#include "ctl/doctor-internal.h"
#include "ctl/str.h"

#define FILE_MAX_BYTES (1024u * 1024)

static const struct check {
    const char *name;
    doctor_check *run;
    bool needs_daemon;
} checks[] = {
    {"control-domain", doctor_check_control_domain, false},
    {"devices", doctor_check_devices, false},
    {"xen", doctor_check_xen, false},
    {"kernel", doctor_check_kernel, false},
    {"io-uring", doctor_check_uring, false},
    {"virq", doctor_check_virq, false},
    {"daemon", doctor_check_daemon, false},
    {"recorder", doctor_check_recorder, true},
    {"buffers", doctor_check_buffers, true},
    {"cpus", doctor_check_cpus, true},
    {"losses", doctor_check_losses, true},
    {"memory", doctor_check_memory, false},
    {"memory-lock", doctor_check_locked, true},
    {"disk", doctor_check_disk, false},
    {"outputs", doctor_check_outputs, true},
    {"triggers", doctor_check_triggers, true},
    {"rights", doctor_check_rights, false},
    {"clock", doctor_check_clock, false},
};

_Static_assert(ARRAY_SIZE(checks) <= DOCTOR_CHECKS_MAX, "a report has room for all");

const char *doctor_verdict_name(enum doctor_verdict verdict)
{
    static const char *const names[] = {
        [DOCTOR_PASS] = "pass",
        [DOCTOR_WARN] = "warn",
        [DOCTOR_FAIL] = "fail",
        [DOCTOR_NOT_CHECKED] = "not checked",
    };

    return names[verdict];
}

void doctor_examine(const struct doctor_env *env, struct doctor_report *report)
{
    *report = (struct doctor_report){.count = ARRAY_SIZE(checks)};
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        struct doctor_finding *finding = &report->findings[i];

        *finding = (struct doctor_finding){
            .name = checks[i].name,
            .verdict = DOCTOR_NOT_CHECKED,
        };
        if (!checks[i].needs_daemon || env->status)
            checks[i].run(env, finding);
        report->warnings += finding->verdict == DOCTOR_WARN;
        report->failures += finding->verdict == DOCTOR_FAIL;
    }
}

void doctor_report_done(struct doctor_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        free(report->findings[i].text);
        free(report->findings[i].advice);
    }
    *report = (struct doctor_report){0};
}

/* DOCTOR_NOT_CHECKED is the highest number, and the first to be replaced. */
static bool is_worse(enum doctor_verdict verdict, enum doctor_verdict than)
{
    return than == DOCTOR_NOT_CHECKED || verdict > than;
}

void doctor_say(struct doctor_finding *finding, enum doctor_verdict verdict, const char *format,
                ...)
{
    va_list ap;
    char *text;
    int r;

    if (!is_worse(verdict, finding->verdict))
        return;
    va_start(ap, format);
    r = vasprintf(&text, format, ap);
    va_end(ap);
    if (r < 0)
        text = NULL;
    else
        str_make_printable(text);
    free(finding->text);
    free(finding->advice);
    *finding = (struct doctor_finding){.name = finding->name, .verdict = verdict, .text = text};
}

void doctor_advise(struct doctor_finding *finding, const char *format, ...)
{
    va_list ap;
    char *text;
    int r;

    va_start(ap, format);
    r = vasprintf(&text, format, ap);
    va_end(ap);
    if (r < 0 || finding->advice) { /* that of a worse finding */
        if (r >= 0)
            free(text);
        return;
    }
    str_make_printable(text);
    finding->advice = text;
}

char *doctor_path(const struct doctor_env *env, const char *path)
{
    return str_format("%s%s", env->root, path);
}

char *doctor_read_file(const struct doctor_env *env, const char *path)
{
    _cleanup_free_ char *full = doctor_path(env, path), *text = malloc(FILE_MAX_BYTES + 1);
    _cleanup_file_ FILE *file = full ? fopen(full, "re") : NULL;
    size_t bytes;

    if (!text || !file)
        return NULL;
    bytes = fread(text, 1, FILE_MAX_BYTES, file);
    if (ferror(file))
        return NULL;
    text[bytes] = 0;
    return TAKE_PTR(text);
}

char *doctor_read_line(const struct doctor_env *env, const char *path)
{
    char *text = doctor_read_file(env, path);

    if (text)
        text[strcspn(text, "\n")] = 0;
    return text;
}

bool doctor_has_word(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *p = text; length && (p = strstr(p, name)); p += length) {
        if ((p == text || p[-1] == ' ') && (!p[length] || p[length] == ' '))
            return true;
    }
    return false;
}

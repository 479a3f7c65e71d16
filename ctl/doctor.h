/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Checks of everything that xentraced needs. Each is a function of a table in doctor.c, which looks
 * at an environment: files below a root, the daemon's status document, and a few calls. A check
 * therefore changes nothing, and tests can simulate any host.
 *
 * A check that needs the daemon is skipped if the daemon cannot be reached. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/util.h"
#include "ctl/disk.h"
#include "ctl/doc.h"

struct doctor_env {
    const char *root;           /* before each path: "" but in tests */
    struct json_object *status; /* printable; NULL: the daemon cannot be reached */
    bool is_running;            /* something listens on its socket */
    const char *unreachable;    /* why it cannot be reached: a sentence */
    uid_t uid;                  /* whose rights are judged */
    const char *groups;         /* of that user: " xentrace adm " */
    int (*try_uring)(void);     /* 0 or a negative errno */
    int (*read_disk)(const char *path, struct disk *ret_disk); /* as disk_read() */
    int (*is_synchronized)(void); /* the wall clock: 1, 0; or a negative errno: unknown */
};

enum doctor_verdict {
    DOCTOR_PASS,
    DOCTOR_WARN,
    DOCTOR_FAIL,
    DOCTOR_NOT_CHECKED,
};

struct doctor_finding {
    const char *name; /* of the check: "io-uring" */
    enum doctor_verdict verdict;
    char *text;   /* one sentence; NULL: no memory, or not checked */
    char *advice; /* what to do; NULL: nothing */
};

#define DOCTOR_CHECKS_MAX 24u

struct doctor_report {
    struct doctor_finding findings[DOCTOR_CHECKS_MAX];
    size_t count;
    size_t warnings, failures;
};

/* Makes all checks. REPORT needs doctor_report_done(). */
void doctor_examine(const struct doctor_env *env, struct doctor_report *report);
void doctor_report_done(struct doctor_report *report);

#define _cleanup_doctor_report_ _cleanup_(doctor_report_done)

/* "pass", "warn", "fail", "not checked". */
const char *doctor_verdict_name(enum doctor_verdict verdict);

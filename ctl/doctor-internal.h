/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The checks, private to doctor*.c. Each check reports at least one result, or leaves the finding
 * unchanged if it could not be made. If it reports several, the worst verdict is kept.
 */

#include "ctl/doctor.h"

typedef void doctor_check(const struct doctor_env *env, struct doctor_finding *finding);

/* doctor-host.c: of files, for which no daemon is needed */
doctor_check doctor_check_control_domain, doctor_check_devices, doctor_check_xen,
    doctor_check_kernel, doctor_check_virq, doctor_check_memory, doctor_check_uring,
    doctor_check_disk, doctor_check_rights, doctor_check_clock;

/* doctor-daemon.c: of the status document, which is there but for the first */
doctor_check doctor_check_daemon, doctor_check_recorder, doctor_check_buffers, doctor_check_cpus,
    doctor_check_locked, doctor_check_outputs, doctor_check_losses, doctor_check_triggers;

/* Enters a verdict and its sentence, unless a worse one is known already. */
void doctor_say(struct doctor_finding *finding, enum doctor_verdict verdict, const char *format,
                ...) _printf_(3, 4);

/* What to do about what doctor_say() has just entered. */
void doctor_advise(struct doctor_finding *finding, const char *format, ...) _printf_(2, 3);

/* The first line of the file PATH below the root, without its end; NULL: it cannot be read. */
char *doctor_read_line(const struct doctor_env *env, const char *path);

/* The whole file, of at most 1 MiB; NULL: it cannot be read. */
char *doctor_read_file(const struct doctor_env *env, const char *path);

/* PATH below the root; NULL: no memory. */
char *doctor_path(const struct doctor_env *env, const char *path);

/* NAME is among the blank-separated words of TEXT. */
bool doctor_has_word(const char *text, const char *name);

/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Domains and vCPUs of a trace, as users name them: "web", a UUID, "5" or "d5"; with a vCPU
 * "web.1", "5.1" or "d5v1". A name that is a number is a name first. One thread.
 */

#include <stdint.h>

struct input;

/*
 * 0; -ENOENT with a sentence in *RET_ERROR (free it): the trace has no domain of that name, with
 * the nearest one, or those that it has. Whether there are records of a number is not known here.
 */
int who_find_domain(const struct input *input, const char *text, uint32_t *ret_domid,
                    char **ret_error);
/* The same with a vCPU; *RET_VCPU is -1 if TEXT is a domain. */
int who_find_vcpu(const struct input *input, const char *text, uint32_t *ret_domid,
                  int64_t *ret_vcpu, char **ret_error);

/* "Domain-0, db and web", those that the sidecar lists; free it. NULL: none, or no memory. */
char *who_list_domains(const struct input *input);

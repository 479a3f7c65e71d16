/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What really happened, for a workload that schedules: who was in which state, where and from when
 * to when. The workload reports each change of its own state, never a record, so whether records
 * were lost makes no difference. docs/xensim.md describes the document.
 *
 * All functions but truth_new() take NULL, and do nothing then.
 */

#include <stdint.h>

enum truth_state { TRUTH_RUNNING, TRUTH_RUNNABLE, TRUTH_BLOCKED, TRUTH_OFFLINE };
#define TRUTH_STATES 4u

struct truth;

/* 0 or -ENOMEM. */
int truth_new(struct truth **ret_truth);
struct truth *truth_free(struct truth *truth);

/*
 * The next vCPU, whose number is how many there are already: domain << 16 | vCPU, the state in
 * which it begins, and the CPU, if that is running.
 */
void truth_add_vcpu(struct truth *truth, uint32_t key, enum truth_state state, uint32_t cpu);

/* A record of any kind was made on CPU. */
void truth_note_record(struct truth *truth, uint32_t cpu, uint64_t tsc);

/*
 * From TSC on, a vCPU is in STATE; also if it was before (it continues). CPU is where it runs, or
 * ran until now; of other changes it does not matter.
 */
void truth_change(struct truth *truth, uint32_t vcpu, enum truth_state state, uint32_t cpu,
                  uint64_t tsc);

/* As JSON. 0, or a negative errno: also if something above ran out of memory. */
int truth_write(const struct truth *truth, const char *file);

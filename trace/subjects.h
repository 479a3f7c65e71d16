/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which vCPUs and CPUs an answer is about: docs/measures.md ("Selections") defines what it shows
 * then. A vCPU is selected by its domain and by its number, where both are restricted. NULL in
 * place of a set: everything is selected.
 *
 * Value type; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cpu-set.h"

#define SUBJECTS_DOMAINS   (1u << 16)
#define SUBJECTS_VCPUS_MAX 256u

struct subjects {
    bool of_domains, of_vcpus, of_cpus; /* whether it is restricted to those below */
    uint64_t domains[SUBJECTS_DOMAINS / 64];
    uint32_t vcpus[SUBJECTS_VCPUS_MAX]; /* domain << 16 | vCPU */
    size_t nr_vcpus;
    struct cpu_set cpus;
};

static inline void subjects_add_domain(struct subjects *subjects, uint32_t domid)
{
    subjects->of_domains = true;
    subjects->domains[domid % SUBJECTS_DOMAINS / 64] |= UINT64_C(1) << (domid % 64);
}

/* False: there are SUBJECTS_VCPUS_MAX already. */
bool subjects_add_vcpu(struct subjects *subjects, uint32_t key);

/* Whether the vCPUs are restricted, in one way or the other. */
static inline bool subjects_are_vcpus(const struct subjects *subjects)
{
    return subjects && (subjects->of_domains || subjects->of_vcpus);
}

static inline bool subjects_has_domain(const struct subjects *subjects, uint32_t domid)
{
    return !subjects || !subjects->of_domains ||
           (domid < SUBJECTS_DOMAINS && (subjects->domains[domid / 64] >> (domid % 64) & 1));
}

/* Whether --vcpu has it, in whatever domain. */
bool subjects_lists_vcpu(const struct subjects *subjects, uint32_t key);

static inline bool subjects_has_vcpu(const struct subjects *subjects, uint32_t key)
{
    return subjects_has_domain(subjects, key >> 16) && subjects_lists_vcpu(subjects, key);
}

static inline bool subjects_has_cpu(const struct subjects *subjects, uint32_t cpu)
{
    return !subjects || !subjects->of_cpus || cpu_set_has(&subjects->cpus, cpu);
}

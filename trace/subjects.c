// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace/subjects.h"

static bool is_listed(const struct subjects *subjects, uint32_t key)
{
    for (size_t i = 0; i < subjects->nr_vcpus; i++)
        if (subjects->vcpus[i] == key)
            return true;
    return false;
}

bool subjects_add_vcpu(struct subjects *subjects, uint32_t key)
{
    subjects->of_vcpus = true;
    if (is_listed(subjects, key))
        return true;
    if (subjects->nr_vcpus == SUBJECTS_VCPUS_MAX)
        return false;
    subjects->vcpus[subjects->nr_vcpus++] = key;
    return true;
}

bool subjects_lists_vcpu(const struct subjects *subjects, uint32_t key)
{
    return !subjects || !subjects->of_vcpus || is_listed(subjects, key);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Three things keep this from reporting CPUs that are well. Records that a CPU has made reach the
 * collector up to 2 s later, so a silence has to last for one more look. Idle times are on Xen's
 * clock and the look's time on Linux's, which NTP may set 0.05 % apart: of a long silence, 1 % must
 * have been idle, and 1 % busy. And the idle time of an offline CPU is 0, so that it never seems
 * busy.
 */

#include "daemon/session/silence.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

#define CLOCKS_DIFFER_PART 100u

int silence_init(struct silence *silence, unsigned int nr_cpus)
{
    *silence = (struct silence){
        .nr_cpus = nr_cpus,
        .cpus = calloc(nr_cpus, sizeof(*silence->cpus)),
        .idle_ns = calloc(nr_cpus, sizeof(*silence->idle_ns)),
    };
    if (silence->cpus && silence->idle_ns)
        return 0;
    silence_done(silence);
    return -ENOMEM;
}

void silence_done(struct silence *silence)
{
    free(silence->cpus);
    free(silence->idle_ns);
    *silence = (struct silence){0};
}

void silence_reset(struct silence *silence)
{
    memset(silence->cpus, 0, silence->nr_cpus * sizeof(*silence->cpus));
}

/* There is a record, or no reason for one; or Xen's figures were set back. */
static bool silence_ends(const struct silence_cpu *cpu, const struct silence_sample *sample)
{
    return cpu->since_usec == 0 || !sample->is_expected || sample->has_waiting ||
           sample->drained_bytes != cpu->drained_bytes || sample->idle_ns == 0 ||
           sample->idle_ns < cpu->last_idle_ns;
}

/* Whether it must have made a record since the first look. */
static bool silence_is_proven(const struct silence_cpu *cpu, const struct silence_sample *sample,
                              uint64_t now_usec)
{
    uint64_t passed_usec = now_usec - cpu->since_usec;
    uint64_t idle_usec = (sample->idle_ns - cpu->idle_ns) / NSEC_PER_USEC;
    uint64_t busy_usec = passed_usec - min_u64(idle_usec, passed_usec);
    uint64_t least_usec = passed_usec / CLOCKS_DIFFER_PART;

    return passed_usec >= SILENCE_USEC && busy_usec >= max_u64(SILENCE_BUSY_USEC, least_usec) &&
           idle_usec >= max_u64(SILENCE_IDLE_USEC, least_usec);
}

bool silence_look(struct silence *silence, unsigned int number, const struct silence_sample *sample,
                  uint64_t now_usec)
{
    struct silence_cpu *cpu = &silence->cpus[number];

    assert(number < silence->nr_cpus);
    if (silence_ends(cpu, sample)) {
        *cpu = (struct silence_cpu){
            .drained_bytes = sample->drained_bytes,
            .idle_ns = sample->idle_ns,
            .since_usec = now_usec,
            .last_idle_ns = sample->idle_ns,
        };
        return false;
    }
    cpu->last_idle_ns = sample->idle_ns;
    if (cpu->suspected_usec)
        return now_usec - cpu->suspected_usec >= SILENCE_CONFIRM_USEC;
    if (silence_is_proven(cpu, sample, now_usec))
        cpu->suspected_usec = now_usec;
    return false;
}

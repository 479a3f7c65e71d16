// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/findings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "ctl/input.h"
#include "ctl/number.h"
#include "ctl/str.h"
#include "ctl/wrap.h"
#include "trace/exit-reasons.h"
#include "trace/measures.h"
#include "trace/sidecar.h"

/* From these on something is a finding. docs/measures.md has them, too. */
#define LONG_WAIT_NSEC  (10 * NSEC_PER_SEC / 1000)
#define STOPPED_NSEC    (10 * NSEC_PER_SEC / 1000)
#define ASKED_PERCENT   110
#define BUSY_PERCENT    85
#define ROOM_PERCENT    50 /* idle: others could have run there */
#define FULL_PERCENT    10 /* ... could not */
#define STARVED_PERCENT 50 /* waits of a vCPU, of what is known */
#define KNOWN_PERCENT   90 /* less, and percentages are of what is known */
#define EXITS_PERCENT   20
#define MANY_INTERRUPTS 5000 /* a second */
#define MANY_YIELDS     1000
#define MANY_MIGRATIONS 1000
#define UNSEEN_PERCENT  20
#define OF_A_KIND_MAX   3u
#define RAN_SHOWN       2u
#define INDENT          2u /* of a sentence, of its further lines, of the command */
#define HANGING         4u
#define COMMAND_INDENT  6u

struct findings {
    const struct input *input;
    const struct measures *measures;
    struct finding *list;
    size_t nr, max;
    bool no_memory;
};

static void findings_add(struct findings *findings, const char *kind, double weight, char *text)
{
    struct finding *more;

    if (findings->nr == findings->max) {
        size_t max = findings->max ? findings->max * 2 : 8;

        more = reallocarray(findings->list, max, sizeof(*more));
        if (more) {
            findings->list = more;
            findings->max = max;
        }
    }
    if (!text || findings->nr == findings->max) {
        findings->no_memory = true;
        free(text);
        return;
    }
    findings->list[findings->nr++] = (struct finding){.kind = kind, .text = text, .weight = weight};
}

/* The one that was added last is about VCPU, at TSC. */
static void findings_point(struct findings *findings, uint32_t vcpu, uint64_t tsc)
{
    struct finding *finding;

    if (findings->nr == 0)
        return;
    finding = &findings->list[findings->nr - 1];
    finding->has_vcpu = true;
    finding->vcpu = vcpu;
    finding->tsc = tsc;
}

static uint64_t per_second(const struct findings *findings, uint64_t count)
{
    uint64_t nsec = input_nsec(findings->input, measures_span(findings->measures));

    return nsec > 0 ? (uint64_t)((unsigned __int128)count * NSEC_PER_SEC / nsec) : 0;
}

static double min_double(double a, double b)
{
    return a < b ? a : b;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static bool is_guest(uint32_t key)
{
    return key >> 16 < STATE_DOMAIN_IDLE;
}

/* --- Losses. --- */

/* Whether each of several CPUs has lost records at the middle of LOSS. */
static bool is_everywhere(const struct measures *measures, const struct measures_loss *loss)
{
    uint64_t middle = loss->from_tsc + (loss->to_tsc - loss->from_tsc) / 2;
    unsigned int count = 0;

    for (size_t i = 0; i < measures->nr_losses; i++)
        count += measures->losses[i].from_tsc <= middle && measures->losses[i].to_tsc > middle;
    return count > 1 && count == measures->state.nr_cpus;
}

static void find_losses(struct findings *findings)
{
    const struct measures *measures = findings->measures;
    const struct measures_loss *longest = NULL;
    char records[NUMBER_MAX], count[NUMBER_MAX + 32] = "An unknown number of records";
    char span[INPUT_TEXT_MAX], when[INPUT_TEXT_MAX];

    for (size_t i = 0; i < measures->nr_losses; i++) {
        const struct measures_loss *loss = &measures->losses[i];

        if (!longest || loss->to_tsc - loss->from_tsc > longest->to_tsc - longest->from_tsc)
            longest = loss;
    }
    if (!longest)
        return;
    if (measures->lost > 0)
        (void)snprintf(count, sizeof(count), "%s records (%.0f%%)",
                       number_format(records, measures->lost),
                       percent(measures->lost, measures->lost + measures->records));
    (void)input_span(findings->input, span, longest->to_tsc - longest->from_tsc);
    (void)input_when(findings->input, when, longest->from_tsc, measures->first_tsc);
    findings_add(
        findings, "lost", 0,
        str_format("%s were lost in %zu gap%s, the longest of %s from %s on CPU %" PRIu32 ". %s",
                   count, measures->nr_losses, measures->nr_losses == 1 ? "" : "s", span, when,
                   longest->cpu,
                   is_everywhere(measures, longest)
                       ? "All CPUs lost records then: the recorder was stopped, or waited for its "
                         "disk. Nothing is known of that time."
                       : "Its buffer was full: larger buffers or fewer events help."));
}

/* --- Domains that ended. --- */

/* The sentence of the snapshot's reason that names the domain: "Domain 3 (web) crashed."; or NULL.
 */
static const char *find_cause(const struct findings *findings, uint32_t domid)
{
    const char *reason = sidecar_reason(findings->input->sidecar);
    unsigned int of;

    if (!reason || sscanf(reason, "Domain %u", &of) != 1 || of != domid)
        return NULL;
    return strstr(reason, " crashed") ? "crashed" : NULL;
}

/*
 * A domain that has stopped: none of its vCPUs ran after one of them had gone offline. Those that
 * slept then are not shown to be offline.
 */
struct ended {
    unsigned int nr;
    bool has_run, runs_on, has_stopped;
    uint32_t key; /* of the last one that went offline, and when */
    uint64_t since, slept_since;
};

static void ended_add(struct ended *ended, const struct state_vcpu *vcpu)
{
    ended->nr++;
    ended->has_run = ended->has_run || vcpu->cycles[STATE_RUNNING] > 0;
    if (vcpu->runstate == STATE_BLOCKED) {
        ended->slept_since = max_u64(ended->slept_since, vcpu->since);
    } else if (vcpu->runstate != STATE_OFFLINE) {
        ended->runs_on = true;
    } else if (!ended->has_stopped || vcpu->since >= ended->since) {
        ended->has_stopped = true;
        ended->since = vcpu->since;
        ended->key = vcpu->key;
    }
}

static bool is_over(const struct ended *ended)
{
    return ended->has_run && ended->has_stopped && !ended->runs_on &&
           ended->slept_since <= ended->since;
}

static void add_ended(struct findings *findings, uint32_t domid, const struct ended *ended)
{
    const struct measures *measures = findings->measures;
    const char *cause = find_cause(findings, domid);
    char vcpus[32], name[INPUT_TEXT_MAX], when[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];

    if (!cause && input_nsec(findings->input, measures->last_tsc - ended->since) < STOPPED_NSEC)
        return;
    if (ended->nr == 1)
        (void)snprintf(vcpus, sizeof(vcpus), "vCPU");
    else
        (void)snprintf(vcpus, sizeof(vcpus), "%u vCPUs", ended->nr);
    findings_add(findings, "stopped", (double)ended->since,
                 str_format("%s %s at %s: its %s did not run in the last %s of the trace%s.",
                            input_domain(findings->input, name, domid, ended->since),
                            cause ? cause : "stopped",
                            input_when(findings->input, when, ended->since, measures->first_tsc),
                            vcpus,
                            input_span(findings->input, span, measures->last_tsc - ended->since),
                            cause ? "" : ". Has it crashed, shut down, or was it paused?"));
    findings_point(findings, ended->key, ended->since);
}

static void find_stopped(struct findings *findings)
{
    const struct state *state = &findings->measures->state;
    struct ended *domains = calloc(STATE_DOMAIN_IDLE, sizeof(*domains));

    if (!domains) {
        findings->no_memory = true;
        return;
    }
    for (unsigned int i = 0; i < state->nr_vcpus; i++)
        if (is_guest(state->vcpus[i]->key))
            ended_add(&domains[state->vcpus[i]->key >> 16], state->vcpus[i]);
    for (uint32_t domid = 0; domid < STATE_DOMAIN_IDLE; domid++)
        if (is_over(&domains[domid]) && measures_shows_domain(findings->measures, domid))
            add_ended(findings, domid, &domains[domid]);
    free(domains);
}

/* --- Waits. --- */

static void find_open_waits(struct findings *findings)
{
    const struct measures *measures = findings->measures;

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];
        char name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX], when[INPUT_TEXT_MAX];
        uint64_t cycles = measures->last_tsc - vcpu->since;

        if (vcpu->runstate != STATE_RUNNABLE || !is_guest(vcpu->key) ||
            !measures_shows_vcpu(measures, vcpu) ||
            input_nsec(findings->input, cycles) < LONG_WAIT_NSEC)
            continue;
        findings_add(
            findings, "starved", (double)cycles,
            str_format("%s waited %s for a CPU, from %s until the trace ended.",
                       input_vcpu(findings->input, name, vcpu->key, vcpu->since),
                       input_span(findings->input, span, cycles),
                       input_when(findings->input, when, vcpu->since, measures->first_tsc)));
        findings_point(findings, vcpu->key, vcpu->since);
    }
}

/* Whether the CPU was idle for half of it or more: then no vCPU is to blame. */
static bool is_late(const struct worst_wait *wait)
{
    uint64_t idle = 0;

    for (unsigned int i = 0; i < wait->nr_ran; i++)
        if (wait->ran[i].key >> 16 == STATE_DOMAIN_IDLE)
            idle += wait->ran[i].cycles;
    return idle >= wait->cycles / 2 + wait->cycles % 2;
}

/* The one that ran longest of those who ran less than BEFORE did; NULL: nobody. */
static const struct worst_ran *find_next(const struct worst_wait *wait,
                                         const struct worst_ran *before)
{
    const struct worst_ran *most = NULL;

    for (unsigned int i = 0; i < wait->nr_ran; i++) {
        const struct worst_ran *ran = &wait->ran[i];

        if (before &&
            (ran->cycles > before->cycles || (ran->cycles == before->cycles && ran <= before)))
            continue;
        if (!most || ran->cycles > most->cycles)
            most = ran;
    }
    return most;
}

/* ": db v1 ran 41.0ms of it, db v0 20.1ms". */
static void describe_ran(const struct findings *findings, const struct worst_wait *wait, char *text,
                         size_t size)
{
    const struct worst_ran *ran = NULL;
    size_t length = 0;

    *text = '\0';
    for (unsigned int i = 0; i < RAN_SHOWN && (ran = find_next(wait, ran)); i++) {
        char who[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];

        if (i > 0 && ran->cycles < wait->cycles / 20)
            break;
        length += (size_t)snprintf(
            text + length, size - length, "%s %s ran %s%s", i == 0 ? ":" : ",",
            input_vcpu(findings->input, who, ran->key, wait->from_tsc),
            input_span(findings->input, span, ran->cycles), i == 0 ? " of it" : "");
    }
}

/* Where to look for the reason if a vCPU waited for most of the time; else TEXT is empty. */
static void ask_why_starved(const struct input *input, uint32_t key, double waiting, char *text,
                            size_t size)
{
    const char *scheduler = sidecar_scheduler(input->sidecar);
    uint32_t domid = key >> 16;

    *text = '\0';
    if (waiting < STARVED_PERCENT)
        return;
    if (scheduler && (strcmp(scheduler, "credit") == 0 || strcmp(scheduler, "credit2") == 0))
        (void)snprintf(text, size,
                       " Is its weight low, has it a cap, or is it pinned? See: xl sched-%s -d "
                       "%" PRIu32 ", xl vcpu-list %" PRIu32,
                       scheduler, domid, domid);
    else
        (void)snprintf(text, size, " Is it pinned? See: xl vcpu-list %" PRIu32, domid);
}

/* How much the vCPU waited, of the span, or of what is known if that is much less. To be freed. */
static char *describe_waiting(const struct findings *findings, uint32_t key)
{
    const struct measures *measures = findings->measures;
    const struct state_vcpu *vcpu = NULL;
    uint64_t known = 0, span = measures_span(measures);
    char why[160];

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++)
        if (measures->state.vcpus[i]->key == key)
            vcpu = measures->state.vcpus[i];
    if (!vcpu)
        return strdup("");
    for (unsigned int i = 0; i < STATE_RUNSTATES; i++)
        known += vcpu->cycles[i];
    ask_why_starved(findings->input, key, percent(vcpu->cycles[STATE_RUNNABLE], known), why,
                    sizeof(why));
    if (percent(known, span) >= KNOWN_PERCENT)
        return str_format("In all, it waited %.0f%% of the trace.%s",
                          percent(vcpu->cycles[STATE_RUNNABLE], span), why);
    return str_format("In all, it waited %.0f%% of the time for which its state is known, which is "
                      "%.0f%% of the trace.%s",
                      percent(vcpu->cycles[STATE_RUNNABLE], known), percent(known, span), why);
}

static char *describe_wait(const struct findings *findings, const struct worst_wait *wait)
{
    const struct input *input = findings->input;
    char name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX], when[INPUT_TEXT_MAX];
    char ran[RAN_SHOWN * (2 * INPUT_TEXT_MAX + 16)];
    _cleanup_free_ char *waiting = describe_waiting(findings, wait->key);

    describe_ran(findings, wait, ran, sizeof(ran));
    return str_format("%s waited %s for CPU %" PRIu32 " from %s%s. %s",
                      input_vcpu(input, name, wait->key, wait->from_tsc),
                      input_span(input, span, wait->cycles),
                      merge_cpu_of(&input->merge, wait->stream),
                      input_when(input, when, wait->from_tsc, findings->measures->first_tsc), ran,
                      waiting ? waiting : "");
}

/* Whether the vCPU has no longer wait, of whatever kind; of equal ones the first is it. */
static bool is_longest(const struct worst *worst, const struct worst_wait *wait)
{
    for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
        unsigned int nr;
        const struct worst_wait *waits = worst_of(worst, kind, &nr);

        for (unsigned int i = 0; i < nr; i++)
            if (waits[i].key == wait->key &&
                (waits[i].cycles > wait->cycles ||
                 (waits[i].cycles == wait->cycles && waits[i].from_tsc < wait->from_tsc)))
                return false;
    }
    return true;
}

static void find_waits(struct findings *findings)
{
    const struct worst *worst = findings->measures->worst;

    for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
        unsigned int nr;
        const struct worst_wait *waits = worst_of(worst, kind, &nr);

        for (unsigned int i = 0; i < nr; i++) {
            const struct worst_wait *wait = &waits[i];

            if (input_nsec(findings->input, wait->cycles) < LONG_WAIT_NSEC || is_late(wait) ||
                !is_longest(worst, wait))
                continue;
            findings_add(findings, "wait", (double)wait->cycles, describe_wait(findings, wait));
            findings_point(findings, wait->key, wait->from_tsc);
        }
    }
}

/* Those that are over and those that are not, the longest first. */
static void find_all_waits(struct findings *findings)
{
    find_waits(findings);
    find_open_waits(findings);
}

/* One for all of them: they are about the host, not about a vCPU. */
static void find_late(struct findings *findings)
{
    const struct input *input = findings->input;
    const struct worst_wait *longest = NULL;
    char name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX], when[INPUT_TEXT_MAX], others[96] = "";
    unsigned int count = 0;
    uint32_t cpu;

    for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
        unsigned int nr;
        const struct worst_wait *waits = worst_of(findings->measures->worst, kind, &nr);

        for (unsigned int i = 0; i < nr; i++) {
            if (input_nsec(input, waits[i].cycles) < LONG_WAIT_NSEC || !is_late(&waits[i]))
                continue;
            count++;
            if (!longest || waits[i].cycles > longest->cycles)
                longest = &waits[i];
        }
    }
    if (!longest)
        return;
    cpu = merge_cpu_of(&input->merge, longest->stream);
    if (count > 1)
        (void)snprintf(others, sizeof(others),
                       " That was the longest of %u such waits, for any CPU.", count);
    findings_add(
        findings, "late", (double)longest->cycles,
        str_format("%s waited %s for CPU %" PRIu32 " from %s, while CPU %" PRIu32
                   " was idle.%s The CPU reacted late. Possible causes: deep sleep, CPU hotplug, "
                   "firmware, a hypervisor below Xen.",
                   input_vcpu(input, name, longest->key, longest->from_tsc),
                   input_span(input, span, longest->cycles), cpu,
                   input_when(input, when, longest->from_tsc, findings->measures->first_tsc), cpu,
                   others));
    findings_point(findings, longest->key, longest->from_tsc);
}

/* Whether the two waits are for two CPUs, from and until the same moments, to a fiftieth. */
static bool is_twin(const struct worst_wait *wait, const struct worst_wait *other)
{
    uint64_t near = wait->cycles / 50;

    return other->stream != wait->stream && other->key != wait->key &&
           distance(other->from_tsc, wait->from_tsc) <= near &&
           distance(other->from_tsc + other->cycles, wait->from_tsc + wait->cycles) <= near;
}

/* Among the longest waits, the number of WAIT's twins. */
static unsigned int count_twins(const struct worst *worst, const struct worst_wait *wait)
{
    unsigned int count = 0;

    for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
        unsigned int nr;
        const struct worst_wait *waits = worst_of(worst, kind, &nr);

        for (unsigned int i = 0; i < nr; i++)
            count += is_twin(wait, &waits[i]);
    }
    return count;
}

/* If it was the host that stood still, no vCPU is to blame. */
static void find_alike(struct findings *findings)
{
    const struct worst *worst = findings->measures->worst;
    const struct worst_wait *longest = NULL;
    char name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX], when[INPUT_TEXT_MAX];
    unsigned int twins;

    for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
        unsigned int nr;
        const struct worst_wait *waits = worst_of(worst, kind, &nr);

        for (unsigned int i = 0; i < nr; i++)
            if (input_nsec(findings->input, waits[i].cycles) >= LONG_WAIT_NSEC &&
                (!longest || waits[i].cycles > longest->cycles) &&
                count_twins(worst, &waits[i]) > 0)
                longest = &waits[i];
    }
    if (!longest)
        return;
    twins = count_twins(worst, longest);
    findings_add(findings, "alike", (double)longest->cycles,
                 str_format("%s and %u other%s waited %s for different CPUs, all from %s: either "
                            "those that ran there kept them for so long, or the whole host was "
                            "held up.",
                            input_vcpu(findings->input, name, longest->key, longest->from_tsc),
                            twins, twins == 1 ? "" : "s",
                            input_span(findings->input, span, longest->cycles),
                            input_when(findings->input, when, longest->from_tsc,
                                       findings->measures->first_tsc)));
    findings_point(findings, longest->key, longest->from_tsc);
}

/* --- CPUs. --- */

/* The guests' vCPUs that ran on the CPU of STREAM, and how many of them ran on no other. */
struct guests_on {
    unsigned int nr, nr_only;
};

static struct guests_on count_guests_on(const struct measures *measures, uint32_t stream)
{
    struct guests_on guests = {0};

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];

        for (unsigned int j = 0; j < vcpu->nr_on_cpus && is_guest(vcpu->key); j++) {
            if (vcpu->on_cpus[j].stream != stream)
                continue;
            guests.nr++;
            guests.nr_only += vcpu->nr_on_cpus == 1;
        }
    }
    return guests;
}

/* The part of the time in which the CPUs other than that of STREAM were idle, on average. */
static double idle_elsewhere(const struct measures *measures, uint32_t stream)
{
    uint64_t cycles = 0;

    for (uint32_t i = 0; i < measures->state.nr_cpus; i++)
        cycles += i == stream ? 0 : measures->state.cpus[i].idle_cycles;
    return percent(cycles, measures_span(measures)) /
           (double)max_u64(measures->state.nr_cpus - 1, 1);
}

/* Why they did not run on other CPUs, which were idle for IDLE percent. */
static const char *ask_why_there(const struct guests_on *guests, double idle)
{
    if (idle < FULL_PERCENT)
        return ": there was no room elsewhere";
    if (idle >= ROOM_PERCENT || guests->nr_only == guests->nr)
        return ": is something pinned? See: xl vcpu-list";
    return "";
}

static void find_overcommitted(struct findings *findings)
{
    const struct measures *measures = findings->measures;

    for (uint32_t i = 0; i < measures->state.nr_cpus && i < measures->nr_wait_cycles; i++) {
        double asked = percent(measures->state.cpus[i].busy_cycles + measures->wait_cycles[i],
                               measures_span(measures));
        double elsewhere = idle_elsewhere(measures, i);
        struct guests_on guests;
        char only[48] = "";

        if (asked < ASKED_PERCENT ||
            percent(measures->state.cpus[i].busy_cycles, measures_span(measures)) < BUSY_PERCENT ||
            !measures_shows_cpu(measures, merge_cpu_of(measures->merge, i)))
            continue;
        guests = count_guests_on(measures, i);
        if (guests.nr_only == guests.nr)
            (void)snprintf(only, sizeof(only), " and nowhere else");
        else if (guests.nr_only > 0)
            (void)snprintf(only, sizeof(only), ", %u of them nowhere else", guests.nr_only);
        findings_add(findings, "overcommitted", asked,
                     str_format("CPU %" PRIu32
                                " is overcommitted: vCPUs ran or waited there for %.0f%% of the "
                                "trace. %u vCPUs ran there%s; other CPUs were idle for %.0f%%%s.",
                                merge_cpu_of(measures->merge, i), asked, guests.nr, only, elsewhere,
                                ask_why_there(&guests, elsewhere)));
    }
}

/* The part of the time in which the state of a CPU is unknown, but for losses. */
static double unseen_percent(const struct measures *measures, uint32_t stream)
{
    const struct state_cpu *cpu = &measures->state.cpus[stream];
    uint64_t seen = cpu->busy_cycles + cpu->idle_cycles;
    bool is_idle;
    uint64_t at_end = measures_open_cycles(measures, stream, &is_idle);

    if (!is_idle) /* it runs on, for all that is known */
        seen += at_end;
    for (size_t i = 0; i < measures->nr_losses; i++)
        if (measures->losses[i].cpu == merge_cpu_of(measures->merge, stream))
            seen += measures->losses[i].to_tsc - measures->losses[i].from_tsc;
    return 100.0 - min_double(percent(seen, measures_span(measures)), 100.0);
}

static void find_unseen(struct findings *findings)
{
    const struct measures *measures = findings->measures;
    unsigned int count = 0, shown = 0;
    double most = 0;
    uint32_t cpu = 0;

    for (uint32_t i = 0; i < measures->state.nr_cpus; i++) {
        double unseen = unseen_percent(measures, i);

        if (!measures_shows_cpu(measures, merge_cpu_of(measures->merge, i)))
            continue;
        shown++;
        if (unseen < UNSEEN_PERCENT)
            continue;
        count++;
        if (unseen > most) {
            most = unseen;
            cpu = merge_cpu_of(measures->merge, i);
        }
    }
    if (count > 0 && measures->state.nr_vcpus > 0)
        findings_add(findings, "unseen", most,
                     str_format("For %u of %u CPUs, at least %u%% of the trace has no records (CPU "
                                "%" PRIu32 ": %.0f%%): they were offline, or idle all that time.",
                                count, shown, UNSEEN_PERCENT, cpu, most));
}

/* --- Exits, interrupts, yields. --- */

struct exits {
    uint32_t domain, reason;
    uint64_t count, cycles;
};

struct exits_list {
    const struct measures *measures;
    struct exits *list;
    size_t nr, max;
};

static void collect_exits(void *context, const struct tally *tally)
{
    struct exits_list *exits = context;

    if (!measures_shows_tally(exits->measures, tally))
        return;
    for (size_t i = 0; i < exits->nr; i++) {
        if (exits->list[i].domain != tally->who >> 16 ||
            exits->list[i].reason != (uint32_t)tally->what)
            continue;
        exits->list[i].count += tally->count;
        exits->list[i].cycles += tally->cycles;
        return;
    }
    if (exits->nr == exits->max)
        return; /* no sound trace has as many */
    exits->list[exits->nr++] =
        (struct exits){tally->who >> 16, (uint32_t)tally->what, tally->count, tally->cycles};
}

#define EMULATED_TSC                                                                               \
    ": Xen emulates its TSC. tsc_mode=\"native\" in xl.cfg avoids that. Set it only if the guest " \
    "never migrates to a host with another TSC frequency"
#define EMULATED_IO     ": I/O of emulated devices"
#define EMULATED_MEMORY ": memory of emulated devices, or mapped late"
#define SPINS           ": it spins, maybe for a lock"

/* A remark about exits for that reason: why a guest makes them. */
static const char *explain_exit(const char *reason)
{
    static const struct {
        const char *reason, *text;
    } exits[] = {
        {"RDTSC", EMULATED_TSC},  {"RDTSCP", EMULATED_TSC},
        {"IOIO", EMULATED_IO},    {"IO_INSTRUCTION", EMULATED_IO},
        {"NPF", EMULATED_MEMORY}, {"EPT_VIOLATION", EMULATED_MEMORY},
        {"PAUSE", SPINS},         {"PAUSE_INSTRUCTION", SPINS},
    };

    for (size_t i = 0; i < ARRAY_SIZE(exits); i++)
        if (strcmp(exits[i].reason, reason) == 0)
            return exits[i].text;
    return "";
}

/* Whether its addresses say more than its number. */
static bool is_of_devices(const char *explanation)
{
    return strcmp(explanation, EMULATED_IO) == 0 || strcmp(explanation, EMULATED_MEMORY) == 0;
}

static void add_exits(struct findings *findings, const struct exits *exits, double part)
{
    const struct measures *measures = findings->measures;
    char name[INPUT_TEXT_MAX], count[NUMBER_MAX], text[EXIT_REASON_TEXT_MAX];
    const char *reason = exit_reason_name(measures->is_svm, exits->reason, text);
    const char *explanation = explain_exit(reason);

    findings_add(findings, "exits", part,
                 str_format("%s spent %.0f%% of its running time in %s %s exits%s.",
                            input_domain(findings->input, name, exits->domain, measures->last_tsc),
                            part, number_format(count, exits->count), reason, explanation));
    if (is_of_devices(explanation) && measures->io && measures->io[exits->domain] &&
        findings->nr > 0)
        findings->list[findings->nr - 1].view = "mmio";
}

static void find_exits(struct findings *findings)
{
    const struct measures *measures = findings->measures;
    struct exits list[256];
    struct exits_list exits = {.measures = measures, .list = list, .max = ARRAY_SIZE(list)};

    tallies_each(&measures->details.tallies, TALLY_EXIT, collect_exits, &exits);
    for (size_t i = 0; i < exits.nr; i++) {
        double part = percent(list[i].cycles, measures_running_cycles(measures, list[i].domain));

        if (part >= EXITS_PERCENT)
            add_exits(findings, &list[i], part);
    }
}

static void add_interrupt(void *context, const struct tally *tally)
{
    struct findings *findings = context;
    uint64_t rate = per_second(findings, tally->count);
    char count[NUMBER_MAX];

    if (rate >= MANY_INTERRUPTS && measures_shows_tally(findings->measures, tally))
        findings_add(findings, "interrupts", (double)rate,
                     str_format("CPU %" PRIu32 " handled %s interrupts a second of IRQ %" PRIu64
                                ".",
                                tally->who, number_format(count, rate), tally->what));
}

static void add_injected(void *context, const struct tally *tally)
{
    struct findings *findings = context;
    uint64_t rate = per_second(findings, tally->count);
    char name[INPUT_TEXT_MAX], count[NUMBER_MAX];

    if (rate >= MANY_INTERRUPTS && measures_shows_tally(findings->measures, tally))
        findings_add(
            findings, "interrupts", (double)rate,
            str_format("%s received %s interrupts a second with vector 0x%" PRIx64 ".",
                       input_vcpu(findings->input, name, tally->who, findings->measures->last_tsc),
                       number_format(count, rate), tally->what));
}

static void add_yields(void *context, const struct tally *tally)
{
    struct findings *findings = context;
    uint64_t rate = per_second(findings, tally->count);
    char name[INPUT_TEXT_MAX], count[NUMBER_MAX];

    if (rate >= MANY_YIELDS && measures_shows_tally(findings->measures, tally))
        findings_add(
            findings, "yields", (double)rate,
            str_format("%s yielded %s times a second. Possible cause: a lock that a preempted vCPU "
                       "holds.",
                       input_vcpu(findings->input, name, tally->who, findings->measures->last_tsc),
                       number_format(count, rate)));
}

static void find_migrations(struct findings *findings)
{
    const struct measures *measures = findings->measures;

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];
        uint64_t rate = per_second(findings, vcpu->migrations);
        char name[INPUT_TEXT_MAX], count[NUMBER_MAX];

        if (rate >= MANY_MIGRATIONS && is_guest(vcpu->key) && measures_shows_vcpu(measures, vcpu))
            findings_add(
                findings, "migrations", (double)rate,
                str_format("%s moved to another CPU %s times a second.",
                           input_vcpu(findings->input, name, vcpu->key, measures->last_tsc),
                           number_format(count, rate)));
    }
}

/* --- All. --- */

static int compare(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;

    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return strcmp(x->text, y->text);
}

/* Of what was added since FIRST, all of a kind, the heaviest stay. */
static void keep_heaviest(struct findings *findings, size_t first)
{
    if (findings->nr == first)
        return;
    qsort(findings->list + first, findings->nr - first, sizeof(*findings->list), compare);
    while (findings->nr > first + OF_A_KIND_MAX)
        free(findings->list[--findings->nr].text);
}

static void find_interrupts(struct findings *findings)
{
    tallies_each(&findings->measures->details.tallies, TALLY_INTERRUPT, add_interrupt, findings);
    tallies_each(&findings->measures->details.tallies, TALLY_INJECTED, add_injected, findings);
}

static void find_yields(struct findings *findings)
{
    tallies_each(&findings->measures->details.tallies, TALLY_YIELD, add_yields, findings);
}

int findings_new(const struct input *input, const struct measures *measures,
                 struct findings **ret_findings)
{
    static void (*const finders[])(struct findings *) = {
        find_stopped, find_all_waits,  find_losses, find_overcommitted,
        find_exits,   find_interrupts, find_yields, find_migrations,
        find_late,    find_alike,      find_unseen,
    };
    struct findings *findings = calloc(1, sizeof(*findings));

    if (!findings)
        return -ENOMEM;
    findings->input = input;
    findings->measures = measures;
    for (size_t i = 0; i < ARRAY_SIZE(finders); i++) {
        size_t first = findings->nr;

        finders[i](findings);
        keep_heaviest(findings, first);
    }
    if (findings->no_memory) {
        findings_free(findings);
        return -ENOMEM;
    }
    *ret_findings = findings;
    return 0;
}

struct findings *findings_free(struct findings *findings)
{
    if (!findings)
        return NULL;
    for (size_t i = 0; i < findings->nr; i++)
        free(findings->list[i].text);
    free(findings->list);
    free(findings);
    return NULL;
}

size_t findings_count(const struct findings *findings)
{
    return findings->nr;
}

const struct finding *findings_at(const struct findings *findings, size_t i)
{
    return &findings->list[i];
}

/* The view that has the numbers of a kind of findings. */
static const char *view_of(const char *kind)
{
    static const struct {
        const char *kind, *view;
    } views[] = {
        {"lost", "losses"},           {"overcommitted", "cpus"}, {"exits", "exits"},
        {"interrupts", "interrupts"}, {"yields", "scheduler"},   {"migrations", "migrations"},
        {"unseen", "cpus"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(views); i++)
        if (strcmp(views[i].kind, kind) == 0)
            return views[i].view;
    return "vcpus";
}

/* Whether it is what why shows by itself: the longest wait of the vCPU in the whole trace. */
static bool is_default(const struct findings *findings, const struct finding *finding)
{
    const struct measures *measures = findings->measures;

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];
        const struct measures_vcpu *measured = measures_of(vcpu);

        if (vcpu->key == finding->vcpu)
            return findings->input->origin_tsc == 0 && measured && measured->longest_cycles > 0 &&
                   measured->longest_from == finding->tsc;
    }
    return false;
}

char *findings_command(const struct findings *findings, size_t i)
{
    const struct finding *finding = &findings->list[i];
    const struct input *input = findings->input;
    uint64_t first_tsc = findings->measures->first_tsc;
    _cleanup_free_ char *path = input_argument(input), *vcpu = NULL;
    char when[INPUT_TEXT_MAX];

    if (!path)
        return NULL;
    if (!finding->has_vcpu || finding->tsc < first_tsc)
        return str_format("xentracectl report --view %s %s",
                          finding->view ? finding->view : view_of(finding->kind), path);
    vcpu = input_vcpu_argument(input, finding->vcpu, finding->tsc);
    if (!vcpu)
        return NULL;
    if (is_default(findings, finding))
        return str_format("xentracectl why %s %s", vcpu, path);
    return str_format("xentracectl why --at %s %s %s",
                      input_when(input, when, finding->tsc, first_tsc), vcpu, path);
}

static const char *color_of(const struct finding *finding, const struct palette *palette)
{
    static const char *const bad[] = {"lost", "stopped", "starved", "wait"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (strcmp(finding->kind, bad[i]) == 0)
            return palette->bad;
    return palette->warn;
}

/* A color of its own for each line: a pager scrolls by lines. */
static void print_colored(FILE *file, char *text, const char *color, const char *end)
{
    char *state = NULL;

    for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        int indent = (int)strspn(line, " ");

        (void)fprintf(file, "%*s%s%s%s\n", indent, "", color, line + indent, end);
    }
}

void findings_print(const struct findings *findings, size_t i, FILE *file, unsigned int width,
                    const struct palette *palette)
{
    const struct finding *finding = findings_at(findings, i);
    _cleanup_free_ char *command = findings_command(findings, i), *text = NULL;
    size_t bytes;
    FILE *lines = open_memstream(&text, &bytes);

    if (!lines)
        return;
    (void)wrap_print(lines, finding->text, width, INDENT, HANGING);
    if (fclose(lines) != 0)
        return;
    print_colored(file, text, color_of(finding, palette), palette->end);
    if (command)
        (void)fprintf(file, "%*s%s%s%s\n", (int)COMMAND_INDENT, "", palette->dim, command,
                      palette->end);
}

unsigned int findings_lines(const struct findings *findings, size_t i, unsigned int width)
{
    _cleanup_free_ char *command = findings_command(findings, i);
    unsigned int lines = wrap_count(findings_at(findings, i)->text, width, INDENT, HANGING);

    if (command && width > 0)
        lines += ((unsigned int)strlen(command) + COMMAND_INDENT + width - 1) / width;
    return lines;
}

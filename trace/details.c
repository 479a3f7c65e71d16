// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A class of events has one function, which is called only if a part wants that class. Most
 * records of a trace are of the classes sched, hvm and pv.
 */

#include "trace/details.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

/* Bits 16 to 27 of an event, as details.classes has them. Source: <xen/trace.h>, TRC_SCHED etc. */
#define CLASS_SCHED 0x002u
#define CLASS_HVM   0x008u
#define CLASS_MEM   0x010u
#define CLASS_PV    0x020u
#define CLASS_HW    0x080u

#define LONG_FORM UINT32_C(0x100) /* of events with addresses: they have 64 bits */

static uint32_t classes_of(unsigned int parts)
{
    uint32_t classes = 0;

    if (parts & (DETAILS_SCHEDULER | DETAILS_PREEMPTIONS))
        classes |= CLASS_SCHED;
    if (parts & (DETAILS_ACCESSES | DETAILS_INTERRUPTS))
        classes |= CLASS_HVM;
    if (parts & DETAILS_MEMORY)
        classes |= CLASS_MEM;
    if (parts & DETAILS_PV)
        classes |= CLASS_PV;
    if (parts & (DETAILS_INTERRUPTS | DETAILS_POWER))
        classes |= CLASS_HW;
    return classes;
}

/* --- Interrupts, power. --- */

static void on_hardware(void *context, const struct hardware_interval *interval)
{
    struct details *details = context;
    enum tally_kind kind = TALLY_INTERRUPT;

    if (!(details->parts &
          (interval->kind == HARDWARE_INTERRUPT ? DETAILS_INTERRUPTS : DETAILS_POWER)))
        return;
    /* An interrupt is counted in any case: its record may be without times. */
    if (interval->is_incomplete && interval->kind != HARDWARE_INTERRUPT) {
        details->cpus[interval->stream].incomplete += interval->kind == HARDWARE_IDLE;
        return;
    }
    if (interval->kind != HARDWARE_INTERRUPT)
        kind = interval->kind == HARDWARE_IDLE ? TALLY_C_STATE : TALLY_FREQUENCY;
    tallies_add(&details->tallies, kind, interval->cpu, interval->value, 1, interval->cycles);
}

/* --- Made and freed. --- */

int details_init(struct details *details, unsigned int parts, const struct merge *merge,
                 const struct state *state)
{
    *details = (struct details){
        .parts = parts,
        .classes = classes_of(parts),
        .merge = merge,
        .state = state,
    };
    hardware_init(&details->hardware, on_hardware, details);
    return tallies_init(&details->tallies);
}

void details_done(struct details *details)
{
    tallies_done(&details->tallies);
    hardware_done(&details->hardware);
    free(details->cpus);
    free(details->vcpus);
    *details = (struct details){0};
}

int details_grow(struct details *details, unsigned int nr)
{
    struct details_cpu *cpus;

    if (nr <= details->nr_cpus)
        return 0;
    cpus = reallocarray(details->cpus, nr, sizeof(*cpus));
    if (!cpus)
        return -ENOMEM;
    details->cpus = cpus;
    for (; details->nr_cpus < nr; details->nr_cpus++)
        cpus[details->nr_cpus] = (struct details_cpu){0};
    return hardware_grow(&details->hardware, nr);
}

/* NULL: no memory. */
static struct details_vcpu *details_of(struct details *details, const struct state_vcpu *vcpu)
{
    if (vcpu->number >= details->nr_vcpus) {
        unsigned int nr = (vcpu->number + 1) * 2;
        struct details_vcpu *vcpus = reallocarray(details->vcpus, nr, sizeof(*vcpus));

        if (!vcpus) {
            details->error = -ENOMEM;
            return NULL;
        }
        details->vcpus = vcpus;
        for (; details->nr_vcpus < nr; details->nr_vcpus++)
            vcpus[details->nr_vcpus] = (struct details_vcpu){.preempted_by = TALLY_NOBODY};
    }
    return &details->vcpus[vcpu->number];
}

static const struct state_vcpu *running_on(const struct details *details,
                                           const struct merge_record *record)
{
    return details->state->cpus[record->stream].running;
}

static uint64_t long_word(const struct merge_record *record, unsigned int i)
{
    return (uint64_t)merge_word(record, i + 1) << 32 | merge_word(record, i);
}

/* --- Exits and accesses. --- */

/* The exit's time is that of the last access during it. */
static void end_access(struct details *details, const struct state_vcpu *vcpu, bool timed,
                       uint64_t cycles)
{
    struct details_vcpu *of = details_of(details, vcpu);

    if (!of || !of->has_accessed)
        return;
    of->has_accessed = false;
    if (timed)
        tallies_add(&details->tallies, of->access, vcpu->key >> 16, of->address, 0, cycles);
}

void details_note_exit(struct details *details, const struct state_vcpu *vcpu, uint32_t reason,
                       bool timed, uint64_t cycles)
{
    if (details->parts & DETAILS_ACCESSES)
        end_access(details, vcpu, timed, cycles);
    if (!(details->parts & DETAILS_EXITS))
        return;
    tallies_add(&details->tallies, TALLY_EXIT, vcpu->key, reason, 1, cycles);
    if (timed && cycles == 0) /* which counts as unknown there */
        tallies_add(&details->tallies, TALLY_EXIT, vcpu->key, reason, 0, 0);
}

/* Whether the record is an access; then of which kind, and to where. */
static bool find_access(const struct merge_record *record, uint32_t event,
                        enum tally_kind *ret_kind, uint64_t *ret_address)
{
    unsigned int nr_words = merge_words(record);

    switch (event & ~LONG_FORM) {
    case TRC_HVM_IOPORT_READ:
        *ret_kind = TALLY_PIO_READ;
        break;
    case TRC_HVM_IOPORT_WRITE:
        *ret_kind = TALLY_PIO_WRITE;
        break;
    case TRC_HVM_IOMEM_READ:
        *ret_kind = TALLY_MMIO_READ;
        break;
    case TRC_HVM_IOMEM_WRITE:
        *ret_kind = TALLY_MMIO_WRITE;
        break;
    default:
        return false;
    }
    if (nr_words < ((event & LONG_FORM) ? 2u : 1u))
        return false;
    *ret_address = (event & LONG_FORM) ? long_word(record, 0) : merge_word(record, 0);
    return true;
}

static void note_access(struct details *details, const struct merge_record *record, uint32_t event)
{
    const struct state_vcpu *vcpu = running_on(details, record);
    struct details_vcpu *of;
    enum tally_kind kind;
    uint64_t address;

    if (!vcpu || !find_access(record, event, &kind, &address))
        return;
    tallies_add(&details->tallies, kind, vcpu->key >> 16, address, 1, 0);
    of = details_of(details, vcpu);
    if (!of || !vcpu->has_left)
        return;
    of->has_accessed = true;
    of->access = kind;
    of->address = address;
}

static void note_hvm(struct details *details, const struct merge_record *record, uint32_t event)
{
    const struct state_vcpu *vcpu = running_on(details, record);

    if ((event & 0xf000u) != (TRC_HVM_HANDLER & 0xf000u) || !vcpu)
        return;
    if (details->parts & DETAILS_ACCESSES)
        note_access(details, record, event);
    if (!(details->parts & DETAILS_INTERRUPTS) || merge_words(record) == 0)
        return;
    if (event == TRC_HVM_INJ_VIRQ)
        tallies_add(&details->tallies, TALLY_INJECTED, vcpu->key, merge_word(record, 0), 1, 0);
    else if (event == TRC_HVM_INTR)
        tallies_add(&details->tallies, TALLY_EXTERNAL, vcpu->key, merge_word(record, 0), 1, 0);
}

/* --- PV. --- */

static void note_pv(struct details *details, const struct merge_record *record, uint32_t event)
{
    const struct state_vcpu *vcpu = running_on(details, record);
    uint32_t who = vcpu ? vcpu->key : TALLY_NOBODY;
    unsigned int nr_words = merge_words(record);
    struct tallies *tallies = &details->tallies;

    tallies_add(tallies, TALLY_PV, who, event & ~LONG_FORM, 1, 0);
    if (event == TRC_PV_HYPERCALL_V2 && nr_words > 0)
        tallies_add(tallies, TALLY_HYPERCALL, who, merge_word(record, 0) & 0xfffff, 1, 0);
    else if (event == TRC_PV_HYPERCALL_SUBCALL && nr_words > 0)
        tallies_add(tallies, TALLY_SUBCALL, who, merge_word(record, 0) & 0xfffff, 1, 0);
    else if (event == TRC_PV_HYPERCALL && nr_words > 1)
        tallies_add(tallies, TALLY_HYPERCALL, who, merge_word(record, 1), 1, 0);
    else if (event == (TRC_PV_HYPERCALL | LONG_FORM) && nr_words > 2)
        tallies_add(tallies, TALLY_HYPERCALL, who, merge_word(record, 2), 1, 0);
}

/* --- The scheduler. --- */

/* The words of an event in which the vCPU is. */
enum vcpu_form {
    NO_VCPU,
    PACKED, /* one word: domain << 16 | vCPU */
    PAIR,   /* two: domain, vCPU */
};

struct vcpu_place {
    uint32_t event;
    enum vcpu_form form;
    unsigned int word;
};

/* Those of which a vCPU is the subject. Source: the calls of TRACE_*() in Xen's common/sched/. */
static const struct vcpu_place vcpu_places[] = {
    {0x22002, PAIR, 0},   {0x22003, PAIR, 0},   {0x22004, PAIR, 1},   {0x22005, PAIR, 0},
    {0x22007, PAIR, 0},   {0x22008, PAIR, 0},   {0x2200a, PACKED, 0}, {0x22202, PACKED, 0},
    {0x22203, PACKED, 0}, {0x22205, PACKED, 0}, {0x22207, PACKED, 0}, {0x2220a, PACKED, 0},
    {0x2220b, PACKED, 2}, {0x2220d, PACKED, 0}, {0x2220f, PACKED, 0}, {0x22213, PACKED, 2},
    {0x22214, PACKED, 0}, {0x22216, PACKED, 0}, {0x22217, PACKED, 0}, {0x22802, PACKED, 0},
    {0x22803, PACKED, 0}, {0x22804, PACKED, 0}, {0x22a01, PACKED, 0}, {0x22a02, PACKED, 0},
    {0x22a03, PACKED, 0}, {0x22a04, PACKED, 0}, {0x28003, PAIR, 0},   {0x28004, PAIR, 0},
    {0x28005, PAIR, 0},   {0x28006, PAIR, 0},   {0x28007, PAIR, 0},
};

static bool find_vcpu(const struct merge_record *record, uint32_t event, uint32_t *ret_key)
{
    const struct vcpu_place *place = vcpu_places, *end = place + ARRAY_SIZE(vcpu_places);
    unsigned int words;

    while (place < end && place->event != event)
        place++;
    if (place == end)
        return false;
    words = place->form == PAIR ? 2 : 1;
    if (merge_words(record) < place->word + words)
        return false;
    *ret_key = merge_word(record, place->word);
    if (place->form == PAIR)
        *ret_key = *ret_key << 16 | (merge_word(record, place->word + 1) & 0xffff);
    return true;
}

void details_note_yield(struct details *details, const struct merge_record *record)
{
    uint32_t key;

    if ((details->parts & DETAILS_YIELDS) && find_vcpu(record, TRC_SCHED_YIELD, &key))
        tallies_add(&details->tallies, TALLY_YIELD, key, 0, 1, 0);
}

/* Who was preempted on that CPU: now somebody else runs there. */
static void end_preemption(struct details *details, uint32_t stream, uint32_t key)
{
    uint32_t number = details->cpus[stream].preempted;
    struct details_vcpu *of;

    details->cpus[stream].preempted = 0;
    if (number == 0)
        return;
    of = &details->vcpus[number - 1];
    if (of->is_preempted && of->preempted_on == stream &&
        details->state->vcpus[number - 1]->key != key) {
        of->preempted_by = key;
        of->is_preempted = false;
    }
}

static void begin_preemption(struct details *details, uint32_t stream, uint32_t key)
{
    const struct state_vcpu *vcpu = state_find(details->state, key);
    struct details_vcpu *of = vcpu ? details_of(details, vcpu) : NULL;

    if (!of)
        return;
    *of = (struct details_vcpu){
        .is_preempted = true,
        .preempted_on = stream,
        .preempted_by = TALLY_NOBODY,
        .has_accessed = of->has_accessed,
        .access = of->access,
        .address = of->address,
    };
    details->cpus[stream].preempted = vcpu->number + 1;
}

void details_note_wait(struct details *details, const struct state_wait_end *wait)
{
    struct details_vcpu *of;

    if (!(details->parts & DETAILS_PREEMPTIONS) || wait->wait != STATE_PREEMPT)
        return;
    of = details_of(details, wait->vcpu);
    if (!of)
        return;
    tallies_add(&details->tallies, TALLY_PREEMPTED, wait->vcpu->key, of->preempted_by, 1,
                wait->to - wait->from);
    of->is_preempted = false;
}

static void note_runstate(struct details *details, const struct merge_record *record,
                          uint32_t event)
{
    enum state_runstate old = event >> 8 & 3, new = event >> 4 & 3;

    if (new == STATE_RUNNING)
        end_preemption(details, record->stream, merge_word(record, 0));
    else if (old == STATE_RUNNING && new == STATE_RUNNABLE)
        begin_preemption(details, record->stream, merge_word(record, 0));
}

static void note_sched(struct details *details, const struct merge_record *record, uint32_t event)
{
    uint32_t key;

    if (state_is_runstate(event)) {
        if ((details->parts & DETAILS_PREEMPTIONS) && merge_words(record) > 0)
            note_runstate(details, record, event);
    } else if ((details->parts & DETAILS_SCHEDULER) && find_vcpu(record, event, &key)) {
        tallies_add(&details->tallies, TALLY_SCHED, key, event, 1, 0);
    }
}

void details_note_move(struct details *details, const struct state_vcpu *vcpu, uint32_t from,
                       uint32_t to)
{
    uint64_t cpus =
        (uint64_t)merge_cpu_of(details->merge, from) << 32 | merge_cpu_of(details->merge, to);

    if (details->parts & DETAILS_MIGRATIONS)
        tallies_add(&details->tallies, TALLY_MIGRATION, vcpu->key, cpus, 1, 0);
}

/* --- Memory. --- */

static bool find_domain(const struct merge_record *record, uint32_t event, uint32_t *ret_domain)
{
    unsigned int word;

    switch (event) {
    case TRC_MEM_PAGE_GRANT_MAP:
    case TRC_MEM_PAGE_GRANT_UNMAP:
    case TRC_MEM_PAGE_GRANT_TRANSFER:
        word = 0;
        break;
    case TRC_MEM_SET_P2M_ENTRY:
        word = 5;
        break;
    case TRC_MEM_DECREASE_RESERVATION:
    case TRC_MEM_POD_SUPERPAGE_SPLINTER:
        word = 2;
        break;
    case TRC_MEM_POD_POPULATE:
    case TRC_MEM_POD_ZERO_RECLAIM:
        word = 4;
        break;
    default:
        return false;
    }
    if (merge_words(record) <= word)
        return false;
    *ret_domain = merge_word(record, word) & 0xffff; /* the order of the pages is above it */
    return true;
}

static void note_memory(struct details *details, const struct merge_record *record, uint32_t event)
{
    const struct state_vcpu *vcpu = running_on(details, record);
    uint64_t by = vcpu ? vcpu->key >> 16 : TALLY_NOBODY;
    uint32_t domain;

    if (find_domain(record, event, &domain))
        tallies_add(&details->tallies, TALLY_MEMORY, domain, (uint64_t)event << 32 | by, 1, 0);
}

/* --- All. --- */

static bool want_hvm(unsigned int parts, uint32_t event)
{
    switch (event & ~LONG_FORM) {
    case TRC_HVM_IOPORT_READ:
    case TRC_HVM_IOPORT_WRITE:
    case TRC_HVM_IOMEM_READ:
    case TRC_HVM_IOMEM_WRITE:
        return parts & DETAILS_ACCESSES;
    case TRC_HVM_INJ_VIRQ:
    case TRC_HVM_INTR:
        return parts & DETAILS_INTERRUPTS;
    default:
        return false;
    }
}

bool details_want(const struct details *details, uint32_t event)
{
    if (event == TRC_SCHED_YIELD && (details->parts & DETAILS_YIELDS))
        return true;
    if ((event >> 16 & details->classes) == 0)
        return false;
    if (event >> 16 == CLASS_HVM)
        return want_hvm(details->parts, event);
    if (event == TRC_HW_IRQ_HANDLED)
        return details->parts & DETAILS_INTERRUPTS;
    return event >> 16 != CLASS_HW || (details->parts & DETAILS_POWER);
}

void details_begin_blind(struct details *details, const struct merge_record *record)
{
    struct details_cpu *cpu = &details->cpus[record->stream];

    hardware_begin_blind(&details->hardware, record);
    cpu->preempted = 0;
}

void details_record_slow(struct details *details, const struct merge_record *record, uint32_t event)
{
    switch (event >> 16) {
    case CLASS_SCHED:
        note_sched(details, record, event);
        break;
    case CLASS_HVM:
        note_hvm(details, record, event);
        break;
    case CLASS_MEM:
        note_memory(details, record, event);
        break;
    case CLASS_PV:
        note_pv(details, record, event);
        break;
    case CLASS_HW:
        hardware_record(&details->hardware, record, event);
        break;
    default: /* several classes at once: no event of Xen's */
        break;
    }
}

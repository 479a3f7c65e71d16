// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table. A row is an event, its name, and its fields: a field's name, its first word, its type.
 * tests/trace/events-of-xen is the same from the other side: the structures that Xen writes.
 */

#include "trace/events.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* A whole word; some bits of one; two words; a domain and a vCPU in two words. */
#define WORD(name, word, type)              {name, word, 0, 32, EVENT_##type}
#define BITS(name, word, shift, width, type) {name, word, shift, width, EVENT_##type}
#define LONG(name, word, type)              {name, word, 0, 64, EVENT_##type}
#define PAIR(name, word)                    {name, word, 0, 64, EVENT_VCPU}
#define ARGUMENT(name, number)              {name, 0, number, 64, EVENT_ARGUMENT}

/* Which versions write it. */
#define ALL          0, 0
#define NONE         EVENT_NO_VERSIONS, EVENT_NO_VERSIONS
#define SINCE(minor) EVENT_XEN(4, minor), 0
#define UNTIL(minor) 0, EVENT_XEN(4, minor)

#define GUEST_EVENT 0x0800f000u

/* clang-format off */
static const struct event_info events[] = {
    {0x0001f001, ALL, 4, "lost_records", {
        WORD("count", 0, NUMBER), BITS("domain", 1, 0, 16, DOMAIN), BITS("vcpu", 1, 16, 16, NUMBER),
        LONG("first_tsc", 2, TICKS)}},
    {0x0001f002, ALL, 0, "wrap_buffer", {}},
    {0x0001f003, ALL, 2, "cpu_change", {WORD("cpu", 0, CPU), WORD("bytes", 1, NUMBER)}},

    {0x00021001, NONE, 1, "running_to_running", {WORD("vcpu", 0, VCPU)}},
    {0x00021002, ALL, 1, "continue_running", {WORD("vcpu", 0, VCPU)}},
    {0x00021011, ALL, 1, "running_to_runnable", {WORD("vcpu", 0, VCPU)}},
    {0x00021021, ALL, 1, "running_to_blocked", {WORD("vcpu", 0, VCPU)}},
    {0x00021031, ALL, 1, "running_to_offline", {WORD("vcpu", 0, VCPU)}},
    {0x00021101, ALL, 1, "runnable_to_running", {WORD("vcpu", 0, VCPU)}},
    {0x00021121, ALL, 1, "runnable_to_blocked", {WORD("vcpu", 0, VCPU)}},
    {0x00021131, ALL, 1, "runnable_to_offline", {WORD("vcpu", 0, VCPU)}},
    {0x00021201, ALL, 1, "blocked_to_running", {WORD("vcpu", 0, VCPU)}},
    {0x00021211, ALL, 1, "blocked_to_runnable", {WORD("vcpu", 0, VCPU)}},
    {0x00021231, ALL, 1, "blocked_to_offline", {WORD("vcpu", 0, VCPU)}},
    {0x00021301, ALL, 1, "offline_to_running", {WORD("vcpu", 0, VCPU)}},
    {0x00021311, ALL, 1, "offline_to_runnable", {WORD("vcpu", 0, VCPU)}},
    {0x00021321, ALL, 1, "offline_to_blocked", {WORD("vcpu", 0, VCPU)}},

    {0x00022001, ALL, 0, "csched:sched_tasklet", {}},
    {0x00022002, ALL, 3, "csched:account_start", {PAIR("vcpu", 0), WORD("active", 2, NUMBER)}},
    {0x00022003, ALL, 3, "csched:account_stop", {PAIR("vcpu", 0), WORD("active", 2, NUMBER)}},
    {0x00022004, ALL, 3, "csched:stolen_vcpu", {WORD("from", 0, CPU), PAIR("vcpu", 1)}},
    {0x00022005, ALL, 3, "csched:picked_cpu", {PAIR("vcpu", 0), WORD("cpu", 2, CPU)}},
    {0x00022006, ALL, 1, "csched:tickle", {WORD("cpu", 0, CPU)}},
    {0x00022007, ALL, 2, "csched:boost", {PAIR("vcpu", 0)}},
    {0x00022008, ALL, 2, "csched:unboost", {PAIR("vcpu", 0)}},
    {0x00022009, ALL, 1, "csched:schedule", {
        BITS("cpu", 0, 0, 16, CPU), BITS("tasklet", 0, 16, 8, FLAG), BITS("idle", 0, 24, 8, FLAG)}},
    {0x0002200a, ALL, 2, "csched:ratelimit", {WORD("vcpu", 0, VCPU), WORD("runtime", 1, NSEC)}},
    {0x0002200b, ALL, 2, "csched:steal_check", {
        WORD("peer_cpu", 0, CPU), WORD("checked", 1, FLAG)}},
    {0x00022201, NONE, 0, "csched2:tick", {}},
    {0x00022202, ALL, 2, "csched2:runq_pos", {WORD("vcpu", 0, VCPU), WORD("position", 1, NUMBER)}},
    {0x00022203, ALL, 4, "csched2:credit_burn", {
        WORD("vcpu", 0, VCPU), WORD("credit", 1, SIGNED), WORD("budget", 2, SIGNED),
        WORD("delta", 3, SIGNED)}},
    {0x00022204, NONE, 0, "csched2:credit_add", {}},
    {0x00022205, ALL, 3, "csched2:tickle_check", {
        WORD("vcpu", 0, VCPU), WORD("credit", 1, SIGNED), WORD("score", 2, SIGNED)}},
    {0x00022206, ALL, 1, "csched2:tickle", {BITS("cpu", 0, 0, 16, CPU)}},
    {0x00022207, SINCE(14), 3, "csched2:credit_reset", {
        WORD("vcpu", 0, VCPU), WORD("credit_start", 1, SIGNED), WORD("credit_end", 2, SIGNED)}},
    {0x00022207, UNTIL(13), 4, "csched2:credit_reset", {
        WORD("vcpu", 0, VCPU), WORD("credit_start", 1, SIGNED), WORD("credit_end", 2, SIGNED),
        WORD("multiplier", 3, NUMBER)}},
    {0x00022208, ALL, 0, "csched2:sched_tasklet", {}},
    {0x00022209, ALL, 0, "csched2:update_load", {}},
    {0x0002220a, ALL, 2, "csched2:runq_assign", {
        WORD("vcpu", 0, VCPU), BITS("runq", 1, 0, 16, NUMBER)}},
    {0x0002220b, ALL, 4, "csched2:update_vcpu_load", {
        LONG("load", 0, HEX), WORD("vcpu", 2, VCPU), WORD("shift", 3, NUMBER)}},
    {0x0002220c, ALL, 6, "csched2:update_runq_load", {
        LONG("average_load", 0, HEX), LONG("balance_load", 2, HEX), BITS("load", 4, 0, 16, NUMBER),
        BITS("runq", 4, 16, 8, NUMBER), BITS("shift", 4, 24, 8, NUMBER)}},
    {0x0002220d, ALL, 3, "csched2:tickle_new", {
        WORD("vcpu", 0, VCPU), WORD("cpu", 1, CPU), WORD("credit", 2, SIGNED)}},
    {0x0002220e, ALL, 1, "csched2:runq_max_weight", {
        BITS("runq", 0, 0, 16, NUMBER), BITS("max_weight", 0, 16, 16, NUMBER)}},
    {0x0002220f, ALL, 2, "csched2:migrate", {
        WORD("vcpu", 0, VCPU), BITS("from_runq", 1, 0, 16, NUMBER),
        BITS("to_runq", 1, 16, 16, NUMBER)}},
    {0x00022210, ALL, 2, "csched2:load_check", {
        BITS("runq", 0, 0, 16, NUMBER), BITS("other_runq", 0, 16, 16, NUMBER),
        WORD("delta", 1, NUMBER)}},
    {0x00022211, ALL, 6, "csched2:load_balance", {
        LONG("load", 0, HEX), LONG("other_load", 2, NUMBER), BITS("runq", 4, 0, 16, NUMBER),
        BITS("other_runq", 4, 16, 16, NUMBER)}},
    {0x00022213, ALL, 4, "csched2:picked_cpu", {
        LONG("load", 0, HEX), WORD("vcpu", 2, VCPU), BITS("runq", 3, 0, 16, NUMBER),
        BITS("cpu", 3, 16, 16, CPU)}},
    {0x00022214, SINCE(14), 3, "csched2:runq_candidate", {
        WORD("vcpu", 0, VCPU), WORD("tickled_cpu", 1, SIGNED), WORD("credit", 2, SIGNED)}},
    {0x00022214, UNTIL(13), 4, "csched2:runq_candidate", {
        WORD("vcpu", 0, VCPU), WORD("tickled_cpu", 1, SIGNED), WORD("skipped", 2, NUMBER),
        WORD("credit", 3, SIGNED)}},
    {0x00022215, ALL, 2, "csched2:schedule", {
        BITS("cpu", 0, 0, 16, CPU), BITS("runq", 0, 16, 16, NUMBER), BITS("tasklet", 1, 0, 8, FLAG),
        BITS("idle", 1, 8, 8, FLAG), BITS("smt_idle", 1, 16, 8, FLAG),
        BITS("tickled", 1, 24, 8, FLAG)}},
    {0x00022216, ALL, 2, "csched2:ratelimit", {WORD("vcpu", 0, VCPU), WORD("runtime", 1, NSEC)}},
    {0x00022217, ALL, 1, "csched2:runq_candidate_check", {WORD("vcpu", 0, VCPU)}},
    {0x00022801, ALL, 1, "rtds:tickle", {BITS("cpu", 0, 0, 16, CPU)}},
    {0x00022802, ALL, 5, "rtds:runq_pick", {
        WORD("vcpu", 0, VCPU), LONG("deadline", 1, NSEC), LONG("budget", 3, NSEC)}},
    {0x00022803, ALL, 6, "rtds:burn_budget", {
        WORD("vcpu", 0, VCPU), LONG("budget", 1, NSEC), WORD("delta", 3, SIGNED),
        WORD("priority", 4, NUMBER), BITS("extratime", 5, 0, 8, FLAG)}},
    {0x00022804, ALL, 6, "rtds:replenish_budget", {
        WORD("vcpu", 0, VCPU), WORD("priority", 1, NUMBER), LONG("deadline", 2, NSEC),
        LONG("budget", 4, NSEC)}},
    {0x00022805, ALL, 0, "rtds:sched_tasklet", {}},
    {0x00022806, ALL, 1, "rtds:schedule", {
        BITS("cpu", 0, 0, 16, CPU), BITS("tasklet", 0, 16, 8, FLAG),
        BITS("tickled", 0, 24, 4, FLAG), BITS("idle", 0, 28, 4, FLAG)}},
    {0x00022a01, ALL, 2, "null:picked_cpu", {WORD("vcpu", 0, VCPU), WORD("cpu", 1, CPU)}},
    {0x00022a02, ALL, 2, "null:assign", {WORD("vcpu", 0, VCPU), WORD("cpu", 1, CPU)}},
    {0x00022a03, ALL, 2, "null:deassign", {WORD("vcpu", 0, VCPU), WORD("cpu", 1, CPU)}},
    {0x00022a04, ALL, 2, "null:migrate", {
        WORD("vcpu", 0, VCPU), BITS("from_cpu", 1, 0, 16, CPU), BITS("to_cpu", 1, 16, 16, CPU)}},
    {0x00022a05, ALL, 2, "null:schedule", {
        BITS("tasklet", 0, 0, 16, FLAG), BITS("cpu", 0, 16, 16, CPU), WORD("vcpu", 1, VCPU)}},
    {0x00022a06, ALL, 0, "null:sched_tasklet", {}},

    {0x00028001, ALL, 1, "sched_add_domain", {WORD("domain", 0, DOMAIN)}},
    {0x00028002, ALL, 1, "sched_rem_domain", {WORD("domain", 0, DOMAIN)}},
    {0x00028003, ALL, 2, "domain_sleep", {PAIR("vcpu", 0)}},
    {0x00028004, ALL, 2, "domain_wake", {PAIR("vcpu", 0)}},
    {0x00028005, ALL, 2, "do_yield", {PAIR("vcpu", 0)}},
    {0x00028006, ALL, 2, "do_block", {PAIR("vcpu", 0)}},
    {0x00028007, ALL, 3, "domain_shutdown", {PAIR("vcpu", 0), WORD("reason", 2, SHUTDOWN)}},
    {0x00028008, NONE, 0, "sched_ctl", {}},
    {0x00028009, ALL, 1, "sched_adjdom", {WORD("domain", 0, DOMAIN)}},
    {0x0002800a, ALL, 4, "switch", {PAIR("prev", 0), PAIR("next", 2)}},
    {0x0002800b, NONE, 0, "s_timer_fn", {}},
    {0x0002800c, NONE, 0, "t_timer_fn", {}},
    {0x0002800d, NONE, 0, "dom_timer_fn", {}},
    {0x0002800e, ALL, 3, "switch_infprev", {PAIR("vcpu", 0), WORD("runtime", 2, NSEC)}},
    {0x0002800f, ALL, 4, "switch_infnext", {
        PAIR("vcpu", 0), WORD("since_out", 2, NSEC), WORD("slice", 3, NSEC)}},
    {0x00028010, ALL, 3, "domain_shutdown_code", {PAIR("vcpu", 0), WORD("reason", 2, SHUTDOWN)}},
    {0x00028011, ALL, 4, "switch_infcont", {
        PAIR("vcpu", 0), WORD("runtime", 2, NSEC), WORD("slice", 3, NSEC)}},

    {0x00041001, ALL, 1, "domain_create", {WORD("domain", 0, DOMAIN)}},
    {0x00041002, ALL, 1, "domain_destroy", {WORD("domain", 0, DOMAIN)}},

    {0x00081001, ALL, 0, "vmentry", {}},
    {0x00081002, ALL, 2, "vmexit", {WORD("reason", 0, REASON), WORD("rip", 1, ADDRESS)}},
    {0x00081003, SINCE(19), 2, "vmexit", {WORD("reason", 0, REASON), WORD("rip", 1, ADDRESS)}},
    {0x00081102, ALL, 3, "vmexit", {WORD("reason", 0, REASON), LONG("rip", 1, ADDRESS)}},
    {0x00081103, SINCE(19), 3, "vmexit", {WORD("reason", 0, REASON), LONG("rip", 1, ADDRESS)}},
    {0x00081401, ALL, 0, "nested_vmentry", {}},
    {0x00081402, UNTIL(18), 2, "nested_vmexit", {
        WORD("reason", 0, REASON), WORD("rip", 1, ADDRESS)}},
    {0x00081403, SINCE(19), 2, "nested_vmexit", {
        WORD("reason", 0, REASON), WORD("rip", 1, ADDRESS)}},
    {0x00081502, UNTIL(18), 3, "nested_vmexit", {
        WORD("reason", 0, REASON), LONG("rip", 1, ADDRESS)}},
    {0x00081503, SINCE(19), 3, "nested_vmexit", {
        WORD("reason", 0, REASON), LONG("rip", 1, ADDRESS)}},

    {0x00082001, ALL, 2, "pf_xen", {WORD("error", 0, HEX), WORD("address", 1, ADDRESS)}},
    {0x00082002, NONE, 2, "pf_inject", {WORD("error", 0, HEX), WORD("address", 1, ADDRESS)}},
    {0x00082003, ALL, 2, "inject_exception", {WORD("vector", 0, HEX), WORD("error", 1, HEX)}},
    {0x00082004, ALL, 2, "inject_virq", {WORD("vector", 0, HEX), WORD("fake", 1, FLAG)}},
    {0x00082005, NONE, 1, "reinject_virq", {WORD("vector", 0, HEX)}},
    {0x00082006, NONE, 2, "io_read", {WORD("port", 0, HEX), WORD("bytes", 1, NUMBER)}},
    {0x00082007, NONE, 2, "io_write", {WORD("port", 0, HEX), WORD("bytes", 1, NUMBER)}},
    {0x00082008, NONE, 2, "cr_read", {WORD("register", 0, NUMBER), WORD("value", 1, HEX)}},
    {0x00082009, NONE, 2, "cr_write", {WORD("register", 0, NUMBER), WORD("value", 1, HEX)}},
    {0x0008200a, NONE, 0, "dr_read", {}},
    {0x0008200b, ALL, 0, "dr_write", {}},
    {0x0008200c, ALL, 3, "msr_read", {WORD("msr", 0, HEX), LONG("value", 1, HEX)}},
    {0x0008200d, ALL, 3, "msr_write", {WORD("msr", 0, HEX), LONG("value", 1, HEX)}},
    {0x0008200e, ALL, 6, "cpuid", {
        WORD("leaf", 0, HEX), WORD("subleaf", 1, HEX), WORD("eax", 2, HEX), WORD("ebx", 3, HEX),
        WORD("ecx", 4, HEX), WORD("edx", 5, HEX)}},
    {0x0008200f, ALL, 1, "intr", {WORD("vector", 0, HEX)}},
    {0x00082010, ALL, 0, "nmi", {}},
    {0x00082011, ALL, 0, "smi", {}},
    {0x00082012, ALL, 1, "vmmcall", {WORD("hypercall", 0, HYPERCALL)}},
    {0x00082013, ALL, 1, "hlt", {WORD("pending", 0, FLAG)}},
    {0x00082014, NONE, 2, "invlpg", {WORD("invlpga", 0, FLAG), WORD("address", 1, ADDRESS)}},
    {0x00082015, ALL, 0, "mce", {}},
    {0x00082016, ALL, 2, "ioport_read", {WORD("port", 0, HEX), WORD("data", 1, HEX)}},
    {0x00082017, ALL, 2, "mmio_read", {WORD("address", 0, ADDRESS), WORD("data", 1, HEX)}},
    {0x00082018, ALL, 0, "clts", {}},
    {0x00082019, NONE, 1, "lmsw", {WORD("value", 0, HEX)}},
    {0x0008201a, ALL, 2, "rdtsc", {LONG("value", 0, TICKS)}},
    {0x00082020, ALL, 3, "intr_window", {
        WORD("vector", 0, HEX), WORD("source", 1, NUMBER), WORD("injected", 2, SIGNED)}},
    {0x00082021, ALL, 6, "npf", {
        LONG("address", 0, ADDRESS), LONG("machine_frame", 2, ADDRESS),
        WORD("qualification", 4, HEX), WORD("type", 5, NUMBER)}},
    {0x00082022, ALL, 0, "realmode_emulate", {}},
    {0x00082023, ALL, 1, "trap", {WORD("vector", 0, HEX)}},
    {0x00082024, ALL, 1, "trap_debug", {WORD("qualification", 0, HEX)}},
    {0x00082025, ALL, 0, "vlapic", {}},
    {0x00082101, ALL, 3, "pf_xen", {WORD("error", 0, HEX), LONG("address", 1, ADDRESS)}},
    {0x00082102, ALL, 3, "pf_inject", {WORD("error", 0, HEX), LONG("address", 1, ADDRESS)}},
    {0x00082108, ALL, 3, "cr_read", {WORD("register", 0, NUMBER), LONG("value", 1, HEX)}},
    {0x00082109, ALL, 3, "cr_write", {WORD("register", 0, NUMBER), LONG("value", 1, HEX)}},
    {0x00082114, ALL, 3, "invlpg", {WORD("invlpga", 0, FLAG), LONG("address", 1, ADDRESS)}},
    {0x00082116, ALL, 4, "ioport_read", {LONG("port", 0, HEX), LONG("data", 2, HEX)}},
    {0x00082117, ALL, 4, "mmio_read", {LONG("address", 0, ADDRESS), LONG("data", 2, HEX)}},
    {0x00082119, ALL, 2, "lmsw", {LONG("value", 0, HEX)}},
    {0x00082126, ALL, 3, "xcr_read", {WORD("register", 0, NUMBER), LONG("value", 1, HEX)}},
    {0x00082127, ALL, 3, "xcr_write", {WORD("register", 0, NUMBER), LONG("value", 1, HEX)}},
    {0x00082216, ALL, 2, "ioport_write", {WORD("port", 0, HEX), WORD("data", 1, HEX)}},
    {0x00082217, ALL, 2, "mmio_write", {WORD("address", 0, ADDRESS), WORD("data", 1, HEX)}},
    {0x00082316, ALL, 4, "ioport_write", {LONG("port", 0, HEX), LONG("data", 2, HEX)}},
    {0x00082317, ALL, 4, "mmio_write", {LONG("address", 0, ADDRESS), LONG("data", 2, HEX)}},

    {0x00084001, ALL, 6, "hpet_start_timer", {
        WORD("timer", 0, NUMBER), WORD("irq", 1, NUMBER), LONG("delta", 2, NSEC),
        LONG("period", 4, NSEC)}},
    {0x00084002, ALL, 2, "pit_start_timer", {WORD("delta", 0, NSEC), WORD("period", 1, NSEC)}},
    {0x00084003, ALL, 2, "rtc_start_timer", {WORD("delta", 0, NSEC), WORD("period", 1, NSEC)}},
    {0x00084004, ALL, 5, "lapic_start_timer", {
        LONG("delta", 0, NSEC), LONG("period", 2, NSEC), WORD("irq", 4, NUMBER)}},
    {0x00084005, ALL, 1, "hpet_stop_timer", {WORD("timer", 0, NUMBER)}},
    {0x00084006, ALL, 0, "pit_stop_timer", {}},
    {0x00084007, ALL, 0, "rtc_stop_timer", {}},
    {0x00084008, ALL, 0, "lapic_stop_timer", {}},
    {0x00084009, ALL, 0, "pit_timer_callback", {}},
    {0x0008400a, ALL, 0, "lapic_timer_callback", {}},
    {0x0008400b, ALL, 3, "pic_int_output", {
        WORD("output", 0, FLAG), WORD("master", 1, FLAG), WORD("irq", 2, NUMBER)}},
    {0x0008400c, ALL, 1, "pic_kick", {WORD("irq", 0, NUMBER)}},
    {0x0008400d, ALL, 2, "pic_intack", {WORD("master", 0, FLAG), WORD("irq", 1, NUMBER)}},
    {0x0008400e, ALL, 1, "pic_posedge", {WORD("irq", 0, NUMBER)}},
    {0x0008400f, ALL, 1, "pic_negedge", {WORD("irq", 0, NUMBER)}},
    {0x00084010, ALL, 2, "pic_pending_irq", {WORD("accepted", 0, FLAG), WORD("output", 1, FLAG)}},
    {0x00084011, ALL, 2, "lapic_pic_intr", {WORD("target", 0, NUMBER), WORD("accepted", 1, FLAG)}},

    {0x0010f001, ALL, 1, "page_grant_map", {WORD("domain", 0, DOMAIN)}},
    {0x0010f002, ALL, 1, "page_grant_unmap", {WORD("domain", 0, DOMAIN)}},
    {0x0010f003, ALL, 1, "page_grant_transfer", {WORD("domain", 0, DOMAIN)}},
    {0x0010f004, ALL, 6, "set_p2m_entry", {
        LONG("frame", 0, ADDRESS), LONG("machine_frame", 2, ADDRESS), WORD("type", 4, NUMBER),
        BITS("domain", 5, 0, 16, DOMAIN), BITS("order", 5, 16, 16, NUMBER)}},
    {0x0010f005, SINCE(18), 4, "decrease_reservation", {
        LONG("frame", 0, ADDRESS), WORD("domain", 2, DOMAIN), WORD("order", 3, NUMBER)}},
    {0x0010f005, UNTIL(17), 4, "decrease_reservation", {
        LONG("frame", 0, ADDRESS), BITS("domain", 2, 0, 16, DOMAIN),
        BITS("order", 2, 16, 16, NUMBER)}},
    {0x0010f010, SINCE(18), 6, "pod_populate", {
        LONG("frame", 0, ADDRESS), LONG("machine_frame", 2, ADDRESS), WORD("domain", 4, DOMAIN),
        WORD("order", 5, NUMBER)}},
    {0x0010f010, UNTIL(17), 6, "pod_populate", {
        LONG("frame", 0, ADDRESS), LONG("machine_frame", 2, ADDRESS),
        BITS("domain", 4, 0, 16, DOMAIN), BITS("order", 4, 16, 16, NUMBER)}},
    {0x0010f011, SINCE(18), 6, "pod_zero_reclaim", {
        LONG("frame", 0, ADDRESS), LONG("machine_frame", 2, ADDRESS), WORD("domain", 4, DOMAIN),
        WORD("order", 5, NUMBER)}},
    {0x0010f011, UNTIL(17), 6, "pod_zero_reclaim", {
        LONG("frame", 0, ADDRESS), LONG("machine_frame", 2, ADDRESS),
        BITS("domain", 4, 0, 16, DOMAIN), BITS("order", 4, 16, 16, NUMBER)}},
    {0x0010f012, SINCE(18), 4, "pod_superpage_splinter", {
        LONG("frame", 0, ADDRESS), WORD("domain", 2, DOMAIN), WORD("order", 3, NUMBER)}},
    {0x0010f012, UNTIL(17), 4, "pod_superpage_splinter", {
        LONG("frame", 0, ADDRESS), BITS("domain", 2, 0, 16, DOMAIN)}},

    {0x00201001, NONE, 2, "hypercall", {WORD("rip", 0, ADDRESS), WORD("hypercall", 1, HYPERCALL)}},
    {0x00201003, ALL, 2, "trap", {
        WORD("rip", 0, ADDRESS), BITS("vector", 1, 0, 15, NUMBER),
        BITS("has_error", 1, 15, 1, FLAG), BITS("error", 1, 16, 16, HEX)}},
    {0x00201004, ALL, 3, "page_fault", {
        WORD("rip", 0, ADDRESS), WORD("address", 1, ADDRESS), WORD("error", 2, HEX)}},
    {0x00201005, ALL, 1, "forced_invalid_op", {WORD("rip", 0, ADDRESS)}},
    {0x00201006, ALL, 1, "emulate_privop", {WORD("rip", 0, ADDRESS)}},
    {0x00201007, NONE, 1, "emulate_4gb", {WORD("rip", 0, ADDRESS)}},
    {0x00201008, ALL, 0, "math_state_restore", {}},
    {0x00201009, ALL, 2, "paging_fixup", {WORD("rip", 0, ADDRESS), WORD("address", 1, ADDRESS)}},
    {0x0020100a, ALL, 2, "gdt_ldt_mapping_fault", {
        WORD("rip", 0, ADDRESS), WORD("offset", 1, HEX)}},
    {0x0020100b, NONE, 4, "ptwr_emulation", {
        LONG("new_pte", 0, HEX), WORD("address", 2, ADDRESS), WORD("rip", 3, ADDRESS)}},
    {0x0020100c, ALL, 4, "ptwr_emulation_pae", {
        LONG("new_pte", 0, HEX), WORD("address", 2, ADDRESS), WORD("rip", 3, ADDRESS)}},
    {0x0020100d, ALL, 0, "hypercall", {
        BITS("hypercall", 0, 0, 20, HYPERCALL), ARGUMENT("arg0", 0), ARGUMENT("arg1", 1),
        ARGUMENT("arg2", 2), ARGUMENT("arg3", 3), ARGUMENT("arg4", 4), ARGUMENT("arg5", 5)}},
    {0x00201101, NONE, 3, "hypercall", {LONG("rip", 0, ADDRESS), WORD("hypercall", 2, HYPERCALL)}},
    {0x00201103, ALL, 3, "trap", {
        LONG("rip", 0, ADDRESS), BITS("vector", 2, 0, 15, NUMBER),
        BITS("has_error", 2, 15, 1, FLAG), BITS("error", 2, 16, 16, HEX)}},
    {0x00201104, ALL, 5, "page_fault", {
        LONG("rip", 0, ADDRESS), LONG("address", 2, ADDRESS), WORD("error", 4, HEX)}},
    {0x00201105, ALL, 2, "forced_invalid_op", {LONG("rip", 0, ADDRESS)}},
    {0x00201106, ALL, 2, "emulate_privop", {LONG("rip", 0, ADDRESS)}},
    {0x00201107, NONE, 2, "emulate_4gb", {LONG("rip", 0, ADDRESS)}},
    {0x00201109, ALL, 4, "paging_fixup", {LONG("rip", 0, ADDRESS), LONG("address", 2, ADDRESS)}},
    {0x0020110a, ALL, 4, "gdt_ldt_mapping_fault", {
        LONG("rip", 0, ADDRESS), LONG("offset", 2, HEX)}},
    {0x0020110b, ALL, 6, "ptwr_emulation", {
        LONG("new_pte", 0, HEX), LONG("address", 2, ADDRESS), LONG("rip", 4, ADDRESS)}},
    {0x0020110c, NONE, 6, "ptwr_emulation_pae", {
        LONG("new_pte", 0, HEX), LONG("address", 2, ADDRESS), LONG("rip", 4, ADDRESS)}},

    {0x0020200e, ALL, 0, "hypercall_subcall", {
        BITS("hypercall", 0, 0, 20, HYPERCALL), ARGUMENT("arg0", 0), ARGUMENT("arg1", 1),
        ARGUMENT("arg2", 2), ARGUMENT("arg3", 3), ARGUMENT("arg4", 4), ARGUMENT("arg5", 5)}},

    {0x0040f001, ALL, 3, "shadow_not_shadow", {
        WORD("guest_l1e", 0, HEX), WORD("address", 1, ADDRESS), WORD("flags", 2, HEX)}},
    {0x0040f002, ALL, 1, "shadow_fast_propagate", {WORD("address", 0, ADDRESS)}},
    {0x0040f003, ALL, 1, "shadow_fast_mmio", {WORD("address", 0, ADDRESS)}},
    {0x0040f004, ALL, 1, "shadow_false_fast_path", {WORD("address", 0, ADDRESS)}},
    {0x0040f005, ALL, 1, "shadow_mmio", {WORD("address", 0, ADDRESS)}},
    {0x0040f006, ALL, 3, "shadow_fixup", {
        WORD("guest_l1e", 0, HEX), WORD("address", 1, ADDRESS), WORD("flags", 2, HEX)}},
    {0x0040f007, ALL, 1, "shadow_domf_dying", {WORD("address", 0, ADDRESS)}},
    {0x0040f008, ALL, 4, "shadow_emulate", {
        WORD("guest_l1e", 0, HEX), WORD("write_value", 1, HEX), WORD("address", 2, ADDRESS),
        BITS("flags", 3, 0, 29, HEX), BITS("emulations", 3, 29, 3, NUMBER)}},
    {0x0040f009, ALL, 3, "shadow_emulate_unshadow_user", {
        WORD("guest_frame", 0, ADDRESS), WORD("address", 1, ADDRESS), WORD("flags", 2, HEX)}},
    {0x0040f00a, ALL, 3, "shadow_emulate_unshadow_evtinj", {
        WORD("guest_frame", 0, ADDRESS), WORD("address", 1, ADDRESS), WORD("flags", 2, HEX)}},
    {0x0040f00b, ALL, 3, "shadow_emulate_unshadow_unhandled", {
        WORD("guest_frame", 0, ADDRESS), WORD("address", 1, ADDRESS), WORD("flags", 2, HEX)}},
    {0x0040f00c, ALL, 2, "shadow_wrmap_bf", {LONG("guest_frame", 0, ADDRESS)}},
    {0x0040f00d, ALL, 2, "shadow_prealloc_unpin", {LONG("guest_frame", 0, ADDRESS)}},
    {0x0040f00e, ALL, 2, "shadow_resync_full", {LONG("guest_frame", 0, ADDRESS)}},
    {0x0040f00f, ALL, 2, "shadow_resync_only", {LONG("guest_frame", 0, ADDRESS)}},
    {0x0040f101, ALL, 4, "shadow_not_shadow", {
        LONG("guest_l1e", 0, HEX), WORD("address", 2, ADDRESS), WORD("flags", 3, HEX)}},
    {0x0040f102, ALL, 1, "shadow_fast_propagate", {WORD("address", 0, ADDRESS)}},
    {0x0040f103, ALL, 1, "shadow_fast_mmio", {WORD("address", 0, ADDRESS)}},
    {0x0040f104, ALL, 1, "shadow_false_fast_path", {WORD("address", 0, ADDRESS)}},
    {0x0040f105, ALL, 1, "shadow_mmio", {WORD("address", 0, ADDRESS)}},
    {0x0040f106, ALL, 4, "shadow_fixup", {
        LONG("guest_l1e", 0, HEX), WORD("address", 2, ADDRESS), WORD("flags", 3, HEX)}},
    {0x0040f107, ALL, 1, "shadow_domf_dying", {WORD("address", 0, ADDRESS)}},
    {0x0040f108, ALL, 6, "shadow_emulate", {
        LONG("guest_l1e", 0, HEX), LONG("write_value", 2, HEX), WORD("address", 4, ADDRESS),
        BITS("flags", 5, 0, 29, HEX), BITS("emulations", 5, 29, 3, NUMBER)}},
    {0x0040f109, ALL, 4, "shadow_emulate_unshadow_user", {
        LONG("guest_frame", 0, ADDRESS), WORD("address", 2, ADDRESS), WORD("flags", 3, HEX)}},
    {0x0040f10a, ALL, 4, "shadow_emulate_unshadow_evtinj", {
        LONG("guest_frame", 0, ADDRESS), WORD("address", 2, ADDRESS), WORD("flags", 3, HEX)}},
    {0x0040f10b, ALL, 4, "shadow_emulate_unshadow_unhandled", {
        LONG("guest_frame", 0, ADDRESS), WORD("address", 2, ADDRESS), WORD("flags", 3, HEX)}},
    {0x0040f201, ALL, 5, "shadow_not_shadow", {
        LONG("guest_l1e", 0, HEX), LONG("address", 2, ADDRESS), WORD("flags", 4, HEX)}},
    {0x0040f202, ALL, 2, "shadow_fast_propagate", {LONG("address", 0, ADDRESS)}},
    {0x0040f203, ALL, 2, "shadow_fast_mmio", {LONG("address", 0, ADDRESS)}},
    {0x0040f204, ALL, 2, "shadow_false_fast_path", {LONG("address", 0, ADDRESS)}},
    {0x0040f205, ALL, 2, "shadow_mmio", {LONG("address", 0, ADDRESS)}},
    {0x0040f206, ALL, 5, "shadow_fixup", {
        LONG("guest_l1e", 0, HEX), LONG("address", 2, ADDRESS), WORD("flags", 4, HEX)}},
    {0x0040f207, ALL, 2, "shadow_domf_dying", {LONG("address", 0, ADDRESS)}},
    {0x0040f208, ALL, 7, "shadow_emulate", {
        LONG("guest_l1e", 0, HEX), LONG("write_value", 2, HEX), LONG("address", 4, ADDRESS),
        BITS("flags", 6, 0, 29, HEX), BITS("emulations", 6, 29, 3, NUMBER)}},
    {0x0040f209, ALL, 5, "shadow_emulate_unshadow_user", {
        LONG("guest_frame", 0, ADDRESS), LONG("address", 2, ADDRESS), WORD("flags", 4, HEX)}},
    {0x0040f20a, ALL, 5, "shadow_emulate_unshadow_evtinj", {
        LONG("guest_frame", 0, ADDRESS), LONG("address", 2, ADDRESS), WORD("flags", 4, HEX)}},
    {0x0040f20b, ALL, 5, "shadow_emulate_unshadow_unhandled", {
        LONG("guest_frame", 0, ADDRESS), LONG("address", 2, ADDRESS), WORD("flags", 4, HEX)}},

    {0x00801001, ALL, 2, "cpu_freq_change", {WORD("old", 0, MHZ), WORD("new", 1, MHZ)}},
    {0x00801002, ALL, 4, "cpu_idle_entry", {
        WORD("c_state", 0, NUMBER), WORD("tick", 1, NUMBER), WORD("expected", 2, USEC),
        WORD("predicted", 3, USEC)}},
    {0x00801003, ALL, 6, "cpu_idle_exit", {
        WORD("c_state", 0, NUMBER), WORD("tick", 1, NUMBER), WORD("vector1", 2, HEX),
        WORD("vector2", 3, HEX), WORD("vector3", 4, HEX), WORD("vector4", 5, HEX)}},

    {0x00802001, ALL, 3, "irq_move_cleanup_delay", {
        WORD("irq", 0, NUMBER), WORD("vector", 1, HEX), WORD("cpu", 2, CPU)}},
    {0x00802002, ALL, 3, "irq_move_cleanup", {
        WORD("irq", 0, NUMBER), WORD("vector", 1, HEX), WORD("cpu", 2, CPU)}},
    {0x00802003, ALL, 7, "irq_bind_vector", {
        BITS("irq", 0, 0, 16, NUMBER), BITS("vector", 0, 16, 16, HEX), LONG("cpus", 1, HEX),
        LONG("cpus64", 3, HEX), LONG("cpus128", 5, HEX)}},
    {0x00802004, ALL, 7, "irq_clear_vector", {
        BITS("irq", 0, 0, 16, NUMBER), BITS("vector", 0, 16, 16, HEX), LONG("cpus", 1, HEX),
        LONG("cpus64", 3, HEX), LONG("cpus128", 5, HEX)}},
    {0x00802005, ALL, 3, "irq_move_finish", {
        WORD("irq", 0, NUMBER), WORD("vector", 1, HEX), WORD("cpu", 2, CPU)}},
    {0x00802006, ALL, 7, "irq_assign_vector", {
        BITS("irq", 0, 0, 16, NUMBER), BITS("vector", 0, 16, 16, HEX), LONG("cpus", 1, HEX),
        LONG("cpus64", 3, HEX), LONG("cpus128", 5, HEX)}},
    {0x00802007, ALL, 1, "irq_unmapped_vector", {WORD("vector", 0, HEX)}},
    {0x00802008, ALL, 3, "irq_handled", {
        WORD("irq", 0, NUMBER), WORD("begin", 1, TICKS), WORD("end", 2, TICKS)}},

    {0x0800f000, ALL, 7, "guest", {
        WORD("word0", 0, HEX), WORD("word1", 1, HEX), WORD("word2", 2, HEX), WORD("word3", 3, HEX),
        WORD("word4", 4, HEX), WORD("word5", 5, HEX), WORD("word6", 6, HEX)}},
};
/* clang-format on */

const struct event_info *event_info_all(size_t *ret_count)
{
    *ret_count = ARRAY_SIZE(events);
    return events;
}

/* --- Finding one. --- */

/* The first row of EVENT; NULL: there is none. */
static const struct event_info *first_row(uint32_t event)
{
    size_t low = 0, high = ARRAY_SIZE(events);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (events[middle].event < event)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ARRAY_SIZE(events) && events[low].event == event ? &events[low] : NULL;
}

/* The next row of the same event; NULL: there is none. */
static const struct event_info *next_row(const struct event_info *row)
{
    return row + 1 < events + ARRAY_SIZE(events) && row[1].event == row->event ? row + 1 : NULL;
}

static bool is_of_version(const struct event_info *row, unsigned int xen)
{
    return xen >= row->since && (row->until == 0 || xen <= row->until);
}

const struct event_info *event_info_find(uint32_t event, unsigned int nr_words, unsigned int xen)
{
    const struct event_info *newest = first_row(EVENT_IS_GUEST(event) ? GUEST_EVENT : event);
    const struct event_info *fits = NULL;

    for (const struct event_info *row = newest; row; row = next_row(row)) {
        if (row->nr_words != nr_words)
            continue;
        if (xen == 0 || is_of_version(row, xen))
            return row;
        if (!fits)
            fits = row;
    }
    return fits ? fits : newest;
}

const struct event_info *event_info_find_name(const char *name, const struct event_info *after)
{
    for (const struct event_info *row = after ? after + 1 : events;
         row < events + ARRAY_SIZE(events); row++) {
        if (strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

const struct event_info *event_cache_find(struct event_cache *cache, uint32_t header,
                                          unsigned int xen)
{
    uint32_t key = header & 0x7fffffff; /* the event, and how many words there are */
    uint32_t slot = (key ^ key >> 11 ^ key >> 20) % EVENT_CACHE_SLOTS;

    if (cache->slots[slot].key != key || key == 0) {
        cache->slots[slot].key = key;
        cache->slots[slot].info = event_info_find(key & 0x0fffffff, key >> 28, xen);
    }
    return cache->slots[slot].info;
}

/* --- Fields. --- */

static uint32_t word_at(const uint8_t *words, unsigned int i)
{
    uint32_t word;

    memcpy(&word, words + (size_t)4 * i, sizeof(word));
    return word;
}

/*
 * Argument NUMBER of a hypercall. Two bits for each of the six, from bit 20 of the first word on,
 * have the number of its words; those of all arguments follow, without holes.
 */
static bool argument_value(unsigned int number, const uint8_t *words, unsigned int nr_words,
                           uint64_t *ret_value)
{
    uint32_t sizes;
    unsigned int at = 1, size;

    if (nr_words == 0)
        return false;
    sizes = word_at(words, 0) >> 20;
    for (unsigned int i = 0; i < number; i++)
        at += sizes >> (2 * i) & 3;
    size = sizes >> (2 * number) & 3;
    if (size == 0 || size == 3 || at + size > nr_words)
        return false;
    *ret_value = word_at(words, at) | (size == 2 ? (uint64_t)word_at(words, at + 1) << 32 : 0);
    return true;
}

bool event_field_value(const struct event_field *field, const uint8_t *words, unsigned int nr_words,
                       uint64_t *ret_value)
{
    uint64_t value;

    if (field->type == EVENT_ARGUMENT)
        return argument_value(field->shift, words, nr_words, ret_value);
    if (field->word + (field->width > 32 ? 2u : 1u) > nr_words)
        return false;
    value = word_at(words, field->word);
    if (field->width > 32) {
        uint64_t next = word_at(words, field->word + 1u);

        value = field->type == EVENT_VCPU ? value << 16 | (next & 0xffff) : value | next << 32;
    } else {
        value = value >> field->shift & ((UINT64_C(1) << field->width) - 1);
        if (field->type == EVENT_SIGNED && value >> (field->width - 1))
            value |= UINT64_MAX << field->width;
    }
    *ret_value = value;
    return true;
}

/* --- Names. --- */

/* Source: __HYPERVISOR_* in <xen/xen.h>. */
static const char *const hypercalls[] = {
    [0] = "set_trap_table",
    [1] = "mmu_update",
    [2] = "set_gdt",
    [3] = "stack_switch",
    [4] = "set_callbacks",
    [5] = "fpu_taskswitch",
    [6] = "sched_op_compat",
    [7] = "platform_op",
    [8] = "set_debugreg",
    [9] = "get_debugreg",
    [10] = "update_descriptor",
    [12] = "memory_op",
    [13] = "multicall",
    [14] = "update_va_mapping",
    [15] = "set_timer_op",
    [16] = "event_channel_op_compat",
    [17] = "xen_version",
    [18] = "console_io",
    [19] = "physdev_op_compat",
    [20] = "grant_table_op",
    [21] = "vm_assist",
    [22] = "update_va_mapping_otherdomain",
    [23] = "iret",
    [24] = "vcpu_op",
    [25] = "set_segment_base",
    [26] = "mmuext_op",
    [27] = "xsm_op",
    [28] = "nmi_op",
    [29] = "sched_op",
    [30] = "callback_op",
    [31] = "xenoprof_op",
    [32] = "event_channel_op",
    [33] = "physdev_op",
    [34] = "hvm_op",
    [35] = "sysctl",
    [36] = "domctl",
    [37] = "kexec_op",
    [38] = "tmem_op",
    [39] = "argo_op",
    [40] = "xenpmu_op",
    [41] = "dm_op",
    [42] = "hypfs_op",
};

const char *event_hypercall_name(uint64_t number)
{
    return number < ARRAY_SIZE(hypercalls) ? hypercalls[number] : NULL;
}

/* Source: SHUTDOWN_* in <xen/sched.h>. */
static const char *const shutdowns[] = {"poweroff", "reboot",   "suspend",
                                        "crash",    "watchdog", "soft_reset"};

const char *event_shutdown_name(uint64_t reason)
{
    return reason < ARRAY_SIZE(shutdowns) ? shutdowns[reason] : NULL;
}

static const struct {
    const char *name, *unit;
} types[] = {
    [EVENT_NUMBER] = {"number", ""},       [EVENT_SIGNED] = {"signed", ""},
    [EVENT_HEX] = {"hex", ""},             [EVENT_ADDRESS] = {"address", ""},
    [EVENT_VCPU] = {"vcpu", ""},           [EVENT_DOMAIN] = {"domain", ""},
    [EVENT_CPU] = {"cpu", ""},             [EVENT_NSEC] = {"time", "ns"},
    [EVENT_USEC] = {"time", "us"},         [EVENT_MHZ] = {"frequency", "MHz"},
    [EVENT_TICKS] = {"ticks", "cycles"},   [EVENT_REASON] = {"reason", ""},
    [EVENT_HYPERCALL] = {"hypercall", ""}, [EVENT_SHUTDOWN] = {"shutdown", ""},
    [EVENT_FLAG] = {"flag", ""},           [EVENT_ARGUMENT] = {"argument", ""},
};

const char *event_type_name(enum event_type type)
{
    return types[type].name;
}

const char *event_type_unit(enum event_type type)
{
    return types[type].unit;
}

unsigned int event_xen_parse(const char *version)
{
    char *end;
    unsigned long major = strtoul(version, &end, 10), minor;

    if (end == version || *end != '.' || major == 0 || major > 0xff)
        return 0;
    version = end + 1;
    minor = strtoul(version, &end, 10);
    return end == version || minor > 0xff ? 0 : (unsigned int)EVENT_XEN(major, minor);
}

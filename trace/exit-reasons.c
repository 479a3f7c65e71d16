// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace/exit-reasons.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "common/record.h"
#include "common/util.h"

/* TRC_HVM_VMEXIT of SVM since Xen 4.19; and with addresses of 64 bits, of a nested guest. */
#define EVENT_SVM   UINT32_C(0x81003)
#define EVENT_FLAGS UINT32_C(0x500)

#define VMX_PAUSE 40u

static const char *const vmx[] = {
    [0] = "EXCEPTION_NMI",
    [1] = "EXTERNAL_INTERRUPT",
    [2] = "TRIPLE_FAULT",
    [3] = "INIT",
    [4] = "SIPI",
    [5] = "IO_SMI",
    [6] = "OTHER_SMI",
    [7] = "INTERRUPT_WINDOW",
    [8] = "NMI_WINDOW",
    [9] = "TASK_SWITCH",
    [10] = "CPUID",
    [11] = "GETSEC",
    [12] = "HLT",
    [13] = "INVD",
    [14] = "INVLPG",
    [15] = "RDPMC",
    [16] = "RDTSC",
    [17] = "RSM",
    [18] = "VMCALL",
    [19] = "VMCLEAR",
    [20] = "VMLAUNCH",
    [21] = "VMPTRLD",
    [22] = "VMPTRST",
    [23] = "VMREAD",
    [24] = "VMRESUME",
    [25] = "VMWRITE",
    [26] = "VMXOFF",
    [27] = "VMXON",
    [28] = "CR_ACCESS",
    [29] = "DR_ACCESS",
    [30] = "IO_INSTRUCTION",
    [31] = "MSR_READ",
    [32] = "MSR_WRITE",
    [33] = "INVALID_GUEST_STATE",
    [34] = "MSR_LOADING",
    [36] = "MWAIT",
    [37] = "MONITOR_TRAP_FLAG",
    [39] = "MONITOR",
    [40] = "PAUSE",
    [41] = "MCE_DURING_VMENTRY",
    [43] = "TPR_BELOW_THRESHOLD",
    [44] = "APIC_ACCESS",
    [45] = "EOI_INDUCED",
    [46] = "ACCESS_GDTR_OR_IDTR",
    [47] = "ACCESS_LDTR_OR_TR",
    [48] = "EPT_VIOLATION",
    [49] = "EPT_MISCONFIG",
    [50] = "INVEPT",
    [51] = "RDTSCP",
    [52] = "PREEMPTION_TIMER",
    [53] = "INVVPID",
    [54] = "WBINVD",
    [55] = "XSETBV",
    [56] = "APIC_WRITE",
    [57] = "RDRAND",
    [58] = "INVPCID",
    [59] = "VMFUNC",
    [60] = "ENCLS",
    [61] = "RDSEED",
    [62] = "PML_FULL",
    [63] = "XSAVES",
    [64] = "XRSTORS",
    [67] = "UMWAIT",
    [68] = "TPAUSE",
    [74] = "BUS_LOCK",
    [75] = "NOTIFY",
};

/* From 0x60 on; before that come the control and debug registers and the exceptions. */
#define SVM_FIRST 0x60u

static const char *const svm[] = {
    [0x60 - SVM_FIRST] = "INTR",
    [0x61 - SVM_FIRST] = "NMI",
    [0x62 - SVM_FIRST] = "SMI",
    [0x63 - SVM_FIRST] = "INIT",
    [0x64 - SVM_FIRST] = "VINTR",
    [0x65 - SVM_FIRST] = "CR0_SEL_WRITE",
    [0x66 - SVM_FIRST] = "IDTR_READ",
    [0x67 - SVM_FIRST] = "GDTR_READ",
    [0x68 - SVM_FIRST] = "LDTR_READ",
    [0x69 - SVM_FIRST] = "TR_READ",
    [0x6a - SVM_FIRST] = "IDTR_WRITE",
    [0x6b - SVM_FIRST] = "GDTR_WRITE",
    [0x6c - SVM_FIRST] = "LDTR_WRITE",
    [0x6d - SVM_FIRST] = "TR_WRITE",
    [0x6e - SVM_FIRST] = "RDTSC",
    [0x6f - SVM_FIRST] = "RDPMC",
    [0x70 - SVM_FIRST] = "PUSHF",
    [0x71 - SVM_FIRST] = "POPF",
    [0x72 - SVM_FIRST] = "CPUID",
    [0x73 - SVM_FIRST] = "RSM",
    [0x74 - SVM_FIRST] = "IRET",
    [0x75 - SVM_FIRST] = "SWINT",
    [0x76 - SVM_FIRST] = "INVD",
    [0x77 - SVM_FIRST] = "PAUSE",
    [0x78 - SVM_FIRST] = "HLT",
    [0x79 - SVM_FIRST] = "INVLPG",
    [0x7a - SVM_FIRST] = "INVLPGA",
    [0x7b - SVM_FIRST] = "IOIO",
    [0x7c - SVM_FIRST] = "MSR",
    [0x7d - SVM_FIRST] = "TASK_SWITCH",
    [0x7e - SVM_FIRST] = "FERR_FREEZE",
    [0x7f - SVM_FIRST] = "SHUTDOWN",
    [0x80 - SVM_FIRST] = "VMRUN",
    [0x81 - SVM_FIRST] = "VMMCALL",
    [0x82 - SVM_FIRST] = "VMLOAD",
    [0x83 - SVM_FIRST] = "VMSAVE",
    [0x84 - SVM_FIRST] = "STGI",
    [0x85 - SVM_FIRST] = "CLGI",
    [0x86 - SVM_FIRST] = "SKINIT",
    [0x87 - SVM_FIRST] = "RDTSCP",
    [0x88 - SVM_FIRST] = "ICEBP",
    [0x89 - SVM_FIRST] = "WBINVD",
    [0x8a - SVM_FIRST] = "MONITOR",
    [0x8b - SVM_FIRST] = "MWAIT",
    [0x8c - SVM_FIRST] = "MWAIT_CONDITIONAL",
    [0x8d - SVM_FIRST] = "XSETBV",
    [0x8e - SVM_FIRST] = "RDPRU",
    [0x8f - SVM_FIRST] = "EFER_WRITE_TRAP",
    [0xa2 - SVM_FIRST] = "INVPCID",
    [0xa5 - SVM_FIRST] = "BUS_LOCK",
    [0xa6 - SVM_FIRST] = "IDLE_HLT",
};

static const char *const svm_nested[] = {"NPF", "AVIC_INCOMPLETE_IPI", "AVIC_NOACCEL", "VMGEXIT"};

#define SVM_PAUSE   0x77u
#define SVM_NPF     0x400u
#define SVM_INVALID UINT32_MAX

static const char *of_table(const char *const *names, size_t count, uint32_t index)
{
    return index < count ? names[index] : NULL;
}

/* Control and debug registers, exceptions: a name and a number. */
static const char *name_of_register(uint32_t reason, char buffer[static EXIT_REASON_TEXT_MAX])
{
    if (reason >= 0x40)
        (void)snprintf(buffer, EXIT_REASON_TEXT_MAX, "EXCEPTION_%" PRIu32, reason - 0x40);
    else
        (void)snprintf(buffer, EXIT_REASON_TEXT_MAX, "%s%" PRIu32 "_%s",
                       reason < 0x20 ? "CR" : "DR", reason & 0xf, reason & 0x10 ? "WRITE" : "READ");
    return buffer;
}

static const char *svm_name(uint32_t reason, char buffer[static EXIT_REASON_TEXT_MAX])
{
    if (reason < SVM_FIRST)
        return name_of_register(reason, buffer);
    if (reason == SVM_INVALID)
        return "INVALID";
    if (reason >= SVM_NPF)
        return of_table(svm_nested, ARRAY_SIZE(svm_nested), reason - SVM_NPF);
    return of_table(svm, ARRAY_SIZE(svm), reason - SVM_FIRST);
}

bool exit_event_is_svm(uint32_t event)
{
    return (event & ~EVENT_FLAGS) == EVENT_SVM;
}

bool exit_reason_is_svm(uint32_t reason)
{
    return (reason & 0xffff) >= ARRAY_SIZE(vmx);
}

bool exit_record_is_svm(const struct merge_record *record)
{
    return exit_event_is_svm(record_event(record->header)) ||
           (merge_words(record) > 0 && exit_reason_is_svm(merge_word(record, 0)));
}

bool exit_reason_is_pause(bool is_svm, uint32_t reason)
{
    return is_svm ? reason == SVM_PAUSE : (reason & 0xffff) == VMX_PAUSE;
}

const char *exit_reason_name(bool is_svm, uint32_t reason, char buffer[static EXIT_REASON_TEXT_MAX])
{
    /* VMX: bit 31 says that the entry failed, others are flags; the reason has 16 bits. */
    const char *name =
        is_svm ? svm_name(reason, buffer) : of_table(vmx, ARRAY_SIZE(vmx), reason & 0xffff);

    if (name)
        return name;
    (void)snprintf(buffer, EXIT_REASON_TEXT_MAX, "0x%" PRIx32, reason);
    return buffer;
}

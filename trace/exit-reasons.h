/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The names of VM exit reasons. Any thread.
 *
 * Source: Intel SDM, appendix C, and AMD APM volume 2, appendix C; Xen's EXIT_REASON_* in
 * <asm/hvm/vmx/vmx.h> and VMEXIT_* in <asm/hvm/svm/vmcb.h>.
 */

#include <stdbool.h>
#include <stdint.h>

#include "trace/merge.h"

#define EXIT_REASON_TEXT_MAX 32u

/*
 * Whether only AMD's processors make VMEXITs with that event, or with that REASON (bits 16 to 31 of
 * Intel's are flags). Every part of the program that has to guess the vendor asks these.
 */
bool exit_event_is_svm(uint32_t event);
bool exit_reason_is_svm(uint32_t reason);
/* One of both, of a record that is a VMEXIT: for those who read a trace once. */
bool exit_record_is_svm(const struct merge_record *record);

/* Whether the guest left because it executed PAUSE: it spins. */
bool exit_reason_is_pause(bool is_svm, uint32_t reason);

/* "NPF", "IO_INSTRUCTION"; "0x55" of one that is unknown. Returns static text, or BUFFER. */
const char *exit_reason_name(bool is_svm, uint32_t reason,
                             char buffer[static EXIT_REASON_TEXT_MAX]);

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

#define EXIT_REASON_TEXT_MAX 32u

/* Whether only AMD has an exit REASON. Bits 16 to 31 of Intel's are flags. */
bool exit_reason_is_svm(uint32_t reason);

/* "NPF", "IO_INSTRUCTION"; "0x55" of one that is unknown. Returns static text, or BUFFER. */
const char *exit_reason_name(bool is_svm, uint32_t reason,
                             char buffer[static EXIT_REASON_TEXT_MAX]);

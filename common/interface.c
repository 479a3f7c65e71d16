// SPDX-License-Identifier: GPL-2.0-or-later
/* common/local.mk makes a string of the interface's file. */

#include "common/interface.h"

const char interface_text[] =
#include "common/interface.inc"
    ;

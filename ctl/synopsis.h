/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The SYNOPSIS of xentracectl(1), in mdoc, from the table of commands. tests/ctl/test-manual
 * compares it with the manual, into which it is pasted.
 */

#include <stdio.h>

void synopsis_print(FILE *file);

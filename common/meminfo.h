/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Memory of the machine that runs us: of dom0. Any thread but the collector's. */

#include <stdint.h>

/* A figure of proc(5)'s meminfo, such as "MemAvailable", in bytes; 0: it is unknown. */
uint64_t meminfo_bytes(const char *key);

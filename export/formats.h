/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The formats, each of which has a file of its name. docs/export.md describes what they write. */

struct export_format;

extern const struct export_format export_csv, export_clickhouse, export_perfetto, export_ctf;

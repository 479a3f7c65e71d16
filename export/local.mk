# SPDX-License-Identifier: GPL-2.0-or-later

noinst_LIBRARIES += libexport.a

libexport_a_CFLAGS = $(AM_CFLAGS)
libexport_a_SOURCES = \
	export/buffer.c export/buffer.h \
	export/clickhouse.c \
	export/csv.c \
	export/ctf.c \
	export/export.c export/export.h \
	export/formats.h \
	export/perfetto.c

EXTRA_DIST += export/perfetto.proto

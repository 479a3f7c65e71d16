# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that others have made read what `export` writes.

# 77 without babeltrace2, without protobuf.
check_SCRIPTS += tests/export/test-csv tests/export/test-ctf tests/export/test-perfetto
EXTRA_DIST += tests/export/test-csv tests/export/test-ctf tests/export/test-perfetto tests/export/traces.py

# With programs that are large: the step `export` of tests/all.
EXTRA_DIST += tests/export/duckdb.js tests/export/clickhouse.py tests/export/questions.py \
	tests/export/test-clickhouse tests/export/test-duckdb tests/export/test-ship

# KernelShark's plug-in, through KernelShark's library: 77 without it.
if HAVE_KERNELSHARK
noinst_PROGRAMS += tests/export/kshark-list
endif
tests_export_kshark_list_SOURCES = tests/export/kshark-list.c
tests_export_kshark_list_LDADD = -lkshark
EXTRA_DIST += tests/export/test-kernelshark

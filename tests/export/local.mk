# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that others have made read what `export` writes.

# 77 without babeltrace2, without protobuf.
check_SCRIPTS += tests/export/test-csv tests/export/test-ctf tests/export/test-perfetto
EXTRA_DIST += tests/export/test-csv tests/export/test-ctf tests/export/test-perfetto tests/export/traces.py

# With programs that are large: the step `export` of tests/all.
EXTRA_DIST += tests/export/duckdb.js tests/export/clickhouse.py tests/export/questions.py \
	tests/export/test-clickhouse tests/export/test-duckdb tests/export/test-ship

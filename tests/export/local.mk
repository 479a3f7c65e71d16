# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that others have made read what `export` writes.

check_SCRIPTS += tests/export/test-csv
EXTRA_DIST += tests/export/test-csv tests/export/traces.py

# With programs that are large: the step `export` of tests/all.
EXTRA_DIST += tests/export/duckdb.js tests/export/questions.py tests/export/test-clickhouse \
	tests/export/test-duckdb

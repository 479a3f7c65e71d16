# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that others have made read what `export` writes.

check_SCRIPTS += tests/export/test-csv
EXTRA_DIST += tests/export/test-csv tests/export/traces.py

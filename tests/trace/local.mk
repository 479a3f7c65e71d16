# SPDX-License-Identifier: GPL-2.0-or-later

check_SCRIPTS += tests/trace/test-dump tests/trace/test-intervals tests/trace/test-measures tests/trace/test-mutations tests/trace/test-selections
EXTRA_DIST += tests/trace/oracle.py tests/trace/random-trace.py \
	tests/trace/test-dump tests/trace/test-intervals tests/trace/test-measures tests/trace/test-mutations tests/trace/test-selections

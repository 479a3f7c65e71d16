# SPDX-License-Identifier: GPL-2.0-or-later
# One program per module of common/, all linked with the library that they test.

check_PROGRAMS += \
	tests/unit/test-cpu-set \
	tests/unit/test-event-set \
	tests/unit/test-record \
	tests/unit/test-suggest \
	tests/unit/test-text \
	tests/unit/test-trace-file \
	tests/unit/test-trace-file-cuts \
	tests/unit/test-units

tests_unit_test_cpu_set_SOURCES = tests/unit/test-cpu-set.c tests/unit/test.h
tests_unit_test_cpu_set_LDADD = libcommon.a
tests_unit_test_event_set_SOURCES = tests/unit/test-event-set.c tests/unit/test.h
tests_unit_test_event_set_LDADD = libcommon.a
tests_unit_test_record_SOURCES = tests/unit/test-record.c tests/unit/test.h
tests_unit_test_suggest_SOURCES = tests/unit/test-suggest.c tests/unit/test.h
tests_unit_test_suggest_LDADD = libcommon.a
tests_unit_test_text_SOURCES = tests/unit/test-text.c tests/unit/test.h
tests_unit_test_text_LDADD = libcommon.a
tests_unit_test_trace_file_SOURCES = \
	tests/unit/test-trace-file.c tests/unit/trace-bytes.h tests/unit/test.h
tests_unit_test_trace_file_LDADD = libcommon.a
tests_unit_test_trace_file_cuts_SOURCES = \
	tests/unit/test-trace-file-cuts.c tests/unit/trace-bytes.h tests/unit/test.h
tests_unit_test_trace_file_cuts_LDADD = libcommon.a
tests_unit_test_units_SOURCES = tests/unit/test-units.c tests/unit/test.h
tests_unit_test_units_LDADD = libcommon.a

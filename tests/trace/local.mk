# SPDX-License-Identifier: GPL-2.0-or-later

check_SCRIPTS += tests/trace/test-dump tests/trace/test-events tests/trace/test-intervals \
	tests/trace/test-measures tests/trace/test-mutations tests/trace/test-selections \
	tests/trace/test-timeline
EXTRA_DIST += tests/trace/oracle.py tests/trace/oracle-timeline.py tests/trace/random-trace.py tests/trace/events-of-xen \
	tests/trace/test-dump tests/trace/test-events tests/trace/test-intervals \
	tests/trace/test-measures tests/trace/test-mutations tests/trace/test-selections \
	tests/trace/test-timeline

# Prints docs/events.md, which test-events compares.
noinst_PROGRAMS += tests/trace/print-events
tests_trace_print_events_SOURCES = tests/trace/print-events.c
tests_trace_print_events_LDADD = libtrace.a libcommon.a

# SPDX-License-Identifier: GPL-2.0-or-later

trace_tests = \
	tests/trace/test-cut \
	tests/trace/test-diff \
	tests/trace/test-dump \
	tests/trace/test-events \
	tests/trace/test-intervals \
	tests/trace/test-measures \
	tests/trace/test-mutations \
	tests/trace/test-repair \
	tests/trace/test-timeline

check_SCRIPTS += $(trace_tests)
EXTRA_DIST += $(trace_tests) \
	tests/trace/events-of-xen \
	tests/trace/mutations.py \
	tests/trace/oracle.py \
	tests/trace/oracle-timeline.py \
	tests/trace/random-trace.py

# Prints docs/events.md, which test-events compares.
noinst_PROGRAMS += tests/trace/print-events
tests_trace_print_events_SOURCES = tests/trace/print-events.c
tests_trace_print_events_LDADD = libtrace.a libcommon.a

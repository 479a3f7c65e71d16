# SPDX-License-Identifier: GPL-2.0-or-later
# Parts, damaged files, and differences.
check_SCRIPTS += tests/trace/test-cut tests/trace/test-diff tests/trace/test-repair
EXTRA_DIST += tests/trace/test-cut tests/trace/test-diff tests/trace/test-repair tests/trace/mutations.py

check_SCRIPTS += tests/trace/test-dump tests/trace/test-events tests/trace/test-intervals \
	tests/trace/test-measures tests/trace/test-mutations tests/trace/test-selections \
	tests/trace/test-subjects tests/trace/test-timeline tests/trace/test-why
EXTRA_DIST += tests/trace/format-oracle.py tests/trace/oracle.py tests/trace/oracle-timeline.py tests/trace/random-trace.py tests/trace/events-of-xen \
	tests/trace/test-dump tests/trace/test-events tests/trace/test-intervals \
	tests/trace/test-measures tests/trace/test-mutations tests/trace/test-selections \
	tests/trace/test-subjects tests/trace/test-timeline tests/trace/test-why

# Prints docs/events.md, which test-events compares.
noinst_PROGRAMS += tests/trace/print-events
tests_trace_print_events_SOURCES = tests/trace/print-events.c
tests_trace_print_events_LDADD = libtrace.a libcommon.a $(ZSTD_LIBS)

# The library's interface: linked statically, so that the sanitizers see it; and through the shared library.
check_PROGRAMS += tests/trace/test-xentrace
tests_trace_test_xentrace_SOURCES = tests/trace/test-xentrace.c tests/unit/test.h
tests_trace_test_xentrace_LDADD = libtrace.a libcommon.a $(JSON_LIBS) $(ZSTD_LIBS)
check_PROGRAMS += tests/trace/test-blocks
tests_trace_test_blocks_SOURCES = tests/trace/test-blocks.c tests/unit/test.h
tests_trace_test_blocks_LDADD = libtrace.a libcommon.a
check_SCRIPTS += tests/trace/test-library tests/trace/test-python
EXTRA_DIST += tests/trace/test-library tests/trace/test-python
noinst_PROGRAMS += tests/trace/library-lines
tests_trace_library_lines_SOURCES = tests/trace/library-lines.c
tests_trace_library_lines_LDADD = libxentrace.la

check_SCRIPTS += tests/trace/test-findings tests/trace/test-stranger tests/trace/test-views
EXTRA_DIST += tests/trace/test-findings tests/trace/test-stranger tests/trace/test-views

# Compressed traces.
check_SCRIPTS += tests/trace/test-packed
EXTRA_DIST += tests/trace/pack.py tests/trace/test-packed

# Of xenalyze: 77 without it.
check_SCRIPTS += tests/trace/test-xenalyze
EXTRA_DIST += tests/trace/compare-xenalyze.py tests/trace/test-xenalyze

# A disk that fails, preloaded.
check_SCRIPTS += tests/trace/test-bombs tests/trace/test-shorter
EXTRA_DIST += tests/trace/test-bombs tests/trace/test-shorter
noinst_PROGRAMS += tests/trace/libbad_disk.so
tests_trace_libbad_disk_so_SOURCES = tests/trace/bad-disk.c
tests_trace_libbad_disk_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_trace_libbad_disk_so_LINK = $(CC) $(CFLAGS) -shared -o $@

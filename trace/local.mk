# SPDX-License-Identifier: GPL-2.0-or-later

noinst_LIBRARIES += libtrace.a

libtrace_a_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
libtrace_a_SOURCES = \
	trace/about.c trace/about.h \
	trace/activity.c trace/activity.h \
	trace/counts.c trace/counts.h \
	trace/details.c trace/details.h \
	trace/hardware.c trace/hardware.h \
	trace/domains.c trace/domains.h \
	trace/events.c trace/events.h \
	trace/exit-reasons.c trace/exit-reasons.h \
	trace/blocks.c trace/blocks.h \
	trace/measures.c trace/measures.h \
	trace/measures-doc.c trace/measures-doc.h \
	trace/merge.c trace/merge.h \
	trace/pyramid.c trace/pyramid.h \
	trace/record-text.c trace/record-text.h \
	trace/sample.c trace/sample.h \
	trace/sidecar.c trace/sidecar.h \
	trace/source.c trace/source.h \
	trace/state.c trace/state.h \
	trace/story.c trace/story.h \
	trace/subjects.c trace/subjects.h \
	trace/tallies.c trace/tallies.h \
	trace/timeline.c trace/timeline.h \
	trace/worst.c trace/worst.h

# Parts, damaged files, and differences.
libtrace_a_SOURCES += trace/compare.c trace/compare.h trace/cut.c trace/cut.h trace/repair.c trace/repair.h

# The shared library: the same sources, as position-independent code with hidden symbols. It is not made
# with the sanitizers, since any program may load it. What it does not need of common/ is left out.
# -version-info CURRENT:REVISION:AGE: with a new function, CURRENT and AGE are raised by one; the soname
# stays.
include_HEADERS += trace/xentrace.h
libtrace_a_SOURCES += trace/xentrace.c trace/xentrace.h trace/xentrace-borrow.h
lib_LTLIBRARIES += libxentrace.la
libxentrace_la_CFLAGS = -std=gnu17 $(WARN_CFLAGS) $(SHARED_CFLAGS) $(JSON_CFLAGS) $(ZSTD_CFLAGS) \
	-ffunction-sections -fdata-sections
libxentrace_la_SOURCES = $(libtrace_a_SOURCES) $(libcommon_a_SOURCES)
libxentrace_la_LIBADD = $(JSON_LIBS) $(ZSTD_LIBS)
libxentrace_la_LDFLAGS = -version-info 2:0:1 $(SHARED_LDFLAGS) -Wl,--gc-sections \
	-Wl,--version-script=$(top_srcdir)/trace/libxentrace.map
EXTRA_libxentrace_la_DEPENDENCIES = trace/libxentrace.map
EXTRA_DIST += trace/libxentrace.map

pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = trace/libxentrace.pc

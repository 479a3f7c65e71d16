# SPDX-License-Identifier: GPL-2.0-or-later

noinst_LIBRARIES += libtrace.a

libtrace_a_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
libtrace_a_SOURCES = \
	trace/activity.c trace/activity.h \
	trace/counts.c trace/counts.h \
	trace/events.c trace/events.h \
	trace/exit-reasons.c trace/exit-reasons.h \
	trace/measures.c trace/measures.h \
	trace/merge.c trace/merge.h \
	trace/record-text.c trace/record-text.h \
	trace/sample.c trace/sample.h \
	trace/sidecar.c trace/sidecar.h \
	trace/source.c trace/source.h \
	trace/state.c trace/state.h \
	trace/story.c trace/story.h \
	trace/tallies.c trace/tallies.h \
	trace/timeline.c trace/timeline.h \
	trace/worst.c trace/worst.h

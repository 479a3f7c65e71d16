# SPDX-License-Identifier: GPL-2.0-or-later

noinst_LIBRARIES += libcommon.a

# Who links what needs them links json-c and libzstd: the client and the daemon.
libcommon_a_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS) $(ZSTD_CFLAGS)
libcommon_a_SOURCES = \
	common/cpu-set.c common/cpu-set.h \
	common/doc-make.c common/doc-make.h \
	common/drop-cause.c common/drop-cause.h \
	common/event-set.c common/event-set-parse.c common/event-set.h \
	common/interface.c common/interface.h \
	common/json-text.c common/json-text.h \
	common/meminfo.c common/meminfo.h \
	common/memory-file.c common/memory-file.h \
	common/metrics.c common/metrics.h \
	common/protocol.h \
	common/record.h \
	common/seek-table.c common/seek-table.h \
	common/sidecar-path.c common/sidecar-path.h \
	common/suggest.c common/suggest.h \
	common/text.c common/text.h \
	common/thread.c common/thread.h \
	common/time-spec.c common/time-spec.h \
	common/trace-file.c common/trace-file.h common/trace-open.c common/trace-open.h \
	common/units.c common/units.h \
	common/tracer.c common/tracer.h \
	common/unpack.c common/unpack.h \
	common/utf8.c common/utf8.h \
	common/util.h \
	common/varlink.c common/varlink.h \
	common/write-all.c common/write-all.h

# A C string of the interface's file.
EXTRA_DIST += common/org.xentraced.Control.varlink
CLEANFILES += common/interface.inc
common/libcommon_a-interface.$(OBJEXT): common/interface.inc
common/interface.inc: common/org.xentraced.Control.varlink
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed 's/["\\]/\\&/g; s/.*/"&\\n"/' \
		$(srcdir)/common/org.xentraced.Control.varlink >$@.new && mv $@.new $@

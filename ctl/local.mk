# SPDX-License-Identifier: GPL-2.0-or-later

bin_PROGRAMS += xentracectl

# A library of its own, so that tests can link the parts.
noinst_LIBRARIES += libctl.a

libctl_a_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
libctl_a_SOURCES = \
	ctl/args.c ctl/args.h \
	ctl/bundle.c ctl/bundle.h \
	ctl/capture.c ctl/capture.h \
	ctl/chase.c ctl/chase.h \
	ctl/client.c ctl/client.h \
	ctl/connection.c ctl/connection.h \
	ctl/cmd-doctor.c \
	ctl/args-table.c ctl/args-table.h \
	ctl/child.c ctl/child.h \
	ctl/cmd-cut.c \
	ctl/cmd-diff.c \
	ctl/cmd-dump.c \
	ctl/cmd-events.c \
	ctl/cmd-export.c \
	ctl/cmd-info.c \
	ctl/cmd-monitor.c \
	ctl/cmd-metrics.c \
	ctl/cmd-record.c \
	ctl/cmd-reload.c \
	ctl/cmd-repair.c \
	ctl/cmd-report.c \
	ctl/cmd-rotate.c \
	ctl/cmd-snapshot.c \
	ctl/cmd-start.c \
	ctl/cmd-status.c \
	ctl/cmd-stop.c \
	ctl/cmd-timeline.c \
	ctl/cmd-top.c \
	ctl/cmd-trigger.c \
	ctl/cmd-vacuum.c \
	ctl/cmd-version.c \
	ctl/color.c ctl/color.h \
	ctl/cpu-lines.c ctl/cpu-lines.h \
	ctl/copy.c ctl/copy.h \
	ctl/completion-data.c ctl/completion-data.h \
	ctl/cmd-xentrace.c \
	ctl/columns.c ctl/columns.h \
	ctl/condition.c ctl/condition.h \
	ctl/cmd-why.c \
	ctl/ctl.h \
	ctl/derived.c ctl/derived.h \
	ctl/disk.c ctl/disk.h \
	ctl/doc.c ctl/doc.h \
	ctl/doctor.c ctl/doctor-daemon.c ctl/doctor-host.c ctl/doctor.h ctl/doctor-internal.h \
	ctl/follow.c ctl/follow.h \
	ctl/format-file.c ctl/format-file.h \
	ctl/frame.c ctl/frame.h \
	ctl/health.c ctl/health.h \
	ctl/monitor.c ctl/monitor.h \
	ctl/monitor-loop.c ctl/monitor-loop.h \
	ctl/newest.c ctl/newest.h \
	ctl/now.c ctl/now.h \
	ctl/number.c ctl/number.h \
	ctl/domains.c ctl/domains.h \
	ctl/hint.c ctl/hint.h \
	ctl/files.c ctl/files.h \
	ctl/findings.c ctl/findings.h \
	ctl/wrap.c ctl/wrap.h \
	ctl/input.c ctl/input.h \
	ctl/intervals.c ctl/intervals.h \
	ctl/last-report.c ctl/last-report.h \
	ctl/options.c ctl/options.h \
	ctl/output.c ctl/output.h \
	ctl/page.c ctl/page.h \
	ctl/page-data.c ctl/page-data.h \
	ctl/page-timeline.c ctl/page-timeline.h \
	ctl/page-stories.c ctl/page-stories.h \
	ctl/page-trim.c ctl/page-trim.h \
	ctl/page-waits.c ctl/page-waits.h \
	ctl/page-template.c ctl/page-template.h \
	ctl/pager.c ctl/pager.h \
	ctl/progress.c ctl/progress.h \
	ctl/record-key.c ctl/record-key.h \
	ctl/recorder.c ctl/recorder.h \
	ctl/remote.c ctl/remote.h \
	ctl/served.c ctl/served.h \
	ctl/report.c ctl/report.h \
	ctl/request.c ctl/request.h \
	ctl/screen.c ctl/screen.h \
	ctl/second.c ctl/second.h \
	ctl/selection.c ctl/selection.h \
	ctl/reader.c ctl/reader.h \
	ctl/reading.c ctl/reading.h \
	ctl/who.c ctl/who.h \
	ctl/session.c ctl/session.h \
	ctl/snapshot.c ctl/snapshot.h \
	ctl/stop.c ctl/stop.h \
	ctl/storage.c ctl/storage.h \
	ctl/story-text.c ctl/story-text.h \
	ctl/str.c ctl/str.h \
	ctl/synopsis.c ctl/synopsis.h \
	ctl/table.c ctl/table.h \
	ctl/tar.c ctl/tar.h \
	ctl/target.c ctl/target.h \
	ctl/timeline-doc.c ctl/timeline-doc.h \
	ctl/timeline-text.c ctl/timeline-text.h \
	ctl/top.c ctl/top.h \
	ctl/trigger.c ctl/trigger.h \
	ctl/verbs.c \
	ctl/view-domains.c \
	ctl/view-exits.c \
	ctl/view-hardware.c \
	ctl/view-scheduler.c \
	ctl/view-waits.c \
	ctl/views.c ctl/views.h

xentracectl_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
xentracectl_SOURCES = ctl/main.c
xentracectl_LDADD = libctl.a libexport.a libtrace.a libcommon.a $(JSON_LIBS) $(ZSTD_LIBS)

dist_man_MANS += docs/man/xentracectl.1

# A shell finds a completion by the name of its file.
nodist_bashcompletion_DATA = ctl/completion/bash/xentracectl
nodist_zshcompletion_DATA = ctl/completion/zsh/_xentracectl
dist_fishcompletion_DATA = ctl/xentracectl.fish
EXTRA_DIST += ctl/xentracectl.bash ctl/xentracectl.zsh
CLEANFILES += ctl/completion/bash/xentracectl ctl/completion/zsh/_xentracectl

ctl/completion/bash/xentracectl: ctl/xentracectl.bash
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(top_srcdir)/ctl/xentracectl.bash $@

ctl/completion/zsh/_xentracectl: ctl/xentracectl.zsh
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(top_srcdir)/ctl/xentracectl.zsh $@

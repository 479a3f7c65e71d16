# SPDX-License-Identifier: GPL-2.0-or-later

bin_PROGRAMS += xentracectl

# A library of its own, so that tests can link the parts.
noinst_LIBRARIES += libctl.a

libctl_a_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
libctl_a_SOURCES = \
	ctl/args.c ctl/args.h \
	ctl/capture.c ctl/capture.h \
	ctl/client.c ctl/client.h \
	ctl/cmd-dump.c \
	ctl/cmd-events.c \
	ctl/cmd-info.c \
	ctl/cmd-record.c \
	ctl/cmd-report.c \
	ctl/cmd-rotate.c \
	ctl/cmd-snapshot.c \
	ctl/cmd-start.c \
	ctl/cmd-status.c \
	ctl/cmd-stop.c \
	ctl/cmd-trigger.c \
	ctl/cmd-version.c \
	ctl/ctl.h \
	ctl/doc.c ctl/doc.h \
	ctl/findings.c ctl/findings.h \
	ctl/input.c ctl/input.h \
	ctl/intervals.c ctl/intervals.h \
	ctl/measures-doc.c ctl/measures-doc.h \
	ctl/options.c ctl/options.h \
	ctl/output.c ctl/output.h \
	ctl/progress.c ctl/progress.h \
	ctl/recorder.c ctl/recorder.h \
	ctl/report.c ctl/report.h \
	ctl/request.c ctl/request.h \
	ctl/session.c ctl/session.h \
	ctl/snapshot.c ctl/snapshot.h \
	ctl/stop.c ctl/stop.h \
	ctl/storage.c ctl/storage.h \
	ctl/str.c ctl/str.h \
	ctl/table.c ctl/table.h \
	ctl/trigger.c ctl/trigger.h \
	ctl/verbs.c

xentracectl_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
xentracectl_SOURCES = ctl/main.c
xentracectl_LDADD = libctl.a libtrace.a libcommon.a $(SYSTEMD_LIBS) $(JSON_LIBS)

dist_man_MANS += docs/man/xentracectl.1

# bash finds a completion by the command's name
nodist_bashcompletion_DATA = ctl/completion/xentracectl
EXTRA_DIST += ctl/xentracectl.bash
CLEANFILES += ctl/completion/xentracectl

ctl/completion/xentracectl: ctl/xentracectl.bash
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(top_srcdir)/ctl/xentracectl.bash $@

# SPDX-License-Identifier: GPL-2.0-or-later
# The control plane: sessions, files, the control socket.

noinst_LIBRARIES += libdaemon.a
libdaemon_a_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS) $(INIH_CFLAGS)
libdaemon_a_SOURCES = \
	daemon/calls.c daemon/calls.h \
	daemon/clock.h \
	daemon/config.c daemon/config-trigger.c daemon/config.h daemon/config-parser.h \
	daemon/control.c daemon/control.h \
	daemon/document.c daemon/document.h \
	daemon/domain-watch.c daemon/domain-watch.h \
	daemon/domains.c daemon/domains.h \
	daemon/end-reason.c daemon/end-reason.h \
	daemon/explain.c daemon/explain.h \
	daemon/failure.h \
	daemon/fd-store.c daemon/fd-store.h \
	daemon/host.c daemon/host.h \
	daemon/json-put.h \
	daemon/listener.c daemon/listener.h \
	daemon/log.c daemon/log.h \
	daemon/manager.c daemon/manager-find.c daemon/manager-snapshot.c daemon/manager.h \
	daemon/name.c daemon/name.h \
	daemon/output.c daemon/output.h \
	daemon/peer.c daemon/peer.h \
	daemon/recorder.c daemon/recorder.h \
	daemon/request.c daemon/request.h \
	daemon/ring-writer.c daemon/ring-writer.h \
	daemon/segments.c daemon/segments-files.c daemon/segments.h \
	daemon/session.c daemon/session-setup.c daemon/session.h \
	daemon/session-space.c daemon/session-space.h \
	daemon/sidecar.c daemon/sidecar.h \
	daemon/snapshot.c daemon/snapshot.h \
	daemon/snapshot-plan.c daemon/snapshot-plan.h \
	daemon/systemd.c daemon/systemd.h \
	daemon/tracing.c daemon/tracing.h \
	daemon/trigger.c daemon/trigger-document.c daemon/trigger.h \
	daemon/triggers.c daemon/triggers.h

sbin_PROGRAMS += xentraced
xentraced_SOURCES = daemon/main.c
xentraced_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
xentraced_LDADD = \
	libdaemon.a libcollector.a libcommon.a \
	$(SYSTEMD_LIBS) $(JSON_LIBS) $(INIH_LIBS) $(URING_LIBS) $(XEN_LIBS) $(XENSTORE_LIBS)

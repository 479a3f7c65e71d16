# SPDX-License-Identifier: GPL-2.0-or-later
# The control plane: sessions, files, the control socket.

noinst_LIBRARIES += libdaemon.a
libdaemon_a_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS) $(INIH_CFLAGS) $(XENSTORE_CFLAGS) \
	$(ZSTD_CFLAGS)
libdaemon_a_SOURCES = \
	daemon/base/clock.h \
	daemon/base/clock-history.c daemon/base/clock-history.h \
	daemon/base/clock-watch.c daemon/base/clock-watch.h \
	daemon/base/disk-limit.c daemon/base/disk-limit.h \
	daemon/base/failure.h \
	daemon/base/json-put.h \
	daemon/base/log.c daemon/base/log.h \
	daemon/base/log-id.h \
	daemon/base/log-quota.c daemon/base/log-quota.h \
	daemon/base/name.c daemon/base/name.h \
	daemon/base/person.c daemon/base/person.h \
	daemon/base/priority.h \
	daemon/base/requester.c daemon/base/requester.h \
	daemon/base/vacate.c daemon/base/vacate.h \
	daemon/base/worker.c daemon/base/worker.h \
	daemon/config/capture-config.h \
	daemon/config/config-captures.c daemon/config/config-captures.h \
	daemon/config/config.c daemon/config/config.h \
	daemon/control/audit.c daemon/control/audit.h \
	daemon/config/config-files.c daemon/config/config-files.h \
	daemon/config/config-key.h \
	daemon/config/config-read.c daemon/config/config-read.h \
	daemon/config/config-keys.c daemon/config/config-keys.h \
	daemon/config/config-merge.c daemon/config/config-merge.h \
	daemon/config/config-print.c daemon/config/config-print.h \
	daemon/config/config-reading.c daemon/config/config-reading.h \
	daemon/config/config-triggers.c daemon/config/config-triggers.h \
	daemon/config/config-values.c daemon/config/config-values.h \
	daemon/control/calls.c daemon/control/calls.h \
	daemon/control/connection.c daemon/control/connection.h \
	daemon/control/control.c daemon/control/control.h \
	daemon/control/door.c daemon/control/door.h \
	daemon/control/listener.c daemon/control/listener.h \
	daemon/control/metrics-file.c daemon/control/metrics-file.h \
	daemon/control/old-client.c daemon/control/old-client.h \
	daemon/control/peer.c daemon/control/peer.h \
	daemon/control/peer-groups.c daemon/control/peer-groups.h \
	daemon/control/persons.c daemon/control/persons.h \
	daemon/control/reload.c daemon/control/reload.h \
	daemon/control/request.c daemon/control/request.h \
	daemon/control/rights.c daemon/control/rights.h \
	daemon/control/status.c daemon/control/status.h \
	daemon/document/document.c daemon/document/document.h \
	daemon/document/domains-document.c daemon/document/domains-document.h \
	daemon/document/files-document.c daemon/document/files-document.h \
	daemon/document/reload-document.c daemon/document/reload-document.h \
	daemon/document/trigger-document.c daemon/document/trigger-document.h \
	daemon/host/domain-names.c daemon/host/domain-names.h \
	daemon/host/domain-watch.c daemon/host/domain-watch.h \
	daemon/host/domains.c daemon/host/domains.h \
	daemon/host/explain.c daemon/host/explain.h \
	daemon/host/fd-store.c daemon/host/fd-store.h \
	daemon/host/host.c daemon/host/host.h \
	daemon/host/memory-limit.c daemon/host/memory-limit.h \
	daemon/host/systemd.c daemon/host/systemd.h \
	daemon/host/systemd-state.h \
	daemon/host/tracing.c daemon/host/tracing.h \
	daemon/host/view-group.c daemon/host/view-group.h \
	daemon/host/xenstore.c daemon/host/xenstore.h \
	daemon/output/live-files.c daemon/output/live-files.h \
	daemon/output/output.c daemon/output/output.h \
	daemon/output/compression.c daemon/output/compression.h \
	daemon/output/disk-call.c daemon/output/disk-call.h \
	daemon/output/disk-space.c daemon/output/disk-space.h \
	daemon/output/held-files.c daemon/output/held-files.h \
	daemon/output/output-file.c daemon/output/output-file.h \
	daemon/output/pack.c daemon/output/pack.h \
	daemon/output/packer.c daemon/output/packer.h \
	daemon/output/passed-file.c daemon/output/passed-file.h \
	daemon/output/place.c daemon/output/place.h \
	daemon/output/sidecar.c daemon/output/sidecar.h \
	daemon/session/budget.c daemon/session/budget.h \
	daemon/session/end-reason.c daemon/session/end-reason.h \
	daemon/session/file-storage.c daemon/session/file-storage.h \
	daemon/session/history.c daemon/session/history.h \
	daemon/session/loss-report.c daemon/session/loss-report.h \
	daemon/output/state-files.c daemon/output/state-files.h \
	daemon/output/vacuum.c daemon/output/vacuum.h \
	daemon/output/vacuum-policy.c daemon/output/vacuum-policy.h \
	daemon/session/continuation.c daemon/session/continuation.h \
	daemon/session/persist.c daemon/session/persist.h \
	daemon/session/recorder.c daemon/session/recorder.h \
	daemon/session/recorder-stop.c daemon/session/recorder-stop.h \
	daemon/session/ring-share.c daemon/session/ring-share.h \
	daemon/session/ring-storage.c daemon/session/ring-storage.h \
	daemon/session/ring-writer.c daemon/session/ring-writer.h \
	daemon/session/segment-files.c \
	daemon/session/segment-recovery.c daemon/session/segment-recovery.h \
	daemon/session/segments.c daemon/session/segments.h \
	daemon/session/segments-resume.c \
	daemon/session/segments-state.h \
	daemon/session/session.c daemon/session/session.h \
	daemon/session/session-data.h \
	daemon/session/session-options.c \
	daemon/session/session-state.h \
	daemon/session/silence.c daemon/session/silence.h \
	daemon/session/snapshot.c daemon/session/snapshot.h \
	daemon/session/snapshot-plan.c daemon/session/snapshot-plan.h \
	daemon/session/snapshot-span.c daemon/session/snapshot-span.h \
	daemon/session/space.c daemon/session/space.h \
	daemon/session/storage.c daemon/session/storage.h \
	daemon/session/usage-file.c daemon/session/usage-file.h \
	daemon/session/user-limits.c daemon/session/user-limits.h \
	daemon/triggers/domain-filter.c daemon/triggers/domain-filter.h \
	daemon/triggers/trigger.c daemon/triggers/trigger.h \
	daemon/triggers/triggers.c daemon/triggers/triggers.h \
	daemon/manager.c daemon/manager.h \
	daemon/watchdog.c daemon/watchdog.h

sbin_PROGRAMS += xentraced
xentraced_SOURCES = daemon/main.c
xentraced_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
xentraced_LDADD = \
	libdaemon.a libcollector.a libcommon.a \
	$(SYSTEMD_LIBS) $(JSON_LIBS) $(INIH_LIBS) $(URING_LIBS) $(XEN_LIBS) $(XENSTORE_LIBS) $(ZSTD_LIBS)

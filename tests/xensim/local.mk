# SPDX-License-Identifier: GPL-2.0-or-later
# The stand-in for Xen. Built without the project's hardening and sanitizer flags, because the
# library is preloaded into programs that have their own; and plainly as a shared object, since it
# is never installed.

XENSIM_CFLAGS = -std=gnu17 -D_GNU_SOURCE $(WARN_CFLAGS) $(XEN_CFLAGS) -O2 -pthread

noinst_PROGRAMS += tests/xensim/xensim tests/xensim/libxensim.so

xensim_core = \
	common/record.h \
	common/util.h \
	tests/xensim/domains.c \
	tests/xensim/domains.h \
	tests/xensim/fifo.c \
	tests/xensim/fifo.h \
	tests/xensim/sim.c \
	tests/xensim/sim.h \
	tests/xensim/sysctl.h \
	tests/xensim/tbuf.c \
	tests/xensim/tbuf.h \
	tests/xensim/virq.c \
	tests/xensim/virq.h

tests_xensim_libxensim_so_SOURCES = $(xensim_core) \
	tests/xensim/preload-call.c \
	tests/xensim/preload-ctrl.c \
	tests/xensim/preload-evtchn.c \
	tests/xensim/preload-memory.c \
	tests/xensim/preload-store.c \
	tests/xensim/preload.c \
	tests/xensim/preload.h \
	tests/xensim/sysctl.c
tests_xensim_libxensim_so_CFLAGS = $(XENSIM_CFLAGS) $(XENSTORE_CFLAGS) -fPIC -fvisibility=hidden
# Without libtool, which makes no shared objects that are programs.
tests_xensim_libxensim_so_LINK = $(CC) $(CFLAGS) -shared -pthread -o $@

tests_xensim_xensim_SOURCES = $(xensim_core) \
	tests/xensim/commands.h \
	tests/xensim/control-domain.c \
	tests/xensim/control-event.c \
	tests/xensim/control.c \
	tests/xensim/control.h \
	tests/xensim/main.c \
	tests/xensim/numbered.c \
	tests/xensim/numbered.h \
	tests/xensim/parse.c \
	tests/xensim/parse.h \
	tests/xensim/producer.c \
	tests/xensim/producer.h \
	tests/xensim/records.c \
	tests/xensim/report.c \
	tests/xensim/rounds.c \
	tests/xensim/rounds.h \
	tests/xensim/rules.c \
	tests/xensim/run-options.c \
	tests/xensim/run-options.h \
	tests/xensim/run.c \
	tests/xensim/truth.c \
	tests/xensim/truth.h \
	tests/xensim/verify-beside.c \
	tests/xensim/verify-report.c \
	tests/xensim/verify.c \
	tests/xensim/verify.h \
	tests/xensim/walk.c \
	tests/xensim/walk.h \
	tests/xensim/workload-numbered.c \
	tests/xensim/workload-replay.c \
	tests/xensim/workload-sched.c \
	tests/xensim/workload.h
tests_xensim_xensim_CFLAGS = $(XENSIM_CFLAGS)
tests_xensim_xensim_LDFLAGS = -pthread

check_PROGRAMS += tests/xensim/test-insert tests/xensim/test-rules tests/xensim/test-verify
check_SCRIPTS += tests/xensim/test-document.sh tests/xensim/test-run.sh tests/xensim/test-service.sh
noinst_PROGRAMS += tests/xensim/test-preload
EXTRA_DIST += docs/xensim.md \
	tests/xensim/test-document.sh \
	tests/xensim/test-run.sh \
	tests/xensim/test-service.sh \
	tests/samples/README.md \
	tests/samples/unpack \
	tests/samples/hotplug-4cpu.xentrace.zst \
	tests/samples/idle.xentrace.zst \
	tests/samples/load-yes.xentrace.zst \
	tests/samples/lost-sigstop-S1.xentrace.zst \
	tests/samples/pv-domu.xentrace.zst \
	tests/samples/pvh-steady.xentrace.zst \
	tests/samples/pvh-xen420.xentrace.zst

tests_xensim_test_insert_SOURCES = $(xensim_core) \
	tests/xensim/numbered.c \
	tests/xensim/numbered.h \
	tests/xensim/test-drain.c \
	tests/xensim/test-drain.h \
	tests/xensim/test-insert.c
tests_xensim_test_insert_CFLAGS = $(XENSIM_CFLAGS)
tests_xensim_test_insert_LDFLAGS = -pthread

# A capture made by the stand-in's parts, without a process of its own; and what judges it.
xensim_test_capture = $(xensim_core) \
	tests/xensim/commands.h \
	tests/xensim/numbered.c \
	tests/xensim/numbered.h \
	tests/xensim/parse.c \
	tests/xensim/parse.h \
	tests/xensim/rounds.c \
	tests/xensim/rounds.h \
	tests/xensim/test-capture.c \
	tests/xensim/test-capture.h \
	tests/xensim/test-drain.c \
	tests/xensim/test-drain.h \
	tests/xensim/walk.c \
	tests/xensim/walk.h

tests_xensim_test_rules_SOURCES = $(xensim_test_capture) \
	tests/xensim/rules.c \
	tests/xensim/test-rules.c
tests_xensim_test_rules_CFLAGS = $(XENSIM_CFLAGS)
tests_xensim_test_rules_LDFLAGS = -pthread

tests_xensim_test_verify_SOURCES = $(xensim_test_capture) \
	tests/xensim/test-verify.c \
	tests/xensim/verify-beside.c \
	tests/xensim/verify-report.c \
	tests/xensim/verify.c \
	tests/xensim/verify.h
tests_xensim_test_verify_CFLAGS = $(XENSIM_CFLAGS)
tests_xensim_test_verify_LDFLAGS = -pthread

# Run by test-run.sh, under xensim.
tests_xensim_test_preload_SOURCES = tests/xensim/test-preload.c
tests_xensim_test_preload_CFLAGS = $(XENSIM_CFLAGS) $(XENSTORE_CFLAGS)
tests_xensim_test_preload_LDFLAGS = -pthread
tests_xensim_test_preload_LDADD = $(XEN_LIBS) $(XENSTORE_LIBS)

# What the scripts read JSON with.
noinst_PROGRAMS += tests/xensim/document
tests_xensim_document_SOURCES = tests/xensim/document.c
tests_xensim_document_CFLAGS = $(XENSIM_CFLAGS) $(JSON_CFLAGS)
tests_xensim_document_LDFLAGS = -pthread
tests_xensim_document_LDADD = $(JSON_LIBS)

# The stand-in for systemd: one service, and the descriptors that it keeps.
noinst_PROGRAMS += tests/xensim/service tests/xensim/test-service-child
tests_xensim_service_SOURCES = \
	tests/xensim/fdstore.c \
	tests/xensim/fdstore.h \
	tests/xensim/notify.c \
	tests/xensim/notify.h \
	tests/xensim/parse.c \
	tests/xensim/parse.h \
	tests/xensim/service.c
tests_xensim_service_CFLAGS = $(XENSIM_CFLAGS)

tests_xensim_test_service_child_SOURCES = tests/xensim/test-service-child.c
tests_xensim_test_service_child_CFLAGS = $(XENSIM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_xensim_test_service_child_LDADD = $(XEN_LIBS) $(SYSTEMD_LIBS)

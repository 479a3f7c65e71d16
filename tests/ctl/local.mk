# SPDX-License-Identifier: GPL-2.0-or-later

check_PROGRAMS += tests/ctl/test-ctl tests/ctl/test-documents
check_SCRIPTS += tests/ctl/test-cli tests/ctl/test-completion tests/ctl/test-flows tests/ctl/test-recorder \
	tests/ctl/test-trouble
EXTRA_DIST += tests/ctl/test-cli tests/ctl/test-completion tests/ctl/test-flows \
	tests/ctl/test-recorder tests/ctl/test-trouble tests/ctl/lib.sh

tests_ctl_test_ctl_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
tests_ctl_test_ctl_SOURCES = tests/ctl/test-ctl.c
tests_ctl_test_ctl_LDADD = libctl.a libtrace.a libcommon.a $(SYSTEMD_LIBS) $(JSON_LIBS)

tests_ctl_test_documents_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
tests_ctl_test_documents_SOURCES = tests/ctl/test-documents.c
tests_ctl_test_documents_LDADD = libctl.a libtrace.a libcommon.a $(SYSTEMD_LIBS) $(JSON_LIBS)

# What the scripts run against; a test's helper, not a test.
noinst_PROGRAMS += tests/ctl/fake-daemon
tests_ctl_fake_daemon_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
tests_ctl_fake_daemon_SOURCES = \
	tests/ctl/fake-daemon.c \
	tests/ctl/fake-options.c tests/ctl/fake-options.h \
	tests/ctl/fake-recorder.c tests/ctl/fake-recorder.h
tests_ctl_fake_daemon_LDADD = $(SYSTEMD_LIBS) $(JSON_LIBS)

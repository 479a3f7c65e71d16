# SPDX-License-Identifier: GPL-2.0-or-later

check_PROGRAMS += tests/ctl/test-connection tests/ctl/test-ctl tests/ctl/test-console tests/ctl/test-doctor tests/ctl/test-documents \
	tests/ctl/test-reader tests/ctl/test-reading \
	tests/ctl/test-output tests/ctl/test-tar
check_SCRIPTS += tests/ctl/test-answers tests/ctl/test-cli tests/ctl/test-completion tests/ctl/test-dump-follow tests/ctl/test-examples \
	tests/ctl/test-files tests/ctl/test-flows \
	tests/ctl/test-manual tests/ctl/test-monitor tests/ctl/test-recorder tests/ctl/test-hosts tests/ctl/test-ssh \
	tests/ctl/test-status tests/ctl/test-terminal tests/ctl/test-top tests/ctl/test-trouble tests/ctl/test-wrong \
	tests/ctl/test-xentrace
EXTRA_DIST += tests/ctl/test-answers tests/ctl/test-cli tests/ctl/test-completion tests/ctl/test-files tests/ctl/test-flows \
	tests/ctl/test-recorder tests/ctl/test-status tests/ctl/test-terminal tests/ctl/test-trouble tests/ctl/lib.sh \
	tests/ctl/test-manual tests/ctl/test-hosts tests/ctl/test-ssh tests/ctl/test-wrong tests/ctl/test-xentrace \
	tests/ctl/test-dump-follow tests/ctl/test-examples tests/ctl/test-monitor tests/ctl/make-status \
	tests/ctl/pictures/monitor-200x60.txt tests/ctl/pictures/monitor-256-200x60.txt \
	tests/ctl/pictures/monitor-256-80x24.txt tests/ctl/pictures/monitor-4096.txt \
	tests/ctl/pictures/monitor-40x10.txt tests/ctl/pictures/monitor-80x24.txt \
	tests/ctl/pictures/monitor-help.txt tests/ctl/pictures/monitor-losing.txt \
	tests/ctl/pictures/monitor-nothing.txt tests/ctl/pictures/monitor-paused.txt \
	tests/ctl/pictures/status.txt \
	tests/ctl/test-top \
	tests/ctl/pictures/top-80x24.txt tests/ctl/pictures/top-domain.txt tests/ctl/pictures/top-error.txt \
	tests/ctl/pictures/top-filter.txt tests/ctl/pictures/top-help.txt \
	tests/ctl/pictures/top-many-200x60.txt tests/ctl/pictures/top-many-80x24.txt \
	tests/ctl/pictures/top-scrolled.txt tests/ctl/pictures/top-vcpus.txt

tests_ctl_test_ctl_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_ctl_test_ctl_SOURCES = tests/ctl/test-ctl.c
tests_ctl_test_ctl_LDADD = libctl.a libexport.a libtrace.a libcommon.a $(JSON_LIBS) $(ZSTD_LIBS)

tests_ctl_test_connection_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_ctl_test_connection_SOURCES = tests/ctl/test-connection.c tests/unit/test.h
tests_ctl_test_connection_LDADD = libctl.a libcommon.a $(JSON_LIBS)

tests_ctl_test_output_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_ctl_test_output_SOURCES = tests/ctl/test-output.c tests/unit/test.h
tests_ctl_test_output_LDADD = libctl.a libexport.a libtrace.a libcommon.a $(JSON_LIBS) $(ZSTD_LIBS)

tests_ctl_test_tar_SOURCES = tests/ctl/test-tar.c tests/unit/test.h
tests_ctl_test_tar_LDADD = libctl.a libcommon.a

tests_ctl_test_documents_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_ctl_test_documents_SOURCES = tests/ctl/test-documents.c
tests_ctl_test_documents_LDADD = libctl.a libexport.a libtrace.a libcommon.a $(JSON_LIBS) $(ZSTD_LIBS)

tests_ctl_test_reading_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_ctl_test_reading_SOURCES = tests/ctl/test-reading.c tests/unit/test.h
tests_ctl_test_reading_LDADD = libctl.a libexport.a libtrace.a libcommon.a $(JSON_LIBS) $(ZSTD_LIBS)

tests_ctl_test_reader_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_ctl_test_reader_SOURCES = tests/ctl/test-reader.c tests/unit/test.h
tests_ctl_test_reader_LDADD = libctl.a libexport.a libtrace.a libcommon.a $(JSON_LIBS) $(ZSTD_LIBS)

tests_ctl_test_console_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_ctl_test_console_SOURCES = tests/ctl/test-console.c
tests_ctl_test_console_LDADD = libctl.a libexport.a libtrace.a libcommon.a $(JSON_LIBS) $(ZSTD_LIBS)

tests_ctl_test_doctor_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_ctl_test_doctor_SOURCES = tests/ctl/test-doctor.c
tests_ctl_test_doctor_LDADD = libctl.a libexport.a libtrace.a libcommon.a $(JSON_LIBS) $(ZSTD_LIBS)

# What the scripts run against; a test's helper, not a test.
noinst_PROGRAMS += tests/ctl/fake-daemon
tests_ctl_fake_daemon_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_ctl_fake_daemon_SOURCES = \
	tests/ctl/fake-daemon.c \
	tests/ctl/fake-files.c tests/ctl/fake-files.h \
	tests/ctl/fake-server.c tests/ctl/fake-server.h \
	tests/ctl/fake-recorder.c tests/ctl/fake-recorder.h
tests_ctl_fake_daemon_LDADD = libcommon.a $(JSON_LIBS)

noinst_PROGRAMS += tests/ctl/draw-monitor
tests_ctl_draw_monitor_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_ctl_draw_monitor_SOURCES = tests/ctl/draw-monitor.c
tests_ctl_draw_monitor_LDADD = libctl.a libexport.a libtrace.a libcommon.a $(JSON_LIBS) $(ZSTD_LIBS)

# SPDX-License-Identifier: GPL-2.0-or-later
# Tests of the daemon on the stand-in for Xen: run by tests/all, too long for `make check`.

EXTRA_DIST += \
	tests/sim/answer.sh \
	tests/sim/beside.sh \
	tests/sim/borrowing.sh \
	tests/sim/broken-disk.sh \
	tests/sim/budgets.sh \
	tests/sim/clients.py \
	tests/sim/clients.sh \
	tests/sim/clock.sh \
	tests/sim/compat.sh \
	tests/sim/closing.py \
	tests/sim/closing.sh \
	tests/sim/completeness.sh \
	tests/sim/compress-captures.sh \
	tests/sim/compress.sh \
	tests/sim/config.sh \
	tests/sim/disk.sh \
	tests/sim/disks.sh \
	tests/sim/drops.sh \
	tests/sim/errors.sh \
	tests/sim/flood.py \
	tests/sim/flood.sh \
	tests/sim/frozen.sh \
	tests/sim/hostile.py \
	tests/sim/hostile.sh \
	tests/sim/idle.sh \
	tests/sim/independent.sh \
	tests/sim/joining.sh \
	tests/sim/lib.sh \
	tests/sim/lifecycle.sh \
	tests/sim/locked.sh \
	tests/sim/log.sh \
	tests/sim/loss-report.sh \
	tests/sim/losses.sh \
	tests/sim/memory-files.sh \
	tests/sim/metrics.sh \
	tests/sim/many-cpus.sh \
	tests/sim/outputs.py \
	tests/sim/now.sh \
	tests/sim/outputs.sh \
	tests/sim/packed.sh \
	tests/sim/patience.sh \
	tests/sim/pause.sh \
	tests/sim/persist.sh \
	tests/sim/persons.py \
	tests/sim/persons.sh \
	tests/sim/pictures.sh \
	tests/sim/random-calls.py \
	tests/sim/random-calls.sh \
	tests/sim/record.sh \
	tests/sim/recorder-stop.sh \
	tests/sim/restart.sh \
	tests/sim/same-as-xentrace.sh \
	tests/sim/sandbox.sh \
	tests/sim/segments.sh \
	tests/sim/several.sh \
	tests/sim/silent.sh \
	tests/sim/snapshots.sh \
	tests/sim/steady.sh \
	tests/sim/triggers.sh \
	tests/sim/truth.py \
	tests/sim/truth.sh \
	tests/sim/vacuum.sh \
	tests/sim/varlink.py \
	tests/sim/varlinkctl.sh \
	tests/sim/xenalyze.sh \
	tests/sim/xenstored.sh

# Preloaded, as the stand-in is.
# Linked without libtool, which makes no shared objects that are programs.
noinst_PROGRAMS += tests/sim/libmallocs.so
tests_sim_libmallocs_so_SOURCES = tests/sim/mallocs.c
tests_sim_libmallocs_so_CFLAGS = $(XENSIM_CFLAGS) -fPIC -fvisibility=hidden
tests_sim_libmallocs_so_LINK = $(CC) $(CFLAGS) -shared -pthread -o $@

noinst_PROGRAMS += tests/sim/libbroken-disk.so tests/sim/libbroken-uring.so
noinst_PROGRAMS += tests/sim/liblate-clock.so tests/sim/libset-clock.so
tests_sim_libbroken_disk_so_SOURCES = tests/sim/broken-disk.c
tests_sim_libbroken_disk_so_CFLAGS = $(XENSIM_CFLAGS) -fPIC -fvisibility=hidden
tests_sim_libbroken_disk_so_LINK = $(CC) $(CFLAGS) -shared -pthread -o $@

tests_sim_libbroken_uring_so_SOURCES = tests/sim/broken-uring.c
tests_sim_libbroken_uring_so_CFLAGS = $(XENSIM_CFLAGS) -fPIC -fvisibility=hidden
tests_sim_libbroken_uring_so_LINK = $(CC) $(CFLAGS) -shared -pthread -o $@

tests_sim_liblate_clock_so_SOURCES = tests/sim/late-clock.c
tests_sim_liblate_clock_so_CFLAGS = $(XENSIM_CFLAGS) -fPIC -fvisibility=hidden
tests_sim_liblate_clock_so_LINK = $(CC) $(CFLAGS) -shared -pthread -o $@

tests_sim_libset_clock_so_SOURCES = tests/sim/set-clock.c
tests_sim_libset_clock_so_CFLAGS = $(XENSIM_CFLAGS) -fPIC -fvisibility=hidden
tests_sim_libset_clock_so_LINK = $(CC) $(CFLAGS) -shared -pthread -o $@

noinst_PROGRAMS += tests/sim/libfaulty.so
tests_sim_libfaulty_so_SOURCES = tests/sim/faulty.c
tests_sim_libfaulty_so_CFLAGS = $(XENSIM_CFLAGS) -U_FORTIFY_SOURCE -fno-builtin -fPIC -fvisibility=hidden
tests_sim_libfaulty_so_LINK = $(CC) $(CFLAGS) -shared -pthread -o $@

# What tests/all runs beside each of these.
noinst_PROGRAMS += tests/sim/held-up
tests_sim_held_up_SOURCES = tests/sim/held-up.c
tests_sim_held_up_LDFLAGS = -pthread

# What independent.sh runs on two file systems.
noinst_PROGRAMS += tests/sim/stuck-sink tests/sim/stuck-writes
tests_sim_stuck_sink_SOURCES = \
	tests/sim/stuck-sink.c tests/unit/collector-rig.h \
	tests/unit/fake-xen-host.h tests/unit/test.h
tests_sim_stuck_sink_LDADD = libcollector.a libcommon.a $(URING_LIBS)
tests_sim_stuck_writes_SOURCES = tests/sim/stuck-writes.c
tests_sim_stuck_writes_LDADD = libcollector.a libcommon.a $(URING_LIBS)

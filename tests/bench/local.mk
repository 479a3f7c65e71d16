# SPDX-License-Identifier: GPL-2.0-or-later
# How fast and how lean: beside xentrace, and beside what is physically possible.

noinst_PROGRAMS += tests/bench/bounds tests/bench/pack tests/bench/round tests/bench/sinks
tests_bench_bounds_SOURCES = tests/bench/bounds.c
tests_bench_bounds_LDADD = libcollector.a libcommon.a $(URING_LIBS)
tests_bench_pack_SOURCES = tests/bench/pack.c
tests_bench_pack_LDADD = libdaemon.a libtrace.a libcommon.a $(ZSTD_LIBS)
tests_bench_round_SOURCES = tests/bench/round.c
tests_bench_round_LDADD = libcollector.a libcommon.a $(URING_LIBS)
tests_bench_sinks_SOURCES = tests/bench/sinks.c
tests_bench_sinks_LDADD = libcollector.a libcommon.a $(URING_LIBS)

EXTRA_DIST += \
	tests/bench/compress tests/bench/compress-capture tests/bench/dump tests/bench/export tests/bench/large \
	tests/bench/report tests/bench/run tests/bench/snapshot-latency tests/bench/top \
	tests/bench/xenbench/account.py tests/bench/xenbench/bounds.py \
	tests/bench/xenbench/disk.py tests/bench/xenbench/inside.py \
	tests/bench/xenbench/machine.py tests/bench/xenbench/rows.py \
	tests/bench/xenbench/sim.py tests/bench/xenbench/table.py \
	tests/bench/xenbench/readers.py tests/bench/xenbench/trace.py

.PHONY: bench
bench: all
	$(MAKE) check TESTS=
	BUILD=$(abs_builddir) $(srcdir)/tests/bench/run

# SPDX-License-Identifier: GPL-2.0-or-later
# The data plane: from Xen's trace buffers to the output.

noinst_LIBRARIES += libcollector.a
# The walk's loop: where it began in the middle of a cache line it took a sixth longer.
libcollector_a_CFLAGS = $(AM_CFLAGS) $(XEN_CFLAGS) $(URING_CFLAGS) -falign-loops=64
libcollector_a_SOURCES = \
	collector/account.c collector/account.h \
	collector/attachments.c collector/attachment.h collector/collector-state.h \
	collector/burst.c collector/burst.h \
	collector/collector.c collector/collector.h \
	collector/drain.c collector/drain.h \
	collector/extent.c collector/extent.h collector/extent-state.h \
	collector/grower.c collector/grower.h \
	collector/handoff.c collector/handoff.h \
	collector/mailbox.c collector/mailbox.h \
	collector/ledger.h \
	collector/memory.c collector/memory.h \
	collector/pool.c collector/pool.h \
	collector/ring.c collector/ring.h \
	collector/ring-adopt.c collector/ring-state.h \
	collector/ring-borrow.c collector/ring-read.c \
	collector/ring-carry.c collector/ring-carry.h \
	collector/ring-v2.c collector/ring-v2.h \
	collector/runnable.c collector/runnable.h \
	collector/sink.c collector/sink.h \
	collector/sink-write.c collector/sink-handoff.c collector/sink-state.h \
	collector/tbuf.c collector/tbuf.h \
	collector/tsc.c collector/tsc.h \
	collector/uring.c collector/uring.h \
	collector/walk.c collector/walk.h \
	collector/watch.c collector/watch.h \
	collector/xen.c collector/xen.h

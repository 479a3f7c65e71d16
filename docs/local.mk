# SPDX-License-Identifier: GPL-2.0-or-later

dist_man_MANS += docs/man/xentraced.8 docs/man/xentraced.conf.5
dist_doc_DATA = docs/ARCHITECTURE.md docs/control-protocol.md docs/file-format.md docs/from-xentrace.md \
	docs/events.md docs/measures.md
EXTRA_DIST += docs/BENCHMARKS.md

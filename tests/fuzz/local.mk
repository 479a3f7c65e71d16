# SPDX-License-Identifier: GPL-2.0-or-later
# libFuzzer is clang's: tests/fuzz/run builds what it runs.

EXTRA_DIST += tests/fuzz/fuzz-call.c tests/fuzz/fuzz-sidecar.c tests/fuzz/fuzz-trace.c tests/fuzz/run

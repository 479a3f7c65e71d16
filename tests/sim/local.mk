# SPDX-License-Identifier: GPL-2.0-or-later
# Tests of the daemon on the stand-in for Xen: run by tests/all, too long for `make check`.

EXTRA_DIST += tests/sim/bus.py tests/sim/hostile.py tests/sim/lib.sh $(sim_tests)
sim_tests = \
	tests/sim/completeness.sh \
	tests/sim/errors.sh \
	tests/sim/hostile.sh \
	tests/sim/lifecycle.sh

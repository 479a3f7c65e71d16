# SPDX-License-Identifier: GPL-2.0-or-later
# Alert rules for Prometheus, on the metrics of `xentracectl metrics` and metrics-file=.

dist_pkgdata_DATA = monitoring/xentraced.rules.yml
EXTRA_DIST += monitoring/xentraced.rules.test.yml

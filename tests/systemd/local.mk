# SPDX-License-Identifier: GPL-2.0-or-later

dist_check_SCRIPTS += tests/systemd/test-units

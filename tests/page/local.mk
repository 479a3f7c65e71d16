# SPDX-License-Identifier: GPL-2.0-or-later

check_SCRIPTS += tests/page/test-page
EXTRA_DIST += tests/page/pictures tests/page/run tests/page/test-page tests/page/webdriver.py

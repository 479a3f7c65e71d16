# SPDX-License-Identifier: GPL-2.0-or-later
EXTRA_DIST += \
	tests/pictures/play.sh \
	tests/pictures/readme

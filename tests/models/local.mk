# SPDX-License-Identifier: GPL-2.0-or-later

EXTRA_DIST += tests/models/run
EXTRA_DIST += docs/models/README.md docs/models/borrow.pml docs/models/commit.pml docs/models/consumer.pml \
	docs/models/extent.pml docs/models/handoff.pml docs/models/losses.pml docs/models/mailbox.pml \
	docs/models/pins.pml docs/models/segments.pml

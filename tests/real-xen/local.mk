# SPDX-License-Identifier: GPL-2.0-or-later
EXTRA_DIST += \
	tests/real-xen/README.md \
	tests/real-xen/dom0-agent \
	tests/real-xen/dom0-lib.sh \
	tests/real-xen/dom0-load \
	tests/real-xen/guest-init \
	tests/real-xen/host-lib.sh \
	tests/real-xen/image \
	tests/real-xen/initramfs-init \
	tests/real-xen/job-lib.sh \
	tests/real-xen/main-job \
	tests/real-xen/main-job.dom0.sh \
	tests/real-xen/pictures-job \
	tests/real-xen/pictures-job.dom0.sh \
	tests/real-xen/pvh-job \
	tests/real-xen/pvh-job.dom0.sh \
	tests/real-xen/recorder-job \
	tests/real-xen/recorder-job.dom0.sh \
	tests/real-xen/records.py \
	tests/real-xen/run \
	tests/real-xen/service-job \
	tests/real-xen/service-job.dom0.sh \
	tests/real-xen/smoke.dom0.sh \
	tests/real-xen/story-job \
	tests/real-xen/story-job.dom0.sh \
	tests/real-xen/units/proc-xen.mount \
	tests/real-xen/units/real-xen.service \
	tests/real-xen/units/real-xen.target \
	tests/real-xen/units/xen-init-dom0.service \
	tests/real-xen/units/xenconsoled.service \
	tests/real-xen/units/xenstored.service

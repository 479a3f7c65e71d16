# SPDX-License-Identifier: GPL-2.0-or-later
# Packages: debian/ for dpkg-buildpackage, the spec for rpmbuild. tests/packages/run builds both.

EXTRA_DIST += \
	debian/changelog \
	debian/control \
	debian/copyright \
	debian/kernelshark-xentrace.install \
	debian/libxentrace-dev.examples \
	debian/libxentrace-dev.install \
	debian/libxentrace1.install \
	debian/libxentrace1.symbols \
	debian/not-installed \
	debian/python3-xentrace.install \
	debian/rules \
	debian/source/format \
	debian/tests/client \
	debian/tests/control \
	debian/tests/demo \
	debian/xentrace-tools.install \
	debian/xentraced.install \
	debian/xentraced.lintian-overrides \
	debian/xentraced.postrm \
	debian/xentraced.prerm \
	packaging/xentraced.spec

# SPDX-License-Identifier: GPL-2.0-or-later

xentracedconfdir = $(sysconfdir)/xentraced
dist_xentracedconf_DATA = conf/xentraced.conf

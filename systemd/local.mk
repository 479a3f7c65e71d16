# SPDX-License-Identifier: GPL-2.0-or-later

systemdsystemunit_DATA = systemd/xentraced.service
CLEANFILES += systemd/xentraced.service
EXTRA_DIST += systemd/xentraced.service.in

systemd/xentraced.service: systemd/xentraced.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && \
		sed -e 's|@sbindir[@]|$(sbindir)|g' $(srcdir)/systemd/xentraced.service.in > $@

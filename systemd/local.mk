# SPDX-License-Identifier: GPL-2.0-or-later

systemd_units = systemd/xentraced.service systemd/xentraced-report@.service \
	systemd/xentraced-send.service systemd/xentraced-ship@.service systemd/xentraced-snapshot@.service

# What a unit runs.
unitlibexecdir = $(libexecdir)/xentraced
dist_unitlibexec_SCRIPTS = systemd/ship systemd/ship-send

sysusersdir = $(prefix)/lib/sysusers.d
dist_sysusers_DATA = systemd/sysusers.d/xentraced.conf
tmpfilesdir = $(prefix)/lib/tmpfiles.d
dist_tmpfiles_DATA = systemd/tmpfiles.d/xentraced.conf

# Empty: where the administrator's drop-ins and packages' ones go.
install-data-hook:
	$(MKDIR_P) "$(DESTDIR)$(sysconfdir)/xentraced/xentraced.conf.d" \
		"$(DESTDIR)$(prefix)/lib/xentraced/xentraced.conf.d"
uninstall-hook:
	-rmdir "$(DESTDIR)$(sysconfdir)/xentraced/xentraced.conf.d" \
		"$(DESTDIR)$(prefix)/lib/xentraced/xentraced.conf.d" \
		"$(DESTDIR)$(prefix)/lib/xentraced" 2>/dev/null

# What journalctl -x shows.
catalogdir = $(prefix)/lib/systemd/catalog
dist_catalog_DATA = systemd/xentraced.catalog

# The page is made as the report is, by the same command with --html.
if HAVE_PAGE
systemd_units += systemd/xentraced-page@.service
endif
systemdsystemunit_DATA = $(systemd_units)
dist_systemdsystemunit_DATA = systemd/xentraced-send.path
CLEANFILES += $(systemd_units)
EXTRA_DIST += systemd/xentraced.service.in systemd/xentraced-report@.service.in \
	systemd/xentraced-send.service.in systemd/xentraced-ship@.service.in \
	systemd/xentraced-snapshot@.service.in

edit_unit = $(MKDIR_P) systemd && \
	sed -e 's|@sbindir[@]|$(sbindir)|g' -e 's|@bindir[@]|$(bindir)|g' \
	-e 's|@libexecdir[@]|$(libexecdir)|g'

systemd/xentraced.service: systemd/xentraced.service.in Makefile
	$(AM_V_GEN)$(edit_unit) $(srcdir)/systemd/xentraced.service.in > $@
systemd/xentraced-report@.service: systemd/xentraced-report@.service.in Makefile
	$(AM_V_GEN)$(edit_unit) $(srcdir)/systemd/xentraced-report@.service.in > $@
systemd/xentraced-page@.service: systemd/xentraced-report@.service.in Makefile
	$(AM_V_GEN)$(edit_unit) -e 's|Writes the report|Writes the page|' -e 's|Report of|Page of|' \
		-e 's|The daemon starts it|xentraced-report@NAME starts it|' \
		-e 's|start xentraced-report@|start xentraced-page@|' -e '/^# Its page,/d' -e '/^Wants=/d' \
		-e 's|xentracectl report|xentracectl report --html -|' -e 's|[.]report[.]txt|.report.html|' \
		-e 's|reads the report|reads the page|' $(srcdir)/systemd/xentraced-report@.service.in > $@
systemd/xentraced-snapshot@.service: systemd/xentraced-snapshot@.service.in Makefile
	$(AM_V_GEN)$(edit_unit) $(srcdir)/systemd/xentraced-snapshot@.service.in > $@
systemd/xentraced-ship@.service: systemd/xentraced-ship@.service.in Makefile
	$(AM_V_GEN)$(edit_unit) $(srcdir)/systemd/xentraced-ship@.service.in > $@
systemd/xentraced-send.service: systemd/xentraced-send.service.in Makefile
	$(AM_V_GEN)$(edit_unit) $(srcdir)/systemd/xentraced-send.service.in > $@

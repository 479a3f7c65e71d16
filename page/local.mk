# SPDX-License-Identifier: GPL-2.0-or-later
#
# The page of `report --html` and `diff --html`: our own HTML, CSS and JavaScript, and D3, in one file. It is made when
# the program is built, and is part of it (ctl/page-template.c).

# In the order in which they are read.
page_scripts = \
	page/data.js \
	page/text.js \
	page/lane.js \
	page/raster.js \
	page/model.js \
	page/details.js \
	page/timeline.js \
	page/charts.js \
	page/tables.js \
	page/panels.js \
	page/diff.js \
	page/main.js
page_sources = page/page.html page/page.css page/d3-license.txt $(page_scripts)
EXTRA_DIST += page/assemble $(page_sources)

if HAVE_PAGE
ctl/libctl_a-page-template.$(OBJEXT): page/template.html
CLEANFILES += page/template.html

page/template.html: page/assemble $(page_sources) $(D3)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(SHELL) $(srcdir)/page/assemble $(srcdir)/page '$(D3)' \
		$(page_scripts:page/%=%) >$@.new && mv $@.new $@
endif

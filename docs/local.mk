# SPDX-License-Identifier: GPL-2.0-or-later

dist_man_MANS += docs/man/xentraced.8 docs/man/xentraced.conf.5
dist_doc_DATA = docs/ARCHITECTURE.md docs/control-protocol.md docs/export.md docs/fleet.md docs/file-format.md \
	docs/from-xentrace.md docs/events.md docs/from-xenalyze.md docs/measures.md docs/page.md docs/RELIABILITY.md
EXTRA_DIST += docs/BENCHMARKS.md docs/pictures/page.png docs/pictures/page-narrow.png docs/pictures/page-wait.png

# Each function's page is xentrace(3).
xentrace_manual_links = docs/man/xentrace_boot_id.3 docs/man/xentrace_close.3 docs/man/xentrace_complete_from_tsc.3 \
	docs/man/xentrace_cpu_vendor.3 docs/man/xentrace_damage.3 docs/man/xentrace_domain.3 \
	docs/man/xentrace_domain_name.3 docs/man/xentrace_domain_label.3 docs/man/xentrace_domain_uuid.3 docs/man/xentrace_field.3 \
	docs/man/xentrace_fields.3 docs/man/xentrace_find_domain.3 docs/man/xentrace_find_realtime.3 \
	docs/man/xentrace_first_tsc.3 docs/man/xentrace_hostname.3 docs/man/xentrace_json.3 \
	docs/man/xentrace_measures.3 docs/man/xentrace_next.3 docs/man/xentrace_nsec_to_ticks.3 \
	docs/man/xentrace_observe.3 docs/man/xentrace_open.3 docs/man/xentrace_open_fd.3 \
	docs/man/xentrace_open_memory.3 docs/man/xentrace_realtime_nsec.3 docs/man/xentrace_reason.3 \
	docs/man/xentrace_run.3 docs/man/xentrace_scheduler.3 docs/man/xentrace_seek.3 \
	docs/man/xentrace_select.3 docs/man/xentrace_text.3 docs/man/xentrace_ticks_to_nsec.3 \
	docs/man/xentrace_tsc_khz.3 docs/man/xentrace_tsc_khz_is_assumed.3 docs/man/xentrace_version.3 \
	docs/man/xentrace_xen_version.3
dist_man_MANS += docs/man/xentrace.3
nodist_man_MANS = $(xentrace_manual_links)
CLEANFILES += $(xentrace_manual_links)

$(xentrace_manual_links):
	$(AM_V_GEN)$(MKDIR_P) $(@D) && echo '.so man3/xentrace.3' >$@

# SPDX-License-Identifier: GPL-2.0-or-later
# One program per module, linked with the library that it tests.

check_PROGRAMS += \
	tests/unit/test-account \
	tests/unit/test-audit \
	tests/unit/test-budget \
	tests/unit/test-burst \
	tests/unit/test-calls \
	tests/unit/test-capture-config \
	tests/unit/test-clock-history \
	tests/unit/test-clock-watch \
	tests/unit/test-collector \
	tests/unit/test-collector-buffers \
	tests/unit/test-collector-holds \
	tests/unit/test-collector-polls \
	tests/unit/test-collector-pool \
	tests/unit/test-collector-sinks \
	tests/unit/test-collector-states \
	tests/unit/test-config \
	tests/unit/test-config-files \
	tests/unit/test-config-keys \
	tests/unit/test-config-merge \
	tests/unit/test-connection \
	tests/unit/test-cpu-set \
	tests/unit/test-domain-names \
	tests/unit/test-domain-watch \
	tests/unit/test-domains \
	tests/unit/test-door \
	tests/unit/test-drain \
	tests/unit/test-event-set \
	tests/unit/test-extent \
	tests/unit/test-joining \
	tests/unit/test-json-text \
	tests/unit/test-history \
	tests/unit/test-log tests/unit/test-log-quota tests/unit/test-loss-report tests/unit/test-metrics tests/unit/test-mailbox \
	tests/unit/test-memory \
	tests/unit/test-output \
	tests/unit/test-output-file \
	tests/unit/test-packer \
	tests/unit/test-persist \
	tests/unit/test-persons \
	tests/unit/test-passed-file \
	tests/unit/test-place \
	tests/unit/test-pool \
	tests/unit/test-record \
	tests/unit/test-recorder-stop \
	tests/unit/test-request \
	tests/unit/test-rights \
	tests/unit/test-ring \
	tests/unit/test-ring-adopt \
	tests/unit/test-ring-carry \
	tests/unit/test-ring-hostile \
	tests/unit/test-ring-borrow \
	tests/unit/test-ring-pins \
	tests/unit/test-ring-share \
	tests/unit/test-ring-writer \
	tests/unit/test-runnable \
	tests/unit/test-seek-table \
	tests/unit/test-segments \
	tests/unit/test-session \
	tests/unit/test-session-name \
	tests/unit/test-silence \
	tests/unit/test-snapshot \
	tests/unit/test-snapshot-span \
	tests/unit/test-sink \
	tests/unit/test-sink-handoff \
	tests/unit/test-sink-limits \
	tests/unit/test-sink-ring \
	tests/unit/test-space \
	tests/unit/test-suggest \
	tests/unit/test-systemd \
	tests/unit/test-tbuf \
	tests/unit/test-text \
	tests/unit/test-time-spec \
	tests/unit/test-trace-file \
	tests/unit/test-trace-file-cuts \
	tests/unit/test-tracing \
	tests/unit/test-trigger \
	tests/unit/test-triggers \
	tests/unit/test-tsc \
	tests/unit/test-units \
	tests/unit/test-uring \
	tests/unit/test-user-limits \
	tests/unit/test-memory-limit \
	tests/unit/test-utf8 \
	tests/unit/test-vacuum \
	tests/unit/test-vacuum-policy \
	tests/unit/test-vacate \
	tests/unit/test-varlink \
	tests/unit/test-walk \
	tests/unit/test-watch \
	tests/unit/test-watchdog \
	tests/unit/test-worker \
	tests/unit/test-xen \
	tests/unit/test-xenstore

tests_unit_test_cpu_set_SOURCES = tests/unit/test-cpu-set.c tests/unit/test.h
tests_unit_test_cpu_set_LDADD = libcommon.a
tests_unit_test_event_set_SOURCES = tests/unit/test-event-set.c tests/unit/test.h
tests_unit_test_event_set_LDADD = libcommon.a
tests_unit_test_record_SOURCES = tests/unit/test-record.c tests/unit/test.h
tests_unit_test_seek_table_SOURCES = tests/unit/test-seek-table.c tests/unit/test.h
tests_unit_test_seek_table_LDADD = libcommon.a
tests_unit_test_suggest_SOURCES = tests/unit/test-suggest.c tests/unit/test.h
tests_unit_test_suggest_LDADD = libcommon.a
tests_unit_test_text_SOURCES = tests/unit/test-text.c tests/unit/test.h
tests_unit_test_text_LDADD = libcommon.a
tests_unit_test_time_spec_SOURCES = tests/unit/test-time-spec.c tests/unit/test.h
tests_unit_test_time_spec_LDADD = libcommon.a
tests_unit_test_trace_file_SOURCES = \
	tests/unit/test-trace-file.c tests/unit/trace-bytes.h tests/unit/test.h
tests_unit_test_trace_file_LDADD = libcommon.a $(ZSTD_LIBS)
tests_unit_test_trace_file_cuts_SOURCES = \
	tests/unit/test-trace-file-cuts.c tests/unit/trace-bytes.h tests/unit/test.h
tests_unit_test_trace_file_cuts_LDADD = libcommon.a $(ZSTD_LIBS)
tests_unit_test_units_SOURCES = tests/unit/test-units.c tests/unit/test.h
tests_unit_test_units_LDADD = libcommon.a
tests_unit_test_json_text_SOURCES = tests/unit/test-json-text.c tests/unit/test.h
tests_unit_test_json_text_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_json_text_LDADD = libcommon.a $(JSON_LIBS)
tests_unit_test_memory_limit_SOURCES = tests/unit/test-memory-limit.c tests/unit/test.h
tests_unit_test_memory_limit_LDADD = libdaemon.a libcommon.a
tests_unit_test_utf8_SOURCES = tests/unit/test-utf8.c tests/unit/test.h
tests_unit_test_utf8_LDADD = libcommon.a

tests_unit_test_burst_SOURCES = tests/unit/test-burst.c tests/unit/test.h
tests_unit_test_burst_LDADD = libcollector.a libcommon.a
tests_unit_test_mailbox_SOURCES = tests/unit/test-mailbox.c tests/unit/test.h
tests_unit_test_mailbox_LDADD = libcollector.a libcommon.a
tests_unit_test_extent_SOURCES = tests/unit/test-extent.c tests/unit/test.h
tests_unit_test_extent_LDADD = libcollector.a libcommon.a
tests_unit_test_memory_SOURCES = tests/unit/test-memory.c tests/unit/test.h
tests_unit_test_memory_LDADD = libcollector.a libcommon.a
tests_unit_test_pool_SOURCES = tests/unit/test-pool.c tests/unit/test.h
tests_unit_test_pool_LDADD = libcollector.a libcommon.a
tests_unit_test_runnable_SOURCES = tests/unit/test-runnable.c tests/unit/test.h
tests_unit_test_runnable_LDADD = libcollector.a libcommon.a
tests_unit_test_tbuf_SOURCES = tests/unit/test-tbuf.c tests/unit/test.h
tests_unit_test_tbuf_LDADD = libcollector.a libcommon.a
tests_unit_test_tsc_SOURCES = tests/unit/test-tsc.c tests/unit/test.h
tests_unit_test_tsc_LDADD = libcollector.a libcommon.a
tests_unit_test_walk_SOURCES = tests/unit/test-walk.c tests/unit/test.h
tests_unit_test_walk_LDADD = libcollector.a libcommon.a
tests_unit_test_watch_SOURCES = tests/unit/test-watch.c tests/unit/test.h
tests_unit_test_watch_LDADD = libcollector.a libcommon.a
# What the test does not replace is the real libraries'.
tests_unit_test_xen_SOURCES = tests/unit/test-xen.c tests/unit/test.h
tests_unit_test_xen_CFLAGS = $(AM_CFLAGS) $(XEN_CFLAGS)
tests_unit_test_xen_LDADD = libcollector.a libcommon.a $(XEN_LIBS)
tests_unit_test_xenstore_SOURCES = tests/unit/test-xenstore.c tests/unit/test.h
tests_unit_test_xenstore_LDADD = libdaemon.a libcommon.a

tests_unit_test_ring_SOURCES = \
	tests/unit/test-ring.c tests/unit/ring-rig.h tests/unit/test.h
tests_unit_test_ring_LDADD = libcollector.a libcommon.a
tests_unit_test_ring_adopt_SOURCES = \
	tests/unit/test-ring-adopt.c tests/unit/ring-rig.h tests/unit/test.h
tests_unit_test_ring_adopt_LDADD = libcollector.a libcommon.a
tests_unit_test_ring_carry_SOURCES = \
	tests/unit/test-ring-carry.c tests/unit/ring-rig.h tests/unit/test.h
tests_unit_test_ring_carry_LDADD = libcollector.a libcommon.a
tests_unit_test_ring_hostile_SOURCES = \
	tests/unit/test-ring-hostile.c tests/unit/ring-rig.h tests/unit/test.h
tests_unit_test_ring_hostile_LDADD = libcollector.a libcommon.a
tests_unit_test_ring_borrow_SOURCES = \
	tests/unit/test-ring-borrow.c tests/unit/ring-rig.h tests/unit/test.h
tests_unit_test_ring_borrow_LDADD = libcollector.a libcommon.a

tests_unit_test_ring_pins_SOURCES = \
	tests/unit/test-ring-pins.c tests/unit/ring-rig.h tests/unit/test.h
tests_unit_test_ring_pins_LDADD = libdaemon.a libcollector.a libcommon.a
tests_unit_test_ring_writer_SOURCES = \
	tests/unit/test-ring-writer.c tests/unit/ring-rig.h tests/unit/test.h
tests_unit_test_ring_writer_LDADD = libdaemon.a libcollector.a libcommon.a $(URING_LIBS) $(ZSTD_LIBS)

# The sink on a ring of the test's own, and on io_uring.
sink_fake_sources = \
	tests/unit/fake-uring.c tests/unit/fake-uring.h tests/unit/fake-disk.h \
	tests/unit/sink-rig.h tests/unit/test.h
tests_unit_test_sink_SOURCES = tests/unit/test-sink.c $(sink_fake_sources)
tests_unit_test_sink_LDADD = libcollector.a libcommon.a
tests_unit_test_drain_SOURCES = \
	tests/unit/test-drain.c tests/unit/drain-rig.h \
	tests/unit/fake-uring.c tests/unit/fake-uring.h tests/unit/test.h
tests_unit_test_drain_LDADD = libcollector.a libcommon.a
tests_unit_test_sink_limits_SOURCES = tests/unit/test-sink-limits.c $(sink_fake_sources)
tests_unit_test_sink_limits_LDADD = libcollector.a libcommon.a
tests_unit_test_sink_handoff_SOURCES = tests/unit/test-sink-handoff.c $(sink_fake_sources)
tests_unit_test_sink_handoff_LDADD = libcollector.a libcommon.a
tests_unit_test_packer_SOURCES = tests/unit/test-packer.c tests/unit/test.h
tests_unit_test_packer_LDADD = libdaemon.a libcollector.a libcommon.a $(URING_LIBS) $(ZSTD_LIBS)
tests_unit_test_sink_ring_SOURCES = \
	tests/unit/test-sink-ring.c tests/unit/sink-rig.h tests/unit/test.h
tests_unit_test_sink_ring_LDADD = libcollector.a libcommon.a $(URING_LIBS)

tests_unit_test_collector_SOURCES = tests/unit/test-collector.c tests/unit/fake-xen-host.h tests/unit/test.h
tests_unit_test_collector_LDADD = libcollector.a libcommon.a $(URING_LIBS)
tests_unit_test_collector_buffers_SOURCES = \
	tests/unit/test-collector-buffers.c tests/unit/collector-rig.h \
	tests/unit/fake-xen-host.h tests/unit/test.h
tests_unit_test_collector_buffers_LDADD = libcollector.a libcommon.a $(URING_LIBS)
tests_unit_test_collector_polls_SOURCES = \
	tests/unit/test-collector-polls.c tests/unit/collector-rig.h \
	tests/unit/fake-xen-host.h tests/unit/test.h
tests_unit_test_collector_polls_LDADD = libcollector.a libcommon.a $(URING_LIBS)
tests_unit_test_collector_polls_LDFLAGS = -Wl,--wrap=uring_poll -Wl,--wrap=uring_wait
tests_unit_test_collector_pool_SOURCES = \
	tests/unit/test-collector-pool.c tests/unit/collector-rig.h \
	tests/unit/fake-xen-host.h tests/unit/test.h
tests_unit_test_collector_pool_LDADD = libcollector.a libcommon.a $(URING_LIBS)
tests_unit_test_collector_holds_SOURCES = \
	tests/unit/test-collector-holds.c tests/unit/collector-rig.h \
	tests/unit/fake-xen-host.h tests/unit/test.h
tests_unit_test_collector_holds_LDADD = libcollector.a libcommon.a $(URING_LIBS)
tests_unit_test_collector_sinks_SOURCES = \
	tests/unit/test-collector-sinks.c tests/unit/collector-rig.h \
	tests/unit/fake-xen-host.h tests/unit/test.h
tests_unit_test_collector_sinks_LDADD = libcollector.a libcommon.a $(URING_LIBS)
tests_unit_test_collector_states_SOURCES = \
	tests/unit/test-collector-states.c tests/unit/collector-rig.h \
	tests/unit/fake-xen-host.h tests/unit/test.h
tests_unit_test_collector_states_LDADD = libcollector.a libcommon.a $(URING_LIBS)
tests_unit_test_joining_SOURCES = \
	tests/unit/test-joining.c tests/unit/collector-rig.h \
	tests/unit/fake-xen-host.h tests/unit/test.h
tests_unit_test_joining_LDADD = libcollector.a libcommon.a $(URING_LIBS)

tests_unit_test_uring_SOURCES = tests/unit/test-uring.c tests/unit/test.h
tests_unit_test_uring_LDADD = libcollector.a $(URING_LIBS)
tests_unit_test_uring_LDFLAGS = \
	-Wl,--wrap=io_uring_submit_and_get_events \
	-Wl,--wrap=io_uring_submit_and_wait \
	-Wl,--wrap=io_uring_submit_and_wait_timeout

tests_unit_test_audit_SOURCES = tests/unit/test-audit.c tests/unit/test.h
tests_unit_test_audit_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)
tests_unit_test_persons_SOURCES = tests/unit/test-persons.c tests/unit/test.h
tests_unit_test_persons_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)
tests_unit_test_rights_SOURCES = tests/unit/test-rights.c tests/unit/test.h
tests_unit_test_rights_LDADD = libdaemon.a libcommon.a
tests_unit_test_calls_SOURCES = tests/unit/test-calls.c tests/unit/test.h
tests_unit_test_calls_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_calls_LDADD = $(xentraced_LDADD)
tests_unit_test_config_SOURCES = tests/unit/test-config.c tests/unit/test.h
tests_unit_test_config_LDADD = libdaemon.a libcommon.a $(INIH_LIBS)
tests_unit_test_ring_share_SOURCES = tests/unit/test-ring-share.c tests/unit/test.h
tests_unit_test_ring_share_LDADD = libdaemon.a libcommon.a
tests_unit_test_user_limits_SOURCES = tests/unit/test-user-limits.c tests/unit/test.h
tests_unit_test_user_limits_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_user_limits_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS) $(INIH_LIBS)
tests_unit_test_budget_SOURCES = tests/unit/test-budget.c tests/unit/test.h
tests_unit_test_budget_LDADD = libdaemon.a libcommon.a
# Replaces the journal.
tests_unit_test_log_SOURCES = tests/unit/test-log.c tests/unit/test.h
tests_unit_test_log_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)
tests_unit_test_log_quota_SOURCES = tests/unit/test-log-quota.c tests/unit/test.h
tests_unit_test_log_quota_LDADD = libdaemon.a libcommon.a
# Replaces the session, the log and sd-event.
tests_unit_test_loss_report_SOURCES = tests/unit/test-loss-report.c tests/unit/test.h
tests_unit_test_loss_report_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_loss_report_LDADD = libdaemon.a libcommon.a
tests_unit_test_metrics_SOURCES = tests/unit/test-metrics.c tests/unit/test.h
tests_unit_test_metrics_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_metrics_LDADD = libcommon.a $(JSON_LIBS)
tests_unit_test_account_SOURCES = tests/unit/test-account.c tests/unit/test.h
tests_unit_test_account_LDADD = libcollector.a libcommon.a
tests_unit_test_capture_config_SOURCES = tests/unit/test-capture-config.c tests/unit/test.h
tests_unit_test_capture_config_LDADD = libdaemon.a libcommon.a $(INIH_LIBS)
tests_unit_test_persist_SOURCES = tests/unit/test-persist.c tests/unit/test.h
tests_unit_test_persist_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_persist_LDADD = $(xentraced_LDADD)
tests_unit_test_vacuum_policy_SOURCES = tests/unit/test-vacuum-policy.c tests/unit/test.h
tests_unit_test_vacuum_policy_LDADD = libdaemon.a libcommon.a
tests_unit_test_vacuum_SOURCES = tests/unit/test-vacuum.c tests/unit/test.h
tests_unit_test_vacuum_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_vacuum_LDADD = $(xentraced_LDADD)
tests_unit_test_vacuum_LDFLAGS = -Wl,--wrap=clock_gettime -Wl,--wrap=fstatvfs -Wl,--wrap=fdatasync
tests_unit_test_config_files_SOURCES = tests/unit/test-config-files.c tests/unit/test.h
tests_unit_test_config_files_LDADD = libdaemon.a libcommon.a $(INIH_LIBS)
# With the manual and the file that is installed.
tests_unit_test_config_keys_SOURCES = tests/unit/test-config-keys.c tests/unit/test.h
tests_unit_test_config_keys_CFLAGS = $(AM_CFLAGS) -DTOP_SRCDIR=\"$(abs_top_srcdir)\"
tests_unit_test_config_keys_LDADD = libdaemon.a libcommon.a $(INIH_LIBS)
tests_unit_test_config_merge_SOURCES = tests/unit/test-config-merge.c tests/unit/test.h
tests_unit_test_config_merge_LDADD = libdaemon.a libcommon.a $(INIH_LIBS)
tests_unit_test_output_file_SOURCES = tests/unit/test-output-file.c tests/unit/test.h
tests_unit_test_output_file_LDADD = libdaemon.a libcommon.a
tests_unit_test_passed_file_SOURCES = tests/unit/test-passed-file.c tests/unit/test.h
tests_unit_test_passed_file_LDADD = libdaemon.a libcommon.a -lutil
tests_unit_test_passed_file_LDFLAGS = -Wl,--wrap=statx -Wl,--wrap=fstatfs
# Outputs with real workers, on a real directory.
# With a real worker, on a real directory, as those that follow.
tests_unit_test_place_SOURCES = tests/unit/test-place.c tests/unit/test.h
tests_unit_test_place_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_place_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS) $(JSON_LIBS)
tests_unit_test_output_SOURCES = tests/unit/test-output.c tests/unit/test.h
tests_unit_test_output_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_output_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS) $(JSON_LIBS)
tests_unit_test_clock_history_SOURCES = tests/unit/test-clock-history.c tests/unit/test.h
tests_unit_test_clock_history_LDADD = libdaemon.a libcollector.a libcommon.a
tests_unit_test_clock_watch_SOURCES = tests/unit/test-clock-watch.c tests/unit/test.h
tests_unit_test_clock_watch_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_clock_watch_LDADD = libdaemon.a libcollector.a libcommon.a $(SYSTEMD_LIBS)
tests_unit_test_clock_watch_LDFLAGS = -Wl,--wrap=read
tests_unit_test_segments_SOURCES = \
	tests/unit/test-segments.c tests/unit/segments-rig.h tests/unit/test.h
tests_unit_test_segments_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_segments_LDADD = libdaemon.a libcollector.a libcommon.a $(JSON_LIBS)
# A session among fakes: of its storage, workers, the collector, Xen and sd-event.
tests_unit_test_session_SOURCES = tests/unit/test-session.c tests/unit/test.h
tests_unit_test_session_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_session_LDADD = libdaemon.a libcollector.a libcommon.a
tests_unit_test_space_SOURCES = tests/unit/test-space.c tests/unit/test.h
tests_unit_test_space_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_space_LDADD = libdaemon.a libcommon.a
tests_unit_test_recorder_stop_SOURCES = tests/unit/test-recorder-stop.c tests/unit/test.h
tests_unit_test_recorder_stop_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_recorder_stop_LDADD = $(xentraced_LDADD)
tests_unit_test_session_name_SOURCES = tests/unit/test-session-name.c tests/unit/test.h
tests_unit_test_session_name_LDADD = $(xentraced_LDADD)
tests_unit_test_history_SOURCES = tests/unit/test-history.c tests/unit/test.h
tests_unit_test_history_LDADD = libdaemon.a libcommon.a
tests_unit_test_silence_SOURCES = tests/unit/test-silence.c tests/unit/test.h
tests_unit_test_silence_LDADD = libdaemon.a libcommon.a
# Snapshots among fakes: of outputs, workers, the collector and sd-event.
tests_unit_test_snapshot_SOURCES = tests/unit/test-snapshot.c tests/unit/ring-rig.h tests/unit/test.h
tests_unit_test_snapshot_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_snapshot_LDADD = libdaemon.a libcollector.a libcommon.a $(URING_LIBS) $(ZSTD_LIBS)
tests_unit_test_snapshot_span_SOURCES = tests/unit/test-snapshot-span.c tests/unit/test.h
tests_unit_test_snapshot_span_LDADD = libdaemon.a libcollector.a libcommon.a
tests_unit_test_domain_names_SOURCES = tests/unit/test-domain-names.c tests/unit/test.h
tests_unit_test_domain_names_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_domain_names_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)
tests_unit_test_domains_SOURCES = tests/unit/test-domains.c tests/unit/test.h
tests_unit_test_domains_LDADD = libdaemon.a libcommon.a
tests_unit_test_systemd_SOURCES = tests/unit/test-systemd.c tests/unit/test.h
tests_unit_test_systemd_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_systemd_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)
tests_unit_test_domain_watch_SOURCES = tests/unit/test-domain-watch.c tests/unit/test.h
tests_unit_test_domain_watch_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_domain_watch_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)
# Replaces Xen and the collector.
tests_unit_test_tracing_SOURCES = tests/unit/test-tracing.c tests/unit/test.h
tests_unit_test_tracing_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_tracing_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)
tests_unit_test_trigger_SOURCES = tests/unit/test-trigger.c tests/unit/test.h
tests_unit_test_trigger_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_trigger_LDADD = $(xentraced_LDADD)
tests_unit_test_triggers_SOURCES = tests/unit/test-triggers.c tests/unit/test.h
tests_unit_test_triggers_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_triggers_LDADD = \
	libdaemon.a libcollector.a libcommon.a $(SYSTEMD_LIBS) $(JSON_LIBS) $(INIH_LIBS)

tests_unit_test_vacate_SOURCES = tests/unit/test-vacate.c tests/unit/test.h
tests_unit_test_vacate_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)
tests_unit_test_vacate_LDFLAGS = -Wl,--wrap=calloc -Wl,--wrap=close
tests_unit_test_request_SOURCES = tests/unit/test-request.c tests/unit/test.h
tests_unit_test_request_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_request_LDADD = libdaemon.a libcommon.a $(JSON_LIBS)
tests_unit_test_door_SOURCES = tests/unit/test-door.c tests/unit/test.h
tests_unit_test_door_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_door_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)
tests_unit_test_connection_SOURCES = tests/unit/test-connection.c tests/unit/test.h
tests_unit_test_connection_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_connection_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS) $(JSON_LIBS)
tests_unit_test_varlink_SOURCES = tests/unit/test-varlink.c tests/unit/test.h
tests_unit_test_varlink_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_unit_test_varlink_LDADD = libcommon.a $(JSON_LIBS)
tests_unit_test_worker_SOURCES = tests/unit/test-worker.c tests/unit/test.h
tests_unit_test_worker_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)
# Replaces the collector.
tests_unit_test_watchdog_SOURCES = tests/unit/test-watchdog.c tests/unit/test.h
tests_unit_test_watchdog_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_watchdog_LDADD = libdaemon.a libcommon.a $(SYSTEMD_LIBS)

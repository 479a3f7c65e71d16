#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The configuration: drop-ins, --check-config, --print-config; and a reload while records flow, which
# loses none, applies all that it may or nothing, and leaves triggers their counts.

. "$(dirname "$0")/lib.sh"

conf() { # conf LINE...: a drop-in
    mkdir -p "$dir/xentraced.conf.d"
    printf '%s\n' "$@" >"$dir/xentraced.conf.d/50-test.conf"
}
check_config() { "$build/xentraced" --check-config --config "$dir/xentraced.conf"; }
print_config() { "$build/xentraced" --print-config --config "$dir/xentraced.conf" "$@"; }
# shellcheck disable=SC2317 # called by check
prints() { # prints ORIGIN VALUE: a key's two lines
    print_config | grep -A 1 -F -- "# $1;" | grep -xF -- "$2" >/dev/null
}
refuses_config() { refuses_with 78 "$@"; }

files() {
    printf '%s\n' '[flight-recorder]' enabled=no '[trigger a]' condition=manual cooldown=5min \
        >"$dir/xentraced.conf"
    check "a file is checked" check_config
    check "where a value comes from" prints "$dir/xentraced.conf:2" enabled=no
    check "where a default does" prints default pool=64M
    conf '[trigger a]' cooldown=7min '[daemon]' log-level=debug
    check "a drop-in changes a trigger" prints "$dir/xentraced.conf.d/50-test.conf:2" cooldown=7min
    check "and leaves the rest" prints "$dir/xentraced.conf:4" condition=manual
    check "the command line is last" grep -qx log-level=err <(print_config --log-level err)
    print_config >"$dir/printed.conf"
    check "what is printed is a configuration" "$build/xentraced" --check-config --config "$dir/printed.conf"
    check "of the same values" same "$(grep -v '^#' "$dir/printed.conf")" \
        "$("$build/xentraced" --print-config --config "$dir/printed.conf" | grep -v '^#')"
    conf '[trigger b]' runnable-latency=50 cooldown=1s '[flight-recorder]' enabled=yes
    check "a time without a unit" grep -q \
        "line 2: runnable-latency=50 has no unit and means 50s" <(check_config)
    conf '[trigger a]' coldown=1s pol=2M
    check "all mistakes are reported" same "$(check_config 2>&1 | grep -c "50-test.conf, line [23]: ")" 2
    check "with the nearest name" grep -q "'coldown' in \[trigger a\]; did you mean 'cooldown'?" \
        <(check_config 2>&1)
    check "the status of a wrong configuration" same "$(check_config >"$dir/out" 2>&1; echo $?)" 78
    check "nothing is printed of it" refuses_print
    rm "$dir/xentraced.conf.d/50-test.conf"
    ln -s /dev/null "$dir/xentraced.conf.d/50-test.conf"
    check "a drop-in that is masked" check_config
}
# shellcheck disable=SC2317 # called by check
refuses_print() {
    local status=0
    print_config >"$dir/printed" 2>/dev/null || status=$?
    same "$status" 78 && test ! -s "$dir/printed"
}

of_trigger() { ctl --json status >"$dir/status" && number "$dir/status" triggers "name=$1" "${@:2}"; }
fired() { same "$(of_trigger "$1" fired)" "$2"; } # fired NAME TIMES
written() { [ "$(of_trigger "$1" written)" = "$2" ]; }

reload() {
    recorder memory=16M
    printf '%s\n' '[trigger hand]' condition=manual cooldown=1h '[trigger old]' condition=manual \
        >>"$dir/xentraced.conf"
    daemon_start && wait_until 10 recorder_runs || exit 1
    check "a capture starts" ctl start whole
    ctl trigger hand >"$dir/fired"
    check "a trigger fires" wait_until 10 written hand 1
    for _ in {1..20}; do
        ctl reload >"$dir/reload" || break
    done
    check "a reload without a change" grep -q "Applied: no changes" "$dir/reload"
    sed -i -e 's/cooldown=1h/cooldown=0/' -e '/trigger old/,$d' "$dir/xentraced.conf"
    conf '[daemon]' log-level=debug pool=32M '[trigger new]' event=sched-min count=3 within=1s
    ctl reload >"$dir/reload"
    check "what was applied" grep -q "Applied: \[trigger hand\] cooldown=0 ($dir/xentraced.conf:" "$dir/reload"
    check "a trigger that is new" grep -q "Applied: \[trigger new\] added" "$dir/reload"
    check "a trigger that has gone" grep -q "Applied: \[trigger old\] removed" "$dir/reload"
    check "what needs a restart" grep -q "Restart: \[daemon\] pool=32M ($dir/xentraced.conf.d/50-test.conf:3)" \
        "$dir/reload"
    check "the log has it, too" grep -q "pool=32M .* needs a restart" "$dir/log"
    check "the log's level is another" grep -q "Client of UID" "$dir/log"
    check "a trigger keeps its count" fired hand 1
    check "its cooldown is the new one" ctl trigger hand
    check "and it fires" wait_until 10 written hand 2
    check "the one that has gone does not" refuses "There is no trigger 'old'" ctl trigger old
    check "list --triggers has its limits" grep -Eq \
        '^new +event=sched-min count=3 within=1s .* cooldown=1min max-per-day=10$' <(ctl list --triggers)
    refused_reloads
    "$xensim" pause
    check "the capture ends" ctl stop whole
    check "no record is lost" whole "$dir/state/whole.xentrace"
    check "none was dropped" same "$(number "$dir/state/whole.json" ledger dropped)" 0
    check "Xen lost none" same "$(number "$dir/state/whole.json" ledger lost)" 0
}

refused_reloads() {
    conf '[daemon]' log-level=info '[trigger hand]' cooldown=1h colour=red
    check "a wrong file is refused" refuses \
        "not reloaded, the running one stays in force.*50-test.conf, line 5: .*'colour'" ctl reload
    check "as a whole" ctl trigger hand
    check "with all of the old one" wait_until 10 written hand 3
    conf '[daemon]' control-group=no-such-group
    check "a group that is not there" refuses \
        "not reloaded.*50-test.conf, line 2: this group does not exist.*no-such-group" ctl reload
    conf '[trigger hand]' cooldown=2h
    kill -HUP "$daemon"
    check "SIGHUP reloads" wait_until 10 grep -q "\[trigger hand\] cooldown=2h" "$dir/log"
    check "audit: who sent it" wait_until 10 grep -q \
        "Audit: Reload (SIGHUP) by root, UID 0 (bash, PID $$): done" "$dir/log"
    conf '[trigger hand]' cooldown=soon
    kill -HUP "$daemon"
    check "SIGHUP, and a wrong file" wait_until 10 grep -q \
        "Audit: Reload (SIGHUP) by root, .*: failed. .*not reloaded.*'soon' is not a time" "$dir/log"
    check "audit: reloads by xentracectl" grep -q \
        "Audit: Reload by root, UID 0 (xentracectl, PID [0-9]*): done" "$dir/log"
    check "audit: ... that were refused" grep -q "Audit: Reload by root, .*: failed. .*'colour'" "$dir/log"
    check "the daemon continues" fired hand 3
}

# Only root may.
rights() {
    daemon_start || exit 1
    launcher=(env -u LD_PRELOAD setpriv --reuid 65534 --clear-groups)
    check "nobody may not reload" refuses "." "${launcher[@]}" "$build/xentracectl" reload
    launcher=()
}

# A disk that hangs holds up the reload alone.
slow_files() {
    local reload
    daemon_start || exit 1
    mkdir "$dir/xentraced.conf.d"
    mkfifo "$dir/xentraced.conf.d/50-hangs.conf"
    "$build/xentracectl" reload >"$dir/reload" 2>&1 &
    reload=$!
    sleep 0.3
    check "files that hang: the reload waits" kill -0 "$reload"
    check "files that hang: a capture starts" ctl start other
    check "files that hang: and ends" ctl stop other
    : >"$dir/xentraced.conf.d/50-hangs.conf"
    check "files that hang: the reload ends with them" wait "$reload"
}

main() {
    sim -- files
    sim_clean
    sim --workload numbered --rate 2M -- reload
    sim_clean
    sim -- rights
    sim_clean
    sim -- slow_files
    sim_clean
}

dispatch "$@"

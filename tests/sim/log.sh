#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The log has the lines of its level and no others. A log that hangs, as journald may, delays neither
# clients nor captures nor the end of the daemon, and reports afterwards how much it lacks.

. "$(dirname "$0")/lib.sh"

lines() { grep -c -- "$1" "$dir/log"; }

levels() {
    daemon_start || exit 1
    ctl record --quiet -T 0.1 usual >/dev/null
    daemon_stop
    check "info: a capture is reported" above "$(lines 'usual: Ended')" 0
    check "info: no connection is" same "$(lines 'Client of UID')" 0

    configure '[daemon]' log-level=debug
    daemon_start || exit 1
    ctl status >/dev/null
    daemon_stop
    check "log-level=debug: connections are reported" above "$(lines 'Client of UID 0.*disconnected')" 0

    "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" --log-level warning 2>"$dir/log" &
    daemon=$!
    check "--log-level takes precedence: it starts" wait_until 20 answers
    daemon_stop
    check "--log-level takes precedence: nothing is reported" same "$(lines .)" 0
    check "a level that does not exist" refuses_usage "'loud': use err, warning" \
        "$build/xentraced" --log-level loud
    check "a level that does not exist, in the configuration" \
        refuses_with 78 "line 2: 'loud' is not a level: use err" with_level loud
}
with_level() { # with_level LEVEL
    printf '[daemon]\nlog-level=%s\n' "$1" >"$dir/other.conf"
    "$build/xentraced" --config "$dir/other.conf"
}

# Standard error is a pipe that is full, and that nobody reads.
hangs() {
    local begin
    mkfifo "$dir/pipe"
    exec 9<>"$dir/pipe"
    fill_pipe
    configure '[daemon]' log-level=debug
    "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" 2>"$dir/pipe" 9<&- &
    daemon=$!
    check "the daemon starts" wait_until 20 answers
    check "a capture starts" timeout 5 "$build/xentracectl" start hangs
    for _ in $(seq 200); do answers || break; done # a few lines each
    check "status is answered" answers
    check "the capture ends" timeout 5 "$build/xentracectl" stop hangs
    check "nothing was dropped" same "$(number "$dir/state/hangs.json" ledger dropped)" 0
    check "the capture is complete" "$xensim" verify "$dir/state/hangs.xentrace"

    cat <&9 >"$dir/log" &
    check "the log flows again: the first lines are there" wait_until 10 grep -aq 'Ready at' "$dir/log"
    check "the log flows again: it reports what it lacks" \
        wait_until 10 grep -aEq 'did not accept lines: [0-9]+ lines were dropped' "$dir/log"
    kill $!
    wait $!

    fill_pipe
    begin=$SECONDS
    kill -TERM "$daemon"
    check "the log hangs: the daemon ends well" wait "$daemon"
    check "the log hangs: ... within 5 s" below $((SECONDS - begin)) 5
    unset daemon
}
answers() { reports timeout 5 "$build/xentracectl" status >/dev/null 2>&1; }
fill_pipe() {
    python3 -c 'if True:
        import os
        os.set_blocking(9, False)
        try:
            while True:
                os.write(9, b"." * 4096)
        except BlockingIOError:
            os.set_blocking(9, True)'
}

main() {
    sim --rate 5M -- levels
    sim_clean
    sim --rate 5M -- hangs
    sim_clean
}

dispatch "$@"

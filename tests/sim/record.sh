#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# `xentracectl record` on the real daemon: around a command, and when the daemon ends or dies meanwhile.

. "$(dirname "$0")/lib.sh"

reason_is() { same "$(number "$1" ended reason)" "$2"; }

around() {
    local status=0
    daemon_start || exit 1
    ctl record -o "$dir/command.xentrace" -- sh -c 'sleep 1; exit 3' 2>"$dir/summary" || status=$?
    check "a command: its exit status" same "$status" 3
    check "a command: the summary" grep -q 'ended after' "$dir/summary"
    check "a command: its time" shows '^[12]' \
        sh -c "sed -n 's/.*ended after \([0-9]\).*/\1/p' '$dir/summary'"
    check "a command: the file" whole "$dir/command.xentrace"
    check "a command: the ledger balances" balances "$dir/command.json"
    check "a command that is not found" shows 'no command' \
        sh -c "'$build/xentracectl' record -o '$dir/none.xentrace' -- no-such-command 2>&1; test \$? -eq 127 || echo wrong"
    check "a command that is not found: no file" test ! -e "$dir/none.xentrace"
    check "a command that is not found: no capture" same \
        "$(ctl --json status | number /dev/stdin sessions 1 name 2>/dev/null)" ""
}

# The daemon ends, or dies, while record runs: what record says of its file.
without_daemon() { # without_daemon SIGNAL
    local client status=0 file=$dir/$1.xentrace
    daemon_start || exit 1
    "$build/xentracectl" record -q -o "$file" >"$dir/summary" 2>&1 &
    client=$!
    check "$1: records come" wait_until 20 test -s "$file"
    kill "-$1" "$daemon"
    wait "$daemon"
    wait "$client" || status=$?
    unset daemon
    check "$1: exit status" same "$status" 1
    check "$1: the file is readable" ctl info "$file"
}

ended() {
    without_daemon TERM
    check "TERM: reports the restart, or the end" grep -Eq \
        'was stopped or restarted|ended early after .*xentraced was stopped' "$dir/summary"
    check "TERM: names the file" grep -q "File: $dir/TERM.xentrace" "$dir/summary"
    check "TERM: the sidecar has the reason" reason_is "$dir/TERM.json" daemon-exit
}

died() {
    without_daemon KILL
    check "KILL: names the file" grep -q "readable; see: xentracectl info $dir/KILL.xentrace" \
        "$dir/summary"
}

# The records of "another host", by an ssh that only runs the command: tests/ctl/test-ssh has a real one.
elsewhere() {
    daemon_start || exit 1
    mkdir "$dir/bin"
    ln -s "$build/xentracectl" "$dir/bin/xentracectl"
    # ssh -xT -- HOST COMMAND, with a login that prints something
    printf '#!/bin/sh\necho "Welcome to dom0."\nexec sh -c "$4"\n' >"$dir/bin/ssh"
    chmod +x "$dir/bin/ssh"
    PATH=$dir/bin:$PATH
    check "a stream" ctl -H other record -T 2 -o "$dir/far.xentrace"
    check "a stream: every record is there" whole "$dir/far.xentrace"
    ctl info "$dir/far.xentrace" >"$dir/info"
    check "a stream: the sidecar agrees" same "$(grep -c Differs "$dir/info")" 0
    check "a stream: the ledger balances" balances "$dir/far.json"
    check "Ctrl-C" timeout --foreground --preserve-status --signal INT 3 "$build/xentracectl" --socket "ssh://other$dir/control" record -q \
        -o "$dir/int.xentrace"
    check "Ctrl-C: every record is there" whole "$dir/int.xentrace"
    check "Ctrl-C: the ledger balances" balances "$dir/int.json"
    check "a command here" ctl -H other record -o "$dir/near.xentrace" -- sleep 1
    check "a command here: every record is there" whole "$dir/near.xentrace"
    check "a capture there" ctl -H other record -T 1 there
    check "a capture there: every record is there" whole "$dir/state/there.xentrace"
}

main() {
    sim --cpus 2 --rate 2M -- elsewhere
    sim_clean
    sim --cpus 2 --rate 2M -- around
    sim_clean
    sim --cpus 2 --rate 2M -- ended
    sim_clean
    sim --cpus 2 --rate 2M -- died
    sim_clean
}

dispatch "$@"

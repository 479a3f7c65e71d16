#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compressed snapshots and captures in memory hold what plain ones do, to the record; their sizes are those on
# the disk; a write that fails leaves whole frames, and the ledger agrees with them.
#
#   tests/sim/compress.sh [PART]...                               only these parts

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/packed.sh"

snapshots() {
    local file=$dir/state/asked.xentrace.zst
    recorder_start memory=32M || exit 1
    wait_until 20 recorder_has $((20 * mib))
    check "snapshot --compress zstd" eval 'ctl --json snapshot --compress zstd asked >"$dir/asked"'
    check "it is there, with its suffix" test -e "$file"
    check "it holds all that it reports" unpacks "$file" "$dir/asked"
    check "its sidecar has the same" unpacks "$file" "$dir/state/asked.json"
    check "frames begin with rounds" frames_begin_with_rounds "$file" 8
    check "it is smaller" below "$(size_of "$file")" $(($(size_of "$dir/plain") * 2 / 3))
    check "report reads it" ctl report "$file"
    check "report reads a part of it" ctl report --since -100ms "$file"
    check "without a name, report finds it" eval 'ctl report 2>&1 | grep asked.xentrace.zst'
    check "a plain one of that name is refused" refuses "asked.xentrace.* exists" ctl snapshot asked
    check "and the other way round" eval 'ctl snapshot plain >/dev/null; refuses "plain.xentrace.* exists" \
        ctl snapshot --compress zstd plain'
    check "by default it is plain" whole "$dir/state/plain.xentrace"
    check "no compression of that name" refuses_usage 'is not one of: zstd no' ctl snapshot --compress lzma other

    ctl --json snapshot --compress zstd -o "$dir/own" >"$dir/own.doc"
    check "-o FILE" unpacks "$dir/own" "$dir/own.doc"
    ctl --json snapshot --compress zstd -o - 2>"$dir/piped.doc" | cat >"$dir/piped"
    check "-o -" unpacks "$dir/piped" "$dir/piped.doc"
    ctl --json snapshot --compress zstd --last 300ms short >"$dir/short"
    check "--last" unpacks "$dir/state/short.xentrace.zst" "$dir/short"
    ctl --json snapshot --compress zstd --since -800ms --until -300ms middle >"$dir/middle"
    check "--since, --until" unpacks "$dir/state/middle.xentrace.zst" "$dir/middle"
    ctl --json snapshot --compress zstd --max-size 3M newest >"$dir/newest"
    check "--max-size" unpacks "$dir/state/newest.xentrace.zst" "$dir/newest"
    check "--max-size is not exceeded, on the disk" \
        below "$(size_of "$dir/state/newest.xentrace.zst")" $((3 * mib + 1))
    check "--max-size is nearly reached" above "$(size_of "$dir/state/newest.xentrace.zst")" $((2 * mib))
    check "--bundle" eval 'ctl snapshot --compress zstd --bundle -o "$dir/all.tar" >/dev/null &&
        tar -xOf "$dir/all.tar" all.xentrace.zst >"$dir/member" && zstd -dcq "$dir/member" >"$dir/plain" &&
        whole "$dir/plain"'

    ctl --json list --files >"$dir/files"
    check "list --files has it" grep -q '"asked"' "$dir/files"
    check "remove takes it by its file's name" ctl remove "$file"
    check "it is gone, with its sidecar" same "$(compgen -G "$dir/state/asked*")" ""
    settle_recorder
    check "the ledger balances" balances "$dir/recorder"
    check "nothing was lost" same "$(number "$dir/recorder" ledger lost)" 0
}

configured() {
    recorder memory=16M compress=zstd
    printf '%s\n' '[trigger asked]' condition=manual report=yes >>"$dir/xentraced.conf"
    daemon_start && wait_until 10 recorder_runs || exit 1
    sleep 1
    ctl --json snapshot standard >"$dir/standard"
    check "compress=zstd: a snapshot" unpacks "$dir/state/standard.xentrace.zst" "$dir/standard"
    check "compress=zstd: --compress no" ctl snapshot --compress no plain
    check "compress=zstd: it is plain" whole "$dir/state/plain.xentrace"
    ctl snapshot -o "$dir/own" >/dev/null
    check "compress=zstd: -o is plain" whole "$dir/own"
    check "compress=zstd: --now is read" ctl report --now
    ctl trigger asked >/dev/null
    check "compress=zstd: a trigger's" wait_until 10 compgen -G "$dir/state/snapshot-asked-*.xentrace.zst"
    kill -USR2 "$daemon"
    check "compress=zstd: SIGUSR2" wait_until 10 compgen -G "$dir/state/snapshot-sigusr2-*.xentrace.zst"
}

in_memory() {
    daemon_start || exit 1
    check "record -M --compress zstd" ctl record --quiet -M 16M --compress zstd -T 1.5 timed
    check "record -M: all that was delivered" unpacks "$dir/state/timed.xentrace.zst" "$dir/state/timed.json" ledger
    check "record -M: the ledger balances" balances "$dir/state/timed.json"
    check "record -M: info finds no difference" ctl info "$dir/state/timed.xentrace.zst"
    ctl start -M 16M --compress zstd stopped >/dev/null
    sleep 0.5
    "$xensim" pause
    "$xensim" stat >"$dir/stat"
    ctl stop stopped >/dev/null
    "$xensim" resume
    zstd -dcqf "$dir/state/stopped.xentrace.zst" -o "$dir/stopped"
    check "-M: complete, to the last record" "$xensim" verify --report "$dir/stat" "$dir/stopped"
    ctl record --quiet -M 16M --compress zstd -T 1 -o - 2>/dev/null | zstd -dcq >"$dir/piped"
    check "-M -o -: complete" whole "$dir/piped"
}

write_fails() {
    [ "$(id -u)" -eq 0 ] || { skip "a write fails" "not root"; return; }
    mkdir -p "$dir/memory"
    mount -t tmpfs -o size=64M none "$dir/memory" || exit 1
    trap 'umount -l "$dir/memory"' EXIT
    recorder memory=32M
    daemon_start --state-dir "$dir/memory/state" && wait_until 10 recorder_runs || exit 1
    ctl start -M 16M --compress zstd ends >/dev/null
    wait_until 20 recorder_has $((25 * mib))
    prlimit --pid "$daemon" --fsize=$((2 * mib)):
    check "a write fails: the snapshot fails" refuses "Cannot write .*take another snapshot" \
        ctl snapshot --compress zstd failing
    check "a write fails: no file is left" same "$(ls -A "$dir/memory/state" | grep -v '^ends\.')" ""
    ctl stop ends >"$dir/stopped" 2>&1
    check "a write fails at the end of -M: that says what is lost" \
        grep -q "Cannot write .*the remaining records are counted as dropped" "$dir/stopped"
    zstd -dcq "$dir/memory/state/ends.xentrace.zst" >"$dir/plain" 2>"$dir/log.zstd"
    check "a write fails at the end of -M: whole frames stay" whole "$dir/plain"
    check "a write fails at the end of -M: some do" above "$(size_of "$dir/plain")" 0
    ctl --json info "$dir/memory/state/ends.xentrace.zst" >"$dir/info"
    check "a write fails at the end of -M: delivered is what is in the file" same \
        "$(number "$dir/info" files 0 records)" "$(number "$dir/memory/state/ends.json" ledger delivered)"
    check "a write fails at the end of -M: some were dropped" above \
        "$(number "$dir/memory/state/ends.json" ledger dropped)" 0
    check "a write fails at the end of -M: the ledger balances" balances "$dir/memory/state/ends.json"
    prlimit --pid "$daemon" --fsize=unlimited:
    check "a write fails: the daemon ends well" daemon_stop
    unset daemon
    umount -l "$dir/memory"
}

parts=("$@")
[ $# -gt 0 ] || parts=(snapshots configured in_memory write_fails)
main() {
    local part
    for part in "${parts[@]}"; do
        sim --cpus 4 --rate 5M -- "$part"
        sim_clean
    done
}

dispatch "$@"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compressed captures and segments hold what plain ones do, to the record, while they are written and after
# whatever ends them; their sizes are those on the disk.
#
#   tests/sim/compress-captures.sh [PART]...                      only these parts

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/packed.sh"

buffer_pages=32
state=${dir:-}/state
segments() { ls "$state" | grep -E "^$1\.[0-9]+\.xentrace\.zst$"; }
count() { segments "$1" | wc -l; }
has() { [ "$(count "$1")" -ge "$2" ]; } # has NAME COUNT
join() { (cd "$state" && segments "$1" | xargs -r cat) | zstd -dcq >"$dir/joined"; }
nothing_hidden() { same "$(ls -A "$state" | grep -c '^\.')" 0; }
output_of() { ctl --json status "$1" >"$dir/status" && number "$dir/status" output "$2"; }
stores() { [ "$(output_of "$1" bytes)" -gt "$2" ]; } # stores NAME BYTES
has_packers() { [ "$(grep -lx packer "/proc/$daemon/task"/*/comm | wc -l)" -eq "$1" ]; } # threads that compress
is_flushed() { [ "$(output_of "$1" queued_bytes)" -eq 0 ]; }

files() {
    daemon_start || exit 1
    ctl start --compress zstd file >/dev/null
    check "a file: a thread compresses it" wait_until 10 has_packers 1
    check "a file: it is written as it comes" wait_until 20 stores file $((4 * mib))
    check "a file: status has what it holds" above "$(number "$dir/status" output plain_bytes)" $((5 * mib))
    check "a file: ... also in words" shows 'Holds: [0-9.]+M of records, compressed with zstd$' ctl status file
    check "a file: ... and that none of it is stored raw" same "$(number "$dir/status" output raw_bytes)" 0
    "$xensim" pause
    check "a file: all is on the disk a moment after the last record" wait_until 10 is_flushed file
    zstd -dcq "$state/file.xentrace.zst" >"$dir/plain" 2>/dev/null # it ends without a seek table
    check "a file: ... as whole frames" whole "$dir/plain"
    "$xensim" stat >"$dir/stat"
    ctl stop file >/dev/null
    "$xensim" resume
    check "a file: it holds all that was delivered" unpacks "$state/file.xentrace.zst" "$state/file.json" ledger
    check "a file: complete, to the last record" "$xensim" verify --report "$dir/stat" "$dir/plain"
    check "a file: the ledger balances" balances "$state/file.json"
    check "a file: frames begin with rounds" frames_begin_with_rounds "$state/file.xentrace.zst" 5
    check "a file: it is smaller" below "$(size_of "$state/file.xentrace.zst")" $(($(size_of "$dir/plain") * 2 / 3))
    check "a file: info finds no difference" ctl info "$state/file.xentrace.zst"
    check "a file: report reads it" ctl report "$state/file.xentrace.zst"

    check "-o FILE" ctl record --quiet --compress zstd -T 1 -o "$dir/own"
    check "-o FILE: it is compressed" eval 'zstd -dcq "$dir/own" >"$dir/plain" && whole "$dir/plain"'
    ctl record --quiet --compress zstd -T 1.5 -o - 2>/dev/null | zstd -dcq >"$dir/piped"
    check "-o -: complete" whole "$dir/piped"
    check "--bundle" ctl record --quiet --compress zstd -T 1 --bundle -o "$dir/all.tar"
    check "--bundle: the trace in it" eval 'tar -xOf "$dir/all.tar" all.xentrace.zst | zstd -dcq >"$dir/plain" &&
        whole "$dir/plain"'
    ctl start --compress zstd -e hw empty >/dev/null
    ctl stop empty >/dev/null
    check "nothing is recorded: it is a trace" ctl info "$state/empty.xentrace.zst"
    check "nothing is recorded: ... that zstd unpacks" zstd -tq "$state/empty.xentrace.zst"
    check "captures that have ended keep no thread" wait_until 10 has_packers 0
    check "... but are shown" shows 'Holds: [0-9.]+M of records, compressed with zstd$' ctl status file
}

limits() {
    daemon_start || exit 1
    ctl record --quiet --compress zstd --max-size 2M limited >"$dir/said" 2>&1
    check "--max-size: it ends for that" same "$(number "$state/limited.json" ended reason)" max-size
    check "--max-size: no byte more, on the disk" below "$(size_of "$state/limited.xentrace.zst")" $((2 * mib + 1))
    check "--max-size: not much less" above "$(size_of "$state/limited.xentrace.zst")" $((3 * mib / 2))
    check "--max-size: it holds all that was delivered" \
        unpacks "$state/limited.xentrace.zst" "$state/limited.json" ledger
    check "--max-size: the ledger balances" balances "$state/limited.json"
}

reserve() {
    [ "$(id -u)" -eq 0 ] || { skip "the reserve" "not root"; return; }
    on_small 14 || exit 1
    trap 'umount -l "$state"' EXIT
    daemon_start || exit 1
    ctl record --quiet --compress zstd -r 4 full >"$dir/said" 2>&1
    check "the reserve: it ends for that" same "$(number "$state/full.json" ended reason)" reserve
    check "the reserve: it is left" above "$(($(stat -f -c '%a * %S' "$state")))" $((4 * mib - 1))
    check "the reserve: it holds all that was delivered" unpacks "$state/full.xentrace.zst" "$state/full.json" ledger
    check "the reserve: the ledger balances" balances "$state/full.json"
    rm "$state"/full*
    ctl start --compress zstd -r 4 --on-reserve pause paused >/dev/null
    check "pause: it waits" wait_until 60 eval '[ "$(output_of paused paused)" = true ]'
    check "pause: nothing is over the reserve" above "$(($(stat -f -c '%a * %S' "$state")))" $((4 * mib - 1))
    ctl stop paused >/dev/null
    check "pause: it holds all that was delivered" \
        unpacks "$state/paused.xentrace.zst" "$state/paused.json" ledger
    check "pause: the ledger balances" balances "$state/paused.json"
    daemon_stop
    unset daemon
    umount -l "$state"
}

rings() {
    local file
    daemon_start || exit 1
    ctl start --compress zstd --segment-size 1M ring >/dev/null
    check "segments: there are several" wait_until 60 has ring 5
    ctl rotate ring >/dev/null
    "$xensim" pause
    "$xensim" stat >"$dir/stat"
    ctl stop ring >/dev/null
    "$xensim" resume
    join ring
    check "segments: joined they are one capture" "$xensim" verify --report "$dir/stat" "$dir/joined"
    check "segments: the ledger balances" balances "$state/ring.json"
    check "segments: their bytes are those on the disk" same "$(number "$state/ring.json" output bytes)" \
        "$(cd "$state" && segments ring | xargs stat -c %s | awk '{ n += $1 } END { print n }')"
    for file in $(segments ring | head -n 3); do
        check "segments: $file is as long as asked for, about" \
            eval 'above "$(size_of "$state/$file")" $((3 * mib / 4)) && below "$(size_of "$state/$file")" $((5 * mib / 4))'
        check "segments: $file agrees with its sidecar" \
            unpacks "$state/$file" "$state/${file%.xentrace.zst}.json" segment
    done
    check "segments: nothing is left over" nothing_hidden
    ctl start --compress zstd --segment-time 1 --keep-files 2 few >/dev/null
    check "--keep-files: the oldest is deleted" wait_until 30 test -e "$state/few.00004.xentrace.zst"
    ctl stop few >/dev/null
    check "--keep-files: two are left" same "$(count few)" 2
    check "--keep-files: the ledger balances" balances "$state/few.json"
}

fails() {
    local fifo
    daemon_start || exit 1
    ctl start --compress zstd failing >/dev/null
    check "a write fails: it is written" wait_until 20 stores failing $((mib / 2))
    prlimit --pid "$daemon" --fsize=$((2 * mib)):
    check "a write fails: it ends" wait_until 30 ended failing
    check "a write fails: for that" same "$(number "$state/failing.json" ended reason)" output-error
    zstd -dcq "$state/failing.xentrace.zst" >"$dir/plain" 2>"$dir/log.zstd"
    check "a write fails: whole frames stay" whole "$dir/plain"
    check "a write fails: delivered is what is in the file" same "$(number "$state/failing.json" ledger delivered)" \
        "$(ctl --json info "$state/failing.xentrace.zst" | number /dev/stdin files 0 records)"
    check "a write fails: the others are dropped" above "$(number "$state/failing.json" ledger dropped)" 0
    check "a write fails: the ledger balances" balances "$state/failing.json"
    prlimit --pid "$daemon" --fsize=unlimited:

    mkfifo "$dir/fifo"
    read_fifo "$dir/fifo" "$dir/read" 0
    ctl start --compress zstd -o "$dir/fifo" stuck >/dev/null
    check "a reader stops: records wait in memory" wait_until 30 eval '[ "$(output_of stuck queued_bytes)" -gt $mib ]'
    check "a reader stops: --abort ends it" timeout 20 "$build/xentracectl" stop --abort stuck
    check "a reader stops: it has ended" wait_until 10 ended stuck
    touch "$dir/go"
    wait "$reader"
    ctl --json status stuck >"$dir/status"
    check "a reader stops: the ledger balances" balances "$dir/status"

    exec {fifo}<>"$dir/fifo" # it has a reader
    check "a reader goes: start" ctl start --compress zstd -o "$dir/fifo" gone
    head -c 100000 <&"$fifo" >/dev/null
    exec {fifo}>&-
    check "a reader goes: it ends" wait_until 30 ended gone
}

parts=("$@")
[ $# -gt 0 ] || parts=(files limits reserve rings fails)
main() {
    local part
    for part in "${parts[@]}"; do
        sim --cpus 4 --rate 5M -- "$part"
        sim_clean
    done
}

dispatch "$@"

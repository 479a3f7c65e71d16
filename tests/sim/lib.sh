# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For the tests of xentraced on the stand-in for Xen. A test is a script that sources this:
#
#   sim [XENSIM OPTION]... -- FUNCTION [ARGUMENT]...   runs FUNCTION of the script on a fresh Xen,
#                                                      in a fresh directory $dir, then ends the daemon
#   daemon_start [OPTION]...  inside: starts xentraced and waits until it is ready; $daemon is its PID
#   daemon_stop               ends it, and fails if it did not end well
#   configure LINE...         inside, before: lines of the configuration
#   recorder [KEY=VALUE]...   inside, before: the flight recorder of all events, in the configuration
#   ctl ...                   xentracectl, on that daemon
#   together FUNCTION CASE... several cases at once, for those that mostly sleep
#   lose_for SECONDS          stops the daemon (SIGSTOP) until Xen loses records, and so much longer
#   lose_until_the_end SECONDS CAPTURE    the same; CAPTURE ends as soon as the daemon goes on
#   whole FILE...             each is complete (xensim verify) and one that every reader reads
#   xen_state                 what Xen's masks are, and whether it traces
#   number FILE KEY...        a number out of a JSON document; or a text, true, null
#   people GROUP:GID[:UID,...]...    outside, as root: groups of our own, with these members, seen by nobody
#                             else; the script runs in a mount namespace of its own. people_done ends that
#
# Checks are those of tests/check.sh. A script's last line is `dispatch "$@"`.
#
# BUILD names the build directory; it is the current one by default. KEEP=1 keeps the directories of
# the runs.

set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../check.sh"

build=${BUILD:-$PWD}
xensim=$build/tests/xensim/xensim
document=$build/tests/xensim/document
script=$(readlink -f "$0")
# Xen's buffers, per CPU. Between VIRQ_TBUF and a loss is half of them, which is to outlast what a busy
# machine may take of the daemon's time, 50 ms: small ones, for small rounds, want a low rate.
buffer_pages=${BUFFER_PAGES:-auto}

for program in xentraced xentracectl tests/xensim/xensim tests/xensim/libxensim.so tests/xensim/document; do
    if [ ! -e "$build/$program" ]; then
        echo "$script: $build/$program is not built: run make check, or set BUILD" >&2
        exit 1
    fi
done

# Built with sanitizers: memory is then no measure, and leaks are told, of libraries too.
sanitized() { nm "$build/xentraced" 2>/dev/null | grep -E ' (__asan_init|__tsan_init)$' >/dev/null; }

number() { "$document" number "$@"; }     # number FILE KEY [KEY]...
balances() { "$document" balances "$@"; } # balances DOCUMENT: in total and per CPU, to the record

# The producer's own account, which `xensim run --report` wrote: what passed the masks.
produced_as_reported() { # produced_as_reported DOCUMENT REPORT
    "$document" as-reported "$@"
}

# A trace of `numbered`, begun and ended anywhere, of which nothing is missing untold.
whole() {
    local file
    for file in "$@"; do
        "$xensim" verify "$file" && "$xensim" rules "$file" || return
    done
}

# --- Inside the simulation. ---

configure() { # configure LINE...: in front of what is in the configuration
    printf '%s\n' "$@" "$(cat "$dir/xentraced.conf")" >"$dir/xentraced.conf.new"
    mv "$dir/xentraced.conf.new" "$dir/xentraced.conf"
}
recorder() { # recorder [KEY=VALUE]...; what is in the configuration stays in front of it
    sed -i '/^\[flight-recorder\]/,$d' "$dir/xentraced.conf"
    printf '%s\n' '[flight-recorder]' events=all "$@" >>"$dir/xentraced.conf"
}
# Reads all of it: grep -q would not, and what writes into a closed pipe fails.
state_is() { [ "$(ctl --json status "$1" 2>/dev/null | number /dev/stdin state 2>/dev/null)" = "$2" ]; }
recorder_runs() { state_is flight-recorder running; }
recorder_start() { # recorder_start [KEY=VALUE]...: with the daemon
    recorder "$@"
    daemon_start && wait_until 10 recorder_runs
}

# Needs root. The caller unmounts it.
on_small() { # on_small MIB: the state directory is an ext4 of that size
    truncate -s "$1M" "$dir/image" && mkfs.ext4 -q "$dir/image" &&
        mkdir -p "$dir/state" && mount -o loop "$dir/image" "$dir/state"
}

# So many snapshots are being written, or wait for their disk.
writes() { [ "$(grep -lx snapshot "/proc/$daemon/task"/*/comm | wc -l)" -eq "$1" ]; } # writes COUNT

# What the recorder's status says, as a document, in $dir/recorder.
recorder_status() { ctl --json status flight-recorder >"$dir/recorder"; }
recorder_has() { # recorder_has BYTES: the ring holds so much
    recorder_status && [ "$(number "$dir/recorder" ring used_bytes)" -gt "$1" ]
}

# Reads FIFO into FILE, RATE bytes a second, or nothing with 0; as soon as $dir/go is there, as fast as
# it can. It is $reader, and is there when this returns: FILE is.
read_fifo() { # read_fifo FIFO FILE RATE
    rm -f "$2" "$dir/go"
    python3 - "$@" "$dir/go" <<'END' &
import os, select, sys, time
fifo, file, rate, go = sys.argv[1:]
fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK) # nobody writes yet: that would wait
with open(file, "wb", buffering=0) as out:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll()
    os.set_blocking(fd, True)
    while True:
        while rate == "0" and not os.path.exists(go):
            time.sleep(0.05)
        data = os.read(fd, 65536)
        if not data:
            break
        out.write(data)
        if not os.path.exists(go):
            time.sleep(len(data) / int(rate))
END
    # shellcheck disable=SC2034 # the caller's
    reader=$!
    wait_until 10 test -e "$2"
}

# The recorder's ledger when nothing is produced any more and all was drained, in $dir/recorder.
settle_recorder() {
    "$xensim" pause
    ctl snapshot --max-size 1M -o - >/dev/null 2>&1 # drains
    recorder_status
}

launcher=() # a command that starts the daemon in its own place, as setpriv does
daemon_start() {
    [ ! -e "$dir/log" ] || cat "$dir/log" >>"$dir/log.before"
    : >"$dir/log" # here, or the last one's log is taken for this one's
    "${launcher[@]}" "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" "$@" 2>"$dir/log" &
    daemon=$!
    wait_until 60 daemon_is_ready && kill -0 "$daemon" 2>/dev/null || {
        cat "$dir/log" >&2
        return 1
    }
}
daemon_is_ready() {
    kill -0 "$daemon" 2>/dev/null || return 0 # it is dead: do not wait; the caller finds out
    grep -q "Ready at" "$dir/log"
}

daemon_stop() {
    kill -TERM "$daemon" && wait "$daemon"
}

ctl() { "$build/xentracectl" "$@"; }

# What Xen was asked to make, ever, on all CPUs together.
attempts() { "$xensim" stat | grep -o '"attempted":[0-9]*' | awk -F: '{ n += $2 } END { print n }'; }
has_made() { [ "$(attempts)" -ge "$1" ]; } # has_made RECORDS

# Every CPU with a buffer has lost records and told nobody yet.
xen_loses() {
    "$xensim" stat |
        awk '/"buffer":true/ { n++; told += /"pending_lost":0,/ } END { exit !n || told }'
}
xen_has_told() {
    "$xensim" stat |
        awk '/"buffer":true/ && !/"pending_lost":0,/ { n++ } END { exit n > 0 }'
}

# Stops the daemon until Xen loses, and SECONDS more. How soon that is depends on the machine: on when
# the threads have stopped, and on how much of a CPU the producer gets.
lose_for() { # lose_for SECONDS
    kill -STOP "$daemon"
    check "the daemon is stopped" wait_until 60 daemon_is_stopped
    check "the daemon is stopped: Xen loses records" wait_until 60 xen_loses
    sleep "$1"
}

daemon_is_stopped() { # all its threads
    awk '/^State:/ && $2 != "T" { n++ } END { exit n > 0 }' "/proc/$daemon/task"/*/status
}

# The same, and CAPTURE ends as soon as the daemon goes on.
lose_until_the_end() { # lose_until_the_end SECONDS CAPTURE
    local client
    lose_for "$1"
    "$build/xentracectl" stop "$2" >/dev/null &
    client=$!
    check "the daemon is stopped: a client waits" wait_until 60 client_waits
    kill -CONT "$daemon"
    check "the daemon goes on: the client has what it asked for" wait "$client"
}
# Connected, and not accepted.
client_waits() {
    awk -v path="$dir/control" '$6 == "02" && $8 == path { n++ } END { exit !n }' /proc/net/unix
}

xen_state() { "$xensim" stat | tr -d '\n' | grep -o '"enabled".*"cpu_mask":"[^"]*"'; }

ended() { state_is "$1" ended; }

# A sanitizer's report, of any process in the simulation, or a failed assert().
no_sanitizer_report() {
    ! grep -rahE -A 20 --include='log*' --include='errors' --include='output' --include='sanitizer.*' \
        'runtime error:|(Address|Leak|Thread|Undefined)[A-Za-z]*Sanitizer|Assertion .* failed' "$dir"
}

people() {
    local spec group gid uids uid name members
    people_files=$(mktemp -d)
    cp /etc/group /etc/passwd "$people_files"
    for spec in "$@"; do
        IFS=: read -r group gid uids <<<"$spec"
        members=
        for uid in ${uids//,/ }; do
            name=$(awk -F: -v uid="$uid" '$3 == uid { print $1; exit }' "$people_files/passwd")
            [ -n "$name" ] || {
                name=user$uid
                echo "$name:x:$uid:$uid::/nonexistent:/usr/sbin/nologin" >>"$people_files/passwd"
            }
            members+=,$name
        done
        sed -i "/^$group:/d" "$people_files/group"
        echo "$group:x:$gid:${members#,}" >>"$people_files/group"
    done
    chmod 0755 "$people_files"
    chmod 0644 "$people_files"/*
    mount --bind "$people_files/group" /etc/group && mount --bind "$people_files/passwd" /etc/passwd
}
people_done() {
    umount /etc/group /etc/passwd
    rm -rf "$people_files"
}

sim() {
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    dir=$(mktemp -d "${TMPDIR:-/tmp}/xentraced-test.XXXXXX")
    # A flight recorder, or whatever else is not said here, is a test's to ask for.
    printf '%s\n' '[capture]' "buffer-pages=$buffer_pages" '[disk]' max-use=none \
        keep-free=none '[flight-recorder]' enabled=no \
        >"$dir/xentraced.conf"
    ASAN_OPTIONS=log_path=$dir/sanitizer:${ASAN_OPTIONS:-} \
        UBSAN_OPTIONS=log_path=$dir/sanitizer:print_stacktrace=1:${UBSAN_OPTIONS:-} \
        TSAN_OPTIONS=log_path=$dir/sanitizer:${TSAN_OPTIONS:-} \
        dir=$dir XENTRACED_SOCKET=$dir/control BUILD=$build SIM_INSIDE=1 \
        "$xensim" run --report "$dir/report" "${options[@]}" -- \
        bash "$script" "$@" >"$dir/output" 2>"$dir/errors" </dev/null
    local status=$?
    grep -E '^(ok|not ok) - |^#' "$dir/output"
    count_checks "$dir/output"
    [ "$status" -eq 0 ] ||
        fail "$1 ends well (status $status)" "$(tail -n 20 "$dir/errors" "$dir/log" 2>/dev/null)"
    check "$1: no sanitizer complains" no_sanitizer_report
}

# Cases that mostly sleep, all at once: FUNCTION CASE for each, with what it prints kept together.
together() { # together FUNCTION CASE...
    local function=$1 case outputs
    shift
    outputs=$(mktemp -d)
    for case in "$@"; do
        { "$function" "$case" || echo "not ok - $case (status $?)"; } >"$outputs/$case" 2>&1 &
    done
    wait
    for case in "$@"; do
        cat "$outputs/$case"
        count_checks "$outputs/$case"
    done
    rm -rf "$outputs"
}

# To be called when the checks outside on what is in $dir are done.
# A disk that is told what was deleted (mount -o discard) stands still for that: now, not when the
# next one captures.
sim_clean() {
    [ -n "${KEEP:-}" ] && echo "# $dir" || rm -rf "$dir"
    sync
}

if [ -n "${SIM_INSIDE:-}" ]; then
    dir=${dir:?}
    trap 'jobs -p | xargs -r kill 2>/dev/null' EXIT
fi

# A script ends with `main "$@"`: inside, that is the function that sim() was given.
dispatch() {
    if [ -n "${SIM_INSIDE:-}" ]; then
        local function=$1
        shift
        "$function" "$@"
        if [ -n "${daemon:-}" ] && kill -0 "$daemon" 2>/dev/null; then
            check "$function: the daemon ends well" daemon_stop
        fi
        trap - EXIT
        exit 0
    fi
    main
    finish
}

# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What the scripts of this folder share, beside tests/check.sh. They run in the build directory.

. "$(dirname "${BASH_SOURCE[0]}")/../check.sh"

ctl=$PWD/xentracectl
fake=$PWD/tests/ctl/fake-daemon
tmp=$(mktemp -d)
daemon=
socket=$tmp/control
export XENTRACED_SOCKET=$socket
# A sanitizer's report must not look like one of our exit codes.
export ASAN_OPTIONS=exitcode=99:${ASAN_OPTIONS-}
export UBSAN_OPTIONS=halt_on_error=1:exitcode=99:${UBSAN_OPTIONS-}

[[ -x $ctl && -x $fake ]] || { echo "not in a build directory"; exit 77; }

clean_up() {
    stop_daemon
    rm -rf "$tmp"
}
trap clean_up EXIT

# expect NAME CODE REGEX ARGUMENT...: what xentracectl says (stdout and stderr in $out) and returns.
expect() {
    local name=$1 code=$2 regex=$3 got=0
    shift 3
    out=$("$ctl" "$@" 2>&1 </dev/null) || got=$?
    if [[ $got -ne $code ]]; then
        fail "$name: exit code $got, not $code" "$out"
    elif ! grep -Eq -- "$regex" <<<"$out"; then
        fail "$name: does not say /$regex/" "$out"
    else
        pass "$name"
    fi
}

# has REGEX: $out says so.
has() {
    grep -Eq -- "$1" <<<"$out"
}

lacks() {
    ! grep -Eq -- "$1" <<<"$out"
}

start_daemon() {
    stop_daemon
    "$fake" "$socket" "$1" &
    daemon=$!
    for _ in {1..100}; do
        [[ -S $socket ]] && return
        sleep 0.05
    done
    fail "the fake daemon did not start"
}

stop_daemon() {
    [[ -z $daemon ]] && return
    kill "$daemon" 2>/dev/null
    wait "$daemon" 2>/dev/null
    daemon=
    rm -f "$socket"
}

# A script's last line.
result() {
    finish
    exit
}

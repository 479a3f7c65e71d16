# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What the scripts of this folder share. They run in the build directory.

ctl=$PWD/xentracectl
fake=$PWD/tests/ctl/fake-daemon
tmp=$(mktemp -d)
failed=0
passed=0
daemon=
socket=$tmp/control
export XENTRACED_SOCKET=$socket
# A sanitizer's report must not look like one of our exit codes.
export ASAN_OPTIONS=exitcode=99:${ASAN_OPTIONS-}
export UBSAN_OPTIONS=halt_on_error=1:exitcode=99:${UBSAN_OPTIONS-}

[[ -x $ctl && -x $fake ]] || { echo "not in a build directory"; exit 77; }

finish() {
    stop_daemon
    rm -rf "$tmp"
}
trap finish EXIT

fail() {
    failed=$((failed + 1))
    echo "FAILED: $*"
}

ok() {
    passed=$((passed + 1))
}

# check NAME COMMAND...: the command succeeds.
check() {
    local name=$1
    shift
    if "$@"; then ok; else fail "$name: $*"; fi
}

# expect NAME CODE REGEX ARGUMENT...: what xentracectl says (stdout and stderr in $out) and returns.
expect() {
    local name=$1 code=$2 regex=$3 got=0
    shift 3
    out=$("$ctl" "$@" 2>&1 </dev/null) || got=$?
    if [[ $got -ne $code ]]; then
        fail "$name: exit code $got, not $code"
        printf '  %s\n' "$out"
    elif ! grep -Eq -- "$regex" <<<"$out"; then
        fail "$name: does not say /$regex/"
        printf '  %s\n' "$out"
    else
        ok
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

result() {
    echo "$passed passed, $failed failed"
    [[ $failed -eq 0 ]]
    exit
}

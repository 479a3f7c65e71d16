# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Checks, for every test that is a shell script. One line for each, on standard output, as unit tests
# print them too (tests/unit/test.h) and tests/all counts them:
#
#   ok - NAME
#   ok - NAME # SKIP REASON
#   not ok - NAME (status N: COMMAND)
#   # anything else
#
#   check NAME COMMAND...     COMMAND succeeds. It is not run in a subshell and may set variables.
#                             $checked is what it printed, of which a failure shows the end
#   pass NAME                 for what is not a command
#   fail NAME [TEXT]...
#   skip NAME REASON          counts what cannot run here
#   count_checks FILE         adds what another script printed into FILE
#   finish                    prints the sum; fails if any check did, or if there was none
#
# For COMMAND:
#
#   same A B, above A B, below A B       A is B, more than B, less than B
#   shows REGEX COMMAND...               COMMAND prints a line that matches
#   fails REGEX COMMAND...               COMMAND fails, and prints a line that matches
#   refuses REGEX COMMAND...             COMMAND fails with exit status 1 and one line, which matches
#   refuses_usage REGEX COMMAND...       the same with exit status 2
#   reports COMMAND...                   COMMAND, a `status`, answers, whatever its exit status says
#                                        of the recorder (3, 4)
#   wait_until SECONDS COMMAND...        COMMAND succeeds within that time, at one of many attempts
#
# check_logs=(FILE...): a failed check shows the ends of these too.

# A shell starts what is to run in the background with SIGINT ignored, nohup(1) what it starts with SIGHUP,
# which a script cannot undo for what it starts in turn: the tests of Ctrl-C would wait for ever.
ignored=$((0x$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status)))
[ $((ignored & 3)) -eq 0 ] || exec env --default-signal=HUP,INT,QUIT "$BASH" "$0" "$@"

# Debian's python3: one of a version manager may take a second to start.
PATH=/usr/bin:$PATH

checks_passed=0
checks_failed=0
checks_skipped=0
check_logs=()

pass() {
    echo "ok - $1"
    checks_passed=$((checks_passed + 1))
}

fail() {
    echo "not ok - $1"
    shift
    [ $# -eq 0 ] || printf '%s\n' "$@" | tail -n 30 | sed 's/^/#   /'
    checks_failed=$((checks_failed + 1))
}

skip() {
    echo "ok - $1 # SKIP $2"
    checks_skipped=$((checks_skipped + 1))
}

# What a COMMAND prints, in a file that has no name any more. Each shell has its own: subshells check at the
# same time.
open_output() {
    local file
    [ "${output_of:-}" != "$BASHPID" ] || return 0
    output_of=$BASHPID
    file=$(mktemp) && exec 198<"$file" 199>"$file" && rm -f "$file"
}

# Where it takes long to start a process, tests are bounded by that: this starts none but COMMAND.
check() {
    local name=$1 status=0
    shift
    open_output
    "$@" >/dev/fd/199 2>&1 198<&- 199>&- || status=$?
    local output parts # only now: COMMAND may use variables of these names
    mapfile -d '' -t parts </dev/fd/198 # no variable holds a zero byte
    printf -v checked '%s' "${parts[@]}"
    while [[ $checked == *$'\n' ]]; do checked=${checked%$'\n'}; done
    if [ "$status" -eq 0 ]; then
        pass "$name"
    else
        fail "$name (status $status: $*)" "$checked"
        for output in "${check_logs[@]}"; do
            [ ! -s "$output" ] || tail -n 20 "$output" | sed "s/^/#   ${output##*/}: /"
        done
    fi
    return 0 # it is counted, and the script continues, with set -e too
}

count_checks() {
    local skipped
    skipped=$(grep -c '^ok - .*# SKIP' "$1")
    checks_passed=$((checks_passed + $(grep -c '^ok - ' "$1") - skipped))
    checks_failed=$((checks_failed + $(grep -c '^not ok - ' "$1")))
    checks_skipped=$((checks_skipped + skipped))
}

finish() {
    local skipped=
    [ "$checks_skipped" -eq 0 ] || skipped=", $checks_skipped skipped"
    echo "# $(basename "$0"): $checks_passed passed, $checks_failed failed$skipped"
    [ "$checks_failed" -eq 0 ] && [ $((checks_passed + checks_skipped)) -gt 0 ]
}

same() { [ "$1" = "$2" ] || { echo "'$1' is not '$2'"; return 1; }; }
above() { [ "$1" -gt "$2" ] || { echo "$1 is not above $2"; return 1; }; }
below() { [ "$1" -lt "$2" ] || { echo "$1 is not below $2"; return 1; }; }

matches() { # matches REGEX TEXT: a line of it
    local line lines
    printf '%s\n' "$2"
    mapfile -t lines <<<"$2"
    for line in "${lines[@]}"; do
        [[ ! $line =~ $1 ]] || return 0
    done
    echo "it does not match $1"
    return 1
}

shows() {
    local regex=$1
    shift
    matches "$regex" "$("$@" 2>&1)"
}

fails() {
    local regex=$1 output
    shift
    output=$("$@" 2>&1) && { echo "it succeeded: $output"; return 1; }
    matches "$regex" "$output"
}

refuses() { refuses_with 1 "$@"; }
refuses_usage() { refuses_with 2 "$@"; }
refuses_with() { # refuses_with STATUS REGEX COMMAND...
    local expected=$1 regex=$2 output status=0
    shift 2
    output=$("$@" 2>&1) || status=$?
    matches "$regex" "$output" || return
    [ "$status" -eq "$expected" ] || { echo "the exit status is $status"; return 1; }
    [[ $output != *$'\n'* ]] || { echo "that is not one line"; return 1; }
}

reports() {
    local status=0 output
    output=$("$@") || status=$?
    [ -n "$output" ] || return 1 # nobody has answered
    printf '%s\n' "$output"
    [ "$status" -eq 0 ] || [ "$status" -eq 3 ] || [ "$status" -eq 4 ]
}

# Ever more seldom: to ask costs as much as what is waited for.
wait_until() {
    local deadline=$((SECONDS + $1)) asked=0
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        if [ $((asked++)) -lt 5 ]; then sleep 0.05; else sleep 0.2; fi
    done
}

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A host where nothing happens is left alone: without a session not one wake-up, with one and nothing
# traced two a second at most, all threads of the daemon together.

. "$(dirname "$0")/lib.sh"

wakeups() { # context switches that the daemon's threads made of their own accord
    awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }' /proc/"$daemon"/task/*/status
}

count_over() { # count_over SECONDS
    local before
    before=$(wakeups)
    sleep "$1"
    echo $(($(wakeups) - before))
}

idle() {
    daemon_start || exit 1
    sleep 1
    check "no session: no wake-up in 5 s" same "$(count_over 5)" 0
    ctl start -e all quiet >/dev/null
    sleep 5 # the fallback timer slows down
    local n
    n=$(count_over 10)
    echo "# $n wake-ups in 10 s with a capture and nothing traced"
    check "a capture and nothing traced: at most 2 wake-ups a second" below "$n" 21
    ctl stop quiet >/dev/null
    sleep 1
    check "after the session: no wake-up in 3 s" same "$(count_over 3)" 0
}

main() {
    sim --cpus 8 --workload none -- idle
    sim_clean
}

dispatch "$@"

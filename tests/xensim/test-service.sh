#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The service manager that stands in for systemd: what it keeps, over which ends of its service.

# shellcheck disable=SC2317 # functions that check() calls
set -u
. "$(dirname "$0")/../check.sh"
build=${builddir:-.}
[ -x "$build/tests/xensim/service" ] || build=.
bin=$(cd "$build/tests/xensim" && pwd)
service=$bin/service
child=$bin/test-service-child
export XENSIM_COMMAND=$bin/xensim
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
check_logs=(log errors)

wait_for() { # wait_for TIMES REGEX: until the log has that many lines of it
    for _ in $(seq 200); do
        [ -e log ] && [ "$(grep -cE "$2" log)" -ge "$1" ] && return
        sleep 0.05
    done
    echo "the log has no $1 lines $2"
    return 1
}

# manage SCRIPT [OPTION]...: starts a manager of `sh -c SCRIPT`; $first is true at its first start.
manage() {
    local script=$1
    shift
    rm -f log started
    : >output
    # shellcheck disable=SC2016 # for the service
    "$service" --restart-delay 20 --log log --pid-file pid "$@" -- \
        sh -c "[ -e started ] && first=false || first=true; : >started; $script" >output 2>errors &
    manager=$!
}

stop() { kill -TERM "$manager" && wait "$manager"; }
outputs() { [ "$(cat output)" = "$1" ] || { cat output; return 1; }; }
logs() { grep -qE "$1" log; }
ends_with() { # ends_with STATUS COMMAND...; in this shell, whose child the manager is
    local expected=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" = "$expected" ] || { echo "status $status"; return 1; }
}

two_memfds="memfd ring hello memfd state world notify READY=1 barrier"
kept=$'state=world\nring=hello\n2 passed'

# Ends of the service, and what the next one gets.
kill_manager() { kill "-$1" "$manager"; }
kill_service() { kill "-$1" "$(cat pid)"; }
survives() { # survives NAME COMMAND...: ends the service by COMMAND, once it is ready
    local name=$1
    shift
    manage "\$first && exec $child $two_memfds wait; exec $child list notify READY=1 wait"
    check "$name: it becomes ready" wait_for 1 ' ready$'
    check "$name: it is ended" "$@"
    check "$name: it is started again" wait_for 2 ' ready$'
    check "$name: the descriptors are there, newest first, with their names" outputs "$kept"
    check "$name: the manager ends with its service" ends_with 143 stop
}

survives SIGKILL kill_service KILL
survives SIGABRT kill_service ABRT
survives "a clean end that nobody asked for" kill_service TERM
survives "a restart (SIGHUP)" kill_manager HUP
check "the manager leaves no PID file" test ! -e pid
check "the manager tells where its socket is" logs ' socket in /tmp/'
check "the manager leaves no directory" test ! -e "$(sed -n 's/.* socket in //p' log)"

manage "\$first && exec $child $two_memfds exit 3; exec $child list notify READY=1 wait"
check "exit status 3: it is started again, with what it had stored just before" wait_for 2 ' ready$'
check "exit status 3: the descriptors are there" outputs "$kept"
check "exit status 3: it is in the log" logs 'exited with 3'
stop >/dev/null 2>&1

manage "exec $child $two_memfds notify STOPPING=1 exit 0" --restart on-failure
check "on-failure: a clean end is the end" ends_with 0 wait $manager
check "on-failure: it said that it stops" logs ' stopping$'
check "on-failure: it was started once" test "$(grep -c ' started ' log)" = 1

manage "trap '' TERM; $child notify READY=1; while :; do sleep 0.1; done" --stop-timeout 100
check "no end: wait until it runs" wait_for 1 'is not the service'
check "no end: SIGKILL after the timeout" ends_with 137 stop

manage "trap 'exec $child notify EXTEND_TIMEOUT_USEC=1000000 wait' TERM; $child notify READY=1
    while :; do sleep 0.01; done" --stop-timeout 500
check "more time: wait until it runs" wait_for 1 'is not the service'
check "more time: SIGKILL in the end" ends_with 137 stop
check "more time: what it asked for is in the log" logs ' extend-timeout 1000000$'
check "more time: it had that, after its request" awk '
    / extend-timeout / { asked = $1 } / does not end: SIGKILL$/ { exit $1 - asked < 0.99 }' log

# One case of the store each: what the service says, what its next life is passed, what is logged.
while IFS='|' read -r name words passed line; do
    manage "\$first && exec $child $words notify READY=1 barrier wait; exec $child list notify READY=1 wait" \
        --fd-store-max 4
    wait_for 1 ' ready$' && kill_service KILL && wait_for 2 ' ready$'
    check "$name: what the next is passed" outputs "$(printf '%b' "$passed")"
    check "$name: the log" logs "$line"
    stop >/dev/null 2>&1
done <<'END'
nothing stored|barrier|0 passed|started [0-9]+ with 0 descriptors
a duplicate|memfd a x|a=x\n1 passed|already stored a$
removed by name|memfd a x memfd b y remove a|b=y\n1 passed|removed 1 of a$
removed, two of a name|memfd a x memfd a y memfd b z remove a|b=z\n1 passed|removed 2 of a$
removed, none of that name|memfd a x remove b|a=x\n1 passed|removed 0 of b$
removed without a name|memfd a x notify FDSTOREREMOVE=1|a=x\n1 passed|without a valid FDNAME
more than there is room for|memfd a 1 memfd b 2 memfd c 3 memfd d 4 memfd e 5|d=4\nc=3\nb=2\na=1\n4 passed|no room for e$
without FDPOLL=0, it hangs up|pipe p memfd a x|a=x\n1 passed|hung up p$
a colon in its name|memfd a:b x|stored=x\n1 passed| stored stored$
status and MAINPID|memfd a x notify STATUS=fine\\nMAINPID=1|a=x\n1 passed|status fine$
END

manage "exec $child notify BARRIER=1 notify READY=1 barrier wait"
wait_for 1 ' ready$'
check "a barrier without a descriptor is named" logs 'barrier without its one descriptor'
stop >/dev/null 2>&1

manage "$child notify READY=1; exec $child notify READY=1 wait"
wait_for 1 ' ready$'
check "nobody but the main process is listened to" logs 'who is not the service, ignored'
check "there is a PID file" test "$(cat pid)" = "$(sed -n 's/.* started \([0-9]*\) .*/\1/p' log)"
stop >/dev/null 2>&1

# The event channel of a process that was killed, on the stand-in for Xen.
evtchn() {
    "$service" --restart-delay 300 --log log --pid-file pid -- sh -c "
        [ -n \"\${LISTEN_FDS:-}\" ] || exec $child bind notify READY=1 barrier wait
        exec $child evtchn notify READY=1 wait" &
    manager=$!
    wait_for 1 ' ready$' && kill_service KILL && wait_for 1 ' killed by SIGKILL$'
    "$bin/xensim" poke virq 0 # nobody runs
    "$bin/xensim" poke virq 0
    wait_for 2 ' ready$'
    "$bin/xensim" stat | grep -o '"virq_bound":[a-z]*'
    stop
    "$bin/xensim" stat | grep -o '"virq_bound":[a-z]*'
}
rm -f log
export service child bin
export -f evtchn wait_for kill_service stop
timeout 60 "$bin/xensim" run --quiet --workload none -- bash -c evtchn >output 2>errors
check "an event channel survives SIGKILL" outputs $'port 17 goes on\n"virq_bound":true\n"virq_bound":false'
finish

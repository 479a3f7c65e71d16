#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# xensim run, end to end: the libraries' calls, faults, exit statuses, replay, and Debian's own
# xentrace if it is there.

# shellcheck disable=SC2317 # functions that check() calls
set -u
. "$(dirname "$0")/../check.sh"
here=$(cd "$(dirname "$0")" && pwd)
build=${builddir:-.}
[ -x "$build/tests/xensim/xensim" ] || build=.
bin=$(cd "$build/tests/xensim" && pwd)
xensim=$bin/xensim
export XENSIM_COMMAND=$xensim
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
check_logs=(out err)

run() { # run STATUS ARGUMENT...: xensim run ends with STATUS; its output is in out and err
    local expected=$1
    shift
    "$xensim" run --quiet "$@" >out 2>err
    same "$?" "$expected"
}
has() { grep -q -- "$1" "${2:-out}"; } # has REGEX [FILE]
verify() { "$xensim" verify "$@" 2>&1 | tee out; return "${PIPESTATUS[0]}"; }
does_not() { ! "$@"; }

check "the libraries' calls" run 0 --cpus 4 --workload none -- "$bin/test-preload"
for fault in no-xen not-root not-dom0 version-mismatch no-tbuf flask no-memory virq-taken virq-busy \
    no-xenstore; do
    check "fault $fault" run 0 --workload none --fault $fault -- "$bin/test-preload" fault $fault
done

check "the command's exit status" run 7 -- sh -c 'exit 7'
check "the command's signal" run 143 -- sh -c 'kill -TERM $$'
check "a command that is not there" run 127 -- /nonexistent
check "no CPU" run 2 --cpus 0 -- true
check "a fault that is not known" run 2 --fault nothing -- true
check "a replay that is not there" run 1 --replay /nonexistent -- true
check "stat outside of a run" refuses 'not inside' "$xensim" stat

"$xensim" run --quiet -- sh -c 'trap "exit 5" TERM; echo "$XENSIM"; while :; do sleep 0.1; done' >out &
pid=$!
check "it runs" wait_until 5 test -s out
kill -TERM $pid
ends_with() { # ends_with STATUS PID
    wait "$2"
    same $? "$1"
}
check "SIGTERM is forwarded" ends_with 5 $pid
check "nothing is left over" test ! -e "$(cat out)"

check "domains that come and go" run 0 --workload none -- sh -c "$xensim domain add 9 mail; $xensim domain shutdown 9 watchdog; $xensim domain crash 1
    $xensim domain remove 2; $xensim domain crash 1; echo \$?; $xensim domain add 0 x; $xensim domain remove 4; echo \$?
    $xensim domain shutdown 0 never; echo \$?; $xensim domain list"
tr -d '\n' <out >line
check "domains: the list" has '^112\[{"domid":0,"name":"Domain-0","vcpus":4,"state":"running"},{"domid":1,"name":"web","vcpus":2,"state":"crash"},{"domid":9,"name":"mail","vcpus":1,"state":"watchdog"}\]$' line
check "domains: the second crash of one" has '^xensim: domain crash 1: it has shut down already$' err

# A mask of Xen's applies.
check "single records of any event, and a burst" run 0 --cpus 2 --workload none --preset-pages 4 --preset-mask 0x0002f000 -- sh -c "
    $xensim event 1 0x00021211 0x10000; $xensim event --times 100 1 0x00028004 1 2 3
    $xensim event 1 0x0010f001; $xensim event --no-tsc 1 0x00021001; $xensim event 2 0x00021001; echo \$?
    $xensim event 1 0x00021001 1 2 3 4 5 6 7 8; echo \$?; $xensim stat"
check "events: what they printed" same "$(head -n 6 out | tr '\n' ' ')" "1 100 0 1 2 2 "
check "events: what is in the buffer" has '"cpu":1,.*"prod":2420,.*"attempted":102,"inserted":102,'

# Boot with tbuf_size=: the buffers fill with the oldest records, then lose.
check "tracing at boot" run 0 --cpus 2 --preset-pages 2 --preset-mask 0x0002f000 --rate 10M --report report.json -- \
    sh -c "sleep 0.3; $xensim pause; $xensim stat; $xensim poke offline 0; $xensim fault no-xen on"
check "tracing at boot: stat" has '"enabled":true,"event_mask":"0x0002f000","cpu_mask":"0x3","pages":2'
check "tracing at boot: the report" has '"cpu":1,.*"inserted":[1-9].*"pending":[1-9]' report.json

xentrace=/usr/lib/xen-4.17/bin/xentrace
if ! [ -x $xentrace ]; then
    skip "captures by xentrace" "no $xentrace"
    finish
    exit
fi

check "a capture" run 0 --cpus 4 --rate 5M --report report.json -- $xentrace -e 0x0ffff000 -T 1 numbered
check "a capture: complete" verify --from-start --cpus 0-3 --report report.json numbered
check "a capture: without losses" has '"lost":0}'

# A mask in Xen leaves no gaps; a CPU mask leaves whole CPUs.
check "masks" run 0 --cpus 4 --rate 5M -- $xentrace -e 0x0002f000 -c 1-2 -T 1 numbered
check "masks: whole CPUs" verify --from-start --cpus 1-2 numbered
check "masks: no gaps" verify --kinds 0x0002f000 numbered

check "a stopped consumer" run 0 --cpus 4 --rate 5M --report report.json -- bash -c "
    $xentrace -S 1 -e 0x0ffff000 numbered & p=\$!
    sleep 0.3; kill -STOP \$p; sleep 0.3; kill -CONT \$p; sleep 0.3; $xensim pause; kill -INT \$p; wait \$p"
check "a stopped consumer: every loss is told" verify --from-start --cpus 0-3 --report report.json numbered
check "a stopped consumer: loses" does_not has '"lost":0}'

check "a vCPU waits 60 ms for a processor, among numbered records" run 0 --cpus 2 --workload none -- bash -c "
    $xentrace -e 0x0ffff000 waits & p=\$!
    sleep 0.5; $xensim insert 0 100 >/dev/null
    $xensim event --ago 60000 1 0x00021211 0x10000; $xensim event 0 0x00021101 0x10000
    $xensim stat >stat; sleep 0.5; kill -INT \$p; wait \$p"
check "a wait: complete but for the events" verify --warn-rounds --ignore 0x00021211,0x00021101 waits
check "a wait: the events are none of them" does_not verify --warn-rounds waits
tsc_of() { "$xensim" records -v waits | while read -r _ header low high _; do
    [ "$header" = "$1" ] && echo $((16#$high << 32 | 16#$low))
done; }
khz=$(grep -o '"cpu_khz":[0-9]*' stat | cut -d: -f2)
usec=$((($(tsc_of 90021101) - $(tsc_of 90021211)) * 1000 / khz))
check "a wait: 60 ms by the TSCs" test "$usec" -ge 60000 -a "$usec" -lt 1060000

check "what stat says of a paused producer" run 0 --cpus 2 --rate 5M -- bash -c "
    $xentrace -e 0x0ffff000 numbered & p=\$!
    sleep 0.5; $xensim pause; sleep 0.3; $xensim stat >stat; kill -INT \$p; wait \$p"
check "stat is a report, too" verify --from-start --report stat numbered
check "a capture of xentrace follows the rules" "$xensim" rules numbered
sed 's/"next_number":/&1/' stat >stat.more
check "stat: a record more is missed" does_not verify --report stat.more numbered

for i in 1 2; do
    check "a replay, run $i" run 0 --cpus 4 --replay "$here/../samples/hotplug-4cpu.xentrace.zst" --tsc-exact --loops 1 --rate 4M -- bash -c "
        $xentrace -S 64 -e 0x0ffff000 replay$i & p=\$!; $xensim wait; kill -INT \$p; wait \$p"
    "$xensim" records replay$i >records$i
done
check "two runs of a replay insert the same" cmp records1 records2
"$xensim" records "$here/../samples/hotplug-4cpu.xentrace.zst" >records
check "a replay is the file" cmp records records1
check "real traces follow the rules" "$xensim" rules "$here"/../samples/*.zst

check "what makes Xen switch tracing off" run 0 --cpus 2 --rate 1M -- bash -c "
    $xentrace -e 0x0ffff000 bogus & p=\$!; sleep 0.3; kill -STOP \$p # it would assert
    $xensim poke bogus-cons 1; sleep 0.2; $xensim stat; kill -KILL \$p"
check "... and stat says so" has '"enabled":false.*"bogus_cpu":1'
finish

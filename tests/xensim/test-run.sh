#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# xensim run, end to end: the libraries' calls, faults, exit statuses, replay, and Debian's own
# xentrace if it is there.

set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${builddir:-.}
[ -x "$build/tests/xensim/xensim" ] || build=.
bin=$(cd "$build/tests/xensim" && pwd)
xensim=$bin/xensim
export XENSIM_COMMAND=$xensim
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

run() { # expected status, arguments of xensim run
    local expected=$1
    shift
    "$xensim" run --quiet "$@" >out 2>err
    local status=$?
    [ "$status" = "$expected" ] || fail "status $status, not $expected: xensim run $*: $(cat out err)"
}

run 0 --cpus 4 --workload none -- "$bin/test-preload"
for fault in no-xen not-root not-dom0 version-mismatch no-tbuf flask no-memory virq-taken virq-busy \
    no-xenstore; do
    run 0 --workload none --fault $fault -- "$bin/test-preload" fault $fault
done

run 7 -- sh -c 'exit 7'
run 143 -- sh -c 'kill -TERM $$'
run 127 -- /nonexistent
run 2 --cpus 0 -- true
run 2 --fault nothing -- true
run 1 --replay /nonexistent -- true
"$xensim" stat 2>err && fail "stat outside of a run"
grep -q 'not inside' err || fail "no sentence from stat outside of a run"

# SIGTERM is forwarded, and nothing is left over.
"$xensim" run --quiet -- sh -c 'trap "exit 5" TERM; echo "$XENSIM"; while :; do sleep 0.1; done' >out &
pid=$!
for _ in $(seq 50); do [ -s out ] && break; sleep 0.1; done
kill -TERM $pid
wait $pid
[ $? = 5 ] || fail "SIGTERM is not forwarded"
[ -e "$(cat out)" ] && fail "the run's directory is left over"

# Domains that come and go.
run 0 --workload none -- sh -c "$xensim domain add 9 mail; $xensim domain shutdown 9 watchdog; $xensim domain crash 1
    $xensim domain remove 2; $xensim domain crash 1; echo \$?; $xensim domain add 0 x; $xensim domain remove 4; echo \$?
    $xensim domain shutdown 0 never; echo \$?; $xensim domain list"
tr -d '\n' <out >line
grep -q '^112\[{"domid":0,"name":"Domain-0","vcpus":4,"state":"running"},{"domid":1,"name":"web","vcpus":2,"state":"crash"},{"domid":9,"name":"mail","vcpus":1,"state":"watchdog"}\]$' line ||
    fail "domains: $(cat out err)"
grep -q '^xensim: domain crash 1: it has shut down already$' err || fail "domains: $(cat err)"

# Single records of any event, and a burst; a mask of Xen's applies.
run 0 --cpus 2 --workload none --preset-pages 4 --preset-mask 0x0002f000 -- sh -c "
    $xensim event 1 0x00021211 0x10000; $xensim event --times 100 1 0x00028004 1 2 3
    $xensim event 1 0x0010f001; $xensim event --no-tsc 1 0x00021001; $xensim event 2 0x00021001; echo \$?
    $xensim event 1 0x00021001 1 2 3 4 5 6 7 8; echo \$?; $xensim stat"
[ "$(head -n 6 out | tr '\n' ' ')" = "1 100 0 1 2 2 " ] || fail "event: $(cat out err)"
grep -q '"cpu":1,.*"prod":2420,.*"attempted":102,"inserted":102,' out || fail "event: $(cat out)"

# Boot with tbuf_size=: the buffers fill with the oldest records, then lose.
run 0 --cpus 2 --preset-pages 2 --preset-mask 0x0002f000 --rate 10M --report report.json -- \
    sh -c "sleep 0.3; $xensim pause; $xensim stat; $xensim poke offline 0; $xensim fault no-xen on"
grep -q '"enabled":true,"event_mask":"0x0002f000","cpu_mask":"0x3","pages":2' out || fail "stat: $(cat out)"
grep -q '"cpu":1,.*"inserted":[1-9].*"pending":[1-9]' report.json || fail "report: $(cat report.json)"

xentrace=/usr/lib/xen-4.17/bin/xentrace
if ! [ -x $xentrace ]; then
    echo "no $xentrace: captures by it are skipped" >&2
    exit 0
fi

run 0 --cpus 4 --rate 5M --report report.json -- $xentrace -e 0x0ffff000 -T 1 numbered
"$xensim" verify --from-start --cpus 0-3 --report report.json numbered >out 2>&1 || fail "verify: $(cat out)"
grep -q '"lost":0}' out || fail "losses: $(cat out)"

# A mask in Xen leaves no gaps; a CPU mask leaves whole CPUs.
run 0 --cpus 4 --rate 5M -- $xentrace -e 0x0002f000 -c 1-2 -T 1 numbered
"$xensim" verify --from-start --cpus 1-2 numbered >out 2>&1 || fail "verify: $(cat out)"
"$xensim" verify --kinds 0x0002f000 numbered >out 2>&1 || fail "verify: $(cat out)"

# A stopped consumer loses, and every loss is told.
run 0 --cpus 4 --rate 5M --report report.json -- bash -c "
    $xentrace -S 1 -e 0x0ffff000 numbered & p=\$!
    sleep 0.3; kill -STOP \$p; sleep 0.3; kill -CONT \$p; sleep 0.3; $xensim pause; kill -INT \$p; wait \$p"
"$xensim" verify --from-start --cpus 0-3 --report report.json numbered >out 2>&1 || fail "verify: $(cat out)"
grep -q '"lost":0}' out && fail "no losses: $(cat out)"

# A vCPU waits 60 ms for a processor, among numbered records.
run 0 --cpus 2 --workload none -- bash -c "
    $xentrace -e 0x0ffff000 waits & p=\$!
    sleep 0.5; $xensim insert 0 100 >/dev/null
    $xensim event --ago 60000 1 0x00021211 0x10000; $xensim event 0 0x00021101 0x10000
    $xensim stat >stat; sleep 0.5; kill -INT \$p; wait \$p"
"$xensim" verify --warn-rounds --ignore 0x00021211,0x00021101 waits >out 2>&1 || fail "verify: $(cat out)"
"$xensim" verify --warn-rounds waits >out 2>&1 && fail "verify: $(cat out)"
tsc_of() { "$xensim" records -v waits | while read -r _ header low high _; do
    [ "$header" = "$1" ] && echo $((16#$high << 32 | 16#$low))
done; }
khz=$(grep -o '"cpu_khz":[0-9]*' stat | cut -d: -f2)
usec=$((($(tsc_of 90021101) - $(tsc_of 90021211)) * 1000 / khz))
[[ $usec -ge 60000 && $usec -lt 1060000 ]] || fail "a wait of $usec us"

# What `stat` says while the producer stands is a report, too.
run 0 --cpus 2 --rate 5M -- bash -c "
    $xentrace -e 0x0ffff000 numbered & p=\$!
    sleep 0.5; $xensim pause; sleep 0.3; $xensim stat >stat; kill -INT \$p; wait \$p"
"$xensim" verify --from-start --report stat numbered >out 2>&1 || fail "verify: $(cat out)"
"$xensim" rules numbered >out 2>&1 || fail "rules: $(cat out)"
sed 's/"next_number":/&1/' stat >stat.more
"$xensim" verify --report stat.more numbered >out 2>&1 && fail "verify: $(cat out)"

# Two runs of a replay insert the same.
for i in 1 2; do
    run 0 --cpus 4 --replay "$here/../samples/hotplug-4cpu.xentrace.zst" --tsc-exact --loops 1 --rate 4M -- bash -c "
        $xentrace -S 64 -e 0x0ffff000 replay$i & p=\$!; $xensim wait; kill -INT \$p; wait \$p"
    "$xensim" records replay$i >records$i || fail "records"
done
cmp records1 records2 || fail "two replays differ"
"$xensim" rules "$here"/../samples/*.zst >out 2>&1 || fail "rules: $(cat out)"
"$xensim" records "$here/../samples/hotplug-4cpu.xentrace.zst" | cmp - records1 || fail "the replay is not the file"

# What makes Xen switch tracing off.
run 0 --cpus 2 --rate 1M -- bash -c "
    $xentrace -e 0x0ffff000 bogus & p=\$!; sleep 0.3; kill -STOP \$p # it would assert
    $xensim poke bogus-cons 1; sleep 0.2; $xensim stat; kill -KILL \$p"
grep -q '"enabled":false.*"bogus_cpu":1' out || fail "stat: $(cat out)"
exit 0

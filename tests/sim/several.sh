#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Several sessions at once: each has exactly its records, whatever the others do; Xen's masks are
# what all of them want together; and one whose output is slow costs only itself.

. "$(dirname "$0")/lib.sh"

mib=$((1024 * 1024))
seconds=${RUN_SECONDS:-5}
seed=${SEED:-$RANDOM}
stop() { check "stop $1" ctl stop "$1"; }
mask_is() { same "$(xen_state)" "\"enabled\":$1,\"event_mask\":\"$2\",\"cpu_mask\":\"$3\""; }
lost_in() { ctl --json info "$1" >"$dir/info" && number "$dir/info" files 0 lost; }

recorder_lost_nothing() { # recorder_lost_nothing NAME
    settle_recorder
    check "$1: the recorder lost nothing" same "$(number "$dir/recorder" ledger lost)" 0
    check "$1: the recorder dropped nothing" same "$(number "$dir/recorder" ledger dropped)" 0
    check "$1: the recorder's ledger balances" balances "$dir/recorder"
    check "$1: the recorder has everything" ctl snapshot recorder
    check "$1: whole" whole "$dir/state/recorder.xentrace"
    cp "$dir/recorder" "$dir/document"
}

# --- Different selections. ---

selections=(everything "" "" sched "-e sched" "--kinds 0x0002f000"
    few "-e sched-min,hw-irq -c 0-3" "--cpus 0-3 --kinds 0x00021000,0x00802000"
    cpus "-c 2,5" "--cpus 2,5")

different() {
    local i
    recorder_start memory=64M || exit 1
    for ((i = 0; i < ${#selections[@]}; i += 3)); do
        # shellcheck disable=SC2086 # several options
        check "start ${selections[i]}" ctl start ${selections[i + 1]} "${selections[i]}"
    done
    sleep 4
    check "several run: stop wants a name" refuses "Several captures are running: .*stop NAME" ctl stop
    stop few
    stop everything
    sleep 1
    stop cpus
    check "one is left beside the recorder: stop needs no name" ctl stop
    recorder_lost_nothing different
}
check_different() {
    local i name
    for ((i = 0; i < ${#selections[@]}; i += 3)); do
        name=${selections[i]}
        # shellcheck disable=SC2086 # several options
        check "$name: exactly its records" \
            "$xensim" verify ${selections[i + 2]} "$dir/state/$name.xentrace"
        check "$name: one that every reader reads" "$xensim" rules "$dir/state/$name.xentrace"
        check "$name: the ledger balances" balances "$dir/state/$name.json"
        check "$name: nothing was lost" same "$(number "$dir/state/$name.json" ledger lost)" 0
        check "$name: nothing was dropped" same "$(number "$dir/state/$name.json" ledger dropped)" 0
    done
    check "the recorder's ledger is the producer's" produced_as_reported "$dir/document" "$dir/report"
}

masks() {
    local before
    before=$(xen_state)
    recorder_start events=sched-min cpus=0-3 || exit 1
    check "masks: the recorder's" mask_is true 0x00021000 0xf
    ctl start -e hw-irq -c 2-5 irq >/dev/null
    check "masks: and another's" mask_is true 0x00823000 0x3f
    ctl start -e sched -c 7 -x kept >/dev/null
    check "masks: and a third's" mask_is true 0x0082f000 0xbf
    ctl stop irq >/dev/null
    check "masks: shrink" mask_is true 0x0002f000 0x8f
    ctl stop kept >/dev/null
    check "masks: shrink, -x or not, while somebody is left" mask_is true 0x00021000 0xf
    ctl start -X -e hw disabled >/dev/null
    check "masks: -X beside others" mask_is true 0x0082f000 0xff
    ctl stop disabled >/dev/null
    ctl start -x -e sched -c 1 last >/dev/null
    check "masks: the recorder ends, on request" ctl stop --recorder
    check "masks: another goes on" mask_is true 0x0002f000 0x2
    ctl stop last >/dev/null
    check "masks: -x, the last one" mask_is true 0x0002f000 0x2
    check "masks: everything in the files" "$xensim" verify --cpus 1 --kinds 0x0002f000 "$dir/state/last.xentrace"
    ctl record --quiet -T 0.2 end >/dev/null
    check "masks: in the end as it was" same "$(xen_state)" "$before"
}

# -X alone leaves tracing off, until another wants it; it then gets what comes.
disabled() {
    daemon_start || exit 1
    ctl start -X -e sched waits >/dev/null
    check "-X alone: off" grep -q '"enabled":false' <(xen_state)
    sleep 0.3
    ctl start enables >/dev/null
    check "-X, another enables" grep -q '"enabled":true' <(xen_state)
    sleep 0.5
    ctl stop enables >/dev/null
    sleep 0.3
    ctl stop waits >/dev/null
    check "-X: gets what the other's tracing brought" \
        "$xensim" verify --kinds 0x0002f000 "$dir/state/waits.xentrace"
    check "-X: the other's is complete" "$xensim" verify "$dir/state/enables.xentrace"
    check "in the end: off" grep -q '"enabled":false' <(xen_state)
}

# -D drops what is in Xen's buffers only where that is nobody else's.
discard() {
    recorder_start memory=32M || exit 1
    local i
    for i in 1 2 3 4 5; do
        ctl start -D "d$i" >/dev/null
        sleep 0.3
    done
    for i in 1 2 3 4 5; do ctl stop "d$i" >/dev/null; done
    for i in 1 2 3 4 5; do
        check "-D beside others: $i is complete" "$xensim" verify "$dir/state/d$i.xentrace"
    done
    recorder_lost_nothing "-D"
    check "-D: the recorder has it from the first record on" \
        "$xensim" verify --from-start "$dir/state/recorder.xentrace"
}

# --- Random order, as many as there can be. ---

random_order() {
    local i n kinds=(-e\ sched -e\ hvm -c\ 0-1 -M\ 4M "" -e\ sched-min,hw-irq)
    local options=(0x0002f000 0x0008f000) running=() name until=$((SECONDS + seconds))
    RANDOM=$seed
    recorder_start memory=32M || exit 1
    n=0
    : >"$dir/started"
    while [ "$SECONDS" -lt "$until" ]; do
        if [ ${#running[@]} -lt 2 ] || { [ ${#running[@]} -lt 7 ] && [ $((RANDOM % 2)) -eq 0 ]; }; then
            n=$((n + 1))
            i=$((RANDOM % ${#kinds[@]}))
            # shellcheck disable=SC2086 # several options
            ctl start ${kinds[i]} "r$n" >/dev/null && running+=("r$n") && echo "r$n $i" >>"$dir/started"
        else
            i=$((RANDOM % ${#running[@]}))
            name=${running[i]}
            ctl stop "$name" >/dev/null || echo "not ok - stop $name"
            running=("${running[@]:0:i}" "${running[@]:i+1}")
        fi
        sleep "0.0$((RANDOM % 10))"
    done
    check "random order: stop all" ctl stop --all
    check "random order: the recorder goes on" recorder_runs
    echo "# $n sessions were started and stopped"
    recorder_lost_nothing "random order"
}
check_random_order() {
    local name kind options failed=0
    local verify=("--kinds 0x0002f000" "--kinds 0x0008f000" "--cpus 0-1" "" ""
        "--kinds 0x00021000,0x00802000")
    while read -r name kind; do
        options=${verify[kind]}
        [ -s "$dir/state/$name.xentrace" ] || options="" # so short that nothing came
        # shellcheck disable=SC2086 # several options
        if [ -s "$dir/state/$name.xentrace" ]; then
            "$xensim" verify $options "$dir/state/$name.xentrace" && "$xensim" rules "$dir/state/$name.xentrace"
        fi >"$dir/verified" 2>&1 && balances "$dir/state/$name.json" >>"$dir/verified" 2>&1 &&
            same "$(number "$dir/state/$name.json" ledger lost)" 0 >>"$dir/verified" &&
            same "$(number "$dir/state/$name.json" ledger dropped)" 0 >>"$dir/verified" || {
            echo "# $name ($options):"
            sed 's/^/#   /' "$dir/verified"
            failed=1
        }
    done <"$dir/started"
    check "random order: each has exactly its records" same "$failed" 0
    check "random order: there were some" above "$(wc -l <"$dir/started")" 5
    check "random order: the ledger is the producer's" \
        produced_as_reported "$dir/document" "$dir/report"
}

most() {
    local i started=0
    recorder_start memory=8M || exit 1
    for i in $(seq 20); do
        ctl start "m$i" >/dev/null 2>"$dir/refused" || break
        started=$i
    done
    check "at least 8 at once, the recorder included" above "$((started + 1))" 7
    check "one more is told how many there can be" grep -Eq \
        "$((started + 1)) sessions are running or waiting for their disk, which is the limit.*stop NAME" "$dir/refused"
    check "and leaves no file" test ! -e "$dir/state/m$((started + 1)).xentrace"
    sleep 1
    ctl stop m3 >/dev/null
    check "when one has ended there is room" ctl start another
    check "they end" ctl stop --all
    for i in $(seq "$started"); do
        "$xensim" verify "$dir/state/m$i.xentrace" >/dev/null 2>&1 && balances "$dir/state/m$i.json" ||
            echo "not ok - m$i is complete"
    done
    recorder_lost_nothing most
    echo "# $started captures and the recorder"
}

# --- One that is slow. ---

drops() { [ "$(dropped_of "$1")" -gt 0 ]; }
dropped_of() { ctl --json status "$1" >"$dir/of" && number "$dir/of" ledger dropped; }

# Two slow ones; others that were there before, came between them, and come when both have what they
# can get of the pool.
slow() {
    local reader dropped name readers=()
    configure '[daemon]' pool=32M pool-max=32M
    recorder_start memory=32M || exit 1
    for name in slow-1 slow-2; do
        mkfifo "$dir/$name.fifo"
        read_fifo "$dir/$name.fifo" "$dir/$name.xentrace" 0
        readers+=("$reader")
        check "$name: start" ctl start -o "$dir/$name.fifo" "$name"
        check "$name: it drops" wait_until 20 drops "$name"
        ctl start "beside-$name" >/dev/null
    done
    sleep 1
    ctl start later >/dev/null
    sleep 1
    dropped=$(dropped_of slow-1)
    check "slow: status tells it, to people too" \
        grep -Eq "Lost: 0 by Xen, [1-9][0-9,]* by xentraced" <(ctl status slow-1)
    touch "$dir/go"
    sleep 1
    check "slow: the others end" ctl stop later
    "$xensim" pause
    sleep 0.5
    for name in slow-1 slow-2; do
        check "$name: it ends well" ctl stop "$name"
        ctl --json status "$name" >"$dir/$name.json"
        echo "# $name dropped $(number "$dir/$name.json" ledger dropped) of $(number "$dir/$name.json" ledger produced)"
    done
    wait "${readers[@]}"
    ctl stop --all >/dev/null
    check "slow: what it dropped only grew" above "$(number "$dir/slow-1.json" ledger dropped)" \
        $((dropped - 1))
    recorder_lost_nothing slow
}
check_slow() {
    local name
    for name in slow-1 slow-2; do
        check "$name: the file has exactly the gaps that it tells" "$xensim" verify "$dir/$name.xentrace"
        check "$name: one that every reader reads" "$xensim" rules "$dir/$name.xentrace"
        check "$name: file and ledger tell the same number" same "$(lost_in "$dir/$name.xentrace")" \
            $(($(number "$dir/$name.json" ledger dropped) + $(number "$dir/$name.json" ledger lost)))
        check "$name: Xen lost nothing" same "$(number "$dir/$name.json" ledger lost)" 0
        check "$name: its ledger balances" balances "$dir/$name.json"
    done
    for name in beside-slow-1 beside-slow-2 later; do
        check "$name: complete" whole "$dir/state/$name.xentrace"
        check "$name: dropped nothing" same "$(number "$dir/state/$name.json" ledger dropped)" 0
        check "$name: balances" balances "$dir/state/$name.json"
    done
    check "beside slow ones: the ledger is the producer's" \
        produced_as_reported "$dir/document" "$dir/report"
}

# --- Losses of Xen's. ---

# Lost by Xen, told to all who recorded then; one that ends before Xen has told gets its part.
losses() {
    recorder_start memory=32M || exit 1
    ctl start stays >/dev/null
    ctl start goes >/dev/null
    wait_until 20 test -s "$dir/state/goes.xentrace"
    lose_until_the_end 1 goes
    check "losses: Xen tells the rest" wait_until 60 xen_has_told
    settle_recorder
    check "losses: the other ends" ctl stop stays
    check "losses: the recorder's ledger balances" balances "$dir/recorder"
    cp "$dir/recorder" "$dir/document"
}
check_losses() {
    local name
    for name in stays goes; do
        check "losses: $name: there were some" above "$(number "$dir/state/$name.json" ledger lost)" 0
        check "losses: $name: every gap has its count" whole "$dir/state/$name.xentrace"
        check "losses: $name: file and ledger tell the same" same \
            "$(lost_in "$dir/state/$name.xentrace")" "$(number "$dir/state/$name.json" ledger lost)"
        check "losses: $name: the ledger balances" balances "$dir/state/$name.json"
        check "losses: $name: as the recorder" same "$(number "$dir/state/$name.json" ledger lost)" \
            "$(number "$dir/document" ledger lost)"
        check "losses: $name: none is unknown" same \
            "$(number "$dir/state/$name.json" ledger loss_unknown_cpus)" ""
    done
    check "losses: the recorder's are the producer's" \
        produced_as_reported "$dir/document" "$dir/report"
}

parts=(different masks disabled discard random_order most slow losses)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    echo "# SEED=$seed"
    export SEED=$seed
    for part in "${parts[@]}"; do
        case $part in
            different | random_order) sim --cpus 8 --rate 20M -- "$part" ;;
            masks) sim --cpus 8 --rate 2M -- masks ;;
            slow) buffer_pages=32 sim --cpus 4 --rate 5M -- slow ;;
            *) sim --cpus 4 --rate 10M -- "$part" ;;
        esac
        case $part in
            different | random_order | slow | losses) "check_$part" ;;
        esac
        sim_clean
    done
}

dispatch "$@"

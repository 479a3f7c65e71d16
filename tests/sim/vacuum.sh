#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The state directory keeps within its limits by itself: finished snapshots and segments of rings go,
# oldest first. Nothing that a user started, that is open, or that is not xentraced's is touched.

. "$(dirname "$0")/lib.sh"

mib=$((1024 * 1024))
state() { echo "$dir/state/$1"; }
is_gone() { [ ! -e "$(state "$1.xentrace")" ] && [ ! -e "$(state "$1.json")" ]; }
is_there() { [ -e "$(state "$1.xentrace")" ] || { ls "$dir/state"; return 1; }; }
listed() { ctl list --files --names; }
snapshot() { ctl snapshot "$@" >/dev/null; }
fields() { ctl list --files | awk -v name="$1" '$1 == name'; } # fields NAME: its line
removable() { ctl list --files --json >"$dir/files" && number "$dir/files" removable_bytes; }
bytes_of() { cat "$(state "$1.xentrace")" "$(state "$1.json")" | wc -c; }
fits() { # fits BYTES
    local bytes
    bytes=$(removable)
    echo "$bytes are removable"
    [ "$bytes" -le "$1" ] || { ctl list --files; return 1; }
}

limits() { # limits KEY=VALUE...: instead of those that a test has
    sed -i '/^\[disk\]/,/^keep-free/d' "$dir/xentraced.conf"
    configure '[disk]' "$@"
}

filled_recorder() { # filled_recorder [KEY=VALUE]...: snapshots of 1 MiB have that much
    recorder_start "$@" && wait_until 60 recorder_has $((mib + mib / 4))
}

# --- By itself. ---

oldest_first() {
    local n
    limits max-use=4M keep-free=none
    filled_recorder memory=8M || exit 1
    check "a user's capture" ctl record --quiet -T 0.3 mine
    echo foreign >"$(state foreign.xentrace)"
    for n in 1 2 3 4 5; do
        snapshot --max-size 1M "shot-$n"
        sleep 0.05
    done
    # Rounds of a busy machine are long, and snapshots of whole rounds then shorter than 1 MiB.
    for n in 1 2 3 4 5 6 7 8; do
        wait_until 2 is_gone shot-1 >/dev/null || snapshot --max-size 1M "more-$n"
    done
    snapshot --max-size 1M shot-6
    check "the oldest snapshot goes" wait_until 10 is_gone shot-1
    check "the rest fits" wait_until 10 fits $((4 * mib))
    check "the newest stays" is_there shot-6
    check "the user's capture stays" is_there mine
    check "another's file stays" is_there foreign
    check "it is logged" grep -Eq \
        'Removed .*/shot-1.xentrace \([0-9.]+[KM]\): the directory had more than 4.* that may be removed\.' "$dir/log"

    exec 9<"$(state shot-6.xentrace)"
    check "one that is open is shown" grep -q ' open$' <<<"$(fields shot-6)"
    for n in 7 8 9 10 11; do snapshot --max-size 1M "shot-$n"; done
    check "others go" wait_until 10 fits $((5 * mib + mib / 2)) # for a minute, it is more
    check "one that is open stays" is_there shot-6
    exec 9<&-
}

of_the_day() { # a trigger's snapshot goes last
    configure '[trigger by-hand]' condition=manual cooldown=0 last=10s
    limits max-use=4M keep-free=none
    filled_recorder memory=4M || exit 1
    check "the trigger" ctl trigger by-hand
    check "its snapshot" wait_until 10 has_triggered
    trigger=$(listed | grep by-hand)
    for n in 1 2 3 4 5; do snapshot "shot-$n"; done
    check "others go before it" wait_until 10 is_gone shot-2
    check "within the limit" wait_until 10 fits $((4 * mib))
    check "the trigger's stays" is_there "$trigger"
    check "it is shown so" grep -q 'trigger by-hand .* last' <<<"$(fields "$trigger")"
    touch -d '25 hours ago' "$(state "$trigger.xentrace")"
    limits max-use=none keep-free=none
    ctl reload
    snapshot later
    check "after a day it goes as any" ctl vacuum --max-use $(($(removable) - 1))
    check "it was the oldest" is_gone "$trigger"
}
has_triggered() { listed | grep '^snapshot-by-hand' >/dev/null; }

of_a_ring() { # segments of a ring go through their session's ledger
    limits max-use=6M keep-free=none
    daemon_start || exit 1
    check "a ring on the disk" ctl start ring --segment-size 1M --keep-files 50
    check "a capture in segments, which its user keeps" ctl start kept --segment-size 1M -e sched
    check "the ring has grown" wait_until 30 is_there ring.00009
    check "its oldest goes" wait_until 30 is_gone ring.00002
    sleep 1
    check "within the limit, but for what is being written" wait_until 10 fits $((8 * mib))
    check "the user's segments stay" is_there kept.00001
    ctl stop ring >/dev/null
    ctl status --json ring >"$dir/document"
    check "the ring's ledger has them" test "$(number "$dir/document" ledger evicted)" -gt 0
    check "and balances" balances "$dir/document"
    ctl stop kept >/dev/null
    check "when both have ended, all fits" wait_until 30 fits $((6 * mib)) # and nothing goes while it is read
    whole_files=("$dir"/state/ring.*.xentrace)
    check "what is left of the ring is whole" "$xensim" verify "${whole_files[@]}"
}

# --- What others can do. ---

free_kib() { df --output=avail "$dir/state" | tail -n 1; }

removed_at_most() { # removed_at_most BYTES FILE: of the traces with their sizes in FILE
    local sum=0 name bytes
    while read -r name bytes; do is_gone "$name" && sum=$((sum + bytes)); done <"$2"
    echo "$sum bytes went"
    [ "$sum" -gt 0 ] && [ "$sum" -le "$1" ]
}

others_fill_the_disk() {
    local n grown=0
    [ "$(id -u)" -eq 0 ] || { skip "others fill the disk" "not root"; return; }
    limits max-use=none keep-free=20M
    configure '[trigger by-hand]' condition=manual cooldown=0 last=10s
    on_small 64 || exit 1
    trap 'umount -l "$dir/state"' EXIT
    filled_recorder memory=4M || exit 1
    ctl trigger by-hand >/dev/null
    check "a trigger's snapshot" wait_until 10 has_triggered
    for n in 1 2 3; do snapshot --max-size 1M "shot-$n"; sleep 0.05; done
    for n in 1 2 3; do echo "shot-$n $(bytes_of "shot-$n")"; done >"$dir/before"
    check "enough is free" grep -q 'Removed 0 traces' <<<"$(ctl vacuum)"

    fallocate -l "$(($(free_kib) - 3 * 1024))K" "$dir/state/others"
    check "others fill the disk: nothing goes" grep -q 'Removed 0 traces' <<<"$(ctl vacuum)"
    # The daemon looks after each. They consist of whole rounds: one may be shorter than shot-1.
    for ((n = 4; n < 20 && grown < $(awk '$1 == "shot-1" { print $2 }' "$dir/before"); n++)); do
        snapshot --max-size 1M "shot-$n"
        grown=$((grown + $(bytes_of "shot-$n")))
    done
    check "new ones make room for themselves" wait_until 10 grep -q 'Removed .*: the disk had less' "$dir/log"
    sleep 1
    check "... and no more than that" removed_at_most "$grown" "$dir/before"
    check "the newest stays" is_there "shot-$((n - 1))"
    check "the trigger's stays" wait_until 1 has_triggered
    check "the log has why" wait_until 10 grep -q 'because files that xentraced may not remove fill it' "$dir/log"
    check "status has why" grep -q 'Warning: Files that xentraced may not remove' <<<"$(ctl status)"
    check "list has why" grep -q 'only as far as they have grown' <<<"$(ctl list --files)"
    rm "$dir/state/others"
    ctl vacuum >/dev/null
    check "enough is free again" same "$(ctl status | grep -c 'Warning: Files that')" 0
    check "the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/state"
    trap - EXIT
}

held_open() { # by a reader of all, that never ends
    local fd fds=() first size
    limits max-use=4M keep-free=none
    filled_recorder memory=8M || exit 1
    wait_until 60 recorder_has $((4 * mib))
    for n in 1 2 3 4 5 6 7 8 9; do
        snapshot --max-size 2M "shot-$n"
        exec {fd}<"$(state "shot-$n.xentrace")"
        fds+=("$fd")
        sleep 0.05
    done
    first=${fds[0]}
    size=$(stat -L -c %s "/proc/$$/fd/$first")
    check "open files are spared" is_there shot-1
    check "... for a minute" wait_until 150 is_gone shot-1
    check "all fits" wait_until 150 fits $((4 * mib))
    check "the newest stays" is_there shot-9
    check "the log has it" grep -q 'A process still has it open' "$dir/log"
    check "its reader reads on" same "$(cat <&"$first" | wc -c)" "$size"
    check "its space is counted" grep -q 'more are removed, but still open' <<<"$(ctl list --files)"
    check "doctor has it" grep -q 'still take' <<<"$(ctl doctor)"
    for fd in "${fds[@]}"; do exec {fd}<&-; done
    check "it is closed" same "$(ctl list --files | grep -c 'more are removed')" 0

    ctl start ring --segment-size 1M --keep-files 5 >/dev/null
    wait_until 20 is_there ring.00001
    exec 9<"$(state ring.00001.xentrace)"
    check "a segment that a ring deletes" wait_until 30 is_gone ring.00001
    check "... is counted, too" grep -q 'more are removed, but still open' <<<"$(ctl list --files)"
    exec 9<&-
    ctl stop ring >/dev/null
}

# --- On request. ---

on_request() {
    limits max-use=none keep-free=none
    filled_recorder memory=8M || exit 1
    for n in 1 2 3 4; do snapshot --max-size 1M "shot-$n"; sleep 0.05; done
    check "without limits nothing goes" ctl vacuum
    check "all are there" test "$(listed | wc -l)" -eq 4
    local limit=$(($(removable) - $(bytes_of shot-1) - 1)) # two have to go
    check "a dry run" shows 'Would remove 2 traces' ctl vacuum --max-use "$limit" -n
    check "removes nothing" test "$(listed | wc -l)" -eq 4
    ctl trigger nothing 2>/dev/null # the audit has come to this line when it has that
    wait_until 10 grep -q 'Audit: Trigger' "$dir/log"
    check "a dry run is not in the audit" same "$(grep -c 'Audit: Vacuum' "$dir/log")" 1
    check "lists are not" same "$(grep -c 'Audit: Files' "$dir/log")" 0
    check "vacuum" shows 'Removed 2 traces' ctl vacuum --max-use "$limit"
    check "the oldest are gone" is_gone shot-2
    check "the newest are there" is_there shot-3
    touch -d '3 days ago' "$(state shot-3.xentrace)"
    check "by age" grep -q 'Removed 1 trace' <<<"$(ctl vacuum --max-age 2d)"
    check "that one" is_gone shot-3
    check "remove" ctl remove "$(state shot-4.xentrace)"
    check "audit: remove" wait_until 10 grep -q "Audit: Remove .*by root, .*: done" "$dir/log"
    check "audit: three times vacuum, and not the dry run" same "$(grep -c "Audit: Vacuum" "$dir/log")" 3
    check "the audit has it" wait_until 10 grep -Eq \
        'Audit: Removed .*/shot-4.xentrace \([0-9.]+[KM]\): asked for by root' "$dir/log"
    check "with its sidecar" is_gone shot-4
    check "remove what is not there" fails_with 'list --files' ctl remove shot-4
    ctl start running >/dev/null
    check "not what is running" fails_with 'xentracectl stop running' ctl remove running
    check "it is there" is_there running
    ctl stop running >/dev/null
    check "when it has ended" ctl remove running
    check "it is gone" is_gone running
    ctl start disk --segment-size 1M >/dev/null
    wait_until 20 test -e "$(state disk.00003.xentrace)"
    ctl stop disk >/dev/null
    check "a capture with its segments" ctl remove disk
    check "nothing of it is left" test -z "$(ls "$dir/state" | grep '^disk')"
}
fails_with() { # fails_with REGEX COMMAND...
    local regex=$1 output
    shift
    output=$("$@" 2>&1) && { echo "it does not fail: $output"; return 1; }
    grep -Eq -- "$regex" <<<"$output" || { echo "$output"; return 1; }
}

# --- What a capture leaves free. ---

reserve() {
    limits keep-free=auto
    daemon_start || exit 1
    ctl start >"$dir/started"
    check "start tells when it ends" grep -Eq 'Ends: when [0-9.]+[MG] are left free' "$dir/started"
    sleep 1.5
    check "status has a forecast" grep -Eq 'Ends: when [0-9.]+[MG] are left free: about ' <<<"$(ctl status)"
    ctl stop >/dev/null
    ctl start --reserve 0 >"$dir/started"
    check "without a reserve" grep -q 'Ends: when the disk is full' "$dir/started"
    ctl stop >/dev/null
}

parts=(oldest_first of_the_day of_a_ring others_fill_the_disk held_open on_request reserve)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    for part in "${parts[@]}"; do
        sim --cpus 2 --rate 5M -- "$part"
        sim_clean
    done
}

dispatch "$@"

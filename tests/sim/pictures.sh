#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# README.md shows what the programs print: the incident that was played on a real Xen for its pictures
# is played again, on the stand-in, and headings, columns and labels are compared.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$script")/../pictures/play.sh"

command -v tmux >/dev/null || { echo "there is no tmux"; exit 77; }

crash_domain() { "$xensim" domain crash 1; } # web

incident() {
    PATH=$build:$PATH
    configure '[trigger crash]' condition=domain-crash
    recorder_start events=sched-min,dom0op-domops || return
    mkdir "$dir/pictures"
    log_command="tail -n 2 $dir/log"
    sleep 5
    play_incident "$dir/state" "$dir/pictures"
}

main() {
    sim --cpus 4 --workload sched --rate 2M -- incident
    "$(dirname "$script")/../pictures/readme" --check "$dir/pictures" >"$dir/compared" 2>&1 || :
    cat "$dir/compared"
    count_checks "$dir/compared"
    check "every picture of README.md was compared" \
        same "$(grep -c -e '^ok - picture' -e '^not ok - picture' "$dir/compared")" 4
    sim_clean
}

dispatch "$@"

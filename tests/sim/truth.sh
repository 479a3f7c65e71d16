#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What `xentracectl report` says about a schedule is what really happened: the stand-in's scheduler
# keeps an account of its own. Of a whole trace every number is the true one, to the tick; of one with
# losses every interval that is counted lies inside a true one.
#
#   SEEDS=N   that many courses of events (20), with 1, 8 and 64 CPUs in turn
#   SEED=N    the first of them

. "$(dirname "$0")/lib.sh"

# Nothing is made before the capture has begun, nor after it is asked to end.
whole_schedule() {
    daemon_start || exit 1
    ctl start -o "$dir/f.xentrace" schedule >/dev/null
    "$xensim" resume
    sleep 1
    check "enough happens" wait_until 60 has_made 5000
    "$xensim" pause
    ctl stop schedule >/dev/null
}

# The daemon does not run for a while, until all CPUs lose records, and several times for so short a
# time that some do. What was lost is reported before the producer pauses.
schedule_with_losses() {
    daemon_start || exit 1
    ctl start -o "$dir/f.xentrace" schedule >/dev/null
    "$xensim" resume
    sleep 0.3
    lose_for 0.2
    kill -CONT "$daemon"
    check "losses are reported" wait_until 60 xen_has_told
    for _ in {1..12}; do
        sleep 0.05
        kill -STOP "$daemon"
        sleep 0.05
        kill -CONT "$daemon"
    done
    sleep 0.3
    check "nothing is lost that is not reported" wait_until 60 pauses_well
    ctl stop schedule >/dev/null
}
pauses_well() {
    "$xensim" pause
    xen_has_told || { "$xensim" resume && sleep 0.1 && return 1; }
}

judge() { python3 "$(dirname "$script")/truth.py" "$@"; }
reports_the_truth() { # reports_the_truth FILE
    ctl --json report "$1" >"$dir/report-of-file" && judge same "$dir/truth" "$dir/report-of-file"
}
reports_the_truth_of_a_pipe() {
    # shellcheck disable=SC2002 # a pipe, not a file
    cat "$dir/f.xentrace" | reports_the_truth -
}
counts_what_is_true() {
    ctl --json report --view intervals "$dir/f.xentrace" >"$dir/intervals" &&
        judge inside "$dir/truth" "$dir/intervals"
}
counts_the_same_of_a_pipe() {
    # shellcheck disable=SC2002 # a pipe, not a file
    cat "$dir/f.xentrace" | ctl --json report --view intervals - | cmp "$dir/intervals"
}

# Its truth is kept in $truths.
run_whole() { # run_whole SEED-CPUS[-again]
    local seed=${1%%-*} cpus truth
    cpus=${1#*-} cpus=${cpus%-again}
    truth=$(mktemp)
    sim --cpus "$cpus" --workload sched --seed "$seed" --truth "$truth" --paused -- whole_schedule
    mv "$truth" "$dir/truth"
    check "seed $seed, $cpus CPUs: the report is the truth" reports_the_truth "$dir/f.xentrace"
    ((seed % 4 != 1)) ||
        check "seed $seed, $cpus CPUs, from a pipe: the report is the truth" \
            reports_the_truth_of_a_pipe
    [[ $1 != *-again ]] ||
        check "seed $seed, $cpus CPUs: the same happens again" \
            judge alike "$truths/$seed-$cpus" "$dir/truth"
    cp "$dir/truth" "$truths/$1"
    sim_clean
}

run_lossy() { # run_lossy SEED-CPUS
    local seed=${1%-*} cpus=${1#*-} truth
    truth=$(mktemp)
    buffer_pages=2
    sim --cpus "$cpus" --workload sched --seed "$seed" --rate $((cpus * 200))K --truth "$truth" \
        --paused -- schedule_with_losses
    mv "$truth" "$dir/truth"
    check "seed $seed, $cpus CPUs, with losses: what is counted is true" counts_what_is_true
    echo "# seed $seed: $(head -n 1 <<<"$checked")"
    check "seed $seed, $cpus CPUs, with losses, from a pipe: the same is counted" \
        counts_the_same_of_a_pipe
    sim_clean
}

main() {
    local seed=${SEED:-$RANDOM} cases=() counts=(1 8 64) i
    for ((i = 0; i < ${SEEDS:-20}; i++)); do
        cases+=("$((seed + i))-${counts[i % 3]}")
    done
    truths=$(mktemp -d)
    for ((i = 0; i < ${#cases[@]}; i += 5)); do
        together run_whole "${cases[@]:i:5}"
    done
    together run_whole "$seed-1-again" "$((seed + 1))-8-again"
    together run_lossy "$seed-1" "$((seed + 1))-8" "$((seed + 2))-64"
    rm -rf "$truths"
}

dispatch "$@"

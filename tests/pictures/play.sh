# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Plays the incident of README.md, and takes the pictures: what a terminal of 80 columns shows.
# tests/real-xen/pictures-job plays it on a real Xen, tests/sim/pictures.sh on the stand-in.
#
#   play_incident STATE-DIR PICTURES     xentraced runs, with the trigger `crash`. Leaves NAME.txt for
#                                        each picture in PICTURES
#
# The caller has sourced tests/check.sh, and let the recorder run for some time. It sets log_command,
# which shows the last lines of the log, and defines crash_domain, which crashes the domain `web`.

columns=80

# picture NAME COMMAND...: each as typed after a prompt. Long lines are cut as less -S does it, which is
# xentracectl's pager.
picture() {
    local name=$1 command
    shift
    for command in "$@"; do
        printf '# %s\n' "$command"
        (cd "$state_dir" && $command 2>&1) # 1, 3 and 4 report the recorder and the host
    done | LC_ALL=C.UTF-8 sed -E "s/^(.{$((columns - 1))}).{2,}/\1>/" >"$pictures/$name.txt"
    check "picture $name" test -s "$pictures/$name.txt"
}

# In a terminal of its own, without the user's configuration.
terminal() { LC_ALL=C.UTF-8 tmux -f /dev/null -L "pictures-$$" "$@"; }
screen() { terminal capture-pane -p | sed 's/ *$//'; }
screen_shows() { grep -E -- "$1" <<<"$(screen)" >/dev/null; }

picture_monitor() { # the second screen is the first with rates
    check "picture monitor: a terminal" \
        terminal new-session -d -x $columns -y 24 xentracectl monitor
    check "picture monitor: it has rates" wait_until 600 screen_shows '^ +0 \[.* [1-9][0-9.]*k?/s'
    screen | cat -s >"$pictures/monitor.txt"
    terminal kill-server
}

snapshot_of_crash() { compgen -G "$state_dir/snapshot-crash-*.json" >/dev/null; }

play_incident() {
    state_dir=$1 pictures=$2
    local snapshot
    check "a domain crashes" crash_domain
    check "the trigger writes a snapshot" wait_until 600 snapshot_of_crash
    snapshot=$(cd "$state_dir" && compgen -G "snapshot-crash-*.xentrace")
    picture incident "$log_command" "xentracectl status" "xentracectl report $snapshot"
    check "a capture beside the recorder" wait_until 600 xentracectl start -e sched-min -c 0-3 nightly
    sleep 5
    picture list "xentracectl list"
    picture doctor "xentracectl doctor"
    picture_monitor
    check "the capture ends" xentracectl stop nightly
}

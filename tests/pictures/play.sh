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

# What COMMAND shows there, without a pager; the exit statuses 1, 3 and 4 report the recorder and the host.
# Long lines wrap between words, as nowhere else: a page is read, and no command in it is copied.
show_on_terminal() {
    (cd "$state_dir" && PAGER=cat NO_COLOR=1 script -qec "stty cols $columns; $1" /dev/null </dev/null) |
        tr -d '\r' | awk -v columns=$columns '{
            match($0, /^ */)
            indent = RLENGTH ? RLENGTH + 2 : 0
            while (length > columns && match(substr($0, indent + 1, columns - indent + 1), /.* /)) {
                line = substr($0, 1, indent + RLENGTH)
                rest = substr($0, indent + RLENGTH + 1)
                sub(/ *$/, "", line)
                print line
                $0 = sprintf("%" indent "s%s", "", rest)
            }
            print
        }'
}

# picture NAME COMMAND...: each as typed after a prompt.
picture() {
    local name=$1 command
    shift
    for command in "$@"; do
        printf '# %s\n' "$command"
        show_on_terminal "$command"
    done >"$pictures/$name.txt"
    check "picture $name" test -s "$pictures/$name.txt"
}

# In a terminal of its own, without the user's configuration.
terminal() { LC_ALL=C.UTF-8 tmux -f /dev/null -L "pictures-$$" "$@"; }
screen() { terminal capture-pane -p | sed 's/ *$//'; }

# Its second screen has rates. In an emulator a call may take too long, which is no picture of a host.
monitor_shows_rates() {
    screen | cat -s >"$pictures/monitor.txt"
    grep -E '^ +0 \[.* [1-9][0-9.]*k?/s' "$pictures/monitor.txt" >/dev/null &&
        ! grep 'did not answer' "$pictures/monitor.txt" >/dev/null
}

picture_monitor() {
    check "picture monitor: a terminal" \
        terminal new-session -d -x $columns -y 24 xentracectl monitor
    check "picture monitor: it has rates" wait_until 600 monitor_shows_rates
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

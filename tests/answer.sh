# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# From a snapshot to who stole the CPU: what tests/demo ends with, and tests/sim/answer.sh checks.
# Needs xentracectl.

# The finding of FILE about VICTIM ("web v0") and the line after it, its command; fails if none names a
# vCPU that matches the regular expression CULPRIT as the one that ran instead.
find_answer() { # find_answer FILE VICTIM CULPRIT
    xentracectl report "$1" |
        grep -E -A 1 "^  $2 waited [0-9.]+m?s for CPU [0-9]+ from [0-9:.]+: $3 ran [0-9.]+m?s of it"
}

# Whether the command that comes with that finding shows the same wait, and who ran.
why_agrees() { # why_agrees COMMAND CULPRIT
    bash -c "$1" | grep -E "^Longest wait \(>\): [0-9.]+m?s from [0-9:.]+ for CPU [0-9]+: $2 ran [0-9.]+m?s"
}

# Shows them, the finding and its command last. Fails if the culprit is not named.
show_answer() { # show_answer FILE VICTIM CULPRIT
    local answer command
    answer=$(find_answer "$@") || { echo "No finding names who ran instead of $2."; return 1; }
    command=$(sed -n '2s/^ *//p' <<<"$answer")
    echo "\$ $command"
    bash -c "$command" | sed -n '1,3p; /^>/p'
    why_agrees "$command" "$3" >/dev/null || { echo "why does not name who ran instead of $2."; return 1; }
    echo
    echo "# The answer:"
    echo "$answer"
}

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The structure that docs/ARCHITECTURE.md describes: dependencies point one way, and each foreign
# library has one file that knows it.

set -uo pipefail
cd "${srcdir:-$(dirname "$0")/..}" || exit 1

# The rooms of daemon/, each of which knows only those before it. `manager` and `main` are the files
# above the folders, as `watchdog` is.
rooms=(base config host output session triggers document watchdog manager control main)

. tests/check.sh

report() { # report NAME OFFENDING-LINES
    if [ -z "$2" ]; then
        pass "$1"
    else
        fail "$1" "$2"
    fi
}

# includes FOLDER REGEX: lines of the folder's sources that include what they must not.
includes() { grep -rnE "^ *# *include +[<\"]($2)" --include='*.[ch]' "$1"; }
# only FILE FOLDERS REGEX: lines that include it outside of FILE.
only() {
    local file=$1 regex=$2
    grep -rnE "^ *# *include +[<\"]($regex)" --include='*.[ch]' common collector daemon trace ctl |
        grep -vE "^$file:"
}

report "common/ knows nobody" "$(includes common 'collector/|daemon/|ctl/|trace/')"
report "collector/ knows common/ only" "$(includes collector 'daemon/|ctl/|trace/')"
report "daemon/ does not know ctl/" "$(includes daemon 'ctl/|trace/')"
report "trace/ knows common/ only" "$(includes trace 'collector/|daemon/|ctl/')"
report "ctl/ knows common/ and trace/ only" "$(includes ctl 'collector/|daemon/')"
report "Xen's libraries are known to collector/xen.c alone" \
    "$(only collector/xen.c 'xenctrl|xencall|xenevtchn|xenforeignmemory|xen/(sysctl|xen|version|domctl)')"
report "libxenstore is known to daemon/host/xenstore.c alone" \
    "$(only daemon/host/xenstore.c 'xenstore')"
report "liburing is known to collector/uring.c alone" "$(only collector/uring.c 'liburing')"
report "in the daemon, sd-bus is known to control.c, its parts and systemd.c alone" \
    "$(only 'daemon/(control/(control|calls|request)|host/systemd).c' 'systemd/sd-bus' | grep -v '^ctl/client')"
report "common/ and collector/ do not log" \
    "$(grep -nE '\b(printf|fprintf|perror|syslog|sd_journal_[a-z]+|log_[a-z]+) *\(' \
        common/*.c collector/*.c | grep -v snprintf)"

# --- The rooms of daemon/. ---

room_of() { # room_of FILE: of daemon/
    local path=${1#daemon/}
    case $path in
    */*) echo "${path%%/*}" ;;
    manager*) echo manager ;;
    *) echo "${path%.[ch]}" ;;
    esac
}
unlisted_rooms() {
    local path room
    for path in daemon/*/*.[ch] daemon/*.[ch]; do
        room=$(room_of "$path")
        [[ " ${rooms[*]} " == *" $room "* ]] || echo "$path is in no room that this script lists"
    done
}
report "every folder of daemon/ is a room in the list" "$(unlisted_rooms)"

# includes_of FOLDER...: a line `FILE INCLUDED` for each of the project's headers that a file includes.
# A name without a folder is in the file's own.
includes_of() {
    grep -rHE '^ *# *include +"' --include='*.[ch]' "$@" | sed -E 's/^([^:]*):.*"([^"]*)".*/\1 \2/' |
        awk '$2 !~ "/" { folder = $1; sub("[^/]*$", "", folder); $2 = folder $2 } { print }'
}
wrong_arrows() {
    local file included from to i
    local -A at
    for i in "${!rooms[@]}"; do at[${rooms[i]}]=$i; done
    while read -r file included; do
        [[ $included == daemon/* ]] || continue
        from=$(room_of "$file") to=$(room_of "$included")
        [ "${at[$to]:-99}" -le "${at[$from]:-99}" ] || echo "$file includes $included"
    done < <(includes_of daemon)
}
report "the rooms of daemon/ know those before them only" "$(wrong_arrows)"

# --- Circles. ---

# A module is NAME.c, NAME.h, and NAME-state.h or NAME-internal.h, which only its own files include.
circles() {
    includes_of common collector daemon trace ctl tests/xensim |
        sed -E 's/\.[ch]\>//g; s/-(state|internal)\>//g' | awk '$1 != $2' | sort -u |
        LC_ALL=C tsort 2>&1 >/dev/null |
        awk '/input contains a loop/ { if (loop) print loop; loop = ""; next }
            { loop = loop (loop ? ", " : "") $2 }
            END { if (loop) print loop }'
}
report "no circle of includes" "$(circles)"

# --- Distribution. ---

undistributed() {
    local path
    # What is not a repository is what was distributed.
    git ls-files tests 2>/dev/null | grep -v '/local\.mk$' | while read -r path; do
        grep -qE "(^|[[:space:]])$path([[:space:]]|\$)" Makefile.am tests/*/local.mk || echo "$path"
    done
}
report "every file of tests/ is distributed" "$(undistributed)"
finish

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The structure that docs/ARCHITECTURE.md describes: dependencies point one way, and each foreign
# library has one file that knows it.

set -uo pipefail
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
failed=0

report() { # report NAME OFFENDING-LINES
    if [ -z "$2" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/#   /' <<<"$2"
        failed=1
    fi
}

# includes FOLDER REGEX: lines of the folder's sources that include what they must not.
includes() { grep -rnE "^ *# *include +[<\"]($2)" --include='*.[ch]' "$1"; }
# only FILE FOLDERS REGEX: lines that include it outside of FILE.
only() {
    local file=$1 regex=$2
    grep -rnE "^ *# *include +[<\"]($regex)" --include='*.[ch]' common collector daemon ctl |
        grep -vE "^$file:"
}

report "common/ knows nobody" "$(includes common 'collector/|daemon/|ctl/')"
report "collector/ knows common/ only" "$(includes collector 'daemon/|ctl/')"
report "daemon/ does not know ctl/" "$(includes daemon 'ctl/')"
report "ctl/ knows common/ only" "$(includes ctl 'collector/|daemon/')"
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
exit "$failed"

# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For the jobs: a script in dom0, and then a look at what it brought back.
#
#   job NAME PAYLOAD [ARGUMENT]...   boots, and runs NAME.dom0.sh; its results are in $out
#                                    job_options: of tests/real-xen/run
#   tell_about WHAT          prints what the last check's command printed
#   records ...              records.py
#   xenalyze_reads FILE SIDECAR [OPTION]...
#   job_end                  the script's last line: fails if anything did
#
# Checks are those of tests/check.sh.

set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/../check.sh"
out=$(mktemp -d "${TMPDIR:-/tmp}/xentraced-real-xen.XXXXXX")

job_options=(--cpus 8)

tell_about() { echo "# $1: $checked"; }

job() {
    "$here/run" "${job_options[@]}" --payload "$2" --out "$out" "$here/$1.dom0.sh" "${@:3}" ||
        fail "$1.dom0.sh (status $?)"
}

records() { python3 "$here/records.py" "$@"; }

# Complaints about order or framing end in an exit status.
xenalyze_reads() { # xenalyze_reads FILE SIDECAR [OPTION]...
    local hz
    hz=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["host"]["tsc_khz"] * 1000)' \
        "$2") && xenalyze --cpu-hz "$hz" "${@:3}" --summary "$1" >/dev/null
}

job_end() {
    if finish; then
        rm -rf "$out"
        exit 0
    fi
    echo "# results and logs: $out"
    exit 1
}

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The structure that docs/ARCHITECTURE.md describes: dependencies point one way, and each foreign
# library has one file that knows it. Also, what the documents name is there.

set -uo pipefail
. "$(dirname "$0")/check.sh"
cd "${srcdir:-$(dirname "$0")/..}" || exit 1

# The rooms of daemon/, each of which knows only those before it. `manager` and `main` are the files
# above the folders, as `watchdog` is.
rooms=(base config host output session triggers document watchdog manager control main)

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
    grep -rnE "^ *# *include +[<\"]($regex)" --include='*.[ch]' common collector daemon trace export kernelshark ctl |
        grep -vE "^$file:"
}

report "common/ knows nobody" "$(includes common 'collector/|daemon/|ctl/|trace/|export/')"
report "collector/ knows common/ only" "$(includes collector 'daemon/|ctl/|trace/|export/')"
report "daemon/ does not know ctl/" "$(includes daemon 'ctl/|trace/|export/')"
report "trace/ knows common/ only" "$(includes trace 'collector/|daemon/|ctl/|export/')"
report "export/ knows common/ and trace/xentrace.h only" \
    "$(includes export 'collector/|daemon/|ctl/|trace/' | grep -v '"trace/xentrace\.h"')"
report "kernelshark/ knows common/ and trace/xentrace.h only" \
    "$(includes kernelshark 'collector/|daemon/|ctl/|export/|trace/' | grep -v '"trace/xentrace\.h"')"
report "ctl/ knows common/, trace/ and export/ only" "$(includes ctl 'collector/|daemon/')"
report "Xen's libraries are known to collector/xen.c alone" \
    "$(only collector/xen.c 'xenctrl|xencall|xenevtchn|xenforeignmemory|xen/(sysctl|xen|version|domctl)')"
report "libxenstore is known to daemon/host/xenstore.c alone" \
    "$(only daemon/host/xenstore.c 'xenstore')"
report "liburing is known to collector/uring.c alone" "$(only collector/uring.c 'liburing')"
report "KernelShark's library is known to its plug-in alone" \
    "$(only kernelshark/plugin-xentrace.c 'kernelshark/libkshark')"
report "sd-bus is known to daemon/host/systemd.c alone" \
    "$(only daemon/host/systemd.c systemd/sd-bus)"
report "json-c's parser is known to common/json-text.c alone" \
    "$(grep -rnE 'json_tokener|json_object_from_' --include='*.[ch]' common collector daemon trace export kernelshark \
        ctl | grep -v '^common/json-text.c:')"
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
    includes_of common collector daemon trace export kernelshark ctl tests/xensim |
        sed -E 's/\.[ch]\>//g; s/-(state|internal)\>//g' | awk '$1 != $2' | sort -u |
        LC_ALL=C tsort 2>&1 >/dev/null |
        awk '/input contains a loop/ { if (loop) print loop; loop = ""; next }
            { loop = loop (loop ? ", " : "") $2 }
            END { if (loop) print loop }'
}
report "no circle of includes" "$(circles)"

# --- Scripts. ---

# grep -q closes the pipe at the first match; under pipefail the writer's SIGPIPE is then a failure.
report "no pipe ends in grep -q" \
    "$(grep -rnE '(^|[^|])\|&? *grep +-[a-zA-Z]*q' --exclude=structure.sh tests/)"

# --- Documents. ---

# Every file, folder and function that a document names is there: `folder/name.c`, `name.c`, `name()`.
# NAME and MODULE stand for any name. A program is built from a source of its name.
missing_names() {
    local sources=(common collector daemon trace export kernelshark ctl tests)
    {
        find . -path ./.git -prune -o -type f -print | sed 's,^\./,,'
        echo "== functions"
        grep -rhoE --include='*.[ch]' --include='*.sh' '\b[a-z_0-9]+\(' "${sources[@]}" | sort -u
        echo "== documents"
        awk '/^ *```/ { code = !code } !code { n = split($0, part, "`")
            for (i = 2; i < n; i += 2) { m = split(part[i], word, " ")
                for (j = 1; j <= m; j++) print FILENAME ":" FNR, word[j] } }' \
            ./*.md docs/*.md docs/*/*.md tests/*.md tests/*/*.md
    } | awk '
        $1 == "==" { kind = $2; next }
        !kind { # a file, each folder it is in, and their names without those before
            n = split($0, part, "/")
            for (from = 1; from <= n; from++) {
                text = ""
                for (to = from; to <= n; to++) {
                    text = text (to > from ? "/" : "") part[to]
                    known[text]
                }
            }
            if (n > 1) top[part[1]]
            next
        }
        kind == "functions" { known[$1 ")"]; next }
        {
            name = $2
            sub(/[:,;.]+$/, "", name)
            sub(/\/$/, "", name)
            split(name, part, "/")
            if (name !~ /^[a-z_0-9]+\(\)$/ && name !~ /^[A-Za-z0-9_*-][A-Za-z0-9_.*-]*\.(c|h|sh|py|md|mk|yml)$/ &&
                    !(name ~ "/" && part[1] in top && name ~ /^[A-Za-z0-9_.*\/-]+$/))
                next
            if (name in known || name ".c" in known) next
            if (name ~ /NAME|MODULE|\*/) {
                gsub(/\./, "\\.", name)
                gsub(/NAME|MODULE|\*/, "[a-z0-9-]*", name)
                for (text in known) if (text ~ "^" name "$") next
            }
            print $1 ": " $2
        }'
}
report "every file and function that a document names is there" "$(missing_names)"

# Methods, parameters and errors of the control socket: one list in the interface, one in the code, one in
# the document.
interface=common/org.xentraced.Control.varlink
interface_names() {
    {
        sed -nE 's/^(method|error) ([A-Za-z]+).*/\2/p' $interface
        grep -v '^#' $interface | grep -oE '[a-z_]+:' | tr -d :
    } | sort -u
}
code_names() {
    sed -nE 's/^ *#define (PROTOCOL|REPLY|FIELD|ERROR)_[A-Z_]+ +(ERROR_PREFIX )?"([A-Za-z_]+)".*/\3/p' \
        common/protocol.h | sort -u
}
undocumented() {
    local name
    diff <(interface_names) <(code_names) | sed -n "s/^</common\\/protocol.h lacks/p; s/^>/the interface lacks/p"
    interface_names | while read -r name; do
        grep -q "\`$name\`" docs/control-protocol.md || echo "docs/control-protocol.md lacks $name"
    done
    sed -nE 's/^method ([A-Za-z]+).*/\1/p' $interface | sed -E 's/[A-Z]/_&/g; s/^_//' | tr a-z A-Z |
        while read -r name; do
            grep -qE "^    \{PROTOCOL_$name, REPLY_" daemon/control/control.c ||
                echo "the table of daemon/control/control.c lacks PROTOCOL_$name"
        done
}
report "every name of the control protocol is in interface, code and document" "$(undocumented)"

# Formats of documents that xentracectl prints; the others are the daemon's own.
undocumented_formats() {
    grep -rhoE '"xentraced-[a-z]+"' --include='*.[ch]' ctl common daemon | tr -d '"' | sort -u |
        grep -vxE 'xentraced-(persist|started|stopped)' | while read -r name; do
        grep -q "\`$name\`" docs/control-protocol.md || echo "docs/control-protocol.md lacks $name"
    done
}
report "every format of a document is documented" "$(undocumented_formats)"

# Tables and code have the width of their content.
long_lines() {
    LC_ALL=C.UTF-8 awk 'FNR == 1 { code = 0 } /^ *```/ { code = !code }
        !code && !/^\|/ && length > 120 { print FILENAME ":" FNR ": " length " columns" }' \
        ./*.md docs/*.md docs/*/*.md tests/*.md tests/*/*.md
}
report "no line of a document is longer than 120 columns" "$(long_lines)"

# --- Distribution. ---

undistributed() {
    local path
    # What is not a repository is what was distributed.
    git ls-files tests docs/models 2>/dev/null | grep -v '/local\.mk$' | while read -r path; do
        grep -qE "(^|[[:space:]])$path([[:space:]]|\$)" Makefile.am tests/*/local.mk || echo "$path"
    done
}
report "every file of tests/ and docs/models/ is distributed" "$(undistributed)"

# --- The public tests. ---

workflow=.github/workflows/tests.yml
missing_steps() {
    local step
    for step in $(sed -n 's/.*|| steps=(\(.*\))$/\1/p' tests/all); do
        grep -qE "(tests/all|steps:).*\b$step\b" $workflow || echo "$workflow does not run the step $step"
    done
}
if [ -e $workflow ]; then
    report "the public tests run every step of tests/all" "$(missing_steps)"
fi

# Each promise names its tests: of SECURITY.md in square brackets, of RELIABILITY.md in the last column.
missing_tests() {
    local name
    {
        tr '\n' ' ' <SECURITY.md | grep -oE '\[`[^]]*`\]'
        sed -nE 's/^\| .*\| (`.*`) \|$/\1/p' docs/RELIABILITY.md
    } | grep -oE '`[^`]+`' | tr -d '`' | sort -u |
        while read -r name; do
            [ -e "$name" ] || [ -e "tests/sim/$name" ] || [ -e "tests/unit/$name.c" ] || [ -e "$name.c" ] ||
                echo "no test is called $name"
        done
}
report "every test that SECURITY.md and docs/RELIABILITY.md name is there" "$(missing_tests)"
# A promise without a test.
report "each line of docs/RELIABILITY.md has a test" \
    "$(grep '^|' docs/RELIABILITY.md | grep -vE '^\|---|^\| fault|`[^`]+` \|$')"

finish

# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What tests/real-xen/image and tests/real-xen/run share on the host.

say() {
    printf 'real-xen: %s\n' "$*" >&2
}

# 125, as env(1) and timeout(1) do: the tool failed, not what it was to run.
harness_fail() {
    say "harness failure: $*"
    exit 125
}

cache_folder() {
    echo "${XENTRACED_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/xentraced}/real-xen"
}

# shellcheck source=tests/lib.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../lib.sh" # install_missing

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

# Installs the packages whose command is not there yet.
install_packages() { # PACKAGE:COMMAND...
    local item missing=()
    for item in "$@"; do
        command -v "${item#*:}" >/dev/null || missing+=("${item%%:*}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" -eq 0 ] || harness_fail "these packages are missing, and only root can install them: ${missing[*]}"
    say "installing ${missing[*]}"
    apt-get -qq update >&2
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${missing[@]}" >&2
}

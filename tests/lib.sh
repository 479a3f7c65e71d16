# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What tests/all and tests/demo share: installing what is missing, and building.

root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/..")

# Debian's python3, to which packages belong. One of a version manager may take a second to start.
PATH=/usr/bin:$PATH

# Builds start a shell for each line of a makefile. configure would take bash, which takes longer to start.
export CONFIG_SHELL=/bin/sh

# Everything that building and testing needs on Debian 12, real Xen left out: tests/real-xen/ fetches that.
packages=(
    build-essential autoconf automake libtool pkg-config
    libxen-dev liburing-dev libsystemd-dev libjson-c-dev libinih-dev libzstd-dev libjs-d3
)
test_packages=(
    clang libclang-rt-14-dev spin xen-utils-4.17 zstd xz-utils python3 e2fsprogs util-linux mount procps
    systemd strace tmux zsh fish openssh-server
    btrfs-progs prometheus prometheus-node-exporter debhelper lintian rpm cpio mmdebstrap mandoc
    babeltrace2 clickhouse-server curl libkshark-dev protobuf-compiler python3-protobuf chromium chromium-driver
)

# npm comes with nodejs where that is not Debian's.
command -v npm >/dev/null || test_packages+=(nodejs npm)

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Packages such as prometheus would start services, which the tests do not need, and this machine's owner
# did not ask for. deb-systemd-invoke(1p) and invoke-rc.d(8) ask this script.
policy=/usr/sbin/policy-rc.d

install_missing() { # install_missing PACKAGE...
    local missing=() package status=0 has_policy=
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep 'ok installed' >/dev/null ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "Installing ${missing[*]}" >&2
    as_root apt-get -qq update >&2 || return
    [ ! -e $policy ] || has_policy=yes
    [ -n "$has_policy" ] || printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin $policy
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -y --no-install-recommends install "${missing[@]}" >&2 || status=$?
    [ -n "$has_policy" ] || as_root rm -f $policy
    return "$status"
}

prepare_source() { (cd "$root" && { [ -x configure ] || autoreconf -fi; }); }

# build_in DIRECTORY [CONFIGURE-OPTION]...: an out-of-tree build, for /usr and /etc.
build_in() {
    configure_in "$@" && make -s -j"$(nproc)"
}
configure_in() { # stays in DIRECTORY
    local directory=$1
    shift
    mkdir -p "$directory" && cd "$directory" &&
        "$root/configure" --quiet --prefix=/usr --sysconfdir=/etc "$@"
}

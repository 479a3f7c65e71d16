# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Makes packages, without a network:
#
#   make_distribution BUILD DIR    DIR/xentraced-VERSION.tar.xz and the same unpacked; sets $version
#   build_debs DIR                 from it, into DIR; sets $deb, $tools, $libdeb, $devdeb, $pydeb, $sharkdeb
#   make_older OUT [PAYLOAD]       OUT/older_*.deb: $deb and $tools as 0.1.0 would have had them,
#                                  with programs, units and configuration of PAYLOAD (install_0_1_0)
#   has_0_1_0                      the history of this repository has the sources of 0.1.0
#   install_0_1_0 DIR              builds them, and installs them below DIR

packages_root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
# The last commit whose rings have another layout (RING_VERSION 2). A newer daemon carries it over.
commit_0_1_0=1ccbf6de1820ae84e4124b6e4e016a52c2364396

# As they are shipped, but compiled in half the time.
cheap_cflags='-O1 -g1'
export DEB_CFLAGS_APPEND=$cheap_cflags

offline() { unshare --net "$@"; }

make_distribution() { # make_distribution BUILD DIR
    version=$(sed -n 's/^PACKAGE_VERSION = //p' "$1/Makefile") &&
        make -s -C "$1" distdir distdir="$2/xentraced-$version" &&
        tar -C "$2" -cJf "$2/xentraced-$version.tar.xz" "xentraced-$version"
}

build_debs() { # build_debs DIR
    (cd "$1/xentraced-$version" &&
        DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" offline dpkg-buildpackage -us -uc -b) \
        >"$1/deb.log" 2>&1 || { tail -n 30 "$1/deb.log"; return 1; }
    deb=$(echo "$1"/xentraced_*.deb)
    tools=$(echo "$1"/xentrace-tools_*.deb)
    libdeb=$(echo "$1"/libxentrace1_*.deb) devdeb=$(echo "$1"/libxentrace-dev_*.deb)
    pydeb=$(echo "$1"/python3-xentrace_*.deb) sharkdeb=$(echo "$1"/kernelshark-xentrace_*.deb)
}

# Of before 0.2.0: the client in a package of its own, which the daemon's depends on, and another
# configuration as the default one. The scripts are today's: 0.1.0 was never a package.
make_older() { # make_older OUT [PAYLOAD]
    local older=$1/older file
    rm -rf "$older"
    mkdir -p "$older" && dpkg-deb -R "$deb" "$older/xentraced" &&
        dpkg-deb -R "$tools" "$older/xentrace-tools" || return
    if [ -n "${2:-}" ]; then
        (cd "$2" && find . -type f) | while read -r file; do
            [ ! -e "$older/xentraced/$file" ] || cp "$2/$file" "$older/xentraced/$file"
            [ ! -e "$older/xentrace-tools/$file" ] || cp "$2/$file" "$older/xentrace-tools/$file"
        done
    fi
    echo '# A default of 0.1.0.' >>"$older/xentraced/etc/xentraced/xentraced.conf"
    rm -r "$older"/xentraced/usr/{bin,share/bash-completion,share/fish,share/zsh,share/man/man1}
    rm "$older"/*/DEBIAN/md5sums
    sed -i 's/^Version: .*/Version: 0.1.0/' "$older"/*/DEBIAN/control
    sed -i -E '/^(Provides|Conflicts|Replaces): /d; s/^Depends: /&xentrace-tools (= 0.1.0), /' \
        "$older/xentraced/DEBIAN/control"
    dpkg-deb -Zgzip -b "$older/xentraced" "$1/older_xentraced.deb" &&
        dpkg-deb -Zgzip -b "$older/xentrace-tools" "$1/older_xentrace-tools.deb" && rm -r "$older"
}

has_0_1_0() { git -C "$packages_root" cat-file -e "$commit_0_1_0^{commit}" 2>/dev/null; }
install_0_1_0() { # install_0_1_0 DIR
    local status=0
    mkdir -p "$1.source" &&
        (git -C "$packages_root" archive "$commit_0_1_0" | tar -x -C "$1.source" &&
            cd "$1.source" && autoreconf -fi &&
            ./configure --quiet --prefix=/usr --sysconfdir=/etc CFLAGS="$cheap_cflags" \
                --with-systemdsystemunitdir=/lib/systemd/system &&
            make -s -j"$(nproc)" noinst_PROGRAMS= &&
            make -s install noinst_PROGRAMS= DESTDIR="$1") >"$1.log" 2>&1 || status=$?
    [ "$status" -eq 0 ] || tail -n 30 "$1.log"
    rm -rf "$1.source"
    return "$status"
}

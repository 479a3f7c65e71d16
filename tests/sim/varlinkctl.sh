#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# systemd's own client for Varlink, varlinkctl, which Debian 12 does not have yet: it is that of Debian 13, in a
# root of its own, which is made once and kept where real-xen/ keeps its images. TRANSCRIPT: a file for what
# was typed and answered. Needs root and mmdebstrap.

. "$(dirname "$0")/lib.sh"

cache=${XENTRACED_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/xentraced}/debian-13
root=$cache/root

make_root() {
    local mirror
    [ ! -e "$root/usr/bin/varlinkctl" ] || return 0
    command -v mmdebstrap >/dev/null && [ "$(id -u)" -eq 0 ] || { echo "this needs root and mmdebstrap"; return 1; }
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' | head -n 1)
    mkdir -p "$cache" && rm -rf "$root.new"
    mmdebstrap --quiet --variant=minbase --include=systemd --aptopt='Acquire::Languages "none"' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' trixie "$root.new" \
        "deb ${mirror:-http://deb.debian.org/debian} trixie main" && mv -T "$root.new" "$root"
}

varlinkctl() { env -u LD_PRELOAD chroot "$dir/root" varlinkctl --no-pager "$@" </dev/null; }
# typed REGEX ARGUMENT...: it is shown, and a line of what is answered matches
typed() {
    local regex=$1 answer status=0
    shift
    answer=$(varlinkctl "$@" 2>&1) || status=$?
    [ -z "${TRANSCRIPT:-}" ] || printf '$ varlinkctl %s\n%s\n(exit status %d)\n\n' "$*" "$answer" $status >>"$TRANSCRIPT"
    matches "$regex" "$answer" && return $status
}

session() {
    local socket=/control/control
    # Over the cached root, so that nothing changes it.
    mkdir "$dir/root" "$dir/upper" "$dir/work"
    mount -t overlay -o "lowerdir=$root,upperdir=$dir/upper,workdir=$dir/work" none "$dir/root" || exit 1
    mkdir "$dir/root/control"
    mount --bind /proc "$dir/root/proc" || exit 1 # through which varlinkctl connects
    printf '[flight-recorder]\n[trigger button]\ncondition=manual\n' >"$dir/xentraced.conf"
    daemon_start && wait_until 10 recorder_runs || exit 1
    mount --bind "$dir" "$dir/root/control"
    cp "$(dirname "$script")/../../common/org.xentraced.Control.varlink" "$dir/interface"

    check "info" typed 'org\.xentraced\.Control' info $socket
    check "list-interfaces" typed '^org\.xentraced\.Control$' list-interfaces $socket
    check "list-methods" typed '^org\.xentraced\.Control\.Snapshot$' list-methods $socket
    check "introspect" typed 'method Start' introspect $socket org.xentraced.Control
    check "introspect all" typed 'interface org\.varlink\.service' introspect $socket
    varlinkctl introspect $socket org.xentraced.Control >"$dir/introspected"
    check "what it describes is valid" typed . validate-idl /control/introspected
    check "validate-idl of the file" typed 'interface org\.xentraced\.Control' validate-idl /control/interface
    check "both are the same" same "$(varlinkctl validate-idl /control/interface)" \
        "$(varlinkctl validate-idl /control/introspected)"
    check "call Status" typed 'xentraced-status' -j call $socket org.xentraced.Control.Status '{}'
    check "call Start" typed '"varlinkctl"' -j call $socket org.xentraced.Control.Start \
        '{"name":"varlinkctl","events":"sched","time_usec":1500000}'
    check "a stream, to its end" typed '"ended"' -j --more call $socket org.xentraced.Control.Status \
        '{"name":"varlinkctl","interval_usec":300000}'
    check "call Snapshot" typed '"by-varlinkctl"' -j call $socket org.xentraced.Control.Snapshot \
        '{"name":"by-varlinkctl"}'
    check "... a file that is complete" ctl info "$dir/state/by-varlinkctl.xentrace"
    check "a stream of progress" typed '"with-progress"' -j --more call $socket org.xentraced.Control.Snapshot \
        '{"name":"with-progress"}'
    check "call Trigger" typed . -j call $socket org.xentraced.Control.Trigger '{"name":"button"}'
    check "an error, with its name" fails 'org\.xentraced\.Control\.NoSuchSession' typed . \
        call $socket org.xentraced.Control.Stop '{"name":"none"}'
    check "... and its sentence" fails 'none.* is not running|sentence' typed . \
        -j call $socket org.xentraced.Control.Stop '{"name":"none"}'
    check "a parameter of the wrong type" fails 'InvalidParameter' typed . \
        call $socket org.xentraced.Control.Status '{"name":1}'
    check "a method that is none" fails 'MethodNotFound' typed . \
        call $socket org.xentraced.Control.Nothing '{}'
    check "an interface that is none" fails 'InterfaceNotFound' typed . call $socket org.example.Nothing.Call '{}'
    check "--oneway of what only reports" typed '^$' --oneway call $socket org.xentraced.Control.Status '{}'
    varlinkctl --oneway call $socket org.xentraced.Control.Start '{"name":"oneway"}' >/dev/null 2>&1
    check "--oneway starts nothing" fails 'NoSuchSession|no capture|is not' ctl status oneway
    umount "$dir/root/control" "$dir/root/proc" "$dir/root"
}

main() {
    local why
    # Mounts that nobody else sees.
    if [ -z "${VARLINKCTL_MOUNTS:-}" ]; then
        why=$(make_root 2>&1) || {
            skip varlinkctl "$(tail -n 1 <<<"$why")"
            return
        }
        VARLINKCTL_MOUNTS=1 exec unshare --mount "$script"
    fi
    [ -z "${TRANSCRIPT:-}" ] || : >"$TRANSCRIPT"
    sim --rate 5M -- session
    sim_clean
}

dispatch "$@"

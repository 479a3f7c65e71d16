# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# File systems that can be frozen (fsfreeze), for the tests that source this after lib.sh. Needs
# root and loop devices: can_freeze.
#
#   images=$(image_folder); mounted=(); mount_disk MOUNT-POINT    the caller unmounts ${mounted[@]}
#   freeze FILE-SYSTEM SECONDS                                    and removes $images

milliseconds() { echo $((${EPOCHREALTIME//[^0-9]/} / 1000)); }

# Images are in memory if there is enough: a flush then does not wait for whatever else this
# machine's disk has to do.
image_folder() {
    local kib
    kib=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)
    if [ "${kib:-0}" -gt $((4 * 1024 * 1024)) ] &&
        [ "$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)" -gt $((8 * 1024 * 1024)) ]; then
        mktemp -d /dev/shm/xentraced-disks.XXXXXX
    else
        mkdir -p "$dir/images" && echo "$dir/images"
    fi
}

mount_disk() { # mount_disk MOUNT-POINT: an ext4 of its own
    local image
    image=$images/$(basename "$1")
    # Few inodes: no thread initializes them later.
    truncate -s 3G "$image" && mkfs.ext4 -q -N 1024 "$image" && mkdir -p "$1" &&
        mount -o loop "$image" "$1" && mounted+=("$1")
}

# Freezes FILE-SYSTEM for SECONDS, or until $dir/thaw is there, and returns when it is frozen. A process of
# its own thaws it, whatever becomes of the test. The times of both are in $dir/frozen and $dir/thawed.
freeze() { # freeze FILE-SYSTEM SECONDS
    rm -f "$dir/frozen" "$dir/thawed" "$dir/thaw"
    freeze_begin_ns=$(date +%s%N)
    # shellcheck disable=SC2016 # for the shell that is started
    setsid bash -c '
        trap "" TERM INT HUP
        stamp() { echo $((${EPOCHREALTIME//[^0-9]/} / 1000)) >"$1.new" && mv "$1.new" "$1"; }
        fsfreeze -f "$1" && stamp "$3/frozen"
        for ((i = 0; i < $2 * 10; i++)); do
            [ ! -e "$3/thaw" ] || break
            sleep 0.1
        done
        fsfreeze -u "$1"
        stamp "$3/thawed"' bash "$1" "$2" "$dir" </dev/null >/dev/null 2>&1 &
    disown
    wait_until 30 test -s "$dir/frozen"
}
is_frozen() { [ -e "$dir/frozen" ] && [ ! -e "$dir/thawed" ]; }
is_thawed() { [ -e "$dir/thawed" ]; }
frozen_for() { echo $(($(milliseconds) - $(cat "$dir/frozen"))); } # in milliseconds

# Whether a file system can be mounted and frozen here.
can_freeze() {
    local tmp status=0
    [ "$(id -u)" -eq 0 ] && command -v fsfreeze mkfs.ext4 >/dev/null || return
    tmp=$(mktemp -d)
    truncate -s 16M "$tmp/image" && mkfs.ext4 -q "$tmp/image" && mkdir "$tmp/disk" &&
        mount -o loop "$tmp/image" "$tmp/disk" || status=1
    if [ "$status" -eq 0 ]; then
        fsfreeze -f "$tmp/disk" && fsfreeze -u "$tmp/disk" || status=1
        umount "$tmp/disk" || status=1
    fi
    rm -rf "$tmp"
    return "$status"
}

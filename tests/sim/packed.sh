# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For the tests of compressed traces on the stand-in. Sourced after lib.sh.

mib=$((1024 * 1024))
size_of() { stat -c %s "$1"; }

# The plain trace of FILE is in $dir/plain, whole, and what the sidecar or document counts.
unpacks() { # unpacks FILE DOCUMENT [COUNTS]
    local counts=${3:-snapshot}
    zstd -dcq "$1" >"$dir/plain" && whole "$dir/plain" &&
        same "$(size_of "$1")" "$(number "$2" output bytes)" &&
        same "$(size_of "$dir/plain")" "$(number "$2" output plain_bytes)" &&
        same "$(number "$2" output compression)" zstd &&
        ctl --json info "$1" >"$dir/info" &&
        same "$(number "$dir/info" files 0 bytes)" "$(size_of "$dir/plain")" &&
        same "$(number "$dir/info" files 0 compression stored_bytes)" "$(size_of "$1")" &&
        same "$(number "$dir/info" files 0 compression seek_table)" true || return
    case $counts in
    ledger) same "$(number "$dir/info" files 0 records)" "$(number "$2" ledger delivered)" ;;
    *) same "$(number "$dir/info" files 0 records)" "$(number "$2" "$counts" records)" ;;
    esac
}
# Each frame can be unpacked alone, and begins with a round: with the CPU with which the one before ended, or a
# lower one.
frames_begin_with_rounds() { # frames_begin_with_rounds FILE AT-LEAST
    python3 - "$@" <<'END'
import struct, subprocess, sys
data = open(sys.argv[1], "rb").read()
frames = struct.unpack_from("<I", data, len(data) - 9)[0]
assert frames >= int(sys.argv[2]), f"{frames} frames"
table, at, last = len(data) - 9 - 8 * frames, 0, 0
for i in range(frames):
    stored, plain = struct.unpack_from("<II", data, table + 8 * i)
    content = subprocess.run(["zstd", "-dcq"], input=data[at:at + stored], stdout=subprocess.PIPE, check=True).stdout
    assert len(content) == plain, f"frame {i}: {len(content)} bytes instead of {plain}"
    offset, cpus = 0, []
    while offset < plain:
        header, cpu, size = struct.unpack_from("<III", content, offset)
        assert header == 0x2001f003, f"frame {i}: no window at {offset}"
        offset += 12 + size
        cpus.append(cpu)
    assert cpus[0] <= last, f"frame {i} begins with CPU {cpus[0]} after CPU {last}"
    last = cpus[-1]
    at += stored
END
}
